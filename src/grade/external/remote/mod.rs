//! How a driver in one sandbox starts programs in another: two programs of ours, one on each side,
//! and the frames between them. hangar itself only moves the bytes.
//!
//! Nothing here is trusted with a verdict. The far side runs beside the patch's code, which could
//! take its place: then it answers for the program under test, which it is anyway.

mod far;
mod near;

pub use far::main as far_main;
pub use near::main as near_main;

use std::io::{self, Read, Write};

/// Hidden subcommand of the side where the code under test is: `__far PORT`.
pub const FAR: &str = "__far";
/// Hidden subcommand of the driver's side: `__near PORT run PROGRAM [ARG…]` or `__near PORT dial SOCKET`.
pub const NEAR: &str = "__near";

/// Largest content of a frame in bytes.
const MAX: usize = 1 << 20;
/// Bytes moved at once.
const CHUNK: usize = 16 << 10;

/// What a frame is. On the wire: this byte, the length (32 bits, little endian), the content.
mod kind {
    /// Start a program: its arguments, a NUL between each two.
    pub(super) const RUN: u8 = b'r';
    /// Connect to the Unix socket at this path.
    pub(super) const DIAL: u8 = b'd';
    /// For the program's standard input or the socket; without content its end.
    pub(super) const IN: u8 = b'i';
    /// From standard output or the socket.
    pub(super) const OUT: u8 = b'o';
    /// From standard error, or why nothing could be started.
    pub(super) const ERR: u8 = b'e';
    /// The last frame: the exit status as a shell says it (32 bits, little endian).
    pub(super) const EXIT: u8 = b'x';
}

fn send(mut to: impl Write, kind: u8, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut frame = vec![kind];
    frame.extend(length.to_le_bytes());
    frame.extend(content);
    to.write_all(&frame)
}

/// The next frame; `None` at the end.
fn receive(mut from: impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [kind, length @ ..] = head;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(Some((kind, content)))
}

/// Sends everything that `from` gives, to its end, as frames of this kind.
fn pump(mut from: impl Read, kind: u8, mut send: impl FnMut(u8, &[u8]) -> io::Result<()>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) if send(kind, &buffer[..read]).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_come_as_they_were_sent() {
        let mut wire = Vec::new();
        send(&mut wire, kind::RUN, b"a\0b").unwrap();
        send(&mut wire, kind::IN, b"").unwrap();
        let mut rest = wire.as_slice();
        assert_eq!(
            receive(&mut rest).unwrap(),
            Some((kind::RUN, b"a\0b".to_vec()))
        );
        assert_eq!(receive(&mut rest).unwrap(), Some((kind::IN, Vec::new())));
        assert_eq!(receive(&mut rest).unwrap(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while let Ok(Some(_)) = receive(&mut rest) {}
        }
    }

    #[test]
    fn a_frame_that_claims_too_much_is_refused() {
        let wire = [kind::OUT, 255, 255, 255, 255];
        assert!(receive(wire.as_slice()).is_err());
    }
}
