//! `hangar completions`

use crate::cli::{ExitStatus, context::Context};
use clap::Args;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  hangar completions bash > ~/.local/share/bash-completion/completions/hangar
  hangar completions zsh > ~/.zfunc/_hangar
  hangar completions fish > ~/.config/fish/completions/hangar.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

pub(super) fn run(context: &Context, args: &CompletionsArgs) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::cli::command(),
        "hangar",
        &mut script,
    );
    context.printer.data(&String::from_utf8_lossy(&script));
    ExitStatus::Done
}
