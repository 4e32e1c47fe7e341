//! `hangar verify`: every way of tampering is named and is exit 1, and what is honest is exit 0.

mod answer;
mod archived;
mod documents;
mod forge;
mod forged;
mod making;
mod moved;
mod plot;
mod policy;
mod revisions;
mod rewritten;
mod second;
mod tamper;
mod whole;
