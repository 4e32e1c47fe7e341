//! `hangar deliver`

use crate::cli::args::TaskArg;
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
