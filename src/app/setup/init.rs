//! `hangar init`: finds the policy or founds one, and completes what is missing. Running it again
//! changes nothing.

use super::agents;
use super::below::Below;
use super::config_file::{self, FileAction};
use super::found::{Founder, found};
use super::join::{Standing, find, standing};
use super::person;
use crate::app::here::{no_key, shell_word};
use crate::app::hooks::Hook;
use crate::app::hooks::install::{self, HookView};
use crate::app::{Error, Here, named};
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::object_id::ObjectId;
use crate::model::policy::RootKey;
use crate::store::layout::{Layout, Prefix};
use crate::store::relocate::relocate;
use crate::store::{self, Store, pins};
use crate::trust::{AskPassphrase, Candidate, How, PublicKey, Source};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What the caller wants.
#[derive(Debug, Default)]
pub struct InitRequest {
    /// Found a policy although the remote can't be asked, or `hangar.toml` names one that is gone.
    pub new: bool,
    /// The caller's name in the policy.
    pub name: Option<Principal>,
    /// Write the block in `AGENTS.md` too.
    pub agents: bool,
    /// Put the hooks of a clone in place.
    pub hooks: bool,
    /// A root key for the day when the first is lost.
    pub recovery: Option<PublicKey>,
    /// Below which prefix this clone keeps its refs from now on.
    pub prefix: Option<Prefix>,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Version 1 of the policy was written.
    Founded,
    /// A policy was there and is pinned now.
    Pinned,
    /// The refs lie below the other prefix now.
    Moved,
    /// It was all done before.
    Unchanged,
}

/// What was found and made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InitReport {
    /// How it went.
    pub outcome: Outcome,
    /// The repository's id.
    pub repo: Digest,
    /// Version of the policy in force.
    pub policy_version: u64,
    /// Below which prefix this clone keeps its refs.
    pub prefix: String,
    /// How many refs were moved there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<usize>,
    /// The caller's name; absent when the policy does not know them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The caller's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Fingerprint>,
    /// Where that key was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_source: Option<String>,
    /// Whether an age identity was made because the key can't decrypt unattended.
    pub age_identity_made: bool,
    /// Whether a key of this machine (worker, grader) was made: there was none, or it was lost.
    pub machine_keys_made: bool,
    /// Folder of the machine's keys.
    pub keys_dir: String,
    /// Keys of this machine that were declared compromised, each where it lies now: new ones were made.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub old_keys: Vec<String>,
    /// The test framework that was recognised, or that the `hangar.toml` that was there names;
    /// absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// Projects in folders of the repository, where none was recognised at its root.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub below: Vec<Below>,
    /// The remote that the policy was fetched from, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_from: Option<String>,
    /// Files of the work tree that have to be committed.
    pub to_commit: Vec<String>,
    /// Whether the checked-out commit names another policy: until hangar.toml is committed every other
    /// command refuses.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub commit_first: bool,
    /// Root of the work tree, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<PathBuf>,
    /// The command by which an admin adds the caller or this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_command: Option<String>,
    /// Whether there is no work tree to write `hangar.toml` to.
    pub bare: bool,
    /// Hooks, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hooks: Vec<HookView>,
}

/// Sets hangar up in the repository that `here` lies in. Without a key the error is
/// [`Error::NoKey`]; the caller may make one and try again.
pub fn init(
    here: &Here,
    request: &InitRequest,
    ask: &mut AskPassphrase<'_>,
) -> Result<InitReport, Error> {
    let repo = here.repository()?;
    let Some(head) = repo.head()? else {
        return Err(unborn(here, &repo));
    };
    if let Some(work_tree) = repo.work_tree() {
        let agents = request.agents.then_some(agents::FILE);
        for name in [crate::config::repository::FILE].into_iter().chain(agents) {
            config_file::refuse_link(work_tree, name)?;
        }
    }
    let moved = match request.prefix {
        Some(prefix) => relocate(&repo, prefix)?.filter(|count| *count > 0),
        None => None,
    };
    let repo = repo.reopen()?;
    match find(here, &repo, layout(&repo, request)?, request.new)? {
        Some((store, fetched_from)) => {
            let mut report = join(here, request, &store, head)?;
            report.fetched_from = fetched_from;
            if moved.is_some() {
                report.outcome = Outcome::Moved;
                report.moved = moved;
            }
            Ok(report)
        }
        None => match pins::load(&repo, &Layout::of(&repo)?) {
            // A clone that has seen a policy founds no other in its place.
            Err(gone @ store::Error::PolicyGone { .. }) => Err(Error::PolicyLost(gone)),
            _ => begin(here, request, &repo, head, ask),
        },
    }
}

/// Where the refs lie, or are to lie.
fn layout(repo: &Repository, request: &InitRequest) -> Result<Layout, Error> {
    match request.prefix {
        Some(prefix) => Ok(Layout::at(prefix)),
        None => Ok(Layout::of(repo)?),
    }
}

fn begin(
    here: &Here,
    request: &InitRequest,
    repo: &Repository,
    head: ObjectId,
    ask: &mut AskPassphrase<'_>,
) -> Result<InitReport, Error> {
    let named = repo
        .work_tree()
        .map(config_file::named_policy)
        .transpose()?;
    if let Some(wanted) = named.flatten()
        && !request.new
    {
        return Err(Error::PolicyElsewhere { wanted });
    }
    let keys = here.keys(Some(repo))?;
    let candidate = keys.candidates.first().ok_or_else(|| no_key(&keys))?;
    let name = request
        .name
        .clone()
        .or_else(|| person::proposed_name(here, repo))
        .ok_or_else(|| Error::invalid("no name for you was found; give one with --name"))?;
    if request.recovery.as_ref() == Some(&candidate.public) {
        return Err(Error::invalid(
            "the recovery key is the key that you sign with: whoever loses one loses both; make another \
             (`ssh-keygen -t ed25519 -f FILE`) and keep it away from this machine",
        ));
    }
    let signer = candidate.open(ask)?;
    let founder = Founder {
        name: name.clone(),
        candidate,
        signer: &signer,
        recovery: request.recovery.clone(),
    };
    let founded = found(here, repo, &layout(repo, request)?, &founder)?;
    let repo = repo.reopen()?;
    let store = Store::open(repo, here.clock)?;
    let standing = Standing {
        principal: Some(name),
        candidate: Some(candidate.clone()),
        line: None,
        age_identity: founded.age_identity,
        old_keys: Vec::new(),
        machine_keys: true,
    };
    let mut report = complete(here, request, &store, head, standing)?;
    report.outcome = Outcome::Founded;
    debug_assert_eq!(report.repo, founded.repo);
    Ok(report)
}

fn join(
    here: &Here,
    request: &InitRequest,
    store: &Store,
    head: ObjectId,
) -> Result<InitReport, Error> {
    let found = store.policy.repo();
    let named = store.repo.work_tree().map(config_file::named_policy);
    let named = named.transpose()?.flatten();
    if let Some(named) = named
        && named != found
        && !request.new
    {
        return Err(Error::OtherPolicy {
            place: "in the work tree".to_owned(),
            named,
            found,
        });
    }
    if let Some(recovery) = &request.recovery {
        let keys = &store.policy.newest().root.key;
        let is_there = |key: &RootKey| key.recovery && key.public == recovery.as_str();
        if !keys.iter().any(is_there) {
            return Err(Error::invalid(format!(
                "the policy is there already; an admin adds a recovery key: `hangar policy add NAME --recovery \
                 --key '{}'`",
                recovery.as_str()
            )));
        }
    }
    if !request.new && pins::pinned(&store.repo)?.is_none() {
        first_pin(here, store, head, named)?;
    }
    let standing = standing(here, store, request.name.as_ref())?;
    complete(here, request, store, head, standing)
}

/// Holds the policy against the remote's default branch before it is pinned. Where that can't be read,
/// what the person wrote into the work tree counts; what the checked-out commit put there is no
/// person's word.
fn first_pin(
    here: &Here,
    store: &Store,
    head: ObjectId,
    named: Option<Digest>,
) -> Result<(), Error> {
    let committed = || named::named_at(here, &store.repo, head).ok().flatten();
    match named::default_branch(here, store) {
        Err(Error::NamesUnreadable { commit, source, .. })
            if named.is_some() && named != committed() =>
        {
            named::tell_work_tree(here, commit, &source);
        }
        compared => drop(compared?),
    }
    Ok(())
}

/// Pins the policy and writes what is missing in the work tree.
fn complete(
    here: &Here,
    request: &InitRequest,
    store: &Store,
    head: ObjectId,
    standing: Standing,
) -> Result<InitReport, Error> {
    let id = store.policy.repo();
    let fresh = pins::pinned(&store.repo)?.is_none();
    pins::record(&store.repo, &store.policy)?;
    let mut to_commit = Vec::new();
    let mut changed = fresh;
    let (mut framework, mut below) = (None, Vec::new());
    if let Some(work_tree) = store.repo.work_tree() {
        let found = config_file::ensure(here, &store.repo, work_tree, head, id)?;
        (framework, below) = (found.framework, found.below);
        changed |= found.action != FileAction::Kept;
        if !config_file::is_committed(&store.repo, work_tree, head)? {
            to_commit.push(crate::config::repository::FILE.to_owned());
        }
        if request.agents && agents::ensure(work_tree)? != FileAction::Kept {
            changed = true;
            to_commit.push(agents::FILE.to_owned());
        }
    }
    let hooks = if request.hooks {
        install::install(&store.repo, &Hook::OF_CLONE)?
    } else {
        Vec::new()
    };
    changed |= hooks.iter().any(|hook| hook.action.changes());
    changed |= !standing.old_keys.is_empty();
    let candidate = standing.candidate.as_ref();
    let old_keys = standing.old_keys.iter();
    Ok(InitReport {
        outcome: if changed {
            Outcome::Pinned
        } else {
            Outcome::Unchanged
        },
        repo: id,
        policy_version: store.policy.newest().reference.version,
        prefix: store.layout.prefix().to_owned(),
        moved: None,
        principal: standing.principal,
        key: candidate.map(|candidate| candidate.public.fingerprint()),
        key_source: candidate.map(source),
        age_identity_made: standing.age_identity,
        old_keys: old_keys.map(|path| path.display().to_string()).collect(),
        machine_keys_made: standing.machine_keys,
        keys_dir: here.data_dir(&id)?.display().to_string(),
        framework,
        below,
        fetched_from: None,
        to_commit,
        commit_first: matches!(named::named_at(here, &store.repo, head), Ok(Some(named)) if named != id),
        work_tree: store.repo.work_tree().map(Path::to_owned),
        admin_command: standing.line,
        bare: store.repo.is_bare(),
        hooks,
    })
}

/// A repository without a commit, and what makes one there.
pub(crate) fn unborn(here: &Here, repo: &Repository) -> Error {
    let git = here.git();
    let branches = |prefix: &str| repo.list_refs(prefix).unwrap_or_default().into_iter();
    let own = branches("refs/heads/").map(|(name, _)| name.replacen("refs/heads/", "", 1));
    // `refs/remotes/origin/main` is checked out as `main`.
    let theirs = branches("refs/remotes/").filter_map(|(name, _)| {
        let branch = name.splitn(4, '/').nth(3)?;
        (branch != "HEAD").then(|| branch.to_owned())
    });
    if let Some(branch) = own.chain(theirs).next() {
        return Error::Unborn {
            elsewhere: true,
            remedies: vec![format!(
                "check one out: `{git} switch {}`",
                shell_word(Path::new(&branch))
            )],
        };
    }
    let remedies = match repo.work_tree() {
        None => vec![
            format!(
                "make it in a clone and push it: `git clone {} DIR`",
                shell_word(repo.git_dir())
            ),
            "then run `hangar init` in that clone: it has the work tree that hangar.toml needs"
                .to_owned(),
        ],
        Some(work_tree) if holds_files(work_tree) => vec![format!(
            "commit what is there first, so that hangar.toml is tuned to it: `{git} add -A && \
             {git} commit -m \"Begin\"`"
        )],
        Some(_) => vec![format!(
            "make one: `{git} commit --allow-empty -m \"Begin\"`"
        )],
    };
    Error::Unborn {
        elsewhere: false,
        remedies,
    }
}

fn holds_files(work_tree: &Path) -> bool {
    let entries = std::fs::read_dir(work_tree).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name() != ".git")
}

/// Where a key was found, for people.
pub(crate) fn source(candidate: &Candidate) -> String {
    let place = match &candidate.source {
        Source::GitConfig => "Git's user.signingKey".to_owned(),
        Source::File(path) => path.display().to_string(),
        Source::Agent(comment) if comment.is_empty() => "the agent".to_owned(),
        Source::Agent(comment) => format!("the agent ({comment})"),
    };
    match (&candidate.how, &candidate.source) {
        (How::Agent(_), Source::Agent(_)) => place,
        (How::Agent(_), _) => format!("{place}, through the agent"),
        (How::Program(_), _) => format!("{place}, through ssh-keygen"),
        (
            How::File {
                encrypted: true, ..
            },
            _,
        ) => format!("{place}, with passphrase"),
        (How::File { .. }, _) => place,
    }
}
