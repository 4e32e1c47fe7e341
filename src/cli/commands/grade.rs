//! `hangar grade`

use crate::app::acceptance::grade::{self, GradeView, Patch, Wanted};
use crate::base::words::{count, word};
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::outcome::Trust;
use crate::ui::{Label, escape, paint};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  hangar grade KAN-80 --rev pull/12/head
  hangar grade KAN-80 --patch fix.diff --json
  hangar grade KAN-80 --dry-run --version 2
  hangar grade KAN-80 --require-trust sealed+limits

Exit codes: 0 accepted, 1 not accepted or void, 3 the sandbox holds too little, 4 no version decides:
none is approved, or the task's text was edited since, or the task has ended.";

/// Grade any patch with the sealed tests of a task
///
/// The approved version is run on base + patch in a fresh sealed sandbox without network, and the
/// signed grade says how far it can be trusted. This is what CI runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GradeArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Revision with the patch: compared with its merge base with the task's base [default: HEAD]
    #[arg(long, value_name = "REV", conflicts_with = "patch")]
    pub rev: Option<String>,
    /// Patch file that applies to the task's base (`-` is standard input)
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Sealed version [default: the approved one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub version: Option<u32>,
    /// Sandbox provider [default: as configured]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Refuse (exit 3) before a test runs when the sandbox was measured to hold less than this;
    /// plan and policy may ask for more [none, confined, sealed, sealed+limits, isolated]
    #[arg(long, value_name = "LEVEL")]
    pub require_trust: Option<Trust>,
    /// Record nothing; also a version that does not decide (not approved, of another text) may be used, and is named so
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(context: &Context, args: &GradeArgs) -> Result<ExitStatus, CliError> {
    let patch = match (&args.rev, &args.patch) {
        (_, Some(file)) => Patch::Text(context.read_bytes(file)?),
        (Some(rev), None) => Patch::Revision(rev.clone()),
        (None, None) => Patch::Revision("HEAD".into()),
    };
    let wanted = Wanted {
        task: args.task.task.clone(),
        patch,
        version: args.version,
        provider: args.provider.clone(),
        require: args.require_trust,
        dry_run: args.dry_run,
    };
    let view = watched(context, "grading", |watch| {
        Ok(grade::grade(&context.here(), &wanted, watch)?)
    })?;
    if context.printer.is_json() {
        context.printer.json(&view);
    } else {
        context.printer.text(text(&view));
    }
    Ok(if view.accepted {
        ExitStatus::Done
    } else {
        ExitStatus::No
    })
}

fn text(view: &GradeView) -> String {
    let word = match (view.accepted, view.void) {
        (true, _) => paint(Label::Good, "accepted"),
        (false, true) => paint(Label::Bad, "void: the grade says nothing about the patch"),
        (false, false) => paint(Label::Bad, "not accepted"),
    };
    let counts = view.counts;
    let mut lines = vec![
        format!("grade      {word}"),
        format!(
            "tests      {} of {} passed, {} failed, {} skipped, {} missing",
            counts.passed, counts.expected, counts.failed, counts.skipped, counts.missing
        ),
        format!("trust      {}", view.trust),
        match &view.verdict_why {
            Some(why) => format!("verdict    {} ({why})", view.verdict),
            None => format!("verdict    {}", view.verdict),
        },
        format!("secrecy    {}", view.secrecy),
        format!(
            "version    {} ({}{})",
            view.version,
            view.manifest.short(),
            match (view.approved, view.stale) {
                (true, _) => "",
                (false, true) => ", NOT of the task's text: it was edited since",
                (false, false) => ", NOT approved",
            }
        ),
        format!("sandbox    {}", escape::line(&view.provider)),
    ];
    if counts.sentinels > 0 {
        lines.push(format!(
            "sentinels  {} of {} failed as they must",
            counts.sentinels_held, counts.sentinels
        ));
    }
    if view.reprepared {
        lines
            .push("packages   those of the base, and behind them those that the patch adds".into());
    }
    if view.put_back > 0 {
        lines.push(format!("put back   {}", put_back(view.put_back)));
    }
    if view.unchanged {
        lines.push("patch      empty: this is the task's base as it is".into());
    }
    lines.extend(
        view.reasons
            .iter()
            .map(|reason| format!("reason     {}", escape::line(reason))),
    );
    lines.extend(touches(&view.protected_touched));
    lines.extend(view.guarded.iter().map(|path| {
        let path = escape::line(path);
        format!("sign       {path}: delivered only when an approver signs the patch")
    }));
    lines.extend(
        view.limits_hit
            .iter()
            .map(|limit| format!("limit      {}", escape::line(limit))),
    );
    lines.push(match &view.grade {
        Some(digest) => format!("signed     {}", digest.short()),
        None => "signed     no (dry run, nothing was recorded)".into(),
    });
    lines.join("\n") + "\n"
}

/// Protected paths that a patch changes, and what allows it.
pub(super) fn touches(paths: &[String]) -> Vec<String> {
    let path = |path: &String| format!("touches    {}", escape::line(path));
    let mut lines: Vec<_> = paths.iter().map(path).collect();
    if !lines.is_empty() {
        lines.push(
            "allow      where a task needs it: `grader.may_touch` in the hangar.toml of its base"
                .into(),
        );
    }
    lines
}

/// What a grade says nothing about: paths of the patch in whose place those of the base were run.
pub(super) fn put_back(paths: u32) -> String {
    let paths = usize::try_from(paths).unwrap_or(usize::MAX);
    format!(
        "{} where tests lie, run as the base has {}, delivered as the patch has {1}",
        count(paths, "path", "paths"),
        word(paths, "it", "them"),
    )
}
