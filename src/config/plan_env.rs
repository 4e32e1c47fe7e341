//! Which variables a plan's `grader.env` may set.
//!
//! The plan comes from the repository, and its environment is that of the runner, too. Variables by which
//! a program loads code that nobody named to it would let a patch into every process of a grade; what is
//! named in other variables is protected (`grade::named`).

use std::path::{Component, Path};

/// Variables that name code for every program of their kind.
const LOADERS: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "SHELLOPTS",
];

/// Why a plan may not set this variable to this value, as the rest of a sentence; `None` where it may.
pub(super) fn refused(name: &str, value: &str) -> Option<String> {
    let instead = match name {
        "PYTEST_ADDOPTS" => "`grader.options` is for what it says",
        "PYTEST_PLUGINS" => "`grader.plugins` is for what it says",
        "PATH" if !is_behind(value) => {
            "folders of the repository must stand behind /usr/bin and /bin in it, so that no patch \
             takes the place of a program"
        }
        "HOME" | "TMPDIR" => "each run has a folder of its own for it",
        _ if LOADERS.contains(&name) || name.starts_with("LD_") || name.starts_with("DYLD_") => {
            "every program would load what it names, the runner too: set it in the tests, around the \
             program that needs it"
        }
        _ => return None,
    };
    Some(format!("is refused: {instead}"))
}

/// Whether every folder of `path` that can be one of the tree is behind the system's.
fn is_behind(path: &str) -> bool {
    let mut system = ["/usr/bin", "/bin"].to_vec();
    path.split(':').map(Path::new).all(|folder| {
        system.retain(|own| Path::new(own) != folder);
        let up = folder.components().any(|part| part == Component::ParentDir);
        let apart = folder.is_absolute() && !up && !folder.starts_with("/src");
        apart || system.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_code_unasked_is_refused_and_the_rest_is_not() {
        for (name, value) in [
            ("PYTEST_ADDOPTS", "-p extra"),
            ("PYTEST_PLUGINS", "extra"),
            ("LD_PRELOAD", "/src/x.so"),
            ("LD_LIBRARY_PATH", "lib"),
            ("DYLD_INSERT_LIBRARIES", "x"),
            ("BASH_ENV", "./env.sh"),
            ("ENV", "./env.sh"),
            ("PYTHONHOME", "/src/py"),
            ("HOME", "/src"),
            ("PATH", "/src/bin:/usr/bin:/bin"),
            ("PATH", "bin:/usr/bin:/bin"),
            ("PATH", ":/usr/bin:/bin"),
            ("PATH", "/usr/bin:/src/bin:/bin"),
            ("PATH", "/opt/../src/bin:/usr/bin:/bin"),
        ] {
            assert!(refused(name, value).is_some(), "{name}={value}");
        }
        for (name, value) in [
            ("PYTHONPATH", "src"),
            ("DJANGO_SETTINGS_MODULE", "site.settings"),
            ("PATH", "/opt/tool/bin:/usr/bin:/bin:/src/bin"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("NODE_OPTIONS", "--require ./setup.cjs"),
            ("ENVIRONMENT", "test"),
        ] {
            assert_eq!(refused(name, value), None, "{name}={value}");
        }
    }
}
