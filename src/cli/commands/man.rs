//! `hangar man`

use crate::base::files;
use crate::cli::{CliError, ExitStatus, context::Context};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hangar man | man -l -
  hangar man ~/.local/share/man/man1";

/// Write the manual pages
///
/// One for hangar and one for each command: DIR/hangar.1, DIR/hangar-init.1 and so on. Without DIR
/// the page of hangar itself goes to stdout.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Folder for the pages; made where it is missing
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: &ManArgs) -> Result<ExitStatus, CliError> {
    let mut command = crate::cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        let page = page(&command).map_err(CliError::output)?;
        context.printer.data(&String::from_utf8_lossy(&page));
        return Ok(ExitStatus::Done);
    };
    std::fs::create_dir_all(dir).map_err(|source| files::Error {
        action: "create",
        path: dir.clone(),
        source,
    })?;
    let count = write(dir, "hangar", &command)?;
    context
        .printer
        .notice(format!("wrote {count} pages to {}", dir.display()));
    Ok(ExitStatus::Done)
}

fn write(dir: &Path, name: &str, command: &clap::Command) -> Result<usize, CliError> {
    let page = page(command).map_err(CliError::output)?;
    files::write_atomic(&dir.join(format!("{name}.1")), &page, 0o644)?;
    let mut count = 1;
    for sub in command.get_subcommands() {
        if sub.get_name() != "help" && !sub.is_hide_set() {
            count += write(dir, &format!("{name}-{}", sub.get_name()), sub)?;
        }
    }
    Ok(count)
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
