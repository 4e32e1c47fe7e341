//! Real sandboxes: what works in them, and what must not.
//!
//! As root every test runs twice: as it is, and as an ordinary user.

mod escape;
mod lifetime;
mod limits;
mod measure;
mod network;
mod others;
mod probe;
mod run;
mod support;
mod toolchain;
mod tree;
