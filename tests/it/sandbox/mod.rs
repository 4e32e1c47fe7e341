//! Real sandboxes: what works in them, and what must not.

mod run;
mod support;
