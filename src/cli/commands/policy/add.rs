//! `hangar policy add`

use super::{role, told};
use crate::app::policy::add::{self, Addition};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::policy::{MachineRole, Role};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar policy add bob --role approver --key 'ssh-ed25519 AAAA…'
  hangar policy add bob --worker 'ssh-ed25519 AAAA…'
  hangar policy add ci --grader 'ssh-ed25519 AAAA…' --owner alice
  hangar policy add alice --recovery --key 'ssh-ed25519 AAAA…'";

/// Add a person, a key, or a machine
///
/// `hangar init` in somebody's clone prints the line that adds them. Where more than one person
/// must sign, the version waits on its own ref: the others get it with `hangar sync` and sign it
/// with `hangar policy sign`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AddArgs {
    /// The person; for a machine alone, the machine
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What the person may do: member, approver or admin [default: member]
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Option<Role>,
    /// A public key of the person. May be given again and again
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// An age recipient of the person, where their key can't decrypt
    #[arg(long, value_name = "RECIPIENT")]
    pub recipient: Vec<String>,
    /// Key of a machine that runs agents
    #[arg(long, value_name = "KEY")]
    pub worker: Vec<String>,
    /// Key of a machine that grades
    #[arg(long, value_name = "KEY")]
    pub grader: Vec<String>,
    /// Key of an agent program
    #[arg(long, value_name = "KEY")]
    pub agent: Vec<String>,
    /// Who answers for a machine [default: the person, else you]
    #[arg(long, value_name = "PERSON")]
    pub owner: Option<String>,
    /// Make the keys root keys too
    #[arg(long)]
    pub root: bool,
    /// Make the keys recovery keys, kept away for the day the others are lost
    #[arg(long, conflicts_with_all = ["root", "role", "recipient"])]
    pub recovery: bool,
}

pub(super) fn run(context: &Context, args: AddArgs) -> Result<ExitStatus, CliError> {
    let ask = &mut context.passphrase();
    let changed = add::add(&context.here(), &addition(args), ask)?;
    Ok(told::tell(context, &changed))
}

fn addition(args: AddArgs) -> Addition {
    let of = |role, keys: Vec<String>| keys.into_iter().map(move |key| (role, key));
    let machines = of(MachineRole::Worker, args.worker)
        .chain(of(MachineRole::Grader, args.grader))
        .chain(of(MachineRole::Agent, args.agent))
        .collect();
    Addition {
        name: args.name,
        role: args.role,
        keys: args.key,
        recipients: args.recipient,
        machines,
        owner: args.owner,
        root: args.root,
        recovery: args.recovery,
    }
}
