//! Long commands: progress while they run, and Ctrl-C.

use super::context::Context;
use super::error::CliError;
use super::exit::ExitStatus;
use crate::app::acceptance::machine::Watch;
use crate::flow::host::Progress as Step;
use crate::sandbox::Cancel;
use crate::ui::{Printer, Progress, escape};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;

/// Runs `work` with a progress line. The first SIGINT or SIGTERM ends it in order: what was
/// recorded stays, nothing is left running.
pub(super) fn watched<T>(
    context: &Context,
    title: &str,
    work: impl FnOnce(&Watch<'_>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    protect();
    let cancel = Cancel::default();
    listen(&cancel).map_err(|error| {
        CliError::new(
            ExitStatus::Trouble,
            format!("cannot listen for signals: {error}"),
        )
    })?;
    let line = Progress::start(&context.printer, title);
    let show = |step: Step| tell(&context.printer, &line, &step);
    let result = work(&Watch {
        progress: &show,
        cancel: cancel.clone(),
    });
    line.finish();
    result
}

/// Keeps the memory of this process out of core dumps and away from other processes. Where the
/// kernel refuses, the command goes on: it is a second line.
pub(super) fn protect() {
    let _ = crate::sandbox::protect_memory();
}

fn listen(cancel: &Cancel) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once; the refs are whole at any moment.
        signal_hook::flag::register_conditional_default(signal, cancel.flag())?;
        signal_hook::flag::register(signal, cancel.flag())?;
    }
    Ok(())
}

fn tell(printer: &Printer, line: &Progress, step: &Step) {
    match step {
        Step::Stage(text) => {
            line.stage(text);
            printer.detail(escape::line(text));
        }
        Step::Note(text) => line.suspend(|| printer.notice(escape::line(text))),
        Step::Output(text) => {
            line.suspend(|| printer.detail(format!("  | {}", escape::line(text))));
        }
    }
}
