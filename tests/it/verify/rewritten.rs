//! Refs that were put back, cut or deleted. Without a high-water mark a history that is whole but
//! old can't be told from a task that is not finished; everything around it still shows.

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
