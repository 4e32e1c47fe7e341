//! `hangar task log`

use crate::app::tasks::log::log;
use crate::cli::args::TaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, escape, paint};
use clap::Args;

/// Show the signed documents of a task, oldest first
///
/// The commit of each can be read with git: `git show COMMIT`. An event that was refused stays in
/// the history and has no effect.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

pub(super) fn run(context: &Context, args: &LogArgs) -> Result<ExitStatus, CliError> {
    let log = log(&context.here(), &args.task.task)?;
    for fault in &log.faults {
        context
            .printer
            .warn(format!("not believed: {}", escape::line(fault)));
    }
    if context.printer.is_json() {
        context.printer.json(&log);
        return Ok(ExitStatus::Done);
    }
    let mut out = Vec::new();
    for entry in &log.documents {
        out.push(format!(
            "{} {}  commit {}",
            paint(Label::Heading, &entry.kind),
            paint(Label::Id, entry.digest),
            entry.commit.short()
        ));
        super::show::line(entry, 0, &mut out);
    }
    out.push(String::new());
    context.printer.page(&out.join("\n"));
    Ok(ExitStatus::Done)
}
