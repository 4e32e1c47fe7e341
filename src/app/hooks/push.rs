//! `pre-push`: no hidden test leaves in an ordinary branch or tag, and refs of hangar go forward only.
//!
//! Costs a look at every object that the remote lacks, and nothing where nothing is sealed. No key is
//! needed: manifests name the digests of the marks.

use super::{Verdict, object, unread};
use crate::app::{Error, Here};
use crate::git::{ObjectKind, Outgoing, Repository};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::manifest::Manifest;
use crate::model::object_id::ObjectId;
use crate::seal;
use crate::store::layout::{Layout, OfTask};
use crate::store::receive::Refused;
use crate::store::{Store, chain, remotes};
use std::collections::{BTreeMap, BTreeSet};

/// From so many objects on, the wait is explained.
const MANY: usize = 5_000;

const HINT: &str = "nothing was pushed; take the tests out of these commits (`git commit --amend`, \
                    `git rebase`), or land them with `hangar sealed publish TASK`";

/// One ref that is about to be pushed.
struct Line<'a> {
    local: Option<ObjectId>,
    name: &'a str,
    remote: Option<ObjectId>,
}

pub(super) fn check(
    here: &Here,
    repo: &Repository,
    remote: &str,
    lines: &str,
    progress: &dyn Fn(&str),
) -> Result<Verdict, Error> {
    let lines = lines.lines().map(line).collect::<Result<Vec<_>, _>>()?;
    let layout = Layout::of(repo)?;
    // The remote may keep its refs below the other prefix.
    let there = Layout::at(remotes::prefix(repo, remote).unwrap_or(layout.place()));
    let (ours, ordinary): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .partition(|line| layout.concerns(line.name) || there.concerns(line.name));
    let faults = ours.iter().filter_map(|line| {
        let why = backward(repo, line)?;
        Some(Refused::new(line.name, why))
    });
    let mut verdict = Verdict {
        refused: faults.collect(),
        hints: Vec::new(),
    };
    verdict.refused.extend(mirror(&ordinary));
    let leaks = leaks(here, repo, &layout, remote, &ordinary, progress)?;
    if !leaks.is_empty() {
        verdict.hints.push(HINT.to_owned());
        verdict.refused.extend(leaks);
    }
    Ok(verdict)
}

/// `LOCAL-REF LOCAL REMOTE-REF REMOTE`. What was typed for the local side may hold spaces.
fn line(line: &str) -> Result<Line<'_>, Error> {
    let mut parts = line.rsplitn(4, ' ');
    let mut next = || parts.next().ok_or_else(unread);
    let (remote, name, local) = (next()?, next()?, next()?);
    Ok(Line {
        local: object(local)?,
        name,
        remote: object(remote)?,
    })
}

/// What the remote would lose.
fn backward(repo: &Repository, line: &Line<'_>) -> Option<String> {
    let Some(local) = line.local else {
        return Some("a ref of hangar is never deleted".into());
    };
    let there = line.remote?;
    let holds = repo.has_object(there) && repo.is_ancestor(there, local).unwrap_or(false);
    (!holds).then(|| {
        format!(
            "the remote would lose {}, which is there; `hangar sync` joins both",
            there.short()
        )
    })
}

/// Git does not tell a hook what `--mirror` deletes. A mirror of an ordinary clone is known by refs that
/// nobody else pushes.
fn mirror(lines: &[Line<'_>]) -> Option<Refused> {
    let places = ["refs/remotes/", "refs/hangar-remote/"];
    let of_clone = |line: &&Line<'_>| places.iter().any(|place| line.name.starts_with(place));
    let line = lines
        .iter()
        .find(|line| line.local.is_some() && of_clone(line))?;
    let why = "only `--mirror` pushes this; it deletes what this clone has not, refs of hangar too";
    Some(Refused::new(line.name, why))
}

/// Refs that would carry a hidden test out.
fn leaks(
    here: &Here,
    repo: &Repository,
    layout: &Layout,
    remote: &str,
    lines: &[Line<'_>],
    progress: &dyn Fn(&str),
) -> Result<Vec<Refused>, Error> {
    let new: Vec<ObjectId> = lines.iter().filter_map(|line| line.local).collect();
    let sealed = repo.list_refs(&layout.folder(OfTask::Sealed))?;
    if new.is_empty() || sealed.is_empty() {
        return Ok(Vec::new());
    }
    let mut known: Vec<ObjectId> = lines.iter().filter_map(|line| line.remote).collect();
    // What this clone has fetched from there, or pushed. An address has no such refs.
    let tracking = format!("refs/remotes/{remote}/");
    if crate::git::check_ref_name(&format!("{tracking}x")).is_ok() {
        known.extend(repo.list_refs(&tracking)?.into_iter().map(|(_, id)| id));
    }
    let objects = repo.outgoing(&new, &known)?;
    if objects.len() >= MANY {
        progress(&format!(
            "looking for hidden tests in {} objects",
            objects.len()
        ));
    }
    let mut found = Vec::new();
    for one in &objects {
        let (kind, bytes) = repo.read_any(one.id)?;
        let tokens: BTreeSet<Digest> = seal::scan(&bytes).collect();
        if !tokens.is_empty() {
            found.push((one, kind, tokens));
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let marks = marks(here, repo, layout, &sealed)?;
    let mut whys = BTreeMap::new();
    for (one, kind, tokens) in found {
        if let Some((task, version)) = tokens.iter().find_map(|token| marks.get(token)) {
            let place = place(one, kind);
            let task = task.short();
            let why = format!("{place} holds hidden tests of task {task}, version {version}");
            whys.insert(one.id, why);
        }
    }
    named(repo, lines, &known, &whys)
}

/// Where a mark was found. Never what stands there.
fn place(one: &Outgoing, kind: ObjectKind) -> String {
    let path = String::from_utf8_lossy(&one.path)
        .escape_debug()
        .to_string();
    let id = one.id.short();
    match kind {
        ObjectKind::Blob => format!("`{path}` ({id})"),
        ObjectKind::Tree => format!("a file name in `{path}/` ({id})"),
        ObjectKind::Commit => format!("the message of commit {id}"),
        ObjectKind::Tag => format!("the message of the tag {id}"),
    }
}

/// Each ref with the first thing that it must not carry.
fn named(
    repo: &Repository,
    lines: &[Line<'_>],
    known: &[ObjectId],
    whys: &BTreeMap<ObjectId, String>,
) -> Result<Vec<Refused>, Error> {
    let mut all = Vec::new();
    if whys.is_empty() {
        return Ok(all);
    }
    for line in lines {
        let objects = repo.outgoing(line.local.as_slice(), known)?;
        let mut why = objects.iter().filter_map(|one| whys.get(&one.id));
        all.extend(why.next().map(|why| Refused::new(line.name, why.as_str())));
    }
    Ok(all)
}

/// The marks of every sealed version that is not published, with task and version. Where a task can't
/// be read as it should be, every manifest on its ref counts.
fn marks(
    here: &Here,
    repo: &Repository,
    layout: &Layout,
    sealed: &[(String, ObjectId)],
) -> Result<BTreeMap<Digest, (TaskId, u32)>, Error> {
    let store = Store::open(repo.reopen()?, here.clock).ok();
    let mut marks = BTreeMap::new();
    for (name, head) in sealed {
        let Some(id) = layout.task_in(OfTask::Sealed, name) else {
            continue;
        };
        let dossier = store.as_ref().and_then(|store| store.dossier(&id).ok());
        if let Some(dossier) = dossier {
            let published = dossier.history.task.published.map(|(manifest, _)| manifest);
            let hidden = dossier
                .seals
                .iter()
                .filter(|seal| Some(seal.digest()) != published);
            marks.extend(hidden.map(|seal| {
                let value = seal.value();
                (value.canary, (id.clone(), value.version))
            }));
            continue;
        }
        for folder in chain::read(repo, *head)? {
            let document = folder.document(repo, "manifest")?;
            let manifest = document.and_then(|(bytes, _)| codec::decode::<Manifest>(&bytes).ok());
            marks.extend(manifest.map(|one| (one.canary, (id.clone(), one.version))));
        }
    }
    Ok(marks)
}
