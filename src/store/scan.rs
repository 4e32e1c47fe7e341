//! All tasks at once: one listing of refs, and the same work on every task with all processors.
//!
//! Owns who reads what; what is read is `tasks` and `dossier`. Results and errors do not depend on how
//! many processors there are.

use super::archive::Heads;
use super::layout::{Layout, OfTask};
use super::policy::PolicyHistory;
use super::{Error, Store};
use crate::base::clock::Clock;
use crate::git::Repository;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{panic, thread};

/// Items that a thread takes at a time.
const BLOCK: usize = 16;
/// Most threads: more wait for memory and disk.
const MAX_THREADS: usize = 16;

/// Where one task's refs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRefs {
    /// The task.
    pub id: TaskId,
    /// Its events.
    pub tip: ObjectId,
    /// Sealed versions.
    pub sealed: Option<ObjectId>,
    /// Runs.
    pub runs: Option<ObjectId>,
    /// Grades.
    pub grades: Option<ObjectId>,
    /// Decisions: every ref that begins as theirs do, by name.
    pub approvals: Vec<(String, ObjectId)>,
}

impl TaskRefs {
    const fn new(id: TaskId, tip: ObjectId) -> Self {
        Self {
            id,
            tip,
            sealed: None,
            runs: None,
            grades: None,
            approvals: Vec::new(),
        }
    }
}

/// Archived tasks, and archives that can't be read, each with the reason.
#[derive(Debug, Default)]
pub struct ArchivedListing {
    /// Tasks with all of their refs.
    pub tasks: Vec<TaskRefs>,
    /// Archives that can't be read.
    pub damaged: Vec<(String, Error)>,
}

impl Store {
    /// Every live task with all of its live refs, by id: a few listings of refs, however many tasks there are.
    pub fn listing(&self) -> Result<Vec<TaskRefs>, Error> {
        let tips = self.task_refs()?.into_iter();
        let mut tasks: Vec<TaskRefs> = tips.map(|(id, tip)| TaskRefs::new(id, tip)).collect();
        tasks.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        for kind in OfTask::ALL {
            for (name, head) in self.repo.list_refs(&self.layout.folder(kind))? {
                let Some(task) = self.layout.task_in(kind, &name) else {
                    continue;
                };
                let Ok(at) = tasks.binary_search_by(|one| one.id.cmp(&task)) else {
                    continue;
                };
                let task = &mut tasks[at];
                match kind {
                    OfTask::Sealed => task.sealed = Some(head),
                    OfTask::Runs => task.runs = Some(head),
                    OfTask::Grades => task.grades = Some(head),
                    OfTask::Approvals => task.approvals.push((name, head)),
                }
            }
        }
        Ok(tasks)
    }

    /// Every archived task with all of its refs: a few small objects for each. An archive that can't be
    /// read keeps no other from being listed: it comes with the reason.
    pub fn archived_listing(&self) -> Result<ArchivedListing, Error> {
        let mut found = ArchivedListing::default();
        for (name, head) in self.repo.list_refs(&self.layout.archives())? {
            let tasks = self.tasks_of_archive(&name, head, "");
            let refs = tasks.and_then(|tasks| {
                let refs = tasks.iter().map(|(id, tip)| self.refs_of(id, *tip));
                refs.collect::<Result<Vec<_>, _>>()
            });
            match refs {
                Ok(refs) => found.tasks.extend(refs),
                Err(error) if error.is_of_documents() => found.damaged.push((name, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The refs of one task whose events end at `tip`.
    pub(super) fn refs_of(&self, id: &TaskId, tip: ObjectId) -> Result<TaskRefs, Error> {
        let live = self.repo.list_refs(&self.layout.approvals_of(id))?;
        self.refs_among(id, tip, &live.into_iter().collect())
    }

    /// The same where the live decisions are known; there may be those of other tasks among them.
    pub(super) fn refs_among(
        &self,
        id: &TaskId,
        tip: ObjectId,
        approvals: &Heads,
    ) -> Result<TaskRefs, Error> {
        let archived = self.archived(id)?;
        let head = |name: String| match self.repo.read_ref(&name)? {
            Some(head) => Ok::<_, Error>(Some(head)),
            None => Ok(self
                .layout
                .own(&name)
                .and_then(|own| archived.get(own).copied())),
        };
        let prefix = self.layout.approvals_of(id);
        let full =
            |(own, head): (&String, &ObjectId)| (format!("{}{own}", self.layout.prefix()), *head);
        let mut all: Heads = archived.iter().map(full).collect();
        all.retain(|name, _| name.starts_with(&prefix));
        // A live one takes the place of what the archive has.
        let live = approvals
            .range(prefix.clone()..)
            .take_while(|(name, _)| name.starts_with(&prefix));
        all.extend(live.map(|(name, head)| (name.clone(), *head)));
        Ok(TaskRefs {
            id: id.clone(),
            tip,
            sealed: head(self.layout.sealed(id))?,
            runs: head(self.layout.runs(id))?,
            grades: head(self.layout.grades(id))?,
            approvals: all.into_iter().collect(),
        })
    }

    /// Does `work` on every item with all processors; each thread has a store of its own. Results come
    /// in the order of the items; of several errors the first in that order. `tick` hears how many are
    /// done.
    ///
    /// # Panics
    /// When `work` does.
    pub fn map_all<I, T, E>(
        &self,
        items: &[I],
        work: impl Fn(&Self, &I) -> Result<T, E> + Sync,
        tick: &mut dyn FnMut(usize),
    ) -> Result<Vec<T>, E>
    where
        I: Sync,
        T: Send,
        E: Send,
    {
        let blocks = items.len().div_ceil(BLOCK);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let helpers = processors.min(MAX_THREADS).min(blocks).saturating_sub(1);
        let (queue, seed, work) = (Queue::new(items), Seed::of(self), &work);
        let mut done = thread::scope(|scope| {
            let help = || match seed.open() {
                Ok(store) => queue.work_off(|item| work(&store, item), &mut |_| {}),
                // One thread less; the others do its part.
                Err(_) => Vec::new(),
            };
            let threads: Vec<_> = (0..helpers).map(|_| scope.spawn(help)).collect();
            let mut done = queue.work_off(|item| work(self, item), tick);
            for thread in threads {
                match thread.join() {
                    Ok(more) => done.extend(more),
                    Err(cause) => panic::resume_unwind(cause),
                }
            }
            done
        });
        done.sort_by_key(|(first, _)| *first);
        done.into_iter().flat_map(|(_, results)| results).collect()
    }
}

/// What a thread needs to open a store of its own. The policy was verified once, and is shared.
struct Seed {
    dir: PathBuf,
    layout: Layout,
    policy: Arc<PolicyHistory>,
    clock: Clock,
}

impl Seed {
    fn of(store: &Store) -> Self {
        let repo = &store.repo;
        Self {
            dir: repo.work_tree().unwrap_or(repo.git_dir()).to_owned(),
            layout: store.layout.clone(),
            policy: Arc::clone(&store.policy),
            clock: store.clock,
        }
    }

    fn open(&self) -> Result<Store, Error> {
        Ok(Store {
            repo: Repository::discover(&self.dir)?,
            layout: self.layout.clone(),
            policy: Arc::clone(&self.policy),
            clock: self.clock,
            heard: super::Heard::default(),
            brought: super::Brought::default(),
            offline: false,
        })
    }
}

/// Items that are taken from the front, a block at a time.
struct Queue<'a, I> {
    items: &'a [I],
    next: AtomicUsize,
    done: AtomicUsize,
    failed: AtomicBool,
}

/// Where a block began, and what came of it, up to the first error.
type Block<T, E> = (usize, Vec<Result<T, E>>);

impl<'a, I> Queue<'a, I> {
    const fn new(items: &'a [I]) -> Self {
        Self {
            items,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Takes blocks until there are no more, or one failed. Blocks are taken in order and ended once
    /// they are taken, so everything before the first error is there.
    fn work_off<T, E>(
        &self,
        mut work: impl FnMut(&I) -> Result<T, E>,
        tick: &mut dyn FnMut(usize),
    ) -> Vec<Block<T, E>> {
        let mut blocks = Vec::new();
        while !self.failed.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(BLOCK, Ordering::Relaxed);
            let Some(rest) = self.items.get(first..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            let block = &rest[..rest.len().min(BLOCK)];
            let mut results = Vec::with_capacity(block.len());
            for item in block {
                let result = work(item);
                let failed = result.is_err();
                results.push(result);
                if failed {
                    self.failed.store(true, Ordering::Relaxed);
                    break;
                }
            }
            blocks.push((first, results));
            tick(self.done.fetch_add(block.len(), Ordering::Relaxed) + block.len());
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn run(threads: usize, items: &[u32], bad: &[u32]) -> Result<Vec<u32>, u32> {
        let queue = Queue::new(items);
        let work = |item: &u32| {
            if bad.contains(item) {
                Err(*item)
            } else {
                Ok(item * 2)
            }
        };
        let all = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let blocks = queue.work_off(work, &mut |_| {});
                    all.lock().unwrap().extend(blocks);
                });
            }
        });
        let mut done = all.into_inner().unwrap();
        done.sort_by_key(|(first, _)| *first);
        done.into_iter().flat_map(|(_, results)| results).collect()
    }

    #[test]
    fn results_and_the_first_error_do_not_depend_on_the_number_of_threads() {
        let items: Vec<u32> = (0..1000).collect();
        let doubled: Vec<u32> = items.iter().map(|item| item * 2).collect();
        for threads in [1, 2, 7] {
            assert_eq!(run(threads, &[], &[]), Ok(Vec::new()));
            assert_eq!(run(threads, &items, &[]).as_ref(), Ok(&doubled));
            for bad in [&[0][..], &[999], &[500, 17, 300], &[31, 32, 33]] {
                let first = *bad.iter().min().unwrap();
                assert_eq!(run(threads, &items, bad), Err(first), "{threads}, {bad:?}");
            }
        }
    }
}
