//! The few data types of the SSH wire format (RFC 4251, section 5) that signatures and the agent
//! protocol need. Reading never allocates more than the input holds and never panics.

/// The bytes are not what the format asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads from the front of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes: [u8; 4] = self.bytes(4)?.try_into().map_err(|_| Malformed)?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// A length-prefixed byte string.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        self.bytes(len)
    }

    /// A length-prefixed string that must be UTF-8.
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string()?).map_err(|_| Malformed)
    }

    /// Fails when bytes are left.
    pub(super) const fn finish(self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

/// Appends a length-prefixed byte string.
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("callers limit what they send to a few MiB");
    out.extend(len.to_be_bytes());
    out.extend(bytes);
}
