//! `hangar task edit`

use super::input::TextArgs;
use crate::app::tasks::edit::{Edited, Edits, current, edit};
use crate::cli::args::TaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::Printer;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar task edit KAN-80 --priority 2
  hangar task edit KAN-80 --criteria criteria.md";

/// Change a task's text, criteria, priority, tags or base
///
/// A draft can be changed freely. Once it is queued, only priority and tags; once it is worked on,
/// only the priority. Title, mandate and criteria of a test-first task can be changed again while
/// its tests wait for approval or are approved and not used yet. Tests are for one text alone: they
/// count again where it is put back, and are written anew where it is not.
///
/// Without options on a terminal, $EDITOR opens with title, mandate and criteria.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EditArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// New title
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Criteria (the whole new list; one whose text stays keeps its id) and mandate.
    #[command(flatten)]
    pub text: TextArgs,
    /// New priority, 1 (first) to 9 (last)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub priority: Option<u8>,
    /// A tag of the whole new list. May be given again and again; an empty one alone clears it
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// New base revision (drafts only)
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
}

pub(super) fn run(context: &Context, args: EditArgs) -> Result<ExitStatus, CliError> {
    let task = args.task.task.clone();
    let mut edits = of_options(context, args)?;
    let mut typed = None;
    let here = context.here();
    if edits.is_empty() {
        if !Printer::is_interactive() {
            return Err(CliError::usage("nothing to change was given")
                .hint("on a terminal $EDITOR opens without options"));
        }
        let draft = super::input::edit(&current(&here, &task)?)?;
        let Some(draft) = draft else {
            return Err(CliError::new(
                ExitStatus::Interrupted,
                "no title; nothing was changed",
            ));
        };
        edits.title = Some(draft.title.clone());
        edits.mandate = Some(draft.mandate.clone());
        edits.criteria = Some(draft.criteria.clone());
        typed = Some(draft);
    }
    let edited = edit(&here, &task, &edits, &mut context.passphrase()).map_err(|error| {
        match (CliError::from(error), &typed) {
            (error, Some(draft)) => super::input::with_text(error, draft),
            (error, None) => error,
        }
    })?;
    if context.printer.is_json() {
        context.printer.json(&edited);
    } else if edited.changed.is_empty() {
        context.printer.notice("nothing to change");
    } else {
        let (id, fields) = (edited.id.short(), edited.changed.join(", "));
        context.printer.notice(format!("changed {fields} of {id}"));
    }
    tell_tests(context, &edited);
    Ok(ExitStatus::Done)
}

/// What the edit did to hidden tests: a person may not know that they are for one text alone.
fn tell_tests(context: &Context, edited: &Edited) {
    if let Some(stale) = &edited.stale {
        let approved = if stale.approved {
            "was approved, and was written"
        } else {
            "was written"
        };
        context.printer.warn(format!(
            "version {} of the hidden tests {approved} for the text before, so it does not count now; {}",
            stale.version, stale.remedy
        ));
    }
    if let Some(version) = edited.restored {
        context.printer.notice(format!(
            "this is the text that version {version} of the hidden tests was written for: it counts again"
        ));
    }
}

fn of_options(context: &Context, args: EditArgs) -> Result<Edits, CliError> {
    let tags: Vec<_> = args
        .tags
        .iter()
        .filter(|tag| !tag.is_empty())
        .cloned()
        .collect();
    Ok(Edits {
        criteria: args.text.criteria(context)?,
        mandate: args.text.mandate(context)?,
        title: args.title.map(|title| title.trim().to_owned()),
        priority: args.priority,
        tags: (!args.tags.is_empty()).then_some(tags),
        base: args.base,
    })
}
