//! What our scripts record of test binaries: which were built, which was started, how it ended. A binary is
//! known by its SHA-256, so that one test can't put another in its place for the next.

use crate::grade::call::{Call, End, Raw};
use crate::grade::report::Fault;

/// A record of the shell around a program: `MARK WORD [DIGEST PATH | STATUS]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// Digest and path of a binary that was built.
    Built(&'a str, &'a str),
    /// Digest and path of the binary that is started now.
    Start(&'a str, &'a str),
    /// There is none to start.
    None,
    /// The status of what was started.
    End(i32),
}

/// Reads the records of a channel; one that is not ours is a fault.
pub(super) fn records<'a>(call: &Call, raw: &'a Raw) -> Result<Vec<Record<'a>>, Fault> {
    let text = std::str::from_utf8(&raw.channel).map_err(|_| Fault::Unreadable)?;
    let mut records = Vec::new();
    for line in text.lines() {
        let rest = line
            .strip_prefix(call.nonce.as_str())
            .ok_or(Fault::NotOurs)?;
        let mut parts = rest.trim_start().splitn(3, ' ');
        let record = match (parts.next(), parts.next(), parts.next()) {
            (Some("built"), Some(digest), Some(path)) => Record::Built(digest, path),
            (Some("start"), Some(digest), Some(path)) => Record::Start(digest, path),
            (Some("none"), None, None) => Record::None,
            (Some("end"), Some(status), None) => {
                Record::End(status.parse().map_err(|_| Fault::Unreadable)?)
            }
            _ => return Err(Fault::Unreadable),
        };
        records.push(record);
    }
    Ok(records)
}

/// A built test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executable {
    /// Where it lies.
    pub(super) path: String,
    /// Its SHA-256 in hexadecimal.
    pub(super) digest: String,
}

/// Checks that a run was one of this binary, and gives the status that its shell saw.
pub(super) fn status(call: &Call, raw: &Raw, expected: &Executable) -> Result<Option<i32>, Fault> {
    let records = records(call, raw)?;
    match records.first() {
        Some(Record::Start(digest, path))
            if *digest == expected.digest && *path == expected.path => {}
        Some(Record::Start(..) | Record::None) => return Err(Fault::NotSealed),
        _ => return Err(Fault::Incomplete),
    }
    match records.get(1) {
        Some(Record::End(status)) if records.len() == 2 => {
            if raw.end == End::Exited(*status) {
                Ok(Some(*status))
            } else {
                Err(Fault::Status)
            }
        }
        None if raw.end == End::TimedOut => Ok(None),
        None => Err(Fault::Incomplete),
        Some(_) => Err(Fault::NotOurs),
    }
}
