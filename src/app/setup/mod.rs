//! Setting hangar up in a repository, and taking it out again.

pub mod agents;
pub mod below;
mod config_file;
pub mod deinit;
mod found;
pub mod init;
mod join;
mod person;
mod propose;

pub use init::{InitReport, InitRequest, Outcome, init};
