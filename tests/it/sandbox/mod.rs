//! Real sandboxes: what works in them, and what must not.
//!
//! As root every test runs twice: as it is, and as an ordinary user.

mod container;
mod escape;
pub(crate) mod image;
mod lifetime;
mod limits;
mod measure;
mod network;
mod others;
mod probe;
mod run;
pub(crate) mod support;
mod toolchain;
mod tree;
