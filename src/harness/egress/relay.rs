//! Moves bytes between a client inside and a server outside, counts them, and looks at what leaves.

use super::body::Framing;
use super::record::Reason;
use super::{MAX_HEAD, Scan, head};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

/// Longest text that is found although it crosses two pieces.
const OVERLAP: usize = 128;
const BUFFER: usize = 32 << 10;

/// Looks at a stream piece by piece.
pub(super) struct Scanner<'a> {
    scan: Option<&'a Scan>,
    tail: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(scan: Option<&'a Scan>) -> Self {
        Self {
            scan,
            tail: Vec::new(),
        }
    }

    /// Refuses a piece that must not leave.
    pub(super) fn check(&mut self, piece: &[u8]) -> Result<(), Reason> {
        let Some(scan) = self.scan else {
            return Ok(());
        };
        self.tail.extend_from_slice(piece);
        if scan(&self.tail) {
            return Err(Reason::Canary);
        }
        let old = self.tail.len().saturating_sub(OVERLAP);
        self.tail.drain(..old);
        Ok(())
    }
}

/// Both ends of a connection.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) client: &'a UnixStream,
    pub(super) server: &'a TcpStream,
}

impl Pair<'_> {
    /// Ends both, whoever still waits for them.
    pub(super) fn cut(&self) {
        // Either may be gone already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Client to server: `first`, then what comes. With a framing, what follows the body is read
    /// and dropped. Returns at the client's end.
    pub(super) fn up(
        &self,
        first: &[u8],
        mut framing: Option<Framing>,
        scanner: &mut Scanner<'_>,
        count: &mut u64,
    ) -> Result<(), Reason> {
        let mut send = |piece: &[u8]| -> Result<bool, Reason> {
            let piece = match &mut framing {
                None => piece,
                Some(framing) => {
                    let length = framing
                        .feed(piece)
                        .map_err(|_| Reason::Malformed("the chunks of the body"))?;
                    &piece[..length]
                }
            };
            scanner.check(piece)?;
            let sent = (&mut &*self.server).write_all(piece).is_ok();
            *count += if sent { piece.len() as u64 } else { 0 };
            Ok(sent)
        };
        let mut buffer = vec![0; BUFFER];
        let mut open = send(first)?;
        while open {
            match (&mut &*self.client).read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => open = send(&buffer[..length])?,
            }
        }
        // A server that is gone has closed its end already.
        let _ = self.server.shutdown(Shutdown::Write);
        Ok(())
    }

    /// Server to client: `first`, then everything up to the server's end.
    pub(super) fn down(&self, first: &[u8], count: &mut u64) {
        let mut send = |piece: &[u8]| {
            let sent = (&mut &*self.client).write_all(piece).is_ok();
            *count += if sent { piece.len() as u64 } else { 0 };
            sent
        };
        let mut buffer = vec![0; BUFFER];
        let mut open = send(first);
        while open {
            match (&mut &*self.server).read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => open = send(&buffer[..length]),
            }
        }
    }

    /// Sends the response's head on, interim ones included. Returns its status and the bytes of
    /// the body that came with it.
    pub(super) fn response_head(
        &self,
        upgrade: bool,
        count: &mut u64,
    ) -> Result<(u16, Vec<u8>), Reason> {
        let mut bytes = Vec::new();
        let mut interim = 0;
        loop {
            if let Some((response, length)) = head::response(&bytes)? {
                if response.status == 101 && !upgrade || interim > 16 {
                    return Err(Reason::BadResponse);
                }
                let sent = (&mut &*self.client).write_all(&response.head);
                sent.map_err(|_| Reason::Unreachable)?;
                *count += length as u64;
                bytes.drain(..length);
                if response.status >= 200 || response.status == 101 {
                    return Ok((response.status, bytes));
                }
                interim += 1;
                continue;
            }
            if bytes.len() > MAX_HEAD {
                return Err(Reason::BadResponse);
            }
            let mut buffer = vec![0; BUFFER];
            match (&mut &*self.server).read(&mut buffer) {
                Ok(0) | Err(_) => return Err(Reason::BadResponse),
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_word_is_found_across_pieces() {
        let scan: Scan = Arc::new(|bytes| bytes.windows(6).any(|window| window == b"hgc1_x"));
        let mut scanner = Scanner::new(Some(&scan));
        scanner.check(&[b'a'; 4000]).unwrap();
        scanner.check(b"hgc").unwrap();
        assert_eq!(scanner.check(b"1_x"), Err(Reason::Canary));
        let mut honest = Scanner::new(Some(&scan));
        honest.check(b"hgc").unwrap();
        honest.check(b"2_x").unwrap();
    }
}
