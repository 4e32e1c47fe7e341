//! What is written down about every request.

use jiff::Timestamp;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One request. No body, path or header is part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRecord {
    /// When it ended.
    pub at: Timestamp,
    /// Lane whose sandbox made it.
    pub lane: String,
    /// Host, as it was asked for; empty where it could not be read.
    pub host: String,
    /// Port; 0 where it could not be read.
    pub port: u16,
    /// Bytes that went out.
    pub bytes_up: u64,
    /// Bytes that came in.
    pub bytes_down: u64,
    /// What was done with it.
    pub verdict: Verdict,
}

impl EgressRecord {
    /// Whether it went through.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }
}

impl fmt::Display for EgressRecord {
    /// One line: time, lane, place, bytes out and in, verdict.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.escape_debug();
        write!(f, "{} {} {host}:{} ", self.at, self.lane, self.port)?;
        write!(f, "up {} down {} ", self.bytes_up, self.bytes_down)?;
        match self.verdict {
            Verdict::Allowed => f.write_str("allowed"),
            Verdict::Failed(reason) => write!(f, "failed: {reason}"),
            Verdict::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

/// What was done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It went through.
    Allowed,
    /// It was listed, and the place could not be reached.
    Failed(Reason),
    /// It was not let through, or cut.
    Refused(Reason),
}

/// Why a request did not go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Not on the allow-list.
    NotListed,
    /// The name leads to an address of this machine or of a private network.
    PrivateAddress,
    /// The request breaks a rule of HTTP or holds odd bytes.
    Malformed(&'static str),
    /// It carried text of the sealed store.
    Canary,
    /// Too many connections at one time.
    TooMany,
    /// The name has no address.
    Unresolved,
    /// Nobody answers at the address.
    Unreachable,
    /// The other side does not speak HTTP.
    BadResponse,
}

impl Reason {
    /// HTTP status of the answer.
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::NotListed | Self::PrivateAddress | Self::Canary => "403 Forbidden",
            Self::Malformed(_) => "400 Bad Request",
            Self::TooMany => "503 Service Unavailable",
            Self::Unresolved | Self::Unreachable | Self::BadResponse => "502 Bad Gateway",
        }
    }

    /// Whether it is trouble outside rather than a rule.
    pub(super) const fn verdict(self) -> Verdict {
        match self {
            Self::Unresolved | Self::Unreachable | Self::BadResponse => Verdict::Failed(self),
            _ => Verdict::Refused(self),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotListed => "not on the allow-list",
            Self::PrivateAddress => "leads to a private address",
            Self::Malformed(why) => return write!(f, "malformed: {why}"),
            Self::Canary => "carries sealed text",
            Self::TooMany => "too many connections",
            Self::Unresolved => "the name has no address",
            Self::Unreachable => "nobody answers",
            Self::BadResponse => "the answer is no HTTP",
        })
    }
}

/// Most records that are kept.
const MAX_RECORDS: usize = 20_000;

/// The records of one proxy.
#[derive(Debug, Default)]
pub(super) struct Log {
    records: Mutex<Vec<EgressRecord>>,
    lost: AtomicU64,
}

impl Log {
    pub(super) fn add(&self, record: EgressRecord) {
        let mut records = self
            .records
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if records.len() < MAX_RECORDS {
            records.push(record);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn records(&self) -> Vec<EgressRecord> {
        let records = self
            .records
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        records.clone()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
