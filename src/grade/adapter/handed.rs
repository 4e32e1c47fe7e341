//! What our scripts hand on over the channel: files, between records that bear the mark of the call.

use crate::grade::report::Fault;

/// What a script told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The files, in order.
    pub(super) files: Vec<Vec<u8>>,
    /// The status of what the script started; `None` where it did not come to its end.
    pub(super) status: Option<i32>,
}

/// Reads the channel: lines that begin with the mark are the script's, what stands between `file` and `shut`
/// is a file. Anything else that stands there was not written by the script.
pub(super) fn read(channel: &[u8], mark: &str) -> Result<Told, Fault> {
    let mut told = Told::default();
    let mut started = false;
    let mut open = false;
    for line in channel.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_prefix(mark.as_bytes());
        let word = text.and_then(|text| std::str::from_utf8(text.strip_suffix(b"\n")?).ok());
        if told.status.is_some() {
            return Err(Fault::NotOurs);
        }
        match word {
            Some(" start") if !started => started = true,
            _ if !started => return Err(Fault::NotOurs),
            // A report stood there before the program ran.
            Some(" early") => return Err(Fault::NotOurs),
            Some(" file") if !open => {
                told.files.push(Vec::new());
                open = true;
            }
            Some(" shut") if open => open = false,
            Some(_) if open => return Err(Fault::NotOurs),
            Some(word) => {
                let status = word
                    .strip_prefix(" end ")
                    .and_then(|text| text.parse().ok());
                told.status = Some(status.ok_or(Fault::Unreadable)?);
            }
            None => match told.files.last_mut().filter(|_| open) {
                Some(file) => file.extend_from_slice(line),
                None => return Err(Fault::NotOurs),
            },
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_of_others_are_faults() {
        let fine = b"m start\nm file\n<a>\n</a>\n\nm shut\nm end 0\n";
        let told = read(fine, "m").unwrap();
        assert_eq!((told.files.len(), told.status), (1, Some(0)));
        for bad in [
            &b"x start\n"[..],
            b"junk\nm start\nm end 0\n",
            b"m start\njunk\nm end 0\n",
            b"m start\nm early\n",
            b"m start\nm shut\n",
            b"m start\nm file\na\nm end 0\n",
            b"m start\nm file\na\nm file\n",
            b"m start\nm file\na\nm shut\njunk\nm end 0\n",
            b"m start\nm end 0\nm file\n",
            b"m start\nm end zero\n",
        ] {
            assert!(read(bad, "m").is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn any_channel_is_read_without_panic(bytes: Vec<u8>) {
            let _ = read(&bytes, "m");
            let _ = read(&[b"m start\n", bytes.as_slice()].concat(), "m");
        }
    }
}
