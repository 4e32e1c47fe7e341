//! Questions to the person at the terminal.

use super::escape;
use super::printer::Printer;
use super::style::{Label, paint};
use crate::base::redact::Secret;
use std::io::{self, BufRead as _};
use std::path::Path;

/// Longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 << 10;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// Nobody sits at the terminal.
    #[error("{0} needs a terminal to ask on")]
    NoTerminal(String),
    /// The input ended or could not be read.
    #[error("no answer was given")]
    Ended,
}

/// Asks, or answers for the person where they said `--yes`.
#[derive(Debug, Clone, Copy)]
pub struct Prompts<'a> {
    printer: &'a Printer,
    yes: bool,
}

impl<'a> Prompts<'a> {
    /// Asks through `printer`; with `yes`, every question is answered with yes.
    pub const fn new(printer: &'a Printer, yes: bool) -> Self {
        Self { printer, yes }
    }

    /// Whether a question would be answered: by the person or by `--yes`.
    pub fn can_confirm(&self) -> bool {
        self.yes || Printer::is_interactive()
    }

    /// A yes-or-no question. Enter alone is no.
    pub fn confirm(&self, question: &str) -> Result<bool, PromptError> {
        if self.yes {
            return Ok(true);
        }
        let answer = self.ask(
            &format!("{} [y/N] ", escape::line(question)),
            "this question",
        )?;
        Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks for the first six characters of something, to show that it was looked at. `--yes` does
    /// not answer this one.
    pub fn typed(&self, question: &str, expected: &str) -> Result<bool, PromptError> {
        let wanted: String = expected.chars().take(6).collect();
        let answer = self.ask(&format!("{} ", escape::line(question)), "this confirmation")?;
        Ok(answer.eq_ignore_ascii_case(&wanted))
    }

    /// The passphrase of a key file; `None` when there is nobody to ask or nothing was typed.
    pub fn passphrase(&self, file: &Path) -> Option<Secret> {
        if !Printer::is_interactive() {
            return None;
        }
        let name = file.display().to_string();
        let prompt = format!("Passphrase of {}: ", escape::line(&name));
        let ask = || rpassword::prompt_password(prompt).ok();
        let typed = self.printer.without_line(ask)?;
        (!typed.is_empty()).then(|| Secret::from(typed))
    }

    fn ask(&self, prompt: &str, what: &str) -> Result<String, PromptError> {
        if !Printer::is_interactive() {
            return Err(PromptError::NoTerminal(what.into()));
        }
        let mut answer = String::new();
        let read = self.printer.without_line(|| {
            self.printer.stderr(&paint(Label::Heading, prompt));
            io::Read::take(io::stdin().lock(), MAX_ANSWER).read_line(&mut answer)
        });
        match read {
            Ok(0) | Err(_) => Err(PromptError::Ended),
            Ok(_) => Ok(answer.trim().to_owned()),
        }
    }
}
