//! `hangar task list`

use crate::app::tasks::list::{Filter, TaskLine, TaskList, list};
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::model::task::{Stage, State};
use crate::ui::{Label, Table, escape};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar task list
  hangar task list --state queued --tag rust
  hangar task list --stage awaiting-approval
  hangar task list --all --json";

/// List tasks: first by priority, then by age
///
/// In a pipe the columns are separated by tabs and complete: full id, key, state, stage, priority,
/// requester, title.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Only tasks with this text in title, mandate, key or id
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// Only tasks in this state. May be given again and again
    #[arg(short, long = "state", value_name = "STATE", value_parser = words::state())]
    pub states: Vec<State>,
    /// Only tasks in this stage. May be given again and again
    #[arg(long = "stage", value_name = "STAGE", value_parser = words::stage())]
    pub stages: Vec<Stage>,
    /// Ended tasks too
    #[arg(short, long)]
    pub all: bool,
    /// Only tasks that you asked for
    #[arg(short, long)]
    pub mine: bool,
    /// Only tasks with this tag. May be given again and again
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

pub(super) fn run(context: &Context, args: ListArgs) -> Result<ExitStatus, CliError> {
    let filter = Filter {
        states: args.states,
        stages: args.stages,
        all: args.all,
        mine: args.mine,
        tags: args.tags,
        text: args.text,
    };
    let list = list(&context.here(), &filter)?;
    for fault in &list.faults {
        let (id, reason) = (fault.id.short(), escape::line(&fault.reason));
        context
            .printer
            .warn(format!("task {id} can't be read: {reason}"));
    }
    if context.printer.is_json() {
        context.printer.json(&list);
    } else if list.tasks.is_empty() {
        context.printer.notice("no task");
    } else {
        context.printer.table(&table(&list));
    }
    Ok(ExitStatus::Done)
}

fn table(list: &TaskList) -> Table {
    let mut table = Table::new(&["ID", "KEY", "STATE", "STAGE", "PRI", "REQUESTER", "TITLE"]);
    let short = crate::ui::Printer::width().is_some();
    for task in &list.tasks {
        let id = if short {
            task.id.short()
        } else {
            task.id.as_str()
        };
        let stage = task.stage.map_or("-".into(), |stage| stage.to_string());
        table.row([
            (id, Some(Label::Id)),
            (task.key.as_deref().unwrap_or("-"), None),
            (&task.state.to_string(), state_label(task)),
            (&stage, None),
            (&task.priority.to_string(), None),
            (task.requester.as_str(), None),
            (&task.title, None),
        ]);
    }
    table
}

const fn state_label(task: &TaskLine) -> Option<Label> {
    match task.state {
        State::Draft | State::Deleted => Some(Label::Dim),
        State::Queued | State::Assigned | State::Working => None,
        State::Done => Some(Label::Good),
        State::Failed | State::Rejected => Some(Label::Bad),
    }
}
