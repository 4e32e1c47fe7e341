//! Which harness plays which role, and that the writer is never the implementer.

use super::adapter::{self, Adapter, Environment, Health, Settings};
use super::health::Outage;
use super::ledger::Book;
use super::{Error, claude, codex};
use crate::model::lane::{HarnessSettings, LaneName, LaneSettings, Role};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Harnesses that need no configuration, and are the lane of a role that has none.
const DEFAULTS: &[(Role, &str)] = &[
    (Role::Writer, claude::KIND),
    (Role::Implementer, codex::KIND),
];

/// One lane: a harness at an effort.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Name of the harness, with the effort where the lane asks for one.
    pub name: LaneName,
    /// Model in the program's own words.
    pub model: Option<String>,
    /// Effort in the program's own words: the lane's, or the harness's own.
    pub effort: Option<String>,
    /// Wall clock of one turn, where the user set it.
    pub timeout: Option<Duration>,
    /// Longest silence of one turn, where the user set it.
    pub idle: Option<Duration>,
    /// Its adapter.
    pub adapter: Arc<dyn Adapter>,
}

/// The lanes of a role, best first: those that are configured, else its default where that program is
/// there. Nothing is started.
pub fn resolve(settings: &LaneSettings, role: Role) -> Result<Vec<Lane>, Error> {
    match settings.lanes.get(&role).filter(|names| !names.is_empty()) {
        Some(names) => names
            .iter()
            .cloned()
            .map(|name| lane(settings, name))
            .collect(),
        None => Ok(vec![default_lane(settings, role)?]),
    }
}

fn default_lane(settings: &LaneSettings, role: Role) -> Result<Lane, Error> {
    let none = |why| Error::NoLane { role, why };
    let default = DEFAULTS.iter().find(|(one, _)| *one == role);
    let (_, harness) = default.ok_or_else(|| none(None))?;
    let name = LaneName {
        harness: (*harness).to_owned(),
        effort: None,
    };
    let lane = lane(settings, name)?;
    match lane.adapter.identity() {
        Ok(_) => Ok(lane),
        Err(error) => Err(none(Some(error.to_string()))),
    }
}

/// The settings of a harness: as configured, or empty ones for a program that needs none.
pub fn harness(settings: &LaneSettings, name: &str) -> Option<HarnessSettings> {
    let known = || {
        let known = DEFAULTS.iter().any(|(_, default)| *default == name);
        known.then(|| HarnessSettings {
            kind: name.to_owned(),
            ..HarnessSettings::default()
        })
    };
    settings.harnesses.get(name).cloned().or_else(known)
}

/// One lane by its name. Nothing is started.
pub fn lane(settings: &LaneSettings, name: LaneName) -> Result<Lane, Error> {
    let Some(harness) = harness(settings, &name.harness) else {
        return Err(Error::UnknownHarness { lane: name.harness });
    };
    let harness = &harness;
    let effort = name.effort.clone().or_else(|| harness.effort.clone());
    let adapter = adapter::build(&Settings {
        name: &name.harness,
        harness,
        effort: effort.as_deref(),
    })?;
    Ok(Lane {
        model: harness.model.clone(),
        timeout: harness.timeout,
        idle: harness.idle,
        effort,
        adapter: adapter.into(),
        name,
    })
}

/// Every pair of lanes in which the implementer is another harness than the writer, best writer
/// first. A fallback takes its lane from here, so it cannot break the rule either.
///
/// A lane whose program is not there is in no pair; when that leaves none, its error is returned.
pub fn pair(writers: &[Lane], implementers: &[Lane]) -> Result<Vec<(Lane, Lane)>, Error> {
    let (mut pairs, mut same) = (Vec::new(), Vec::new());
    let mut missing = None;
    for writer in writers {
        for implementer in implementers {
            match (writer.adapter.identity(), implementer.adapter.identity()) {
                (Ok(one), Ok(other)) if one == other => {
                    same.push(format!("{} and {}", writer.name, implementer.name));
                }
                (Ok(_), Ok(_)) => pairs.push((writer.clone(), implementer.clone())),
                (Err(error), _) | (_, Err(error)) => missing = missing.or(Some(error)),
            }
        }
    }
    match (pairs.is_empty(), missing, same.is_empty()) {
        (false, ..) => Ok(pairs),
        (true, Some(error), _) => Err(error),
        (true, None, false) => Err(Error::SameHarness(same.join("; "))),
        (true, None, true) => Err(Error::NoLane {
            role: if writers.is_empty() {
                Role::Writer
            } else {
                Role::Implementer
            },
            why: None,
        }),
    }
}

/// What is known of this machine when a lane is chosen.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// The user's environment.
    pub env: &'a Environment,
    /// Health of the harnesses.
    pub book: &'a Book,
    /// The time.
    pub at: Timestamp,
}

impl Now<'_> {
    /// What keeps the harness of a lane from working.
    pub fn outage(&self, lane: &Lane) -> Option<&Outage> {
        let names = lane.adapter.variables();
        self.book
            .outage(&lane.name.harness, &names, self.env, self.at)
    }
}

/// The first choice of which every lane of `needs` is there, with what it logs in with, and the lane
/// that works first, `works`, is healthy. Where none can be used, the error says what keeps those from
/// working that are there, else what the best one lacks.
pub fn first_ready<T>(
    choices: Vec<T>,
    role: Role,
    needs: fn(&T) -> Vec<&Lane>,
    works: fn(&T) -> &Lane,
    now: &Now<'_>,
) -> Result<Option<T>, Error> {
    let mut missing = None;
    let mut resting: Vec<(LaneName, Outage)> = Vec::new();
    for choice in choices {
        let health = |lane: &Lane| lane.adapter.check(now.env);
        let mut all = needs(&choice).into_iter().map(health);
        if let Some(Health::Missing { message }) = all.find(|health| *health != Health::Ok) {
            missing = missing.or(Some(message));
            continue;
        }
        let lane = works(&choice);
        match now.outage(lane) {
            None => return Ok(Some(choice)),
            Some(_) if resting.iter().any(|(name, _)| *name == lane.name) => {}
            Some(outage) => resting.push((lane.name.clone(), outage.clone())),
        }
    }
    match missing {
        _ if !resting.is_empty() => Err(Error::Resting {
            role,
            soonest: resting.iter().filter_map(|(_, outage)| outage.until).min(),
            resting,
        }),
        Some(message) => Err(Error::NotReady { message }),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;
    use crate::model::lane::HarnessSettings;
    use std::path::Path;

    fn command(path: &Path) -> HarnessSettings {
        HarnessSettings {
            kind: "command".into(),
            command: vec![path.display().to_string()],
            ..HarnessSettings::default()
        }
    }

    fn script(dir: &Path) -> HarnessSettings {
        HarnessSettings {
            kind: "script".into(),
            dir: Some(dir.to_owned()),
            ..HarnessSettings::default()
        }
    }

    fn settings(
        harnesses: &[(&str, HarnessSettings)],
        writer: &[&str],
        implementer: &[&str],
    ) -> LaneSettings {
        let lanes = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        LaneSettings {
            harnesses: harnesses
                .iter()
                .map(|(name, harness)| ((*name).to_owned(), harness.clone()))
                .collect(),
            lanes: [
                (Role::Writer, lanes(writer)),
                (Role::Implementer, lanes(implementer)),
            ]
            .into(),
        }
    }

    fn pairs(settings: &LaneSettings) -> Result<Vec<String>, Error> {
        let lanes = pair(
            &resolve(settings, Role::Writer)?,
            &resolve(settings, Role::Implementer)?,
        )?;
        let text = |(a, b): &(Lane, Lane)| format!("{} > {}", a.name, b.name);
        Ok(lanes.iter().map(text).collect())
    }

    #[test]
    fn the_same_file_under_another_name_is_the_same_harness() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let (link, hard) = (dir.path().join("link"), dir.path().join("hard"));
        write_atomic(&one, b"#!/bin/sh\n", 0o755).unwrap();
        write_atomic(&two, b"#!/bin/sh\n", 0o755).unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        std::fs::hard_link(&one, &hard).unwrap();
        let harnesses = [
            ("a", command(&one)),
            ("b", command(&link)),
            ("c", command(&hard)),
            ("d", command(&two)),
        ];
        for twin in ["a:high", "b", "c"] {
            let error = pairs(&settings(&harnesses, &["a"], &[twin])).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("a and {twin}")), "{text}");
        }
        assert_eq!(
            pairs(&settings(&harnesses, &["a"], &["b", "d"])).unwrap(),
            ["a > d"]
        );
    }

    #[test]
    fn a_fallback_keeps_the_rule() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        let harnesses = [("x", script(&one)), ("y", script(&two))];
        assert_eq!(
            pairs(&settings(&harnesses, &["x", "y"], &["y", "x"])).unwrap(),
            ["x > y", "y > x"]
        );
        let again = [
            ("x", script(&one)),
            ("y", script(&dir.path().join("2/../1"))),
        ];
        assert!(matches!(
            pairs(&settings(&again, &["x"], &["y"])),
            Err(Error::SameHarness(_))
        ));
    }

    #[test]
    fn without_configuration_the_error_says_what_to_configure() {
        let error = resolve(&LaneSettings::default(), Role::Judge).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no lane is configured for the judge;"),
            "{text}"
        );
        assert!(
            text.contains("`command` or `script`") && text.contains("[lanes]"),
            "{text}"
        );
    }

    #[test]
    fn the_default_of_a_role_is_said_to_be_missing_where_it_is() {
        let gone = |kind: &str| HarnessSettings {
            kind: kind.into(),
            command: vec!["/no/such/agent".into()],
            ..HarnessSettings::default()
        };
        let harnesses = [("claude", gone("claude")), ("codex", gone("codex"))];
        for (role, name) in [(Role::Writer, "claude"), (Role::Implementer, "codex")] {
            let error = resolve(&settings(&harnesses, &[], &[]), role).unwrap_err();
            let text = error.to_string();
            let default = format!("its default cannot be used (harness `{name}`: cannot use");
            assert!(text.contains(&default), "{text}");
        }
    }

    #[test]
    fn the_first_pair_that_can_be_used_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        let keyed = HarnessSettings {
            env: vec!["MY_KEY".into()],
            ..script(&two)
        };
        let harnesses = [("x", script(&one)), ("y", keyed.clone()), ("z", keyed)];
        let settings = settings(&harnesses, &["y", "x"], &["x", "z"]);
        let lanes = |role| resolve(&settings, role).unwrap();
        let pairs = pair(&lanes(Role::Writer), &lanes(Role::Implementer)).unwrap();
        let ready = |pairs: Vec<(Lane, Lane)>, env: &Environment| {
            let now = Now {
                env,
                book: &Book::default(),
                at: Timestamp::UNIX_EPOCH,
            };
            first_ready(
                pairs,
                Role::Writer,
                |(one, other)| vec![one, other],
                |(one, _)| one,
                &now,
            )
        };
        let error = ready(pairs.clone(), &Environment::new()).unwrap_err();
        assert!(
            error.to_string().contains("`MY_KEY`, which is not set"),
            "{error}"
        );
        let env = [("MY_KEY".into(), "k".into())].into();
        let (writer, _) = ready(pairs, &env).unwrap().unwrap();
        assert_eq!(writer.name.to_string(), "y");
    }

    #[test]
    fn a_lane_needs_its_harness_and_a_role_its_lane() {
        assert!(matches!(
            resolve(&settings(&[], &["nobody"], &[]), Role::Writer),
            Err(Error::UnknownHarness { .. })
        ));
        assert!(matches!(
            resolve(&settings(&[], &[], &[]), Role::Judge),
            Err(Error::NoLane {
                role: Role::Judge,
                ..
            })
        ));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let harnesses = [
            ("a", command(&dir.path().join("none"))),
            ("b", script(dir.path())),
        ];
        let error = pairs(&settings(&harnesses, &["a"], &["b"])).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
