//! `hangar review`

use super::run::contradicting;
use crate::app::acceptance;
use crate::app::acceptance::changes::Changes;
use crate::app::acceptance::patch::PatchCard;
use crate::app::acceptance::review::{self, Card, CardTest, Wanted};
use crate::app::acceptance::transcript::{self, Turn};
use crate::base::words::count;
use crate::cli::args::MaybeTaskArg;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::grade::adapter::best_verdict;
use crate::grade::weak::Finding;
use crate::model::manifest::{BaseStatus, Writer};
use crate::ui::{Label, Printer, escape, paint};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar review
  hangar review KAN-80 --tests
  hangar review KAN-80 --file tests/test_sub.py
  hangar review KAN-80 --diff 1
  hangar review KAN-80 --patch";

/// Read the hidden tests of a version before you decide about them
///
/// Prints the approval card: criteria with the tests that show them and those that nothing shows,
/// how the tests ended on the untouched base, guards and skips, findings about weak tests, who wrote
/// them, the grading plan, and what changed since the version before. Decrypts in memory only; the
/// pager is fed through a pipe.
///
/// With `--patch` it shows instead what an accepted patch changes of CI, hooks, `.gitattributes` or
/// `hangar.toml`: such a patch is delivered only when an approver signs it. Needs no key.
///
/// What was shown last is what `hangar approve` and `hangar reject` are about. Refused in the
/// environment of an agent program.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReviewArgs {
    /// Which task.
    #[command(flatten)]
    pub task: MaybeTaskArg,
    /// Print every test file after the card
    #[arg(long)]
    pub tests: bool,
    /// Print one test file. May be given again and again
    #[arg(long, value_name = "PATH")]
    pub file: Vec<String>,
    /// Print the difference to version N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub diff: Option<u32>,
    /// Print the writer's transcript; where nothing could be sealed, that of the last turn with its
    /// complaints
    #[arg(long)]
    pub transcript: bool,
    /// Another version than the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub version: Option<u32>,
    /// Show the accepted patch that waits for an approver instead of the tests
    #[arg(long, conflicts_with_all = ["tests", "file", "diff", "transcript", "version"])]
    pub patch: bool,
}

pub(super) fn run(context: &Context, args: &ReviewArgs) -> Result<ExitStatus, CliError> {
    if args.patch {
        return patch(context, args.task.task.as_deref());
    }
    crate::cli::watch::protect();
    let wanted = Wanted {
        task: args.task.task.clone(),
        tests: args.tests,
        files: args.file.clone(),
        diff: args.diff,
        transcript: args.transcript,
        version: args.version,
    };
    let here = context.here();
    if let (Some(task), true) = (&wanted.task, asks_for_transcript_alone(&wanted))
        && let Some(turn) = transcript::last_turn(&here, task, &mut context.passphrase())?
    {
        if context.printer.is_json() {
            context.printer.json(&turn);
        } else {
            context.printer.page(&turn_text(&turn));
        }
        return Ok(ExitStatus::Done);
    }
    let card = review::review(&here, &wanted, &mut context.passphrase())?;
    if context.printer.is_json() {
        context.printer.json(&card);
    } else {
        context.printer.page(&text(&card, &wanted));
    }
    Ok(ExitStatus::Done)
}

fn patch(context: &Context, task: Option<&str>) -> Result<ExitStatus, CliError> {
    let card = acceptance::patch::review(&context.here(), task)?;
    if context.printer.is_json() {
        context.printer.json(&card);
    } else {
        context.printer.page(&patch_text(&card));
    }
    Ok(ExitStatus::Done)
}

fn patch_text(card: &PatchCard) -> String {
    let id = card.id.short();
    let mut out = vec![
        format!(
            "{}  {}",
            paint(Label::Heading, escape::line(&card.title)),
            paint(Label::Id, id)
        ),
        format!(
            "patch {} by {}, {} changed in all",
            paint(Label::Id, card.patch.short()),
            card.by,
            count(card.changed, "path", "paths")
        ),
        paint(Label::Dim, card.patch),
        match &card.grade {
            Some(grade) => format!(
                "accepted: {} of {} passed (trust {}, verdict {})",
                grade.passed,
                count(grade.expected, "hidden test", "hidden tests"),
                grade.trust,
                grade.verdict
            ),
            None => "a plain task: nothing was graded".into(),
        },
        String::new(),
        "It changes what configures CI, hooks, Git or hangar itself. The tests say".into(),
        "nothing about that, so an approver must sign it before it is delivered:".into(),
    ];
    if let Some(unlanded) = &card.unlanded {
        let text = format!("Note: {}.", escape::line(unlanded));
        out.extend([String::new(), paint(Label::Attention, text)]);
    }
    for change in &card.guarded {
        out.extend([
            String::new(),
            paint(Label::Heading, escape::line(&change.path)),
        ]);
        out.push(match &change.diff {
            Some(diff) => escape::block(diff.trim_end()).into_owned(),
            None => "  not shown: no text, too large, or only its mode changed".into(),
        });
    }
    let command = |text: String| paint(Label::Command, text);
    let (base, tree) = (card.base.short(), card.tree.short());
    out.extend([
        String::new(),
        format!(
            "The whole patch: {}",
            command(format!("git diff {base} {tree}"))
        ),
        format!(
            "Then:            {}",
            command(format!("hangar approve {id} --patch"))
        ),
        format!(
            "or:              {}",
            command(format!("hangar task cancel {id}"))
        ),
    ]);
    out.join("\n") + "\n"
}

fn asks_for_transcript_alone(wanted: &Wanted) -> bool {
    let transcript_alone = Wanted {
        task: wanted.task.clone(),
        transcript: true,
        ..Wanted::default()
    };
    *wanted == transcript_alone
}

fn turn_text(turn: &Turn) -> String {
    let (id, number) = (turn.id.short(), turn.turn);
    let head = format!(
        "{}  {}\nThe writer's last turn, number {number}: no version was sealed of it.\n\n{}",
        paint(Label::Heading, escape::line(&turn.title)),
        paint(Label::Id, id),
        paint(Label::Heading, "Transcript"),
    );
    let transcript = escape::block(turn.transcript.trim_end());
    format!("{}\n{transcript}\n", Printer::wrapped(&head))
}

/// The card, wrapped to the terminal, with what it shows of tests as it is.
fn text(card: &Card, wanted: &Wanted) -> String {
    let mut parts = vec![Printer::wrapped(&head(card).join("\n"))];
    parts.extend(bodies(card, wanted));
    parts.push(Printer::wrapped(&decisions(card, wanted.tests).join("\n")));
    parts.join("\n") + "\n"
}

fn head(card: &Card) -> Vec<String> {
    let mut out = vec![
        format!(
            "{}  {}",
            paint(Label::Heading, escape::line(&card.title)),
            paint(Label::Id, card.id.short())
        ),
        format!(
            "version {} of the hidden tests, {}",
            card.version,
            paint(Label::Id, card.manifest)
        ),
    ];
    out.extend(notes(card));
    if !card.mandate.is_empty() {
        out.extend([
            String::new(),
            escape::block(card.mandate.trim_end()).into_owned(),
        ]);
    }
    out.extend([String::new(), paint(Label::Heading, "Criteria")]);
    for one in &card.criteria {
        let mark = if one.uncovered {
            paint(Label::Attention, "  UNCOVERED")
        } else {
            String::new()
        };
        out.push(format!(
            "  {}  {}{mark}",
            one.criterion.id,
            escape::line(&one.criterion.text)
        ));
        out.extend(one.tests.iter().map(line));
    }
    if !card.others.is_empty() {
        out.extend([String::new(), paint(Label::Heading, "Other tests")]);
        out.extend(card.others.iter().map(line));
    }
    if !card.findings.is_empty() {
        out.extend([String::new(), paint(Label::Heading, "Worth a second look")]);
        let line = |one: &Finding| {
            format!(
                "  {}: {}",
                escape::line(&one.about),
                escape::line(&one.says)
            )
        };
        out.extend(card.findings.iter().map(line));
    }
    rest(card, &mut out);
    out
}

/// What a reader must know before they read on.
fn notes(card: &Card) -> Vec<String> {
    let mut out = Vec::new();
    if card.stale {
        out.push(paint(
            Label::Attention,
            "The task's text was edited after these tests were written.",
        ));
    }
    if let Some(newer) = card.superseded_by {
        let text = format!("Superseded by version {newer}.");
        out.push(paint(Label::Attention, text));
    }
    if !card.contradicting.is_empty() {
        out.push(paint(
            Label::Attention,
            "Documents about it contradict each other:",
        ));
        let line = |one| format!("  {}", contradicting(one));
        out.extend(card.contradicting.iter().map(line));
    }
    if !card.leaked.is_empty() {
        let numbers: Vec<_> = card.leaked.iter().map(u32::to_string).collect();
        let text = format!(
            "Tests of this task got out (version {}): these must not repeat them.",
            numbers.join(", ")
        );
        out.push(paint(Label::Attention, text));
    }
    if card.after_code {
        out.push(paint(Label::Attention, "Sealed after code was seen."));
    }
    if let Some(unlanded) = &card.unlanded {
        let text = format!("Note: {}.", escape::line(unlanded));
        out.push(paint(Label::Attention, text));
    }
    out
}

fn line(test: &CardTest) -> String {
    let class = test
        .class
        .map(|class| format!(", {class}"))
        .unwrap_or_default();
    let base = match test.base {
        Some(BaseStatus::Fails) => format!("fails on the base{class}"),
        Some(BaseStatus::Guard) => "guard: passes on the base".into(),
        Some(BaseStatus::Skipped) => "skipped on the base".into(),
        Some(BaseStatus::Unconfirmed) => "the base does not compile with it".into(),
        None => "no base result".into(),
    };
    let flaky = if test.flaky {
        paint(Label::Attention, ", FLAKY")
    } else {
        String::new()
    };
    format!(
        "      {:<6} {}  ({base}{flaky})",
        test.alias,
        escape::line(&test.id)
    )
}

fn rest(card: &Card, out: &mut Vec<String>) {
    let counts = card.counts;
    out.extend([String::new(), paint(Label::Heading, "Numbers")]);
    let mut numbers = format!(
        "  {} in {}: {} on the base, {}",
        count(counts.tests, "test", "tests"),
        count(counts.files, "file", "files"),
        count(counts.fails, "fails", "fail"),
        count(counts.guards, "guard", "guards")
    );
    let rare = [
        (counts.skipped, "skipped"),
        (counts.unconfirmed, "unconfirmed"),
        (counts.flaky, "flaky"),
    ];
    for (number, word) in rare.into_iter().filter(|(number, _)| *number > 0) {
        numbers = format!("{numbers}, {number} {word}");
    }
    out.push(numbers);
    out.push(format!(
        "  {} that any implementation must fail",
        count(counts.sentinels, "sentinel", "sentinels")
    ));
    out.extend([String::new(), paint(Label::Heading, "Files")]);
    let names: Vec<_> = card
        .files
        .iter()
        .map(|file| escape::line(&file.path))
        .collect();
    let widest = names.iter().map(|name| name.chars().count()).max();
    let width = widest.unwrap_or_default();
    out.extend(card.files.iter().zip(&names).map(|(file, name)| {
        let size = count(file.bytes, "byte", "bytes");
        format!("  {name:<width$}  {size}")
    }));
    if !card.notes.is_empty() {
        out.extend([String::new(), paint(Label::Heading, "The writer's notes")]);
        out.push(escape::block(card.notes.trim_end()).into_owned());
    }
    out.extend([
        String::new(),
        paint(Label::Heading, "Written by"),
        format!("  {}", writer(&card.writer)),
    ]);
    plan(card, out);
    if let Some(changes) = &card.changes {
        changed(card, changes, out);
    }
}

/// What changed since another version.
fn changed(card: &Card, changes: &Changes, out: &mut Vec<String>) {
    let heading = format!("Changed since version {}", changes.since);
    out.extend([String::new(), paint(Label::Heading, heading)]);
    if changes.since == card.version {
        out.push("  it is this version itself: nothing differs".into());
        return;
    }
    if changes.is_empty() {
        out.push("  neither a file, nor what a test stands for, nor the plan".into());
        return;
    }
    if changes.same_files() {
        out.push("  no file differs".into());
    }
    let files = [
        ("added", &changes.added),
        ("changed", &changes.changed),
        ("removed", &changes.removed),
    ];
    for (word, paths) in files {
        let line = |path: &String| format!("  {word:<9} {}", escape::line(path));
        out.extend(paths.iter().map(line));
    }
    let places = |places: &[String]| match places {
        [] => "no test".to_owned(),
        places => places.join(", "),
    };
    out.extend(changes.tests.iter().map(|test| {
        let (before, after) = (places(&test.before), places(&test.after));
        let id = escape::line(&test.id);
        paint(
            Label::Attention,
            format!("  test      {id}: {before} → {after}"),
        )
    }));
    let value = |text: &str| match text {
        "" => "none".to_owned(),
        text => escape::line(text).into_owned(),
    };
    out.extend(changes.plan.iter().map(|change| {
        let (before, after) = (value(&change.before), value(&change.after));
        let text = format!("  plan      {}: {before} → {after}", change.field);
        paint(Label::Attention, text)
    }));
}

/// Files, difference and transcript: never wrapped.
fn bodies(card: &Card, wanted: &Wanted) -> Vec<String> {
    let mut out = Vec::new();
    for file in &card.shown {
        out.extend([
            String::new(),
            paint(Label::Heading, escape::line(&file.path)),
        ]);
        out.push(escape::block(file.text.trim_end()).into_owned());
    }
    if let Some(diff) = &card.diff {
        let diff = diff.trim_end();
        let shown = if diff.is_empty() {
            "no file differs".into()
        } else {
            escape::block(diff)
        };
        out.extend([
            String::new(),
            paint(Label::Heading, "Difference"),
            shown.into_owned(),
        ]);
    }
    if wanted.transcript {
        let shown = match (&card.transcript, &card.writer) {
            (Some(transcript), _) => escape::block(transcript.trim_end()),
            (None, Writer::Person { .. }) => "  there is none: a person wrote these tests".into(),
            (None, Writer::Agent { .. }) => {
                "  it can't be opened with your key, or it was not kept".into()
            }
        };
        let heading = paint(Label::Heading, "Transcript");
        out.extend([String::new(), heading, shown.into_owned()]);
    }
    out
}

/// What can be done next.
fn decisions(card: &Card, all_shown: bool) -> Vec<String> {
    let id = card.id.short();
    if let Some(newer) = card.superseded_by {
        let next = paint(Label::Command, format!("hangar review {id}"));
        return vec![
            String::new(),
            format!("Only the newest version can be decided about: {next} shows version {newer}."),
        ];
    }
    let command = |words: String| paint(Label::Command, words);
    let mut out = vec![String::new()];
    if !all_shown {
        let read = command(format!("hangar review {id} --tests"));
        out.push(format!("Read the files:  {read}"));
    }
    if !card.contradicting.is_empty() {
        let stands = command(format!("hangar adjudicate {id} DIGEST --reason TEXT"));
        out.push(format!(
            "Then:            {stands}  (says which one stands)"
        ));
        return out;
    }
    if card.ended {
        out.push("The task is over: there is nothing left to decide.".into());
        return out;
    }
    let leaked = card.leaked.contains(&card.version);
    if card.stale || leaked {
        let run = command(format!("hangar run {id}"));
        out.push(format!("Then:            {run}  (writes the next version)"));
        if !leaked {
            let edit = command(format!("hangar task edit {id}"));
            out.push(format!(
                "or:              {edit}  (with the text put back, this version counts again)"
            ));
        }
        return out;
    }
    out.push(format!(
        "Then:            {}",
        command(format!("hangar approve {id}"))
    ));
    out.push(format!(
        "or:              {}",
        command(format!("hangar reject {id} --reason TEXT"))
    ));
    out
}

fn writer(writer: &Writer) -> String {
    match writer {
        Writer::Agent {
            harness,
            program,
            model,
            ..
        } => {
            let model = if model.is_empty() {
                String::new()
            } else {
                format!(", model {model}")
            };
            escape::line(&format!("{harness} (kind {program}{model})")).into_owned()
        }
        Writer::Person { name } => format!("{name}, by hand"),
    }
}

fn plan(card: &Card, out: &mut Vec<String>) {
    let plan = &card.plan;
    out.extend([String::new(), paint(Label::Heading, "How they are run")]);
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            out.push(format!("  {name:<10} {}", escape::line(value)));
        }
    };
    field("framework", plan.framework.as_str());
    field("prepare", &plan.prepare);
    if plan.reprepare {
        field(
            "",
            "once more for a patch that changes what it reads: packages that the base lacks are added",
        );
    }
    field("build", &plan.build);
    field("tests", &plan.tests.join(", "));
    field("may touch", &plan.may_touch.join(", "));
    field("options", &plan.options.join(" "));
    field("plugins", &plan.plugins.join(", "));
    let variables = plan
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    field("env", &variables.collect::<Vec<_>>().join(" "));
    field("protected", &plan.protected.join(", "));
    field(
        "least",
        &format!("trust {}, verdict {}", plan.trust, plan.verdict),
    );
    let best = best_verdict(plan.framework, card.counts.sentinels > 0);
    let enough = if best < plan.verdict {
        ", so no patch can be accepted"
    } else {
        ""
    };
    field("at best", &format!("verdict {best}{enough}"));
    field("timeout", &format!("{} s", plan.limits.timeout));
    let limits = &plan.limits;
    let [memory, disk, output] =
        [limits.memory, limits.disk, limits.output].map(crate::config::units::size_text);
    let limits = format!(
        "memory {memory}, disk {disk}, output {output}, {}",
        count(limits.processes, "process", "processes")
    );
    field("limits", &limits);
    if plan.repeat > 1 {
        field(
            "repeated",
            &format!("{} times on the base, to find flakes", plan.repeat),
        );
    }
}
