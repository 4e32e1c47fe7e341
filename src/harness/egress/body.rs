//! Where the body of a request ends (RFC 9112, section 6). What follows is never forwarded, so a
//! second request cannot ride behind an allowed one.

/// How a body ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
}

/// Follows a body as its bytes pass.
#[derive(Debug)]
pub struct Framing(State);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Bytes of a body of known length that are left.
    Left(u64),
    /// In the line before a chunk: digits so far, its value, and whether an extension began.
    Size {
        digits: u8,
        value: u64,
        rest: u16,
    },
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// In the lines after the last chunk: length of the line, bytes of all.
    Trailer {
        line: u16,
        all: u16,
    },
    TrailerLf {
        line: u16,
        all: u16,
    },
    Done,
}

const SIZE: State = State::Size {
    digits: 0,
    value: 0,
    rest: 0,
};

/// Most bytes of a chunk extension, and of all trailers.
const MAX_EXTRA: u16 = 4096;

/// The bytes break the rules of the encoding.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

impl Framing {
    /// Before the first byte.
    pub fn new(body: &Body) -> Self {
        Self(match body {
            Body::None | Body::Length(0) => State::Done,
            Body::Length(length) => State::Left(*length),
            Body::Chunked => SIZE,
        })
    }

    /// Whether all of it has passed.
    pub fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// How many of `bytes` belong to the body.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            let rest = &bytes[at..];
            at += match self.0 {
                State::Left(left) => {
                    let taken = take(left, rest);
                    self.0 = if taken == left {
                        State::Done
                    } else {
                        State::Left(left - taken)
                    };
                    as_len(taken)
                }
                State::Data(left) => {
                    let taken = take(left, rest);
                    self.0 = if taken == left {
                        State::DataCr
                    } else {
                        State::Data(left - taken)
                    };
                    as_len(taken)
                }
                state => {
                    self.0 = step(state, rest[0])?;
                    1
                }
            };
        }
        Ok(at)
    }
}

fn take(left: u64, bytes: &[u8]) -> u64 {
    left.min(bytes.len() as u64)
}

fn as_len(taken: u64) -> usize {
    usize::try_from(taken).expect("no more than the length of a slice")
}

/// One byte outside the data of a chunk. Lines end with CR LF and nothing else.
fn step(state: State, byte: u8) -> Result<State, Broken> {
    Ok(match (state, byte) {
        (
            State::Size {
                digits,
                value,
                rest: 0,
            },
            _,
        ) if byte.is_ascii_hexdigit() => {
            if digits >= 15 {
                return Err(Broken);
            }
            let digit = (byte as char).to_digit(16).ok_or(Broken)?;
            State::Size {
                digits: digits + 1,
                value: value * 16 + u64::from(digit),
                rest: 0,
            }
        }
        (
            State::Size {
                digits: 1.., value, ..
            },
            b'\r',
        ) => State::SizeLf(value),
        (
            State::Size {
                digits: digits @ 1..,
                value,
                rest,
            },
            _,
        ) if rest < MAX_EXTRA && (rest > 0 || byte == b';') && is_text(byte) => State::Size {
            digits,
            value,
            rest: rest + 1,
        },
        (State::SizeLf(0), b'\n') => State::Trailer { line: 0, all: 0 },
        (State::SizeLf(size), b'\n') => State::Data(size),
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => SIZE,
        (State::Trailer { line, all }, b'\r') => State::TrailerLf { line, all },
        (State::Trailer { line, all }, _) if all < MAX_EXTRA && is_text(byte) => State::Trailer {
            line: line + 1,
            all: all + 1,
        },
        (State::TrailerLf { line: 0, .. }, b'\n') => State::Done,
        (State::TrailerLf { all, .. }, b'\n') => State::Trailer { line: 0, all },
        _ => return Err(Broken),
    })
}

const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(body: &Body, bytes: &[u8], piece: usize) -> Result<(usize, bool), Broken> {
        let mut framing = Framing::new(body);
        let mut total = 0;
        for piece in bytes.chunks(piece) {
            total += framing.feed(piece)?;
        }
        Ok((total, framing.is_done()))
    }

    #[test]
    fn the_end_is_found_however_the_bytes_arrive() {
        let chunked = b"4\r\nWiki\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
        let mut bytes = chunked.to_vec();
        bytes.extend_from_slice(b"GET http://other.example/ HTTP/1.1\r\n\r\n");
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(
                run(&Body::Chunked, &bytes, piece),
                Ok((chunked.len(), true))
            );
            assert_eq!(run(&Body::Length(4), b"abcdGET", piece), Ok((4, true)));
        }
        assert_eq!(run(&Body::None, b"GET", 3), Ok((0, true)));
        assert_eq!(run(&Body::Length(9), b"abcd", 2), Ok((4, false)));
    }

    #[test]
    fn broken_chunks_are_refused() {
        for bad in [
            "\r\n",
            "x\r\n",
            "4\nWiki\r\n",
            "4\r\nWikiX",
            "4\r\nWiki\n",
            "-1\r\n",
            "+4\r\n",
            " 4\r\n",
            "0x4\r\n",
            "fffffffffffffffff\r\n",
            "4 \r\n",
            "4;a\nb\r\n",
            "0\r\nT: v\n\r\n",
            "4\r\rWiki",
        ] {
            assert_eq!(
                run(&Body::Chunked, bad.as_bytes(), 1),
                Err(Broken),
                "{bad:?}"
            );
        }
        let endless = format!("0\r\n{}", "a: b\r\n".repeat(5000));
        assert_eq!(run(&Body::Chunked, endless.as_bytes(), 100), Err(Broken));
    }

    proptest::proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in proptest::collection::vec(proptest::prop_oneof![
            proptest::strategy::Just(b'\r'), proptest::strategy::Just(b'\n'),
            proptest::strategy::Just(b'0'), proptest::strategy::Just(b'2'),
            proptest::strategy::Just(b';'), proptest::prelude::any::<u8>(),
        ], 0..40), piece in 1_usize..9) {
            assert_eq!(run(&Body::Chunked, &bytes, piece), run(&Body::Chunked, &bytes, 1));
        }
    }
}
