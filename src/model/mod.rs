//! The domain, pure: no I/O, no clock, no Git.
//!
//! Owns ids, digests, documents and the one transition function per object. Formats:
//! `docs/format.md`.

pub mod digest;
pub mod endpoint;
pub mod lane;
pub mod listing;
pub mod outcome;
pub mod plan;
