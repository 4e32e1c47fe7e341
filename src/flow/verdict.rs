//! Signing what was found out about a patch.

use super::Error;
use super::claim;
use super::grading::{Findings, examine};
use super::host::Host;
use super::stage;
use super::subject::Subject;
use super::version::{self, Opened};
use crate::base::words;
use crate::model::digest::Digest;
use crate::model::grade::{Grade, GradeCounts, Timing};
use crate::model::manifest::Manifest;
use crate::model::outcome::{Secrecy, Trust, Verdict};
use crate::model::run::{Run, SandboxRecord};
use crate::sandbox::Probes;
use crate::sandbox::probe::State;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use std::time::Duration;

/// Whose patch is graded.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// The recorded run, where the patch is its result.
    pub run: Option<&'a Held<Run>>,
}

/// A grade, and whether it was signed and stored.
#[derive(Debug)]
pub struct Graded {
    /// The document.
    pub grade: Grade,
    /// Its digest; `None` for a dry run.
    pub digest: Option<Digest>,
}

/// Grades a subject under a version. A dry run stores nothing, and may use a version that does not decide.
pub fn grade(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    subject: &Subject,
    author: Author<'_>,
    dry: bool,
) -> Result<Graded, Error> {
    if !dry {
        stage::takes_grades(&dossier.history.task)?;
    }
    let approvals = match stage::fit_now(store, dossier, seal) {
        Ok(approvals) => approvals,
        Err(_) if dry => Vec::new(),
        Err(unfit) => return Err(unfit.error(dossier, seal)),
    };
    check_limits(store, dossier, seal, dry)?;
    let opened = version::open(store, dossier, seal, &[host.grader_identity()?])?;
    let findings = examine(host, store, dossier, &opened, subject, author.run)?;
    let grader = Identity::of(&store.policy, host.grader.signer())?;
    let grade = document(
        store, dossier, &opened, subject, author, &findings, approvals, &grader,
    );
    if dry {
        return Ok(Graded {
            grade,
            digest: None,
        });
    }
    let note = if grade.accepted {
        "grade: accepted"
    } else {
        "grade: not accepted"
    };
    let reference = store.layout.grades(dossier.id());
    let written = claim::append(host, store, &reference, &grader, &grade, Vec::new(), note)?;
    Ok(Graded {
        grade,
        digest: Some(written.digest),
    })
}

/// The policy's bounds that no grade may pass.
fn check_limits(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    dry: bool,
) -> Result<(), Error> {
    let settings = &store.policy.newest().root.acceptance;
    let framework = seal.value().plan.framework;
    if !settings.adapters.is_empty() && !settings.adapters.contains(&framework) {
        return Err(Error::refused(
            format!("the policy does not allow {framework} grades"),
            "ask an admin",
        ));
    }
    if seal.value().after_code && !settings.after_code {
        return Err(Error::refused(
            "this version was sealed after code was seen, which the policy does not allow",
            "retry the task from `writing`",
        ));
    }
    let told = dossier
        .grades
        .iter()
        .filter(|grade| grade.value().manifest == seal.digest())
        .count();
    if !dry && told >= settings.max_grades as usize {
        return Err(Error::refused(
            format!(
                "this version was graded {}, and the policy allows {}",
                words::count(told, "time", "times"),
                settings.max_grades
            ),
            "retry the task from `writing`, so that new tests are sealed",
        ));
    }
    Ok(())
}

#[expect(
    clippy::too_many_arguments,
    reason = "every part of a grade comes from somewhere else"
)]
fn document(
    store: &Store,
    dossier: &Dossier,
    opened: &Opened,
    subject: &Subject,
    author: Author<'_>,
    findings: &Findings,
    approvals: Vec<Digest>,
    grader: &Identity<'_>,
) -> Grade {
    let judgement = findings.judgement.as_ref();
    let reasons = match (&findings.refused, judgement) {
        (Some(refused), _) => vec![refused.clone()],
        (None, Some(judgement)) => judgement.reasons.iter().map(ToString::to_string).collect(),
        (None, None) => vec!["nothing was run".into()],
    };
    Grade {
        format: 1,
        repo: store.policy.repo(),
        task: dossier.id().clone(),
        manifest: opened.digest,
        approvals,
        run: author.run.map(Held::digest),
        accepted: judgement.is_some_and(|judgement| judgement.accepted && judgement.void.is_none()),
        void: findings.leak.is_some()
            || judgement.is_some_and(|judgement| judgement.void.is_some()),
        reasons,
        trust: findings.probes.as_ref().map_or(Trust::None, Probes::trust),
        verdict: judgement.map_or(Verdict::Exit, |judgement| judgement.verdict),
        secrecy: author.run.map_or(Secrecy::None, |run| run.value().secrecy),
        after_code: opened.manifest.after_code,
        canary_found: findings.leak.is_some(),
        protected_touched: findings.touched.clone(),
        put_back: u32::try_from(findings.put_back).unwrap_or(u32::MAX),
        reprepared: findings.reprepared,
        limits_hit: judgement
            .into_iter()
            .flat_map(|judgement| &judgement.hits)
            .copied()
            .map(word)
            .collect(),
        signer: grader.table(store.clock.now()),
        subject: subject.table(),
        counts: counts(opened, findings),
        timing: Timing {
            build_ms: rounded(findings.build),
            suite_ms: rounded(findings.suite),
            total_ms: rounded(findings.total),
        },
        sandbox: sandbox_record(findings.probes.as_ref()),
        test: judgement
            .map(|judgement| judgement.tests.clone())
            .unwrap_or_default(),
    }
}

fn word(hit: crate::grade::call::Hit) -> String {
    serde_json::to_value(hit)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Tenths of a second: finer times would tell about single tests.
fn rounded(time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    millis.saturating_add(50) / 100 * 100
}

/// Probes as a document carries them.
pub fn sandbox_record(probes: Option<&Probes>) -> SandboxRecord {
    let Some(probes) = probes else {
        return SandboxRecord {
            provider: "none".into(),
            version: String::new(),
            trust: Trust::None,
            swap_exposed: false,
            probes: std::collections::BTreeMap::new(),
        };
    };
    let word = |state: State| match state {
        State::Held => "held",
        State::Open => "open",
        State::Unmeasured => "unmeasured",
    };
    SandboxRecord {
        provider: probes.provider.clone(),
        version: probes.version.clone(),
        trust: probes.trust(),
        swap_exposed: probes.swap_exposed,
        probes: probes
            .results
            .iter()
            .map(|(name, probe)| (name.clone(), word(probe.state).to_owned()))
            .collect(),
    }
}

fn counts(opened: &Opened, findings: &Findings) -> GradeCounts {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    findings.judgement.as_ref().map_or_else(
        || {
            let expected = number(opened.criteria.expected().len());
            let sentinels = number(opened.criteria.sentinels().len());
            GradeCounts {
                expected,
                missing: expected,
                sentinels,
                ..GradeCounts::default()
            }
        },
        |judgement| judgement.counts,
    )
}
