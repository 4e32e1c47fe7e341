//! One integration binary: real repositories, real keys, real sandboxes. One module per area.

mod trust;
mod trust_programs;
