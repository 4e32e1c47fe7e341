//! Kind `claude`: Claude Code, started as `claude -p` with its event stream.
//!
//! Its exit status and the word `success` prove nothing: `is_error` of the last `result` event does.
//! Nothing of the repository configures it (settings, hooks, MCP servers, skills); the repository's
//! instructions for agents it reads itself, as files.

use super::Error;
use super::adapter::{Adapter, Environment, Health, Launch, Settings, Turn};
use super::classify::{self, CLAUDE, CLAUDE_FIELD};
use super::finish::{Ended, ErrorClass, Exit, Failure, Finish, TurnEnd, Usage};
use super::installed::{Facts, Installed};
use super::stream;
use crate::model::endpoint::Endpoint;
use jiff::Timestamp;
use serde_json::Value;
use std::ffi::{OsStr, OsString};

/// Word of the kind.
pub const KIND: &str = "claude";

/// Names the place of the model where it is not the vendor's.
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

static FACTS: Facts = Facts {
    program: "claude",
    get: "npm install -g @anthropic-ai/claude-code",
    credentials: &[
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "ANTHROPIC_AUTH_TOKEN",
    ],
    variables: &[BASE_URL],
    login: "put an API key into ANTHROPIC_API_KEY, or what `claude setup-token` gives for a \
            subscription into CLAUDE_CODE_OAUTH_TOKEN",
};

/// The tools that a writer and an implementer have a use for. No agent beside it, nothing that
/// outlives the turn, no other work tree, no web.
const TOOLS: &str = "Bash,Edit,Glob,Grep,NotebookEdit,Read,Write";

/// Its own loading of these files comes with the repository's hooks and servers, so that is off.
const INSTRUCTIONS: &str = "If AGENTS.md or CLAUDE.md is in the root of the work tree, read it before \
                            you change or write anything: it was not loaded for you.";

/// Variables that keep it to the work.
const QUIET: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    // It refuses to work unattended as root where it does not know that it is in a sandbox.
    ("IS_SANDBOX", "1"),
];

#[derive(Debug)]
struct Claude(Installed);

/// Makes the adapter.
pub fn build(settings: &Settings<'_>) -> Result<Box<dyn Adapter>, Error> {
    Ok(Box::new(Claude(Installed::new(&FACTS, settings))))
}

impl Adapter for Claude {
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
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--tools",
            TOOLS,
            "--append-system-prompt",
            INSTRUCTIONS,
        ]
        .map(OsString::from)
        .into();
        for (flag, value) in [
            ("--model", &self.0.settings.model),
            ("--effort", &self.0.effort),
        ] {
            arguments.extend(value.iter().flat_map(|value| [flag.into(), value.into()]));
        }
        let mut launch = self.0.launch(turn, arguments, hosts(turn.env))?;
        for (name, value) in QUIET {
            launch.env.set(name, value);
        }
        Ok(launch)
    }

    fn read(&self, ended: &Ended<'_>) -> Finish {
        let mut seen = Seen::default();
        for event in stream::events(ended.stdout) {
            seen.take(event);
        }
        seen.finish(ended)
    }

    fn show(&self, line: &[u8]) -> Option<String> {
        let Some(event) = stream::event(line) else {
            return Some(String::from_utf8_lossy(line).into_owned());
        };
        let parts = event.pointer("/message/content")?.as_array()?;
        let shown: Vec<String> = parts.iter().filter_map(part).collect();
        (!shown.is_empty()).then(|| shown.join(" "))
    }
}

/// A part of a message in a few words.
fn part(part: &Value) -> Option<String> {
    match stream::text(part, "/type")? {
        "text" => Some(stream::line(stream::text(part, "/text")?)),
        "tool_use" => {
            let input = ["command", "file_path", "notebook_path", "pattern"]
                .into_iter()
                .find_map(|key| stream::text(part, &format!("/input/{key}")));
            let name = stream::text(part, "/name")?;
            Some(stream::line(&format!(
                "{name}: {}",
                input.unwrap_or_default()
            )))
        }
        _ => None,
    }
}

/// Where it may go: the place that the user's environment names, else the vendor's.
fn hosts(env: &Environment) -> Vec<Endpoint> {
    let named = env.get(OsStr::new(BASE_URL)).and_then(|url| url.to_str());
    let place = named
        .and_then(place)
        .or_else(|| "api.anthropic.com:443".parse().ok());
    place.into_iter().collect()
}

/// The `host:port` of a URL.
fn place(url: &str) -> Option<Endpoint> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    match (scheme, has_port) {
        (_, true) => authority.parse().ok(),
        ("https", false) => format!("{authority}:443").parse().ok(),
        ("http", false) => format!("{authority}:80").parse().ok(),
        _ => None,
    }
}

/// What its events told.
#[derive(Default)]
struct Seen {
    version: Option<String>,
    session: Option<String>,
    /// Word of the last message that stands for an error.
    error: Option<String>,
    /// The usage limit that was met, with the time of its reset where that is told.
    rejected: Option<ErrorClass>,
    /// The last event is about a try that failed: its class.
    retrying: Option<ErrorClass>,
    result: Option<Value>,
}

impl Seen {
    fn take(&mut self, event: Value) {
        self.retrying = None;
        let text = |pointer: &str| stream::text(&event, pointer).map(str::to_owned);
        match (
            stream::text(&event, "/type"),
            stream::text(&event, "/subtype"),
        ) {
            (Some("system"), Some("init")) => {
                self.version = text("/claude_code_version");
                self.session = text("/session_id");
            }
            (Some("system"), Some("api_retry")) => {
                let status = classify::of_status(stream::count(&event, "/error_status"));
                let field = stream::text(&event, "/error");
                self.retrying = field
                    .and_then(|word| classify::of_field(CLAUDE_FIELD, word))
                    .or(status);
            }
            (Some("rate_limit_event"), _) => {
                let rejected =
                    text("/rate_limit_info/status").is_some_and(|word| word == "rejected");
                let seconds = event
                    .pointer("/rate_limit_info/resetsAt")
                    .and_then(Value::as_i64);
                let reset = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
                self.rejected = rejected.then_some(ErrorClass::Limit(reset));
            }
            (Some("assistant"), _) => self.error = text("/error"),
            (Some("result"), _) => self.result = Some(event),
            _ => {}
        }
    }

    fn finish(self, ended: &Ended<'_>) -> Finish {
        let usage = self.result.as_ref().map(usage);
        let end = match (&self.result, ended.exit) {
            (_, exit @ Exit::NotStarted(_)) => TurnEnd::Failed(Failure::of_exit(exit)),
            (Some(result), _) if succeeded(result) => TurnEnd::Done,
            (Some(result), _) => TurnEnd::Failed(self.failure(result, ended.at)),
            (None, _) => TurnEnd::Failed(self.no_result(ended)),
        };
        Finish {
            end,
            usage,
            session: self.session,
            version: self.version,
        }
    }

    /// The class of a result that is an error.
    fn failure(&self, result: &Value, at: Timestamp) -> Failure {
        let subtype = stream::text(result, "/subtype").filter(|word| *word != "success");
        let told = ["/result", "/errors/0"]
            .into_iter()
            .find_map(|pointer| stream::text(result, pointer))
            .or(subtype)
            .unwrap_or_default();
        let known = classify::of_text(CLAUDE, told, at);
        let reason = match stream::text(result, "/terminal_reason") {
            Some("prompt_too_long" | "blocking_limit" | "rapid_refill_breaker") => {
                Some(ErrorClass::Context)
            }
            _ => None,
        };
        let rejected = || self.rejected;
        // The newer field says more.
        let newer = stream::text(result, "/api_error");
        let words = [newer, self.error.as_deref()].into_iter().flatten();
        let field = || {
            let mut classes = words.filter_map(|word| classify::of_field(CLAUDE_FIELD, word));
            classes.next()
        };
        let status = || classify::of_status(stream::count(result, "/api_error_status"));
        let class = match known {
            // The time as a number is better than one that was read.
            Some(ErrorClass::Limit(read)) => match self.rejected {
                Some(ErrorClass::Limit(Some(told))) => ErrorClass::Limit(Some(told)),
                _ => ErrorClass::Limit(read),
            },
            Some(class) => class,
            None => reason
                .or_else(rejected)
                .or_else(field)
                .or_else(status)
                .unwrap_or(ErrorClass::Unknown),
        };
        Failure {
            class,
            why: String::new(),
            said: stream::said(told, known.is_some()),
        }
    }

    /// It ended without its last event.
    fn no_result(&self, ended: &Ended<'_>) -> Failure {
        let of_exit = Failure::of_exit(ended.exit);
        if of_exit.class == ErrorClass::Interrupted {
            // Stopped in one of its long pauses between tries: what it waited for is the cause.
            let waited = self.retrying.or(self.rejected);
            return Failure {
                class: waited.unwrap_or(of_exit.class),
                ..of_exit
            };
        }
        let tail = stream::tail(ended.stderr);
        let known = classify::of_text(CLAUDE, &tail, ended.at);
        Failure {
            class: known.unwrap_or(ErrorClass::Protocol),
            why: match ended.exit {
                Exit::Code(0) => "it ended without its last event".to_owned(),
                _ => of_exit.why,
            },
            said: stream::said(&tail, known.is_some()),
        }
    }
}

/// Both words must say so, and neither may be left out.
fn succeeded(result: &Value) -> bool {
    let is_error = result.pointer("/is_error").and_then(Value::as_bool);
    is_error == Some(false) && stream::text(result, "/subtype") == Some("success")
}

/// Tokens over all models that it used.
fn usage(result: &Value) -> Usage {
    let models = result.pointer("/modelUsage").and_then(Value::as_object);
    let mut usage = Usage::default();
    for model in models.into_iter().flat_map(|models| models.values()) {
        let inputs = [
            "/inputTokens",
            "/cacheReadInputTokens",
            "/cacheCreationInputTokens",
        ];
        for input in inputs.map(|pointer| stream::count(model, pointer)) {
            usage.input = usage.input.saturating_add(input);
        }
        let output = stream::count(model, "/outputTokens");
        usage.output = usage.output.saturating_add(output);
    }
    usage
}

#[cfg(test)]
#[path = "claude_tests.rs"]
mod tests;
