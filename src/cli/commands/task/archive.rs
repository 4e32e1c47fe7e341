//! `hangar task archive`

use crate::app::tasks::archive::archive;
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar task archive
  hangar task archive 4fz7qk2m
  hangar task list --archived";

/// Move ended tasks out of the way
///
/// Their refs are folded into a few that no fetch or push has to look at; they are found by id and
/// by key, shown and verified as before, and a retry or a comment brings one back. Without TASK, those
/// that ended as long ago as the policy says (`hangar policy edit --archive-days`); `hangar sync` does
/// that by itself once a day.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ArchiveArgs {
    /// Ended tasks, by id, unique prefix or external key
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
}

pub(super) fn run(context: &Context, args: &ArchiveArgs) -> Result<ExitStatus, CliError> {
    let done = archive(&context.here(), &args.tasks)?;
    if context.printer.is_json() {
        context.printer.json(&done);
        return Ok(ExitStatus::Done);
    }
    let number = done.archived.len();
    context.printer.notice(match number {
        0 => "no task is due for the archive".into(),
        _ => count(number, "task is archived", "tasks are archived"),
    });
    Ok(ExitStatus::Done)
}
