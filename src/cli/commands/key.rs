//! `hangar key`

use crate::app::keys::{self, KeyList, KeyView};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, Table, escape};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// List the keys at hand, or make one
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// `hangar key …`
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// List your keys and this machine's, and whom the policy gives them to
    List,
    /// Make an ed25519 key for signing
    ///
    /// The private half goes to the file with mode 0600 and no passphrase (`ssh-keygen -p -f FILE`
    /// gives it one), the public half beside it. Nothing is ever overwritten.
    New {
        /// The file [default: ~/.ssh/id_ed25519_hangar]
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

pub(super) fn run(context: &Context, args: KeyArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        KeyCommand::List => list(context),
        KeyCommand::New { file } => new(context, file),
    }
}

fn list(context: &Context) -> Result<ExitStatus, CliError> {
    let list = keys::list(&context.here())?;
    if context.printer.is_json() {
        context.printer.json(&list);
        return Ok(ExitStatus::Done);
    }
    context.printer.table(&table(&list));
    for skipped in &list.skipped {
        context
            .printer
            .notice(format!("left out: {}", escape::line(skipped)));
    }
    if list.keys.is_empty() {
        context
            .printer
            .notice("no key of yours was found; `hangar key new` makes one");
    }
    Ok(ExitStatus::Done)
}

fn table(list: &KeyList) -> Table {
    let mut table = Table::new(&["KEY", "KIND", "HOLDER", "USED", "SOURCE"]).whole(0);
    let mut row = |key: &KeyView| {
        let holder = key.principal.as_ref().map_or("-", |name| name.as_str());
        let used = if key.used { "yes" } else { "no" };
        table.row([
            (key.key.as_str(), Some(Label::Id)),
            (&key.algorithm, None),
            (holder, None),
            (used, None),
            (&key.source, Some(Label::Dim)),
        ]);
    };
    list.keys.iter().chain(&list.machine).for_each(&mut row);
    table
}

fn new(context: &Context, file: Option<PathBuf>) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let path = match file {
        Some(file) => here.dir.join(file),
        None => keys::default_path(&here)?,
    };
    let made = keys::new(&path)?;
    if context.printer.is_json() {
        context.printer.json(&made);
    } else {
        context.printer.line(&made.public);
        context.printer.notice(format!(
            "made {}; give it a passphrase with `ssh-keygen -p -f {}`",
            made.path, made.path
        ));
    }
    Ok(ExitStatus::Done)
}
