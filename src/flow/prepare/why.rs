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
    Error::missing(
        what,
        format!(
            "-v shows its output; correct this line of hangar.toml, under [grader]: prepare = {}",
            quoted(&plan.prepare)
        ),
    )
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
