//! Branches of the user: which are checked out, and adding a commit to one that is not.

use super::error::Error;
use super::objects::CommitDraft;
use super::refs::{Expected, check_ref_name};
use super::repository::Repository;
use crate::model::object_id::ObjectId;
use std::fs;
use std::path::{Path, PathBuf};

/// A commit for a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchCommit<'a> {
    /// The branch, without `refs/heads/`.
    pub branch: &'a str,
    /// Where it must be: absent for a new one.
    pub expected: Expected,
    /// The commit.
    pub draft: &'a CommitDraft,
}

impl Repository {
    /// Writes the commit and moves the branch to it, if it is where the caller expects it and no
    /// work tree has it checked out.
    pub fn commit_on_branch(&self, commit: &BranchCommit<'_>) -> Result<ObjectId, Error> {
        let name = format!("refs/heads/{}", commit.branch);
        if commit.branch.starts_with('-') || commit.branch == "HEAD" {
            return Err(Error::Invalid {
                what: "branch",
                name: commit.branch.to_owned(),
                why: "is a name that git commands take for something else",
            });
        }
        check_ref_name(&name)?;
        if let Some(worktree) = self.checked_out_at(commit.branch) {
            return Err(Error::CheckedOut {
                branch: commit.branch.to_owned(),
                worktree,
            });
        }
        let id = self.write_commit(commit.draft)?;
        self.update_ref(&name, commit.expected, Some(id), "hangar: deliver")?;
        Ok(id)
    }

    /// The work tree that has `branch` checked out, or is in the middle of a rebase of it.
    pub fn checked_out_at(&self, branch: &str) -> Option<PathBuf> {
        let common = self.common_dir();
        let uses = |git_dir: &Path| {
            let head = read_line(&git_dir.join("HEAD"));
            let on = head.as_deref().and_then(|head| head.strip_prefix("ref: "));
            let full = format!("refs/heads/{branch}");
            on == Some(full.as_str())
                || ["rebase-merge/head-name", "rebase-apply/head-name"]
                    .iter()
                    .any(|file| read_line(&git_dir.join(file)).as_deref() == Some(full.as_str()))
        };
        // A bare repository's HEAD is a default for clones, not a work tree.
        let bare = self.config_value("core.bare").as_deref() == Some("true");
        if !bare && uses(common) {
            let parent = common.parent().unwrap_or(common);
            return Some(parent.to_owned());
        }
        for entry in fs::read_dir(common.join("worktrees")).ok()?.flatten() {
            if uses(&entry.path()) {
                let dot_git = read_line(&entry.path().join("gitdir")).map(PathBuf::from);
                let tree = dot_git.as_deref().and_then(Path::parent);
                return Some(tree.map_or_else(|| entry.path(), Path::to_owned));
            }
        }
        None
    }
}

fn read_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}
