//! The user's repository: objects, refs, trees, work trees.
//!
//! Owns every contact with Git: the only importer of gix and the only caller of the git program
//! (`program`). No type of gix leaves this folder. Must not know what tasks, seals or grades are:
//! it stores bytes under names. Reads never follow `refs/replace` or grafts, and what an agent left
//! is read as files, never through the agent's own `.git`.
//!
//! Formats: `docs/format.md`, "Refs". Attacks that must not work: `docs/threat-model.md`, "Git and
//! paths".

mod branches;
mod collect;
mod delta_bases;
mod durable;
mod error;
mod guard;
mod history;
mod hooks;
mod ignore;
mod index;
mod loose;
mod materialise;
mod names;
mod objects;
mod patch;
mod patience;
mod pinned;
pub mod program;
mod ref_changes;
mod ref_moves;
mod refs;
mod rejected;
mod remote;
mod repository;
mod transit;
mod tree_build;
mod trees;
mod trouble;

pub use branches::BranchCommit;
pub use collect::{ChangeKind, CollectOptions, Collected, IgnoreRules, Refusal};
pub use error::{Absence, Error, PathFault};
pub use hooks::{HooksFolder, HooksOwner};
pub use materialise::Materialised;
pub use names::{check_component, check_path};
pub use objects::{Commit, CommitDraft, EntryKind, TreeEntry};
pub use patch::Applied;
pub use pinned::PinnedPack;
pub use ref_changes::RefChange;
pub use ref_moves::{RefMove, Stayed};
pub use refs::{Expected, check_ref_name};
pub use rejected::Rejected;
pub use remote::{Lease, PushOutcome, answers_anyone, shown as shown_remote};
pub use repository::{ObjectFormat, Repository};
pub use transit::{ObjectKind, Outgoing};
pub use trees::{Gitlink, TreeFiles};
pub use trouble::RemoteTrouble;
