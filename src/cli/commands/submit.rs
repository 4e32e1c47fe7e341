//! `hangar submit`

use super::run::tell;
use crate::app::acceptance::run;
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar submit KAN-80
  hangar submit KAN-80 --rev my-branch";

/// Hand in a person's own patch as the implementation
///
/// The patch is the difference between the revision and its merge base with the task's base. You
/// sign it; it is graded like an agent's, with a secrecy of at most `policy`, because you could
/// have read the tests. After an interruption the same command goes on with what is recorded.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SubmitArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Revision that holds the patch
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub rev: String,
}

pub(super) fn run(context: &Context, args: &SubmitArgs) -> Result<ExitStatus, CliError> {
    let view = watched(context, "starting", |watch| {
        let ask = &mut context.passphrase();
        Ok(run::submit(
            &context.here(),
            &args.task.task,
            &args.rev,
            ask,
            watch,
        )?)
    })?;
    Ok(tell(context, &view))
}
