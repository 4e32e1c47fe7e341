//! go: `go env`, which knows the environment and the user's own file (Go documentation, "Environment
//! variables" of the command go).

use super::{Client, Machine, Setup, SetupFile, text, unreadable, url};
use crate::base::redact::Secret;
use crate::config::Error;
use std::fmt::Write as _;
use std::path::Path;

/// What is asked, in this order; a line each.
const ASKED: [&str; 5] = ["GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB"];

pub(super) fn ask(machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    let arguments: Vec<&str> = ["env"].into_iter().chain(ASKED).collect();
    let Some(printed) = machine.run(Client::Go, &arguments, "GO")? else {
        return Ok(None);
    };
    setup(text(Client::Go, &printed)?, machine.inside).map(Some)
}

/// The answers go into a file, since the address of a proxy may hold a password.
fn setup(printed: &str, inside: &Path) -> Result<Setup, Error> {
    let mut setup = Setup::default();
    let mut file = String::new();
    let answers = printed.lines().map(str::trim);
    for (name, value) in ASKED.into_iter().zip(answers) {
        let _ = writeln!(file, "{name}={value}");
        match name {
            "GOPROXY" => {
                let places = value.split([',', '|']).map(str::trim);
                for place in places.filter(|place| !matches!(*place, "" | "direct" | "off")) {
                    if let Some(folder) = url::local_path(place) {
                        setup.read(&folder);
                    } else {
                        let found = url::endpoint(place);
                        setup.host(found.ok_or_else(|| unreadable(Client::Go, "GOPROXY"))?);
                    }
                }
            }
            // The name of a database, its key, perhaps where it is.
            "GOSUMDB" if value != "off" => {
                let words: Vec<&str> = value.split_whitespace().collect();
                let place = match words.as_slice() {
                    [_, place] => (*place).to_owned(),
                    [name, ..] => format!("https://{}", name.split('+').next().unwrap_or(name)),
                    [] => continue,
                };
                let found = url::endpoint(&place);
                setup.host(found.ok_or_else(|| unreadable(Client::Go, "GOSUMDB"))?);
            }
            _ => {}
        }
    }
    let path = inside.join("goenv");
    setup.env.insert("GOENV".into(), path.display().to_string());
    setup.files.push(SetupFile {
        path,
        bytes: Secret::from(file),
    });
    Ok(setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_and_their_credentials_are_kept() {
        let printed = "https://me:secret@go.example.org/r|https://proxy.golang.org,direct\n\
                       sum.golang.org\nexample.org/x\n\n\n";
        let setup = setup(printed, Path::new("/hangar/clients")).unwrap();
        let hosts: Vec<_> = setup.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(
            hosts,
            [
                "go.example.org:443",
                "proxy.golang.org:443",
                "sum.golang.org:443"
            ]
        );
        let file = std::str::from_utf8(setup.files[0].bytes.expose()).unwrap();
        assert!(
            file.starts_with("GOPROXY=https://me:secret@go.example.org/r|")
                && file.contains("GOPRIVATE=example.org/x\n")
        );
        assert_eq!(setup.env["GOENV"], "/hangar/clients/goenv");
        assert!(!setup.env.values().any(|value| value.contains("secret")));
    }

    #[test]
    fn a_folder_and_nothing_at_all_are_proxies_too() {
        let found = setup("file:///usr,off\noff\n", Path::new("/x")).unwrap();
        assert!(found.hosts.is_empty());
        assert_eq!(found.read, [Path::new("/usr")]);
        assert!(setup("ftp://x\n", Path::new("/x")).is_err());
        let named = setup(
            "off\nsum.example.org+033de0ae https://mirror.example.org\n",
            Path::new("/x"),
        );
        let hosts: Vec<_> = named
            .unwrap()
            .hosts
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(hosts, ["mirror.example.org:443"]);
    }
}
