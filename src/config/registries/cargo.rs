//! Cargo: `$CARGO_HOME/config.toml` and its credentials (The Cargo Book, "Configuration"). Cargo
//! has no stable command that prints them.

use super::{Client, Machine, Setup, SetupFile, unreadable, url};
use crate::base::redact::Secret;
use crate::config::{Error, read_file};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Used for crates.io when nothing replaces it: the index and the files.
const DEFAULTS: &[&str] = &["https://index.crates.io/", "https://static.crates.io/"];

/// Where the file is laid: Cargo looks in every folder above the one it runs in, so that its own
/// home inside, which is kept on disk, holds no credential.
const INSIDE: &str = "/.cargo/config.toml";

pub(super) fn ask(machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    if machine.program(Client::Cargo).is_none() {
        return Ok(None);
    }
    let home = machine
        .text("CARGO_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = home.or_else(|| machine.home().map(|home| home.join(".cargo")));
    let read = |names: [&str; 2]| -> Result<Table, Error> {
        for name in names {
            let Some(home) = &home else { break };
            if let Some(text) = read_file(&home.join(name))? {
                let broken = |_| unreadable(Client::Cargo, "configuration");
                return text.parse().map_err(broken);
            }
        }
        Ok(Table::new())
    };
    // Cargo prefers the name without the ending when both are there.
    let config = read(["config", "config.toml"])?;
    let credentials = read(["credentials", "credentials.toml"])?;
    let base = home
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"));
    setup(&config, &credentials, base).map(Some)
}

fn setup(config: &Table, credentials: &Table, base: &Path) -> Result<Setup, Error> {
    let mut setup = Setup::default();
    let mut kept = Table::new();
    for (name, keys) in [("source", SOURCE), ("registries", REGISTRIES)] {
        let entries = config
            .get(name)
            .and_then(Value::as_table)
            .into_iter()
            .flatten();
        for (entry, value) in entries {
            let table = keep(value, keys, base);
            add_places(&table, &mut setup)?;
            put(&mut kept, name, entry, Value::Table(table));
        }
    }
    if let Some(value) = config.get("registry") {
        kept.insert(
            "registry".into(),
            Value::Table(keep(value, &["default"], base)),
        );
    }
    add_tokens(&mut kept, credentials);
    if let Some(Value::String(path)) = config.get("http").and_then(|http| http.get("cainfo")) {
        let path = base.join(path);
        setup.read(&path);
        put(
            &mut kept,
            "http",
            "cainfo",
            path.display().to_string().into(),
        );
    }
    let crates = config
        .get("source")
        .and_then(|source| source.get("crates-io"));
    if crates
        .and_then(|crates| crates.get("replace-with"))
        .is_none()
    {
        DEFAULTS
            .iter()
            .filter_map(|url| url::endpoint(url))
            .for_each(|host| setup.host(host));
    }
    if !kept.is_empty() {
        setup.files.push(SetupFile {
            path: INSIDE.into(),
            bytes: Secret::from(kept.to_string()),
        });
    }
    Ok(setup)
}

const SOURCE: &[&str] = &["registry", "replace-with", "directory", "local-registry"];
const REGISTRIES: &[&str] = &["index", "token"];

/// The kept keys of a table; paths, which are relative to the folder of `.cargo`, made absolute.
fn keep(value: &Value, keys: &[&str], base: &Path) -> Table {
    let mut out = Table::new();
    for key in keys {
        let Some(Value::String(text)) = value.get(*key) else {
            continue;
        };
        let text = match *key {
            "directory" | "local-registry" => base.join(text).display().to_string(),
            _ => text.clone(),
        };
        out.insert((*key).to_owned(), text.into());
    }
    out
}

fn add_places(table: &Table, setup: &mut Setup) -> Result<(), Error> {
    for key in ["registry", "index"] {
        if let Some(Value::String(text)) = table.get(key) {
            let file = text.strip_prefix("file://").map(Path::new);
            match (url::endpoint(text), file) {
                (Some(endpoint), _) => setup.host(endpoint),
                (None, Some(path)) => setup.read(path),
                (None, None) => return Err(unreadable(Client::Cargo, "registry URL")),
            }
        }
    }
    for key in ["directory", "local-registry"] {
        if let Some(Value::String(path)) = table.get(key) {
            setup.read(Path::new(path));
        }
    }
    Ok(())
}

/// Tokens of the registries that are configured.
fn add_tokens(kept: &mut Table, credentials: &Table) {
    let Some(Value::Table(registries)) = kept.get_mut("registries") else {
        return;
    };
    for (name, registry) in registries.iter_mut() {
        let token = credentials
            .get("registries")
            .and_then(|all| all.get(name))
            .and_then(|one| one.get("token"));
        if let (Some(token), Value::Table(registry)) = (token, registry) {
            registry.insert("token".into(), token.clone());
        }
    }
}

/// Puts `value` at `outer.inner`.
fn put(table: &mut Table, outer: &str, inner: &str, value: Value) {
    let entry = table
        .entry(outer.to_owned())
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(found) = entry {
        found.insert(inner.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str, credentials: &str) -> Setup {
        let credentials = credentials.parse().unwrap();
        setup(&config.parse().unwrap(), &credentials, Path::new("/home/a")).unwrap()
    }

    fn hosts(setup: &Setup) -> Vec<String> {
        setup.hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_configured_is_the_documented_default() {
        let setup = read("[build]\njobs = 2\n", "");
        assert_eq!(
            hosts(&setup),
            ["index.crates.io:443", "static.crates.io:443"]
        );
        assert!(setup.files.is_empty());
    }

    #[test]
    fn a_replacement_and_a_registry_with_its_token_are_kept() {
        let setup = read(
            "[build]\nrustc-wrapper = \"/evil\"\n[source.crates-io]\nreplace-with = \"mirror\"\n\
             [source.mirror]\nregistry = \"sparse+https://cargo.example.org/index/\"\n\
             [source.vendored]\ndirectory = \"vendor\"\n\
             [registries.work]\nindex = \"sparse+https://work.example.org:8443/i/\"\n",
            "[registries.work]\ntoken = \"tok\"\n[registries.other]\ntoken = \"no\"\n",
        );
        assert_eq!(
            hosts(&setup),
            ["cargo.example.org:443", "work.example.org:8443"]
        );
        assert_eq!(setup.files[0].path, Path::new("/.cargo/config.toml"));
        let file = std::str::from_utf8(setup.files[0].bytes.expose()).unwrap();
        let table: Table = file.parse().unwrap();
        assert_eq!(
            table["source"]["vendored"]["directory"].as_str(),
            Some("/home/a/vendor")
        );
        assert_eq!(table["registries"]["work"]["token"].as_str(), Some("tok"));
        assert!(!file.contains("evil") && !file.contains("\"no\""), "{file}");
        assert!(setup.env.is_empty());
    }
}
