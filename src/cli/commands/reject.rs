//! `hangar reject`

use crate::cli::args::MaybeTaskArg;
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
