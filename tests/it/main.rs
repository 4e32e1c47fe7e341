//! One integration binary: real repositories, real keys, real sandboxes. One module per area.

mod git;
mod sandbox;
