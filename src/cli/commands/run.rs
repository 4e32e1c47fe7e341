//! `hangar run`

use crate::app::acceptance::contradicting::{Contradicting, Says};
use crate::app::acceptance::run::{self, How, RunView, Stopped};
use crate::base::words::count;
use crate::cli::args::TaskArg;
use crate::cli::commands::grade::touches;
use crate::cli::watch::watched;
use crate::cli::words;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::flow::outage::Patience;
use crate::model::task::Stage;
use crate::ui::{Label, escape, paint};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar run KAN-80
  hangar run KAN-80 --until awaiting-approval
  hangar run KAN-80 --wait

Exit codes: 0 delivered (or the stage of --until is reached), 1 ended without an accepted result, \
5 held by another worker, 6 waiting for a person (the command they type is printed), 7 no agent \
program can work now, or one failed (running it again is safe).";

/// Drive a task to the next point where a person is needed, or to its end
///
/// Enqueues a draft that you may enqueue, claims it, and goes through the stages: hidden tests are
/// written, checked on the untouched base and sealed; after a person's approval the implementer
/// works, the approved tests are run on base + patch in a fresh sandbox, and what is accepted goes
/// to a branch. A plain task is implemented and delivered ungraded.
///
/// Where an agent program is at a usage limit, overloaded or not logged in, the next lane of its role
/// goes on in the same run (`hangar harness list` shows how each of them is).
///
/// Safe to run again after any interruption: it goes on from what is recorded on the refs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Stop before the first step after this stage. Writing, checking and sealing are one step: tests
    /// never lie on a disk
    #[arg(long, value_name = "STAGE", value_parser = words::stage())]
    pub until: Option<Stage>,
    /// Where every agent program is at a limit or overloaded, wait for the first that can work again
    /// instead of ending with exit code 7
    #[arg(long)]
    pub wait: bool,
}

pub(super) fn run(context: &Context, args: &RunArgs) -> Result<ExitStatus, CliError> {
    let patience = if args.wait {
        Patience::Wait
    } else {
        Patience::None
    };
    let view = watched(context, "starting", |watch| {
        let ask = &mut context.passphrase();
        Ok(run::run(
            &context.here(),
            &args.task.task,
            How {
                until: args.until,
                patience,
            },
            ask,
            watch,
        )?)
    })?;
    Ok(tell(context, &view))
}

/// Shows where a task stopped and what a person does next; `submit` and `deliver` do the same.
pub(super) fn tell(context: &Context, view: &RunView) -> ExitStatus {
    let status = status(view);
    if context.printer.is_json() {
        context.printer.json(view);
        return status;
    }
    for line in outcome(view) {
        context.printer.text(line);
    }
    for (at, command) in next_commands(view).into_iter().enumerate() {
        let label = if at == 0 { "next      " } else { "or        " };
        let command = paint(Label::Command, command);
        context.printer.text(format!("{label} {command}"));
    }
    status
}

/// The grade and where the task stopped, line by line.
pub(super) fn outcome(view: &RunView) -> Vec<String> {
    let mut lines = grade_lines(view);
    lines.push(stopped(view));
    lines
}

fn grade_lines(view: &RunView) -> Vec<String> {
    let Some(grade) = &view.grade else {
        return Vec::new();
    };
    let word = if grade.accepted {
        paint(Label::Good, "accepted")
    } else {
        paint(Label::Bad, "not accepted")
    };
    let mut lines = vec![format!(
        "grade      {word}: {} of {} passed (trust {}, verdict {}, secrecy {})",
        grade.passed,
        count(grade.expected, "hidden test", "hidden tests"),
        grade.trust,
        grade.verdict,
        grade.secrecy
    )];
    let reasons = grade.reasons.iter();
    lines.extend(reasons.map(|reason| format!("reason     {}", escape::line(reason))));
    lines.extend(touches(&grade.protected_touched));
    lines
}

/// Where the task stopped.
fn stopped(view: &RunView) -> String {
    let branch = view.branch.as_deref().map(escape::line);
    match view.stopped {
        Stopped::WaitingForApproval => format!(
            "waiting    version {} of the hidden tests needs an approval",
            view.version.unwrap_or_default()
        ),
        Stopped::WaitingForPatchApproval => {
            let mut lines =
                vec!["waiting    an approver must sign this patch: it changes".to_owned()];
            let path = |path: &String| format!("           {}", escape::line(path));
            lines.extend(view.guarded.iter().map(path));
            lines.join("\n")
        }
        Stopped::Contradiction => {
            let mut lines = vec!["waiting    documents contradict each other:".to_owned()];
            let opposed = |one| format!("opposed    {}", contradicting(one));
            lines.extend(view.contradicting.iter().map(opposed));
            lines.join("\n")
        }
        Stopped::NeedsAgent => "stopped    an implementation is needed".to_owned(),
        Stopped::Stage => {
            let until = view.until.map(|stage| stage.to_string());
            let next = view
                .stage
                .filter(|stage| view.until.is_some_and(|until| until < *stage));
            let next = next.map_or_else(String::new, |stage| format!(", next is {stage}"));
            format!("reached    {}{next}", until.unwrap_or_default())
        }
        Stopped::NotAccepted => match branch {
            Some(branch) => {
                format!("failed     all rounds are used; the last result is on {branch}")
            }
            None => "failed     all rounds are used".to_owned(),
        },
        Stopped::Leaked => {
            "failed     hidden tests got out; the result that holds them is on no branch".to_owned()
        }
        Stopped::Rejected => {
            "rejected   too many versions of the hidden tests were rejected".to_owned()
        }
        Stopped::Delivered | Stopped::Ended => match branch {
            Some(branch) => {
                let commit = view.commit.map(|commit| commit.short());
                let gone = if view.branch_gone {
                    " (that branch is not in this clone)"
                } else {
                    ""
                };
                format!("delivered  {branch} {}{gone}", commit.unwrap_or_default())
            }
            None => match view.summary.as_deref() {
                None => format!("ended      the task is {}", view.state),
                Some(why) => format!(
                    "ended      the task is {}: {}",
                    view.state,
                    escape::line(why)
                ),
            },
        },
    }
}

/// One of several documents that contradict each other: its digest, what it says, who signed it.
pub(super) fn contradicting(one: &Contradicting) -> String {
    let what = match one.says {
        Says::Approved => "approved by",
        Says::Rejected => "rejected by",
        Says::Accepted => "grade: accepted, by",
        Says::NotAccepted => "grade: not accepted, by",
        Says::Sealed => "version sealed by",
    };
    format!("{} {what} {}", one.document.short(), one.by)
}

/// What a person types next.
fn next_commands(view: &RunView) -> Vec<String> {
    let id = view.id.short();
    vec![match view.stopped {
        Stopped::WaitingForApproval => format!("hangar review {id} && hangar approve {id}"),
        Stopped::WaitingForPatchApproval => {
            format!("hangar review {id} --patch && hangar approve {id} --patch")
        }
        Stopped::Contradiction => format!("hangar adjudicate {id} DIGEST --reason TEXT"),
        Stopped::NeedsAgent => {
            return vec![
                format!("hangar submit {id} --rev REV"),
                format!("hangar run {id}"),
            ];
        }
        // It resumes where new tests are written.
        Stopped::NotAccepted | Stopped::Leaked | Stopped::Rejected => {
            format!("hangar task retry {id}")
        }
        // Merged and deleted, or lost: only a person knows.
        Stopped::Delivered | Stopped::Ended if view.branch_gone => {
            return vec![
                format!("hangar verify {id}"),
                format!("hangar deliver {id}"),
            ];
        }
        Stopped::Delivered | Stopped::Ended if view.branch.is_some() => {
            format!("hangar verify {id}")
        }
        Stopped::Stage | Stopped::Delivered | Stopped::Ended => {
            return Vec::new();
        }
    }]
}

/// The exit status that goes with where a task stopped.
pub(super) fn status(view: &RunView) -> ExitStatus {
    match view.stopped {
        Stopped::WaitingForApproval | Stopped::WaitingForPatchApproval | Stopped::Contradiction => {
            ExitStatus::Waiting
        }
        Stopped::Stage | Stopped::Delivered => ExitStatus::Done,
        Stopped::Ended => ExitStatus::answer(view.branch.is_some()),
        Stopped::NeedsAgent | Stopped::NotAccepted | Stopped::Leaked | Stopped::Rejected => {
            ExitStatus::No
        }
    }
}
