//! `hangar policy`

use crate::app::policy::{self, PolicyLog, PolicyView, machine_word, role_word};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, escape, paint};
use clap::{Args, Subcommand};
use std::fmt::Write as _;

/// Show who decides here and what suffices
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// `hangar policy …`
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Print the version in force
    Show,
    /// Print every version and what it changed
    Log,
}

pub(super) fn run(context: &Context, args: &PolicyArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let printer = &context.printer;
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
    }
    Ok(ExitStatus::Done)
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
    line(format!("\n{}", heading("Acceptance")));
    for (what, value) in acceptance(view) {
        line(format!("  {what:<46} {value}"));
    }
    out
}

fn people(number: u32) -> String {
    count(number, "person", "people")
}

fn acceptance(view: &PolicyView) -> Vec<(&'static str, String)> {
    let settings = &view.acceptance;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let adapters: Vec<_> = settings.adapters.iter().map(ToString::to_string).collect();
    vec![
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
            "rejected versions until a task is rejected",
            settings.max_rejections.to_string(),
        ),
        (
            "turns of a writer for one version",
            settings.max_writer_turns.to_string(),
        ),
        (
            "grades of one version an implementer learns of",
            settings.max_grades.to_string(),
        ),
        (
            "tasks that may wait for approval",
            settings.max_awaiting_approval.to_string(),
        ),
        (
            "adapters",
            if adapters.is_empty() {
                "all".into()
            } else {
                adapters.join(", ")
            },
        ),
        (
            "tests sealed after an implementation",
            yes(settings.after_code),
        ),
        ("grading with swap on", yes(settings.swap_exposed)),
    ]
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
