//! One integration binary: real repositories, real keys, real sandboxes. One module per area.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs and write files of their own, and stop where they can't go on"
)]

mod apart;
mod arbiter;
mod archive;
mod authority;
mod badinput;
mod badinput_places;
mod cli_agents;
mod cli_config;
mod cli_decide;
mod cli_flow;
mod cli_help;
mod cli_init;
mod cli_keys;
mod cli_mistakes;
mod cli_next;
mod cli_people;
mod cli_pin;
mod cli_policy;
mod cli_repositories;
mod cli_review;
mod cli_task;
mod common;
mod config_registries;
mod docs;
mod docs_cli;
mod docs_concepts;
mod docs_effects;
mod docs_example;
mod docs_format;
mod evidence_attacks;
mod evidence_prepare;
mod evidence_prepare_go;
mod flow;
mod fuzz;
mod git;
mod grade_attacks_cargo;
mod grade_attacks_crates;
mod grade_attacks_ctest;
mod grade_attacks_go;
mod grade_attacks_js;
mod grade_attacks_learning;
mod grade_attacks_node;
mod grade_attacks_package;
mod grade_attacks_python;
mod grade_conformance;
mod grade_exec;
mod grade_judge;
mod grade_junit;
mod grade_kit;
mod grade_sandboxed;
mod grade_tap;
mod harness_egress;
mod harness_sandbox;
mod hooks;
mod inbox;
mod index;
mod index_damage;
mod kill;
mod kill_scene;
mod partition;
mod patch_approval;
mod prefix;
mod race;
mod remotes;
mod repository_kinds;
mod reviewer;
mod revoke;
mod rivals;
mod sandbox;
mod seal;
mod seal_age;
mod setting_up;
mod store;
mod sync;
mod sync_junk;
mod sync_vandals;
mod trust;
mod trust_programs;
mod tutorial;
mod verify;
