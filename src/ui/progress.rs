//! Progress of long steps: elapsed time, stage and a short text, on stderr.

use super::escape;
use super::printer::Printer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal as _};
use std::time::Duration;

/// A line that lives while a long step runs. On anything but a terminal it shows nothing.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Begins with this text.
    pub fn start(printer: &Printer, text: &str) -> Self {
        let settings = printer.settings();
        let shown = settings.progress
            && !settings.quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let bar = if shown {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8))
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_message(escape::line(text).into_owned());
        if shown {
            bar.enable_steady_tick(Duration::from_millis(125));
            printer.set_line(&bar);
        }
        Self { bar }
    }

    /// Says what is done now.
    pub fn stage(&self, text: &str) {
        self.bar.set_message(escape::line(text).into_owned());
    }

    /// Runs `write` with the line out of the way, for notices in between.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Ends it and clears the line.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
