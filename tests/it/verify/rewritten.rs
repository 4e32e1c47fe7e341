//! Refs that were put back, cut or deleted. In a clone that has never seen them a history that is
//! whole but old can't be told from a task that is not finished; everything around it still shows. A
//! clone that has seen them names each.

use super::forge::Forged;

#[test]
fn the_tasks_ref_put_back_to_before_the_delivery() {
    let forged = Forged::honest();
    let old = forged.git(&["rev-parse", &format!("{}~1", forged.events())]);
    forged.git(&["update-ref", &forged.events(), &old]);
    let answer = forged.task();
    assert_eq!(answer.code, Some(1));
    assert!(answer.text.contains("not delivered yet"), "{}", answer.text);
    // The delivered commit still names the task.
    let revision = forged.verify(&["hangar/KAN-80"]);
    assert_eq!(revision.code, Some(1));
    assert!(
        revision.text.contains("delivery the refs don't record"),
        "{}",
        revision.text
    );
}

#[test]
fn the_tasks_ref_put_back_to_before_the_approval_was_used() {
    let forged = Forged::honest();
    let old = forged.git(&["rev-parse", &format!("{}~2", forged.events())]);
    forged.git(&["update-ref", &forged.events(), &old]);
    forged.task().names("history", "put back or rewritten");
}

#[test]
fn an_event_taken_out_of_the_middle() {
    let forged = Forged::honest();
    let events = forged.events();
    let tip = forged.git(&["rev-parse", &events]);
    let tree = forged.git(&["rev-parse", &format!("{tip}^{{tree}}")]);
    // The delivery stands on the event before the one that it names.
    let commit = forged.git(&["commit-tree", &tree, "-p", &format!("{tip}~2"), "-m", "x"]);
    forged.git(&["update-ref", &events, &commit]);
    let answer = forged.task();
    answer.names("history", "follows an event that is not here");
}

#[test]
fn a_history_without_its_beginning() {
    let forged = Forged::honest();
    let events = forged.events();
    let tree = forged.git(&["rev-parse", &format!("{events}^{{tree}}")]);
    let commit = forged.git(&["commit-tree", &tree, "-m", "x"]);
    forged.git(&["update-ref", &events, &commit]);
    forged.task().names("history", "no creation event");
}

#[test]
fn a_chain_that_was_emptied_or_deleted() {
    for (reference, link, what) in [
        (
            Forged::sealed as fn(&Forged) -> String,
            "versions",
            "no believed version",
        ),
        (Forged::runs, "run", "no believed run"),
        (Forged::grades, "grade", "no believed grade"),
        (Forged::approval, "approval", "deleted or rewritten"),
    ] {
        let forged = Forged::honest();
        forged.git(&["update-ref", "-d", &reference(&forged)]);
        forged.task().names(link, what).answers(false, false);
    }
}

#[test]
fn a_deleted_task_leaves_documents_that_all_shows() {
    let forged = Forged::honest();
    forged.verify(&["--all"]).is_yes();
    forged.git(&["update-ref", "-d", &forged.events()]);
    forged
        .verify(&["--all"])
        .names("documents", "a task that is not here");
}

#[test]
fn a_ref_that_points_at_nonsense() {
    let forged = Forged::honest();
    let blob = forged.blob(b"nonsense");
    let old = forged.git(&["rev-parse", &forged.grades()]);
    let file = forged.dir().join(".git").join(forged.grades());
    std::fs::write(&file, format!("{blob}\n")).unwrap();
    let answer = forged.task();
    assert_eq!(answer.code, Some(1), "{}", answer.text);
    assert!(!answer.faults().is_empty());
    std::fs::write(&file, format!("{old}\n")).unwrap();
    forged.task().is_yes();
}

#[test]
fn a_clone_that_has_seen_a_ref_names_it_when_it_goes_back() {
    let forged = Forged::honest();
    let remembering = || forged.verify_remembering("xdg", &[forged.id.as_str()]);
    remembering().is_yes();
    for reference in [
        forged.events(),
        forged.sealed(),
        forged.runs(),
        forged.grades(),
        forged.approval(),
    ] {
        let tip = forged.git(&["rev-parse", &reference]);
        let before = forged.git(&["rev-list", "--max-count=1", "--skip=1", &reference]);
        if !before.is_empty() {
            forged.git(&["update-ref", &reference, &before]);
            remembering().names(
                "history",
                "it was put back or rewritten: this clone has seen",
            );
        }
        forged.git(&["update-ref", "-d", &reference]);
        if reference != forged.events() {
            remembering().names("history", "it is gone: this clone has seen");
        }
        forged.git(&["update-ref", &reference, &tip]);
        remembering().is_yes();
    }
    // A ref that grew, by whoever, is fine.
    forged.append(&forged.events(), &[("note.txt", b"x")]);
    let answer = remembering();
    assert!(
        !answer.text.contains("this clone has seen"),
        "{}",
        answer.text
    );
}
