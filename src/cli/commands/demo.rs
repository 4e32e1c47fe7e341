//! `hangar demo`

use clap::Args;
use std::path::PathBuf;

/// Show the whole flow in a throwaway repository
///
/// Without network, account or model: a scripted writer and implementer, the embedded sandbox, real
/// signatures, real sealing. First a wrong patch is refused, then the right one is accepted, then
/// `hangar verify` checks it all. Nothing of it touches your repositories, keys or configuration.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the repository in DIR, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}
