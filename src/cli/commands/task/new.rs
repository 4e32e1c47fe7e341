//! `hangar task new`

use super::input::{TextArgs, edit, with_text};
use crate::app::tasks::draft::{Draft, read_lines};
use crate::app::tasks::new::{NewTask, new};
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::model::task::{Flow, Mode};
use crate::ui::Printer;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  hangar task new \"Reject empty names\" -c \"an empty name raises ValueError\"
  hangar task new \"Parse dates\" --criteria criteria.md -F mandate.md
  hangar task new --from backlog.jsonl

A line of a JSON lines file is an object with `title` and, as needed, `mandate`, `criteria` (a list \
of texts), `flow`, `mode`, `priority`, `base`, `key`, `tags`.";

/// Create a draft task and print its id
///
/// The task starts from the commit of --base (default HEAD), whose hangar.toml says how its code is
/// built and tested. Without a title on a terminal, $EDITOR opens with a template.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NewArgs {
    /// Title, one line
    #[arg(value_name = "TITLE")]
    pub title: Option<String>,
    /// Criteria and mandate.
    #[command(flatten)]
    pub text: TextArgs,
    /// Hidden tests first [default: as hangar.toml says]
    #[arg(long, conflicts_with = "plain")]
    pub test_first: bool,
    /// No hidden tests
    #[arg(long)]
    pub plain: bool,
    /// Revision to start from [default: HEAD]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// The key by which another system knows it: a word without `/`, `..` or a leading `-`
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// 1 (first) to 9 (last) [default: 5]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub priority: Option<u8>,
    /// A capability that a worker must have. May be given again and again
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Kind of work [default: implement]
    #[arg(long, value_name = "MODE", value_parser = words::mode())]
    pub mode: Option<Mode>,
    /// Create one task for each line of a JSON lines file (`-` is standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["title", "criterion", "criteria", "mandate_file", "key"])]
    pub from: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: NewArgs) -> Result<ExitStatus, CliError> {
    let many = args.from.is_some();
    let typed = args.title.is_none() && !many;
    let drafts = drafts(context, args)?;
    let made =
        new(&context.here(), &drafts, &mut context.passphrase()).map_err(|error| {
            match (CliError::from(error), drafts.first()) {
                (error, Some(draft)) if typed => with_text(error, draft),
                (error, _) => error,
            }
        })?;
    for task in &made {
        tell(context, task, many);
    }
    Ok(ExitStatus::Done)
}

fn tell(context: &Context, task: &NewTask, many: bool) {
    match (context.printer.is_json(), many) {
        (true, true) => context.printer.json_line(task),
        (true, false) => context.printer.json(task),
        (false, _) => context.printer.line(&task.id),
    }
    if task.flow == Flow::TestFirst && task.criteria == 0 {
        context.printer.notice(
            "it has no criteria yet; hidden tests are written from them (`hangar task edit`)",
        );
    }
}

fn drafts(context: &Context, args: NewArgs) -> Result<Vec<Draft>, CliError> {
    let flow = match (args.test_first, args.plain) {
        (true, _) => Some(Flow::TestFirst),
        (false, true) => Some(Flow::Plain),
        (false, false) => None,
    };
    if let Some(path) = &args.from {
        let mut drafts = read_lines(&context.read_text(path)?)?;
        if drafts.is_empty() {
            let source = match path.to_str() {
                Some("-") => "standard input".into(),
                _ => path.display().to_string(),
            };
            return Err(CliError::usage(format!("{source} holds no task")));
        }
        for draft in &mut drafts {
            draft.flow = draft.flow.or(flow);
            draft.mode = draft.mode.or(args.mode);
            draft.priority = draft.priority.or(args.priority);
            draft.base = draft.base.take().or_else(|| args.base.clone());
            draft.tags.extend(args.tags.iter().cloned());
        }
        return Ok(drafts);
    }
    let draft = Draft {
        mandate: args.text.mandate(context)?.unwrap_or_default(),
        criteria: args.text.criteria(context)?.unwrap_or_default(),
        title: args.title.unwrap_or_default(),
        flow,
        mode: args.mode,
        priority: args.priority,
        base: args.base,
        key: args.key,
        tags: args.tags,
        line: None,
    };
    if !draft.title.trim().is_empty() {
        return Ok(vec![draft]);
    }
    if !Printer::is_interactive() {
        return Err(CliError::usage("a task needs a title").hint(
            "`hangar task new \"What is to be done\"`; on a terminal $EDITOR opens without one",
        ));
    }
    match edit(&draft)? {
        Some(draft) => Ok(vec![draft]),
        None => Err(CliError::new(ExitStatus::Interrupted, "no title, no task")),
    }
}
