//! What a server that checks does not take since it lost its right: the commands that it names lead out, for
//! what is honest and for what is not.

use super::path;
use crate::common::hub::{Team, task_ref};
use crate::common::{Ran, TestEnv};
use std::path::{Path, PathBuf};

/// bob's edit reached alice's second clone alone, and she went on upon it; meanwhile her first clone
/// declared his key compromised. The server checks.
struct Stuck {
    team: Team,
    twin: PathBuf,
    task: String,
}

/// Commands in backticks that begin with `word`, without it, of the hints that hangar itself gives.
fn named(text: &str, word: &str) -> Vec<Vec<String>> {
    let hints: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("hint: "))
        .collect();
    let text = hints.join("\n");
    let quoted = text.split('`').skip(1).step_by(2);
    let own = quoted.filter_map(|one| one.strip_prefix(word));
    own.map(|one| one.split_whitespace().map(str::to_owned).collect())
        .collect()
}

fn typed(env: &TestEnv, dir: &Path, command: &[String]) -> Ran {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    env.hangar_found(dir, &words)
}

impl Stuck {
    fn new() -> Self {
        let team = Team::with("approver");
        let (alice, bob) = (team.alice(), &team.bob);
        let new = ["task", "new", "Before", "--plain"];
        let task = bob.json(&team.second, &new)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        team.sync();
        let twin = team.hub.clone("twin");
        let edit = ["task", "edit", &task, "--title", "By bob"];
        bob.hangar(&team.second, &edit).success();
        let from = team.second.to_str().unwrap();
        alice.hangar(&twin, &["sync", from]).success();
        let comment = ["task", "comment", &task, "Honest"];
        alice.hangar(&twin, &comment).success();
        let install = ["hook", "pre-receive", "--install"];
        alice.hangar_found(&team.hub.bare, &install).success();
        let remove = ["policy", "remove", "bob", "--compromised"];
        alice.hangar_found(&team.first, &remove).success();
        Self { team, twin, task }
    }

    /// What the author is told: of the check, and of the ways out.
    fn refused(&self) -> Ran {
        let ran = self.team.alice().hangar_found(&self.twin, &["sync"]);
        let ran = ran.exits(7);
        assert!(
            ran.stdout.contains("was compromised in policy version 3"),
            "{ran}"
        );
        ran
    }

    /// The author's ref arrives, and every clone shows this.
    fn arrives(&self, title: &str) {
        let (alice, name) = (self.team.alice(), task_ref(&self.task));
        let at = |dir: &Path| alice.git(dir, &["rev-parse", &name]);
        alice.hangar_found(&self.twin, &["sync"]).success();
        alice.hangar_found(&self.team.first, &["sync"]);
        assert_eq!(at(&self.team.hub.bare), at(&self.twin));
        for dir in [&self.team.first, &self.twin] {
            let shown = alice.json(dir, &["task", "show", &self.task]);
            assert_eq!(shown["title"], title);
            assert!(shown.to_string().contains("Honest"), "{shown}");
            alice.hangar_found(dir, &["sync"]).success();
        }
    }
}

#[test]
fn what_lost_its_right_is_let_in_by_the_commands_that_the_server_names() {
    let stuck = Stuck::new();
    let (alice, first) = (stuck.team.alice(), &stuck.team.first);
    // Also who only pushes is told.
    let name = task_ref(&stuck.task);
    let push = ["push", "--no-verify", "origin", &format!("{name}:{name}")];
    let said = alice.git_said(&stuck.twin, &push);
    said.refused(&name, "was compromised in policy version 3");
    for part in [
        "an admin lets in: `hangar sync CLONE`",
        "`hangar policy adopt sha256:",
    ] {
        assert!(said.text.contains(part), "{part}: {}", said.text);
    }
    let told = stuck.refused();
    let commands = named(&told.stdout, "hangar ");
    let [take, adopt] = commands.as_slice() else {
        panic!("{told}");
    };
    assert!(
        said.text.contains(&format!("hangar {}", adopt.join(" "))),
        "{told}"
    );
    // What the admin reads names the same.
    let taken = typed(alice, first, take).exits(1);
    assert_eq!(
        named(&taken.stdout, "hangar "),
        std::slice::from_ref(adopt),
        "{taken}"
    );
    let view = alice.json(first, &["task", "show", &stuck.task]);
    assert_eq!(view["title"], "Before");
    typed(alice, first, adopt).success();
    stuck.arrives("By bob");
}

#[test]
fn what_is_not_honest_is_taken_in_without_effect_where_the_server_says() {
    let stuck = Stuck::new();
    let told = stuck.refused();
    let fetch = named(&told.stdout, "git ");
    let [fetch] = fetch.as_slice() else {
        panic!("{told}");
    };
    let words: Vec<&str> = fetch.iter().map(String::as_str).collect();
    stuck.team.alice().git(&stuck.team.hub.bare, &words);
    stuck.arrives("Before");
}

#[test]
fn what_is_refused_for_another_reason_names_no_such_way() {
    let stuck = Stuck::new();
    let (alice, first) = (stuck.team.alice(), &stuck.team.first);
    let task = stuck.team.hub.task(first, "Other");
    let name = task_ref(&task);
    let tree = alice.git(first, &["rev-parse", "HEAD^{tree}"]);
    let junk = alice.git(first, &["commit-tree", &tree, "-p", &name, "-m", "x"]);
    alice.git(first, &["update-ref", &name, &junk]);
    let vars = [("PATH", &*path())];
    let ran = alice.hangar_with(first, &["sync"], &vars, "").exits(7);
    assert!(ran.stdout.contains("has no place there"), "{ran}");
    assert!(!ran.stdout.contains("policy adopt"), "{ran}");
}
