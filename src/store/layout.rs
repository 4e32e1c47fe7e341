//! Names of refs. Signed bytes never hold one, so the prefix can move.

use super::Error;
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, TaskId};
use crate::model::object_id::ObjectId;
use std::str::FromStr;

/// The usual prefix.
pub const DEFAULT_PREFIX: &str = "refs/hangar/";
/// The prefix for hosts that accept only branches.
pub const BRANCH_PREFIX: &str = "refs/heads/hangar-state/";

/// Below which prefix a repository keeps its refs. Two repositories that share one state may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prefix {
    /// [`DEFAULT_PREFIX`]
    Hangar,
    /// [`BRANCH_PREFIX`]
    Branches,
}

impl Prefix {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hangar, Self::Branches];

    /// The prefix itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hangar => DEFAULT_PREFIX,
            Self::Branches => BRANCH_PREFIX,
        }
    }

    /// The word for it on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hangar => "hangar",
            Self::Branches => "branches",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Hangar => Self::Branches,
            Self::Branches => Self::Hangar,
        }
    }
}

impl FromStr for Prefix {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let mut all = Self::ALL.into_iter();
        all.find(|prefix| prefix.word() == word).ok_or(())
    }
}

/// What lies on a ref.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefKind {
    /// The chain of the policy.
    Policy,
    /// A version of the policy that collects signatures.
    Proposal(Digest),
    /// Ended tasks whose ids begin with this character.
    Archive(char),
    /// A task's events.
    Task(TaskId),
    /// Sealed versions, decisions, runs or grades of a task.
    OfTask(TaskId),
}

/// What a task has beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfTask {
    /// Sealed versions.
    Sealed,
    /// Runs.
    Runs,
    /// Grades.
    Grades,
    /// Decisions.
    Approvals,
}

impl OfTask {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Sealed, Self::Runs, Self::Grades, Self::Approvals];

    const fn folder(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Runs => "runs",
            Self::Grades => "grades",
            Self::Approvals => "approvals",
        }
    }
}

/// The prefix in use, and the names below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    prefix: Prefix,
}

impl Layout {
    /// The names below this prefix.
    pub const fn at(prefix: Prefix) -> Self {
        Self { prefix }
    }

    /// The layout that `repo` uses. Both prefixes at once are refused: two states would be
    /// mistaken for one. Where a policy was lost, what is left of its state says.
    pub fn of(repo: &Repository) -> Result<Self, Error> {
        let has = |prefix: Prefix| {
            let policy = Self::at(prefix).policy();
            repo.read_ref(&policy).map(|id| id.is_some())
        };
        match (has(Prefix::Hangar)?, has(Prefix::Branches)?) {
            (true, true) => Err(Error::TwoPrefixes),
            (true, false) => Ok(Self::at(Prefix::Hangar)),
            (false, true) => Ok(Self::at(Prefix::Branches)),
            (false, false) => {
                let branches = Self::at(Prefix::Branches);
                let only = branches.refs(repo)?.next().is_some()
                    && Self::at(Prefix::Hangar).refs(repo)?.next().is_none();
                Ok(if only {
                    branches
                } else {
                    Self::at(Prefix::Hangar)
                })
            }
        }
    }

    /// Whether a ref lies under the prefix or is in its way, also where the case of letters does not
    /// count: on some file systems it does not.
    pub fn concerns(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        lower.starts_with(self.prefix()) || lower == self.prefix().trim_end_matches('/')
    }

    /// The name of a policy under the prefix that is not in use: beside ours it would make both
    /// unreadable.
    pub fn rival(&self) -> String {
        Self::at(self.prefix.other()).policy()
    }

    /// Every ref of `repo` below the prefix that is one of ours.
    pub fn refs(
        &self,
        repo: &Repository,
    ) -> Result<impl Iterator<Item = (String, ObjectId)>, Error> {
        let all = repo.list_refs(self.prefix())?.into_iter();
        Ok(all.filter(|(name, _)| self.kind_of(name).is_some()))
    }

    /// The same ref in a repository that keeps its refs below another prefix.
    pub fn name_at(&self, name: &str, prefix: Prefix) -> Option<String> {
        let own = name.strip_prefix(self.prefix())?;
        Some(format!("{}{own}", prefix.as_str()))
    }

    /// The chain of the policy.
    pub fn policy(&self) -> String {
        format!("{}policy", self.prefix())
    }

    /// All versions of the policy that still collect signatures.
    pub fn proposals(&self) -> String {
        format!("{}policy-proposals/", self.prefix())
    }

    /// The proposal with this digest.
    pub fn proposal(&self, digest: &Digest) -> String {
        format!("{}{}", self.proposals(), digest.hex())
    }

    /// The digest that a ref name under [`Layout::proposals`] stands for.
    pub fn proposal_of(&self, name: &str) -> Option<Digest> {
        let hex = name.strip_prefix(&self.proposals())?;
        format!("sha256:{hex}").parse().ok()
    }

    /// All tasks.
    pub fn tasks(&self) -> String {
        format!("{}tasks/", self.prefix())
    }

    /// One task's events.
    pub fn task(&self, task: &TaskId) -> String {
        format!("{}{task}", self.tasks())
    }

    /// The task that a ref name under [`Layout::tasks`] is of.
    pub fn task_of(&self, name: &str) -> Option<TaskId> {
        name.strip_prefix(&self.tasks())?.parse().ok()
    }

    /// One task's sealed versions.
    pub fn sealed(&self, task: &TaskId) -> String {
        format!("{}{task}", self.folder(OfTask::Sealed))
    }

    /// One task's runs.
    pub fn runs(&self, task: &TaskId) -> String {
        format!("{}{task}", self.folder(OfTask::Runs))
    }

    /// One task's grades.
    pub fn grades(&self, task: &TaskId) -> String {
        format!("{}{task}", self.folder(OfTask::Grades))
    }

    /// All refs of one kind.
    pub fn folder(&self, kind: OfTask) -> String {
        format!("{}{}/", self.prefix(), kind.folder())
    }

    /// The task that a ref name under [`Layout::folder`] is of.
    pub fn task_in(&self, kind: OfTask, name: &str) -> Option<TaskId> {
        let rest = name.strip_prefix(&self.folder(kind))?;
        match kind {
            OfTask::Approvals => rest.split_once('-')?.0.parse().ok(),
            OfTask::Sealed | OfTask::Runs | OfTask::Grades => rest.parse().ok(),
        }
    }

    /// What the names of one task's decisions begin with.
    pub fn approvals_of(&self, task: &TaskId) -> String {
        format!("{}{task}-", self.folder(OfTask::Approvals))
    }

    /// The decisions of one key over one manifest.
    pub fn approval(&self, task: &TaskId, manifest: &Digest, key: &Fingerprint) -> String {
        format!(
            "{}{}-{}",
            self.approvals_of(task),
            manifest.hex(),
            key.hex()
        )
    }

    /// All archives.
    pub fn archives(&self) -> String {
        format!("{}archive/", self.prefix())
    }

    /// The archive that holds a task once it has ended.
    pub fn archive(&self, task: &TaskId) -> String {
        format!("{}{}", self.archives(), &task.as_str()[..1])
    }

    /// A full ref name without the prefix, if it begins with it.
    pub fn own<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.prefix())
    }

    /// The task that a ref belongs to.
    pub fn owner(&self, name: &str) -> Option<TaskId> {
        match self.kind_of(name)? {
            RefKind::Task(task) | RefKind::OfTask(task) => Some(task),
            RefKind::Policy | RefKind::Proposal(_) | RefKind::Archive(_) => None,
        }
    }

    /// What a full ref name is, if it is one of ours.
    pub fn kind_of(&self, name: &str) -> Option<RefKind> {
        let rest = name.strip_prefix(self.prefix())?;
        if rest == "policy" {
            return Some(RefKind::Policy);
        }
        if let Some(digest) = self.proposal_of(name) {
            return Some(RefKind::Proposal(digest));
        }
        let (folder, name) = rest.split_once('/')?;
        let task = |name: &str| name.parse().ok();
        Some(match folder {
            "archive" => match name.as_bytes() {
                [letter @ (b'a'..=b'z' | b'2'..=b'7')] => RefKind::Archive(char::from(*letter)),
                _ => return None,
            },
            "tasks" => RefKind::Task(task(name)?),
            "sealed" | "runs" | "grades" => RefKind::OfTask(task(name)?),
            "approvals" => {
                let mut parts = name.split('-');
                let (of, manifest, key) = (parts.next()?, parts.next()?, parts.next()?);
                let digest = |text: &str| {
                    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                    text.len() == 64 && text.bytes().all(hex)
                };
                if parts.next().is_some() || !digest(manifest) || !digest(key) {
                    return None;
                }
                RefKind::OfTask(task(of)?)
            }
            _ => return None,
        })
    }

    /// Everything.
    pub const fn prefix(&self) -> &'static str {
        self.prefix.as_str()
    }

    /// Which prefix that is.
    pub const fn place(&self) -> Prefix {
        self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_between_prefixes_and_never_differ_by_case_alone() {
        let (task, digest) = (TaskId::of_creation(b"x"), Digest::of(b"x"));
        let key: Fingerprint = ("SHA256:".to_owned() + &"aA".repeat(21) + "A")
            .parse()
            .unwrap();
        let names = |prefix| {
            let layout = Layout::at(prefix);
            [
                layout.policy(),
                layout.proposal(&digest),
                layout.task(&task),
                layout.sealed(&task),
                layout.runs(&task),
                layout.grades(&task),
                layout.approval(&task, &digest, &key),
                layout.archive(&task),
            ]
        };
        let (here, there) = (names(Prefix::Hangar), names(Prefix::Branches));
        for (name, moved) in here.iter().zip(&there) {
            let layout = Layout::at(Prefix::Hangar);
            assert_eq!(layout.name_at(name, Prefix::Branches).as_ref(), Some(moved));
            assert_eq!(*name, name.to_lowercase());
            // Git can't keep `a` beside `a/b`.
            let below = format!("{name}/");
            assert!(!here.iter().any(|other| other.starts_with(&below)));
        }
        assert_eq!("branches".parse(), Ok(Prefix::Branches));
        assert_eq!(Prefix::from_str("x"), Err(()));
    }

    #[test]
    fn only_names_of_ours_are_known() {
        let layout = Layout::at(Prefix::Hangar);
        let task = TaskId::of_creation(b"x");
        let (digest, key) = (Digest::of(b"x"), "SHA256:".to_owned() + &"A".repeat(43));
        let key: Fingerprint = key.parse().unwrap();
        let kind = |name: &str| layout.kind_of(name);
        assert_eq!(kind(&layout.policy()), Some(RefKind::Policy));
        let proposal = Some(RefKind::Proposal(digest));
        assert_eq!(kind(&layout.proposal(&digest)), proposal);
        assert_eq!(kind(&layout.task(&task)), Some(RefKind::Task(task.clone())));
        assert_eq!(kind(&layout.archive(&task)), Some(RefKind::Archive('f')));
        for name in [
            layout.sealed(&task),
            layout.runs(&task),
            layout.grades(&task),
            layout.approval(&task, &digest, &key),
        ] {
            assert_eq!(kind(&name), Some(RefKind::OfTask(task.clone())), "{name}");
        }
        for (of, name) in [
            (OfTask::Sealed, layout.sealed(&task)),
            (OfTask::Runs, layout.runs(&task)),
            (OfTask::Grades, layout.grades(&task)),
            (OfTask::Approvals, layout.approval(&task, &digest, &key)),
        ] {
            assert_eq!(layout.task_in(of, &name), Some(task.clone()), "{name}");
            assert_eq!(
                layout.task_in(of, &format!("{name}/x")).is_none(),
                of != OfTask::Approvals
            );
            assert_eq!(layout.task_in(of, &layout.task(&task)), None);
        }
        for name in [
            "refs/heads/main".to_owned(),
            "refs/hangar/policy/x".into(),
            "refs/hangar/goals/x".into(),
            "refs/hangar/archive/ab".into(),
            "refs/hangar/archive/A".into(),
            "refs/hangar/archive/1".into(),
            format!("refs/hangar/tasks/{}", task.as_str().to_uppercase()),
            format!("{}/x", layout.task(&task)),
            format!("{}x", layout.approval(&task, &digest, &key)),
            format!("refs/hangar/approvals/{task}"),
        ] {
            assert_eq!(kind(&name), None, "{name}");
        }
    }
}
