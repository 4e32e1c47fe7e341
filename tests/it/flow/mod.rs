//! The acceptance flow on a real repository, with real signatures, sealing and sandboxes.

mod exec;
pub(crate) mod world;
