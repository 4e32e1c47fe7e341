//! Grading: what to run for a framework, what its output means, and the verdict.
//!
//! Owns the adapters, the readers of what they leave, the base check, the judgement, and which
//! paths are protected. Starts nothing and knows no sandbox, no Git and no key: `flow` maps
//! [`call::Call`] onto a sandbox and brings [`call::Raw`] back. Formats: `docs/format.md`, "Test
//! ids" and "Grade".

pub mod adapter;
pub mod basecheck;
pub mod call;
pub mod external;
mod frames;
pub mod judge;
pub mod links;
pub mod manifest;
pub mod named;
pub mod protect;
pub mod report;
pub mod shingles;
mod stand_ins;
pub mod suite;
pub mod weak;

pub use adapter::{Adapter, adapter, detect_framework};
