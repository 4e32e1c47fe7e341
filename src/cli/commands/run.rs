//! `hangar run`

use crate::app::acceptance::run::{self, RunView, Stopped};
use crate::base::words::count;
use crate::cli::args::TaskArg;
use crate::cli::watch::watched;
use crate::cli::words;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::model::task::Stage;
use crate::ui::{Label, escape, paint};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  hangar run KAN-80
  hangar run KAN-80 --until awaiting-approval

Exit codes: 0 delivered (or the stage of --until is reached), 1 ended without an accepted result, \
5 held by another worker, 6 waiting for a person (the command they type is printed).";

/// Drive a task to the next point where a person is needed, or to its end
///
/// Enqueues a draft that you may enqueue, claims it, and goes through the stages: hidden tests are
/// written, checked on the untouched base and sealed; after a person's approval the implementer
/// works, the approved tests are run on base + patch in a fresh sandbox, and what is accepted goes
/// to a branch. A plain task is implemented and delivered ungraded.
///
/// Safe to run again after any interruption: it goes on from what is recorded on the refs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Stop before the first step after this stage
    #[arg(long, value_name = "STAGE", value_parser = words::stage())]
    pub until: Option<Stage>,
}

pub(super) fn run(context: &Context, args: &RunArgs) -> Result<ExitStatus, CliError> {
    let view = watched(context, "starting", |watch| {
        let ask = &mut context.passphrase();
        Ok(run::run(
            &context.here(),
            &args.task.task,
            args.until,
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
    if let Some(grade) = &view.grade {
        let word = if grade.accepted {
            paint(Label::Good, "accepted")
        } else {
            paint(Label::Bad, "not accepted")
        };
        context.printer.text(format!(
            "grade      {word}: {} of {} passed (trust {}, verdict {}, secrecy {})",
            grade.passed,
            count(grade.expected, "hidden test", "hidden tests"),
            grade.trust,
            grade.verdict,
            grade.secrecy
        ));
    }
    for reason in view.grade.iter().flat_map(|grade| &grade.reasons) {
        context
            .printer
            .text(format!("reason     {}", escape::line(reason)));
    }
    let id = view.id.short();
    let line = match view.stopped {
        Stopped::WaitingForApproval => format!(
            "waiting    version {} of the hidden tests needs an approval\nnext       {}",
            view.version.unwrap_or_default(),
            paint(
                Label::Command,
                format!("hangar review {id} && hangar approve {id}")
            )
        ),
        Stopped::WaitingForPatchApproval => waiting_for_patch(view),
        Stopped::Contradiction => format!(
            "waiting    documents contradict each other: {}\nnext       {}",
            view.contradicting
                .iter()
                .map(crate::model::digest::Digest::short)
                .collect::<Vec<_>>()
                .join(", "),
            paint(
                Label::Command,
                format!("hangar adjudicate {id} DIGEST --reason TEXT")
            )
        ),
        Stopped::NeedsAgent => format!(
            "stopped    an implementation is needed\nnext       {}",
            paint(Label::Command, format!("hangar run {id}"))
        ),
        Stopped::Stage => format!(
            "reached    {}",
            view.stage
                .map(|stage| stage.to_string())
                .unwrap_or_default()
        ),
        Stopped::Delivered => delivered("delivered", view),
        Stopped::NotAccepted => format!(
            "failed     all rounds are used{}\nnext       {}",
            view.branch
                .as_deref()
                .map_or_else(String::new, |branch| format!(
                    "; the last result is on {}",
                    escape::line(branch)
                )),
            paint(Label::Command, format!("hangar task retry {id}"))
        ),
        Stopped::Rejected => {
            "rejected   too many versions of the hidden tests were rejected".to_owned()
        }
        Stopped::Ended => match &view.branch {
            Some(_) => delivered("delivered", view),
            None => format!(
                "ended      the task is {}: {}",
                view.state,
                escape::line(view.summary.as_deref().unwrap_or(""))
            ),
        },
    };
    context.printer.text(line);
    status
}

fn waiting_for_patch(view: &RunView) -> String {
    let id = view.id.short();
    let command = format!("hangar review {id} --patch && hangar approve {id} --patch");
    let mut lines = vec!["waiting    an approver must sign this patch: it changes".to_owned()];
    let path = |path: &String| format!("           {}", escape::line(path));
    lines.extend(view.guarded.iter().map(path));
    lines.push(format!("next       {}", paint(Label::Command, command)));
    lines.join("\n")
}

fn delivered(word: &str, view: &RunView) -> String {
    let branch = view.branch.as_deref().unwrap_or_default();
    let commit = view.commit.map(|commit| commit.short()).unwrap_or_default();
    let next = format!("hangar verify {}", view.id.short());
    format!(
        "{word:<10} {} {commit}\nnext       {}",
        escape::line(branch),
        paint(Label::Command, next)
    )
}

/// The exit status that goes with where a task stopped.
pub(super) fn status(view: &RunView) -> ExitStatus {
    match view.stopped {
        Stopped::WaitingForApproval | Stopped::WaitingForPatchApproval | Stopped::Contradiction => {
            ExitStatus::Waiting
        }
        Stopped::Stage | Stopped::Delivered => ExitStatus::Done,
        Stopped::Ended => ExitStatus::answer(view.branch.is_some()),
        Stopped::NeedsAgent | Stopped::NotAccepted | Stopped::Rejected => ExitStatus::No,
    }
}
