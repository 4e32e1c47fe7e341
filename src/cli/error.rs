//! Errors at the edge: what was wrong, on what, and what to do next.

use super::exit::ExitStatus;
use crate::ui::{Label, Printer, escape, paint};
use schemars::JsonSchema;
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::io;

/// A command that did not do what it was asked.
///
/// No text in it ever holds a test body, a key or a token: what it wraps was written to be shown.
#[derive(Debug)]
pub struct CliError {
    status: ExitStatus,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
}

/// What `--json` prints on stderr for an error.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorDocument {
    /// The error.
    pub error: ErrorBody,
}

/// The body of an [`ErrorDocument`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// What kind of trouble.
    pub kind: ExitStatus,
    /// The exit code.
    pub code: u8,
    /// What was wrong, on what.
    pub message: String,
    /// Why, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub causes: Vec<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hints: Vec<String>,
    /// What was warned of before.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl CliError {
    /// An error in the command's own words.
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            source: None,
            hints: Vec::new(),
        }
    }

    /// An error of a lower module, shown with its causes.
    pub fn of(status: ExitStatus, error: impl Error + Send + Sync + 'static) -> Self {
        Self {
            status,
            message: error.to_string(),
            source: Some(Box::new(error)),
            hints: Vec::new(),
        }
    }

    /// Wrong usage that the argument parser cannot see.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    /// The answer could not be written.
    pub(super) fn output(error: io::Error) -> Self {
        let mut shown = Self::new(ExitStatus::Trouble, "cannot write the output");
        shown.source = Some(Box::new(Cause(error)));
        shown
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says first what the message is about.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The exit status.
    pub const fn status(&self) -> ExitStatus {
        self.status
    }

    /// Everything as data.
    pub fn document(&self) -> ErrorDocument {
        let mut causes = Vec::new();
        let mut next = self.source.as_deref().and_then(|error| error.source());
        while let Some(error) = next {
            let text = error.to_string();
            // A transparent wrapper says the same once more.
            if text != self.message && causes.last() != Some(&text) {
                causes.push(text);
            }
            next = error.source();
        }
        ErrorDocument {
            error: ErrorBody {
                kind: self.status,
                code: self.status.code(),
                message: self.message.clone(),
                causes,
                hints: self.hints.clone(),
                warnings: Vec::new(),
            },
        }
    }

    /// Writes it to stderr and returns the status.
    pub(super) fn show(&self, printer: &Printer) -> ExitStatus {
        let mut document = self.document();
        if printer.is_json() {
            document.error.warnings = printer.take_warnings();
            if let Ok(text) = serde_json::to_string_pretty(&document) {
                printer.stderr(&format!("{text}\n"));
            }
        } else {
            printer.message(&text(&document.error));
        }
        self.status
    }
}

fn text(error: &ErrorBody) -> String {
    let mut out = format!(
        "{} {}\n",
        paint(Label::Error, "error:"),
        escape::block(&error.message)
    );
    for cause in &error.causes {
        let label = paint(Label::Dim, "caused by:");
        out = format!(
            "{out}{label} {}
",
            escape::block(cause)
        );
    }
    for hint in &error.hints {
        let label = paint(Label::Hint, "hint:");
        out = format!(
            "{out}{label} {}
",
            escape::block(hint)
        );
    }
    out
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Makes an error the cause of a message that is not its own.
#[derive(Debug)]
struct Cause(io::Error);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner \u{1b}[31m")]
    struct Inner;

    #[test]
    fn causes_and_hints_follow_the_message_and_cannot_steer_the_terminal() {
        let error = CliError::of(ExitStatus::Missing, Outer(Inner)).hint("do this");
        let shown = text(&error.document().error);
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            "error: outer\ncaused by: inner \\u{1b}[31m\nhint: do this\n"
        );
    }

    #[test]
    fn the_document_has_kind_and_code() {
        let document = CliError::new(ExitStatus::Refused, "no").document();
        assert_eq!(
            serde_json::to_string(&document).unwrap(),
            r#"{"error":{"kind":"refused","code":4,"message":"no"}}"#
        );
    }
}
