//! What a `hangar.toml` for this repository should say.

use crate::app::Error;
use crate::git::Repository;
use crate::model::object_id::ObjectId;
use crate::model::plan::Framework;

/// A proposal for `[task]` and `[grader]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The framework.
    pub(super) framework: Framework,
    /// Whether the repository looks as if it used it.
    pub(super) found: bool,
    /// The implementer's own loop.
    pub(super) verify: String,
    /// How dependencies are fetched.
    pub(super) prepare: String,
    /// Where hidden tests may go.
    pub(super) tests: Vec<String>,
}

/// Looks at the files of a commit.
pub(super) fn propose(_repo: &Repository, _commit: ObjectId) -> Result<Proposal, Error> {
    Ok(Proposal {
        framework: Framework::Exec,
        found: false,
        verify: String::new(),
        prepare: String::new(),
        tests: vec!["tests/".into()],
    })
}
