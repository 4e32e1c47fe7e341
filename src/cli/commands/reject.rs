//! `hangar reject`

use super::approve::tell;
use crate::app::acceptance::decide;
use crate::cli::args::MaybeTaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::approval::Action;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar reject KAN-80 --reason \"c2 is only tested with positive numbers\"";

/// Sign that the hidden tests shown last are not the acceptance of a task
///
/// A fresh writer gets the version and the reason, and writes the next one; after too many rejected
/// versions the task is rejected. Before delivery it also withdraws an approval.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RejectArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// What is wrong with them. It is public: never quote a test
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The manifest's digest, for use without a terminal; it must have been reviewed here
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
}

pub(super) fn run(context: &Context, args: &RejectArgs) -> Result<ExitStatus, CliError> {
    if args.reason.trim().is_empty() {
        let error = CliError::new(ExitStatus::Usage, "a rejection needs a reason");
        return Err(error.hint("say with --reason what is wrong with the tests"));
    }
    crate::cli::watch::protect();
    let here = context.here();
    let pending = decide::pending(&here, args.task.task.as_deref(), args.digest.as_deref())?;
    let before = decide::decided_already(&here, &pending, Action::Reject, &args.reason)?;
    if let Some(before) = before {
        tell(context, &before, "rejected already");
        return Ok(ExitStatus::Done);
    }
    let ask = &mut context.passphrase();
    let decided = decide::decide(&here, &pending, Action::Reject, &args.reason, ask)?;
    tell(context, &decided, "rejected");
    Ok(ExitStatus::Done)
}
