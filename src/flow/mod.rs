//! The acceptance flow: what happens to a task, stage by stage.
//!
//! Joins `store`, `sandbox`, `grade`, `harness` and `seal`. Must not print. Design:
//! `docs/concepts.md`, "The flow".

pub mod stage;
