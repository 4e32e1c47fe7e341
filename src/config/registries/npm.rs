//! npm: `npm config get`, and the lines of `.npmrc` that it does not show (npm documentation,
//! "npmrc").

use super::{Client, Machine, Setup, SetupFile, text, unreadable, url};
use crate::base::redact::Secret;
use crate::config::{Error, read_file};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn ask(machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    let keys = [
        "config",
        "get",
        "registry",
        "cafile",
        "userconfig",
        "globalconfig",
    ];
    let Some(printed) = machine.run(Client::Npm, &keys, "npm_config_")? else {
        return Ok(None);
    };
    let asked = pairs(text(Client::Npm, &printed)?);
    let mut lines = BTreeMap::new();
    for file in ["globalconfig", "userconfig"] {
        let path = asked
            .get(file)
            .map(Path::new)
            .filter(|path| path.is_absolute());
        if let Some(text) = path.map(read_file).transpose()?.flatten() {
            lines.extend(pairs(&text));
        }
    }
    for value in lines.values_mut() {
        *value = expand(value, machine);
    }
    setup(&asked, &lines, machine.inside).map(Some)
}

fn setup(
    asked: &BTreeMap<String, String>,
    lines: &BTreeMap<String, String>,
    inside: &Path,
) -> Result<Setup, Error> {
    let mut setup = Setup::default();
    let mut file = String::new();
    let registry = asked.get("registry").map(String::as_str);
    let scopes = lines
        .iter()
        .filter(|(key, _)| key.starts_with('@') && key.ends_with(":registry"));
    let scopes = scopes.map(|(key, value)| (key.as_str(), value.as_str()));
    for (key, value) in registry
        .map(|url| ("registry", url))
        .into_iter()
        .chain(scopes)
    {
        let place = url::endpoint(value).ok_or_else(|| unreadable(Client::Npm, "registry URL"))?;
        setup.host(place);
        let _ = writeln!(file, "{key}={value}");
    }
    for (key, value) in lines {
        // `//host/path:_authToken`: a credential, kept for the hosts that are reached.
        let place = key
            .strip_prefix("//")
            .and_then(|rest| rest.rsplit_once(':'));
        let place = place.and_then(|(place, _)| url::endpoint(&format!("https://{place}")));
        let reached = |place: &crate::model::endpoint::Endpoint| {
            setup.hosts.iter().any(|host| host.host() == place.host())
        };
        if place.as_ref().is_some_and(reached) {
            let _ = writeln!(file, "{key}={value}");
        }
    }
    if let Some(path) = asked
        .get("cafile")
        .filter(|path| Path::new(path).is_absolute())
    {
        setup.read(Path::new(path));
        let _ = writeln!(file, "cafile={path}");
    }
    let path = inside.join("npmrc");
    setup
        .env
        .insert("npm_config_userconfig".into(), path.display().to_string());
    setup
        .env
        .insert("npm_config_update_notifier".into(), "false".into());
    setup.files.push(SetupFile {
        path,
        bytes: Secret::from(file),
    });
    Ok(setup)
}

/// `key=value` lines; comments and sections are left out.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(['#', ';', '[']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .map(|(key, value)| {
            let value = value.trim();
            let quoted = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'));
            (key.trim().to_owned(), quoted.unwrap_or(value).to_owned())
        })
        .collect()
}

/// Puts the user's variables in place of `${NAME}`. One that is not set stays as it is written.
fn expand(value: &str, machine: &Machine<'_>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let found = after
            .split_once('}')
            .and_then(|(name, tail)| Some((machine.text(name)?, tail)));
        if let Some((value, tail)) = found {
            out.push_str(value);
            rest = tail;
        } else {
            out.push_str("${");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_scopes_and_their_credentials_are_kept() {
        let asked = pairs("registry=https://npm.example.org/r/\ncafile=null\nuserconfig=/x\n");
        let lines = pairs(
            "; comment\n@work:registry = https://scoped.example.org/\n//npm.example.org/r/:_authToken=tok1\n\
             //scoped.example.org/:_authToken=\"tok2\"\n//other.example.org/:_authToken=tok3\nfund=false\n",
        );
        let setup = setup(&asked, &lines, Path::new("/hangar/clients")).unwrap();
        let hosts: Vec<_> = setup.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["npm.example.org:443", "scoped.example.org:443"]);
        let file = std::str::from_utf8(setup.files[0].bytes.expose()).unwrap();
        assert_eq!(
            file,
            "registry=https://npm.example.org/r/\n@work:registry=https://scoped.example.org/\n\
             //npm.example.org/r/:_authToken=tok1\n//scoped.example.org/:_authToken=tok2\n"
        );
        assert_eq!(setup.env["npm_config_userconfig"], "/hangar/clients/npmrc");
        assert!(!setup.env.values().any(|value| value.contains("tok")));
    }

    #[test]
    fn variables_in_a_token_are_filled_in() {
        let env = [("NPM_TOKEN".into(), "tok".into())].into();
        let machine = Machine {
            env: &env,
            toolchain: &BTreeMap::new(),
            inside: Path::new("/"),
        };
        assert_eq!(
            expand("a${NPM_TOKEN}b${NONE}c${", &machine),
            "atokb${NONE}c${"
        );
    }
}
