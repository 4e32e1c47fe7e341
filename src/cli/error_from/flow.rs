use crate::cli::{CliError, ExitStatus};
use crate::flow::Error;
use crate::model::ids::Principal;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let with = |status, error, remedy: &str| {
            let shown = Self::of(status, error);
            if remedy.is_empty() {
                shown
            } else {
                shown.hint(remedy)
            }
        };
        match error {
            Error::Store(error) => error.into(),
            Error::Git(error) => error.into(),
            Error::Sandbox(error) => error.into(),
            Error::Config(error) => error.into(),
            Error::Harness(error) => error.into(),
            Error::Sign(error) => error.into(),
            Error::Key(error) => error.into(),
            Error::File(error) => error.into(),
            Error::Missing { ref remedy, .. } => {
                let remedy = remedy.clone();
                with(ExitStatus::Missing, error, &remedy)
            }
            Error::Refused { ref remedy, .. } => {
                let remedy = remedy.clone();
                with(ExitStatus::Refused, error, &remedy)
            }
            Error::Agent { ref remedy, .. } | Error::Outside { ref remedy, .. } => {
                let remedy = remedy.clone();
                with(ExitStatus::Trouble, error, &remedy)
            }
            Error::Stopped(ref stopped) => {
                let remedy = stopped.remedy.clone();
                with(ExitStatus::Trouble, error, &remedy)
            }
            Error::Held { ref remedy, .. } => {
                let remedy = remedy.clone();
                with(ExitStatus::Held, error, &remedy)
            }
            Error::Lost { .. } => Self::of(ExitStatus::Held, error)
                .hint("what was recorded stays; `hangar task show` says where the task stands"),
            Error::Interrupted => Self::of(ExitStatus::Interrupted, error)
                .hint("run it again: it goes on from what is recorded"),
            Error::Decrypt(_) => Self::of(ExitStatus::Missing, error)
                .hint("members of the policy get it by `hangar sealed reseal TASK`, run by who can open it; who is no member asks an admin for `hangar policy add`"),
            Error::Recipient {
                ref holder,
                is_grader,
                ..
            } => {
                let hint = recipient(holder, is_grader);
                Self::of(ExitStatus::Missing, error).hint(hint)
            }
            Error::Bundle(_) | Error::Encrypt(_) => Self::of(ExitStatus::Refused, error),
            Error::Pattern(_) | Error::Codec(_) => Self::of(ExitStatus::Usage, error),
        }
    }
}

/// What an admin does about a recipient that nothing can be encrypted to.
fn recipient(holder: &Principal, is_grader: bool) -> String {
    let again = if is_grader {
        format!("`hangar policy add {holder} --grader 'ssh-ed25519 …'`")
    } else {
        format!("`hangar policy add {holder} --role ROLE --key KEY --recipient age1…`")
    };
    format!(
        "an admin takes {holder} out and adds a key that can decrypt: `hangar policy remove {holder} --retired`, then {again}"
    )
}
