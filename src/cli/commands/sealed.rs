//! `hangar sealed`

use crate::cli::args::TaskArg;
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
