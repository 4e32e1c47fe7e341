//! The command line: words, exit codes, and what people and scripts are shown.
//!
//! Owns arguments, help, rendering and errors at the edge. What is done lives in `app`, which
//! returns data and prints nothing. Reference: `docs/reference/cli.md`, written from this folder.

pub mod args;
pub mod commands;
pub mod context;
pub mod error;
mod error_from;
pub mod exit;
mod hidden;
mod watch;
mod words;

pub use error::CliError;
pub use exit::ExitStatus;

use crate::base::clock::Clock;
use crate::base::redact::holds_secret_key;
use crate::ui::{Printer, Settings};
use anstream::ColorChoice;
use args::Cli;
use clap::{CommandFactory as _, FromArgMatches as _};
use context::Context;
use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::panic::PanicHookInfo;
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = hidden::run(&args) {
        return code;
    }
    std::panic::set_hook(Box::new(tell_bug));
    // Unwinding has run every destructor by then: locks are free, sandboxes are dead.
    std::panic::catch_unwind(|| run(&args)).unwrap_or(ExitStatus::Trouble.into())
}

/// A panic is a fault of hangar. Its message stays out: it may quote what must not be shown.
fn tell_bug(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string);
    let place = place.unwrap_or_else(|| "an unknown place".into());
    let version = env!("CARGO_PKG_VERSION");
    let error = CliError::new(
        ExitStatus::Trouble,
        format!("hangar {version} has a fault at {place}"),
    );
    let hint = "what was recorded is whole; please report this with the command that you typed";
    error.hint(hint).show(&Printer::default());
}

fn run(args: &[OsString]) -> ExitCode {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, args),
    };
    let context = Context::new(&cli.global);
    let clock = Clock::check().map_err(|error| CliError::of(ExitStatus::Usage, error));
    let status = match clock.and_then(|()| commands::run(&context, cli.command)) {
        Ok(status) => status,
        Err(error) => error.show(&context.printer),
    };
    match context.printer.finish() {
        Ok(()) => status.into(),
        Err(error) => CliError::output(error).show(&context.printer).into(),
    }
}

/// The whole command with its help texts, for completions, manual pages and the reference.
pub fn command() -> clap::Command {
    Cli::command()
}

fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// Help, version, or a mistake in the arguments.
fn usage(error: &clap::Error, args: &[OsString]) -> ExitCode {
    let words = args.iter().skip(1).take_while(|word| *word != "--");
    let json = words.clone().any(|word| word == "--json");
    let is_answer = !error.use_stderr();
    let printer = Printer::new(Settings {
        json,
        color: ColorChoice::Never,
        ..Settings::default()
    });
    // The message quotes what was typed.
    if args
        .iter()
        .any(|word| holds_secret_key(&word.to_string_lossy()))
    {
        let error =
            CliError::usage("what was typed holds a secret key, and can't be read as a command");
        return error
            .hint("name a file, or the public half of the key")
            .show(&printer)
            .into();
    }
    if json && !is_answer {
        return CliError::usage(first_line(error)).show(&printer).into();
    }
    if is_answer {
        return match error.print().and_then(|()| std::io::stdout().flush()) {
            // A closed pipe is no failure here.
            Err(trouble) if trouble.kind() != ErrorKind::BrokenPipe => {
                CliError::output(trouble).show(&printer).into()
            }
            _ => ExitStatus::Done.into(),
        };
    }
    Printer::default().message(&error.render().ansi().to_string());
    ExitStatus::Usage.into()
}

/// What was wrong, without clap's usage and tips.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}
