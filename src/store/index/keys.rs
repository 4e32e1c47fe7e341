//! Which tasks an external key (`KAN-80`) may mean, live and archived, without reading all of them.
//!
//! A task's key stands in the event that its id is the digest of, so what was read once holds for
//! ever, whatever happens to the task and to the policy. Nobody has verified that event here: what is
//! found are candidates, and whoever asks reads their documents. Live tasks share one row of the
//! index, and so do those of each archive, which is read again only for what is new in it.

use super::db::Db;
use super::{FORMAT, sealed, unsealed};
use crate::base::files;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::{Error, Store, chain};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Row of the live tasks.
const LIVE: &str = "live";

/// A task and where its events end.
type Tip = (TaskId, ObjectId);

/// The keys of some tasks.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    /// The tree of the archive whose tasks are all in here.
    tree: Option<ObjectId>,
    /// Empty for a task without a key.
    keys: BTreeMap<TaskId, String>,
}

/// Every live task's key, in lowercase; empty where it has none, `None` where it can't be read.
pub fn live(store: &Store) -> Result<Vec<(Tip, Option<String>)>, Error> {
    let shelf = Shelf::open(store);
    let refs = store.task_refs()?;
    let mut book = shelf.book(LIVE);
    let known = book.keys.len();
    let ids: BTreeSet<&TaskId> = refs.iter().map(|(id, _)| id).collect();
    book.keys.retain(|id, _| ids.contains(id));
    let shrunk = book.keys.len() < known;
    let unknown: Vec<_> = unread(&book, refs.clone()).collect();
    let new = read(store, &unknown)?;
    if shrunk || !new.is_empty() {
        book.keys.extend(new);
        shelf.keep(LIVE, &book);
    }
    let key = |(id, _): &Tip| book.keys.get(id).cloned();
    Ok(refs
        .into_iter()
        .map(|tip| (tip.clone(), key(&tip)))
        .collect())
}

/// Archived tasks, and no live ones, that these keys (in lowercase) may mean, each with its own.
pub(crate) fn archived(
    store: &Store,
    keys: &BTreeSet<String>,
) -> Result<Vec<(Tip, String)>, Error> {
    let shelf = Shelf::open(store);
    let mut archives = Vec::new();
    let mut unknown = Vec::new();
    for (name, head) in store.repo.list_refs(&store.layout.archives())? {
        let book = shelf.book(&name);
        let since = store.archive_since(head, book.tree);
        let (tree, new) = since.map_err(|error| error.at(&name))?;
        unknown.extend(unread(&book, new));
        archives.push((name, tree, book));
    }
    let mut by_archive: BTreeMap<String, Vec<(TaskId, String)>> = BTreeMap::new();
    for (id, key) in read(store, &unknown)? {
        let of = by_archive.entry(store.layout.archive(&id)).or_default();
        of.push((id, key));
    }
    let mut found = Vec::new();
    for (name, tree, mut book) in archives {
        if book.tree != Some(tree) {
            book.keys
                .extend(by_archive.remove(&name).unwrap_or_default());
            book.tree = Some(tree);
            shelf.keep(&name, &book);
        }
        let fits = book.keys.into_iter().filter(|(_, own)| keys.contains(own));
        for (id, key) in fits {
            let name = store.layout.task(&id);
            if store.repo.read_ref(&name)?.is_none() {
                let tip = store.archived_head(&name)?;
                found.extend(tip.map(|tip| ((id, tip), key)));
            }
        }
    }
    Ok(found)
}

/// Those that are not in the book.
fn unread(book: &Book, tasks: Vec<Tip>) -> impl Iterator<Item = Tip> {
    let new = tasks.into_iter();
    new.filter(|(id, _)| !book.keys.contains_key(id))
}

/// The keys of these tasks, of those that have one event that made them.
fn read(store: &Store, tasks: &[Tip]) -> Result<BTreeMap<TaskId, String>, Error> {
    let key = |store: &Store, tip: &Tip| Ok::<_, Error>(key_of(store, tip));
    let of = tasks.len();
    let keys = store.map_all(tasks, key, &mut |done| store.heard.tell(done.min(of), of));
    store.heard.tell(of, of);
    let keys = keys?;
    let read = tasks.iter().zip(keys);
    Ok(read
        .filter_map(|((id, _), key)| Some((id.clone(), key?)))
        .collect())
}

/// What the event says that made the task, in lowercase; `None` where it can't be found.
fn key_of(store: &Store, (id, tip): &Tip) -> Option<String> {
    for folder in chain::read(&store.repo, *tip).ok()? {
        let Ok(Some((bytes, _))) = folder.document(&store.repo, "event") else {
            continue;
        };
        if TaskId::of_creation(&bytes) == *id {
            let event = codec::decode::<Event>(&bytes).ok()?;
            return event.change.into_iter().find_map(|change| match change {
                Change::Create { external, .. } => Some(external.to_ascii_lowercase()),
                _ => None,
            });
        }
    }
    None
}

/// The rows of the index that hold books. Trouble with it only costs time.
struct Shelf {
    db: Option<Db>,
    /// What every row rests on.
    sum: Digest,
}

impl Shelf {
    fn open(store: &Store) -> Self {
        let dir = store.repo.hangar_dir();
        let db = files::create_private_dir(&dir).ok();
        Self {
            db: db.and_then(|()| Db::open(&dir).ok()),
            sum: Digest::of(format!("{FORMAT}\n{}\n", store.policy.repo()).as_bytes()),
        }
    }

    fn book(&self, name: &str) -> Book {
        let row = self.db.as_ref().and_then(|db| db.book(name).ok()?);
        let book = row.and_then(|row| {
            let bytes = unsealed(name, &self.sum, &row)?;
            serde_json::from_slice(bytes).ok()
        });
        book.unwrap_or_default()
    }

    fn keep(&self, name: &str, book: &Book) {
        if let (Some(db), Ok(bytes)) = (&self.db, serde_json::to_vec(book)) {
            // Read again the next time.
            let _ = db.keep_book(name, &sealed(name, &self.sum, &bytes));
        }
    }
}
