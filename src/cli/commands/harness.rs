//! `hangar harness`

use crate::app::harness::{self, HarnessList, HarnessView, HealthWord};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, Table, escape};
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Claude Code (`claude`) writes and Codex (`codex`) implements where nothing else is configured. Other
programs and lanes stand in your own file, never in hangar.toml:

  [harness.mine]
  kind = \"command\"
  command = [\"/usr/local/bin/my-agent\"]

  [lanes]
  writer = [\"mine\"]";

/// List and check the agent programs of this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HarnessArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: HarnessCommand,
}

/// `hangar harness …`
#[derive(Debug, Subcommand)]
pub enum HarnessCommand {
    /// List harnesses and lanes
    List,
    /// Check that harnesses can be used; exit 1 when one cannot
    ///
    /// Looks for each program and what it logs in with, and asks it for its version. No turn is
    /// started. One that is named, and can be used, is taken for mended: a limit or a login that was
    /// not accepted is forgotten, and the next run asks it again.
    Test {
        /// Which ones [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

pub(super) fn run(context: &Context, args: HarnessArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let (list, is_test) = match args.command {
        HarnessCommand::List => (harness::list(&here)?, false),
        HarnessCommand::Test { names } => (harness::test(&here, &names)?, true),
    };
    if context.printer.is_json() {
        context.printer.json(&list);
    } else {
        print(context, &list, is_test);
    }
    let all_ready = list.harnesses.iter().all(|one| one.ready);
    Ok(ExitStatus::answer(!is_test || all_ready))
}

/// How it is, for people.
pub(super) fn health(one: &HarnessView) -> String {
    let word = match one.health {
        HealthWord::Ok => "ok",
        HealthWord::Limited => "limited",
        HealthWord::Overloaded => "overloaded",
        HealthWord::Unauthenticated => "not logged in",
        HealthWord::Unpaid => "no credit",
    };
    match &one.until {
        Some(until) => format!("{word} until {until}"),
        None => word.to_owned(),
    }
}

fn print(context: &Context, list: &HarnessList, is_test: bool) {
    let printer = &context.printer;
    let mut table = Table::new(&["HARNESS", "KIND", "READY", "HEALTH", "DETAIL"]);
    for one in &list.harnesses {
        let (ready, label) = if one.ready {
            ("yes", Label::Good)
        } else {
            ("no", Label::Bad)
        };
        let detail = one.detail.as_deref().unwrap_or_default();
        table.row([
            (&one.name, None),
            (&one.kind, None),
            (ready, Some(label)),
            (&health(one), None),
            (detail, None),
        ]);
    }
    if table.is_empty() {
        printer.notice("no harness is installed or configured; see `hangar harness --help`");
    } else {
        printer.table(&table);
    }
    if is_test {
        return;
    }
    for (role, lanes) in &list.lanes {
        printer.notice(format!("{role}: {}", escape::line(&lanes.join(", "))));
    }
    match (&list.pair.writer, &list.pair.implementer, &list.pair.detail) {
        (Some(writer), Some(implementer), _) => printer.notice(format!(
            "a test-first task would be written by {writer} and implemented by {implementer}"
        )),
        // The default lanes are missing then, which nobody asked for.
        _ if list.harnesses.is_empty() && list.lanes.is_empty() => {}
        (_, _, Some(detail)) => printer.notice(format!(
            "no pair for a test-first task: {}",
            escape::line(detail)
        )),
        _ => {}
    }
}
