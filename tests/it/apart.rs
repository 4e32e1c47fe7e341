//! Two clones that do not know of each other change one task; what each is shown once they have met.

use super::cli_help::validate;
use super::common::founded::{clock, create};
use super::common::git::git;
use super::common::hub::Hub;
use super::common::write;
use super::flow::world::World;
use super::verify::forge::{CONFIG, Forged};
use super::verify::plot::Plot;
use hangar::git::Repository;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::model::task::State;
use hangar::store::Store;
use hangar::store::sync::{NotApplied, Report, Wanted, sync};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[test]
fn show_and_log_name_both_values_until_an_edit_settles_it() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    let edit = |dir: &Path, args: &[&str]| {
        let args = [&["task", "edit", &task][..], args].concat();
        hub.env.hangar(dir, &args).success();
    };
    edit(&first, &["--title", "From the first", "--priority", "2"]);
    edit(&second, &["--title", "From the second", "--priority", "2"]);
    for dir in [&first, &second, &first] {
        hub.sync(dir).success();
    }
    let show = hub.show(&second, &task);
    validate("task-show", &show);
    assert_eq!(show, hub.show(&first, &task));
    let beside = show["beside"].as_array().unwrap();
    assert_eq!(beside.len(), 1, "the same priority is no other: {show}");
    let mut titles = [&show["title"], &beside[0]["value"]].map(|one| one.as_str().unwrap());
    let lost = titles[1];
    titles.sort_unstable();
    assert_eq!(titles, ["From the first", "From the second"]);
    assert_eq!(
        (&beside[0]["field"], &beside[0]["by"]),
        (&"title".into(), &"alice".into())
    );

    let text = hub.env.hangar(&first, &["task", "show", &task]).success();
    assert!(
        text.stdout.contains("Set at the same time, not in force"),
        "{text}"
    );
    assert!(text.stdout.contains(lost), "{text}");
    let log = hub.env.json(&first, &["task", "log", &task]);
    validate("task-log", &log);
    let marks = marks(&log);
    assert_eq!(marks.len(), 2, "{log}");
    let of_loser =
        "title: alice set it at the same time, and that value stands; this one by alice does not";
    let of_winner = "title: alice set it at the same time; this value stands";
    assert!(
        marks.contains(&of_loser.into()) && marks.contains(&of_winner.into()),
        "{marks:?}"
    );

    edit(&first, &["--title", "Settled"]);
    let show = hub.show(&first, &task);
    assert_eq!(
        (&show["title"], &show["beside"]),
        (&"Settled".into(), &Value::Null)
    );
}

/// Of three values set at the same time one stands, and all that lose name that one.
#[test]
fn the_value_that_stands_is_the_one_that_every_other_names() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let clones = [first, hub.clone("second"), hub.clone("third")];
    for (at, dir) in clones.iter().enumerate() {
        hub.edit(dir, &task, &format!("Title {at}"));
    }
    for dir in clones.iter().chain(&clones) {
        hub.sync(dir).success();
    }
    let log = hub.env.json(&clones[0], &["task", "log", &task]);
    let documents = log["documents"].as_array().unwrap().iter();
    let marks: Vec<String> = documents
        .filter_map(|one| one.get("beside"))
        .map(ToString::to_string)
        .collect();
    let stand = |mark: &&String| mark.contains("this value stands");
    assert_eq!(marks.len(), 3, "{log}");
    assert_eq!(marks.iter().filter(stand).count(), 1, "{marks:?}");
    let lost = |mark: &&String| {
        mark.matches("and that value stands; this one by alice")
            .count()
            == 1
    };
    assert_eq!(marks.iter().filter(lost).count(), 2, "{marks:?}");
}

/// Who was told the opposite by somebody else sees that neither stands.
#[test]
fn of_opposite_adjudications_neither_stands_and_show_says_so() {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    let (root, first) = (world.dir.path().to_owned(), world.repo_dir());
    let id = world.task(&world.store(), "Subtract", &["5 3 prints 2"]);
    git(&root, &["clone", "-q", "--mirror", "repo", "second"]);
    let hub = root.join("hub.git");
    git(&root, &["init", "-q", "--bare", "hub.git"]);
    let [one, two] = [b"one", b"two"].map(|text| Digest::of(text));
    for (dir, stands, falls) in [("repo", one, two), ("second", two, one)] {
        let store = Store::open(Repository::discover(&root.join(dir)).unwrap(), clock()).unwrap();
        let change = Change::Adjudicate {
            stands,
            falls: vec![falls],
            reason: format!("by {dir}"),
        };
        let alice = world.person(&store);
        store
            .change_task(&id, &alice, |_| Ok(vec![change.clone()]))
            .unwrap();
    }
    let show = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_hangar"))
            .current_dir(&first)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["task", "show", id.as_str()])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let said = |text: &str| -> Vec<Value> {
        let view: Value = serde_json::from_str(text).unwrap();
        validate("task-show", &view);
        view["adjudicated"].as_array().unwrap().clone()
    };
    let alone = said(&show(&["--json"]));
    assert_eq!((alone.len(), &alone[0]["in_force"]), (1, &true.into()));
    assert!(!show(&[]).contains("does not stand"));
    for dir in ["repo", "second", "repo"] {
        sync_with(&root.join(dir), &hub);
    }
    let both = said(&show(&["--json"]));
    assert_eq!(both.len(), 2, "{both:?}");
    for one in &both {
        assert_eq!(
            (&one["in_force"], &one["opposite"]),
            (&false.into(), &true.into())
        );
    }
    let text = show(&[]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("so neither document stands until an approver who has seen both says which"),
        "{text}"
    );
}

/// The branch of a plain task stays with whoever delivered it until it is pushed.
#[test]
fn a_plain_task_whose_branch_was_not_pushed_is_not_here_and_no_fault() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let task = hub.task(&first, "Plain");
    let hangar = |args: &[&str]| hub.env.hangar(&first, args);
    hangar(&["task", "enqueue", &task]).success();
    hub.env.git(&first, &["checkout", "-q", "-b", "work"]);
    write(&first.join("new.txt"), "new\n");
    hub.env.commit(&first, "Work");
    hangar(&["submit", &task, "--rev", "work"]).success();
    hub.sync(&first).success();
    hub.sync(&second).success();
    let verify = |dir: &Path| hub.env.hangar(dir, &["verify", "--all"]);
    let there = verify(&first).success();
    assert!(!there.stdout.contains("is not here"), "{there}");
    let away = verify(&second).success();
    let text = away.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("is not here: it lies on"), "{away}");
    assert!(text.contains("Nothing here is at fault"), "{away}");
    // One task alone is answered as any plain one: no, and no fault.
    let alone = hub.env.hangar(&second, &["verify", &task]).exits(1);
    assert!(!alone.stdout.contains("delivery: commit"), "{alone}");
}

fn marks(log: &Value) -> Vec<String> {
    let documents = log["documents"].as_array().unwrap().iter();
    let marks = documents
        .filter_map(|one| one["beside"].as_array())
        .flatten();
    marks.map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn sync_with(dir: &Path, hub: &Path) -> Report {
    let store = Store::open(Repository::discover(dir).unwrap(), clock()).unwrap();
    let wanted = Wanted {
        remote: hub.to_str().unwrap(),
        timeout: Duration::from_secs(60),
        prefix: None,
        push: true,
    };
    sync(store, &wanted).unwrap().1
}

/// A task that one clone takes through the whole flow, while another, which knows its first event
/// only, does `meanwhile`. Then both meet.
fn delivered_meanwhile(meanwhile: &Change) -> (Forged, Report) {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    let (root, first) = (world.dir.path().to_owned(), world.repo_dir());
    let store = world.store();
    let alice = world.person(&store);
    let id = store
        .create_task(
            &alice,
            create(&store, "KAN-80", "Subtract", &["5 3 prints 2"]),
        )
        .unwrap();
    git(&root, &["clone", "-q", "--mirror", "repo", "second"]);
    let hub = root.join("hub.git");
    git(&root, &["init", "-q", "--bare", "hub.git"]);

    let second = Store::open(Repository::discover(&root.join("second")).unwrap(), clock()).unwrap();
    second
        .change_task(&id, &alice, |_| Ok(vec![meanwhile.clone()]))
        .unwrap();
    store
        .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap();
    let forged = Forged::of(world, id, &Plot::default());
    sync_with(&first, &hub);
    let told = sync_with(&root.join("second"), &hub);
    sync_with(&first, &hub);
    (forged, told)
}

#[test]
fn what_a_clone_does_beside_a_delivery_is_shown_and_takes_nothing_back() {
    let title = Change::Edit {
        title: Some("Too late".into()),
        mandate: None,
        criteria: None,
        priority: None,
        tags: None,
        base: None,
    };
    let cancel = Change::Cancel {
        reason: "not needed".into(),
    };
    for meanwhile in [Change::Delete, cancel, title] {
        let (forged, told) = delivered_meanwhile(&meanwhile);
        let name = meanwhile.name();
        let task = forged.dossier().history.task;
        assert_eq!(
            (task.state, task.title.as_str()),
            (State::Done, "Subtract"),
            "{name}"
        );
        let answer = forged.task();
        answer.is_yes();
        let note = format!("`{name}` by alice");
        assert!(answer.text.contains(&note), "{}", answer.text);
        assert!(
            answer.text.contains("the delivery by worker"),
            "{}",
            answer.text
        );
        // Whoever did it is told that it counts no more.
        let told = told.not_applied.iter().any(|one| {
            matches!(one, NotApplied::Refused { why, .. } if why.contains("the delivery by worker"))
        });
        assert!(told, "{name}");
    }
}

fn ask(forged: &Forged, args: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_hangar"))
        .current_dir(forged.dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", forged.world.dir.path().join("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(args)
        .arg("--json")
        .output()
        .unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What the log says, with the mark of what was withdrawn.
fn told(forged: &Forged, id: &TaskId) -> Vec<String> {
    let log = ask(forged, &["task", "log", id.as_str()]);
    validate("task-log", &log);
    let line = |one: &Value| {
        let mark = if one["withdrawn"] == true {
            " (withdrawn)"
        } else {
            ""
        };
        format!("{}{mark}", one["what"].as_str().unwrap())
    };
    log["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

/// Every document of these tests has the same claimed second.
#[test]
fn documents_of_one_second_are_told_in_the_order_of_their_causes() {
    let forged = Forged::honest();
    let told = told(&forged, &forged.id);
    let place = |part: &str| {
        let found = told.iter().position(|what| what.starts_with(part));
        found.unwrap_or_else(|| panic!("{part}: {told:#?}"))
    };
    let order = [
        "created",
        "enqueued",
        "claimed",
        "sealed version 1",
        "approved version 1",
        "stage implementing, uses the approval",
        "implementer round 1 for version 1",
        "graded accepted",
        "delivered",
    ];
    for pair in order.windows(2) {
        assert!(place(pair[0]) < place(pair[1]), "{pair:?}: {told:#?}");
    }
}

#[test]
fn a_decision_that_was_taken_back_is_told_as_withdrawn() {
    let forged = Forged::new(&Plot::undelivered());
    let action = hangar::model::approval::Action::Reject;
    forged.world.decide(&forged.id, action, "on second thought");
    let told = told(&forged, &forged.id);
    let place = |part: &str| told.iter().position(|what| what == part);
    let (before, after) = (
        place("approved version 1 (withdrawn)"),
        place("rejected version 1"),
    );
    assert!(before.is_some() && before < after, "{told:#?}");
}
