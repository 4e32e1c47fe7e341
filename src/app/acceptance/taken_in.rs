//! What a patch of a revision takes in that a person may not expect, and leaves out.

use crate::base::words;
use crate::flow::host::Host;
use crate::model::object_id::ObjectId;
use crate::store::Store;

/// Most commits that are counted.
const MAX_COMMITS: usize = 10_000;

/// Tells of changes in the work tree that no commit holds, and of several commits that make the patch: where
/// the branch moved on since the task's base, other people's are among them. It is only a word beside the
/// work, so trouble with it stops nothing.
pub(super) fn tell(host: &Host<'_>, store: &Store, base: ObjectId, commit: ObjectId) {
    let repo = &store.repo;
    let changed = match repo.head() {
        Ok(Some(head)) if head == commit => repo.uncommitted().unwrap_or(0),
        _ => 0,
    };
    if changed > 0 {
        host.note(format!(
            "the work tree has changes that are not in the patch ({}): the patch is what is committed",
            words::count(changed, "path", "paths")
        ));
    }
    let taken = repo.commits_since(base, commit, MAX_COMMITS);
    let taken = taken.map_or(0, |commits| commits.len());
    if taken > 1 {
        host.note(format!(
            "the patch takes in {taken} commits since the task's base {}",
            base.short()
        ));
    }
}
