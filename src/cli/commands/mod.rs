//! One file per command. This one only lists and dispatches them.

pub mod completions;
pub mod config;
pub mod deinit;
pub mod harness;
pub mod init;
pub mod key;
pub mod man;
pub mod policy;
pub(super) mod schemas;
pub mod task;

use super::context::Context;
use super::error::CliError;
use super::exit::ExitStatus;
use clap::Subcommand;

/// Every command.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "each is documented on its arguments")]
pub enum Command {
    Init(init::InitArgs),
    Deinit(deinit::DeinitArgs),
    Task(task::TaskArgs),
    Policy(policy::PolicyArgs),
    Key(key::KeyArgs),
    Config(config::ConfigArgs),
    Harness(harness::HarnessArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs one command.
pub(super) fn run(context: &Context, command: Command) -> Result<ExitStatus, CliError> {
    match command {
        Command::Init(args) => init::run(context, &args),
        Command::Deinit(args) => deinit::run(context, &args),
        Command::Task(args) => task::run(context, args),
        Command::Policy(args) => policy::run(context, &args),
        Command::Key(args) => key::run(context, args),
        Command::Config(args) => config::run(context, args),
        Command::Harness(args) => harness::run(context, args),
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => man::run(context, &args),
    }
}
