//! A delivered task in the archive: verified as before, and what an archive loses is named.

use super::forge::Forged;
use super::plot::Plot;

/// What the archive's file of the task says, without the lines that `drop` means, as its new file.
fn rewrite_file(forged: &Forged, drop: &str) {
    let id = forged.id.as_str();
    let name = format!("refs/hangar/archive/{}", &id[..1]);
    let place = format!("{}/{id}", &id[1..3]);
    let text = forged.git(&["show", &format!("{name}:{place}")]);
    let lines = text.split_inclusive('\n');
    let kept: String = lines.filter(|line| !line.contains(drop)).collect();
    let kept = kept.trim_end().to_owned() + "\n";
    let blob = forged.blob(kept.as_bytes());
    let index = forged.world.dir.path().join("index");
    let index = format!("GIT_INDEX_FILE={}", index.display());
    let script = format!(
        "git read-tree {name} && git update-index --cacheinfo 100644,{blob},{place} && git update-ref {name} $(git commit-tree $(git write-tree) -p {name} -m archive)"
    );
    let out = std::process::Command::new("env")
        .args([
            &index,
            "GIT_AUTHOR_NAME=x",
            "GIT_AUTHOR_EMAIL=x",
            "GIT_COMMITTER_NAME=x",
            "GIT_COMMITTER_EMAIL=x",
            "sh",
            "-c",
            &script,
        ])
        .current_dir(forged.dir())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn an_archived_task_is_verified_as_before() {
    let forged = Forged::honest();
    forged.task().is_yes();
    let names = [
        forged.sealed(),
        forged.runs(),
        forged.grades(),
        forged.events(),
        forged.approval(),
    ];
    let store = forged.store();
    store.archive(std::slice::from_ref(&forged.id)).unwrap();
    let left = forged.git(&["for-each-ref", "--format=%(refname)", "refs/hangar/"]);
    for name in &names {
        assert!(!left.contains(name), "{left}");
    }
    forged
        .verify_remembering("xdg", &[forged.id.as_str()])
        .is_yes();
    forged.verify(&["--all"]).is_yes();
    let branch = forged.git(&["for-each-ref", "--format=%(refname)", "refs/heads/hangar/"]);
    forged.verify(&[&branch]).is_yes();
    let reports = [
        ("approvals/", "approval"),
        ("grades/", "grade"),
        ("runs/", "run"),
    ];
    for (lost, link) in reports {
        let before = forged.git(&[
            "rev-parse",
            &format!("refs/hangar/archive/{}", &forged.id.as_str()[..1]),
        ]);
        rewrite_file(&forged, lost);
        let answer = forged.task();
        assert_eq!(answer.code, Some(1), "{lost} {}", answer.text);
        assert!(
            answer.faults().iter().any(|fault| fault["link"] == link),
            "{}",
            answer.text
        );
        forged.git(&[
            "update-ref",
            &format!("refs/hangar/archive/{}", &forged.id.as_str()[..1]),
            &before,
        ]);
    }
    forged.task().is_yes();
    rewrite_file(&forged, "tasks/");
    let answer = forged.task();
    assert_ne!(answer.code, Some(0), "{}", answer.text);
}

#[test]
fn a_task_that_somebody_archived_before_it_ended() {
    let forged = Forged::new(&Plot::undelivered());
    let control = forged.verify(&["--all"]);
    assert_eq!(control.faults(), [] as [serde_json::Value; 0]);
    let store = forged.store();
    store.archive(std::slice::from_ref(&forged.id)).unwrap();
    forged.verify(&["--all"]).names("history", "has not ended");
    forged.task().names("history", "has not ended");
}
