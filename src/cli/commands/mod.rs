//! One file per command. This one only lists and dispatches them.

pub mod adjudicate;
pub mod approve;
pub mod completions;
pub mod config;
pub mod deinit;
pub mod deliver;
pub mod demo;
pub mod doctor;
pub mod grade;
pub mod harness;
pub mod hook;
pub mod inbox;
pub mod init;
pub mod key;
pub mod man;
pub mod policy;
pub mod reject;
pub mod review;
pub mod run;
pub(super) mod schemas;
pub mod seal;
pub mod sealed;
pub mod submit;
pub mod sync;
pub mod task;
pub mod verify;

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
    Doctor(doctor::DoctorArgs),
    Task(task::TaskArgs),
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Seal(seal::SealArgs),
    Sealed(sealed::SealedArgs),
    Inbox(inbox::InboxArgs),
    Review(review::ReviewArgs),
    Approve(approve::ApproveArgs),
    Reject(reject::RejectArgs),
    Submit(submit::SubmitArgs),
    Adjudicate(adjudicate::AdjudicateArgs),
    Grade(grade::GradeArgs),
    Deliver(deliver::DeliverArgs),
    Verify(verify::VerifyArgs),
    Sync(sync::SyncArgs),
    Policy(policy::PolicyArgs),
    Key(key::KeyArgs),
    Config(config::ConfigArgs),
    Harness(harness::HarnessArgs),
    Hook(hook::HookArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs one command.
pub(super) fn run(context: &Context, command: Command) -> Result<ExitStatus, CliError> {
    match command {
        Command::Init(args) => init::run(context, &args),
        Command::Deinit(args) => deinit::run(context, &args),
        Command::Doctor(args) => Ok(doctor::run(context, &args)),
        Command::Task(args) => task::run(context, args),
        Command::Demo(args) => demo::run(context, &args),
        Command::Run(args) => run::run(context, &args),
        Command::Seal(args) => seal::run(context, &args),
        Command::Sealed(args) => sealed::run(context, &args),
        Command::Inbox(inbox::InboxArgs {}) => inbox::run(context),
        Command::Review(args) => review::run(context, &args),
        Command::Approve(args) => approve::run(context, &args),
        Command::Reject(args) => reject::run(context, &args),
        Command::Submit(args) => submit::run(context, &args),
        Command::Adjudicate(args) => adjudicate::run(context, &args),
        Command::Grade(args) => grade::run(context, &args),
        Command::Deliver(args) => deliver::run(context, &args),
        Command::Verify(args) => verify::run(context, &args),
        Command::Sync(args) => sync::run(context, &args),
        Command::Policy(args) => policy::run(context, args),
        Command::Key(args) => key::run(context, args),
        Command::Config(args) => config::run(context, args),
        Command::Harness(args) => harness::run(context, args),
        Command::Hook(args) => hook::run(context, &args),
        Command::Completions(args) => Ok(completions::run(context, &args)),
        Command::Man(args) => man::run(context, &args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    fn check<T: Args>(name: &'static str) {
        let command = clap::Command::new(name);
        T::augment_args(command).debug_assert();
    }

    #[test]
    fn arguments_of_the_acceptance_commands_are_well_formed() {
        check::<adjudicate::AdjudicateArgs>("adjudicate");
        check::<approve::ApproveArgs>("approve");
        check::<deliver::DeliverArgs>("deliver");
        check::<demo::DemoArgs>("demo");
        check::<grade::GradeArgs>("grade");
        check::<reject::RejectArgs>("reject");
        check::<review::ReviewArgs>("review");
        check::<run::RunArgs>("run");
        check::<seal::SealArgs>("seal");
        check::<sealed::SealedArgs>("sealed");
        check::<submit::SubmitArgs>("submit");
        check::<verify::VerifyArgs>("verify");
    }
}
