//! `hangar policy adopt`

use super::told;
use crate::app::policy::take;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Let documents of a compromised key count again
///
/// The same for documents that name a version of the policy which was set aside for a rival.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// Digests of the documents, as `hangar verify` names them
    #[arg(value_name = "DIGEST", required = true)]
    pub digest: Vec<String>,
}

pub(super) fn run(context: &Context, args: &AdoptArgs) -> Result<ExitStatus, CliError> {
    let ask = &mut context.passphrase();
    let changed = take::adopt(&context.here(), &args.digest, ask)?;
    Ok(told::tell(context, &changed))
}
