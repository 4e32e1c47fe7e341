//! Documents with good signatures that say what is not so: a grader or worker that lies.

use super::forge::Forged;
use super::plot::{GOOD, Plot};
use hangar::model::event::Change;
use hangar::model::grade::{Grade, TestOutcome};
use hangar::model::manifest::{BaseStatus, Manifest};
use hangar::model::outcome::{Secrecy, Trust, Verdict};
use hangar::model::run::Run;

#[track_caller]
fn grade(edit: &dyn Fn(&mut Grade), what: &str) {
    let forged = Forged::new(&Plot::grade(edit));
    forged.task().names("grade", what).answers(false, false);
}

#[test]
fn a_grade_that_accepts_over_a_failing_test() {
    grade(
        &|grade| {
            grade.test[0].outcome = TestOutcome::Failed;
            grade.counts.passed = 1;
            grade.counts.failed = 1;
        },
        "hidden test c1.1 did not pass",
    );
    grade(
        &|grade| {
            grade.test[1].outcome = TestOutcome::Skipped;
            grade.counts.passed = 1;
            grade.counts.skipped = 1;
        },
        "hidden test o1 did not pass",
    );
}

#[test]
fn a_grade_whose_rows_are_not_the_tests() {
    grade(
        &|grade| drop(grade.test.remove(0)),
        "not exactly the hidden tests",
    );
    grade(
        &|grade| grade.test.push(grade.test[0].clone()),
        "not exactly the hidden tests",
    );
    grade(
        &|grade| drop(grade.test.remove(2)),
        "not exactly the sentinels",
    );
    grade(
        &|grade| grade.counts.passed = 3,
        "counts are not the ones of its rows",
    );
    grade(
        &|grade| {
            grade.test[2].outcome = TestOutcome::Passed;
            grade.test[2].class = None;
            grade.counts.sentinels_held = 0;
        },
        "a test that must fail passed",
    );
    grade(&|grade| grade.test.clear(), "not exactly the hidden tests");
}

#[test]
fn a_grade_that_contradicts_itself() {
    grade(&|grade| grade.canary_found = true, "found the mark");
    grade(
        &|grade| grade.protected_touched = vec!["x".into()],
        "protected paths",
    );
    grade(
        &|grade| grade.reasons = vec!["1 tests fail".into()],
        "gives reasons against it",
    );
    grade(&|grade| grade.void = true, "void");
    grade(&|grade| grade.accepted = false, "does not accept");
}

#[test]
fn a_grade_that_claims_more_than_its_probes_and_its_adapter_show() {
    grade(
        &|grade| {
            grade.trust = Trust::SealedLimits;
            grade.sandbox.trust = Trust::SealedLimits;
        },
        "its probes show `sealed`",
    );
    grade(
        &|grade| {
            let probes = &mut grade.sandbox.probes;
            probes.insert("host-secrets".into(), "open".into());
        },
        "its probes show `none`",
    );
    grade(
        &|grade| grade.verdict = Verdict::Crosschecked,
        "exec grades reach `exit`",
    );
    grade(
        &|grade| grade.trust = Trust::Confined,
        "`sealed` is asked for",
    );
    grade(
        &|grade| grade.secrecy = Secrecy::SeparateHost,
        "another secrecy than its run",
    );
}

#[test]
fn a_grade_of_another_patch_or_base() {
    grade(
        &|grade| grade.subject.patch = grade.subject.listing,
        "another base or patch",
    );
    grade(
        &|grade| grade.subject.listing = grade.subject.base_listing,
        "another base or patch",
    );
    grade(
        &|grade| grade.subject.base_listing = grade.subject.listing,
        "its base is not the one of the base check",
    );
    grade(
        &|grade| grade.run = Some(grade.manifest),
        "that it names is not here",
    );
    grade(
        &|grade| grade.manifest = grade.subject.patch,
        "no believed version",
    );
}

#[test]
fn a_grade_that_differs_from_its_manifest() {
    grade(
        &|grade| grade.after_code = true,
        "disagrees with its manifest on whether code was seen first",
    );
    grade(&|grade| grade.counts.expected = 3, "it expects 3 tests");
    grade(
        &|grade| grade.reprepared = true,
        "packages of the patch, which its plan does not allow",
    );
}

#[test]
fn a_grade_that_overlooks_a_protected_path() {
    let edit = |manifest: &mut Manifest| manifest.plan.protected = vec!["calc.sh".into()];
    let forged = Forged::new(&Plot::manifest(&edit));
    forged
        .task()
        .names("grade", "changes the protected path `calc.sh`");
    let edit = |manifest: &mut Manifest| {
        manifest.plan.protected = vec!["calc.sh".into()];
        manifest.plan.may_touch = vec!["calc.sh".into()];
    };
    let forged = Forged::new(&Plot::manifest(&edit));
    forged.task().is_yes();
}

#[test]
fn a_grade_without_the_approval_that_was_used() {
    let edit = |grade: &mut Grade| grade.approvals.clear();
    let forged = Forged::new(&Plot::grade(&edit));
    forged.task().names("approval", "names no approval");
}

#[track_caller]
fn manifest(edit: &dyn Fn(&mut Manifest), link: &str, what: &str) {
    let forged = Forged::new(&Plot::manifest(edit));
    forged.task().names(link, what).answers(false, false);
}

#[test]
fn a_forged_base_check() {
    // A guard that is said to fail: the numbers give it away.
    manifest(
        &|manifest| manifest.base_check[1].status = BaseStatus::Fails,
        "versions",
        "base check is forged or damaged: its count of tests that fail on the base is 1",
    );
    // With the numbers bent too, whoever holds a key still sees it.
    manifest(
        &|manifest| {
            manifest.base_check[1].status = BaseStatus::Fails;
            manifest.counts.fails = 2;
            manifest.counts.guards = 0;
        },
        "payload",
        "base results inside are not the ones of its base check",
    );
    manifest(
        &|manifest| manifest.coverage[0].fails = 0,
        "versions",
        "c1 is said to have",
    );
    manifest(
        &|manifest| {
            manifest.base_check[0].status = BaseStatus::Guard;
            manifest.counts.fails = 0;
            manifest.counts.guards = 2;
            manifest.counts.uncovered = 1;
            manifest.coverage[0].fails = 0;
        },
        "versions",
        "no test of it fails on the base",
    );
    manifest(
        &|manifest| manifest.base_check.push(manifest.base_check[0].clone()),
        "versions",
        "lists a test twice",
    );
    manifest(
        &|manifest| manifest.counts.files = 9,
        "payload",
        "numbers of files",
    );
}

#[test]
fn a_manifest_for_another_text_or_base() {
    manifest(
        &|manifest| manifest.base_listing = manifest.files,
        "versions",
        "files of the base",
    );
    manifest(
        &|manifest| manifest.version = 2,
        "versions",
        "names no version before it",
    );
    manifest(
        &|manifest| manifest.previous = Some(manifest.files),
        "versions",
        "the first version names one before it",
    );
}

#[test]
fn a_payload_that_is_not_the_one_named() {
    manifest(
        &|manifest| manifest.payload = manifest.files,
        "payload",
        "another payload",
    );
    manifest(
        &|manifest| manifest.files = manifest.payload,
        "payload",
        "files",
    );
    manifest(
        &|manifest| manifest.canary = manifest.files,
        "payload",
        "canary",
    );
}

#[track_caller]
fn run(edit: &dyn Fn(&mut Run), what: &str) {
    let forged = Forged::new(&Plot::run(edit));
    forged.task().names("run", what).answers(false, false);
}

#[test]
fn a_run_whose_result_is_another_tree() {
    let result = |edit: &dyn Fn(&mut hangar::model::run::RunResult), what: &str| {
        run(&|run| edit(run.result.as_mut().unwrap()), what);
    };
    result(
        &|result| result.listing = result.base_listing,
        "files of its result tree",
    );
    result(
        &|result| result.base_listing = result.listing,
        "files of its base",
    );
    result(&|result| result.patch = result.listing, "patch id");
    result(&|result| result.changed = 7, "counts the changed paths");
}

#[test]
fn a_run_that_is_no_completed_implementation() {
    use hangar::model::run::{RunOutcome, RunRole};
    run(
        &|run| run.outcome = RunOutcome::Interrupted,
        "no completed implementation",
    );
    run(
        &|run| run.role = RunRole::Writer,
        "no completed implementation",
    );
    run(&|run| run.manifest = None, "under the delivered manifest");
}

#[test]
fn a_result_tree_that_is_not_beside_its_run() {
    // The document names the base's own tree, with all digests right for it.
    let forged = Forged::honest();
    let tree = forged.git(&["rev-parse", "main^{tree}"]);
    let edit = |run: &mut Run| run.result.as_mut().unwrap().tree = tree.parse().unwrap();
    let forged = Forged::new(&Plot::run(&edit));
    let answer = forged.task();
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    answer.names("run", "the tree beside it is not the result that it names");
}

#[test]
fn a_delivered_commit_with_another_tree() {
    let forged = Forged::new(&Plot::delivered("echo evil\n"));
    let answer = forged.task();
    answer
        .names("delivery", "its tree is not the result")
        .answers(false, false);
    // Control: the result's own text.
    Forged::new(&Plot::delivered(GOOD)).task().is_yes();
}

#[test]
fn a_delivered_commit_that_was_not_pushed_is_said_to_lie_on_its_branch() {
    let forged = Forged::honest();
    let branch = forged.git(&["for-each-ref", "--format=%(refname)", "refs/heads/hangar"]);
    forged.git(&["update-ref", "-d", branch.trim()]);
    forged.git(&["reflog", "expire", "--expire=now", "--all"]);
    forged.git(&["gc", "-q", "--prune=now"]);
    let said = format!("it lies on {} of whoever delivered it", branch.trim());
    forged.task().names("delivery", &said);
}

#[test]
fn a_delivery_that_names_other_documents() {
    let other = hangar::model::digest::Digest::of(b"another");
    type Case<'a> = (&'a dyn Fn(&mut Change), &'a str, &'a str);
    let cases: [Case<'_>; 3] = [
        (
            &|change| {
                if let Change::Deliver { run, .. } = change {
                    *run = other;
                }
            },
            "run",
            "no believed run",
        ),
        (
            &|change| {
                if let Change::Deliver { grade, .. } = change {
                    *grade = Some(other);
                }
            },
            "grade",
            "no believed grade",
        ),
        (
            &|change| {
                if let Change::Deliver { manifest, .. } = change {
                    *manifest = Some(other);
                }
            },
            "versions",
            "no believed version",
        ),
    ];
    for (edit, link, what) in cases {
        let forged = Forged::new(&Plot::delivery(edit));
        forged.task().names(link, what).names("delivery", "trailer");
    }
}

#[test]
fn an_approval_that_had_expired_when_it_was_used() {
    let edit = |approval: &mut hangar::model::approval::Approval| {
        approval.not_after = Some("2026-01-01T00:00:00Z".into());
    };
    let forged = Forged::new(&Plot::approval(&edit));
    forged.task().names("approval", "after it had expired");
    // Control: one that ended after its use, and long before now, is as good as ever.
    let edit = |approval: &mut hangar::model::approval::Approval| {
        approval.not_after = Some("2026-01-02T03:04:06Z".into());
    };
    let forged = Forged::new(&Plot::approval(&edit));
    forged.task().is_yes();
}

#[test]
fn the_mark_of_the_hidden_tests_in_the_result() {
    let forged = Forged::honest();
    let store = forged.store();
    let dossier = forged.dossier();
    let host = forged.world.host();
    let opened = hangar::flow::version::open(
        &store,
        &dossier,
        &dossier.seals[0],
        &[host.grader_identity().unwrap()],
    )
    .unwrap();
    // A later run of the task carries it out in its transcript.
    let token = opened.canary.token().to_owned();
    let attachment = hangar::model::run::Attachment {
        name: "transcript".into(),
        sha256: hangar::model::digest::Digest::of(token.as_bytes()),
        sealed: false,
    };
    let mut run = dossier.runs[0].value().clone();
    run.attachment.push(attachment);
    run.round = 2;
    let worker =
        hangar::store::identity::Identity::of(&store.policy, host.worker.signer()).unwrap();
    let more = vec![
        (
            "transcript".into(),
            hangar::store::chain::Content::File(token.into_bytes()),
        ),
        (
            "result".into(),
            hangar::store::chain::Content::Tree(run.result.as_ref().unwrap().tree),
        ),
    ];
    store
        .append_document(&forged.runs(), &worker, &run, more, "x")
        .unwrap();
    forged.task().names("canary", "holds the mark");
}

#[test]
fn the_mark_of_another_version_of_the_task_in_the_delivered_tree() {
    // The manifest names a mark that stands in the delivered file, as if an earlier suite had got out.
    let canary = hangar::seal::Canary::new();
    let text = format!("{} # {}\n", GOOD.trim_end(), canary.token());
    let edit = |manifest: &mut Manifest| manifest.canary = canary.digest();
    let plot = Plot {
        manifest: Some(&edit),
        result: Some(&text),
        ..Plot::default()
    };
    Forged::new(&plot)
        .task()
        .names("canary", "`calc.sh` holds the mark");
}

#[test]
fn a_patch_of_hooks_or_configuration_that_no_approver_signed() {
    for file in ["lefthook.yml", "Hangar.TOML", ".gitattributes"] {
        let forged = |signed_patch, run: Option<&dyn Fn(&mut Run)>| {
            Forged::new(&Plot {
                also: Some(file),
                signed_patch,
                run,
                ..Plot::default()
            })
        };
        forged(true, None).task().is_yes();
        let unsigned = forged(false, None);
        let answer = unsigned.task();
        answer.names("run", "no approver had signed the patch id");
        let hidden = |run: &mut Run| run.result.as_mut().unwrap().guarded.clear();
        let answer = forged(false, Some(&hidden)).task();
        answer.names(
            "run",
            "names the changes of CI, hooks and configuration wrongly",
        );
    }
}
