//! The evidence about one delivered task as an in-toto statement
//! (<https://in-toto.io/Statement/v1>, predicate `test-result/v0.1`). It is not signed: the signed
//! documents stay on the refs, and the statement names them by digest.

use super::Answer;
use crate::app::{Error, Here};
use crate::flow::verify::{Report, Sameness};
use crate::model::digest::Digest;
use crate::model::grade::TestOutcome;
use crate::model::object_id::ObjectId;
use crate::store::Store;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// An in-toto statement.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Statement {
    /// Always `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    pub kind: &'static str,
    /// The delivered commit.
    pub subject: Vec<Resource>,
    /// Always `https://in-toto.io/attestation/test-result/v0.1`.
    #[serde(rename = "predicateType")]
    pub predicate_type: &'static str,
    /// The result.
    pub predicate: TestResult,
}

/// Something named by digest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resource {
    /// What it is called.
    pub name: String,
    /// Algorithm and hex digest.
    pub digest: BTreeMap<&'static str, String>,
}

/// The predicate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// `PASSED` or `FAILED`: whether `hangar verify` accepts.
    pub result: &'static str,
    /// Manifest, run and grade.
    pub configuration: Vec<Resource>,
    /// Public names of the hidden tests that passed.
    pub passed_tests: Vec<String>,
    /// Of those that did not.
    pub failed_tests: Vec<String>,
}

/// The statement for an answer about one task or revision.
pub fn statement(here: &Here, answer: &Answer) -> Result<Statement, Error> {
    let [report] = &answer.tasks[..] else {
        return Err(Error::invalid(
            "a statement is about one delivered task; name one",
        ));
    };
    let delivered = report.delivered.as_ref().ok_or_else(|| {
        Error::invalid("a statement is about a delivered task, and this one is not delivered yet")
    })?;
    let store = here.store()?;
    let same = |revision: &&super::RevisionAnswer| revision.answer != Sameness::No;
    let commit = answer
        .revision
        .as_ref()
        .filter(same)
        .map_or(delivered.commit, |revision| revision.commit);
    let mut configuration = vec![document("run.toml", delivered.run)];
    configuration.extend(delivered.manifest.map(|one| document("manifest.toml", one)));
    configuration.extend(delivered.grade.map(|one| document("grade.toml", one)));
    let (passed_tests, failed_tests) = tests(&store, report)?;
    Ok(Statement {
        kind: "https://in-toto.io/Statement/v1",
        subject: vec![revision(commit)],
        predicate_type: "https://in-toto.io/attestation/test-result/v0.1",
        predicate: TestResult {
            result: if answer.accepted { "PASSED" } else { "FAILED" },
            configuration,
            passed_tests,
            failed_tests,
        },
    })
}

fn document(name: &str, digest: Digest) -> Resource {
    Resource {
        name: name.to_owned(),
        digest: BTreeMap::from([("sha256", digest.hex())]),
    }
}

fn revision(commit: ObjectId) -> Resource {
    Resource {
        name: "git".to_owned(),
        digest: BTreeMap::from([("gitCommit", commit.to_string())]),
    }
}

/// Aliases of tests that passed, and of those that did not.
fn tests(store: &Store, report: &Report) -> Result<(Vec<String>, Vec<String>), Error> {
    let wanted = report.delivered.as_ref().and_then(|one| one.grade);
    let dossier = store.dossier(&report.task)?;
    let grade = dossier
        .grades
        .iter()
        .find(|held| Some(held.digest()) == wanted);
    let rows = grade.map_or(&[][..], |held| &held.value().test);
    // Sentinels fail whatever the patch does, and say nothing about it.
    let expected = rows.iter().filter(|row| !row.alias.is_sentinel());
    let (passed, other): (Vec<_>, Vec<_>) =
        expected.partition(|row| row.outcome == TestOutcome::Passed);
    let names = |rows: Vec<&crate::model::grade::TestResult>| {
        rows.into_iter().map(|row| row.alias.to_string()).collect()
    };
    Ok((names(passed), names(other)))
}
