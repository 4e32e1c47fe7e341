//! `hangar.toml`: how this code is built, tested and delivered.
//!
//! Whoever can land code can write it. So its commands run only inside sandboxes, and nothing in
//! it may name a program, key, host, sandbox or notification target of the user's machine: such a
//! key is an error that says where it belongs.

use super::reader::{Section, Source};
use super::{Error, Warning};
use crate::model::digest::Digest;
use crate::model::outcome::{Trust, Verdict};
use crate::model::plan::{Framework, Plan, PlanLimits};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's name, at the root of the repository.
pub const FILE: &str = "hangar.toml";

/// Whether tasks get hidden tests before their code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flow {
    /// Hidden tests first.
    TestFirst,
    /// No hidden tests.
    #[default]
    Plain,
}

/// In what form an accepted patch is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeliverAs {
    /// A branch.
    #[default]
    Branch,
    /// A branch and a draft pull request.
    Pr,
}

/// `[deliver]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deliver {
    /// Form.
    pub form: DeliverAs,
    /// Name of the branch; `{key}` and `{id}` stand for the task's.
    pub branch: String,
}

impl Default for Deliver {
    fn default() -> Self {
        Self {
            form: DeliverAs::Branch,
            branch: "hangar/{key}".into(),
        }
    }
}

/// What `hangar.toml` says.
#[derive(Debug, Clone)]
pub struct Repository {
    /// SHA-256 of policy version 1 (`trust.repo`).
    pub repo: Option<Digest>,
    /// `task.flow`
    pub flow: Flow,
    /// `task.verify`: the implementer's own loop, shell text.
    pub verify: Option<String>,
    /// `[grader]` as a plan without the adapter's protected paths; absent without a framework.
    grader: Option<Plan>,
    /// `[deliver]`
    pub deliver: Deliver,
    /// Keys that nobody reads.
    pub warnings: Vec<Warning>,
}

impl Repository {
    /// Reads the text of `hangar.toml`; `file` is how messages name it.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let source = Source::new(file, text);
        let table = source.parse()?;
        let root = Section::root(&source, table.get_ref());
        let (sections, task, grader) = (
            root.section("trust")?,
            root.section("task")?,
            root.section("grader")?,
        );
        let (limits, deliver) = (grader.section("limits")?, root.section("deliver")?);
        refuse_foreign(
            &source,
            &root,
            &[&sections, &task, &grader, &limits, &deliver],
        )?;
        root.warn_unknown(ROOT);
        sections.warn_unknown(TRUST);
        task.warn_unknown(TASK);
        grader.warn_unknown(GRADER);
        limits.warn_unknown(LIMITS);
        deliver.warn_unknown(DELIVER);
        root.integer("format", 1, 1)?;
        let parsed = Self {
            repo: read_repo(&sections)?,
            flow: read_flow(&task)?,
            verify: task
                .checked("verify", shell_text)?
                .filter(|text| !text.is_empty()),
            grader: read_grader(&grader, &limits)?,
            deliver: read_deliver(&deliver)?,
            warnings: Vec::new(),
        };
        let mut warnings = source.into_warnings();
        for warning in warnings.iter_mut().filter(|one| one.nearest.is_none()) {
            warning.nearest = elsewhere(&warning.key);
        }
        Ok(Self { warnings, ..parsed })
    }

    /// The framework, where the file names one.
    pub fn framework(&self) -> Option<Framework> {
        self.grader.as_ref().map(|plan| plan.framework)
    }

    /// The grading plan that this file proposes, with the protected paths of its adapter.
    pub fn to_plan(&self, adapter_protected: &[String]) -> Result<Plan, Error> {
        let mut plan = self.grader.clone().ok_or_else(|| Error::Missing {
            what: "`grader.framework`".into(),
            remedy: format!(
                "add it to {FILE} at the base commit, for example `framework = \"pytest\"`"
            ),
        })?;
        let mut protected = adapter_protected.to_vec();
        for glob in plan.protected {
            if !protected.contains(&glob) {
                protected.push(glob);
            }
        }
        plan.protected = protected;
        Ok(plan)
    }
}

/// The policy that the text of `hangar.toml` names (`trust.repo`), read alone: nothing else in the file
/// has to make sense.
pub fn named_policy(file: &Path, text: &str) -> Result<Option<Digest>, Error> {
    let source = Source::new(file, text);
    let table = source.parse()?;
    read_repo(&Section::root(&source, table.get_ref()).section("trust")?)
}

fn read_repo(trust: &Section<'_, '_>) -> Result<Option<Digest>, Error> {
    trust.checked("repo", |text| {
        text.parse::<Digest>()
            .map_err(|error| format!("is no digest: {error}"))
    })
}

/// The key of the same name in another table.
fn elsewhere(key: &str) -> Option<String> {
    let last = key.rsplit('.').next().unwrap_or(key);
    let tables = [
        ("trust", TRUST),
        ("task", TASK),
        ("grader", GRADER),
        ("grader.limits", LIMITS),
        ("deliver", DELIVER),
    ];
    let found = tables.into_iter().find(|(_, keys)| keys.contains(&last));
    found.map(|(table, _)| format!("{table}.{last}"))
}

pub(super) const ROOT: &[&str] = &["format", "trust", "task", "grader", "deliver"];
pub(super) const TRUST: &[&str] = &["repo"];
pub(super) const TASK: &[&str] = &["flow", "verify"];
pub(super) const GRADER: &[&str] = &[
    "framework",
    "prepare",
    "reprepare",
    "build",
    "tests",
    "protected",
    "may_touch",
    "options",
    "plugins",
    "env",
    "repeat",
    "timeout",
    "limits",
    "trust",
    "verdict",
];
pub(super) const LIMITS: &[&str] = &["memory", "processes", "output", "disk"];
pub(super) const DELIVER: &[&str] = &["as", "branch"];

const USER_LANES: &str =
    "agent programs belong in `[harness.NAME]` and `[lanes]` of the user configuration";
const USER_SANDBOX: &str = "the sandbox belongs in `[sandbox]` of the user configuration";
const USER_TOOLS: &str =
    "programs of this machine belong in `[toolchain]` of the user configuration";
const USER_HOSTS: &str =
    "hosts belong in `[harness.NAME]` or `[prepare]` of the user configuration";
const USER_REMOTE: &str = "the remote belongs in `[remote]` of the user configuration";
const USER_NOTIFY: &str = "notification targets belong in `[notify]` of the user configuration";
const POLICY: &str = "who decides belongs in the signed policy (`hangar policy`)";
const KEYS: &str = "keys belong in Git's `user.signingKey` or in the signed policy (`hangar key`)";

/// Words that name something of the user's machine or of the policy, wherever they stand.
const FOREIGN: &[(&str, &str)] = &[
    ("harness", USER_LANES),
    ("harnesses", USER_LANES),
    ("lanes", USER_LANES),
    ("writer", USER_LANES),
    ("implementer", USER_LANES),
    ("judge", USER_LANES),
    ("orchestrator", USER_LANES),
    ("model", USER_LANES),
    ("effort", USER_LANES),
    ("command", USER_TOOLS),
    ("program", USER_TOOLS),
    ("interpreter", USER_TOOLS),
    ("python", USER_TOOLS),
    ("toolchain", USER_TOOLS),
    ("sandbox", USER_SANDBOX),
    ("provider", USER_SANDBOX),
    ("image", USER_SANDBOX),
    ("mounts", USER_SANDBOX),
    ("read", USER_SANDBOX),
    ("host", USER_HOSTS),
    ("hosts", USER_HOSTS),
    ("egress", USER_HOSTS),
    ("registry", USER_HOSTS),
    ("registries", USER_HOSTS),
    ("proxy", USER_HOSTS),
    ("url", USER_HOSTS),
    ("remote", USER_REMOTE),
    ("notify", USER_NOTIFY),
    ("notifications", USER_NOTIFY),
    ("webhook", USER_NOTIFY),
    ("key", KEYS),
    ("keys", KEYS),
    ("signing_key", KEYS),
    ("identity", KEYS),
    ("token", KEYS),
    ("policy", POLICY),
    ("roles", POLICY),
    ("approvers", POLICY),
];

/// Where a key belongs that a repository may not set.
pub(super) fn foreign(key: &str) -> Option<&'static str> {
    FOREIGN
        .iter()
        .find(|(word, _)| *word == key)
        .map(|(_, belongs)| *belongs)
}

fn refuse_foreign(
    source: &Source<'_>,
    root: &Section<'_, '_>,
    sections: &[&Section<'_, '_>],
) -> Result<(), Error> {
    for section in std::iter::once(&root).chain(sections) {
        for (key, offset) in section.keys() {
            if let Some(belongs) = foreign(key) {
                return Err(source.forbidden(offset, section.name(key), belongs));
            }
        }
    }
    Ok(())
}

fn read_flow(task: &Section<'_, '_>) -> Result<Flow, Error> {
    let flow = task.checked("flow", |text| match text {
        "test-first" => Ok(Flow::TestFirst),
        "plain" => Ok(Flow::Plain),
        _ => Err("is \"test-first\" or \"plain\"".into()),
    })?;
    Ok(flow.unwrap_or_default())
}

fn read_grader(grader: &Section<'_, '_>, limits: &Section<'_, '_>) -> Result<Option<Plan>, Error> {
    let framework = grader.checked("framework", str::parse::<Framework>)?;
    // Without a framework the rest is read all the same, so that its mistakes are told.
    let mut plan = Plan::new(framework.unwrap_or(Framework::Exec));
    let set = |target: &mut Vec<String>, value: Option<Vec<String>>| {
        if let Some(value) = value {
            *target = value;
        }
    };
    plan.prepare = grader.checked("prepare", shell_text)?.unwrap_or_default();
    plan.reprepare = read_reprepare(grader, &plan, framework)?;
    plan.build = grader.checked("build", shell_text)?.unwrap_or_default();
    set(&mut plan.tests, grader.checked_list("tests", glob)?);
    if let (true, Some(value)) = (plan.tests.is_empty(), grader.get("tests")) {
        return Err(grader.bad("tests", value, "names no path where hidden tests may go"));
    }
    set(&mut plan.protected, grader.checked_list("protected", glob)?);
    set(&mut plan.may_touch, grader.checked_list("may_touch", glob)?);
    set(&mut plan.options, grader.checked_list("options", argument)?);
    set(&mut plan.plugins, grader.checked_list("plugins", argument)?);
    plan.env = read_env(&grader.section("env")?)?;
    if let Some(repeat) = grader.integer("repeat", 1, 100)? {
        plan.repeat = u32::try_from(repeat).unwrap_or(1);
    }
    plan.limits = read_limits(grader, limits)?;
    if let Some(trust) = grader.checked("trust", str::parse::<Trust>)? {
        plan.trust = trust;
    }
    if let Some(verdict) = grader.checked("verdict", str::parse::<Verdict>)? {
        plan.verdict = verdict;
    }
    Ok(framework.map(|_| plan))
}

fn read_reprepare(
    grader: &Section<'_, '_>,
    plan: &Plan,
    framework: Option<Framework>,
) -> Result<bool, Error> {
    let wanted = grader.flag("reprepare")?.unwrap_or_default();
    let Some(value) = grader.get("reprepare").filter(|_| wanted) else {
        return Ok(false);
    };
    let knows = |framework| matches!(framework, Framework::Pytest | Framework::Unittest);
    if !framework.is_none_or(knows) {
        return Err(grader.bad("reprepare", value, "is there for pytest and unittest only"));
    }
    if plan.prepare.trim().is_empty() {
        return Err(grader.bad("reprepare", value, "needs a `prepare` step to run again"));
    }
    Ok(true)
}

fn read_limits(grader: &Section<'_, '_>, limits: &Section<'_, '_>) -> Result<PlanLimits, Error> {
    let default = PlanLimits::default();
    let timeout = grader.checked("timeout", |text| {
        super::units::duration(text)
            .filter(|limit| limit.as_secs() >= 1 && *limit <= super::units::MAX_DURATION)
            .ok_or_else(|| "is a duration from 1s to 365d such as \"10m\"".to_owned())
    })?;
    Ok(PlanLimits {
        memory: limits.size("memory")?.unwrap_or(default.memory),
        processes: limits
            .integer("processes", 1, 1 << 22)?
            .unwrap_or(default.processes),
        output: limits.size("output")?.unwrap_or(default.output),
        disk: limits.size("disk")?.unwrap_or(default.disk),
        timeout: timeout.map_or(default.timeout, |limit| limit.as_secs()),
    })
}

fn read_env(env: &Section<'_, '_>) -> Result<BTreeMap<String, String>, Error> {
    let mut out = BTreeMap::new();
    for (name, _) in env.keys() {
        let value = env.checked(name, |value| {
            let fine = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !fine {
                return Err("is no name of a variable".to_owned());
            }
            match super::plan_env::refused(name, value) {
                Some(why) => Err(why),
                None => argument(value),
            }
        })?;
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    }
    Ok(out)
}

fn read_deliver(deliver: &Section<'_, '_>) -> Result<Deliver, Error> {
    let default = Deliver::default();
    let form = deliver.checked("as", |text| match text {
        "branch" => Ok(DeliverAs::Branch),
        "pr" => Ok(DeliverAs::Pr),
        _ => Err("is \"branch\" or \"pr\"".into()),
    })?;
    let branch = deliver.checked("branch", branch_name)?;
    Ok(Deliver {
        form: form.unwrap_or(default.form),
        branch: branch.unwrap_or(default.branch),
    })
}

fn shell_text(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err("holds a NUL character".into());
    }
    Ok(text.trim().to_owned())
}

fn argument(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err("holds a NUL character".into());
    }
    Ok(text.to_owned())
}

/// A path or glob relative to the root of the repository.
fn glob(text: &str) -> Result<String, String> {
    let odd = text.is_empty() || text.starts_with('/') || text.chars().any(char::is_control);
    let escapes = text
        .split('/')
        .any(|part| matches!(part, ".." | ".") || part.eq_ignore_ascii_case(".git"));
    if odd || escapes {
        return Err("holds a path that does not lie below the root of the repository".into());
    }
    globset::Glob::new(text).map_err(|error| format!("holds no glob: {}", error.kind()))?;
    Ok(text.to_owned())
}

/// A branch name with `{key}` and `{id}` in it (`git check-ref-format`, after filling in).
fn branch_name(text: &str) -> Result<String, String> {
    let filled = text.replace("{key}", "k").replace("{id}", "i");
    // What Git refuses, and what a shell reads as something else: people paste names.
    let odd =
        |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\{};|&$()<>'\"`!#".contains(c);
    let bad_part = |part: &str| {
        part.is_empty()
            || part.starts_with('.')
            || part.ends_with('.')
            || part.strip_suffix(".lock").is_some()
    };
    if filled.starts_with('-')
        || filled.contains(odd)
        || filled.contains("..")
        || filled.contains("@{")
        || filled.split('/').any(bad_part)
        || filled.starts_with("refs/")
    {
        return Err("is no branch name (`{key}` and `{id}` stand for the task's)".into());
    }
    if filled == text {
        return Err("gives every task the same branch; put `{key}` or `{id}` into it".into());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
#[path = "repository_tests.rs"]
mod tests;
