//! Exit codes and next steps for trouble with Git: names in the way, lost races, damaged or missing objects.

use crate::app::here::shell_word;
use crate::app::remote;
use crate::base::process;
use crate::cli::{CliError, ExitStatus};
use crate::git::{Absence, Error};
use crate::store::layout::Prefix;
use std::path::Path;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Process(error) => error.into(),
            Error::NotARepository(_) => Self::of(ExitStatus::Missing, error)
                .hint("go to a Git repository, name one with -C, or make one with `git init`"),
            Error::NoFolder(_) => Self::of(ExitStatus::Usage, error)
                .hint("name one that is there with -C, or go to one"),
            Error::Untrusted(ref dir) => {
                let hint = format!(
                    "if you trust it: `git config --global --add safe.directory {}`",
                    dir.display()
                );
                Self::of(ExitStatus::Refused, error).hint(hint)
            }
            Error::Unsupported(_) => Self::of(ExitStatus::Missing, error),
            Error::NoCommits => Self::of(ExitStatus::Missing, error)
                .hint("make one: `git commit --allow-empty -m \"Begin\"`"),
            Error::NoWorkTree => {
                Self::of(ExitStatus::Missing, error).hint("run it in a clone with a work tree")
            }
            Error::Shallow => {
                Self::of(ExitStatus::Missing, error).hint("fetch the rest: `git fetch --unshallow`")
            }
            Error::NotFound(_) | Error::Invalid { .. } => Self::of(ExitStatus::Usage, error),
            Error::Gone { absence, .. } => gone(absence, error),
            Error::Damaged { .. } => damaged(error),
            Error::PatchWithoutContent { .. } => {
                Self::of(ExitStatus::Usage, error).hint("make the patch with `git diff --binary`")
            }
            Error::PatchDoesNotApply { .. } => Self::of(ExitStatus::Refused, error).hint(
                "rebase it onto the task's base, which `hangar task show` names: `git rebase --onto BASE`",
            ),
            Error::Path { .. } | Error::TooLarge { .. } => {
                Self::of(ExitStatus::Refused, error)
            }
            Error::Conflict { .. } => {
                Self::of(ExitStatus::Held, error).hint("run the command again")
            }
            Error::Busy { .. } => Self::of(ExitStatus::Held, error).hint(
                "run the command again when the other process has ended; where no git and no hangar runs in this clone, a stopped one left that file: take it away",
            ),
            Error::NameTaken {
                ref name,
                ref other,
            } => {
                let hint = in_the_way(name, other);
                Self::of(ExitStatus::Refused, error).hint(hint)
            }
            Error::CheckedOut { .. } => {
                Self::of(ExitStatus::Refused, error).hint("switch that work tree to another branch")
            }
            Error::File { .. } | Error::Store { .. } => Self::of(ExitStatus::Trouble, error)
                .hint("what was recorded before is whole; run it again when that is put right"),
            Error::Program { .. } => Self::of(ExitStatus::Trouble, error),
            Error::Remote { trouble, .. } => {
                let helps = remote::remedies(trouble).into_iter();
                helps.fold(Self::of(ExitStatus::Trouble, error), Self::hint)
            }
        }
    }
}

/// What moves the ref `other` out of the way of `name`.
fn in_the_way(name: &str, other: &str) -> String {
    let ours = Prefix::ALL
        .iter()
        .any(|prefix| name.starts_with(prefix.as_str()));
    let word = shell_word(Path::new(other));
    match other.strip_prefix("refs/heads/") {
        Some(branch) if ours => {
            let branch = shell_word(Path::new(branch));
            format!("rename the branch that is in the way: `git branch -m {branch} NAME`")
        }
        // Hooks of hangar let no ref below its prefix go.
        _ if ours => format!(
            "it is no ref of hangar: look at it (`git show {word}`); where nobody needs it, take it away: `git -c core.hooksPath=/dev/null update-ref -d {word}`"
        ),
        _ => {
            let branch = other.strip_prefix("refs/heads/").unwrap_or(other);
            let branch = shell_word(Path::new(branch));
            format!(
                "rename the branch that is in the way, then run it again: `git branch -m {branch} NAME`"
            )
        }
    }
}

/// An object that is not here.
fn gone(absence: Absence, error: Error) -> CliError {
    match absence {
        Absence::Lost => damaged(error),
        Absence::Shallow => {
            CliError::of(ExitStatus::Missing, error).hint("fetch the rest: `git fetch --unshallow`")
        }
        Absence::Partial => CliError::of(ExitStatus::Missing, error)
            .hint("fetch the rest: `git fetch --refetch --no-filter`"),
    }
}

fn damaged(error: Error) -> CliError {
    CliError::of(ExitStatus::Trouble, error).hint(
        "this repository is damaged: `git fsck` names every object; take a damaged one's file away, then `git fetch --refetch REMOTE` brings what a remote has",
    )
}

impl From<process::Error> for CliError {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::NotFound(ref program) => {
                let hint = format!("install {program}, or put it on PATH");
                Self::of(ExitStatus::Missing, error).hint(hint)
            }
            process::Error::Io { .. } | process::Error::TimedOut { .. } => {
                Self::of(ExitStatus::Trouble, error)
            }
        }
    }
}
