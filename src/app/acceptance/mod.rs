//! The acceptance commands: run, seal, review, decide, submit, grade, deliver.

pub mod adjudicate;
pub mod changes;
pub mod contradicting;
pub mod decide;
pub mod demo;
pub mod grade;
pub mod machine;
pub mod patch;
mod pick;
pub mod review;
pub mod run;
pub mod seal;
pub mod sealed;
mod seen;
mod taken_in;
pub mod transcript;
