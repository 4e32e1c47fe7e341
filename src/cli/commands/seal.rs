//! `hangar seal`

use crate::app::acceptance::seal::{self, Source};
use crate::base::words::count;
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::ids::CriterionId;
use crate::ui::{Label, paint};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  hangar seal KAN-80 --from ../hidden
  hangar seal KAN-80 --from ../hidden --map c1=tests/test_sub.py::test_negative
  hangar seal KAN-80 --from ../hidden --map c1=tests/a.sh --sentinel tests/x.sh

Without a criteria.json in the folder, tests that no --map names are guards or tests of no \
criterion in particular. With tap these are the tests that a run on the base reports; give all others \
in a criteria.json. A sentinel lies in a file of its own, and fails on the base by an \
assertion. Let it call existing code that the task changes, with inputs that no test uses: with cargo, go, ctest, tap and exec each test is a \
process of its own, and a sentinel meets the patch only by calling it.";

/// Seal hidden tests that a person wrote
///
/// The files of the folder are taken as paths below the repository's root. They go through the same
/// checks as an agent's: the base check in a sandbox, sealing, and a person's approval. The folder
/// is only read, nothing of it is written into the repository in clear.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SealArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Folder with the test files, and perhaps a criteria.json
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Which test shows a criterion: c1=TEST-ID. May be given again and again
    #[arg(long, value_name = "CRITERION=ID", value_parser = mapping)]
    pub map: Vec<(String, String)>,
    /// A test that any implementation must fail. May be given again and again
    #[arg(long, value_name = "ID")]
    pub sentinel: Vec<String>,
}

fn mapping(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(_, id)| !id.is_empty());
    let (criterion, id) =
        parts.ok_or("expected CRITERION=ID, such as c1=tests/test_a.py::test_b")?;
    Ok((criterion.trim().to_owned(), id.to_owned()))
}

pub(super) fn run(context: &Context, args: &SealArgs) -> Result<ExitStatus, CliError> {
    let source = Source {
        folder: context.dir.join(&args.from),
        map: args.map.clone(),
        sentinels: args.sentinel.clone(),
    };
    let sealed = watched(context, "reading the tests", |watch| {
        let ask = &mut context.passphrase();
        Ok(seal::seal(
            &context.here(),
            &args.task.task,
            &source,
            ask,
            watch,
        )?)
    })?;
    if context.printer.is_json() {
        context.printer.json(&sealed);
        return Ok(ExitStatus::Done);
    }
    let counts = sealed.counts;
    let id = sealed.id.short();
    context.printer.text(format!(
        "sealed     version {} ({}): {}, {} on the base, {}, {} skipped, {}",
        sealed.version,
        sealed.manifest.short(),
        count(counts.tests, "test", "tests"),
        count(counts.fails, "fails", "fail"),
        count(counts.guards, "guard", "guards"),
        counts.skipped,
        count(counts.sentinels, "sentinel", "sentinels")
    ));
    if !sealed.uncovered.is_empty() {
        let ids: Vec<_> = sealed.uncovered.iter().map(CriterionId::as_str).collect();
        let ids = paint(Label::Attention, ids.join(", "));
        context
            .printer
            .line(format!("uncovered  {ids}: no test of it fails on the base"));
    }
    let next = format!("hangar review {id} && hangar approve {id}");
    context
        .printer
        .line(format!("next       {}", paint(Label::Command, next)));
    Ok(ExitStatus::Done)
}
