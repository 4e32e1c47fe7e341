//! The user's editor on a text that is no secret.

use crate::base::process;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

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
    /// There is no such program.
    #[error("there is no editor `{editor}`")]
    Missing {
        /// The editor.
        editor: String,
    },
    /// What was saved is no text that can be used. It stays where it is.
    #[error("what was saved {why}; it is kept in {}", .place.display())]
    Unusable {
        /// Why.
        why: &'static str,
        /// The file.
        place: PathBuf,
    },
    /// It ended with an error, so its text does not count.
    #[error("the editor `{editor}` ended with an error; nothing was taken over")]
    Failed {
        /// The editor.
        editor: String,
    },
}

/// Keeps a text that could not be used, so that nothing typed is lost. Returns the file.
pub fn keep(text: &str, ending: &str) -> io::Result<PathBuf> {
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
    edit_with(editor, text, ending)
}

fn edit_with(editor: String, text: &str, ending: &str) -> Result<String, EditorError> {
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
    // As a shell says that there is no such command (POSIX, "Exit Status for Commands").
    if status.code() == Some(127) {
        return Err(EditorError::Missing { editor });
    }
    if !status.success() {
        return Err(EditorError::Failed { editor });
    }
    // Opened by name: many editors write a new file and rename it over the old one.
    let saved = std::fs::File::open(file.path()).map_err(io)?;
    let mut bytes = Vec::new();
    io::Read::take(saved, MAX_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    let why = if bytes.len() as u64 > MAX_TEXT {
        "is longer than 1 MiB"
    } else {
        match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => "is not UTF-8",
        }
    };
    let kept = file.into_temp_path().keep();
    let place = kept.map_err(|error| io(error.error))?;
    Err(EditorError::Unusable { why, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(editor: &str) -> Result<String, EditorError> {
        edit_with(editor.to_owned(), "old", ".md")
    }

    #[test]
    fn what_was_saved_is_taken_or_kept() {
        assert_eq!(edited("printf new >").unwrap(), "new");
        assert_eq!(edited("true").unwrap(), "old");
        for (editor, content) in [
            ("printf 'T\\377' >", b"T\xff".to_vec()),
            ("head -c 1100000 /dev/zero >", vec![0; 1_100_000]),
        ] {
            let Err(EditorError::Unusable { place, .. }) = edited(editor) else {
                panic!("{editor}");
            };
            assert_eq!(std::fs::read(&place).unwrap(), content);
            std::fs::remove_file(place).unwrap();
        }
        assert!(matches!(
            edited("no-such-editor"),
            Err(EditorError::Missing { .. })
        ));
        assert!(matches!(edited("false"), Err(EditorError::Failed { .. })));
    }
}
