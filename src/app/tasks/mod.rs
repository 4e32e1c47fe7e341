//! Tasks: creating, listing, showing and changing them.

pub mod act;
pub mod archive;
pub mod draft;
pub mod edit;
pub mod list;
pub mod log;
pub mod new;
mod order;
mod rounds;
mod row;
pub mod show;
