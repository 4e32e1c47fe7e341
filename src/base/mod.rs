//! Ground level: clock, randomness, processes, files and redaction.
//!
//! Owns every contact with the operating system that more than one folder needs. Must not know
//! anything about tasks, Git or sandboxes.

pub mod clock;
pub mod files;
pub mod process;
pub mod random;
pub mod redact;
pub mod temp;
pub mod words;
