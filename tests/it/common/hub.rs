//! A bare repository that several clones share: of one person, or of two.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use super::git::git_input;
use super::{Ran, TestEnv};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A bare repository, and clones of one person on one machine.
pub(crate) struct Hub {
    pub(crate) env: TestEnv,
    pub(crate) bare: PathBuf,
}

impl Hub {
    /// The hub and its first clone, whose state is on the hub.
    pub(crate) fn new() -> (Self, PathBuf) {
        let env = TestEnv::new();
        let first = env.ready("first");
        env.git(env.root(), &["clone", "-q", "--bare", "first", "hub.git"]);
        let bare = env.root().join("hub.git");
        env.git(&first, &["remote", "add", "origin", bare.to_str().unwrap()]);
        let hub = Self { env, bare };
        hub.sync(&first).success();
        (hub, first)
    }

    pub(crate) fn clone(&self, name: &str) -> PathBuf {
        self.env
            .git(self.env.root(), &["clone", "-q", "hub.git", name]);
        let dir = self.env.root().join(name);
        self.env.hangar(&dir, &["init", "--yes"]).success();
        self.sync(&dir).success();
        dir
    }

    pub(crate) fn sync(&self, dir: &Path) -> Ran {
        self.env.hangar(dir, &["sync", "--json"])
    }

    pub(crate) fn task(&self, dir: &Path, title: &str) -> String {
        let args = ["task", "new", title, "--plain", "--json"];
        let new = self.env.hangar(dir, &args).success().json();
        new["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn edit(&self, dir: &Path, task: &str, title: &str) {
        self.env
            .hangar(dir, &["task", "edit", task, "--title", title])
            .success();
    }

    pub(crate) fn show(&self, dir: &Path, task: &str) -> Value {
        self.env
            .hangar(dir, &["task", "show", task, "--json"])
            .success()
            .json()
    }

    /// Every hangar ref of a repository.
    pub(crate) fn refs(&self, dir: &Path) -> String {
        let format = "--format=%(refname) %(objectname)";
        self.env.git(dir, &["for-each-ref", format, "refs/hangar/"])
    }

    /// A commit of a stranger on top of `parent`, with this file.
    pub(crate) fn stranger(&self, parent: Option<&str>, name: &str, text: &str) -> String {
        let git = |args: &[&str]| self.env.git(&self.bare, args);
        let blob = self.blob(text);
        let tree = self.tree(&format!("100644 blob {blob}\t{name}\n"));
        let mut args = vec!["commit-tree", "-m", "x", tree.as_str()];
        args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        git(&args)
    }

    /// So many empty commits of the hub on top of each other. Others than those of another `message`.
    pub(crate) fn empty(&self, on: &str, count: usize, message: &str) -> String {
        let data = message.len();
        let commit = |place: usize| {
            let from = match place {
                0 => format!("from {on}\ndeleteall\n"),
                _ => String::new(),
            };
            format!("commit refs/junk\ncommitter x <x> 0 +0000\ndata {data}\n{message}\n{from}\n")
        };
        let text: String = (0..count).map(commit).collect();
        git_input(&self.bare, &["fast-import", "--quiet"], text.as_bytes());
        let head = self.env.git(&self.bare, &["rev-parse", "refs/junk"]);
        self.env.git(&self.bare, &["update-ref", "-d", "refs/junk"]);
        head
    }

    /// A blob of the hub.
    pub(crate) fn blob(&self, text: &str) -> String {
        git_input(
            &self.bare,
            &["hash-object", "-w", "--stdin"],
            text.as_bytes(),
        )
    }

    /// A tree of the hub, from lines as `git ls-tree` prints them.
    pub(crate) fn tree(&self, lines: &str) -> String {
        git_input(&self.bare, &["mktree"], lines.as_bytes())
    }
}

pub(crate) fn task_ref(task: &str) -> String {
    format!("refs/hangar/tasks/{task}")
}

/// alice's repository, the hub, and bob's clone of it.
pub(crate) struct Team {
    pub(crate) hub: Hub,
    pub(crate) first: PathBuf,
    pub(crate) bob: TestEnv,
    pub(crate) second: PathBuf,
}

impl Team {
    /// bob has a clone and is nobody in the policy yet.
    pub(crate) fn new() -> Self {
        let (hub, first) = Hub::new();
        let bob = hub.env.user("bob");
        bob.git(
            bob.root(),
            &["clone", "-q", hub.bare.to_str().unwrap(), "second"],
        );
        let second = bob.root().join("second");
        Self {
            hub,
            first,
            bob,
            second,
        }
    }

    /// bob has this role, with his own key alone, and a clone that knows it.
    pub(crate) fn with(role: &str) -> Self {
        let team = Self::new();
        let key = team.bob.public_key();
        let add = ["policy", "add", "bob", "--role", role, "--key", &key];
        team.alice().hangar(&team.first, &add).success();
        team.alice().hangar(&team.first, &["sync"]).success();
        team.bob.hangar(&team.second, &["init", "--yes"]).success();
        team.bob.hangar(&team.second, &["sync"]).success();
        team
    }

    pub(crate) fn alice(&self) -> &TestEnv {
        &self.hub.env
    }

    /// Both clones, with whose they are.
    pub(crate) fn sides(&self) -> [(&TestEnv, &Path); 2] {
        [(self.alice(), &self.first), (&self.bob, &self.second)]
    }

    /// Until both have everything.
    pub(crate) fn sync(&self) {
        for (env, dir) in self.sides().into_iter().chain(self.sides()) {
            env.hangar(dir, &["sync"]).success();
        }
    }

    /// What `policy show` says in each clone.
    pub(crate) fn shows(&self) -> [Value; 2] {
        self.sides()
            .map(|(env, dir)| env.json(dir, &["policy", "show"]))
    }
}
