//! The user's editor on a text that is no secret.

use crate::base::process;
use std::io::{self, Write as _};
use std::path::Path;

/// Longest text that is read back, in bytes.
const MAX_TEXT: u64 = 1 << 20;

/// What an editor needs of the user's session.
const INHERITED: &[&str] = &[
    "COLORTERM",
    "DISPLAY",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMPDIR",
    "USER",
    "VIMINIT",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Why there is no edited text.
#[derive(Debug, thiserror::Error)]
pub enum EditorError {
    /// `VISUAL` and `EDITOR` are unset.
    #[error("no editor is set")]
    None,
    /// It could not be started, or its file not be written or read.
    #[error("cannot edit with `{editor}`")]
    Io {
        /// The editor.
        editor: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It ended with an error, so its text does not count.
    #[error("the editor `{editor}` ended with an error; nothing was taken over")]
    Failed {
        /// The editor.
        editor: String,
    },
}

/// Keeps a text that could not be used, so that nothing typed is lost. Returns the file.
pub fn keep(text: &str, ending: &str) -> io::Result<std::path::PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("hangar-task-")
        .suffix(ending)
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep()?;
    Ok(path)
}

/// Opens `text` in `$VISUAL` or `$EDITOR` and returns what was saved. `ending` (`.md`) lets the
/// editor choose its mode.
pub fn edit(text: &str, ending: &str) -> Result<String, EditorError> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    let editor = set("VISUAL")
        .or_else(|| set("EDITOR"))
        .ok_or(EditorError::None)?;
    let io = |source| EditorError::Io {
        editor: editor.clone(),
        source,
    };
    let mut file = tempfile::Builder::new()
        .prefix("hangar-task-")
        .suffix(ending)
        .tempfile()
        .map_err(io)?;
    file.write_all(text.as_bytes()).map_err(io)?;
    let mut command = process::command(Path::new("/bin/sh"));
    // As git does it: the variable is shell text, the file its argument.
    command
        .arg("-c")
        .arg(format!("{editor} \"$@\""))
        .arg("editor")
        .arg(file.path());
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let status = command.status().map_err(io)?;
    if !status.success() {
        return Err(EditorError::Failed { editor });
    }
    // Opened by name: many editors write a new file and rename it over the old one.
    let saved = std::fs::File::open(file.path()).map_err(io)?;
    io::read_to_string(io::Read::take(saved, MAX_TEXT)).map_err(io)
}
