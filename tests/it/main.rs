//! One integration binary: real repositories, real keys, real sandboxes. One module per area.

mod cli_help;
mod cli_setup;
mod cli_task;
mod common;
mod config_registries;
mod flow;
mod git;
mod grade_attacks_cargo;
mod grade_attacks_node;
mod grade_attacks_python;
mod grade_exec;
mod grade_judge;
mod grade_kit;
mod grade_sandboxed;
mod grade_tap;
mod harness_egress;
mod harness_sandbox;
mod sandbox;
mod seal;
mod seal_age;
mod store;
mod trust;
mod trust_programs;
