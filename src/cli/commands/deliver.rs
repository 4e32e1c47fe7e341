//! `hangar deliver`

use super::run::tell;
use crate::app::acceptance::run;
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Put an accepted result on its branch
///
/// Checks approval, run and grade once more from the refs, then writes the branch with trailers that
/// `hangar verify` can check. `hangar run` does the same at its end.
#[derive(Debug, Args)]
pub struct DeliverArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

pub(super) fn run(context: &Context, args: &DeliverArgs) -> Result<ExitStatus, CliError> {
    let view = watched(context, "delivering", |watch| {
        Ok(run::deliver(&context.here(), &args.task.task, watch)?)
    })?;
    Ok(tell(context, &view))
}
