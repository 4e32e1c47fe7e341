//! `hangar task show`

use crate::app::acceptance::contradicting::AdjudicationView;
use crate::app::tasks::log::Entry;
use crate::app::tasks::show::{
    BesideView, DecisionView, GradeView, NextStep, TaskView, VersionView, show,
};
use crate::base::words::count;
use crate::cli::args::TaskArg;
use crate::cli::commands::grade::put_back;
use crate::cli::commands::run::contradicting;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::task::{Flow, State};
use crate::ui::{Label, escape, paint};
use clap::Args;

/// Show a task: text, criteria, versions, grades, timeline
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
}

pub(super) fn run(context: &Context, args: &ShowArgs) -> Result<ExitStatus, CliError> {
    let view = show(&context.here(), &args.task.task)?;
    for fault in &view.faults {
        context
            .printer
            .warn(format!("not believed: {}", escape::line(fault)));
    }
    if context.printer.is_json() {
        context.printer.json(&view);
    } else {
        context.printer.text(text(&view));
    }
    Ok(ExitStatus::Done)
}

fn text(view: &TaskView) -> String {
    let mut out = Vec::new();
    out.push(paint(Label::Heading, escape::line(&view.title)));
    out.push(String::new());
    head(view, &mut out);
    if !view.beside.is_empty() {
        section(&mut out, "Set at the same time, not in force");
        out.extend(view.beside.iter().map(beside));
    }
    if let Some(summary) = &view.summary {
        section(&mut out, "Why it ended");
        out.push(indented(summary));
    }
    if !view.mandate.is_empty() {
        section(&mut out, "Mandate");
        out.push(indented(&view.mandate));
    }
    if !view.criteria.is_empty() {
        section(&mut out, "Criteria");
        for criterion in &view.criteria {
            out.push(format!(
                "  {:<4} {}",
                criterion.id,
                escape::line(&criterion.text)
            ));
        }
    }
    if !view.versions.is_empty() {
        section(&mut out, "Sealed versions");
        out.extend(view.versions.iter().map(version));
    }
    if !view.grades.is_empty() {
        section(&mut out, "Grades");
        out.extend(view.grades.iter().map(grade));
    }
    if !view.contradicting.is_empty() {
        section(&mut out, "Contradicting, one of them must stand");
        let line = |one| format!("  {}", contradicting(one));
        out.extend(view.contradicting.iter().map(line));
    }
    if !view.adjudicated.is_empty() {
        section(&mut out, "Adjudicated");
        out.extend(view.adjudicated.iter().map(adjudicated));
    }
    section(&mut out, "Timeline");
    let names = view.timeline.iter().map(|entry| entry.by.as_str().len());
    let names = names.max().unwrap_or_default();
    for entry in &view.timeline {
        line(entry, names, &mut out);
    }
    if let Some(words) = after_edit(view) {
        out.push(String::new());
        out.push(format!("Next: {words}"));
    } else if let Some(command) = next_command(view) {
        out.push(String::new());
        out.push(format!("Next: {}", paint(Label::Command, command)));
    }
    out.push(String::new());
    out.join("\n")
}

fn head(view: &TaskView, out: &mut Vec<String>) {
    let mut field = |name: &str, value: String| out.push(format!("  {name:<10} {value}"));
    field("id", paint(Label::Id, &view.id));
    if let Some(key) = &view.key {
        field("key", escape::line(key).into_owned());
    }
    let state = match view.stage {
        Some(stage) => format!("{}, {stage}", view.state),
        None => view.state.to_string(),
    };
    field("state", state);
    field("flow", format!("{}, {}", view.flow, view.mode));
    field("priority", view.priority.to_string());
    let base = match &view.base_branch {
        Some(branch) => format!("{} ({})", view.base.short(), escape::line(branch)),
        None => view.base.short(),
    };
    field("base", base);
    if !view.tags.is_empty() {
        field("tags", escape::line(&view.tags.join(", ")).into_owned());
    }
    field("requester", view.requester.to_string());
    field("created", escape::line(&view.created).into_owned());
    if let Some(worker) = &view.worker {
        field("held by", worker.to_string());
    }
    if let Some(delivery) = &view.delivery {
        let branch = escape::line(delivery.branch.trim_start_matches("refs/heads/"));
        field(
            "delivered",
            format!("{} to {branch}", delivery.commit.short()),
        );
    }
}

/// A value that gave way; of a mandate the first line.
fn beside(beside: &BesideView) -> String {
    let first = beside.value.lines().next().unwrap_or_default();
    format!(
        "  {:<10} {}  {}",
        beside.field,
        escape::line(first),
        paint(
            Label::Dim,
            format!("by {}, {}", beside.by, escape::line(&beside.at))
        )
    )
}

fn section(out: &mut Vec<String>, name: &str) {
    out.push(String::new());
    out.push(paint(Label::Heading, name));
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|line| format!("  {}", escape::line(line)).trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// What somebody said, and what came of it. No arbiter orders such words: of two opposite ones neither
/// was first.
fn adjudicated(said: &AdjudicationView) -> String {
    let mut text = format!(
        "  {}  stands, said {}: {}",
        paint(Label::Id, said.stands.short()),
        said.by,
        escape::line(&said.reason)
    );
    let why = match &said.against {
        Some(against) if said.opposite => Some(format!(
            "does not stand: {against} said the opposite at the same time, so neither document stands until an approver who has seen both says which"
        )),
        Some(against) => Some(format!(
            "does not stand any more: {against} said that it falls"
        )),
        None if said.in_force => None,
        None => Some("does not stand any more: a retry set it aside".to_owned()),
    };
    if let Some(why) = why {
        text.push_str("\n      ");
        text.push_str(&paint(Label::Attention, why));
    }
    text
}

fn version(version: &VersionView) -> String {
    let counts = &version.counts;
    format!(
        "  v{:<3} {}  {}: {}, {} on base, {}, {} uncovered",
        version.version,
        paint(Label::Id, version.manifest.short()),
        standing(version),
        count(counts.tests, "test", "tests"),
        count(counts.fails, "fails", "fail"),
        count(counts.guards, "guard", "guards"),
        count(counts.uncovered, "criterion", "criteria")
    )
}

const APPROVED_BEFORE: &str = "approved, but the text was edited since";

/// What helps where approved tests are for another text.
fn after_edit(view: &TaskView) -> Option<String> {
    let stale = view.versions.iter().rfind(|one| !one.set_aside)?;
    let waits = view.next == NextStep::Write && stale.stale;
    (waits && stale.decision == DecisionView::Approved)
        .then(|| crate::flow::stage::after_edit(view.id.short(), stale.version))
}

/// What became of a version.
fn standing(version: &VersionView) -> String {
    let newer = version.superseded_by;
    let (word, label) = match version.decision {
        _ if version.set_aside => ("set aside", Label::Dim),
        DecisionView::Open => match newer {
            Some(newer) => return paint(Label::Dim, format!("superseded by v{newer}")),
            None if version.stale => ("stale, the text was edited", Label::Dim),
            None if version.expired => ("its approval has expired", Label::Attention),
            None => ("waits for approval", Label::Attention),
        },
        DecisionView::Approved => match newer {
            Some(newer) => return paint(Label::Dim, format!("approved, superseded by v{newer}")),
            None if version.stale => (APPROVED_BEFORE, Label::Attention),
            None => ("approved", Label::Good),
        },
        DecisionView::Rejected => ("rejected", Label::Bad),
        DecisionView::Contradicted => ("contradicted", Label::Bad),
    };
    paint(label, word)
}

fn grade(grade: &GradeView) -> String {
    let (word, label) = match (grade.accepted, grade.void) {
        (true, _) => ("accepted", Label::Good),
        (false, true) => ("void", Label::Attention),
        (false, false) => ("not accepted", Label::Bad),
    };
    let mut text = format!(
        "  {}  {}: trust {}, verdict {}, secrecy {}",
        paint(Label::Id, grade.grade.short()),
        paint(label, word),
        grade.trust,
        grade.verdict,
        grade.secrecy
    );
    if grade.after_code {
        text.push_str(", after code");
    }
    if let Some(doubt) = &grade.doubt {
        let doubt = format!("does not count: {}", escape::line(doubt));
        text.push_str("\n      ");
        text.push_str(&paint(Label::Bad, doubt));
    }
    if grade.put_back > 0 {
        text.push_str("\n      put back: ");
        text.push_str(&put_back(grade.put_back));
    }
    for reason in &grade.reasons {
        text.push_str("\n      ");
        text.push_str(&escape::line(reason));
    }
    text
}

/// One document of a timeline; names fill `names` columns.
pub(super) fn line(entry: &Entry, names: usize, out: &mut Vec<String>) {
    out.push(format!(
        "  {}  {:<names$}  {}",
        paint(Label::Dim, escape::line(&entry.at)),
        entry.by.as_str(),
        escape::line(&entry.what)
    ));
    if let Some(text) = &entry.text {
        out.extend(
            text.lines()
                .map(|line| format!("      {}", escape::line(line))),
        );
    }
    if let Some(doubt) = &entry.doubt {
        let text = format!("does not count: {}", escape::line(doubt));
        out.push(format!("      {}", paint(Label::Bad, text)));
    }
    if entry.withdrawn {
        let text = "withdrawn: who signed it decided anew";
        out.push(format!("      {}", paint(Label::Attention, text)));
    }
    for beside in &entry.beside {
        let text = paint(Label::Attention, escape::line(beside));
        out.push(format!("      {text}"));
    }
    let refused = entry.refused.iter();
    for refused in refused.filter(|why| entry.doubt.as_ref() != Some(why)) {
        let text = format!("refused, no effect: {}", escape::line(refused));
        out.push(format!("      {}", paint(Label::Attention, text)));
    }
}

/// The command that goes on with the task.
fn next_command(view: &TaskView) -> Option<String> {
    let id = view.id.short();
    // Nothing goes on with a task that nobody believed in asked for.
    if let Some(creation) = view.uncounted {
        return Some(format!("hangar policy adopt {creation}"));
    }
    Some(match view.next {
        NextStep::Nothing if matches!(view.state, State::Failed | State::Rejected) => {
            format!("hangar task retry {id}")
        }
        NextStep::Nothing if view.delivery.is_some() => format!("hangar verify {id}"),
        NextStep::Nothing => return None,
        NextStep::Enqueue if view.criteria.is_empty() && view.flow == Flow::TestFirst => {
            format!("hangar task edit {id}")
        }
        NextStep::Approve => format!("hangar review {id}"),
        NextStep::ApprovePatch => format!("hangar review {id} --patch"),
        NextStep::Adjudicate => format!("hangar adjudicate {id} DIGEST --reason TEXT"),
        NextStep::Enqueue
        | NextStep::Write
        | NextStep::Implement
        | NextStep::Grade
        | NextStep::Deliver
        | NextStep::GiveUp => format!("hangar run {id}"),
        // The first only ends it.
        NextStep::Reject => format!("hangar run {id}; hangar task retry {id}"),
    })
}
