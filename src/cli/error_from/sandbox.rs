use crate::cli::{CliError, ExitStatus};
use crate::sandbox::{Error, Unavailable};

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::of(ExitStatus::Interrupted, error)
                .hint("run it again: it goes on from what is recorded"),
            Error::Unavailable(unavailable) => unavailable.into(),
            Error::Unsupported { .. } => Self::of(ExitStatus::Missing, error)
                .hint("`hangar doctor` shows what each sandbox provider holds on this machine"),
            Error::Blocked { .. } => Self::of(ExitStatus::Refused, error),
            Error::Setup { .. } | Error::Start(_) | Error::Lost(_) => {
                Self::of(ExitStatus::Trouble, error)
                    .hint("`hangar doctor` shows whether sandboxes work on this machine")
            }
        }
    }
}

impl From<Unavailable> for CliError {
    fn from(error: Unavailable) -> Self {
        let remedy = error.remedy.clone();
        let shown = Self::of(ExitStatus::Missing, error);
        if remedy.is_empty() {
            shown
        } else {
            shown.hint(remedy)
        }
    }
}
