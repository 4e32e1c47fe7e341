//! Two clones that do not know of each other change one task; what each is shown once they have met.

use super::cli_help::validate;
use super::common::founded::{clock, create};
use super::common::git::git;
use super::common::hub::Hub;
use super::flow::world::World;
use super::verify::forge::{CONFIG, Forged};
use super::verify::plot::Plot;
use hangar::git::Repository;
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
    let of_loser = "title: alice set it at the same time, and that value stands";
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
