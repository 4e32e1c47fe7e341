use crate::cli::{CliError, ExitStatus};
use crate::trust::{
    AgentError, DiscoverError, KeyError, KeyFileError, MachineKeyError, ProgramError, SignError,
};

impl From<DiscoverError> for CliError {
    fn from(error: DiscoverError) -> Self {
        match error {
            DiscoverError::Key(_) | DiscoverError::NoPrivateHalf(_) => {
                Self::of(ExitStatus::Missing, error)
                    .hint("`git config user.signingKey` names the key; load its private half with `ssh-add`, or name another")
            }
            DiscoverError::File(_) => Self::of(ExitStatus::Missing, error)
                .hint("`git config user.signingKey` names the file"),
        }
    }
}

impl From<SignError> for CliError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::File(error) => error.into(),
            SignError::Agent(error) => error.into(),
            SignError::Program(error) => error.into(),
            SignError::Damaged(_) => Self::of(ExitStatus::Missing, error),
            SignError::SelfCheck(_) => Self::of(ExitStatus::Trouble, error),
        }
    }
}

impl From<KeyFileError> for CliError {
    fn from(error: KeyFileError) -> Self {
        match error {
            KeyFileError::Io { .. } => Self::of(ExitStatus::Trouble, error),
            KeyFileError::Permissions { .. }
            | KeyFileError::OldFormat { .. }
            | KeyFileError::Malformed { .. }
            | KeyFileError::Key { .. }
            | KeyFileError::NoPassphrase { .. }
            | KeyFileError::WrongPassphrase { .. } => Self::of(ExitStatus::Missing, error),
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Gone { .. } | AgentError::NotHeld(_) => {
                Self::of(ExitStatus::Missing, error)
                    .hint("`ssh-add -l` shows what your agent holds")
            }
            AgentError::TimedOut(_) => Self::of(ExitStatus::Waiting, error)
                .hint("confirm in your agent, or touch the token, and run it again"),
            AgentError::Refused(_) => Self::of(ExitStatus::Refused, error),
            AgentError::Malformed => Self::of(ExitStatus::Trouble, error),
        }
    }
}

impl From<ProgramError> for CliError {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::Process(error) => error.into(),
            ProgramError::Failed(_) => Self::of(ExitStatus::Missing, error),
        }
    }
}

impl From<MachineKeyError> for CliError {
    fn from(error: MachineKeyError) -> Self {
        match error {
            MachineKeyError::Missing { .. } => Self::of(ExitStatus::Missing, error),
            MachineKeyError::File(error) => error.into(),
            MachineKeyError::Write(error) => error.into(),
        }
    }
}

impl From<KeyError> for CliError {
    fn from(error: KeyError) -> Self {
        Self::of(ExitStatus::Usage, error)
    }
}
