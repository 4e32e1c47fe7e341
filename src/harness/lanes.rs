//! Which harness plays which role, and that the writer is never the implementer.

use super::Error;
use super::adapter::{self, Adapter, Settings};
use crate::model::lane::{LaneName, LaneSettings, Role};
use std::sync::Arc;

/// One lane: a harness at an effort.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Name of the harness, with the effort where the lane asks for one.
    pub name: LaneName,
    /// Model in the program's own words.
    pub model: Option<String>,
    /// Effort in the program's own words: the lane's, or the harness's own.
    pub effort: Option<String>,
    /// Its adapter.
    pub adapter: Arc<dyn Adapter>,
}

/// The lanes of a role, best first. Nothing is started.
pub fn resolve(settings: &LaneSettings, role: Role) -> Result<Vec<Lane>, Error> {
    let names = settings.lanes.get(&role).cloned().unwrap_or_default();
    if names.is_empty() {
        return Err(Error::NoLane(role));
    }
    names.into_iter().map(|name| lane(settings, name)).collect()
}

/// One lane by its name. Nothing is started.
pub fn lane(settings: &LaneSettings, name: LaneName) -> Result<Lane, Error> {
    let Some(harness) = settings.harnesses.get(&name.harness) else {
        return Err(Error::UnknownHarness { lane: name.harness });
    };
    let effort = name.effort.clone().or_else(|| harness.effort.clone());
    let adapter = adapter::build(&Settings {
        name: &name.harness,
        harness,
        effort: effort.as_deref(),
    })?;
    Ok(Lane {
        model: harness.model.clone(),
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
        (true, None, true) if writers.is_empty() => Err(Error::NoLane(Role::Writer)),
        (true, None, true) => Err(Error::NoLane(Role::Implementer)),
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
        let error = resolve(&LaneSettings::default(), Role::Writer).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no lane is configured for the writer"),
            "{text}"
        );
        assert!(
            text.contains("`command` or `script`") && text.contains("[lanes]"),
            "{text}"
        );
    }

    #[test]
    fn a_lane_needs_its_harness_and_a_role_its_lane() {
        assert!(matches!(
            resolve(&settings(&[], &["nobody"], &[]), Role::Writer),
            Err(Error::UnknownHarness { .. })
        ));
        assert!(matches!(
            resolve(&settings(&[], &[], &[]), Role::Writer),
            Err(Error::NoLane(Role::Writer))
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
