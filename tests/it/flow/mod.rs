//! The acceptance flow on a real repository, with real signatures, sealing and sandboxes.

mod again;
mod attacks;
mod bombs;
mod bytecode;
mod crates;
mod credential;
mod environment;
mod exec;
mod external;
mod leak;
mod redefined;
mod tooling;
pub(crate) mod world;
