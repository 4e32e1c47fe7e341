//! Why hidden tests can't be sealed: what may be said in the open, and what only their writer is told.

use std::fmt;
use std::ops::Deref;

/// What is wrong, without a name that the writer chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `criteria.json` is not there.
    NoMap,
    /// `criteria.json` does not keep its form.
    Map,
    /// There is no test file.
    NoFile,
    /// A file lies where no test may go.
    Place,
    /// A file's name, kind or size.
    File,
    /// Tests can't be listed by reading a file.
    Unlistable,
    /// `criteria.json` names what is no test.
    UnknownId,
    /// A test stands in no list of `criteria.json`.
    Unnamed,
    /// A test did not run on the base.
    NotRun,
    /// A test skips for some of its parameters.
    PartlySkipped,
    /// A test ran that nobody could list.
    Unlisted,
    /// A test was reported more than once.
    Twice,
    /// The run on the base contradicts itself.
    Untrusted,
    /// Nothing fails on the base.
    NoneFails,
    /// A sentinel lies in a file with other tests.
    SentinelPlace,
    /// A sentinel does not fail by assertion.
    Sentinel,
}

impl Kind {
    /// What follows the number, for one and for many. `None` where there is nothing to count.
    pub const fn words(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::NoMap | Self::NoFile | Self::NoneFails => return None,
            Self::Map => ("fault in criteria.json", "faults in criteria.json"),
            Self::Place => (
                "file lies outside the paths for tests",
                "files lie outside the paths for tests",
            ),
            Self::File => (
                "file has a name, kind or size that can't be sealed",
                "files have a name, kind or size that can't be sealed",
            ),
            Self::Unlistable => (
                "fault keeps the tests from being listed",
                "faults keep the tests from being listed",
            ),
            Self::UnknownId => (
                "id in criteria.json is no test of the files",
                "ids in criteria.json are no tests of the files",
            ),
            Self::Unnamed => (
                "test stands in no list of criteria.json",
                "tests stand in no list of criteria.json",
            ),
            Self::NotRun => (
                "test did not run on the base",
                "tests did not run on the base",
            ),
            Self::PartlySkipped => (
                "test skips for some of its parameters only",
                "tests skip for some of their parameters only",
            ),
            Self::Unlisted => (
                "test ran that can't be listed",
                "tests ran that can't be listed",
            ),
            Self::Twice => (
                "test was reported more than once",
                "tests were reported more than once",
            ),
            Self::Untrusted => (
                "fault makes the run on the base unbelievable",
                "faults make the run on the base unbelievable",
            ),
            Self::SentinelPlace => (
                "sentinel shares a file with other tests",
                "sentinels share a file with other tests",
            ),
            Self::Sentinel => (
                "sentinel does not fail by assertion on the base",
                "sentinels do not fail by assertion on the base",
            ),
        })
    }

    /// The whole sentence where there is nothing to count.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoMap => "criteria.json is not there",
            Self::NoFile => "there is no test file",
            Self::NoneFails => {
                "no test fails on the base, so none can tell whether the work is done"
            }
            _ => "",
        }
    }
}

/// One complaint. It reads as its text, which may name tests: for their writer alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Complaint {
    /// What may be said in the open.
    pub kind: Kind,
    text: String,
}

impl Complaint {
    /// A complaint with the sentence for the writer.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}

impl Deref for Complaint {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Complaint({:?})", self.kind)
    }
}
