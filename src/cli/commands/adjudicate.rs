//! `hangar adjudicate`

use crate::cli::args::TaskArg;
use clap::Args;

/// Say which of contradictory documents stands
///
/// Two decisions about one manifest, two grades of one patch, or two versions that follow the same
/// one stop a task until a decider names the one that stands. The others fall; they stay in the
/// history.
#[derive(Debug, Args)]
pub struct AdjudicateArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Digest of the document that stands, or its beginning (`hangar task log` prints them)
    #[arg(value_name = "DIGEST")]
    pub digest: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}
