//! `hangar verify REV`: exact, rebased, or no.

use super::forge::Forged;
use super::plot::GOOD;
use hangar::model::event::Change;

fn answer_of(answer: &super::answer::Answer) -> String {
    answer.json["revision"]["answer"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_delivered_commit_is_exact() {
    let forged = Forged::honest();
    let answer = forged.verify(&["hangar/KAN-80"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "exact");
}

/// The delivered tree once more on the same parent, with another message.
fn again(forged: &Forged, message: &str) -> String {
    let tree = "hangar/KAN-80^{tree}";
    forged.git(&["commit-tree", tree, "-p", "hangar/KAN-80~1", "-m", message])
}

#[test]
fn trailers_that_say_more_than_what_was_signed_are_a_fault() {
    let forged = Forged::honest();
    let message = forged.git(&["log", "-1", "--format=%B", "hangar/KAN-80"]);
    // The control: the same trailers, or none, as a host that squashes leaves it.
    forged.verify(&[&again(&forged, &message)]).is_yes();
    forged.verify(&[&again(&forged, "Subtract (#12)")]).is_yes();
    let acceptance = message.lines().find(|line| line.contains("verdict="));
    let external = acceptance
        .unwrap()
        .replace("verdict=exit", "verdict=external");
    assert_ne!(Some(external.as_str()), acceptance);
    let swapped = message.replace(acceptance.unwrap(), &external);
    let more = format!("{message}\n{external}");
    let run = "Hangar-Run: sha256:";
    let other = message
        .replace(run, &format!("{run}ff"))
        .replace("Hangar-Task", "X-Task");
    for (message, trailer) in [
        (&swapped, "Hangar-Acceptance"),
        (&more, "Hangar-Acceptance"),
        (&other, "Hangar-Run"),
        (
            &format!("{message}\nHangar-Suite: published"),
            "Hangar-Suite",
        ),
    ] {
        let answer = forged.verify(&[&again(&forged, message)]);
        answer.names("delivery", &format!("its trailer {trailer} "));
        assert_eq!(answer_of(&answer), "exact");
    }
    // On another base, and below a merge and a commit that say nothing.
    commit(
        &forged,
        "topic",
        "main",
        &[("other.txt", "x\n")],
        "other work",
    );
    forged.git(&["reset", "-q", "--hard", "topic"]);
    commit(&forged, "topic", "main", &[("calc.sh", GOOD)], &swapped);
    forged
        .verify(&["topic"])
        .names("delivery", "Hangar-Acceptance");
    commit(&forged, "topic", "topic", &[], "quiet");
    forged
        .verify(&["topic"])
        .names("delivery", "Hangar-Acceptance");
    forged.git(&["merge", "-q", "--no-ff", "-m", "merge", "topic~1"]);
    let answer = forged.verify(&["main"]);
    answer.names("delivery", "Hangar-Acceptance");
    assert_eq!(answer_of(&answer), "rebased");
}

/// A branch at `from` with a commit on top that writes these files.
fn commit(forged: &Forged, branch: &str, from: &str, files: &[(&str, &str)], message: &str) {
    forged.git(&["checkout", "-q", "-B", branch, from]);
    for (path, text) in files {
        let path = forged.dir().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    forged.git(&["add", "-A"]);
    forged.git(&["commit", "-q", "--allow-empty", "-m", message]);
    forged.git(&["checkout", "-q", "main"]);
}

#[test]
fn a_delivered_revision_with_one_more_change() {
    let forged = Forged::honest();
    commit(
        &forged,
        "more",
        "hangar/KAN-80",
        &[("extra.txt", "x\n")],
        "one more",
    );
    let answer = forged.verify(&["more"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
    assert!(
        answer
            .text
            .contains("differs from the recorded result in extra.txt"),
        "{}",
        answer.text
    );
    // The task itself is as good as before, and its branch may move on.
    forged.git(&["branch", "-f", "hangar/KAN-80", "more"]);
    let task = forged.task();
    task.is_yes();
    assert!(task.text.contains("has moved on"), "{}", task.text);
    // Amended into the delivered commit, with its trailers.
    forged.git(&["checkout", "-q", "more"]);
    let message = forged.git(&["log", "-1", "--format=%B", "more~1"]);
    forged.git(&["reset", "-q", "--soft", "main"]);
    forged.git(&["commit", "-q", "-m", &message]);
    forged.git(&["checkout", "-q", "main"]);
    let answer = forged.verify(&["more"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
}

#[test]
fn the_same_patch_on_another_base_is_rebased() {
    let forged = Forged::honest();
    let message = forged.git(&["log", "-1", "--format=%B", "hangar/KAN-80"]);
    forged.git(&["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
    commit(
        &forged,
        "meanwhile",
        "main",
        &[("other.txt", "x\n")],
        "other work",
    );
    forged.git(&["branch", "-f", "keep", "main"]);
    forged.git(&["reset", "-q", "--hard", "meanwhile"]);
    commit(&forged, "topic", "main", &[("calc.sh", GOOD)], &message);
    let answer = forged.verify(&["topic"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "rebased");
    // Squashed without its trailers, it is found by its patch.
    commit(
        &forged,
        "squashed",
        "main",
        &[("calc.sh", GOOD)],
        "no trailer",
    );
    let answer = forged.verify(&["squashed"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "rebased");
    // Merged into the main branch.
    forged.git(&["merge", "-q", "--no-ff", "-m", "merge", "topic"]);
    let answer = forged.verify(&["main"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "rebased");
    // With a hidden second change before it, the branch as a whole is something else.
    forged.git(&["reset", "-q", "--hard", "meanwhile"]);
    commit(&forged, "evil", "main", &[("evil.sh", "x\n")], "quiet");
    commit(&forged, "evil", "evil", &[("calc.sh", GOOD)], &message);
    let answer = forged.verify(&["evil"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
}

/// Somebody has the default branch here ahead of what the remote last showed of it, or behind.
#[test]
fn a_rebased_patch_is_known_from_the_branch_here_and_from_the_remote_s() {
    let forged = Forged::honest();
    let message = forged.git(&["log", "-1", "--format=%B", "hangar/KAN-80"]);
    let before = forged.git(&["rev-parse", "main"]);
    let shown = |tip: &str| {
        forged.git(&["update-ref", "refs/remotes/origin/main", tip.trim()]);
    };
    forged.git(&["remote", "add", "origin", "https://example.invalid/r"]);
    commit(
        &forged,
        "ahead",
        "main",
        &[("other.txt", "x\n")],
        "other work",
    );
    forged.git(&["reset", "-q", "--hard", "ahead"]);
    commit(&forged, "topic", "main", &[("calc.sh", GOOD)], &message);
    let here = forged.git(&["rev-parse", "main"]);
    for (remote, local) in [(&before, &here), (&here, &before), (&here, &here)] {
        shown(remote);
        forged.git(&["reset", "-q", "--hard", local.trim()]);
        let answer = forged.verify(&["--offline", "topic"]);
        assert_eq!(answer_of(&answer), "rebased", "{}", answer.text);
    }
    // From neither, other work is in the patch.
    shown(&before);
    forged.git(&["reset", "-q", "--hard", before.trim()]);
    let answer = forged.verify(&["--offline", "topic"]);
    assert_eq!(answer_of(&answer), "no", "{}", answer.text);
}

/// What a merge button makes, in a clone whose main branch is ahead of what the remote last showed.
#[test]
fn a_merge_of_the_delivered_branch_is_rebased_and_an_evil_merge_is_not() {
    let forged = Forged::honest();
    forged.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    commit(
        &forged,
        "other",
        "main",
        &[("other.txt", "x\n")],
        "other work",
    );
    forged.git(&["reset", "-q", "--hard", "other"]);
    let merge = |more: &[(&str, &str)]| {
        forged.git(&["checkout", "-q", "-B", "merged", "main"]);
        forged.git(&["merge", "-q", "--no-ff", "--no-commit", "hangar/KAN-80"]);
        for (path, text) in more {
            std::fs::write(forged.dir().join(path), text).unwrap();
        }
        forged.git(&["add", "-A"]);
        forged.git(&["commit", "-q", "-m", "Merge pull request #12"]);
        forged.git(&["checkout", "-q", "main"]);
    };
    merge(&[]);
    let answer = forged.verify(&["merged"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "rebased");
    // The same on the main branch itself.
    forged.git(&["branch", "-q", "-f", "keep", "main"]);
    forged.git(&["reset", "-q", "--hard", "merged"]);
    forged.verify(&["main"]).is_yes();
    forged.git(&["reset", "-q", "--hard", "keep"]);
    // A merge that changes more than what it merges.
    for evil in [
        ("extra.txt", "x\n"),
        ("other.txt", "y\n"),
        ("calc.sh", "exit 0\n"),
    ] {
        merge(&[evil]);
        let answer = forged.verify(&["merged"]);
        assert_eq!(answer.code, Some(1), "{evil:?} {}", answer.text);
        assert_eq!(answer_of(&answer), "no");
    }
    // A right merge on top of a commit that the main branch does not hold.
    commit(&forged, "evil", "main", &[("evil.sh", "x\n")], "quiet");
    forged.git(&["checkout", "-q", "evil"]);
    forged.git(&["merge", "-q", "--no-ff", "-m", "merge", "hangar/KAN-80"]);
    forged.git(&["checkout", "-q", "main"]);
    let answer = forged.verify(&["evil"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
}

#[test]
fn a_revision_that_no_task_knows() {
    let forged = Forged::honest();
    let answer = forged.verify(&["main"]);
    assert_eq!(answer.code, Some(1));
    assert_eq!(answer_of(&answer), "no");
    assert!(
        answer.text.contains("no task delivered it"),
        "{}",
        answer.text
    );
    assert_eq!(answer.json["tasks"], serde_json::json!([]));
    let none = forged.verify(&["no-such-thing"]);
    assert_eq!(none.code, Some(2), "{}", none.text);
}

#[test]
fn a_revision_that_names_a_task_of_another_repository() {
    let forged = Forged::honest();
    let foreign = "a".repeat(52);
    commit(
        &forged,
        "foreign",
        "main",
        &[("x", "x\n")],
        &format!("t\n\nHangar-Task: {foreign}\n"),
    );
    let answer = forged.verify(&["foreign"]);
    assert_eq!(answer.code, Some(1));
    assert_eq!(answer_of(&answer), "no");
    let named = format!("the task {foreign} that it names is not here");
    assert!(answer.text.contains(&named), "{}", answer.text);
}

#[test]
fn commits_of_a_published_suite_are_left_out_and_forged_ones_are_not() {
    let forged = Forged::honest();
    let trailers = format!(
        "Publish\n\nHangar-Task: {}\nHangar-Suite: published\n",
        forged.id
    );
    commit(
        &forged,
        "suite",
        "hangar/KAN-80",
        &[("tests/sub.sh", "#!/bin/sh\n")],
        &trailers,
    );
    // The trailer alone leaves nothing out.
    let answer = forged.verify(&["suite"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
    let store = forged.store();
    let commit_id = store.repo.resolve("suite").unwrap();
    let publish = Change::Publish {
        manifest: forged.dossier().seals[0].digest(),
        commit: commit_id,
    };
    let alice = forged.world.person(&store);
    store
        .change_task(&forged.id, &alice, |_| Ok(vec![publish.clone()]))
        .unwrap();
    let answer = forged.verify(&["suite"]);
    answer.is_yes();
    assert_eq!(answer_of(&answer), "exact");
    assert_eq!(
        answer.json["revision"]["left_out"][0],
        commit_id.to_string()
    );
    // The published commit once more, with a word about the acceptance.
    let praise = format!("{trailers}Hangar-Acceptance: passed; trust=isolated\n");
    let tip = forged.git(&[
        "commit-tree",
        "suite^{tree}",
        "-p",
        "suite~1",
        "-m",
        &praise,
    ]);
    let answer = forged.verify(&[&tip]);
    answer.names("delivery", "its trailer Hangar-Acceptance ");
    // Another commit that borrows the trailers.
    commit(
        &forged,
        "borrowed",
        "suite",
        &[("calc.sh", "echo evil\n")],
        &trailers,
    );
    let answer = forged.verify(&["borrowed"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert_eq!(answer_of(&answer), "no");
}

#[test]
fn a_name_that_means_two_things_is_refused() {
    let forged = Forged::honest();
    forged.git(&["branch", "KAN-80", "main"]);
    let answer = forged.verify(&["KAN-80"]);
    assert_eq!(answer.code, Some(2), "{}", answer.text);
    forged.verify(&[forged.id.as_str()]).is_yes();
    assert_eq!(forged.verify(&["refs/heads/KAN-80"]).code, Some(1));
}

#[test]
fn an_exported_statement_names_commit_and_documents() {
    let forged = Forged::honest();
    let out = forged.verify(&["KAN-80", "--export", "in-toto"]);
    assert_eq!(out.code, Some(0), "{}", out.text);
    crate::cli_help::validate("verify-in-toto", &out.json);
    assert_eq!(out.json["predicate"]["result"], "PASSED");
    assert_eq!(
        out.json["predicate"]["passedTests"],
        serde_json::json!(["c1.1", "o1"])
    );
    let commit = forged.git(&["rev-parse", "hangar/KAN-80"]);
    assert_eq!(out.json["subject"][0]["digest"]["gitCommit"], commit);
}

/// A commit without parents that holds what the base holds.
fn unrelated(forged: &Forged) -> String {
    forged.git(&["commit-tree", "-m", "another root", "main^{tree}"])
}

#[test]
fn a_base_that_was_never_landed_is_a_note_and_no_fault() {
    let forged = Forged::honest();
    let note = "was never landed on main, as far as this clone knows";
    let answer = forged.task();
    answer.is_yes();
    assert!(!answer.text.contains("never landed"), "{}", answer.text);
    let base = forged.git(&["rev-parse", "main"]);
    assert_eq!(answer.json["tasks"][0]["base"], base.as_str());

    // The base is on a branch of its own.
    forged.git(&["branch", "aside", "main"]);
    forged.git(&["update-ref", "refs/heads/main", &unrelated(&forged)]);
    let answer = forged.task();
    answer.is_yes();
    assert!(answer.text.contains(note), "{}", answer.text);
    // The remote has it on its own.
    forged.git(&["update-ref", "refs/remotes/origin/main", &base]);
    let answer = forged.task();
    assert!(!answer.text.contains("never landed"), "{}", answer.text);
    // No branch that could be the default one.
    forged.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    forged.git(&["update-ref", "-d", "refs/heads/main"]);
    let answer = forged.task();
    answer.is_yes();
    let unknown = "this clone knows no default branch";
    assert!(answer.text.contains(unknown), "{}", answer.text);
}
