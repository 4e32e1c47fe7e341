//! `hangar adjudicate`

use crate::app::acceptance::adjudicate;
use crate::cli::args::TaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Say which of contradictory documents stands
///
/// Two decisions about one manifest, two grades of one patch, or two versions that follow the same
/// one stop a task until a decider names the one that stands. The others fall; they stay in the
/// history. A rejection or a grade that comes after a delivery and speaks against it waits for the same
/// word. A later word about the same documents takes an earlier one back.
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

pub(super) fn run(context: &Context, args: &AdjudicateArgs) -> Result<ExitStatus, CliError> {
    let ask = &mut context.passphrase();
    let (task, digest) = (&args.task.task, &args.digest);
    let done = adjudicate::adjudicate(&context.here(), task, digest, &args.reason, ask)?;
    if context.printer.is_json() {
        context.printer.json(&done);
    } else {
        context
            .printer
            .line(format!("{} stands", done.stands.short()));
    }
    Ok(ExitStatus::Done)
}
