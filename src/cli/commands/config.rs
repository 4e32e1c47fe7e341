//! `hangar config`

use crate::app::config::{self, ConfigList};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, Table, escape};
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
hangar.toml is edited by hand and landed like code, the policy is signed by admins; `set` changes \
only your own file ($XDG_CONFIG_HOME/hangar/config.toml).

Examples:
  hangar config list --show-origin
  hangar config get lanes.writer
  hangar config set lanes.writer claude:high,codex";

/// Show and change configuration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// `hangar config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// List every value in force
    List {
        /// Say where each comes from
        #[arg(long)]
        show_origin: bool,
    },
    /// Print one value; an error with exit 1 when it is not set
    Get {
        /// Dotted key
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Set a value of your own configuration
    Set {
        /// Dotted key
        #[arg(value_name = "KEY")]
        key: String,
        /// TOML, or plain text for a text; a list may be written with commas
        #[arg(value_name = "VALUE")]
        value: String,
    },
}

pub(super) fn run(context: &Context, args: ConfigArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        ConfigCommand::List { show_origin } => list(context, show_origin),
        ConfigCommand::Get { key } => get(context, &key),
        ConfigCommand::Set { key, value } => {
            let set = config::set(&context.here(), &key, &value)?;
            if context.printer.is_json() {
                context.printer.json(&set);
            } else {
                let file = set.file.display();
                context.printer.notice(format!("set {key} in {file}"));
            }
            Ok(ExitStatus::Done)
        }
    }
}

fn list(context: &Context, show_origin: bool) -> Result<ExitStatus, CliError> {
    let list = config::list(&context.here())?;
    if context.printer.is_json() {
        context.printer.json(&list);
    } else if show_origin {
        context.printer.table(&with_origin(&list));
    } else {
        for value in &list.values {
            let text = format!("{} = {}", value.key, value.value);
            context.printer.line(escape::line(&text));
        }
    }
    Ok(ExitStatus::Done)
}

fn with_origin(list: &ConfigList) -> Table {
    let mut table = Table::new(&["KEY", "VALUE", "ORIGIN"]);
    for value in &list.values {
        table.row([
            (&value.key, None),
            (&value.value, None),
            (&value.origin, Some(Label::Dim)),
        ]);
    }
    table
}

fn get(context: &Context, key: &str) -> Result<ExitStatus, CliError> {
    match config::get(&context.here(), key)? {
        Ok(value) if context.printer.is_json() => context.printer.json(&value),
        Ok(value) => context.printer.line(escape::line(&value.value)),
        Err(near) => {
            let what = format!("`{}` is not set", escape::line(key));
            let hint = match &near[..] {
                [] => "`hangar config list` shows every value in force".to_owned(),
                near => format!("set is {}", escape::line(&near.join(", "))),
            };
            return Err(CliError::new(ExitStatus::No, what).hint(hint));
        }
    }
    Ok(ExitStatus::Done)
}
