//! `hangar approve`

use crate::app::acceptance::decide::{self, Decided, Pending};
use crate::cli::args::MaybeTaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::approval::Action;
use crate::ui::{Label, escape, paint};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar approve KAN-80
  hangar approve KAN-80 --digest sha256:3f9a…   (without a terminal)";

/// Sign that the hidden tests shown last are the acceptance of a task
///
/// Binds the manifest that this person was shown last with `hangar review`: a newer version in
/// between is exit 4. On a terminal it asks for the first six characters of the manifest's digest.
/// Refused in the environment of an agent program, and for every agent, worker and grader key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApproveArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// The manifest's digest, for use without a terminal; it must have been reviewed here
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
}

pub(super) fn run(context: &Context, args: &ApproveArgs) -> Result<ExitStatus, CliError> {
    crate::cli::watch::protect();
    let here = context.here();
    let pending = decide::pending(&here, args.task.task.as_deref(), args.digest.as_deref())?;
    confirm(context, &pending, args.digest.is_some(), "approve")?;
    let ask = &mut context.passphrase();
    let decided = decide::decide(&here, &pending, Action::Approve, "", ask)?;
    tell(context, &decided, "approved");
    Ok(ExitStatus::Done)
}

/// Asks for six characters of the digest, unless the digest itself was given.
pub(super) fn confirm(
    context: &Context,
    pending: &Pending,
    named: bool,
    verb: &str,
) -> Result<(), CliError> {
    if named {
        return Ok(());
    }
    let counts = pending.counts;
    context.printer.notice(format!(
        "{}: version {} of the hidden tests ({} tests, {} criteria uncovered)",
        escape::line(&pending.title),
        pending.version,
        counts.tests,
        counts.uncovered
    ));
    let question = format!(
        "To {verb} {}, type the first six characters of its digest:",
        pending.manifest.short()
    );
    if context
        .prompts()
        .typed(&question, &pending.manifest.hex())?
    {
        return Ok(());
    }
    Err(CliError::new(
        ExitStatus::Refused,
        "these are not the first six characters; nothing was signed",
    ))
}

/// Says what was signed.
pub(super) fn tell(context: &Context, decided: &Decided, word: &str) {
    if context.printer.is_json() {
        context.printer.json(decided);
        return;
    }
    let id = decided.id.short();
    context.printer.line(format!(
        "{word:<10} version {} ({}) by {}",
        decided.version,
        decided.manifest.short(),
        decided.by
    ));
    let next = paint(Label::Command, format!("hangar run {id}"));
    context.printer.line(format!("next       {next}"));
}
