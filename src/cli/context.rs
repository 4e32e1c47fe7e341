//! What every command gets: where it runs, how it prints and asks.

use super::args::{Color, GlobalArgs};
use super::error::CliError;
use crate::app::Here;
use crate::app::Notices;
use crate::base::files::whole_text;
use crate::base::redact::Secret;
use crate::base::words::count;
use crate::store::Heard;
use crate::ui::{Printer, Progress, Prompts, Settings, escape};
use anstream::ColorChoice;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After which time a reading is shown.
const SLOW: Duration = Duration::from_secs(1);
/// Largest text that is read from a file or from standard input, in bytes.
const MAX_INPUT: u64 = 16 << 20;
/// Largest patch that is read, in bytes.
const MAX_PATCH: u64 = 512 << 20;

/// The surroundings of one command.
#[derive(Debug)]
pub struct Context {
    /// Prints.
    pub printer: Arc<Printer>,
    /// The folder that the command is about.
    pub dir: PathBuf,
    /// Answer questions with yes.
    pub yes: bool,
    /// Leave the remote alone.
    pub offline: bool,
    notices: Notices,
}

/// Shows how far a reading of many tasks is, once it takes long.
fn reading(printer: Arc<Printer>) -> impl Fn(usize, usize) + Send + Sync {
    let state: Mutex<Option<(Instant, Option<Progress>)>> = Mutex::default();
    move |done, of| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if done >= of {
            if let Some((_, Some(line))) = state.take() {
                line.finish();
            }
            return;
        }
        let (began, line) = state.get_or_insert_with(|| (Instant::now(), None));
        if began.elapsed() < SLOW {
            return;
        }
        let text = format!("reading {done} of {}", count(of, "task", "tasks"));
        match line {
            Some(line) => line.stage(&text),
            None => *line = Some(Progress::start(&printer, &text)),
        }
    }
}

impl Context {
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let printer = Arc::new(Printer::new(Settings {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            color: match global.color {
                Color::Auto => ColorChoice::Auto,
                Color::Always => ColorChoice::Always,
                Color::Never => ColorChoice::Never,
            },
            progress: !global.no_progress,
        }));
        let told = Arc::clone(&printer);
        let notices = Notices::told_to(move |text| told.warn(escape::line(text)))
            .with_reading(Heard::by(reading(Arc::clone(&printer))));
        Self {
            printer,
            notices,
            dir: global.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            yes: global.yes,
            offline: global.offline,
        }
    }

    /// Where a use case runs.
    pub fn here(&self) -> Here {
        Here {
            notices: self.notices.clone(),
            ..Here::of_process(self.dir.clone(), self.offline)
        }
    }

    /// Asks for the passphrase of a key file.
    pub fn passphrase(&self) -> impl FnMut(&Path) -> Option<Secret> + '_ {
        |path| self.prompts().passphrase(path)
    }

    /// The text of a file that was named on the command line; `-` is standard input. Relative paths
    /// start at the folder of `-C`, as with git.
    pub fn read_text(&self, path: &Path) -> Result<String, CliError> {
        let named = path.display();
        let (text, source): (io::Result<String>, _) = if path == Path::new("-") {
            let text = whole_text(io::stdin().lock(), MAX_INPUT);
            (text, "standard input".to_owned())
        } else {
            let file = std::fs::File::open(self.dir.join(path));
            let text = file.and_then(|file| whole_text(file, MAX_INPUT));
            (text, named.to_string())
        };
        text.map_err(|error| {
            CliError::new(
                super::ExitStatus::Usage,
                format!("cannot read {source}: {error}"),
            )
        })
    }

    /// The bytes of a file that was named on the command line; `-` is standard input.
    pub fn read_bytes(&self, path: &Path) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let read = if path == Path::new("-") {
            io::stdin().lock().take(MAX_PATCH).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(self.dir.join(path))
                .and_then(|file| file.take(MAX_PATCH).read_to_end(&mut bytes))
        };
        match read {
            Ok(_) => Ok(bytes),
            Err(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                Err(CliError::new(super::ExitStatus::Usage, text))
            }
        }
    }

    /// Asks the person.
    pub fn prompts(&self) -> Prompts<'_> {
        Prompts::new(&self.printer, self.yes)
    }
}
