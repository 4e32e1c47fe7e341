//! Signing through `ssh-keygen`, for keys in FIDO tokens.

use super::namespace::Namespace;
use crate::base::process::{self, Run};
use std::path::Path;
use std::time::Duration;

/// A person has to find and touch the token.
const TIME: Duration = Duration::from_secs(120);

/// What `ssh-keygen` needs of the user's session to reach token, agent and PIN prompt.
const INHERITED: &[&str] = &[
    "HOME",
    "PATH",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSH_SK_PROVIDER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Why `ssh-keygen` did not sign.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be run to its end.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// It said no.
    #[error(
        "`ssh-keygen -Y sign` failed ({0}); a key with a PIN or passphrase can be loaded into the agent with `ssh-add`"
    )]
    Failed(String),
}

/// The armoured signature by the key at `path` (a key handle, or a public key whose private half
/// the agent holds).
pub(super) fn sign(
    path: &Path,
    namespace: Namespace,
    message: &[u8],
) -> Result<Vec<u8>, ProgramError> {
    let out = Run::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", namespace.as_str(), "-f"])
        .arg(path)
        .inherit(INHERITED)
        // The child is not in the terminal's foreground: asking there would stop it until the
        // limit. With this it asks in a window, or fails at once where there is none.
        .env("SSH_ASKPASS_REQUIRE", "force")
        .stdin(message.to_vec())
        .timeout(TIME)
        .output()?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let text = out.stderr_text();
    let last = text.lines().last().unwrap_or("no reason given");
    let shown = last.chars().filter(|c| !c.is_control()).take(200).collect();
    Err(ProgramError::Failed(shown))
}
