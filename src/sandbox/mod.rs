//! Sandboxes: what is asked for, what holds it, and what was measured.
//!
//! Owns namespaces, Landlock, seccomp, limits and the probes. Must not know what a test, a task or
//! an agent is: it runs argument lists on mounts. Docs: `docs/threat-model.md`.

pub mod spec;
