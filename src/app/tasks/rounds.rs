//! What each run was: the turn or round, for which version, and which attempt at it, so that no two
//! runs of a task read the same.

use crate::model::digest::Digest;
use crate::model::manifest::Writer;
use crate::model::run::RunRole;
use crate::store::dossier::Dossier;
use std::collections::BTreeMap;

/// One run, as far as its name goes.
struct Named {
    role: RunRole,
    round: u32,
    /// The version that it wrote or worked under.
    version: Option<u32>,
}

/// A name for each run of the task, in their order.
pub(super) fn names(dossier: &Dossier) -> Vec<String> {
    told_apart(&named(dossier))
}

/// For each run the version that it wrote or worked under; none for a plain task.
pub(super) fn versions(dossier: &Dossier) -> Vec<Option<u32>> {
    named(dossier).into_iter().map(|run| run.version).collect()
}

fn named(dossier: &Dossier) -> Vec<Named> {
    let versions: BTreeMap<Digest, u32> = dossier
        .seals
        .iter()
        .map(|seal| (seal.digest(), seal.value().version))
        .collect();
    let wrote = |run: Digest| {
        let mut seals = dossier.seals.iter();
        let seal = seals.find(
            |seal| matches!(&seal.value().writer, Writer::Agent { run: of, .. } if *of == run),
        );
        seal.map(|seal| seal.value().version)
    };
    let mut runs: Vec<Named> = dossier
        .runs
        .iter()
        .map(|held| {
            let run = held.value();
            let version = match run.role {
                RunRole::Writer => wrote(held.digest()),
                RunRole::Implementer => run.manifest.and_then(|of| versions.get(&of).copied()),
            };
            Named {
                role: run.role,
                round: run.round,
                version,
            }
        })
        .collect();
    // A turn of which no version came was for the one that a later turn wrote, else for the next.
    let mut next = versions.values().max().map_or(1, |last| last + 1);
    for run in runs.iter_mut().rev() {
        if run.role == RunRole::Writer {
            next = *run.version.get_or_insert(next);
        }
    }
    runs
}

/// Turns count anew with each attempt at a version; a round that is done again is an attempt more.
fn told_apart(runs: &[Named]) -> Vec<String> {
    let mut attempts: BTreeMap<(&str, Option<u32>, u32), u32> = BTreeMap::new();
    runs.iter()
        .map(|run| {
            let (word, counted) = match run.role {
                RunRole::Writer => ("turn", 1),
                RunRole::Implementer => ("round", run.round),
            };
            let attempt = attempts
                .entry((word, run.version, counted))
                .or_insert_with(|| u32::from(run.round != counted));
            if run.round == counted {
                *attempt += 1;
            }
            let version = run.version.map(|version| format!(" for version {version}"));
            let version = version.unwrap_or_default();
            let again = match *attempt {
                0 | 1 => String::new(),
                attempt => format!(" (attempt {attempt})"),
            };
            format!("{} {word} {}{version}{again}", run.role, run.round)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(runs: &[(RunRole, u32, Option<u32>)]) -> Vec<String> {
        let runs: Vec<_> = runs
            .iter()
            .map(|(role, round, version)| Named {
                role: *role,
                round: *round,
                version: *version,
            })
            .collect();
        told_apart(&runs)
    }

    #[test]
    fn runs_with_the_same_number_are_told_apart() {
        use RunRole::{Implementer, Writer};
        let runs = [
            (Writer, 1, Some(1)),
            (Writer, 2, Some(1)),
            (Writer, 1, Some(1)),
            (Writer, 2, Some(1)),
            (Writer, 1, Some(2)),
            (Implementer, 1, Some(2)),
            (Implementer, 2, Some(2)),
            (Implementer, 1, Some(2)),
        ];
        assert_eq!(
            names(&runs),
            [
                "writer turn 1 for version 1",
                "writer turn 2 for version 1",
                "writer turn 1 for version 1 (attempt 2)",
                "writer turn 2 for version 1 (attempt 2)",
                "writer turn 1 for version 2",
                "implementer round 1 for version 2",
                "implementer round 2 for version 2",
                "implementer round 1 for version 2 (attempt 2)",
            ]
        );
        let plain = [(Implementer, 1, None), (Implementer, 1, None)];
        let plain = names(&plain);
        assert_eq!(
            plain,
            ["implementer round 1", "implementer round 1 (attempt 2)"]
        );
    }
}
