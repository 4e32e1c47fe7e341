//! What went wrong inside the launcher, in a form that crosses the socket.

use super::wire::{Reader, Writer};
use rustix::io::Errno;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Why the launcher gave up.
#[derive(Debug)]
pub(super) struct Fault {
    /// What was tried, as a verb phrase: `make a user namespace`.
    pub(super) what: String,
    /// On which path, if on one.
    pub(super) path: Option<PathBuf>,
    /// The kernel's answer; 0 when the launcher itself refused.
    pub(super) errno: i32,
    /// Whether the file tree is to blame (a link or a file where a folder must be), rather than
    /// the machine.
    pub(super) blocked: bool,
}

impl Fault {
    /// The launcher itself refuses `path`.
    pub(super) fn blocked(what: &str, path: &Path) -> Self {
        Self {
            what: what.to_owned(),
            path: Some(path.to_owned()),
            errno: 0,
            blocked: true,
        }
    }

    /// As a payload.
    pub(super) fn encode(&self) -> Vec<u8> {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        let mut out = Writer::default();
        out.bytes(self.what.as_bytes())
            .bytes(path.as_os_str().as_bytes())
            .number(u64::from(self.errno.unsigned_abs()))
            .number(self.blocked.into());
        out.finish()
    }

    /// From a payload.
    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut from = Reader::new(bytes);
        let what = String::from_utf8_lossy(from.bytes()?).into_owned();
        let path = from.bytes()?.to_vec();
        Ok(Self {
            what,
            path: (!path.is_empty()).then(|| std::ffi::OsString::from_vec(path).into()),
            errno: i32::try_from(from.number()?).map_err(|_| io::ErrorKind::InvalidData)?,
            blocked: from.number()? != 0,
        })
    }
}

/// Says what was tried when a call failed.
pub(super) trait Doing<T> {
    /// `what` as a verb phrase.
    fn doing(self, what: &str) -> Result<T, Fault>;
    /// The same, on `path`.
    fn doing_on(self, what: &str, path: &Path) -> Result<T, Fault>;
}

impl<T> Doing<T> for Result<T, Errno> {
    fn doing(self, what: &str) -> Result<T, Fault> {
        self.map_err(|errno| Fault {
            what: what.to_owned(),
            path: None,
            errno: errno.raw_os_error(),
            blocked: false,
        })
    }

    fn doing_on(self, what: &str, path: &Path) -> Result<T, Fault> {
        self.doing(what).map_err(|fault| Fault {
            path: Some(path.to_owned()),
            ..fault
        })
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &str) -> Result<T, Fault> {
        self.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .doing(what)
    }

    fn doing_on(self, what: &str, path: &Path) -> Result<T, Fault> {
        self.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .doing_on(what, path)
    }
}
