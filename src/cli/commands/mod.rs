//! One file per command. This one only lists and dispatches them.

pub mod completions;
pub mod man;
pub(super) mod schemas;

use super::context::Context;
use super::error::CliError;
use super::exit::ExitStatus;
use clap::Subcommand;

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(man::ManArgs),
}

/// Runs one command.
pub(super) fn run(context: &Context, command: Command) -> Result<ExitStatus, CliError> {
    match command {
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => man::run(context, &args),
    }
}
