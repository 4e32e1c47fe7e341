//! `hangar doctor`

use crate::app::doctor::{Check, ProviderView, Report, State, doctor};
use crate::cli::{ExitStatus, context::Context};
use crate::sandbox::Cancel;
use crate::sandbox::probe::State as Probe;
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
        context.printer.data(&text(&report, context));
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

fn one(check: &Check, out: &mut Vec<String>) {
    let (word, label) = match check.state {
        State::Ok => ("ok     ", Label::Good),
        State::Warn => ("warn   ", Label::Attention),
        State::Missing => ("missing", Label::Bad),
    };
    out.push(format!(
        "{}  {:<22} {}",
        paint(label, word),
        escape::line(&check.name),
        escape::line(&check.detail)
    ));
    if let Some(remedy) = &check.remedy {
        out.push(format!(
            "         {:<22} {}",
            "",
            paint(Label::Hint, escape::line(remedy))
        ));
    }
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
    out.push(format!(
        "{heading}: holds `{}`, {}",
        probes.trust(),
        escape::line(&probes.version)
    ));
    if probes.swap_exposed {
        out.push("  swap is on: memory of a sandbox could be written to disk".into());
    }
    let held = probes.results.values();
    let held = held.filter(|probe| probe.state == Probe::Held).count();
    out.push(format!(
        "  {held} of {} attempts to get out failed, as they should",
        probes.results.len()
    ));
    for (name, probe) in &probes.results {
        let (word, label) = match probe.state {
            Probe::Held if !verbose => continue,
            Probe::Held => ("held", Label::Good),
            Probe::Open => ("OPEN", Label::Bad),
            Probe::Unmeasured => ("not measured", Label::Attention),
        };
        out.push(format!(
            "  {name:<20} {}  {}",
            paint(label, word),
            escape::line(&probe.detail)
        ));
    }
}
