//! `hangar approve`

use super::run::contradicting;
use crate::app::acceptance::decide::{self, Decided, Pending};
use crate::app::acceptance::patch;
use crate::base::words::count;
use crate::cli::args::MaybeTaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::ui::{Label, Printer, PromptError, escape, paint};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar approve KAN-80
  hangar approve KAN-80 --digest sha256:3f9a…   (without a terminal)
  hangar approve KAN-80 --patch";

/// Sign that the hidden tests shown last are the acceptance of a task
///
/// Binds the manifest that this person was shown last with `hangar review`: a newer version in
/// between is exit 4. On a terminal it asks for the first six characters of the manifest's digest.
///
/// With `--patch` it signs instead that the accepted patch of the task may be delivered although it
/// changes CI, hooks, `.gitattributes` or `hangar.toml`. Only approvers and admins can.
///
/// Refused in the environment of an agent program, and for every agent, worker and grader key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApproveArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// The digest of the manifest (with --patch: the patch id), for use without a terminal; it must
    /// have been reviewed here
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Approve the delivery of a patch that changes CI, hooks or configuration
    #[arg(long)]
    pub patch: bool,
}

pub(super) fn run(context: &Context, args: &ApproveArgs) -> Result<ExitStatus, CliError> {
    crate::cli::watch::protect();
    if args.patch {
        return approve_patch(context, args);
    }
    let here = context.here();
    let pending = decide::pending(&here, args.task.task.as_deref(), args.digest.as_deref())?;
    if let Some(before) = decide::decided_already(&here, &pending, Action::Approve, "")? {
        tell(context, &before, "approved already");
        return Ok(ExitStatus::Done);
    }
    if args.digest.is_none() {
        confirm(context, &pending)?;
    }
    let ask = &mut context.passphrase();
    let decided = decide::decide(&here, &pending, Action::Approve, "", ask)?;
    tell(context, &decided, "approved");
    Ok(ExitStatus::Done)
}

fn approve_patch(context: &Context, args: &ApproveArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let card = patch::pending(&here, args.task.task.as_deref(), args.digest.as_deref())?;
    if args.digest.is_none() {
        let title = escape::line(&card.title);
        let about = format!(
            "{title}: a patch of {} that changes CI, hooks or configuration",
            card.by
        );
        let instead = format!("hangar approve {} --patch", card.id.short());
        ask_digest(context, &about, card.patch, &instead)?;
    }
    let approved = patch::approve(&here, &card, &mut context.passphrase())?;
    if context.printer.is_json() {
        context.printer.json(&approved);
        return Ok(ExitStatus::Done);
    }
    let (patch, id) = (approved.patch.short(), approved.id.short());
    context
        .printer
        .line(format!("approved   patch {patch} by {}", approved.by));
    let next = paint(Label::Command, format!("hangar run {id}"));
    context.printer.line(format!("next       {next}"));
    Ok(ExitStatus::Done)
}

/// Asks for six characters of the digest.
fn confirm(context: &Context, pending: &Pending) -> Result<(), CliError> {
    let counts = pending.counts;
    let about = format!(
        "{}: version {} of the hidden tests ({}, {} uncovered)",
        escape::line(&pending.title),
        pending.version,
        count(counts.tests, "test", "tests"),
        count(counts.uncovered, "criterion", "criteria")
    );
    let instead = format!("hangar approve {}", pending.id.short());
    ask_digest(context, &about, pending.manifest, &instead)
}

/// `instead` is the command that takes the digest where nobody can be asked.
fn ask_digest(
    context: &Context,
    about: &str,
    digest: Digest,
    instead: &str,
) -> Result<(), CliError> {
    if Printer::is_interactive() {
        context.printer.notice(about);
    }
    let question = format!(
        "To approve {}, type the first six characters of its digest:",
        digest.short()
    );
    let typed = context.prompts().typed(&question, &digest.hex());
    if let Err(error @ PromptError::NoTerminal(_)) = typed {
        return Err(CliError::of(ExitStatus::Waiting, error).hint(format!(
            "run it on a terminal, or name what you reviewed: `{instead} --digest sha256:…`"
        )));
    }
    if typed? {
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
    let (have, needed) = (decided.have, decided.needed);
    let approves = decided.action == Action::Approve;
    let of = if approves && needed > 1 {
        format!(" ({have} of {needed})")
    } else {
        String::new()
    };
    context.printer.line(format!(
        "{word:<10} version {} ({}) by {}{of}",
        decided.version,
        decided.manifest.short(),
        decided.by
    ));
    if !decided.contradicting.is_empty() {
        contradiction(context, decided);
        return;
    }
    let next = if decided.patch_waits {
        let command = format!("hangar review {id} --patch");
        let command = paint(Label::Command, command);
        format!("{command} (its patch changes guarded paths and waits for an approver)")
    } else if approves && have < needed {
        let command = format!("hangar review {id} && hangar approve {id}");
        format!("another approver: {}", paint(Label::Command, command))
    } else if decided.over {
        let command = format!("hangar run {id}; hangar task retry {id}");
        let command = paint(Label::Command, command);
        format!(
            "{command} (too many versions were rejected: the first ends the task, the second queues it for new ones)"
        )
    } else if approves && decided.by_hand {
        let submit = paint(Label::Command, format!("hangar submit {id} --rev REV"));
        let run = paint(Label::Command, format!("hangar run {id}"));
        format!("{submit} (no agent program here implements it; where one does: {run})")
    } else {
        paint(Label::Command, format!("hangar run {id}"))
    };
    context.printer.line(format!("next       {next}"));
}

/// Says that others decided the opposite, and who gets the task out of it.
fn contradiction(context: &Context, decided: &Decided) {
    for one in &decided.contradicting {
        context
            .printer
            .line(format!("opposed    {}", contradicting(one)));
    }
    let id = decided.id.short();
    let command = format!("hangar adjudicate {id} DIGEST --reason TEXT");
    let command = paint(Label::Command, command);
    context.printer.line(format!(
        "next       an approver says which stands: {command}"
    ));
}
