//! The index: what a listing shows of each task, kept so that a listing need not read every document.
//!
//! A cache and never the truth. What decides (run, approve, verify, claim) does not read it, and
//! high-water marks and pins are not in it. A row holds for exactly the refs, the policy and the time
//! that it was made from; any other row is made anew. Deleting `index.db` in hangar's folder costs
//! time and nothing else, and no trouble with it fails a command. It holds nothing that the refs do
//! not show in clear. Must not know what a row says.

mod db;
pub mod keys;

use super::Store;
use super::scan::TaskRefs;
use crate::base::files;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use db::{Db, Fault, Kept};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::panic;
use std::sync::mpsc;
use std::thread;

/// Raise it when rows are made, or kept, in another way. Each release makes them anew anyway.
const FORMAT: u32 = 3;
/// Rows that are made before they are kept: what an interrupted build loses at most.
const SLICE: usize = 2000;

/// What is kept of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<T> {
    /// What every listing needs.
    pub value: T,
    /// What only a search needs. Empty unless it was asked for, or the row was made just now.
    pub text: String,
    /// When it holds.
    pub holds: Holds,
}

/// The time in which a row holds: later than `after`, and not later than `until`. Both move with the
/// approvals that expire. In seconds since 1970: the clock knows no less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// The last moment before it holds.
    pub after: Option<i64>,
    /// The last moment in which it holds.
    pub until: Option<i64>,
}

impl Holds {
    /// The time around `now` in which none of `ends` passes.
    pub fn around(now: Timestamp, ends: impl IntoIterator<Item = Timestamp>) -> Self {
        let now = now.as_second();
        let mut holds = Self::default();
        for end in ends {
            let end = end.as_second();
            if end < now {
                holds.after = holds.after.max(Some(end));
            } else {
                holds.until = Some(holds.until.map_or(end, |until| until.min(end)));
            }
        }
        holds
    }

    /// No time: the row is made anew for each listing.
    pub const fn never() -> Self {
        Self {
            after: Some(i64::MAX),
            until: None,
        }
    }

    fn at(self, now: Timestamp) -> bool {
        let now = now.as_second();
        self.after.is_none_or(|after| now > after) && self.until.is_none_or(|until| now <= until)
    }
}

/// Every row that was asked for.
#[derive(Debug)]
pub struct Rows<T> {
    /// In the order of the refs.
    pub rows: Vec<Row<T>>,
    /// Why the index was not used, or not kept.
    pub trouble: Option<String>,
}

/// How rows are got.
pub struct Source<'a, F> {
    /// Whether the texts are needed.
    pub text: bool,
    /// Makes one row from the documents.
    pub make: F,
    /// Hears how many rows were made, of how many.
    pub tick: &'a mut dyn FnMut(usize, usize),
}

/// A row for each of `refs`: from the index where it holds, else made, and then kept.
pub fn rows<T, E, F>(store: &Store, refs: &[TaskRefs], source: Source<'_, F>) -> Result<Rows<T>, E>
where
    T: Serialize + DeserializeOwned + Send,
    E: Send,
    F: Fn(&Store, &TaskRefs) -> Result<Row<T>, E> + Sync,
{
    let Source { text, make, tick } = source;
    let (mut index, mut rows) = Index::load(store, refs, text);
    let stale: Vec<usize> = (0..refs.len()).filter(|at| rows[*at].is_none()).collect();
    let mut made = 0;
    for slice in stale.chunks(SLICE) {
        let tick = &mut |done| tick(made + done, stale.len());
        let new = store.map_all(slice, |store, at| make(store, &refs[*at]), tick)?;
        index.keep(slice.iter().map(|at| (&refs[*at].id, *at)).zip(&new));
        for (at, row) in slice.iter().zip(new) {
            rows[*at] = Some(row);
        }
        made += slice.len();
    }
    index.forget();
    Ok(Rows {
        rows: rows.into_iter().flatten().collect(),
        trouble: index.trouble,
    })
}

/// The index in the hands of one command.
struct Index {
    /// `None` after trouble.
    db: Option<Db>,
    trouble: Option<String>,
    /// What the rows rest on, in the order of the refs.
    keys: Vec<Digest>,
    /// Rows of tasks that are no more.
    gone: Vec<String>,
}

impl Index {
    /// Opens the index and takes the rows that hold, each at the place of its refs.
    fn load<T: DeserializeOwned + Send>(
        store: &Store,
        refs: &[TaskRefs],
        text: bool,
    ) -> (Self, Vec<Option<Row<T>>>) {
        let world = world(store);
        let mut index = Self {
            db: None,
            trouble: None,
            keys: keys(&world, refs),
            gone: Vec::new(),
        };
        let none = || refs.iter().map(|_| None).collect();
        let dir = store.repo.hangar_dir();
        let opened = match files::create_private_dir(&dir) {
            Ok(()) => Db::open(&dir),
            Err(error) => Err(Fault::Unusable(error.to_string())),
        };
        let db = match opened {
            Ok(db) => db,
            Err(fault) => {
                index.trouble = Some(fault.to_string());
                return (index, none());
            }
        };
        let places: HashMap<&str, usize> = refs
            .iter()
            .enumerate()
            .map(|(at, refs)| (refs.id.as_str(), at))
            .collect();
        let now = store.clock.now();
        let keys = &index.keys;
        let gone = &mut index.gone;
        let (give, taken) = mpsc::channel::<Batch>();
        // One thread reads the file while another makes rows of what was read.
        let (read, mut rows) = thread::scope(|scope| {
            let maker = scope.spawn(move || {
                let mut rows: Vec<Option<Row<T>>> = none();
                for batch in taken {
                    for raw in batch.rows() {
                        let (id, key) = (refs[raw.at].id.as_str(), &keys[raw.at]);
                        rows[raw.at] = take(&raw, id, key, text, now);
                    }
                }
                rows
            });
            let mut batch = Batch::default();
            let read = db.read(text, |kept| match places.get(kept.id) {
                Some(at) if kept.key == keys[*at].as_bytes() => {
                    batch.add(*at, &kept);
                    if batch.is_full() {
                        let _ = give.send(std::mem::take(&mut batch));
                    }
                }
                Some(_) => {}
                None => gone.push(kept.id.to_owned()),
            });
            let _ = give.send(batch);
            drop(give);
            match maker.join() {
                Ok(rows) => (read, rows),
                Err(cause) => panic::resume_unwind(cause),
            }
        });
        match read {
            Ok(()) => index.db = Some(db),
            Err(fault) => {
                rows = none();
                index.gone.clear();
                match fault.is_damage().then(|| db.renew()) {
                    Some(Ok(new)) => index.db = Some(new),
                    _ => index.trouble = Some(fault.to_string()),
                }
            }
        }
        (index, rows)
    }

    /// Keeps rows; the second number is the place of the task's refs.
    fn keep<'a, T: Serialize + 'a>(
        &mut self,
        rows: impl Iterator<Item = ((&'a TaskId, usize), &'a Row<T>)>,
    ) {
        let Some(mut db) = self.db.take() else { return };
        let (keys, gone) = (&self.keys, std::mem::take(&mut self.gone));
        let parts = rows.filter_map(|((id, at), row)| {
            let key = keys[at];
            let value = serde_json::to_vec(&(&row.holds, &row.value)).ok()?;
            Some(db::Part {
                id: id.as_str(),
                key: *key.as_bytes(),
                row: sealed(id.as_str(), &key, &value),
                text: sealed(id.as_str(), &key, row.text.as_bytes()),
            })
        });
        match db.write(parts, &gone) {
            Ok(()) => self.db = Some(db),
            Err(fault) => {
                self.trouble = Some(fault.to_string());
                if fault.is_damage() {
                    self.db = db.renew().ok();
                }
            }
        }
    }

    /// Takes the rows of tasks that are no more away, unless that was done with the last rows.
    fn forget(&mut self) {
        if !self.gone.is_empty() {
            self.keep::<()>(std::iter::empty());
        }
    }
}

/// Rows of the file that are handed on together, unread: one piece of memory for all of them.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Place of the task's refs, end of its row, and end of its text where there is one.
    ends: Vec<(usize, usize, Option<usize>)>,
}

impl Batch {
    /// Bytes that are worth handing on.
    const FULL: usize = 64 << 10;

    fn add(&mut self, at: usize, kept: &Kept<'_>) {
        self.bytes.extend_from_slice(kept.row);
        let row = self.bytes.len();
        let text = kept.text.map(|text| {
            self.bytes.extend_from_slice(text);
            self.bytes.len()
        });
        self.ends.push((at, row, text));
    }

    const fn is_full(&self) -> bool {
        self.bytes.len() >= Self::FULL
    }

    fn rows(&self) -> impl Iterator<Item = Raw<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |(at, row, text)| {
            let raw = Raw {
                at: *at,
                row: &self.bytes[start..*row],
                text: text.map(|end| &self.bytes[*row..end]),
            };
            start = text.unwrap_or(*row);
            raw
        })
    }
}

/// A row of the file, unread.
struct Raw<'a> {
    /// Place of the task's refs.
    at: usize,
    row: &'a [u8],
    text: Option<&'a [u8]>,
}

/// A row of the file, if it is whole and holds.
fn take<T: DeserializeOwned>(
    raw: &Raw<'_>,
    id: &str,
    key: &Digest,
    text: bool,
    now: Timestamp,
) -> Option<Row<T>> {
    let value = unsealed(id, key, raw.row)?;
    let (holds, value): (Holds, T) = serde_json::from_slice(value).ok()?;
    let text = if text {
        String::from_utf8(unsealed(id, key, raw.text?)?.to_vec()).ok()?
    } else {
        String::new()
    };
    holds.at(now).then_some(Row { value, text, holds })
}

/// Bytes of the sum before a row.
const SUM: usize = 8;

/// A row with a sum in front, which notices rot and rows that were mixed up; no attacker, who could as
/// well write the refs.
fn sealed(id: &str, key: &Digest, bytes: &[u8]) -> Vec<u8> {
    let mut out = sum(id, key, bytes).to_vec();
    out.extend_from_slice(bytes);
    out
}

fn unsealed<'a>(id: &str, key: &Digest, row: &'a [u8]) -> Option<&'a [u8]> {
    let (front, bytes) = row.split_at_checked(SUM)?;
    (front == sum(id, key, bytes)).then_some(bytes)
}

fn sum(id: &str, key: &Digest, bytes: &[u8]) -> [u8; SUM] {
    let all = Digest::of_parts(&[id.as_bytes(), key.as_bytes(), bytes]);
    let mut out = [0; SUM];
    out.copy_from_slice(&all.as_bytes()[..SUM]);
    out
}

/// What every row rests on: this program, the names of the refs and the policy. Each version of the
/// policy names the one before it, the lists of documents that count, and its `root.toml`. While rivals are
/// undecided, each of them takes part.
fn world(store: &Store) -> Digest {
    let newest = store.policy.newest();
    let ends: Vec<_> = store
        .policy
        .ends()
        .into_iter()
        .map(|end| end.reference.digest.to_string())
        .collect();
    let text = format!(
        "{FORMAT}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        store.layout.prefix(),
        store.policy.repo(),
        newest.reference.version,
        newest.reference.digest,
        newest.root_digest,
        ends.join(" "),
    );
    Digest::of(text.as_bytes())
}

/// What each row rests on.
fn keys(world: &Digest, refs: &[TaskRefs]) -> Vec<Digest> {
    let mut bytes = Vec::new();
    refs.iter()
        .map(|refs| key(&mut bytes, world, refs))
        .collect()
}

/// What one row rests on. What is in `bytes` is lost: the memory is used again for each row.
fn key(bytes: &mut Vec<u8>, world: &Digest, refs: &TaskRefs) -> Digest {
    bytes.clear();
    bytes.extend_from_slice(world.as_bytes());
    let mut add = |name: &str, head: ObjectId| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(head.as_bytes());
        bytes.push(0);
    };
    add("task", refs.tip);
    for (name, head) in [
        ("sealed", refs.sealed),
        ("runs", refs.runs),
        ("grades", refs.grades),
    ] {
        if let Some(head) = head {
            add(name, head);
        }
    }
    for (name, head) in &refs.approvals {
        add(name, *head);
    }
    Digest::of(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_row_holds_between_two_ends() {
        let (first, second) = (at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z"));
        let between = at("2026-01-15T00:00:00Z");
        let holds = Holds::around(between, [second, first]);
        let seconds = |at: Timestamp| Some(at.as_second());
        assert_eq!(
            (holds.after, holds.until),
            (seconds(first), seconds(second))
        );
        let later = at("2026-02-01T00:00:01Z");
        for (now, expected) in [
            (first, false),
            (between, true),
            (second, true),
            (later, false),
        ] {
            assert_eq!(holds.at(now), expected, "{now}");
        }
        // An approval can still be used in its last second.
        assert_eq!(Holds::around(second, [second]).until, seconds(second));
        assert!(Holds::around(later, []).at(first));
    }

    #[test]
    fn every_ref_is_part_of_the_key() {
        let id = TaskId::of_creation(b"x");
        let head = |byte| ObjectId::from_bytes(&[byte; 20]).unwrap();
        let bare = TaskRefs {
            id,
            tip: head(1),
            sealed: None,
            runs: None,
            grades: None,
            approvals: Vec::new(),
        };
        let mut all = vec![bare.clone()];
        let mut add = |change: &dyn Fn(&mut TaskRefs)| {
            let mut refs = bare.clone();
            change(&mut refs);
            all.push(refs);
        };
        add(&|refs| refs.tip = head(2));
        add(&|refs| refs.sealed = Some(head(1)));
        add(&|refs| refs.runs = Some(head(1)));
        add(&|refs| refs.grades = Some(head(1)));
        add(&|refs| refs.approvals = vec![("a".into(), head(1))]);
        add(&|refs| refs.approvals = vec![("b".into(), head(1))]);
        add(&|refs| refs.approvals = vec![("a".into(), head(1)), ("b".into(), head(1))]);
        let world = Digest::of(b"w");
        let different: std::collections::BTreeSet<_> = keys(&world, &all).into_iter().collect();
        assert_eq!(different.len(), all.len());
        let other = keys(&Digest::of(b"v"), &all);
        assert!(other.iter().all(|key| !different.contains(key)));
    }

    #[test]
    fn a_row_with_a_flipped_bit_is_none() {
        let key = Digest::of(b"key");
        let row = sealed("id", &key, b"bytes");
        assert_eq!(unsealed("id", &key, &row), Some(&b"bytes"[..]));
        assert_eq!(unsealed("other", &key, &row), None);
        assert_eq!(unsealed("id", &Digest::of(b"other"), &row), None);
        for at in 0..row.len() {
            let mut bad = row.clone();
            bad[at] ^= 1;
            assert_eq!(unsealed("id", &key, &bad), None, "{at}");
            assert_eq!(unsealed("id", &key, &row[..at]), None, "{at}");
        }
    }
}
