//! `hangar task enqueue`, `cancel`, `retry`, `delete`, `comment`: one signed event each.

use crate::app::tasks::act::{self, Acted};
use crate::cli::args::TaskArg;
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::model::task::Stage;
use clap::Args;
use std::path::{Path, PathBuf};

/// Put a draft into the queue
#[derive(Debug, Args)]
pub struct EnqueueArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

pub(super) fn enqueue(context: &Context, args: &EnqueueArgs) -> Result<ExitStatus, CliError> {
    let acted = act::enqueue(&context.here(), &args.task.task, &mut context.passphrase())?;
    tell(context, &acted, "is queued");
    Ok(ExitStatus::Done)
}

/// Stop a task; it ends as failed
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Why
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
}

pub(super) fn cancel(context: &Context, args: &CancelArgs) -> Result<ExitStatus, CliError> {
    let acted = act::cancel(
        &context.here(),
        &args.task.task,
        &args.reason,
        &mut context.passphrase(),
    )?;
    tell(context, &acted, "is cancelled");
    Ok(ExitStatus::Done)
}

/// Queue a failed or rejected task again
///
/// What was finished is kept. With --from, everything that was made at that stage or after it no
/// longer counts; it stays in the history.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Stage to go on from [default: where the task ended]
    #[arg(long, value_name = "STAGE", value_parser = words::stage())]
    pub from: Option<Stage>,
}

pub(super) fn retry(context: &Context, args: &RetryArgs) -> Result<ExitStatus, CliError> {
    let acted = act::retry(
        &context.here(),
        &args.task.task,
        args.from,
        &mut context.passphrase(),
    )?;
    let stage = acted
        .stage
        .map_or(String::new(), |stage| format!(", from {stage}"));
    tell(context, &acted, &format!("is queued again{stage}"));
    Ok(ExitStatus::Done)
}

/// Delete a draft
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

pub(super) fn delete(context: &Context, args: &DeleteArgs) -> Result<ExitStatus, CliError> {
    let acted = act::delete(&context.here(), &args.task.task, &mut context.passphrase())?;
    tell(context, &acted, "is deleted");
    Ok(ExitStatus::Done)
}

/// Write a comment
///
/// Comments are as public as the repository: never put a hidden test into one.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Markdown; without it, standard input or the file of -F is read
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    pub text: Option<String>,
    /// File with the text (`-` is standard input)
    #[arg(short = 'F', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

pub(super) fn comment(context: &Context, args: &CommentArgs) -> Result<ExitStatus, CliError> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => context.read_text(file)?,
        (None, None) => context.read_text(Path::new("-"))?,
    };
    let acted = act::comment(
        &context.here(),
        &args.task.task,
        &text,
        &mut context.passphrase(),
    )?;
    tell(context, &acted, "has a new comment");
    Ok(ExitStatus::Done)
}

fn tell(context: &Context, acted: &Acted, what: &str) {
    if context.printer.is_json() {
        context.printer.json(acted);
    } else {
        context
            .printer
            .notice(format!("{} {what}", acted.id.short()));
    }
}
