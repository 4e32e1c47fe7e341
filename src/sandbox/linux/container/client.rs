//! The engine's own program: what must be true before a container can start, and how it is asked.

use super::Engine;
use crate::base::process::{self, Output, Run};
use crate::base::words;
use crate::model::image::Image;
use crate::sandbox::{Launcher, Unavailable};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Variables by which the program finds its own settings and its daemon.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
];

/// The program on this machine.
pub(super) struct Client(PathBuf);

impl Client {
    pub(super) fn find(engine: &Engine) -> Result<Self, Unavailable> {
        engine.program.find().map(Self)
    }

    fn ask(&self, words: &[&str]) -> Option<Output> {
        let run = Run::new(&self.0).args(words).inherit(INHERITED);
        run.timeout(Duration::from_secs(30)).output().ok()
    }

    /// Starts it, out of the terminal's reach and in our own folder: what watches a podman container
    /// leaves a file where it was started when memory runs out.
    pub(super) fn start(&self, words: &[OsString], folder: &Path) -> io::Result<Child> {
        let own = INHERITED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        process::command(&self.0)
            .args(words)
            .envs(own)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }

    /// Ends the container of that name, if there is one.
    pub(super) fn remove(&self, name: &str) {
        let _ = self.ask(&["rm", "--force", name]);
    }
}

/// The image that the user pinned.
pub(super) fn image<'a>(engine: &Engine, launcher: &'a Launcher) -> Result<&'a Image, Unavailable> {
    let name = engine.program.name;
    launcher.image.as_ref().ok_or_else(|| Unavailable {
        provider: engine.program.provider,
        reason: "no image is named for its containers".to_owned(),
        remedy: format!(
            "name one that has the programs of the tests, by its digest: `hangar config set \
             sandbox.image NAME@sha256:HEX` (`{name} image inspect --format \
             '{{{{index .RepoDigests 0}}}}' NAME` prints it)"
        ),
    })
}

/// Whether everything is there but the container itself.
pub(super) fn ready(engine: &Engine, launcher: &Launcher) -> Result<(), Unavailable> {
    let client = Client::find(engine)?;
    let (provider, name) = (engine.program.provider, engine.program.name);
    let unavailable = |reason, remedy| Unavailable {
        provider,
        reason,
        remedy,
    };
    if engine.daemon {
        let answer = client.ask(&["version", "--format", "{{.Server.Version}}"]);
        if let Some(words) = failure(answer.as_ref()) {
            return Err(unavailable(
                format!("its daemon does not answer: {words}"),
                "start it (`sudo systemctl start docker`), see that you may reach it (group \
                 `docker`, `DOCKER_HOST`), or use another provider"
                    .to_owned(),
            ));
        }
    }
    let image = image(engine, launcher)?;
    let answer = client.ask(&[
        "image",
        "inspect",
        "--format",
        "{{json .Config.Volumes}}",
        image.as_str(),
    ]);
    if let Some(words) = failure(answer.as_ref()) {
        let known = words.to_lowercase();
        let absent = ["no such image", "image not known"];
        let reason = if absent.iter().any(|words| known.contains(words)) {
            format!("it does not have the image {image}")
        } else {
            format!("it cannot look at the image {image}: {words}")
        };
        let remedy = if image.is_id() {
            format!(
                "load it (`{name} load`), or name one by the digest that a registry has it under"
            )
        } else {
            format!("fetch it: `{name} pull {image}`")
        };
        return Err(unavailable(reason, remedy));
    }
    let volumes = answer.map(|answer| answer.stdout).unwrap_or_default();
    if !matches!(volumes.trim_ascii(), b"null" | b"{}") {
        return Err(unavailable(
            format!("the image {image} asks for volumes, which no limit would bound"),
            "use an image without `VOLUME`".to_owned(),
        ));
    }
    Ok(())
}

/// Its last words, where the program did not do what it was asked.
fn failure(answer: Option<&Output>) -> Option<String> {
    let Some(answer) = answer else {
        return Some("it does not answer in time".to_owned());
    };
    if answer.status.success() {
        return None;
    }
    Some(words::last_line(&answer.stderr).unwrap_or_else(|| answer.status.to_string()))
}
