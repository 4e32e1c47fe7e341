//! `hangar task`

mod act;
mod archive;
mod edit;
mod input;
mod list;
mod log;
mod new;
mod show;

use crate::cli::{CliError, ExitStatus, context::Context};
use clap::{Args, Subcommand};

/// Create, list, show and change tasks
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TaskCommand,
}

/// `hangar task …`
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "each is documented on its arguments")]
pub enum TaskCommand {
    New(new::NewArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Edit(edit::EditArgs),
    Enqueue(act::EnqueueArgs),
    Cancel(act::CancelArgs),
    Retry(act::RetryArgs),
    Delete(act::DeleteArgs),
    Comment(act::CommentArgs),
    Archive(archive::ArchiveArgs),
}

pub use act::{CancelArgs, CommentArgs, DeleteArgs, EnqueueArgs, RetryArgs};
pub use archive::ArchiveArgs;
pub use edit::EditArgs;
pub use list::ListArgs;
pub use log::LogArgs;
pub use new::NewArgs;
pub use show::ShowArgs;

pub(super) fn run(context: &Context, args: TaskArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        TaskCommand::New(args) => new::run(context, args),
        TaskCommand::List(args) => list::run(context, args),
        TaskCommand::Show(args) => show::run(context, &args),
        TaskCommand::Log(args) => log::run(context, &args),
        TaskCommand::Edit(args) => edit::run(context, args),
        TaskCommand::Enqueue(args) => act::enqueue(context, &args),
        TaskCommand::Cancel(args) => act::cancel(context, &args),
        TaskCommand::Retry(args) => act::retry(context, &args),
        TaskCommand::Delete(args) => act::delete(context, &args),
        TaskCommand::Comment(args) => act::comment(context, &args),
        TaskCommand::Archive(args) => archive::run(context, &args),
    }
}
