//! The acceptance flow: what happens to a task, stage by stage.
//!
//! Joins `store`, `sandbox`, `grade`, `harness` and `seal`. Must not print. Design:
//! `docs/concepts.md`, "The flow".

pub mod agent;
pub mod basecheck;
pub mod bench;
pub mod claim;
mod closed;
pub mod decide;
pub mod delivery;
pub mod drive;
mod driver;
mod error;
pub mod frozen;
pub mod grading;
mod handover;
pub mod host;
pub mod implementer;
pub mod leak;
pub mod need;
pub mod outage;
pub mod pairing;
pub mod prepare;
pub mod project;
mod questions;
mod redefined;
pub mod scratch;
pub mod sealing;
pub mod stage;
pub mod subject;
pub mod tools;
pub mod verdict;
pub mod verify;
pub mod version;
pub mod writer;

pub use error::Error;
