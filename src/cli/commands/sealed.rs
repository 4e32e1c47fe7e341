//! `hangar sealed`

use crate::app::acceptance::sealed::{self, SealedRow};
use crate::base::words::count;
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::ids::Principal;
use crate::ui::{Label, Table, escape, paint};
use clap::{Args, Subcommand};

/// List sealed versions, add recipients, publish tests after delivery
///
/// Shows manifests only, never a test: `hangar review` decrypts.
#[derive(Debug, Args)]
pub struct SealedArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SealedCommand,
}

/// `hangar sealed …`
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "each is documented on its arguments")]
pub enum SealedCommand {
    List(SealedListArgs),
    Show(SealedShowArgs),
    Reseal(ResealArgs),
    Publish(PublishArgs),
}

/// List the sealed versions of a task
#[derive(Debug, Args)]
pub struct SealedListArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

/// Show the manifest of a sealed version
#[derive(Debug, Args)]
pub struct SealedShowArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Which version [default: the newest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub version: Option<u32>,
}

/// Encrypt a sealed version to everyone who may read it now
///
/// A signed document names the manifest and the new ciphertext; the sealed version itself does not
/// change, and approvals stay valid.
#[derive(Debug, Args)]
pub struct ResealArgs {
    /// Task: its id, the beginning of its id, or its external key
    #[arg(
        value_name = "TASK",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub task: Option<String>,
    /// Every task whose recipients are not the present ones
    #[arg(long)]
    pub all: bool,
}

/// Land the hidden tests in the open after delivery
///
/// One commit on the delivered branch, canary removed, with trailers that hooks and `hangar verify`
/// accept. Needs an approver.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Branch to commit on [default: the delivered one]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
}

pub(super) fn run(context: &Context, args: &SealedArgs) -> Result<ExitStatus, CliError> {
    match &args.command {
        SealedCommand::List(args) => list(context, args),
        SealedCommand::Show(args) => show(context, args),
        SealedCommand::Reseal(args) => reseal(context, args),
        SealedCommand::Publish(args) => publish(context, args),
    }
    .map(|()| ExitStatus::Done)
}

fn list(context: &Context, args: &SealedListArgs) -> Result<(), CliError> {
    let list = sealed::list(&context.here(), &args.task.task)?;
    if context.printer.is_json() {
        context.printer.json(&list);
        return Ok(());
    }
    let mut table = Table::new(&[
        "VERSION",
        "MANIFEST",
        "TESTS",
        "FAILS",
        "GUARDS",
        "UNCOVERED",
        "STATE",
    ]);
    for row in &list.versions {
        let state = state(row);
        let number = |count: u32| count.to_string();
        table.row([
            (&number(row.version), None),
            (&row.manifest.short(), Some(Label::Id)),
            (&number(row.counts.tests), None),
            (&number(row.counts.fails), None),
            (&number(row.counts.guards), None),
            (&number(row.counts.uncovered), None),
            (&state, None),
        ]);
    }
    context.printer.table(&table);
    Ok(())
}

/// What became of a version.
fn state(row: &SealedRow) -> String {
    let names = |names: &[Principal]| {
        let names: Vec<_> = names.iter().map(Principal::as_str).collect();
        names.join(", ")
    };
    let valid = |name: &&Principal| !row.expired.contains(name);
    let approved: Vec<Principal> = row.approved_by.iter().filter(valid).cloned().collect();
    let decided = if row.aside {
        return "set aside".to_owned();
    } else if !row.rejected_by.is_empty() {
        return format!("rejected by {}", names(&row.rejected_by));
    } else if !approved.is_empty() {
        format!("approved by {}", names(&approved))
    } else if row.superseded_by.is_some() {
        String::new()
    } else if row.stale {
        "stale: the task's text was edited".to_owned()
    } else if !row.expired.is_empty() {
        format!("the approval by {} has expired", names(&row.expired))
    } else {
        "waits for an approval".to_owned()
    };
    match row.superseded_by {
        None => decided,
        Some(newer) if decided.is_empty() => format!("superseded by v{newer}"),
        Some(newer) => format!("{decided}, superseded by v{newer}"),
    }
}

fn show(context: &Context, args: &SealedShowArgs) -> Result<(), CliError> {
    let shown = sealed::show(&context.here(), &args.task.task, args.version)?;
    if context.printer.is_json() {
        context.printer.json(&shown);
        return Ok(());
    }
    context
        .printer
        .line(format!("manifest {}", paint(Label::Id, shown.digest)));
    context
        .printer
        .line(format!("state    {}", state(&shown.standing)));
    let bytes = crate::model::codec::encode(&shown.manifest).map_err(crate::app::Error::from)?;
    context
        .printer
        .data(&escape::block(&String::from_utf8_lossy(&bytes)));
    Ok(())
}

fn reseal(context: &Context, args: &ResealArgs) -> Result<(), CliError> {
    let done = watched(context, "resealing", |watch| {
        Ok(sealed::reseal(
            &context.here(),
            args.task.as_deref(),
            watch,
        )?)
    })?;
    if context.printer.is_json() {
        context.printer.json(&done);
        return Ok(());
    }
    for id in &done.resealed {
        context.printer.line(format!("resealed   {}", id.short()));
    }
    context.printer.notice(format!(
        "{} unchanged",
        count(done.unchanged, "task", "tasks")
    ));
    Ok(())
}

fn publish(context: &Context, args: &PublishArgs) -> Result<(), CliError> {
    crate::cli::watch::protect();
    let ask = &mut context.passphrase();
    let done = sealed::publish(
        &context.here(),
        &args.task.task,
        args.branch.as_deref(),
        ask,
    )?;
    if context.printer.is_json() {
        context.printer.json(&done);
        return Ok(());
    }
    context.printer.line(format!(
        "published  {} on {} ({})",
        count(done.files, "file", "files"),
        escape::line(&done.branch),
        done.commit.short()
    ));
    Ok(())
}
