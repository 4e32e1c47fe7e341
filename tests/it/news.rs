//! What a sync brings and nobody would look for: told once in every clone, and marked where it is seen.

use super::cli_flow::Place;
use super::cli_help::validate;
use super::cli_review::Colleague;
use super::common::hub::{Hub, Team};
use super::common::{Ran, TestEnv, write};
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn json(env: &TestEnv, dir: &Path, schema: &str, args: &[&str]) -> Value {
    let value = env.json(dir, args);
    validate(schema, &value);
    value
}

/// A team and another clone of alice's.
fn with_twin() -> (Team, PathBuf) {
    let team = Team::with("admin");
    let twin = team.hub.clone("twin");
    (team, twin)
}

#[test]
fn a_key_that_was_declared_compromised_is_told_once_elsewhere_and_its_tasks_are_marked() {
    let (team, twin) = with_twin();
    let (alice, bob) = (team.alice(), &team.bob);
    // What alice has not seen when she declares it is not on her list.
    let new = ["task", "new", "Sneaked in", "--plain", "--json"];
    let task = bob.hangar(&team.second, &new).success().json();
    let task = task["id"].as_str().unwrap();
    let remove = ["policy", "remove", "bob", "--compromised"];
    let own = alice.hangar(&team.first, &remove).success();
    let told = |ran: &Ran| {
        let stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        stderr.matches("of bob compromised: nothing").count()
    };
    assert_eq!(told(&own), 0, "{own}");
    alice.hangar(&team.first, &["sync"]).success();
    let name = format!("refs/hangar/tasks/{task}");
    bob.git(
        &team.second,
        &["push", "-q", "origin", &format!("{name}:{name}")],
    );
    let ran = alice.hangar(&twin, &["sync"]);
    assert_eq!(told(&ran), 1, "{ran}");
    assert!(
        ran.stdout.contains("policy     version 3: - bob (admin)"),
        "{ran}"
    );
    let page = alice.hangar(&twin, &["task", "show", task]);
    let next = page
        .stdout
        .lines()
        .find_map(|line| line.split_once("hangar policy adopt "));
    let next = next.unwrap_or_else(|| panic!("{page}")).1.trim();
    assert!(!page.stdout.contains("hangar run"), "{page}");
    for dir in [&twin, &team.first] {
        let again = alice.hangar(dir, &["sync"]);
        assert_eq!(told(&again), 0, "{again}");
        assert!(!again.stdout.contains("policy  "), "{again}");
    }
    alice
        .hangar(&twin, &["task", "new", "Honest", "--plain"])
        .success();
    // From the documents, and from the index.
    for _ in 0..2 {
        let list = json(alice, &twin, "task-list", &["task", "list"]);
        let doubts = |title: &str| {
            let mut tasks = list["tasks"].as_array().unwrap().iter();
            tasks.find(|one| one["title"] == title).unwrap()["doubt"].clone()
        };
        let doubt = doubts("Sneaked in");
        assert!(
            doubt.as_str().unwrap().contains("was compromised"),
            "{doubt}"
        );
        assert_eq!(doubts("Honest"), Value::Null);
    }
    let list = alice.hangar(&twin, &["task", "list"]).success();
    assert!(list.stdout.contains("bob (does not count)"), "{list}");
    let show = alice.hangar(&twin, &["task", "show", task]).success();
    assert!(
        show.stdout
            .contains("does not count: its key was compromised"),
        "{show}"
    );
    alice.hangar(&twin, &["policy", "adopt", next]).success();
    let show = alice.hangar(&twin, &["task", "show", task]).success();
    assert!(!show.stdout.contains("policy adopt"), "{show}");
}

#[test]
fn the_rows_of_an_approver_whose_key_was_compromised_are_marked() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    bob.hangar(&["review", "KAN-1"]).success();
    bob.hangar(&["approve", "KAN-1", "--digest", digest])
        .success();
    let marked = || {
        let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
        let rows = task["timeline"].as_array().unwrap().clone();
        let rows = rows.into_iter().filter(|row| row.get("doubt").is_some());
        rows.map(|row| (row["kind"].clone(), row["by"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(marked(), []);
    let remove = ["policy", "remove", "bob", "--compromised"];
    place.env.hangar(&place.dir, &remove).success();
    assert_eq!(marked(), [("approval".into(), "bob".into())]);
    let show = place.env.hangar(&place.dir, &["task", "show", "KAN-1"]);
    let text = show.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("approved version 1 does not count: its key was compromised"),
        "{show}"
    );
}

#[test]
fn a_version_of_the_policy_that_was_overtaken_is_told_once_and_stays_in_the_log() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    let sync = |env: &TestEnv, dir: &Path| env.hangar(dir, &["sync"]).success();
    sync(alice, &team.first);
    sync(bob, &team.second);
    let propose = |env: &TestEnv, dir: &Path, name: &str| {
        let key = alice.add_key(name);
        let add = ["policy", "add", name, "--key", &key, "--json"];
        let waits = env.hangar(dir, &add).exits(6).json();
        waits["digest"].as_str().unwrap().to_owned()
    };
    let carol = propose(alice, &team.first, "carol");
    let dave = propose(bob, &team.second, "dave");
    sync(bob, &team.second);
    let told = |ran: &Ran| ran.stderr.matches("was overtaken").count();
    let early = sync(alice, &team.first);
    assert_eq!(told(&early), 0, "{early}");
    // bob puts alice's in force, which takes the number of his own: it is told right then.
    let signed = bob
        .hangar(&team.second, &["policy", "sign", &carol])
        .success();
    assert_eq!(told(&signed), 1, "{signed}");
    // A command that fetches tells it, too.
    let inbox = alice.hangar(&team.first, &["inbox"]).success();
    assert_eq!(told(&inbox), 1, "{inbox}");
    for part in [
        &dave[7..15],
        "bob signed",
        "+ dave (member)",
        "makes the change again",
    ] {
        let text = inbox
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(part), "{part}: {inbox}");
    }
    for (env, dir) in [(alice, &team.first), (bob, &team.second)] {
        assert_eq!(told(&sync(env, dir)), 0);
        for page in ["show", "log"] {
            let args = ["policy", page];
            let page = env.hangar(dir, &args).success();
            assert!(page.stdout.contains("overtaken: "), "{page}");
        }
    }
    let log = json(alice, &team.first, "policy-log", &["policy", "log"]);
    assert_eq!(
        log["versions"][0]["overtaken"][0]["digest"],
        dave.as_str(),
        "{log}"
    );
    assert_eq!(log["versions"][1].get("overtaken"), None, "{log}");
    // Of a version that a newer one has followed tells the log alone.
    let one = ["policy", "edit", "--members-threshold", "1", "--json"];
    let waits = alice.hangar(&team.first, &one).exits(6).json();
    sync(alice, &team.first);
    sync(bob, &team.second);
    let sign = ["policy", "sign", waits["digest"].as_str().unwrap()];
    bob.hangar(&team.second, &sign).success();
    let show = json(bob, &team.second, "policy-show", &["policy", "show"]);
    assert_eq!(show.get("overtaken"), None, "{show}");
    let log = json(bob, &team.second, "policy-log", &["policy", "log"]);
    assert_eq!(
        log["versions"][1]["overtaken"][0]["digest"],
        dave.as_str(),
        "{log}"
    );
}

#[test]
fn an_external_key_that_two_clones_gave_is_told_once_in_each() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let new = |dir: &Path, title: &str, key: &str| {
        let args = ["task", "new", title, "--plain", "--json", "--key", key];
        let made = hub.env.hangar(dir, &args).success().json();
        made["id"].as_str().unwrap()[..8].to_owned()
    };
    let one = new(&first, "One", "KAN-7");
    let two = new(&second, "Two", "kan-7");
    new(&second, "Another", "KAN-8");
    // Also where the index can't be written.
    let index = second.join(".git/hangar/index.db");
    let _ = std::fs::remove_file(&index);
    std::fs::create_dir(&index).unwrap();
    let told = |ran: &Ran| ran.stderr.matches("2 tasks have the key").count();
    assert_eq!(told(&hub.sync(&first)), 0);
    let ran = hub.sync(&second);
    assert_eq!(told(&ran), 1, "{ran}");
    for part in [&one, &two, "One", "Two"] {
        assert!(ran.stderr.contains(part), "{part}: {ran}");
    }
    assert_eq!(told(&hub.sync(&second)), 0);
    let ran = hub.sync(&first);
    assert_eq!(told(&ran), 1, "{ran}");
    hub.edit(&second, &two, "Two, edited");
    hub.sync(&second);
    assert_eq!(told(&hub.sync(&first)), 0);
}

#[test]
fn a_shared_key_is_told_where_one_of_its_tasks_can_not_be_read() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let new = |dir: &Path, title: &str, key: &str| {
        let args = ["task", "new", title, "--plain", "--json", "--key", key];
        let made = hub.env.hangar(dir, &args).success().json();
        made["id"].as_str().unwrap().to_owned()
    };
    let two = new(&second, "Two", "kan-7");
    // Whoever looks for a key has read the keys of all.
    new(&second, "Another", "KAN-8");
    hub.sync(&second).success();
    let one = new(&first, "One", "KAN-7");
    hub.sync(&first);
    let event = format!("refs/hangar/tasks/{two}:event.toml");
    let event = hub.env.git(&second, &["rev-parse", &event]);
    let (folder, file) = event.trim().split_at(2);
    let object = second.join(".git/objects").join(folder).join(file);
    std::fs::remove_file(object).unwrap();
    let ran = hub.sync(&second);
    for part in [
        "2 tasks have the key `KAN-7`",
        &format!("{} by alice (One)", &one[..8]),
        &format!("{} (can't be read)", &two[..8]),
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran}");
    }
}

/// The lines about what has no effect.
fn without_effect(ran: &Ran) -> Vec<(String, String)> {
    let view = ran.json();
    let all = view["not_applied"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| (text(one, "event"), text(one, "why")))
        .collect()
}

#[test]
fn of_two_deliveries_at_once_each_clone_is_told_once_which_one_stands() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Plain");
    hub.env
        .hangar(&first, &["task", "enqueue", &task])
        .success();
    hub.sync(&first).success();
    let second = hub.clone("second");
    for (dir, name) in [(&first, "one.txt"), (&second, "two.txt")] {
        hub.env.git(dir, &["checkout", "-q", "-b", "work"]);
        write(&dir.join(name), "new\n");
        hub.env.commit(dir, "Work");
        let submit = ["submit", &task, "--rev", "work", "--offline"];
        hub.env.hangar(dir, &submit).success();
    }
    hub.sync(&first).success();
    let told = [&second, &first].map(|dir| without_effect(&hub.sync(dir).exits(1)));
    assert_eq!(told[0], told[1]);
    let log = json(&hub.env, &first, "task-log", &["task", "log", &task]);
    let rows = log["documents"].as_array().unwrap().iter();
    let delivered = rows.filter(|row| row["what"].as_str().unwrap().starts_with("delivered"));
    let (lost, stands): (Vec<_>, Vec<_>) = delivered.partition(|row| row.get("refused").is_some());
    let short = |row: &Value| row["digest"].as_str().unwrap()[7..19].to_owned();
    let (lost, stands) = (short(lost[0]), short(stands[0]));
    let [(event, why)] = told[0].as_slice() else {
        panic!("{told:?}");
    };
    assert!(event.contains(&lost), "{event}");
    assert_eq!(
        *why,
        format!(
            "the delivery by alice-worker was recorded at the same time and stands (event {stands}); the claim, the stage and the delivery by alice-worker give way (event {lost})"
        )
    );
    // No row names the one that gave way as the one that stands.
    let text = log.to_string();
    assert!(!text.contains(&format!("stands (event {lost})")), "{text}");
    assert!(!text.contains(&format!("time (event {lost})")), "{text}");
    // Whose delivery gave way has their own result on the branch, which is no step after the other.
    let branch = format!("refs/heads/hangar/{}", &task[..8]);
    let sheets = [(&first, &second), (&second, &first)].map(|(dir, other)| {
        hub.env
            .git(dir, &["fetch", "-q", other.to_str().unwrap(), &branch]);
        hub.env.hangar(dir, &["verify", &task])
    });
    let other = |ran: &Ran| {
        ran.stdout
            .contains("which does not rest on the recorded result")
    };
    assert_eq!(
        sheets.iter().filter(|ran| other(ran)).count(),
        1,
        "{}{}",
        sheets[0],
        sheets[1]
    );
    assert!(
        !sheets.iter().any(|ran| ran.stdout.contains("has moved on")),
        "{}",
        sheets[0]
    );
    // Whatever else comes for the task, it is not told again.
    let name = format!("refs/hangar/runs/{task}");
    hub.env.git(&first, &["update-ref", "-d", &name]);
    let again = hub.sync(&first).success();
    assert_eq!(again.json()["fetched"][0], name.as_str(), "{again}");
    let comment = ["task", "comment", &task, "Which one?"];
    hub.env.hangar(&second, &comment).success();
    for dir in [&second, &first] {
        assert_eq!(without_effect(&hub.sync(dir).success()), []);
    }
}

/// A command that claims a task takes everything that the arbiter has; a sync would find nothing new of it.
#[test]
fn what_came_while_a_command_asked_the_arbiter_is_told() {
    let (hub, first) = Hub::new();
    let arbiter = ["policy", "edit", "--arbiter", hub.bare.to_str().unwrap()];
    hub.env.hangar(&first, &arbiter).success();
    let [task, other] = ["Mine", "Other"].map(|title| hub.task(&first, title));
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.env
        .hangar(&first, &["task", "cancel", &other])
        .success();
    hub.sync(&first).success();
    let enqueue = ["task", "enqueue", &other, "--offline"];
    hub.env.hangar(&second, &enqueue).success();
    hub.env.git(&second, &["checkout", "-q", "-b", "work"]);
    write(&second.join("new.txt"), "new\n");
    hub.env.commit(&second, "Work");
    let submit = ["submit", &task, "--rev", "work"];
    let ran = hub.env.hangar(&second, &submit).success();
    let text = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the enqueueing by alice gives way"), "{ran}");
    assert_eq!(without_effect(&hub.sync(&second).success()), []);
}

#[test]
fn what_a_command_had_no_room_to_name_is_left_to_the_next_sync() {
    let (hub, first) = Hub::new();
    let tasks: Vec<_> = (0..5).map(|_| hub.task(&first, "Plain")).collect();
    hub.sync(&first).success();
    let second = hub.clone("second");
    for task in &tasks {
        let args = ["task", "cancel", task, "--offline"];
        hub.env.hangar(&first, &args).success();
        let args = ["task", "enqueue", task, "--offline"];
        hub.env.hangar(&second, &args).success();
    }
    hub.sync(&first).success();
    for dir in [&second, &first] {
        let inbox = hub.env.hangar(dir, &["inbox"]).success();
        let text = inbox.stderr.split_whitespace().collect::<Vec<_>>();
        let text = text.join(" ");
        assert_eq!(
            text.matches("the enqueueing by alice gives way").count(),
            3,
            "{inbox}"
        );
        assert!(text.contains("2 more things of"), "{inbox}");
        assert!(text.contains("`hangar sync` names them"), "{inbox}");
        let named = |task: &str| text.contains(&task[..8]);
        let left = tasks.iter().filter(|task| !named(task)).count();
        assert_eq!(left, 2, "{inbox}");
        let sync = hub.sync(dir).exits(1);
        assert_eq!(sync.json()["whole"], false, "{sync}");
        let told = sync.json()["not_applied"].as_array().unwrap().clone();
        let told: Vec<_> = told
            .iter()
            .map(|one| one["task"].as_str().unwrap())
            .collect();
        assert_eq!(told.len(), 2, "{sync}");
        assert!(told.iter().all(|task| !named(task)), "{sync}");
        let again = hub.env.hangar(dir, &["sync"]).success();
        assert!(again.stdout.starts_with("up to date"), "{again}");
    }
}

#[test]
fn who_changes_the_policy_is_still_told_what_another_version_declared() {
    let (team, twin) = with_twin();
    let alice = team.alice();
    let remove = ["policy", "remove", "bob", "--compromised"];
    alice.hangar(&team.first, &remove).success();
    // The version is here, and nothing was told of it.
    let policy = "refs/hangar/policy";
    alice.git(
        &twin,
        &["fetch", "-q", "origin", &format!("{policy}:{policy}")],
    );
    let key = alice.add_key("carol");
    let add = ["policy", "add", "carol", "--key", &key, "--offline"];
    let told = |ran: &Ran| {
        let stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        stderr.matches("of bob compromised: nothing").count()
    };
    let add = alice.hangar(&twin, &add).success();
    let sync = alice.hangar(&twin, &["sync"]).success();
    assert_eq!(told(&add) + told(&sync), 1, "{add}{sync}");
}

#[test]
fn who_is_too_late_is_told_who_was_there_and_by_what() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Plain");
    let hangar = |args: &[&str]| hub.env.hangar(&first, args);
    hangar(&["task", "enqueue", &task]).success();
    let log = |at: usize| {
        let log = json(&hub.env, &first, "task-log", &["task", "log", &task]);
        log["documents"][at]["digest"].as_str().unwrap()[7..19].to_owned()
    };
    let late = hangar(&["task", "enqueue", &task]).exits(4);
    let since = format!("(since the enqueueing by alice, event {})", log(1));
    assert!(late.stderr.contains(&since), "{late}");
    hangar(&["task", "cancel", &task]).success();
    let late = hangar(&["task", "cancel", &task]).exits(4);
    let since = format!("(since the cancellation by alice, event {})", log(2));
    assert!(late.stderr.contains(&since), "{late}");
}

#[test]
fn of_two_who_seal_at_once_one_is_told_what_the_other_sealed() {
    let place = Place::new();
    // Who seals looks for a key after reading what is sealed already: there this agent holds one of them.
    let socket = place.env.root().join("agent");
    let agent = UnixListener::bind(&socket).unwrap();
    let map = ["--map", "c1=tests/sub.sh", "--map", "c1=tests/guard.sh"];
    let args = [&["seal", "KAN-1", "--from", "../hidden"][..], &map].concat();
    let mut seal = place.env.command(env!("CARGO_BIN_EXE_hangar"), &place.dir);
    seal.args(&args).env("SSH_AUTH_SOCK", &socket);
    seal.stdout(Stdio::null()).stderr(Stdio::piped());
    let seal = seal.spawn().unwrap();
    let seal = std::thread::spawn(move || {
        let out = seal.wait_with_output().unwrap();
        // Where it ended without asking, nobody waits for it.
        drop(UnixStream::connect(socket));
        out
    });
    let (mut asked, _) = agent.accept().unwrap();
    drop(agent);
    let other = place.env.hangar(&place.dir, &args);
    // It holds no keys. Whoever asked may have stopped waiting for that.
    let _ = asked.write_all(&[0, 0, 0, 5, 12, 0, 0, 0, 0]);
    drop(asked);
    let out = seal.join().unwrap();
    // Both had begun before either sealed.
    let said = match (out.status.code(), other.code) {
        (Some(5), Some(0)) => String::from_utf8(out.stderr).unwrap(),
        (Some(0), Some(5)) => other.stderr.clone(),
        codes => panic!("{codes:?}: {other}"),
    };
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let versions = task["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "{task}");
    let digest = &versions[0]["manifest"].as_str().unwrap()[7..19];
    let told = format!(
        "a grader of alice sealed tests that alice wrote as version 1 (manifest {digest}) while these were checked"
    );
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&told), "{said}");
}
