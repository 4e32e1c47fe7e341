//! `hangar doctor`

use crate::app::doctor::{Check, ProviderView, Report, State, doctor};
use crate::base::words::count;
use crate::cli::{ExitStatus, context::Context};
use crate::sandbox::Cancel;
use crate::sandbox::Probes;
use crate::sandbox::probe::{KERNEL, State as Probe};
use crate::ui::{Label, Progress, escape, paint};
use clap::Args;

/// Show what works on this machine and in this repository
///
/// Looks at Git, the repository, policy and keys, the programs of the test framework, agent
/// programs, the remote, and each sandbox provider with the guarantees that it measured by trying to
/// get out. Where something does not work it says what would help.
///
/// Exit 3 when the main job could not run.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

pub(super) fn run(context: &Context, _: &DoctorArgs) -> ExitStatus {
    let progress = Progress::start(&context.printer, "looking around");
    let report = doctor(&context.here(), &Cancel::default(), &|text| {
        progress.stage(text);
    });
    progress.finish();
    if context.printer.is_json() {
        context.printer.json(&report);
    } else {
        context.printer.text(text(&report, context));
    }
    if report.ready {
        ExitStatus::Done
    } else {
        ExitStatus::Missing
    }
}

fn text(report: &Report, context: &Context) -> String {
    let mut out = Vec::new();
    report.checks.iter().for_each(|check| one(check, &mut out));
    for provider in &report.providers {
        out.push(String::new());
        self::provider(provider, context.printer.settings().verbose > 0, &mut out);
    }
    out.push(String::new());
    if report.ready {
        out.push(paint(
            Label::Good,
            "The main job can run: seal, approve, grade, deliver, verify.",
        ));
    } else {
        out.push(paint(Label::Bad, "The main job cannot run yet."));
        out.push(format!(
            "These need no sandbox: {}.",
            report.without_sandbox.join(", ")
        ));
    }
    out.push(String::new());
    out.join("\n")
}

/// Columns of a name: with them a fingerprint ends in the last of 80 columns.
const NAME: usize = 20;

fn one(check: &Check, out: &mut Vec<String>) {
    let (word, label) = match check.state {
        State::Ok => ("ok     ", Label::Good),
        State::Warn => ("warn   ", Label::Attention),
        State::Missing => ("missing", Label::Bad),
    };
    out.push(format!(
        "{}  {:<NAME$} {}",
        paint(label, word),
        escape::line(&check.name),
        escape::line(&check.detail)
    ));
    if let Some(remedy) = &check.remedy {
        out.push(format!(
            "         {:<NAME$} {}",
            "",
            paint(Label::Hint, escape::line(remedy))
        ));
    }
}

/// What was tried and how it ended.
fn attempts(probes: &Probes) -> String {
    let number = |state| {
        let tried = probes.results.iter().filter(|(name, _)| *name != KERNEL);
        tried.filter(|(_, probe)| probe.state == state).count()
    };
    let (held, open) = (number(Probe::Held), number(Probe::Open));
    let tried = count(held + open, "attempt", "attempts");
    let mut text = if open == 0 {
        format!("{tried} to get out or take too much: every one failed, as it should")
    } else {
        format!("{tried} to get out or take too much: {held} failed as they should, {open} did NOT")
    };
    let unmeasured = number(Probe::Unmeasured);
    if unmeasured > 0 {
        text = format!("{text}; {unmeasured} could not be tried");
    }
    text
}

fn provider(provider: &ProviderView, verbose: bool, out: &mut Vec<String>) {
    let chosen = if provider.chosen { " (in use)" } else { "" };
    let heading = paint(
        Label::Heading,
        format!("sandbox provider {}{chosen}", provider.name),
    );
    let Some(probes) = &provider.probes else {
        let reason = provider.reason.as_deref().unwrap_or("not measured");
        out.push(format!("{heading}: does not work here"));
        out.push(format!("  {}", escape::line(reason)));
        if let Some(remedy) = &provider.remedy {
            out.push(format!("  {}", paint(Label::Hint, escape::line(remedy))));
        }
        return;
    };
    if probes.provider == "none" {
        out.push(format!("{heading}: isolates nothing"));
        out.push(
            "  programs would run as you, with your files and your network. It can't show a tree \
             elsewhere or keep hidden tests in memory, so it runs no agent and no grade"
                .into(),
        );
        return;
    }
    out.push(format!(
        "{heading}: holds `{}`, {}",
        probes.trust(),
        escape::line(&probes.version)
    ));
    if probes.swap_exposed {
        out.push("  swap is on: memory of a sandbox could be written to disk".into());
    }
    out.push(format!("  {}", attempts(probes)));
    if let Some(kernel) = probes.results.get(KERNEL) {
        let whose = match kernel.state {
            Probe::Held => "a kernel of its own",
            Probe::Open => "shares this machine's kernel",
            Probe::Unmeasured => "the kernel was not seen",
        };
        out.push(format!("  {whose}"));
    }
    for (name, probe) in &probes.results {
        if name == KERNEL {
            continue;
        }
        let (word, label) = match probe.state {
            Probe::Held if !verbose => continue,
            Probe::Held => ("held", Label::Good),
            Probe::Open => ("OPEN", Label::Bad),
            Probe::Unmeasured => ("not tried", Label::Attention),
        };
        out.push(format!(
            "  {name:<20} {}  {}",
            paint(label, word),
            escape::line(&probe.detail)
        ));
    }
}
