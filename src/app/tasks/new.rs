//! `hangar task new`

use super::draft::{Draft, numbered};
use crate::app::{Error, Here};
use crate::base::files::{self, Lock};
use crate::config::repository::{self, Repository as Config};
use crate::git::Repository;
use crate::model::event::Change;
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::task::Flow;
use crate::store::Store;
use crate::store::identity::Identity;
use crate::store::index::keys;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Held by who gives a task an external key.
const KEYS_LOCK: &str = "keys.lock";
/// Longest external key in bytes.
const MAX_KEY: usize = 80;
/// Longest tag in bytes, and most of them.
const MAX_TAG: (usize, usize) = (64, 50);

/// A task that was created.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewTask {
    /// Id.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// External key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Acceptance.
    pub flow: Flow,
    /// The commit that the work starts from.
    pub base: ObjectId,
    /// How many criteria it has.
    pub criteria: usize,
}

/// Creates one task for each draft, in order. Everything is checked before the first is written. In one
/// clone a key names one live task: who gives one waits for others that do.
pub fn new(
    here: &Here,
    drafts: &[Draft],
    ask: &mut AskPassphrase<'_>,
) -> Result<Vec<NewTask>, Error> {
    let store = here.store()?;
    let signer = here.signer(&store, ask)?;
    let identity = Identity::of(&store.policy, &signer)?;
    let mut keys = KnownKeys::new(&store, drafts)?;
    let planned: Vec<_> = drafts
        .iter()
        .map(|draft| {
            plan(here, &store.repo, draft, identity.principal(), &mut keys)
                .map_err(|error| error.in_line(draft.line))
        })
        .collect::<Result<_, _>>()?;
    let mut made = Vec::new();
    for (create, mut task) in planned {
        task.id = store.create_task(&identity, create)?;
        made.push(task);
    }
    Ok(made)
}

/// The creation and what will be told of it; the id is not known yet.
fn plan(
    here: &Here,
    repo: &Repository,
    draft: &Draft,
    requester: &Principal,
    keys: &mut KnownKeys,
) -> Result<(Change, NewTask), Error> {
    let (base, base_branch) = base(repo, draft.base.as_deref())?;
    let named = draft.base.clone().unwrap_or_else(|| "HEAD".into());
    let config = here
        .config_at(repo, base)?
        .ok_or(Error::NoConfigAtBase { base: named })?;
    let flow = draft.flow.unwrap_or_else(|| flow_of(&config));
    let external = keys.take(here, draft.key.as_deref())?;
    let tags = tags(&draft.tags)?;
    let criteria = numbered(&draft.criteria);
    let task = NewTask {
        // Replaced once the event exists, whose digest it is.
        id: TaskId::of_creation(b""),
        title: draft.title.trim().to_owned(),
        key: Some(external.clone()).filter(|key| !key.is_empty()),
        flow,
        base,
        criteria: criteria.len(),
    };
    let create = Change::Create {
        title: task.title.clone(),
        mandate: draft.mandate.trim().to_owned(),
        criteria,
        flow,
        mode: draft.mode.unwrap_or_default(),
        priority: draft.priority.unwrap_or(5),
        base,
        base_branch,
        external,
        tags,
        requester: requester.clone(),
    };
    Ok((create, task))
}

const fn flow_of(config: &Config) -> Flow {
    match config.flow {
        repository::Flow::TestFirst => Flow::TestFirst,
        repository::Flow::Plain => Flow::Plain,
    }
}

/// The commit, and the branch that it was named by.
pub(super) fn base(repo: &Repository, revision: Option<&str>) -> Result<(ObjectId, String), Error> {
    let Some(revision) = revision else {
        let head = repo.head()?.ok_or(crate::git::Error::NoCommits)?;
        return Ok((head, repo.head_branch()?.unwrap_or_default()));
    };
    let commit = repo.resolve(revision)?;
    let short = revision.strip_prefix("refs/heads/").unwrap_or(revision);
    let name = format!("refs/heads/{short}");
    let is_branch =
        crate::git::check_ref_name(&name).is_ok() && repo.read_ref(&name)? == Some(commit);
    Ok((
        commit,
        if is_branch {
            short.to_owned()
        } else {
            String::new()
        },
    ))
}

/// Tags as words.
pub(super) fn tags(texts: &[String]) -> Result<Vec<String>, Error> {
    let (longest, most) = MAX_TAG;
    let fine = |tag: &str| {
        !tag.is_empty()
            && tag.len() <= longest
            && tag
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-+:".contains(&b))
    };
    if let Some(bad) = texts.iter().find(|tag| !fine(tag)) {
        return Err(Error::invalid(format!(
            "the tag `{bad}` is no word of letters, digits and . _ - + : with at most {longest} characters"
        )));
    }
    if texts.len() > most {
        return Err(Error::invalid(format!("at most {most} tags")));
    }
    let mut tags = texts.to_vec();
    tags.sort();
    tags.dedup();
    Ok(tags)
}

/// External keys that are taken, so that none names two live tasks.
struct KnownKeys {
    /// In lowercase, each with who has it.
    taken: BTreeMap<String, String>,
    /// Those that only archived tasks have. A live task takes such a key over.
    archived: BTreeMap<String, TaskId>,
    /// From the look at the keys to the last task that is written, nobody else in this clone gives one.
    _alone: Option<Lock>,
}

impl KnownKeys {
    fn new(store: &Store, drafts: &[Draft]) -> Result<Self, Error> {
        let wanted = drafts.iter().filter_map(|draft| draft.key.as_deref());
        let wanted: BTreeSet<String> = wanted.map(|key| key.trim().to_ascii_lowercase()).collect();
        if wanted.is_empty() {
            return Ok(Self {
                taken: BTreeMap::new(),
                archived: BTreeMap::new(),
                _alone: None,
            });
        }
        let dir = store.repo.hangar_dir();
        files::create_private_dir(&dir)?;
        let alone = files::lock(&dir.join(KEYS_LOCK))?;
        let archived = keys::archived(store, &wanted)?.into_iter();
        let live = keys::live(store)?.into_iter();
        Ok(Self {
            taken: live
                .filter_map(|((id, _), key)| Some((key?, format!("task {}", id.short()))))
                .collect(),
            archived: archived.map(|((id, _), key)| (key, id)).collect(),
            _alone: Some(alone),
        })
    }

    fn take(&mut self, here: &Here, key: Option<&str>) -> Result<String, Error> {
        let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) else {
            return Ok(String::new());
        };
        if key.len() > MAX_KEY || key.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Error::invalid(format!(
                "the key `{key}` is no word of at most {MAX_KEY} bytes"
            )));
        }
        if key.starts_with('-') || key.contains('/') || key.contains("..") {
            return Err(Error::invalid(format!(
                "the key `{key}` can't be used: it would be taken for an option, a path or a range of commits; leave out the leading `-`, `/` and `..`"
            )));
        }
        let folded = key.to_ascii_lowercase();
        if let Some(by) = self.taken.get(&folded) {
            return Err(Error::KeyTaken {
                key: key.to_owned(),
                by: by.clone(),
            });
        }
        if let Some(id) = self.archived.get(&folded) {
            let id = id.short();
            here.notices.say(&format!(
                "the archived task {id} has the key `{key}`: from now on the key means the new task, and the old one is found as {id}"
            ));
        }
        self.taken.insert(folded, "a line before this".into());
        Ok(key.to_owned())
    }
}
