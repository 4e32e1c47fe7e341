//! Task text from files, options and the editor.

use crate::app::tasks::draft::{self, Draft};
use crate::cli::{CliError, context::Context};
use crate::ui::EditorError;
use clap::Args;
use std::path::PathBuf;

/// Where the text of a task comes from.
#[derive(Debug, Args)]
pub struct TextArgs {
    /// A criterion: one sentence that can be tested. May be given again and again
    #[arg(short, long = "criterion", value_name = "TEXT")]
    pub criterion: Vec<String>,
    /// Criteria from a file: a Markdown list, or one a line
    ///
    /// Where the file holds a list (`-`, `*`, `+` or `1.`, also with check boxes), each item at any
    /// depth is a criterion, and an indented line below goes on with it. Headings, empty lines and
    /// comments are left out. Any other line is refused, so that none is lost.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// What is to be done, in Markdown, from a file (`-` is standard input)
    #[arg(short = 'F', long, value_name = "FILE")]
    pub mandate_file: Option<PathBuf>,
}

impl TextArgs {
    /// Criteria of file and options, in this order; `None` when neither was given.
    pub(super) fn criteria(&self, context: &Context) -> Result<Option<Vec<String>>, CliError> {
        if self.criterion.is_empty() && self.criteria.is_none() {
            return Ok(None);
        }
        let mut all = match &self.criteria {
            Some(path) => draft::read_criteria(&context.read_text(path)?)?,
            None => Vec::new(),
        };
        all.extend(self.criterion.iter().map(|text| text.trim().to_owned()));
        if let Some(index) = all.iter().position(String::is_empty) {
            return Err(CliError::usage(format!("criterion {} is empty", index + 1)));
        }
        Ok(Some(all))
    }

    /// The mandate; `None` when no file was given.
    pub(super) fn mandate(&self, context: &Context) -> Result<Option<String>, CliError> {
        let text = self
            .mandate_file
            .as_deref()
            .map(|path| context.read_text(path));
        Ok(text.transpose()?.map(|text| text.trim().to_owned()))
    }
}

/// Adds to an error where the edited text was kept.
pub(super) fn with_text(error: CliError, draft: &Draft) -> CliError {
    kept(error, draft::template(draft).as_bytes())
}

fn kept(error: CliError, text: &[u8]) -> CliError {
    match crate::ui::keep(text, ".md") {
        Ok(path) => error.hint(format!("your text is kept in {}", path.display())),
        Err(_) => error,
    }
}

/// Lets the person edit title, mandate and criteria. `None` when they left no title.
pub(super) fn edit(draft: &Draft) -> Result<Option<Draft>, CliError> {
    let edited = crate::ui::edit(&draft::template(draft), ".md").map_err(|error| {
        let saved = match &error {
            EditorError::NotText { saved, .. } => Some(saved.clone()),
            _ => None,
        };
        let error = CliError::from(error);
        match saved {
            Some(saved) => kept(error, &saved),
            None => error,
        }
    })?;
    let read = draft::read_template(&edited);
    let read = read.map_err(|error| kept(error.into(), edited.as_bytes()))?;
    let Some((title, mandate, criteria)) = read else {
        return Ok(None);
    };
    Ok(Some(Draft {
        title,
        mandate,
        criteria,
        ..draft.clone()
    }))
}
