use crate::cli::{CliError, ExitStatus};
use crate::ui::{EditorError, PromptError};

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        match error {
            PromptError::NoTerminal(_) => Self::of(ExitStatus::Waiting, error)
                .hint("run it on a terminal, or answer with --yes where the command allows it"),
            PromptError::Ended => Self::of(ExitStatus::Interrupted, error),
        }
    }
}

impl From<EditorError> for CliError {
    fn from(error: EditorError) -> Self {
        match error {
            EditorError::None => Self::of(ExitStatus::Missing, error)
                .hint("set EDITOR, or give the text on the command line"),
            EditorError::Absent { .. } => Self::of(ExitStatus::Missing, error)
                .hint("set EDITOR to one that is installed, or give the text on the command line"),
            EditorError::NotText { .. } => Self::of(ExitStatus::Usage, error),
            EditorError::Io { .. } | EditorError::Failed { .. } => {
                Self::of(ExitStatus::Trouble, error)
            }
        }
    }
}
