//! `hangar policy`

use crate::app::policy::add::{self, Addition};
use crate::app::policy::change::{self, Changed, NeedView};
use crate::app::policy::edit::{self, Edition};
use crate::app::policy::take::{self, Removal};
use crate::app::policy::{self, PolicyLog, PolicyView, ProposalView, machine_word, role_word};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::policy::{MachineRole, Role};
use crate::model::reduction::Why;
use crate::ui::{Label, PromptError, escape, paint};
use clap::{Args, Subcommand};
use std::fmt::Write as _;

const ADD_EXAMPLES: &str = "\
Examples:
  hangar policy add bob --role approver --key 'ssh-ed25519 AAAA…'
  hangar policy add bob --worker 'ssh-ed25519 AAAA…'
  hangar policy add ci --grader 'ssh-ed25519 AAAA…' --owner alice
  hangar policy add alice --recovery --key 'ssh-ed25519 AAAA…'";

const EDIT_EXAMPLES: &str = "\
Examples:
  hangar policy edit --role bob=admin
  hangar policy edit --members-threshold 2
  hangar policy edit --set trust=sealed+limits --set approvers=2";

/// Show who decides here and what suffices, and change it
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// `hangar policy …`
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Print the version in force, and those that wait for signatures
    Show,
    /// Print every version and what it changed
    Log,
    /// Add a person, a key, or a machine
    ///
    /// `hangar init` in somebody's clone prints the line that adds them. Where more than one person
    /// must sign, the version waits on its own ref: the others get it with `hangar sync` and sign it
    /// with `hangar policy sign`.
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// Change roles, thresholds and acceptance settings
    #[command(after_help = EDIT_EXAMPLES)]
    Edit(EditArgs),
    /// Take a person, a key or a machine out
    ///
    /// What a retired key signed so far stays valid for ever; what it signs later does not count,
    /// whatever date or policy version it names. Of a compromised key only the course of the tasks
    /// stays: approvals, sealed versions, runs and grades that it signed do not count until somebody
    /// adopts them (`hangar policy adopt`), and `hangar verify` names them.
    Remove(RemoveArgs),
    /// Put another key of yours in place of the one that you sign with
    Rotate {
        /// The new public key
        #[arg(long, value_name = "KEY")]
        to: String,
        /// An age recipient, where the new key can't decrypt
        #[arg(long, value_name = "RECIPIENT")]
        recipient: Option<String>,
        /// Somebody else may have used the old key
        #[arg(long)]
        compromised: bool,
    },
    /// Let documents of a compromised key count again
    Adopt {
        /// Digests of the documents, as `hangar verify` names them
        #[arg(value_name = "DIGEST", required = true)]
        digest: Vec<String>,
    },
    /// Sign a version that waits for signatures
    ///
    /// Prints what it changes and asks for the first six characters of its digest, unless the digest
    /// (at least twelve characters) was typed.
    Sign {
        /// Digest of the version, or its beginning; the only one where none is given
        #[arg(value_name = "DIGEST")]
        digest: Option<String>,
    },
}

/// `hangar policy add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The person; for a machine alone, the machine
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What the person may do: member, approver or admin [default: member]
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Option<Role>,
    /// A public key of the person. May be given again and again
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// An age recipient of the person, where their key can't decrypt
    #[arg(long, value_name = "RECIPIENT")]
    pub recipient: Vec<String>,
    /// Key of a machine that runs agents
    #[arg(long, value_name = "KEY")]
    pub worker: Vec<String>,
    /// Key of a machine that grades
    #[arg(long, value_name = "KEY")]
    pub grader: Vec<String>,
    /// Key of an agent program
    #[arg(long, value_name = "KEY")]
    pub agent: Vec<String>,
    /// Who answers for a machine [default: the person, else you]
    #[arg(long, value_name = "PERSON")]
    pub owner: Option<String>,
    /// Make the keys root keys too
    #[arg(long)]
    pub root: bool,
    /// Make the keys recovery keys, kept away for the day the others are lost
    #[arg(long, conflicts_with_all = ["root", "role", "recipient"])]
    pub recovery: bool,
}

/// `hangar policy remove`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("how").required(true))]
pub struct RemoveArgs {
    /// A person with their machines, or a machine
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Only this key of the person
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// It is not used any more
    #[arg(long, group = "how")]
    pub retired: bool,
    /// Somebody else may have used it
    #[arg(long, group = "how")]
    pub compromised: bool,
}

/// `hangar policy edit`
#[derive(Debug, Args)]
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
    /// An acceptance setting, by its name in root.toml. May be given again and again
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
}

fn role(text: &str) -> Result<Role, String> {
    match text {
        "member" => Ok(Role::Member),
        "approver" => Ok(Role::Approver),
        "admin" => Ok(Role::Admin),
        _ => Err("use member, approver or admin".into()),
    }
}

fn person_role(text: &str) -> Result<(String, Role), String> {
    let (name, word) = text.split_once('=').ok_or("use PERSON=ROLE")?;
    Ok((name.to_owned(), role(word)?))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn run(context: &Context, args: PolicyArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let printer = &context.printer;
    let ask = &mut context.passphrase();
    match args.command {
        PolicyCommand::Show => {
            let view = policy::show(&here)?;
            if printer.is_json() {
                printer.json(&view);
            } else {
                printer.text(show_text(&view));
            }
        }
        PolicyCommand::Log => {
            let log = policy::log(&here)?;
            if printer.is_json() {
                printer.json(&log);
            } else {
                printer.text(log_text(&log));
            }
        }
        PolicyCommand::Add(args) => {
            return Ok(tell(context, &add::add(&here, &addition(args), ask)?));
        }
        PolicyCommand::Edit(args) => {
            let edition = Edition {
                roles: args.role,
                root_threshold: args.root_threshold,
                members_threshold: args.members_threshold,
                arbiter: args.arbiter,
                settings: args.set,
            };
            return Ok(tell(context, &edit::edit(&here, &edition, ask)?));
        }
        PolicyCommand::Remove(args) => {
            let removal = Removal {
                name: args.name,
                key: args.key,
                how: why(args.compromised),
            };
            return Ok(tell(context, &take::remove(&here, &removal, ask)?));
        }
        PolicyCommand::Rotate {
            to,
            recipient,
            compromised,
        } => {
            let how = why(compromised);
            let changed = take::rotate(&here, &to, recipient.as_deref(), how, ask)?;
            return Ok(tell(context, &changed));
        }
        PolicyCommand::Adopt { digest } => {
            return Ok(tell(context, &take::adopt(&here, &digest, ask)?));
        }
        PolicyCommand::Sign { digest } => {
            let waits = change::waiting(&here, digest.as_deref())?;
            confirm(context, &waits, digest.as_deref())?;
            return Ok(tell(context, &change::sign(&here, waits.digest, ask)?));
        }
    }
    Ok(ExitStatus::Done)
}

/// Shows what a version changes, and asks for its digest unless that was typed.
fn confirm(context: &Context, waits: &ProposalView, digest: Option<&str>) -> Result<(), CliError> {
    for change in &waits.changes {
        context.printer.notice(escape::line(change));
    }
    let hex = digest.map(|named| named.strip_prefix("sha256:").unwrap_or(named));
    if hex.is_some_and(|hex| hex.len() >= 12) {
        return Ok(());
    }
    let short = waits.digest.short();
    let question = format!("To sign {short}, type the first six characters of its digest:");
    let typed = context.prompts().typed(&question, &waits.digest.hex());
    if let Err(error @ PromptError::NoTerminal(_)) = typed {
        let hint = format!("read the changes, then: `hangar policy sign {short}`");
        return Err(CliError::of(ExitStatus::Waiting, error).hint(hint));
    }
    if typed? {
        return Ok(());
    }
    Err(CliError::new(
        ExitStatus::Refused,
        "these are not the first six characters; nothing was signed",
    ))
}

const fn why(compromised: bool) -> Why {
    if compromised {
        Why::Compromised
    } else {
        Why::Retired
    }
}

fn addition(args: AddArgs) -> Addition {
    let of = |role, keys: Vec<String>| keys.into_iter().map(move |key| (role, key));
    let machines = of(MachineRole::Worker, args.worker)
        .chain(of(MachineRole::Grader, args.grader))
        .chain(of(MachineRole::Agent, args.agent))
        .collect();
    Addition {
        name: args.name,
        role: args.role,
        keys: args.key,
        recipients: args.recipient,
        machines,
        owner: args.owner,
        root: args.root,
        recovery: args.recovery,
    }
}

/// Says what became of a change. A version that waits for others is exit 6.
fn tell(context: &Context, changed: &Changed) -> ExitStatus {
    let status = if changed.in_force {
        ExitStatus::Done
    } else {
        ExitStatus::Waiting
    };
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(changed);
        return status;
    }
    let (version, digest) = (changed.version, changed.digest.short());
    if changed.unchanged {
        printer.text(format!("unchanged  policy version {version} ({digest})"));
    } else if changed.in_force {
        printer.text(format!("in force   policy version {version} ({digest})"));
        if changed.reseal {
            let command = paint(Label::Command, "hangar sealed reseal --all");
            printer.text(format!("next       {command}"));
        }
    } else {
        printer.text(format!("waiting    policy version {version} ({digest})"));
        for need in &changed.needs {
            printer.text(format!("needs      {}", need_text(need)));
        }
        for line in next_lines(changed) {
            printer.text(line);
        }
    }
    status
}

/// What makes a version that waits go on.
fn next_lines(changed: &Changed) -> Vec<String> {
    let digest = changed.digest.short();
    let command = |text: String| paint(Label::Command, text);
    let mut lines = Vec::new();
    if let Some(key) = &changed.new_key {
        lines.push(format!("next       sign it with the new key {key} too:"));
        for text in [
            "git config gpg.format ssh".to_owned(),
            "git config user.signingKey NEWKEY.pub".to_owned(),
            format!("hangar policy sign {digest}"),
        ] {
            lines.push(format!("           {}", command(text)));
        }
    }
    let own_alone = changed.needs.len() == 1 && changed.needs[0].threshold == 1;
    if changed.new_key.is_none() || !own_alone {
        let next = command(format!("hangar sync && hangar policy sign {digest}"));
        lines.push(format!("next       one of them: {next}"));
    }
    lines
}

fn need_text(need: &NeedView) -> String {
    let names: Vec<_> = need.able.iter().map(ToString::to_string).collect();
    format!(
        "{} of {} signed {}; can: {}",
        need.signed.len(),
        people(need.threshold),
        need.what,
        names.join(", ")
    )
}

fn show_text(view: &PolicyView) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let heading = |text: &str| paint(Label::Heading, text);
    line(format!(
        "{} {} of {}",
        heading("Policy version"),
        view.version,
        paint(Label::Id, view.repo)
    ));
    let arbiter = view
        .arbiter
        .as_deref()
        .map_or("this repository".into(), escape::line);
    line(format!("Races are decided by {arbiter}."));
    line(format!("\n{}", heading("Root keys")));
    for key in &view.root {
        let recovery = if key.recovery { " (recovery)" } else { "" };
        line(format!("  {:<20} {}{recovery}", key.principal, key.key));
    }
    line(format!(
        "  {} must sign a new root.toml, {} a new members.toml",
        people(view.root_threshold),
        people(view.members_threshold)
    ));
    line(format!("\n{}", heading("People")));
    for person in &view.people {
        for (index, key) in person.keys.iter().enumerate() {
            let (name, role) = if index == 0 {
                (person.name.as_str(), role_word(person.role))
            } else {
                ("", "")
            };
            line(format!("  {name:<20} {role:<9} {key}"));
        }
    }
    line(format!("\n{}", heading("Machines")));
    for machine in &view.machines {
        let (name, role) = (&machine.name, machine_word(machine.role));
        line(format!(
            "  {name:<20} {role:<9} {}  of {}",
            machine.key, machine.owner
        ));
    }
    if !view.reduced.is_empty() {
        line(format!("\n{}", heading("Keys that lost rights")));
    }
    for one in &view.reduced {
        line(format!(
            "  {:<20} {:<11} {}",
            one.principal,
            one.how.as_str(),
            one.key
        ));
        let documents = count(one.documents, "document counts", "documents count");
        line(format!(
            "  {:<20} since version {}; {documents} all the same",
            "", one.since
        ));
    }
    line(format!("\n{}", heading("Acceptance")));
    for (name, what, value) in acceptance(view) {
        line(setting_line(name, what, &value));
    }
    for proposal in &view.proposals {
        line(format!(
            "\n{} {}",
            heading("Waits for signatures:"),
            paint(Label::Id, proposal.digest.short())
        ));
        for change in &proposal.changes {
            line(format!("  {}", escape::line(change)));
        }
        for need in &proposal.needs {
            line(format!("  {}", need_text(need)));
        }
    }
    out
}

fn people(number: u32) -> String {
    count(number, "person", "people")
}

/// One setting; a value that would not fit the line gets its own.
fn setting_line(name: &str, what: &str, value: &str) -> String {
    if value.len() > 14 {
        format!("  {name:<21} {what}\n{:24}{value}", "")
    } else {
        format!("  {name:<21} {what:<40} {value}")
    }
}

/// Each setting: its name in `root.toml`, what it says, its value.
fn acceptance(view: &PolicyView) -> Vec<(&'static str, &'static str, String)> {
    let settings = &view.acceptance;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let adapters: Vec<_> = settings.adapters.iter().map(ToString::to_string).collect();
    let adapters = if adapters.is_empty() {
        "all".to_owned()
    } else {
        adapters.join(", ")
    };
    let said = [
        (
            "least trust of an accepted grade",
            settings.trust.to_string(),
        ),
        (
            "least verdict of an accepted grade",
            settings.verdict.to_string(),
        ),
        ("people who must approve", settings.approvers.to_string()),
        (
            "an approval can be used for",
            count(settings.approval_days, "day", "days"),
        ),
        (
            "follow-up rounds of an implementer",
            settings.max_rounds.to_string(),
        ),
        (
            "rejected versions that end a task",
            settings.max_rejections.to_string(),
        ),
        (
            "turns of a writer for one version",
            settings.max_writer_turns.to_string(),
        ),
        (
            "grades of a version an implementer sees",
            settings.max_grades.to_string(),
        ),
        (
            "tasks that may wait for approval",
            settings.max_awaiting_approval.to_string(),
        ),
        ("frameworks that may grade", adapters),
        (
            "tests sealed after an implementation",
            yes(settings.after_code),
        ),
        ("grading with swap on", yes(settings.swap_exposed)),
    ];
    let named = edit::NAMES.into_iter().zip(said);
    named
        .map(|(name, (what, value))| (name, what, value))
        .collect()
}

fn log_text(log: &PolicyLog) -> String {
    let mut out = String::new();
    for version in &log.versions {
        let _ = writeln!(
            out,
            "{} {}  {}",
            paint(Label::Heading, "version"),
            version.version,
            paint(Label::Id, version.digest)
        );
        for change in &version.changes {
            let _ = writeln!(out, "  {}", escape::line(change));
        }
    }
    out
}
