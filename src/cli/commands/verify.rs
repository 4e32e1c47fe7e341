//! `hangar verify`

use crate::app::verify::{Answer, Subject, statement, verify};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::flow::verify::{Fault, Link, LinkName, LinkState, Report, RevisionAnswer, Sameness};
use crate::model::object_id::ObjectId;
use crate::ui::{Label, escape, paint};
use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  hangar verify KAN-80
  hangar verify main
  hangar verify --all --json

Exit codes: 0 everything holds, 1 a fault was found, each is named; or nothing was accepted yet. 3 a
shallow or partial clone leaves out what would have to be looked at; how to fetch it is said.";

/// Would a stranger accept this?
///
/// Walks every link: policy chain, signatures, authority, approval to manifest to payload, run to
/// patch to grade to delivered commit, canary. Gives two answers: valid under the policy in force at
/// delivery, and acceptable under the newest.
///
/// A task is verified by its recorded result, also when its branch has moved on (that is said). A
/// revision is compared with what was delivered: `exact` (the same tree), `rebased` (the same patch),
/// or no. Trailers that say anything else than what was signed are a fault.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// A task (id, beginning of its id, external key) or a revision [default: HEAD]
    #[arg(value_name = "TASK or REV", conflicts_with = "all")]
    pub subject: Option<String>,
    /// Every task. Open and plain tasks claim nothing, so they are no fault
    #[arg(long)]
    pub all: bool,
    /// Print the evidence about one task as a statement for other tools
    #[arg(long, value_name = "FORMAT", conflicts_with = "all")]
    pub export: Option<Export>,
}

/// Formats of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// An in-toto statement (test-result predicate)
    InToto,
}

pub(super) fn run(context: &Context, args: &VerifyArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let subject = if args.all {
        Subject::All
    } else {
        Subject::Named(args.subject.as_deref().unwrap_or("HEAD"))
    };
    let answer = verify(&here, subject)?;
    if let Some(Export::InToto) = args.export {
        refuse_ungraded(&answer)?;
        refuse_open(&answer)?;
        context.printer.json(&statement(&here, &answer)?);
    } else if context.printer.is_json() {
        context.printer.json(&answer);
    } else {
        context.printer.text(text(&answer, args.all));
    }
    Ok(if answer.is_open() {
        ExitStatus::Missing
    } else {
        ExitStatus::answer(answer.accepted)
    })
}

/// A statement says yes or no.
fn refuse_open(answer: &Answer) -> Result<(), CliError> {
    if !answer.is_open() {
        return Ok(());
    }
    let open = "whether it is accepted can't be told here: this clone leaves out what it rests on";
    let error = CliError::new(ExitStatus::Missing, open);
    let hints = answer.remedies.iter().map(|one| format!("`{one}`"));
    Err(hints.fold(error, CliError::hint))
}

/// A statement is about a grade: a plain task has none.
fn refuse_ungraded(answer: &Answer) -> Result<(), CliError> {
    let ungraded = |report: &Report| {
        let delivered = report.delivered.as_ref();
        delivered.is_some_and(|delivered| delivered.grade.is_none())
    };
    if !matches!(&answer.tasks[..], [report] if ungraded(report)) {
        return Ok(());
    }
    let error = CliError::new(
        ExitStatus::No,
        "nothing was graded: a plain task is delivered without hidden tests",
    );
    Err(error.hint("a statement is about a test-first task that was delivered"))
}

fn text(answer: &Answer, all: bool) -> String {
    let mut out: Vec<String> = answer.links.iter().map(link).collect();
    out.extend(answer.faults.iter().map(fault));
    if let Some(revision) = &answer.revision {
        out.push(self::revision(revision));
    }
    for report in &answer.tasks {
        if all {
            line(report, &mut out);
        } else {
            page(report, &mut out);
        }
    }
    out.push(String::new());
    out.push(conclusion(answer, all));
    out.push(String::new());
    out.join("\n")
}

fn link(link: &Link) -> String {
    let (word, label) = match link.state {
        LinkState::Held => ("✓ holds    ", Label::Good),
        LinkState::Broken => ("✗ BROKEN   ", Label::Bad),
        LinkState::NotChecked => ("- unchecked", Label::Attention),
    };
    let name = link.name.as_str();
    format!(
        "  {}  {name:<9}  {}",
        paint(label, word),
        escape::line(&link.detail)
    )
}

fn fault(fault: &Fault) -> String {
    let when = if fault.only_now {
        " (under the newest policy only)"
    } else {
        ""
    };
    let place = fault.place.as_deref().unwrap_or(fault.link.as_str());
    // Some say themselves where they are.
    let place = if fault.what.contains(place) {
        String::new()
    } else {
        format!("{}: ", escape::line(place))
    };
    format!(
        "      {} {place}{}{when}",
        paint(Label::Bad, "fault:"),
        escape::line(&fault.what)
    )
}

fn revision(revision: &RevisionAnswer) -> String {
    let (word, label) = match revision.answer {
        Sameness::Exact => ("exact", Label::Good),
        Sameness::Rebased => ("rebased", Label::Good),
        Sameness::No => ("no", Label::Bad),
    };
    let text = format!(
        "\nRevision {}: {}, {}",
        paint(Label::Id, revision.commit.short()),
        paint(label, word),
        escape::line(&revision.detail)
    );
    if revision.left_out.is_empty() {
        return text;
    }
    let left: Vec<_> = revision.left_out.iter().map(ObjectId::short).collect();
    format!("{text}\n  left out, published tests: {}", left.join(", "))
}

fn page(report: &Report, out: &mut Vec<String>) {
    out.push(String::new());
    let title = report.title.as_deref().unwrap_or("(unreadable)");
    out.push(paint(Label::Heading, escape::line(title)));
    let key = report.key.as_deref().unwrap_or_default();
    out.push(format!(
        "  {}  {}",
        paint(Label::Id, &report.task),
        escape::line(key)
    ));
    for one in &report.links {
        out.push(link(one));
        let own = report.faults.iter().filter(|fault| fault.link == one.name);
        out.extend(own.map(fault));
    }
    for left_out in &report.not_here {
        out.push(format!(
            "  {} {}",
            paint(Label::Attention, "not here:"),
            escape::line(left_out)
        ));
    }
    for note in &report.notes {
        out.push(format!(
            "  {} {}",
            paint(Label::Hint, "note:"),
            escape::line(note)
        ));
    }
    out.push(String::new());
    if report.faults.is_empty() && !report.not_here.is_empty() {
        for question in ["valid then", "acceptable now"] {
            let word = paint(Label::Attention, "?  ");
            let why = "this clone leaves out what it rests on";
            out.push(format!("  {question:<15} {word}  {why}"));
        }
        return;
    }
    out.push(answer("valid then", report.valid_then, &then(report)));
    let now = match &report.delivered {
        None => "nothing was delivered yet",
        Some(_) => "under the newest policy",
    };
    out.push(answer("acceptable now", report.acceptable_now, now));
}

fn then(report: &Report) -> String {
    match &report.delivered {
        None => "nothing was delivered yet".into(),
        Some(delivered) if delivered.grade.is_none() => "it was delivered ungraded".into(),
        Some(delivered) => format!(
            "under policy version {}, the one of the delivery",
            delivered.policy_version
        ),
    }
}

fn answer(question: &str, yes: bool, more: &str) -> String {
    let (word, label) = if yes {
        ("yes", Label::Good)
    } else {
        ("no ", Label::Bad)
    };
    format!("  {question:<15} {}  {more}", paint(label, word))
}

/// One task of many.
fn line(report: &Report, out: &mut Vec<String>) {
    let (word, label) = match (&report.delivered, report.faults.is_empty()) {
        (_, true) if !report.not_here.is_empty() => ("? not here", Label::Attention),
        (_, false) if report.valid_then => ("✗ not now ", Label::Bad),
        (_, false) => ("✗ FAULTS  ", Label::Bad),
        (None, true) => ("- open    ", Label::Dim),
        (Some(delivered), true) if delivered.grade.is_none() => ("- ungraded", Label::Dim),
        (Some(_), true) => ("✓ accepted", Label::Good),
    };
    let title = report.title.as_deref().unwrap_or("(unreadable)");
    out.push(format!(
        "  {}  {}  {}",
        paint(label, word),
        paint(Label::Id, report.task.short()),
        escape::line(title)
    ));
    out.extend(report.faults.iter().map(fault));
    let left_out = report.not_here.iter();
    out.extend(left_out.map(|one| format!("      {}", escape::line(one))));
    if !report.notes.is_empty() {
        out.push(format!(
            "      {}: `hangar verify {}` shows what",
            count(report.notes.len(), "note", "notes"),
            report.task.short()
        ));
    }
    // Delivered, and not in this clone.
    let mut away = report.links.iter().filter(|link| {
        let unseen = (link.name, link.state) == (LinkName::Delivery, LinkState::NotChecked);
        unseen && report.delivered.is_some()
    });
    out.extend(
        away.next()
            .map(|link| format!("      {}", escape::line(&link.detail))),
    );
}

fn conclusion(answer: &Answer, all: bool) -> String {
    if answer.is_open() {
        let ways: Vec<_> = answer
            .remedies
            .iter()
            .map(|one| format!("`{one}`"))
            .collect();
        let ways = escape::line(&ways.join(", then ")).to_string();
        let words =
            format!("This clone can't tell: it leaves out what is needed. Fetch it: {ways}");
        return paint(Label::Attention, words);
    }
    if answer.accepted {
        let words = if all && answer.tasks.is_empty() {
            "This clone holds no task: nothing was verified."
        } else if all {
            "Nothing here is at fault."
        } else {
            "A stranger would accept this."
        };
        return paint(Label::Good, words);
    }
    let reports = answer.tasks.iter().map(|report| report.faults.len());
    let faults = answer.faults.len() + reports.sum::<usize>();
    let is_no = |revision: &RevisionAnswer| revision.answer == Sameness::No;
    let this = if answer.revision.as_ref().is_some_and(is_no) {
        "this revision"
    } else {
        "this"
    };
    let words = match faults {
        0 => format!("A stranger would not accept {this}."),
        number => format!(
            "A stranger would not accept {this}: {}.",
            count(number, "fault", "faults")
        ),
    };
    paint(Label::Bad, words)
}
