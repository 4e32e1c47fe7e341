//! What cargo needs of the user's configuration when it runs offline: which source stands for
//! crates.io. The fetched crates lie under that source's name. No credential is kept.

use super::Error;
use crate::base::files;
use crate::config::registries::Setup;
use crate::sandbox::spec::Mount;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Where cargo's configuration is laid for the step.
const LAID: &str = "/.cargo/config.toml";
/// Folders of the host that cargo's sources lie in, one a line. Not below `prepared`, which the
/// step could write.
const SOURCES: &str = "cargo-sources";

/// Keeps it: configuration in cargo's home below `prepared`, folders of local sources in `root`.
pub(super) fn keep(setup: &Setup, prepared: &Path, root: &Path) -> Result<(), Error> {
    let laid = setup.files.iter().find(|file| file.path == Path::new(LAID));
    let text = laid.and_then(|file| std::str::from_utf8(file.bytes.expose()).ok());
    let Some(config) = text.and_then(|text| text.parse().ok()) else {
        return Ok(());
    };
    let home = prepared.join("cargo");
    let is_made = home.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let own = home.join("config.toml");
    // What the step wrote itself wins (`cargo vendor … > $CARGO_HOME/config.toml`).
    if !is_made || own.symlink_metadata().is_ok() {
        return Ok(());
    }
    let (config, folders) = without_credentials(&config);
    if !config.is_empty() {
        files::write_atomic(&own, config.to_string().as_bytes(), 0o644)?;
    }
    if !folders.is_empty() {
        files::write_atomic(&root.join(SOURCES), folders.join("\n").as_bytes(), 0o600)?;
    }
    Ok(())
}

/// The folders of [`keep`], as a sandbox sees them.
pub(super) fn folders(root: &Path) -> Vec<Mount> {
    let text = fs::read_to_string(root.join(SOURCES)).unwrap_or_default();
    text.lines()
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute() && folder.exists())
        .map(|folder| Mount::ReadOnly {
            host: folder.clone(),
            inside: folder,
        })
        .collect()
}

/// Sources and registries without tokens, and the local folders among them. A source whose address
/// holds a password is left out.
fn without_credentials(config: &Table) -> (Table, Vec<String>) {
    let mut kept = Table::new();
    let mut folders = Vec::new();
    for (name, keys) in [
        (
            "source",
            &["registry", "replace-with", "directory", "local-registry"][..],
        ),
        ("registries", &["index"][..]),
    ] {
        let entries = config.get(name).and_then(Value::as_table);
        for (entry, value) in entries.into_iter().flatten() {
            let mut table = Table::new();
            for key in keys {
                let text = value.get(*key).and_then(Value::as_str);
                let Some(text) = text.filter(|text| !has_password(text)) else {
                    continue;
                };
                if matches!(*key, "directory" | "local-registry") {
                    folders.push(text.to_owned());
                }
                table.insert((*key).to_owned(), text.into());
            }
            if !table.is_empty() {
                let outer = kept
                    .entry(name.to_owned())
                    .or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(outer) = outer {
                    outer.insert(entry.clone(), Value::Table(table));
                }
            }
        }
    }
    (kept, folders)
}

fn has_password(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or(rest).contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::redact::Secret;
    use crate::config::registries::SetupFile;

    #[test]
    fn sources_are_kept_and_credentials_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let prepared = dir.path().join("prepared");
        fs::create_dir_all(prepared.join("cargo")).unwrap();
        let text = "[source.crates-io]\nreplace-with = \"near\"\n\
                    [source.near]\nregistry = \"sparse+https://near.example.org/\"\n\
                    [source.far]\nregistry = \"https://me:secret@far.example.org/\"\n\
                    [source.disk]\ndirectory = \"/usr\"\n\
                    [registries.work]\nindex = \"https://work.example.org/\"\ntoken = \"secret\"\n";
        let setup = Setup {
            files: vec![SetupFile {
                path: LAID.into(),
                bytes: Secret::from(text.to_owned()),
            }],
            ..Setup::default()
        };
        keep(&setup, &prepared, dir.path()).unwrap();
        let own = prepared.join("cargo/config.toml");
        let kept = fs::read_to_string(&own).unwrap();
        assert!(!kept.contains("secret"), "{kept}");
        let kept: Table = kept.parse().unwrap();
        assert_eq!(
            kept["source"]["crates-io"]["replace-with"].as_str(),
            Some("near")
        );
        assert_eq!(kept["registries"]["work"].as_table().unwrap().len(), 1);
        assert_eq!(folders(dir.path()).len(), 1);

        // What the step wrote stays.
        files::write_atomic(&own, b"# own\n", 0o644).unwrap();
        keep(&setup, &prepared, dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "# own\n");
    }
}
