//! `hangar review`

use crate::cli::args::MaybeTaskArg;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar review
  hangar review KAN-80 --tests
  hangar review KAN-80 --file tests/test_sub.py
  hangar review KAN-80 --diff 1";

/// Read the hidden tests of a version before you decide about them
///
/// Prints the approval card: criteria with the tests that show them and those that nothing shows,
/// how the tests ended on the untouched base, guards and skips, findings about weak tests, who wrote
/// them, the grading plan, and what changed since the version before. Decrypts in memory only; the
/// pager is fed through a pipe.
///
/// What was shown last is what `hangar approve` and `hangar reject` are about.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReviewArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// Print every test file after the card
    #[arg(long)]
    pub tests: bool,
    /// Print one test file. May be given again and again
    #[arg(long, value_name = "PATH")]
    pub file: Vec<String>,
    /// Print the difference to version N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub diff: Option<u32>,
    /// Print the writer's transcript
    #[arg(long)]
    pub transcript: bool,
    /// Another version than the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub version: Option<u32>,
}
