//! `hangar verify`

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  hangar verify KAN-80
  hangar verify main
  hangar verify --all --json

Exit codes: 0 everything holds, 1 a fault was found; each is named.";

/// Would a stranger accept this?
///
/// Walks every link: policy chain, signatures, authority, approval to manifest to payload, run to
/// patch to grade to delivered commit, canary. Gives two answers: valid under the policy in force at
/// delivery, and acceptable under the newest.
///
/// A task is verified by its recorded result, also when its branch has moved on (that is said). A
/// revision is compared with what was delivered: `exact` (the same tree), `rebased` (the same patch),
/// or no.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// A task (id, beginning of its id, external key) or a revision [default: HEAD]
    #[arg(value_name = "TASK or REV", conflicts_with = "all")]
    pub subject: Option<String>,
    /// Every task
    #[arg(long)]
    pub all: bool,
    /// Print the evidence as a statement for other tools
    #[arg(long, value_name = "FORMAT")]
    pub export: Option<Export>,
}

/// Formats of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// An in-toto statement (test-result predicate)
    InToto,
}
