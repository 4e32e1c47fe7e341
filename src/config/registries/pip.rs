//! pip: `pip config list` (pip documentation, "Configuration").

use super::{Client, Machine, Setup, SetupFile, text, unreadable, url};
use crate::base::redact::Secret;
use crate::config::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Used when `index-url` is not configured; its pages link to the second host.
const DEFAULT_INDEX: &str = "https://pypi.org/simple";
const DEFAULT_FILES: &str = "https://files.pythonhosted.org/";

/// What of a configuration matters inside.
const KEPT: &[&str] = &[
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "cert",
    "client-cert",
    "timeout",
    "default-timeout",
];

pub(super) fn ask(machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    let Some(listed) = machine.run(Client::Pip, &["config", "list"], "PIP_")? else {
        return Ok(None);
    };
    setup(text(Client::Pip, &listed)?, machine.inside).map(Some)
}

/// The same for code that may see no credential.
pub(super) fn ask_openly(machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    let Some(listed) = machine.run(Client::Pip, &["config", "list"], "PIP_")? else {
        return Ok(None);
    };
    let listed = text(Client::Pip, &listed)?;
    if has_credentials(listed) {
        return Err(Error::Missing {
            what: "a package index that pip on this machine reaches without a password or certificate \
                   of yours: code of a patch would see it"
                .into(),
            remedy: "grade on a machine whose pip needs none, or leave `reprepare` out of hangar.toml".into(),
        });
    }
    let mut setup = setup(listed, machine.inside)?;
    // The index and nothing else: no folder of this machine.
    setup.read.clear();
    Ok(Some(setup))
}

/// Whether what is kept of a configuration holds a secret.
fn has_credentials(listed: &str) -> bool {
    let options = options(listed);
    let mut addresses = ["index-url", "extra-index-url", "find-links"]
        .iter()
        .filter_map(|key| options.get(key))
        .flat_map(|value| value.split_whitespace());
    let named = |address: &str| {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let place = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        // In a query, too, there may be a token; and private indexes take one as a part of the path.
        place.contains('@') || address.contains('?') || rest.split('/').skip(1).any(is_token)
    };
    options.contains_key("client-cert") || addresses.any(named)
}

/// Whether a part of an address looks drawn by lot: long, with digits among letters.
fn is_token(part: &str) -> bool {
    let has = |kind: fn(&char) -> bool| part.chars().any(|c| kind(&c));
    part.len() >= 16 && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn setup(listed: &str, inside: &Path) -> Result<Setup, Error> {
    let options = options(listed);
    let mut setup = Setup::default();
    let index = options
        .get("index-url")
        .map_or(DEFAULT_INDEX, String::as_str);
    let no_index = options.get("no-index").is_some_and(|value| is_true(value));
    if !no_index {
        let more = options.get("extra-index-url").map_or("", String::as_str);
        for address in std::iter::once(index).chain(more.split_whitespace()) {
            let place = url::endpoint(address);
            let place = place.ok_or_else(|| unreadable(Client::Pip, "index URL"))?;
            if Some(&place) == url::endpoint(DEFAULT_INDEX).as_ref()
                && let Some(files) = url::endpoint(DEFAULT_FILES)
            {
                setup.host(files);
            }
            setup.host(place);
        }
    }
    for place in options
        .get("find-links")
        .map_or("", String::as_str)
        .split_whitespace()
    {
        if let Some(endpoint) = url::endpoint(place) {
            setup.host(endpoint);
        } else if let Some(path) = url::local_path(place) {
            setup.read(&path);
        }
    }
    for key in ["cert", "client-cert"] {
        if let Some(path) = options.get(key) {
            setup.read(Path::new(path));
        }
    }
    let file = inside.join("pip.conf");
    setup
        .env
        .insert("PIP_CONFIG_FILE".into(), file.display().to_string());
    setup
        .env
        .insert("PIP_DISABLE_PIP_VERSION_CHECK".into(), "1".into());
    setup.env.insert("PIP_NO_INPUT".into(), "1".into());
    setup.files.push(SetupFile {
        path: file,
        bytes: Secret::from(config_file(&options)),
    });
    Ok(setup)
}

fn config_file(options: &BTreeMap<&str, String>) -> String {
    let mut out = String::from("[global]\n");
    for key in KEPT {
        if let Some(value) = options.get(key) {
            // A list stands one item a line, indented, as pip reads it.
            let value = value
                .lines()
                .map(str::trim)
                .collect::<Vec<_>>()
                .join("\n    ");
            let _ = writeln!(out, "{key} = {value}");
        }
    }
    out
}

/// The options in force: those of `install` over those of `global`, the environment over both.
fn options(listed: &str) -> BTreeMap<&str, String> {
    let mut out = BTreeMap::new();
    for section in ["global", "install", ":env:"] {
        for line in listed.lines() {
            let Some((name, value)) = line.split_once('=') else {
                continue;
            };
            let Some((found, key)) = name.rsplit_once('.') else {
                continue;
            };
            if let (true, Some(value)) = (found == section, unquote(value.trim())) {
                out.insert(key, value);
            }
        }
    }
    out
}

fn is_true(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "1" | "true" | "yes" | "on" | "y" | "t"
    )
}

/// A text as Python's `repr` writes it.
fn unquote(text: &str) -> Option<String> {
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            c @ ('\\' | '\'' | '"') => out.push(c),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_secret_is_not_for_every_code() {
        for open in [
            "",
            "global.index-url='https://mirror.example.org/simple'\nglobal.timeout='5'",
            "global.cert='/etc/ssl/x.pem'",
            "global.find-links='/srv/wheels'",
        ] {
            assert!(!has_credentials(open), "{open}");
        }
        for secret in [
            "global.index-url='https://me:word@mirror.example.org/simple'",
            "install.extra-index-url='https://a.example.org/ https://token@b.example.org/'",
            ":env:.find-links='https://c.example.org/?key=1'",
            "global.client-cert='/home/me/x.pem'",
        ] {
            assert!(has_credentials(secret), "{secret}");
        }
    }

    fn read(listed: &str) -> (Vec<String>, String, Setup) {
        let setup = setup(listed, Path::new("/hangar/clients")).unwrap();
        let hosts = setup.hosts.iter().map(ToString::to_string).collect();
        let file = String::from_utf8(setup.files[0].bytes.expose().to_vec()).unwrap();
        (hosts, file, setup)
    }

    #[test]
    fn nothing_configured_is_the_documented_default() {
        let (mut hosts, file, setup) = read("");
        hosts.sort();
        assert_eq!(hosts, ["files.pythonhosted.org:443", "pypi.org:443"]);
        assert_eq!(file, "[global]\n");
        assert_eq!(setup.env["PIP_CONFIG_FILE"], "/hangar/clients/pip.conf");
    }

    #[test]
    fn mirrors_replace_it_and_credentials_stay_in_the_file() {
        let (hosts, file, setup) = read(
            "global.index-url='https://user:secret@pip.example.org/simple'\n\
             global.extra-index-url='\\nhttps://a.example.org/s\\nhttps://b.example.org:8443/s'\n\
             install.index-url=\"https://user:it's@pip2.example.org/simple\"\n\
             :env:.find-links='/usr https://links.example.org/x'\n\
             global.proxy='http://proxy.example.org'\n",
        );
        assert_eq!(
            hosts,
            [
                "pip2.example.org:443",
                "a.example.org:443",
                "b.example.org:8443",
                "links.example.org:443"
            ]
        );
        assert!(
            file.contains("index-url = https://user:it's@pip2.example.org/simple\n"),
            "{file}"
        );
        assert!(
            file.contains("extra-index-url = \n    https://a.example.org/s\n    https://b"),
            "{file}"
        );
        assert!(!file.contains("proxy"));
        assert_eq!(setup.read, [Path::new("/usr")]);
        assert!(!format!("{setup:?}").contains("it's"));
    }

    #[test]
    fn without_an_index_no_registry_is_reached() {
        let (hosts, file, _) = read(":env:.no-index='1'\n:env:.find-links='/usr'\n");
        assert!(hosts.is_empty() && file.contains("no-index = 1"));
    }

    #[test]
    fn a_bad_url_is_not_quoted() {
        let error = setup("global.index-url='ssh://user:secret@x'\n", Path::new("/x")).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
