//! The exchange directory: what an agent is given and where it leaves its work.
//!
//! It lives in the sandbox's tmpfs, never on the host's disk: inputs are laid from memory, outputs
//! are collected into memory once every process is dead (`collect`).

use crate::base::redact::Secret;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Variable that names the directory to the agent.
pub const VARIABLE: &str = "HANGAR_EXCHANGE";

/// The directory inside a sandbox, in its writable part that nothing cleans.
pub const INSIDE: &str = "/run/exchange";

/// The writer's tests, below the exchange directory.
pub const SEALED: &str = "out/sealed";

/// The map of criteria to tests, below [`SEALED`].
pub const CRITERIA: &str = "criteria.json";

/// Everything that is collected, below the exchange directory.
pub const OUT: &str = "out";

/// `in/task.json`: the task as data, for programs that do not read prose.
#[derive(Debug, Clone, Serialize)]
pub struct TaskFile<'a> {
    /// Version of this file.
    pub format: u32,
    /// Id of the task.
    pub id: &'a str,
    /// `writer`, `implementer`, `judge` or `orchestrator`.
    pub role: &'a str,
    /// Number of the turn, from 1.
    pub turn: u32,
    /// Title.
    pub title: &'a str,
    /// What is to be done.
    pub mandate: &'a str,
    /// Acceptance criteria.
    pub criteria: Vec<Criterion<'a>>,
}

/// One acceptance criterion.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Criterion<'a> {
    /// Short id: `c1`.
    pub id: &'a str,
    /// Text.
    pub text: &'a str,
}

/// What goes into `in/`.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// `in/prompt.md`
    pub prompt: &'a str,
    /// `in/task.json`
    pub task: &'a TaskFile<'a>,
    /// `in/context.md`; empty writes no file.
    pub context: &'a str,
    /// `in/previous/`: relative path and content of the version before (writer's rewrite only).
    pub previous: Vec<(PathBuf, Secret)>,
}

/// A file to lay into the sandbox from memory.
#[derive(Debug, Clone)]
pub struct Laid {
    /// Absolute path inside.
    pub path: PathBuf,
    /// Content.
    pub bytes: Secret,
    /// Permission bits.
    pub mode: u32,
}

impl Inputs<'_> {
    /// The files of an exchange directory at `dir` inside. An empty hidden file in each output folder makes
    /// it: a laid file that may be written belongs to the sandbox's user, with its folder.
    /// Collection leaves these files out.
    pub fn laid(self, dir: &Path) -> Result<Vec<Laid>, serde_json::Error> {
        let read_only = |path: &str, bytes: Vec<u8>| Laid {
            path: dir.join(path),
            bytes: Secret::new(bytes),
            mode: 0o444,
        };
        let mut files = vec![
            read_only("in/prompt.md", self.prompt.as_bytes().to_vec()),
            read_only("in/task.json", serde_json::to_vec_pretty(self.task)?),
        ];
        if !self.context.is_empty() {
            files.push(read_only("in/context.md", self.context.as_bytes().to_vec()));
        }
        for (path, bytes) in self.previous {
            files.push(Laid {
                path: dir.join("in/previous").join(path),
                bytes,
                mode: 0o444,
            });
        }
        for folder in [OUT, SEALED, "out/artifacts"] {
            files.push(Laid {
                path: dir.join(folder).join(PLACEHOLDER),
                bytes: Secret::new(Vec::new()),
                mode: 0o644,
            });
        }
        Ok(files)
    }
}

/// Name of the empty file that makes a folder exist.
pub(super) const PLACEHOLDER: &str = ".keep";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_has_its_place_and_the_output_folders_exist() {
        let task = TaskFile {
            format: 1,
            id: "t1",
            role: "writer",
            turn: 2,
            title: "T",
            mandate: "M",
            criteria: vec![Criterion {
                id: "c1",
                text: "works",
            }],
        };
        let inputs = Inputs {
            prompt: "do",
            task: &task,
            context: "",
            previous: vec![("tests/test_a.py".into(), Secret::new(b"old".to_vec()))],
        };
        let laid = inputs.laid(Path::new(INSIDE)).unwrap();
        let root = Path::new(INSIDE);
        let paths: Vec<_> = laid
            .iter()
            .map(|file| file.path.strip_prefix(root).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            [
                "in/prompt.md",
                "in/task.json",
                "in/previous/tests/test_a.py",
                "out/.keep",
                "out/sealed/.keep",
                "out/artifacts/.keep",
            ]
        );
        let json: serde_json::Value = serde_json::from_slice(laid[1].bytes.expose()).unwrap();
        assert_eq!(json["criteria"][0]["id"], "c1");
    }
}
