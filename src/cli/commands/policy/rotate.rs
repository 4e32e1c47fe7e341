//! `hangar policy rotate`

use super::{told, why};
use crate::app::policy::take;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Put another key of yours in place of the one that you sign with
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// The new public key
    #[arg(long, value_name = "KEY")]
    pub to: String,
    /// An age recipient, where the new key can't decrypt
    #[arg(long, value_name = "RECIPIENT")]
    pub recipient: Option<String>,
    /// Somebody else may have used the old key
    #[arg(long)]
    pub compromised: bool,
}

pub(super) fn run(context: &Context, args: &RotateArgs) -> Result<ExitStatus, CliError> {
    let how = why(args.compromised);
    let recipient = args.recipient.as_deref();
    let ask = &mut context.passphrase();
    let changed = take::rotate(&context.here(), &args.to, recipient, how, ask)?;
    Ok(told::tell(context, &changed))
}
