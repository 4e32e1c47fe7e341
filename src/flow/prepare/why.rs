//! Why a `prepare` step failed, in a sentence, with the line to correct.

use super::{Error, TIMEOUT, quoted};
use crate::base::words;
use crate::harness::egress::{EgressRecord, Verdict};
use crate::model::plan::Plan;
use crate::sandbox::spec::{End, Hit, StepOutcome};
use std::collections::BTreeSet;

/// Most hosts that are named, and the longest piece of a client's output.
const MAX_HOSTS: usize = 5;
const MAX_LINE: usize = 200;

/// Places of the records that a verdict is true of, each once.
pub(super) fn places(records: &[EgressRecord], wanted: impl Fn(&Verdict) -> bool) -> Vec<String> {
    let found: BTreeSet<String> = records
        .iter()
        .filter(|record| wanted(&record.verdict))
        .map(|record| format!("{}:{}", record.host.escape_debug(), record.port))
        .collect();
    found.into_iter().take(MAX_HOSTS).collect()
}

/// Places that were refused.
pub(super) fn refused(records: &[EgressRecord]) -> Vec<String> {
    places(records, |verdict| matches!(verdict, Verdict::Refused(_)))
}

/// The error of a step that did not end well because a registry was not reached. Hosts that were refused are
/// not named: code of a patch asked for them.
pub(super) fn unreachable(step: Option<&StepOutcome>, records: &[EgressRecord]) -> Option<Error> {
    let places = places(records, |verdict| matches!(verdict, Verdict::Failed(_)));
    (!places.is_empty()).then(|| not_reached(&told(step), &places))
}

/// What became of the step, and what it said.
fn told(step: Option<&StepOutcome>) -> String {
    let mut what = format!("the `prepare` step {}", ending(step));
    let said = step.map(said).filter(|said| !said.is_empty());
    if let Some(said) = said {
        what.push_str(": ");
        what.push_str(&said);
    }
    what
}

fn not_reached(told: &str, places: &[String]) -> Error {
    Error::outside(
        format!("{told} (not reached: {})", places.join(", ")),
        "see that the registry can be reached, then run it again",
    )
}

/// The error of a step that did not end well.
pub(super) fn failed(plan: &Plan, step: Option<&StepOutcome>, records: &[EgressRecord]) -> Error {
    let refused = refused(records);
    let unreachable = places(records, |verdict| matches!(verdict, Verdict::Failed(_)));
    let mut what = told(step);
    if !refused.is_empty() {
        what.push_str(" (refused, since no registry is there: ");
        what.push_str(&refused.join(", "));
        what.push(')');
        let list: Vec<String> = refused.iter().map(|place| quoted(place)).collect();
        return Error::missing(
            what,
            format!(
                "where a dependency really lies there, allow it in your own configuration \
                 (config.toml): [prepare] hosts = [{}]",
                list.join(", ")
            ),
        );
    }
    if !unreachable.is_empty() {
        return not_reached(&what, &unreachable);
    }
    if let Some(remedy) = no_program(step) {
        return Error::missing(what, remedy);
    }
    Error::missing(
        what,
        format!(
            "-v shows its output; correct this line of hangar.toml, under [grader]: prepare = {}",
            quoted(&plan.prepare)
        ),
    )
}

/// What to do where a shell did not find a program (127) or could not start it (126): the line may be right.
fn no_program(step: Option<&StepOutcome>) -> Option<String> {
    let (step, verb) = match step {
        Some(step) if step.end == End::Exited(127) => (step, "is not there"),
        Some(step) if step.end == End::Exited(126) => (step, "can't be started"),
        _ => return None,
    };
    let name = shell_named(&String::from_utf8_lossy(&step.stderr));
    let Some(name) = name else {
        return Some(format!(
            "a program of `prepare` {verb} in the sandbox; -v shows which"
        ));
    };
    let known = super::PROGRAMS.contains(&name.as_str());
    let named = format!(", or say where it is: hangar config set toolchain.{name} PATH");
    Some(format!(
        "`{name}` {verb} in the sandbox: install it on this machine{}",
        if known { named.as_str() } else { "" }
    ))
}

/// The name in `sh: 1: cargo: not found` and the like.
fn shell_named(stderr: &str) -> Option<String> {
    let ends = [": not found", ": command not found", ": Permission denied"];
    let tells = |line: &str| {
        ends.iter()
            .find_map(|end| line.trim().strip_suffix(end).map(str::to_owned))
    };
    let line = stderr.lines().rev().find_map(tells)?;
    let name = line.rsplit(": ").next()?.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then(|| cut(name))
}

fn ending(step: Option<&StepOutcome>) -> String {
    let Some(step) = step else {
        return "could not be started".into();
    };
    let hit = |hit: &Hit| match hit {
        Hit::Memory => "ran out of memory (`grader.limits.memory`)",
        Hit::Processes => "started too many processes (`grader.limits.processes`)",
        Hit::FileSize | Hit::Disk => "ran out of disk (`grader.limits.disk`)",
        Hit::Output => "",
    };
    if let Some(text) = step.hits.iter().map(hit).find(|text| !text.is_empty()) {
        return text.into();
    }
    match step.end {
        End::Exited(status) => format!("ended with status {status}"),
        End::Signalled(signal) => format!("was killed by signal {signal}"),
        End::TimedOut => format!(
            "took longer than {}",
            words::count(TIMEOUT.as_secs() / 60, "minute", "minutes")
        ),
        End::Idle => "said nothing for too long".into(),
        End::NotStarted(_) => "could not be started".into(),
    }
}

/// The lines that say most: those with an error, else the last one.
fn said(step: &StepOutcome) -> String {
    let errors = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(str::trim);
        let tells = |line: &&str| {
            let lower = line.to_lowercase();
            let is_error = ["error", "not found", "no such", "denied", "failed"]
                .iter()
                .any(|word| lower.contains(word));
            is_error && !lower.contains("complete log of this run")
        };
        lines.filter(tells).map(cut).collect()
    };
    let mut lines = errors(&step.stderr);
    if lines.is_empty() {
        lines = errors(&step.stdout);
    }
    if lines.is_empty() {
        lines = words::last_line(&step.stderr)
            .or_else(|| words::last_line(&step.stdout))
            .into_iter()
            .collect();
    }
    let from = lines.len().saturating_sub(3);
    lines.get(from..).unwrap_or_default().join("; ")
}

fn cut(line: &str) -> String {
    line.trim().chars().take(MAX_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::egress::Reason;
    use crate::model::plan::Framework;

    fn plan() -> Plan {
        let mut plan = Plan::new(Framework::Pytest);
        plan.prepare = "pip install \"x\"".into();
        plan
    }

    fn step(stderr: &str) -> StepOutcome {
        StepOutcome {
            end: End::Exited(1),
            stderr: stderr.into(),
            ..StepOutcome::default()
        }
    }

    fn record(host: &str, verdict: Verdict) -> EgressRecord {
        EgressRecord {
            at: jiff::Timestamp::UNIX_EPOCH,
            lane: "prepare".into(),
            host: host.into(),
            port: 443,
            bytes_up: 0,
            bytes_down: 0,
            verdict,
        }
    }

    #[test]
    fn the_lines_that_tell_and_the_line_to_correct_are_named() {
        let stderr = "Collecting x\nERROR: No matching distribution found for x\nhint: see above\n";
        let Error::Missing { what, remedy } = failed(&plan(), Some(&step(stderr)), &[]) else {
            panic!("it is the line that is wrong")
        };
        assert_eq!(
            what,
            "the `prepare` step ended with status 1: ERROR: No matching distribution found for x"
        );
        assert!(
            remedy.ends_with(r#"prepare = 'pip install "x"'"#),
            "{remedy}"
        );
    }

    #[test]
    fn a_program_that_is_missing_makes_no_line_wrong() {
        let of = |status, stderr: &str| {
            let mut step = step(stderr);
            step.end = End::Exited(status);
            match failed(&plan(), Some(&step), &[]) {
                Error::Missing { remedy, .. } => remedy,
                other => panic!("{other}"),
            }
        };
        let cargo = of(127, "/bin/sh: 1: cargo: not found\n");
        assert!(cargo.starts_with("`cargo` is not there"), "{cargo}");
        assert!(cargo.ends_with("toolchain.cargo PATH"), "{cargo}");
        let make = of(127, "sh: line 1: make: command not found\n");
        assert_eq!(
            make,
            "`make` is not there in the sandbox: install it on this machine"
        );
        let setup = of(126, "/bin/sh: 1: ./setup.sh: Permission denied\n");
        assert!(
            setup.starts_with("`./setup.sh` can't be started"),
            "{setup}"
        );
        for said in [cargo, make, setup, of(127, "")] {
            assert!(!said.contains("correct this line"), "{said}");
        }
    }

    #[test]
    fn refused_hosts_are_named_once_and_unreachable_ones_are_trouble_outside() {
        let not_listed = Verdict::Refused(Reason::NotListed);
        let records = [
            record("a.example", not_listed),
            record("a.example", not_listed),
        ];
        let Error::Missing { what, remedy } = failed(&plan(), Some(&step("")), &records) else {
            panic!("a refusal is no trouble outside")
        };
        assert_eq!(what.matches("a.example:443").count(), 1, "{what}");
        assert!(remedy.ends_with(r#"hosts = ["a.example:443"]"#), "{remedy}");
        let records = [record("b.example", Verdict::Failed(Reason::Unreachable))];
        let error = failed(&plan(), Some(&step("")), &records);
        assert!(matches!(error, Error::Outside { .. }), "{error:?}");
        // Code of a patch does not choose what a person is told to allow.
        let mixed = [record("evil.example", not_listed), records[0].clone()];
        let error = unreachable(Some(&step("")), &mixed).unwrap();
        assert!(matches!(error, Error::Outside { .. }), "{error:?}");
        assert!(!error.to_string().contains("evil"), "{error}");
        assert!(unreachable(Some(&step("")), &mixed[..1]).is_none());
    }

    #[test]
    fn a_limit_is_told_from_a_status() {
        let mut step = step("");
        step.hits = vec![Hit::Output, Hit::Memory];
        let error = failed(&plan(), Some(&step), &[]);
        assert!(error.to_string().contains("out of memory"), "{error}");
    }
}
