//! `hangar approve`

use crate::cli::args::MaybeTaskArg;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar approve KAN-80
  hangar approve KAN-80 --digest sha256:3f9a…   (without a terminal)";

/// Sign that the hidden tests shown last are the acceptance of a task
///
/// Binds the manifest that this person was shown last with `hangar review`: a newer version in
/// between is exit 4. On a terminal it asks for the first six characters of the manifest's digest.
/// Refused in the environment of an agent program, and for every agent, worker and grader key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApproveArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// The manifest's digest, for use without a terminal; it must have been reviewed here
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
}
