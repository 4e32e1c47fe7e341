//! hangar: acceptance that a stranger can check.
//!
//! Folders are levels; a lower level never imports a higher one
//! (`docs/architecture.md` has the table, `tests/architecture.rs` checks it).

pub mod base;
pub mod model;

pub mod config;
pub mod git;
pub mod grade;
pub mod harness;
pub mod sandbox;
pub mod seal;
pub mod trust;

pub mod store;

pub mod flow;

pub mod app;

pub mod cli;
pub mod ui;

// What founds a repository in tests and benchmarks, which name this crate from outside.
#[cfg(test)]
extern crate self as hangar;
#[cfg(test)]
#[path = "../tests/it/common/policy.rs"]
mod founding;
