//! The top of the command line: global options and the list of commands.

use super::commands::Command;
use clap::{ArgAction, Args, Parser, ValueEnum};
use std::path::PathBuf;

const LONG_ABOUT: &str = "\
Acceptance that a stranger can check.

Coding agents write patches. hangar makes their acceptance checkable: hidden tests are written from \
the criteria of a task, sealed on a Git ref, approved by a person, and run in a fresh sandbox on \
base + patch. The signed grade says how far it can be trusted. Everything is kept in your own \
repository under refs/hangar/.";

const AFTER_HELP: &str = "\
Begin with `hangar init` in a Git repository, and see `hangar doctor` for what works on this machine.

Exit codes:
  0    done, or the answer is yes
  1    the answer is no (not accepted, void, a check found something)
  2    wrong usage
  3    something needed is missing (sandbox, key, harness, dependency,
       grader identity)
  4    refused (policy, signature, role, state)
  5    lost a race, or held elsewhere
  6    waiting for a person
  7    trouble outside (network, disk, agent program, provider limit);
       running it again is safe
  130  interrupted";

/// Acceptance that a stranger can check
#[derive(Debug, Parser)]
#[command(
    name = "hangar",
    bin_name = "hangar",
    version,
    long_about = LONG_ABOUT,
    after_help = AFTER_HELP,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = false,
    max_term_width = 100,
    styles = crate::ui::help_styles(),
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in a pipe
    Always,
    /// Nowhere
    Never,
}

/// Options of every command, before or after its name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct GlobalArgs {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub dir: Option<PathBuf>,
    /// Print one JSON document on stdout (errors as JSON on stderr)
    #[arg(long, global = true)]
    pub json: bool,
    /// No notices
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// When to use colour
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        global = true
    )]
    pub color: Color,
    /// Answer every yes-or-no question with yes
    #[arg(long, global = true)]
    pub yes: bool,
    /// Show no progress
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Neither fetch from nor push to the remote
    #[arg(long, global = true)]
    pub offline: bool,
}

/// The task that a command is about.
#[derive(Debug, Clone, Args)]
pub struct TaskArg {
    /// Task: its id, the beginning of its id, or its external key (KAN-80)
    #[arg(value_name = "TASK")]
    pub task: String,
}

/// The task that a command is about, where it may be left out when only one can be meant.
#[derive(Debug, Clone, Args)]
pub struct MaybeTaskArg {
    /// Task: its id, the beginning of its id, or its external key (KAN-80) [default: the only one
    /// that can be meant]
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
}
