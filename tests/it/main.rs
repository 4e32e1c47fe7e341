//! One integration binary: real repositories, real keys, real sandboxes. One module per area.

mod git;
mod store;
mod seal;
mod seal_age;
mod trust;
mod trust_programs;
