//! `hangar policy edit`

use super::{role, told};
use crate::app::policy::edit::{self, Edition};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::policy::Role;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar policy edit --role bob=admin
  hangar policy edit --members-threshold 2
  hangar policy edit --set trust=sealed+limits --set approvers=2";

/// Change roles, thresholds and acceptance settings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EditArgs {
    /// Another role for a person. May be given again and again
    #[arg(long, value_name = "PERSON=ROLE", value_parser = person_role)]
    pub role: Vec<(String, Role)>,
    /// How many different people must sign a new root.toml
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub root_threshold: Option<u32>,
    /// How many different people must sign a new members.toml
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub members_threshold: Option<u32>,
    /// The remote whose refs decide races; an empty text is this repository
    #[arg(long, value_name = "ADDRESS")]
    pub arbiter: Option<String>,
    /// Days after which an ended task goes to the archive; 0 is never
    #[arg(long, value_name = "N")]
    pub archive_days: Option<u32>,
    /// An acceptance setting, by its name in root.toml. May be given again and again
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
}

fn person_role(text: &str) -> Result<(String, Role), String> {
    let (name, word) = text.split_once('=').ok_or("use PERSON=ROLE")?;
    Ok((name.to_owned(), role(word)?))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn run(context: &Context, args: EditArgs) -> Result<ExitStatus, CliError> {
    let edition = Edition {
        roles: args.role,
        root_threshold: args.root_threshold,
        members_threshold: args.members_threshold,
        arbiter: args.arbiter,
        archive_days: args.archive_days,
        settings: args.set,
    };
    let ask = &mut context.passphrase();
    let changed = edit::edit(&context.here(), &edition, ask)?;
    Ok(told::tell(context, &changed))
}
