//! The one printer: data goes to stdout, notices to stderr.

use super::pager;
use super::style::{Label, paint};
use super::table::Table;
use super::wrap::wrap;
use anstream::{AutoStream, ColorChoice};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Mutex;

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// One JSON document instead of text.
    pub json: bool,
    /// No notices.
    pub quiet: bool,
    /// How many times `-v` was given.
    pub verbose: u8,
    /// Colour.
    pub color: ColorChoice,
    /// Whether progress may be shown on a terminal.
    pub progress: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            json: false,
            quiet: false,
            verbose: 0,
            color: ColorChoice::Auto,
            progress: true,
        }
    }
}

#[derive(Debug, Default)]
enum Sink {
    #[default]
    Open,
    /// The reader went away; the rest is dropped without a word.
    Closed,
    Failed(io::Error),
}

/// Owns stdout and stderr.
///
/// Writing never fails at the call: a reader that went away (`hangar task list | head`) ends the
/// output quietly, any other trouble is kept and told by [`Printer::finish`].
#[derive(Debug, Default)]
pub struct Printer {
    settings: Settings,
    sink: Mutex<Sink>,
    /// The progress line that was begun last.
    line: Mutex<Option<ProgressBar>>,
    /// Warnings beside a JSON document: an error takes them, else they are told at the end.
    held: Mutex<Vec<String>>,
}

impl Printer {
    /// A printer with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            sink: Mutex::default(),
            line: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the answer is one JSON document.
    pub const fn is_json(&self) -> bool {
        self.settings.json
    }

    /// Whether a person sits at both ends: input and notices are on a terminal.
    pub fn is_interactive() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Columns of the terminal that stdout is; `None` for a pipe or file.
    pub fn width() -> Option<usize> {
        width_of(&io::stdout())
    }

    /// Columns for sentences on stdout: `COLUMNS`, else the terminal's, else no bound.
    fn text_width() -> Option<usize> {
        columns_variable().or_else(Self::width)
    }

    /// The same for stderr.
    fn notice_width() -> Option<usize> {
        columns_variable().or_else(|| width_of(&io::stderr()))
    }

    /// Writes lines for people, wrapped where a terminal is too narrow for them.
    pub fn text(&self, text: impl fmt::Display) {
        let text = text.to_string();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.data(&format!("{}{end}", wrap(&text, Self::text_width())));
    }

    /// The same lines for what is written later, beside text that stays as it is.
    pub fn wrapped(text: &str) -> String {
        wrap(text, Self::text_width()).into_owned()
    }

    /// Writes one line of data, as it is.
    pub fn line(&self, text: impl fmt::Display) {
        self.data(&format!("{text}\n"));
    }

    /// Writes data as it is.
    pub fn data(&self, text: &str) {
        let mut stream = AutoStream::new(io::stdout().lock(), self.stdout_choice());
        let result = stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
        self.note(result);
    }

    /// Writes one JSON document.
    pub fn json<T: Serialize>(&self, document: &T) {
        match serde_json::to_string_pretty(document) {
            Ok(text) => self.line(text),
            Err(error) => self.note(Err(error.into())),
        }
    }

    /// Writes one JSON document on one line, for streams.
    pub fn json_line<T: Serialize>(&self, document: &T) {
        match serde_json::to_string(document) {
            Ok(text) => self.line(text),
            Err(error) => self.note(Err(error.into())),
        }
    }

    /// Writes a table: fitted on a terminal, complete and tab-separated in a pipe.
    pub fn table(&self, table: &Table) {
        self.data(&table.render(Self::width()));
    }

    /// Shows a long text through the pager on a terminal, else writes it. No file is made.
    pub fn page(&self, text: &str) {
        let color = self.stdout_choice() != ColorChoice::Never;
        if Self::width().is_none() || !pager::show(text, color) {
            self.data(text);
        }
    }

    /// Tells something on stderr, unless quiet. Beside a JSON document it is for a person at a terminal
    /// only: a program reads stderr for the error.
    pub fn notice(&self, text: impl fmt::Display) {
        if !self.settings.quiet && (!self.settings.json || Self::is_interactive()) {
            self.message(&text.to_string());
        }
    }

    /// Warns on stderr, also when quiet. Beside a JSON document it waits for the end.
    pub fn warn(&self, text: impl fmt::Display) {
        if self.settings.json
            && let Ok(mut held) = self.held.lock()
        {
            held.push(text.to_string());
            return;
        }
        self.warn_now(text);
    }

    fn warn_now(&self, text: impl fmt::Display) {
        let text = format!("{} {text}", paint(Label::Warning, "warning:"));
        self.without_line(|| self.message(&text));
    }

    /// Tells a detail on stderr, with `-v`.
    pub fn detail(&self, text: impl fmt::Display) {
        if self.settings.verbose > 0 {
            self.stderr(&format!("{}\n", paint(Label::Dim, text)));
        }
    }

    /// Remembers the progress line, so that questions can be asked beside it.
    pub(super) fn set_line(&self, bar: &ProgressBar) {
        if let Ok(mut line) = self.line.lock() {
            *line = Some(bar.clone());
        }
    }

    /// Runs `ask` with the progress line out of the way: it would draw over what is typed.
    pub(super) fn without_line<T>(&self, ask: impl FnOnce() -> T) -> T {
        let line = self.line.lock().ok().and_then(|line| line.clone());
        match line {
            Some(bar) => bar.suspend(ask),
            None => ask(),
        }
    }

    /// Writes lines for people to stderr, wrapped where a terminal is too narrow for them.
    pub fn message(&self, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        self.stderr(&format!("{}\n", wrap(text, Self::notice_width())));
    }

    /// Writes to stderr as it is. Trouble there can be told to nobody.
    pub fn stderr(&self, text: &str) {
        let choice = match self.settings.color {
            ColorChoice::Auto => AutoStream::choice(&io::stderr()),
            other => other,
        };
        let mut stream = AutoStream::new(io::stderr().lock(), choice);
        let _ = stream.write_all(text.as_bytes());
    }

    /// Warnings that wait, for the error that tells them.
    pub fn take_warnings(&self) -> Vec<String> {
        let held = self.held.lock().map(|mut held| std::mem::take(&mut *held));
        held.unwrap_or_default()
    }

    /// Tells what waits, then trouble with stdout that was not a reader going away.
    pub fn finish(&self) -> Result<(), io::Error> {
        for warning in self.take_warnings() {
            self.warn_now(warning);
        }
        let sink = self.sink.lock().map(|mut sink| std::mem::take(&mut *sink));
        match sink {
            Ok(Sink::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn stdout_choice(&self) -> ColorChoice {
        match self.settings.color {
            _ if self.settings.json => ColorChoice::Never,
            ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            other => other,
        }
    }

    fn note(&self, result: io::Result<()>) {
        let Err(error) = result else { return };
        if let Ok(mut sink) = self.sink.lock()
            && matches!(*sink, Sink::Open)
        {
            *sink = if error.kind() == io::ErrorKind::BrokenPipe {
                Sink::Closed
            } else {
                Sink::Failed(error)
            };
        }
    }
}

/// What the user says about the width of the terminal, as shells and `git` do.
fn columns_variable() -> Option<usize> {
    let text = std::env::var("COLUMNS").ok()?;
    text.parse().ok().filter(|columns| *columns > 0)
}

fn width_of(stream: &(impl io::IsTerminal + rustix::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    Some(if columns == 0 { 80 } else { columns })
}
