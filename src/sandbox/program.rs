//! Programs of others that make sandboxes: where they are, and what to install.

use super::Unavailable;
use crate::base::process;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that a provider needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    /// Name of the provider.
    pub(super) provider: &'static str,
    /// Name on `PATH`.
    pub(super) name: &'static str,
    /// Package of Debian and Ubuntu.
    pub(super) package: &'static str,
}

impl Program {
    /// The program on `PATH`. One that lies in the repository that we are in does not count: a tree
    /// must not bring the walls that are to hold it.
    pub(super) fn find(&self) -> Result<PathBuf, Unavailable> {
        let unavailable = |reason, remedy| Unavailable {
            provider: self.provider,
            reason,
            remedy,
        };
        let found = process::find(Path::new(self.name)).ok_or_else(|| {
            unavailable(
                format!("the program `{}` is not on PATH", self.name),
                format!(
                    "install it (Debian, Ubuntu: `apt install {}`)",
                    self.package
                ),
            )
        })?;
        let here = std::env::current_dir().ok();
        match here.as_deref().and_then(repository) {
            Some(repository) if real(&found).starts_with(real(repository)) => Err(unavailable(
                format!(
                    "the program `{}` on PATH lies in this repository: {}",
                    self.name,
                    found.display()
                ),
                format!("put the system's own `{}` first on PATH", self.name),
            )),
            _ => Ok(found),
        }
    }

    /// What it says of itself.
    pub(super) fn version(&self, args: &[&str]) -> String {
        let output = self.find().ok().and_then(|program| {
            let run = process::Run::new(program).args(args);
            run.timeout(Duration::from_secs(10)).output().ok()
        });
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let line = text.as_deref().and_then(|text| text.lines().next());
        line.unwrap_or(self.name).trim().to_owned()
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The work tree or Git folder that `here` lies in.
fn repository(here: &Path) -> Option<&Path> {
    here.ancestors()
        .find(|folder| folder.join(".git").exists() || folder.join("HEAD").is_file())
}
