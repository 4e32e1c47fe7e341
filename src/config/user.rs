//! `$XDG_CONFIG_HOME/hangar/config.toml`: agent programs, lanes, sandbox, toolchain, remote and
//! notification targets of *this machine*.

use super::reader::{Section, Source};
use super::{Error, Warning};
use crate::model::endpoint::Endpoint;
use crate::model::image::Image;
use crate::model::lane::{HarnessSettings, LaneName, LaneSettings, Role};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the user configured.
#[derive(Debug, Clone, Default)]
pub struct User {
    /// `[harness.NAME]` and `[lanes]`
    pub lanes: LaneSettings,
    /// `sandbox.provider`
    pub provider: Option<String>,
    /// `sandbox.image`: what containers are made from.
    pub image: Option<Image>,
    /// `[toolchain]`: programs by name, absolute paths.
    pub toolchain: BTreeMap<String, PathBuf>,
    /// `prepare.hosts`: further hosts that a `prepare` step may reach.
    pub prepare_hosts: Vec<Endpoint>,
    /// `[remote]`, as it stands.
    pub remote: toml::Table,
    /// `[notify]`, as it stands. May hold credentials: never shown whole.
    pub notify: toml::Table,
    /// Keys that nobody reads.
    pub warnings: Vec<Warning>,
}

pub(super) const ROOT: &[&str] = &[
    "harness",
    "lanes",
    "sandbox",
    "toolchain",
    "prepare",
    "remote",
    "notify",
];
pub(super) const HARNESS: &[&str] = &[
    "kind", "model", "effort", "command", "dir", "hosts", "env", "read", "timeout", "idle",
];
pub(super) const LANES: &[&str] = &["writer", "implementer", "judge", "orchestrator"];
pub(super) const SANDBOX: &[&str] = &["provider", "image"];
pub(super) const PREPARE: &[&str] = &["hosts"];

/// Sandbox providers that can be named.
pub const PROVIDERS: &[&str] = &[
    "linux",
    "bwrap",
    "landlock",
    "podman",
    "docker",
    "gvisor",
    "kubernetes",
    "none",
];

impl User {
    /// Reads the file; one that is not there is empty. `~/` in paths is `home`.
    pub fn load(file: &Path, home: Option<&Path>) -> Result<Self, Error> {
        match super::read_file(file)? {
            Some(text) => Self::parse(file, &text, home),
            None => Ok(Self::default()),
        }
    }

    /// Reads the text of the file; `file` is how messages name it.
    pub fn parse(file: &Path, text: &str, home: Option<&Path>) -> Result<Self, Error> {
        let source = Source::new(file, text);
        let table = source.parse()?;
        let root = Section::root(&source, table.get_ref());
        root.warn_unknown(ROOT);
        let sandbox = root.section("sandbox")?;
        sandbox.warn_unknown(SANDBOX);
        let prepare = root.section("prepare")?;
        prepare.warn_unknown(PREPARE);
        let provider = sandbox.checked("provider", |text| {
            if PROVIDERS.contains(&text) {
                Ok(text.to_owned())
            } else {
                Err(format!("is one of {}", PROVIDERS.join(", ")))
            }
        })?;
        let image = sandbox.checked("image", |text| {
            text.parse::<Image>().map_err(|error| error.to_string())
        })?;
        root.section("remote")?;
        root.section("notify")?;
        let lanes = read_lanes(&root, home)?;
        let toolchain = read_toolchain(&root.section("toolchain")?, home)?;
        let prepare_hosts = prepare.checked_list("hosts", endpoint)?.unwrap_or_default();
        let mut raw: toml::Table = text.parse().map_err(|_| {
            source.value_error(0, "config", "can be read by line but not as a whole")
        })?;
        let mut take = |key: &str| match raw.remove(key) {
            Some(toml::Value::Table(table)) => table,
            _ => toml::Table::new(),
        };
        Ok(Self {
            lanes,
            provider,
            image,
            toolchain,
            prepare_hosts,
            remote: take("remote"),
            notify: take("notify"),
            warnings: source.into_warnings(),
        })
    }
}

/// The remote that the file names (`remote.name`), read alone: nothing else in it has to make sense.
pub fn remote_name(file: &Path) -> Result<Option<String>, Error> {
    let Some(text) = super::read_file(file)? else {
        return Ok(None);
    };
    let source = Source::new(file, &text);
    let table = source.parse()?;
    Section::root(&source, table.get_ref())
        .section("remote")?
        .string("name")
}

fn read_lanes(root: &Section<'_, '_>, home: Option<&Path>) -> Result<LaneSettings, Error> {
    let mut out = LaneSettings::default();
    let harnesses = root.section("harness")?;
    for (name, _) in harnesses.keys() {
        let harness = read_harness(name, &harnesses.section(name)?, home)?;
        out.harnesses.insert(name.to_owned(), harness);
    }
    let lanes = root.section("lanes")?;
    lanes.warn_unknown(LANES);
    for role in Role::ALL {
        let names = lanes.checked_list(role.as_str(), str::parse::<LaneName>)?;
        if let Some(names) = names {
            out.lanes.insert(role, names);
        }
    }
    Ok(out)
}

fn read_harness(
    name: &str,
    section: &Section<'_, '_>,
    home: Option<&Path>,
) -> Result<HarnessSettings, Error> {
    section.warn_unknown(HARNESS);
    let path = |text: &str| absolute(text, home);
    let time = |text: &str| {
        let time = super::units::duration(text).filter(|time| time.as_secs() >= 1);
        time.ok_or_else(|| "is a duration of at least 1s such as \"10m\"".to_owned())
    };
    let command = section.checked_list("command", no_nul)?.unwrap_or_default();
    if let (Some(program), Some(value)) = (command.first(), section.get("command"))
        && !Path::new(program).is_absolute()
    {
        return Err(section.bad(
            "command",
            value,
            "must begin with the program's absolute path",
        ));
    }
    Ok(HarnessSettings {
        kind: section.string("kind")?.unwrap_or_else(|| name.to_owned()),
        model: section.string("model")?,
        effort: section.string("effort")?,
        command,
        dir: section.checked("dir", path)?,
        hosts: section.checked_list("hosts", endpoint)?.unwrap_or_default(),
        env: section.checked_list("env", variable)?.unwrap_or_default(),
        read: section.checked_list("read", path)?.unwrap_or_default(),
        timeout: section.checked("timeout", time)?,
        idle: section.checked("idle", time)?,
    })
}

fn read_toolchain(
    section: &Section<'_, '_>,
    home: Option<&Path>,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut out = BTreeMap::new();
    for (name, _) in section.keys() {
        if let Some(path) = section.checked(name, |text| absolute(text, home))? {
            out.insert(name.to_owned(), path);
        }
    }
    Ok(out)
}

fn absolute(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    };
    let climbs = path
        .components()
        .any(|part| matches!(part, std::path::Component::ParentDir));
    if !path.is_absolute() || climbs || text.contains('\0') {
        return Err("is an absolute path without `..`".into());
    }
    Ok(path)
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    text.parse::<Endpoint>()
        .map_err(|error| format!("is a list of `host:port`; {error}"))
}

/// The name of a variable. A value in its place would put a credential into a file.
fn variable(text: &str) -> Result<String, String> {
    let fine = !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fine {
        Ok(text.to_owned())
    } else {
        Err("lists names of variables; their values are read from your environment".into())
    }
}

fn no_nul(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err("holds a NUL character".into());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<User, Error> {
        User::parse(Path::new("config.toml"), text, Some(Path::new("/home/a")))
    }

    const FULL: &str = r#"
[harness.claude]
model = "m"
effort = "high"
[harness.mine]
kind = "command"
command = ["/opt/agents/mine", "--flag"]
hosts = ["api.example.com:443", "127.0.0.1:8080"]
env = ["MY_API_KEY"]
read = ["/opt/agents/data", "~/models"]
timeout = "3h"
idle = "90s"
[harness.demo]
kind = "script"
dir = "/opt/turns"
[lanes]
writer = ["claude:high"]
implementer = ["mine", "demo"]
[sandbox]
provider = "linux"
[toolchain]
python = "~/.pyenv/versions/3.13/bin/python3"
[prepare]
hosts = ["dl.example.org:443"]
[remote]
name = "origin"
[notify.chat]
url = "https://example.org/hook"
"#;

    #[test]
    fn the_documented_file_is_read_whole() {
        let user = read(FULL).unwrap();
        assert!(user.warnings.is_empty(), "{:?}", user.warnings);
        let mine = &user.lanes.harnesses["mine"];
        assert_eq!(mine.kind, "command");
        assert_eq!(mine.hosts[1].loopback_port(), Some(8080));
        assert_eq!(mine.read[1], Path::new("/home/a/models"));
        assert_eq!(mine.timeout.map(|time| time.as_secs()), Some(3 * 3600));
        assert_eq!(mine.idle.map(|time| time.as_secs()), Some(90));
        assert_eq!(user.lanes.harnesses["claude"].kind, "claude");
        assert_eq!(
            user.lanes.lanes[&Role::Writer][0].effort.as_deref(),
            Some("high")
        );
        assert!(!user.lanes.lanes.contains_key(&Role::Judge));
        assert_eq!(
            user.toolchain["python"],
            Path::new("/home/a/.pyenv/versions/3.13/bin/python3")
        );
        assert_eq!(user.remote["name"].as_str(), Some("origin"));
        assert!(user.notify.contains_key("chat"));
        assert_eq!(user.prepare_hosts[0].host(), "dl.example.org");
    }

    #[test]
    fn mistakes_name_line_and_key() {
        for (bad, line) in [
            ("[harness.m]\ncommand = [\"mine\"]", 2),
            ("[harness.m]\nenv = [\"KEY=secret\"]", 2),
            ("[harness.m]\nhosts = [\"example.org\"]", 2),
            ("[harness.m]\nread = [\"data\"]", 2),
            ("[harness.m]\nidle = \"90\"", 2),
            ("[lanes]\nwriter = \"claude\"", 2),
            ("[sandbox]\nprovider = \"magic\"", 2),
            ("[sandbox]\nimage = \"python:3.13\"", 2),
            ("[toolchain]\npython = \"python3\"", 2),
            ("notify = 1", 1),
        ] {
            match read(bad) {
                Err(Error::Value { line: found, .. }) => assert_eq!(found, line, "{bad}"),
                other => panic!("{bad}: {other:?}"),
            }
        }
        let user = read("[lanes]\nwritter = []").unwrap();
        assert_eq!(user.warnings[0].nearest.as_deref(), Some("lanes.writer"));
    }

    #[test]
    fn a_file_that_is_not_there_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let user = User::load(&dir.path().join("config.toml"), None).unwrap();
        assert!(user.lanes.harnesses.is_empty() && user.provider.is_none());
    }
}
