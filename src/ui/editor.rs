//! The user's editor on a text that is no secret.

use crate::base::process;
use std::io::{self, Write as _};
use std::path::Path;

/// Longest text of a task, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Most that is kept of what an editor saved and that is longer.
const MAX_KEPT: u64 = 64 << 20;

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
    /// Nothing of this name can be started.
    #[error("the editor `{editor}` is not there, or can't be started")]
    Absent {
        /// The editor.
        editor: String,
    },
    /// What was saved is no text of a task.
    #[error("what the editor saved {why}")]
    NotText {
        /// What it is instead.
        why: &'static str,
        /// Its bytes, so that nothing typed is lost.
        saved: Vec<u8>,
    },
    /// It ended with an error, so its text does not count.
    #[error("the editor `{editor}` ended with an error; nothing was taken over")]
    Failed {
        /// The editor.
        editor: String,
    },
}

/// Keeps a text that could not be used, so that nothing typed is lost. Returns the file.
pub fn keep(text: &[u8], ending: &str) -> io::Result<std::path::PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("hangar-task-")
        .suffix(ending)
        .tempfile()?;
    file.write_all(text)?;
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
    // What the shell answers for a command that it does not find, or may not start.
    if matches!(status.code(), Some(126 | 127)) {
        return Err(EditorError::Absent { editor });
    }
    if !status.success() {
        return Err(EditorError::Failed { editor });
    }
    // Opened by name: many editors write a new file and rename it over the old one.
    let saved = std::fs::File::open(file.path()).map_err(io)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(saved, MAX_KEPT), &mut bytes).map_err(io)?;
    text_of(bytes)
}

/// The text that was saved, whole or not at all.
fn text_of(saved: Vec<u8>) -> Result<String, EditorError> {
    if saved.len() > MAX_TEXT {
        let why = "is longer than a task's text may be (1 MiB)";
        return Err(EditorError::NotText { why, saved });
    }
    String::from_utf8(saved).map_err(|error| EditorError::NotText {
        why: "is not UTF-8 text",
        saved: error.into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_comes_back_whole() {
        assert_eq!(text_of("ä\n".into()).unwrap(), "ä\n");
        for bytes in [b"caf\xe9\n".to_vec(), vec![b'a'; MAX_TEXT + 1]] {
            match text_of(bytes.clone()) {
                Err(EditorError::NotText { saved, .. }) => assert_eq!(saved, bytes),
                other => panic!("{other:?}"),
            }
        }
    }
}
