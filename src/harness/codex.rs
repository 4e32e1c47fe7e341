//! Kind `codex`: the Codex CLI, started as `codex exec --json`.
//!
//! It runs without a sandbox of its own, inside hangar's. Its only settings are those that hangar lays
//! into its home folder; the repository's own are untrusted and not read. `error` events are not the
//! end: `turn.completed` and `turn.failed` are.

use super::Error;
use super::adapter::{Adapter, Environment, Health, Launch, Settings, Turn};
use super::classify::{self, CODEX};
use super::exchange::Laid;
use super::finish::{Ended, ErrorClass, Exit, Failure, Finish, TurnEnd, Usage};
use super::installed::{Facts, Installed};
use super::stream;
use crate::base::redact::Secret;
use crate::model::endpoint::Endpoint;
use serde_json::Value;
use std::ffi::OsString;

/// Word of the kind.
pub const KIND: &str = "codex";

static FACTS: Facts = Facts {
    program: "codex",
    get: "npm install -g @openai/codex",
    credentials: &["CODEX_API_KEY"],
    variables: &[],
    login: "put an API key into CODEX_API_KEY (it does not look at OPENAI_API_KEY)",
};

/// Its settings for one turn: no reports, updates, plugins, hooks, agents beside it or web. Its key is kept
/// from the commands that it runs. The work tree has no trust level: that alone keeps the repository's own
/// settings out, while an `untrusted` one would keep out its `AGENTS.md` too.
const CONFIG: &str = "\
check_for_update_on_startup = false
web_search = \"disabled\"
[analytics]
enabled = false
[agents]
enabled = false
[features]
apps = false
browser_use = false
computer_use = false
hooks = false
image_generation = false
plugins = false
[shell_environment_policy]
exclude = [\"CODEX_API_KEY\"]
";

#[derive(Debug)]
struct Codex(Installed);

/// Makes the adapter.
pub fn build(settings: &Settings<'_>) -> Result<Box<dyn Adapter>, Error> {
    Ok(Box::new(Codex(Installed::new(&FACTS, settings))))
}

impl Adapter for Codex {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn identity(&self) -> Result<String, Error> {
        self.0.program(None).map(|_| KIND.to_owned())
    }

    fn check(&self, env: &Environment) -> Health {
        self.0.check(env)
    }

    fn version(&self) -> Result<Option<String>, Error> {
        self.0.version()
    }

    fn login(&self) -> Option<&'static str> {
        Some(self.0.login())
    }

    fn variables(&self) -> Vec<String> {
        self.0.variables()
    }

    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error> {
        let mut arguments: Vec<OsString> = [
            "exec",
            "--json",
            "--color",
            "never",
            "--skip-git-repo-check",
            "--ignore-rules",
            "--dangerously-bypass-approvals-and-sandbox",
            "-C",
        ]
        .map(OsString::from)
        .into();
        arguments.push(turn.work.into());
        if let Some(model) = &self.0.settings.model {
            arguments.extend(["-m".into(), model.into()]);
        }
        if let Some(effort) = &self.0.effort {
            let effort = toml::Value::from(effort.as_str());
            let setting = format!("model_reasoning_effort={effort}");
            arguments.extend(["-c".into(), setting.into()]);
        }
        // The prompt comes on standard input.
        arguments.push("-".into());
        let hosts: Option<Endpoint> = "api.openai.com:443".parse().ok();
        let mut launch = self
            .0
            .launch(turn, arguments, hosts.into_iter().collect())?;
        let home = turn.home.join(".codex");
        launch.env.set("CODEX_HOME", &home);
        launch.files.push(Laid {
            path: home.join("config.toml"),
            bytes: Secret::from(CONFIG.to_owned()),
            mode: 0o644,
        });
        Ok(launch)
    }

    fn read(&self, ended: &Ended<'_>) -> Finish {
        let mut seen = Seen::default();
        for event in stream::events(ended.stdout) {
            seen.take(&event);
        }
        seen.finish(ended)
    }

    fn show(&self, line: &[u8]) -> Option<String> {
        let Some(event) = stream::event(line) else {
            return Some(String::from_utf8_lossy(line).into_owned());
        };
        let text = |pointer: &str| stream::text(&event, pointer).map(stream::line);
        match (text("/type")?.as_str(), text("/item/type").as_deref()) {
            ("item.started", Some("command_execution")) => {
                Some(format!("$ {}", text("/item/command")?))
            }
            ("item.completed", Some("agent_message")) => text("/item/text"),
            ("item.completed", Some("file_change")) => changes(&event),
            ("error", _) => text("/message"),
            _ => None,
        }
    }
}

fn changes(event: &Value) -> Option<String> {
    let changes = event.pointer("/item/changes")?.as_array()?;
    let paths: Vec<&str> = changes
        .iter()
        .filter_map(|one| stream::text(one, "/path"))
        .collect();
    Some(stream::line(&format!("changed {}", paths.join(", "))))
}

/// What its events told.
#[derive(Default)]
struct Seen {
    session: Option<String>,
    /// The text of the last event, where that is an error; it may still go on.
    trouble: Option<String>,
    end: Option<Result<Usage, String>>,
}

impl Seen {
    fn take(&mut self, event: &Value) {
        self.trouble = None;
        match stream::text(event, "/type") {
            Some("thread.started") => {
                self.session = stream::text(event, "/thread_id").map(str::to_owned);
            }
            Some("turn.completed") => self.end = Some(Ok(usage(event))),
            Some("turn.failed") => {
                let message = stream::text(event, "/error/message").unwrap_or_default();
                self.end = Some(Err(message.to_owned()));
            }
            Some("error") => {
                self.trouble = stream::text(event, "/message").map(str::to_owned);
            }
            _ => {}
        }
    }

    fn finish(self, ended: &Ended<'_>) -> Finish {
        let (end, usage) = match (&self.end, ended.exit) {
            (_, exit @ Exit::NotStarted(_)) => (TurnEnd::Failed(Failure::of_exit(exit)), None),
            (Some(Ok(usage)), _) => (TurnEnd::Done, Some(*usage)),
            (Some(Err(message)), _) => (TurnEnd::Failed(failure(message, ended)), None),
            (None, _) => (TurnEnd::Failed(self.no_end(ended)), None),
        };
        Finish {
            end,
            usage,
            session: self.session,
            version: None,
        }
    }

    /// It ended without its last event.
    fn no_end(&self, ended: &Ended<'_>) -> Failure {
        let of_exit = Failure::of_exit(ended.exit);
        let tail = stream::tail(ended.stderr);
        let told = self.trouble.as_deref().unwrap_or(&tail);
        let known = classify::of_text(CODEX, told, ended.at);
        if of_exit.class == ErrorClass::Interrupted {
            // Stopped in one of its pauses between tries: what it waited for is the cause.
            let waited = known.filter(|_| self.trouble.is_some());
            return Failure {
                class: waited.unwrap_or(of_exit.class),
                ..of_exit
            };
        }
        Failure {
            class: known.unwrap_or(ErrorClass::Protocol),
            why: match ended.exit {
                Exit::Code(0) => "it ended without its last event".to_owned(),
                _ => of_exit.why,
            },
            said: stream::said(told, known.is_some()),
        }
    }
}

/// A turn that it calls failed.
fn failure(message: &str, ended: &Ended<'_>) -> Failure {
    let known = classify::of_text(CODEX, message, ended.at);
    Failure {
        class: known.unwrap_or(ErrorClass::Unknown),
        why: String::new(),
        said: stream::said(message, known.is_some()),
    }
}

/// Tokens of the whole thread; the cached ones are among those that were read.
fn usage(event: &Value) -> Usage {
    Usage {
        input: stream::count(event, "/usage/input_tokens"),
        output: stream::count(event, "/usage/output_tokens"),
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
