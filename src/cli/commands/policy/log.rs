//! `hangar policy log`

use super::told::{overtaken_text, rivals_text, set_aside_text};
use crate::app::policy::{self, PolicyLog};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, escape, paint};
use clap::Args;
use std::fmt::Write as _;

/// Print every version and what it changed
#[derive(Debug, Args)]
pub struct LogArgs {}

pub(super) fn run(context: &Context, _: &LogArgs) -> Result<ExitStatus, CliError> {
    let log = policy::log(&context.here())?;
    if context.printer.is_json() {
        context.printer.json(&log);
    } else {
        context.printer.text(log_text(&log));
    }
    Ok(ExitStatus::Done)
}

fn log_text(log: &PolicyLog) -> String {
    let mut out = String::new();
    for version in &log.versions {
        let _ = writeln!(
            out,
            "{} {}  {}",
            paint(Label::Heading, "version"),
            version.version,
            paint(Label::Id, version.digest)
        );
        for change in &version.changes {
            let _ = writeln!(out, "  {}", escape::line(change));
        }
        for one in &version.overtaken {
            out.push_str(&overtaken_text(one));
        }
    }
    out.push_str(&rivals_text(&log.rivals));
    out.push_str(&set_aside_text(&log.set_aside));
    out
}
