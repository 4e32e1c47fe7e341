//! The binary is asked, and what it answered is looked at.

use super::forge::Forged;
use std::path::Path;
use std::process::Command;

impl Forged {
    /// Runs the binary as somebody with the machine's keys.
    pub(crate) fn verify(&self, args: &[&str]) -> Answer {
        self.verify_as("xdg", args)
    }

    /// Runs the binary with another folder of keys, as in a clone that has never seen these refs.
    pub(crate) fn verify_as(&self, keys: &str, args: &[&str]) -> Answer {
        let _ = std::fs::remove_file(self.dir().join(".git/hangar/heads.log"));
        self.verify_remembering(keys, args)
    }

    /// The same in a clone that knows where it last moved each ref.
    pub(crate) fn verify_remembering(&self, keys: &str, args: &[&str]) -> Answer {
        let command = [&["verify"][..], args].concat();
        let answer = self.run(&self.dir(), keys, &command);
        super::second::compare(self, args, &answer);
        answer
    }

    /// Runs the binary anywhere, as somebody with the machine's keys.
    pub(crate) fn hangar(&self, dir: &Path, args: &[&str]) -> Answer {
        self.run(dir, "xdg", args)
    }

    fn run(&self, dir: &Path, keys: &str, args: &[&str]) -> Answer {
        let home = self.world.dir.path();
        let out = Command::new(env!("CARGO_BIN_EXE_hangar"))
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home.join("home"))
            .env("XDG_DATA_HOME", home.join(keys))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HANGAR_NOW", "2026-01-03T00:00:00Z")
            .args(args)
            .arg("--json")
            .output()
            .unwrap();
        let stdout = String::from_utf8(out.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        Answer {
            code: out.status.code(),
            json: serde_json::from_str(&stdout).unwrap_or(serde_json::Value::Null),
            text: stdout + &stderr,
        }
    }

    /// Verifies the task.
    pub(crate) fn task(&self) -> Answer {
        self.verify(&[self.id.as_str()])
    }
}

/// What the binary answered.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) json: serde_json::Value,
    pub(crate) text: String,
}

impl Answer {
    /// Everything holds.
    #[track_caller]
    pub(crate) fn is_yes(&self) {
        assert_eq!(self.code, Some(0), "{}", self.text);
        assert_eq!(self.json["accepted"], true, "{}", self.text);
    }

    /// Exit 1, with a fault in `link` that says `what`.
    #[track_caller]
    pub(crate) fn names(&self, link: &str, what: &str) -> &Self {
        assert_eq!(self.code, Some(1), "{}", self.text);
        assert_eq!(self.json["accepted"], false, "{}", self.text);
        let found = self.faults().iter().any(|fault| {
            let said = fault["what"].as_str().unwrap();
            fault["link"] == link && said.contains(what)
        });
        assert!(found, "no fault in {link} says `{what}`:\n{}", self.text);
        self
    }

    /// All faults, the tasks' and the repository's.
    pub(crate) fn faults(&self) -> Vec<serde_json::Value> {
        let tasks = self.json["tasks"].as_array().cloned().unwrap_or_default();
        let mut faults = self.json["faults"].as_array().cloned().unwrap_or_default();
        for task in tasks {
            faults.extend(task["faults"].as_array().cloned().unwrap_or_default());
        }
        faults
    }

    /// Both answers of the one task.
    #[track_caller]
    pub(crate) fn answers(&self, valid_then: bool, acceptable_now: bool) -> &Self {
        let task = &self.json["tasks"][0];
        assert_eq!(task["valid_then"], valid_then, "{}", self.text);
        assert_eq!(task["acceptable_now"], acceptable_now, "{}", self.text);
        self
    }

    /// How a link of the one task stands.
    #[track_caller]
    pub(crate) fn link(&self, name: &str) -> String {
        let links = self.json["tasks"][0]["links"].as_array().unwrap();
        let link = links.iter().find(|link| link["name"] == name);
        let link = link.unwrap_or_else(|| panic!("no link {name}: {}", self.text));
        link["state"].as_str().unwrap().to_owned()
    }
}
