//! What every command gets: where it runs, how it prints and asks.

use super::args::{Color, GlobalArgs};
use crate::ui::{Printer, Prompts, Settings};
use anstream::ColorChoice;
use std::path::PathBuf;

/// The surroundings of one command.
#[derive(Debug)]
pub struct Context {
    /// Prints.
    pub printer: Printer,
    /// The folder that the command is about.
    pub dir: PathBuf,
    /// Answer questions with yes.
    pub yes: bool,
    /// Leave the remote alone.
    pub offline: bool,
}

impl Context {
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let printer = Printer::new(Settings {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            color: match global.color {
                Color::Auto => ColorChoice::Auto,
                Color::Always => ColorChoice::Always,
                Color::Never => ColorChoice::Never,
            },
            progress: !global.no_progress,
        });
        Self {
            printer,
            dir: global.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            yes: global.yes,
            offline: global.offline,
        }
    }

    /// Asks the person.
    pub const fn prompts(&self) -> Prompts<'_> {
        Prompts::new(&self.printer, self.yes)
    }
}
