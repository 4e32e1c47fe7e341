//! A client of ssh-agent: list keys, sign (draft-ietf-sshm-ssh-agent).

use super::key::PublicKey;
use super::wire::{Malformed, Reader, put_string};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FAILURE: u8 = 5;
const EXTENSION_FAILURE: u8 = 28;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Flag of a sign request: RSA with SHA-512. Other keys ignore it.
const RSA_SHA2_512: u32 = 4;

/// Longest answer that is read, in bytes (OpenSSH's own limit).
const MAX_ANSWER: usize = 256 << 10;
/// Most keys that are taken from a list.
const MAX_KEYS: usize = 1024;
/// An agent that lists needs no person.
const LIST_TIME: Duration = Duration::from_secs(10);
/// Signing may wait for a confirmation or a touch.
const SIGN_TIME: Duration = Duration::from_secs(120);

/// Why the agent did not do it.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nobody answers at the socket.
    #[error("no ssh-agent answers at {}; start one, or point SSH_AUTH_SOCK to it", socket.display())]
    Gone {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It took too long, for instance because nobody confirmed.
    #[error("the ssh-agent did not answer within {0} s")]
    TimedOut(u64),
    /// It does not hold the key (or is locked).
    #[error("the ssh-agent does not hold {0}; load it with `ssh-add` (or unlock the agent)")]
    NotHeld(String),
    /// It holds the key but would not sign: not confirmed, not touched, or not allowed.
    #[error("the ssh-agent refused to sign with {0}")]
    Refused(String),
    /// Its answer makes no sense.
    #[error("the ssh-agent sent an answer that makes no sense")]
    Malformed,
}

impl From<Malformed> for AgentError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A key that an agent holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKey {
    /// The public half.
    pub public: PublicKey,
    /// The comment, cut to 100 printable characters.
    pub comment: String,
}

/// An ssh-agent, by its socket. Each request opens its own connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    socket: PathBuf,
}

impl Agent {
    /// The agent at `socket` (`SSH_AUTH_SOCK`).
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
        }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The keys it holds, in its order. Kinds that hangar does not accept are left out.
    pub fn keys(&self) -> Result<Vec<AgentKey>, AgentError> {
        let answer = self.request(&[REQUEST_IDENTITIES], LIST_TIME)?;
        let mut reader = Reader::new(&answer);
        match reader.byte()? {
            IDENTITIES_ANSWER => {}
            FAILURE | EXTENSION_FAILURE => return Ok(Vec::new()),
            _ => return Err(AgentError::Malformed),
        }
        let mut keys = Vec::new();
        for _ in 0..reader.u32()? {
            let blob = reader.string()?;
            let comment = String::from_utf8_lossy(reader.string()?);
            if let Ok(public) = PublicKey::from_wire(blob) {
                keys.push(AgentKey {
                    public,
                    comment: printable(&comment),
                });
            }
            if keys.len() >= MAX_KEYS {
                return Ok(keys);
            }
        }
        reader.finish()?;
        Ok(keys)
    }

    /// Whether it holds `key`.
    pub fn holds(&self, key: &PublicKey) -> Result<bool, AgentError> {
        Ok(self.keys()?.iter().any(|held| held.public == *key))
    }

    /// The signature of `key` over `data`, in wire form.
    pub(super) fn sign(&self, key: &PublicKey, data: &[u8]) -> Result<Vec<u8>, AgentError> {
        let mut body = vec![SIGN_REQUEST];
        put_string(&mut body, key.wire());
        put_string(&mut body, data);
        body.extend(RSA_SHA2_512.to_be_bytes());
        let answer = self.request(&body, SIGN_TIME)?;
        let mut reader = Reader::new(&answer);
        match reader.byte()? {
            SIGN_RESPONSE => {
                let signature = reader.string()?.to_vec();
                reader.finish()?;
                Ok(signature)
            }
            FAILURE | EXTENSION_FAILURE if self.holds(key)? => {
                Err(AgentError::Refused(key.fingerprint().to_string()))
            }
            FAILURE | EXTENSION_FAILURE => Err(AgentError::NotHeld(key.fingerprint().to_string())),
            _ => Err(AgentError::Malformed),
        }
    }

    fn request(&self, body: &[u8], time: Duration) -> Result<Vec<u8>, AgentError> {
        let end = Instant::now() + time;
        let gone = |source: io::Error| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                AgentError::TimedOut(time.as_secs())
            }
            _ => AgentError::Gone {
                socket: self.socket.clone(),
                source,
            },
        };
        let mut stream = UnixStream::connect(&self.socket).map_err(gone)?;
        stream.set_write_timeout(Some(time)).map_err(gone)?;
        let mut message = Vec::with_capacity(body.len() + 4);
        put_string(&mut message, body);
        stream.write_all(&message).map_err(gone)?;
        let mut head = [0; 4];
        read_until(&mut stream, &mut head, end).map_err(gone)?;
        let len = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
        if len == 0 || len > MAX_ANSWER {
            return Err(AgentError::Malformed);
        }
        let mut answer = vec![0; len];
        read_until(&mut stream, &mut answer, end).map_err(gone)?;
        Ok(answer)
    }
}

/// Fills `buffer`, or fails when `end` passes; an agent that sends byte by byte gains no time.
fn read_until(stream: &mut UnixStream, buffer: &mut [u8], end: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}
