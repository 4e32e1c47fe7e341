//! `hangar task list`

use crate::app::tasks::list::{Filter, Sort, Standing, TaskLine, TaskList, list};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::model::task::{Stage, State};
use crate::ui::{Label, Printer, Progress, Table, escape};
use clap::{Args, ValueEnum};
use std::time::{Duration, Instant};

/// Most tasks that a terminal gets unless it asks for more.
const LIMIT: usize = 50;
/// How long reading takes before its progress is shown.
const SLOW: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  hangar task list                              what is open
  hangar task list --mine --sort updated -n 10  mine, as they changed last
  hangar task list --state queued --tag rust    what a worker could take
  hangar task list --state draft,awaiting-approval
  hangar task list subtract --all               by text, also ended ones
  hangar task list --all --json                 everything, for scripts";

/// List tasks: first by priority, then by age
///
/// A terminal gets the first 50; a pipe and --json get all. In a pipe the columns are separated by tabs
/// and complete: full id, key, state, stage, priority, requester, title.
///
/// What was read is kept in an index (`hangar/index.db` in Git's folder), so that the next listing only
/// reads what changed. It can be deleted at any time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Only tasks with this text in title, mandate, criteria, key or id, whatever the case
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// Only tasks in one of these states or stages, with commas between them. May be given again and
    /// again
    #[arg(short, long = "state", value_name = "STATE", value_delimiter = ',', value_parser = words::standing())]
    pub states: Vec<Standing>,
    /// Only tasks in one of these stages, where --state fits as well. May be given again and again
    #[arg(long = "stage", value_name = "STAGE", value_delimiter = ',', value_parser = words::stage())]
    pub stages: Vec<Stage>,
    /// Ended tasks too
    #[arg(short, long)]
    pub all: bool,
    /// Ended tasks too, also those in the archive
    #[arg(long)]
    pub archived: bool,
    /// Only tasks that you asked for, or that a machine of yours holds
    #[arg(short, long)]
    pub mine: bool,
    /// Only tasks with this tag. May be given again and again
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// In which order
    #[arg(long, value_name = "ORDER", default_value = "priority")]
    pub sort: Order,
    /// At most so many; 0 is all [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub limit: Option<usize>,
}

/// The order of a listing.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Order {
    /// First by priority, then by age
    Priority,
    /// The newest first
    Newest,
    /// The oldest first
    Oldest,
    /// What changed last first
    Updated,
    /// From draft to deleted
    State,
    /// By title
    Title,
}

impl From<Order> for Sort {
    fn from(order: Order) -> Self {
        match order {
            Order::Priority => Self::Priority,
            Order::Newest => Self::Newest,
            Order::Oldest => Self::Oldest,
            Order::Updated => Self::Updated,
            Order::State => Self::State,
            Order::Title => Self::Title,
        }
    }
}

pub(super) fn run(context: &Context, args: ListArgs) -> Result<ExitStatus, CliError> {
    let printer = &context.printer;
    let filter = Filter {
        states: args.states,
        stages: args.stages,
        all: args.all,
        archived: args.archived,
        mine: args.mine,
        tags: args.tags,
        text: args.text,
        sort: args.sort.into(),
        limit: limit(args.limit, Printer::width().is_some() && !printer.is_json()),
    };
    let mut reading = Reading::start(printer);
    let list = list(&context.here(), &filter, &mut |done, of| {
        reading.tick(done, of);
    });
    reading.finish();
    let list = list?;
    for fault in &list.faults {
        let (id, reason) = (fault.id.short(), escape::line(&fault.reason));
        printer.warn(format!("task {id} can't be read: {reason}"));
    }
    for fault in &list.damaged {
        let reason = escape::line(&fault.reason);
        printer.warn(format!(
            "{reason}; tasks in this archive are not listed. `git fsck` names every object that is lost; where the remote is whole, a new clone lists them"
        ));
    }
    if let Some(trouble) = &list.trouble {
        printer.detail(format!("{}; this cost time only", escape::line(trouble)));
    }
    if printer.is_json() {
        printer.json(&list);
    } else if list.tasks.is_empty() && list.more == 0 {
        printer.notice("no task");
    } else {
        printer.table(&table(&list));
    }
    let doubted = list.tasks.iter().filter(|task| task.doubt.is_some());
    match doubted.count() {
        0 => {}
        some => printer.warn(format!(
            "{} by a key that does not count any more: `hangar task show` says why",
            count(some, "task was made", "tasks were made")
        )),
    }
    if list.more > 0 {
        let more = count(list.more, "more task", "more tasks");
        printer.notice(format!("{more}; `--limit 0` shows all"));
    }
    Ok(ExitStatus::Done)
}

/// How many are wanted; `None` is all.
fn limit(asked: Option<usize>, terminal: bool) -> Option<usize> {
    match asked {
        Some(0) => None,
        None => terminal.then_some(LIMIT),
        asked => asked,
    }
}

/// Progress that is shown once reading takes long.
struct Reading<'a> {
    printer: &'a Printer,
    began: Instant,
    line: Option<Progress>,
}

impl<'a> Reading<'a> {
    fn start(printer: &'a Printer) -> Self {
        Self {
            printer,
            began: Instant::now(),
            line: None,
        }
    }

    fn tick(&mut self, done: usize, of: usize) {
        if self.began.elapsed() < SLOW {
            return;
        }
        let text = format!("reading {done} of {}", count(of, "task", "tasks"));
        match &self.line {
            Some(line) => line.stage(&text),
            None => self.line = Some(Progress::start(self.printer, &text)),
        }
    }

    fn finish(self) {
        if let Some(line) = self.line {
            line.finish();
        }
    }
}

fn table(list: &TaskList) -> Table {
    let mut table = Table::new(&["ID", "KEY", "STATE", "STAGE", "PRI", "REQUESTER", "TITLE"]);
    let short = Printer::width().is_some();
    for task in &list.tasks {
        let id = if short {
            task.id.short()
        } else {
            task.id.as_str()
        };
        let doubted = task.doubt.as_ref();
        let doubted = doubted.map(|_| format!("{} (does not count)", task.requester));
        let requester = match &doubted {
            Some(text) => (text.as_str(), Some(Label::Bad)),
            None => (task.requester.as_str(), None),
        };
        let stage = task.stage.map_or("-".into(), |stage| stage.to_string());
        table.row([
            (id, Some(Label::Id)),
            (task.key.as_deref().unwrap_or("-"), None),
            (&task.state.to_string(), state_label(task)),
            (&stage, None),
            (&task.priority.to_string(), None),
            requester,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_is_spared_what_it_did_not_ask_for() {
        assert_eq!(limit(None, true), Some(LIMIT));
        assert_eq!(limit(None, false), None);
        for terminal in [true, false] {
            assert_eq!(limit(Some(0), terminal), None);
            assert_eq!(limit(Some(3), terminal), Some(3));
        }
    }
}
