//! `hangar policy remove`

use super::{told, why};
use crate::app::policy::take::{self, Removal};
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;

/// Take a person, a key or a machine out
///
/// What a retired key signed so far stays valid for ever; what it signs later does not count,
/// whatever date or policy version it names. Of a compromised key only the course of the tasks
/// stays: approvals, sealed versions, runs and grades that it signed do not count until somebody
/// adopts them (`hangar policy adopt`), and `hangar verify` names them.
///
/// With --compromised, whoever was taken out as retired before is found to be compromised now.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("how").required(true))]
pub struct RemoveArgs {
    /// A person with their machines, or a machine
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Only this key of the person
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// It is not used any more
    #[arg(long, group = "how")]
    pub retired: bool,
    /// Somebody else may have used it
    #[arg(long, group = "how")]
    pub compromised: bool,
}

pub(super) fn run(context: &Context, args: RemoveArgs) -> Result<ExitStatus, CliError> {
    let removal = Removal {
        name: args.name,
        key: args.key,
        how: why(args.compromised),
    };
    let ask = &mut context.passphrase();
    let changed = take::remove(&context.here(), &removal, ask)?;
    Ok(told::tell(context, &changed))
}
