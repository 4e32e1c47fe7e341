use crate::cli::{CliError, ExitStatus};
use crate::config::Error;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Syntax { .. } | Error::Value { .. } => Self::of(ExitStatus::Usage, error)
                .hint("mend that line; `hangar help config` says what which file is for"),
            Error::Unfit { .. } | Error::NotUserKey { .. } | Error::Variable { .. } => {
                Self::of(ExitStatus::Usage, error)
            }
            Error::NotText(_) => Self::of(ExitStatus::Usage, error).hint("save it as UTF-8"),
            Error::Forbidden { .. } => Self::of(ExitStatus::Refused, error),
            Error::Missing { .. } => Self::of(ExitStatus::Missing, error),
            Error::Read { .. } | Error::Client { .. } => Self::of(ExitStatus::Trouble, error),
            Error::Write(error) => error.into(),
        }
    }
}
