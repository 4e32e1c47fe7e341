//! `hangar hook`

use crate::app::Here;
use crate::app::hooks::install::{Action, HookView, install, remove};
use crate::app::hooks::{Hook, Verdict, answer};
use crate::base::files::whole_text;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::escape;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use schemars::JsonSchema;
use serde::Serialize;

const EXAMPLES: &str = "\
A script of one line, `hangar hook NAME \"$@\"`, is all that Git needs; `hangar init --hooks` puts the \
hooks of a clone in place, and --install that of a server.

Examples:
  hangar -C /srv/git/project.git hook pre-receive --install
  hangar -C /srv/git/project.git hook pre-receive --remove";

/// Most bytes that Git says to a hook.
const MAX_LINES: u64 = 256 << 20;

/// Answer Git before it pushes, takes a push, or moves a ref
///
/// pre-push: no hidden test leaves this clone in an ordinary branch or tag, and refs of hangar are
/// neither deleted nor put back on the remote. pre-receive, on a server of your own: refs of hangar
/// only grow, by documents that their signer had the right to; the policy follows the one that is
/// there; sealed versions are never replaced. reference-transaction: refs of hangar in this clone go
/// forward only.
///
/// Git runs it with its own arguments and input. Exit 1 when a ref is refused, each with one line on
/// stderr.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HookArgs {
    /// Which hook
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(Hook::ALL.map(Hook::name)).try_map(|name| Hook::named(&name).ok_or_else(|| format!("`{name}` is not known"))))]
    pub hook: Hook,
    /// What Git gives the hook
    #[arg(value_name = "ARG")]
    pub args: Vec<String>,
    /// Put the hook in place; one that is there runs after it
    #[arg(long, conflicts_with_all = ["remove", "args"])]
    pub install: bool,
    /// Take the hook out, and put back what was there before
    #[arg(long, conflicts_with = "args")]
    pub remove: bool,
}

/// What `--install` or `--remove` did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HookReport {
    /// Each hook; empty where there was nothing to remove.
    pub hooks: Vec<HookView>,
}

pub(super) fn run(context: &Context, args: &HookArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    if !args.install && !args.remove {
        return ask(context, &here, args);
    }
    let repo = here.repository().map_err(CliError::from)?;
    let hooks = if args.install {
        install(&repo, &[args.hook])?
    } else {
        remove(&repo, &[args.hook])?
    };
    let report = HookReport { hooks };
    if context.printer.is_json() {
        context.printer.json(&report);
    } else if report.hooks.is_empty() {
        context
            .printer
            .text(format!("No {} hook of hangar is here.", args.hook.name()));
    } else {
        context.printer.text(lines(&report.hooks).join("\n"));
    }
    Ok(status(&report.hooks))
}

/// What Git asks.
fn ask(context: &Context, here: &Here, args: &HookArgs) -> Result<ExitStatus, CliError> {
    // Of what is not read nothing would be judged.
    let lines = whole_text(std::io::stdin().lock(), MAX_LINES);
    let lines =
        lines.map_err(|error| CliError::usage(format!("cannot read what Git says: {error}")))?;
    let tell = |text: &str| context.printer.notice(format!("hangar: {text}"));
    let verdict = answer(here, args.hook, &args.args, &lines, &tell).map_err(|error| {
        let error = CliError::from(error);
        match args.hook {
            Hook::PreReceive => error,
            Hook::PrePush => error.hint("`git push --no-verify` pushes without this check"),
            Hook::ReferenceTransaction => {
                error.hint("`git -c core.hooksPath=/dev/null …` runs one command without hooks")
            }
        }
    })?;
    Ok(show(context, &verdict))
}

/// One line for each ref: Git passes them on to whoever pushes.
fn show(context: &Context, verdict: &Verdict) -> ExitStatus {
    for one in &verdict.refused {
        let (name, why) = (escape::line(&one.name), escape::line(&one.why));
        context.printer.stderr(&format!("hangar: {name}: {why}\n"));
    }
    for hint in &verdict.hints {
        let hint = escape::line(hint);
        context.printer.stderr(&format!("hangar: {hint}\n"));
    }
    ExitStatus::answer(verdict.refused.is_empty())
}

/// What was done about hooks, for people.
pub(super) fn lines(hooks: &[HookView]) -> Vec<String> {
    let line = |hook: &HookView| {
        let done = match hook.action {
            Action::Installed => "installed",
            Action::Updated => "brought up to date",
            Action::Kept => "in place",
            Action::Removed => "taken out",
            Action::Refused => "not installed",
        };
        let rest = match (&hook.why, hook.action, hook.chained) {
            (Some(why), Action::Refused, _) => format!(": {why}"),
            (Some(why), _, _) => format!("; {why}"),
            (None, Action::Removed, true) => "; the hook from before is back".to_owned(),
            (None, _, true) => "; the hook from before runs after it".to_owned(),
            (None, _, false) => String::new(),
        };
        escape::line(&format!("{} {done}{rest}", hook.name)).into_owned()
    };
    hooks.iter().map(line).collect()
}

/// Refused where a hook could not be put in place.
pub(super) fn status(hooks: &[HookView]) -> ExitStatus {
    if hooks.iter().any(|hook| hook.action == Action::Refused) {
        ExitStatus::Refused
    } else {
        ExitStatus::Done
    }
}
