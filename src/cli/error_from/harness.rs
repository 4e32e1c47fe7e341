use crate::cli::{CliError, ExitStatus};
use crate::harness::Error;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::UnsupportedKind { .. }
            | Error::UnknownHarness { .. }
            | Error::Settings { .. }
            | Error::Program { .. }
            | Error::NoLane(_)
            | Error::MissingVariable { .. } => Self::of(ExitStatus::Missing, error)
                .hint("`hangar harness list` shows what is configured"),
            Error::SameHarness(_) => Self::of(ExitStatus::Refused, error)
                .hint("name another harness for one of the two: `hangar config set lanes.implementer NAME`"),
        }
    }
}
