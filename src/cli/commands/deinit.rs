//! `hangar deinit`

use crate::app::setup::deinit::{DeinitReport, deinit, survey};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::escape;
use clap::Args;

/// Take hangar out of this clone
///
/// Removes hangar's refs, its hooks and its own folder in this clone, after a question; a hook that
/// was there before is put back. Keys stay, and so does everything that other clones and the remote
/// hold; tasks that were never pushed are gone. Refused in the environment of an agent program.
#[derive(Debug, Args)]
pub struct DeinitArgs {}

pub(super) fn run(context: &Context, _: &DeinitArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let before = survey(&here)?;
    let hooks = match before.hooks.len() {
        0 => String::new(),
        number => format!(" and {}", count(number, "hook", "hooks")),
    };
    let question = format!(
        "Remove {} of hangar ({}){hooks} from this clone?",
        count(before.refs, "ref", "refs"),
        count(before.tasks, "task", "tasks")
    );
    let question = if before.refs == 0 {
        "Make this clone forget the policy that it has seen?".to_owned()
    } else {
        question
    };
    if before.refs == 0 && !before.remembers && before.hooks.is_empty() {
        tell(
            context,
            &before,
            "There is nothing of hangar in this clone.",
        );
        return Ok(ExitStatus::Done);
    }
    if !context.prompts().confirm(&question)? {
        return Err(CliError::new(
            ExitStatus::Interrupted,
            "nothing was removed",
        ));
    }
    let after = deinit(&here)?;
    tell(
        context,
        &after,
        &format!(
            "Removed {}{hooks} and hangar's folder.",
            count(after.refs, "ref", "refs")
        ),
    );
    Ok(ExitStatus::Done)
}

fn tell(context: &Context, report: &DeinitReport, headline: &str) {
    if context.printer.is_json() {
        context.printer.json(report);
        return;
    }
    context.printer.line(headline);
    context.printer.line("\nStill there:");
    for kept in &report.kept {
        context.printer.line(format!("  {}", escape::line(kept)));
    }
}
