//! Which exit code and which hint each error of a lower module gets. Every variant is named, so
//! that a new one has to be decided here.

use super::error::CliError;
use super::exit::ExitStatus;
use crate::base::files;
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
            EditorError::Io { .. } => Self::of(ExitStatus::Trouble, error),
            EditorError::Failed { .. } => Self::of(ExitStatus::Interrupted, error),
        }
    }
}

impl From<files::Error> for CliError {
    fn from(error: files::Error) -> Self {
        Self::of(ExitStatus::Trouble, error)
    }
}
