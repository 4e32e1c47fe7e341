//! Which exit code and which hint each error of a lower module gets. Every variant is named, so
//! that a new one has to be decided here.

mod app;
mod config;
mod flow;
mod git;
mod harness;
mod sandbox;
mod store;
mod trust;
mod ui;

use super::error::CliError;
use super::exit::ExitStatus;
use crate::base::files;

impl From<files::Error> for CliError {
    fn from(error: files::Error) -> Self {
        Self::of(ExitStatus::Trouble, error)
    }
}
