//! `hangar grade`

use crate::cli::args::TaskArg;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  hangar grade KAN-80 --rev pull/12/head
  hangar grade KAN-80 --patch fix.diff --json
  hangar grade KAN-80 --dry-run --version 2

Exit codes: 0 accepted, 1 not accepted or void.";

/// Grade any patch with the sealed tests of a task
///
/// The approved version is run on base + patch in a fresh sealed sandbox without network, and the
/// signed grade says how far it can be trusted. This is what CI runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GradeArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskArg,
    /// Revision with the patch: compared with its merge base with the task's base
    #[arg(long, value_name = "REV", conflicts_with = "patch")]
    pub rev: Option<String>,
    /// Patch file that applies to the task's base (`-` is standard input)
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Sealed version [default: the approved one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub version: Option<u32>,
    /// Sandbox provider [default: as configured]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Record nothing; also a version that is not approved may be used, and is named so
    #[arg(long)]
    pub dry_run: bool,
}
