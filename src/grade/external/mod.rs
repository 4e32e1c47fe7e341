//! Tests from outside: cases in TOML files drive the program under test by its command line, its
//! streams and its files. What is expected never enters a sandbox in which the patch's code runs.
//!
//! Owns the format of case files, the values that they draw, and the comparison. Must not know how
//! a program is started. Docs: `docs/reference/cases.md`.

use crate::model::outcome::TestId;

mod case;
mod expect;
mod remote;
mod values;

pub(super) use case::{Case, Step, read};
pub use remote::{FAR, NEAR, far_main, near_main};

/// What a case expects, a line for each: for whoever looks how strong it is. `None` where the file or
/// the case is not to be read.
pub(super) fn case_text(path: &str, bytes: &[u8], id: &TestId) -> Option<String> {
    let cases = read(path, bytes, "/").ok()?;
    let case = cases.iter().find(|case| case.id == *id)?;
    Some(
        case.steps
            .iter()
            .map(|step| "step\n".repeat(step.expectations()))
            .collect(),
    )
}

/// Name, in the folder of our own scripts, of what starts a program over the tree: for drivers.
pub const RUN: &str = "run";
/// Name of what connects to a Unix socket there.
pub const DIAL: &str = "dial";

#[cfg(test)]
mod tests;
