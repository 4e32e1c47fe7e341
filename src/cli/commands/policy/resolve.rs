//! `hangar policy resolve`

use super::told;
use crate::app::policy::take;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Say which of rival versions of the policy stands
///
/// Two versions that follow the same one put the policy in doubt: `hangar policy show` names them,
/// and nobody signs anything until one of them stands. The next version keeps the one that is named
/// here and sets the others aside. It needs as many holders of root keys as each of them asks for.
///
/// Documents that name a version which was set aside have no effect, unless they are adopted
/// (`hangar policy adopt`).
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// Digest of the version that stands, or its beginning
    #[arg(value_name = "DIGEST")]
    pub digest: String,
}

pub(super) fn run(context: &Context, args: &ResolveArgs) -> Result<ExitStatus, CliError> {
    let ask = &mut context.passphrase();
    let changed = take::resolve(&context.here(), &args.digest, ask)?;
    Ok(told::tell(context, &changed))
}
