//! Use cases that the command line, MCP and the web page share.
//!
//! Each takes a [`Here`] and plain values, and returns data; nothing here prints or asks. Must not
//! know arguments, colours or exit codes.

pub mod acceptance;
pub mod config;
pub mod doctor;
pub mod error;
pub mod harness;
pub mod here;
pub mod hooks;
pub mod inbox;
pub mod keys;
mod landed;
mod named;
mod news;
mod notices;
pub mod policy;
pub mod remote;
pub mod setup;
pub mod sync;
pub mod tasks;
pub mod verify;

pub use error::Error;
pub use here::Here;
pub use notices::Notices;
