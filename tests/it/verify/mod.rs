//! `hangar verify`: every way of tampering is named and is exit 1, and what is honest is exit 0.

mod answer;
mod archived;
mod concurrent;
mod damaged;
mod documents;
pub(crate) mod forge;
mod forged;
pub(crate) mod making;
mod moved;
pub(crate) mod one_task;
mod opposite;
pub(crate) mod plot;
mod policy;
mod repeated;
mod revisions;
mod rewritten;
mod rivals;
pub(crate) mod second;
mod tamper;
mod whole;
