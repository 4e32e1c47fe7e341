//! The domain, pure: no I/O, no clock, no Git.
//!
//! Owns ids, digests, documents and the one transition function per object. Formats:
//! `docs/format.md`.

pub mod approval;
pub mod authority;
pub mod codec;
pub mod complaint;
pub mod criteria;
pub mod digest;
pub mod endpoint;
pub mod event;
pub mod grade;
pub mod ids;
pub mod image;
pub mod lane;
pub mod listing;
pub mod manifest;
pub mod object_id;
pub mod outcome;
pub mod plan;
pub mod policy;
pub mod reduction;
pub mod rival;
pub mod run;
pub mod signer;
pub mod task;
