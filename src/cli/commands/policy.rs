//! `hangar policy`

mod add;
mod adopt;
mod edit;
mod log;
mod remove;
mod resolve;
mod rotate;
mod show;
mod sign;
mod told;

use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::policy::Role;
use crate::model::reduction::Why;
use clap::{Args, Subcommand};

pub use add::AddArgs;
pub use adopt::AdoptArgs;
pub use edit::EditArgs;
pub use log::LogArgs;
pub use remove::RemoveArgs;
pub use resolve::ResolveArgs;
pub use rotate::RotateArgs;
pub use show::ShowArgs;
pub use sign::SignArgs;
pub(super) use told::rivals_text;

/// Show who decides here and what suffices, and change it
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// `hangar policy …`
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "each is documented on its arguments")]
pub enum PolicyCommand {
    Show(ShowArgs),
    Log(LogArgs),
    Add(AddArgs),
    Edit(EditArgs),
    Remove(RemoveArgs),
    Rotate(RotateArgs),
    Adopt(AdoptArgs),
    Sign(SignArgs),
    Resolve(ResolveArgs),
}

pub(super) fn run(context: &Context, args: PolicyArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        PolicyCommand::Show(args) => show::run(context, &args),
        PolicyCommand::Log(args) => log::run(context, &args),
        PolicyCommand::Add(args) => add::run(context, args),
        PolicyCommand::Edit(args) => edit::run(context, args),
        PolicyCommand::Remove(args) => remove::run(context, args),
        PolicyCommand::Rotate(args) => rotate::run(context, &args),
        PolicyCommand::Adopt(args) => adopt::run(context, &args),
        PolicyCommand::Sign(args) => sign::run(context, &args),
        PolicyCommand::Resolve(args) => resolve::run(context, &args),
    }
}

fn role(text: &str) -> Result<Role, String> {
    match text {
        "member" => Ok(Role::Member),
        "approver" => Ok(Role::Approver),
        "admin" => Ok(Role::Admin),
        _ => Err("use member, approver or admin".into()),
    }
}

const fn why(compromised: bool) -> Why {
    if compromised {
        Why::Compromised
    } else {
        Why::Retired
    }
}
