use crate::cli::{CliError, ExitStatus};
use crate::harness::Error;
use crate::model::lane::Role;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::NoLane { role, .. } => Self::of(ExitStatus::Missing, error)
                .hint("`hangar harness list` shows what is configured")
                .hint(without_agent(role)),
            Error::UnsupportedKind { .. }
            | Error::UnknownHarness { .. }
            | Error::Settings { .. }
            | Error::Program { .. }
            | Error::NotInstalled { .. }
            | Error::NoCredential { .. }
            | Error::NotReady { .. }
            | Error::MissingVariable { .. } => Self::of(ExitStatus::Missing, error)
                .hint("`hangar harness list` shows what is configured"),
            Error::Resting { .. } => Self::of(ExitStatus::Trouble, error)
                .hint("`hangar harness list` shows how they are"),
            Error::SameHarness(_) => Self::of(ExitStatus::Refused, error)
                .hint("name another harness for one of the two: `hangar config set lanes.implementer NAME`"),
        }
    }
}

/// How a person does by hand what no lane is there for.
const fn without_agent(role: Role) -> &'static str {
    match role {
        Role::Writer => {
            "without an agent: seal tests of your own with `hangar seal TASK --from DIR`"
        }
        Role::Implementer => {
            "without an agent: hand in a patch of your own with `hangar submit TASK --rev REV`"
        }
        Role::Judge | Role::Orchestrator => "see `hangar config list`",
    }
}
