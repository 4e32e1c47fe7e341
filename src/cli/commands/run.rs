//! `hangar run`

use crate::cli::args::TaskArg;
use crate::cli::words;
use crate::model::task::Stage;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar run KAN-80
  hangar run KAN-80 --until awaiting-approval

Exit codes: 0 delivered (or the stage of --until is reached), 1 ended without an accepted result, \
5 held by another worker, 6 waiting for a person (the command they type is printed).";

/// Drive a task to the next point where a person is needed, or to its end
///
/// Enqueues a draft that you may enqueue, claims it, and goes through the stages: hidden tests are
/// written, checked on the untouched base and sealed; after a person's approval the implementer
/// works, the approved tests are run on base + patch in a fresh sandbox, and what is accepted goes
/// to a branch. A plain task is implemented and delivered ungraded.
///
/// Safe to run again after any interruption: it goes on from what is recorded on the refs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Stop before the first step after this stage
    #[arg(long, value_name = "STAGE", value_parser = words::stage())]
    pub until: Option<Stage>,
}
