//! `hangar policy show`

use super::told::{left_out, need_text, overtaken_text, people, rivals_text, set_aside_text};
use crate::app::policy::{self, PolicyView, ProposalView, edit, machine_word, role_word};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::trust::PublicKey;
use crate::ui::{Label, escape, paint};
use clap::Args;
use std::fmt::Write as _;

/// Print the version in force, and those that wait for signatures
#[derive(Debug, Args)]
pub struct ShowArgs {}

pub(super) fn run(context: &Context, _: &ShowArgs) -> Result<ExitStatus, CliError> {
    let view = policy::show(&context.here())?;
    if context.printer.is_json() {
        context.printer.json(&view);
    } else {
        context.printer.text(page(&view));
    }
    Ok(ExitStatus::Done)
}

fn heading(text: &str) -> String {
    paint(Label::Heading, text)
}

fn page(view: &PolicyView) -> String {
    let mut out = String::new();
    let arbiter = view
        .arbiter
        .as_deref()
        .map_or("this repository".into(), escape::line);
    let archive = match view.archive_days {
        0 => "Ended tasks are never archived.".to_owned(),
        days => format!(
            "Ended tasks are archived after {}.",
            count(days as usize, "day", "days")
        ),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{}\n  {}\nof the repository\n  {}\nRaces are decided by {arbiter}.\n{archive}",
        heading(&format!("Policy version {}", view.version)),
        paint(Label::Id, view.digest),
        paint(Label::Id, view.repo)
    );
    out.push_str(&rivals_text(&view.rivals));
    holders(view, &mut out);
    reduced(view, &mut out);
    out.push_str(&set_aside_text(&view.set_aside));
    let _ = writeln!(out, "\n{}", heading("Acceptance"));
    for (name, what, value) in acceptance(view) {
        out.push_str(&setting_line(name, what, &value));
        out.push('\n');
    }
    for proposal in &view.proposals {
        self::proposal(proposal, &mut out);
    }
    if !view.overtaken.is_empty() {
        let _ = writeln!(out, "\n{}", heading("Overtaken"));
    }
    for one in &view.overtaken {
        out.push_str(&overtaken_text(one));
    }
    out
}

/// Root keys, people and machines: who it is, and below it each key.
fn holders(view: &PolicyView, out: &mut String) {
    let _ = writeln!(out, "\n{}", heading("Root keys"));
    let mut before = None;
    for key in &view.root {
        if before != Some(&key.principal) {
            let _ = writeln!(out, "  {}", key.principal);
        }
        before = Some(&key.principal);
        let recovery = if key.recovery { "  (recovery)" } else { "" };
        let _ = writeln!(out, "    {}{recovery}", key.key);
    }
    let _ = writeln!(
        out,
        "  {} must sign a new root.toml, {} a new members.toml",
        people(view.root_threshold),
        people(view.members_threshold)
    );
    let _ = writeln!(out, "\n{}", heading("People"));
    for person in &view.people {
        let _ = writeln!(out, "  {}, {}", person.name, role_word(person.role));
        for key in &person.keys {
            let _ = writeln!(out, "    {key}");
        }
        for recipient in &person.recipients {
            // Their own keys stand above.
            let shown = match recipient.parse::<PublicKey>() {
                Ok(key) if person.keys.contains(&key.fingerprint()) => continue,
                Ok(key) => key.fingerprint().to_string(),
                Err(_) => escape::line(recipient).into_owned(),
            };
            let _ = writeln!(out, "    {shown}  (age)");
        }
    }
    let _ = writeln!(out, "\n{}", heading("Machines"));
    for machine in &view.machines {
        let (name, role) = (&machine.name, machine_word(machine.role));
        let _ = writeln!(out, "  {name}, {role} of {}", machine.owner);
        let _ = writeln!(out, "    {}", machine.key);
    }
}

fn reduced(view: &PolicyView, out: &mut String) {
    if !view.reduced.is_empty() {
        let _ = writeln!(out, "\n{}", heading("Keys that lost rights"));
    }
    for one in &view.reduced {
        let documents = count(one.documents, "document counts", "documents count");
        let _ = writeln!(
            out,
            "  {}, {} since version {}\n    {}\n    {documents} all the same",
            one.principal,
            one.how.as_str(),
            one.since,
            one.key
        );
    }
}

fn proposal(proposal: &ProposalView, out: &mut String) {
    let digest = proposal.digest.short();
    let what = if proposal.needs.is_empty() {
        "Has every signature:"
    } else {
        "Waits for signatures:"
    };
    let _ = writeln!(out, "\n{} {}", heading(what), paint(Label::Id, &digest));
    for change in &proposal.changes {
        let _ = writeln!(out, "  {}", escape::line(change));
    }
    for need in &proposal.needs {
        let _ = writeln!(out, "  {}", need_text(need));
    }
    if proposal.needs.is_empty() {
        let command = paint(Label::Command, format!("hangar policy sign {digest}"));
        let _ = writeln!(out, "  {command} puts it in force");
    }
    for left in &proposal.left_out {
        let _ = writeln!(out, "  {}", left_out(left));
    }
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
