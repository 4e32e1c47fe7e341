//! The repository: its policy, the caller's keys, the framework's programs, the remote.

use super::{Check, State};
use crate::app::error::with_causes;
use crate::app::here::{NO_PULL_REQUESTS, choose, config_at, mend, no_key};
use crate::app::setup::init::unborn;
use crate::app::{Error, Here, keys, remote};
use crate::base::words;
use crate::config::repository::{DeliverAs, FILE, Repository as Config};
use crate::flow::tools::find_program;
use crate::git::Repository;
use crate::grade::adapter;
use crate::model::outcome::Trust;
use crate::model::policy::Actor;
use crate::store::identity::{holder, is_machine};
use crate::store::layout::{Layout, Prefix};
use crate::store::sync::{Wanted, offered};
use crate::store::{self, Store, pins};
use crate::trust::{Candidate, Discovery, MachineKey, MachineRole};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the remote may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the other checks need to know.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The repository.
    pub(super) repo: Option<Repository>,
    /// What an accepted grade needs here.
    pub(super) least_trust: Option<Trust>,
}

/// Looks at the repository and everything in it.
pub(super) fn look(here: &Here, checks: &mut Vec<Check>) -> Found {
    let repo = match here.repository() {
        Ok(repo) => repo,
        Err(error) => {
            let remedy = "run it in a Git repository, or name one with -C";
            checks.push(missing("repository", &error, remedy));
            person_without_policy(here, None, checks);
            return Found::default();
        }
    };
    checks.push(repository(here, &repo));
    let store = match open(here, repo) {
        Ok(store) => store,
        Err(refused) => {
            let (repo, error) = *refused;
            checks.push(missing("policy", &error, remedy(&error)));
            person_without_policy(here, Some(&repo), checks);
            return Found {
                repo: Some(repo),
                least_trust: None,
            };
        }
    };
    checks.push(policy_check(&store));
    checks.extend(person(here, &store));
    checks.extend(machine_keys(here, &store));
    checks.extend(grader(here, &store));
    checks.push(super::hooks::look(&store.repo));
    Found {
        least_trust: Some(store.policy.newest().root.acceptance.trust),
        repo: Some(store.repo),
    }
}

fn missing(name: &str, error: &dyn std::error::Error, remedy: &str) -> Check {
    Check::not(State::Missing, name, with_causes(error), remedy)
}

fn repository(here: &Here, repo: &Repository) -> Check {
    let format = repo.object_format().name();
    let place = repo.work_tree().unwrap_or_else(|| repo.git_dir());
    let kind = if repo.is_bare() { "bare, " } else { "" };
    let detail = format!("{} ({kind}{format})", place.display());
    match repo.head() {
        Ok(Some(_)) if repo.is_shallow() => Check::not(
            State::Warn,
            "repository",
            format!("{detail} is shallow: its history does not reach far"),
            "`git fetch --unshallow`",
        ),
        Ok(Some(_)) => Check::ok("repository", detail),
        Ok(None) => {
            let error = unborn(here, repo);
            let remedy = match &error {
                Error::Unborn { remedies, .. } => remedies.join("; "),
                _ => String::new(),
            };
            Check::not(
                State::Missing,
                "repository",
                format!("{detail}: {error}"),
                remedy,
            )
        }
        Err(error) => missing("repository", &error, ""),
    }
}

/// The verified state. Gives the repository back when there is none.
fn open(here: &Here, repo: Repository) -> Result<Store, Box<(Repository, Error)>> {
    let opened = || -> Result<_, Error> {
        let layout = Layout::of(&repo)?;
        let policy = pins::load(&repo, &layout)?;
        Ok((layout, policy))
    };
    match opened() {
        Ok((layout, policy)) => Ok(Store {
            repo,
            layout,
            policy: Arc::new(policy),
            clock: here.clock,
            heard: here.notices.reading(),
            brought: here.notices.brought(),
            offline: here.offline,
        }),
        Err(error) => Err(Box::new((repo, error))),
    }
}

/// What helps where the policy can't be read.
const fn remedy(error: &Error) -> &'static str {
    match error {
        Error::Store(store::Error::NoPolicy) => "run `hangar init`",
        Error::Store(store::Error::PolicyGone { .. }) => {
            "`hangar sync` brings it back from a remote that has it"
        }
        _ => "ask an admin which policy is right; `hangar verify --all` says what is wrong",
    }
}

fn policy_check(store: &Store) -> Check {
    let newest = store.policy.newest();
    if let Err(error) = store.policy.decided() {
        let remedy = "`hangar policy resolve DIGEST`, by holders of root keys";
        return missing("policy", &error, remedy);
    }
    let (people, machines) = (newest.members.person.len(), newest.members.machine.len());
    let detail = format!(
        "version {}, {}, {}",
        newest.reference.version,
        words::count(people, "person", "people"),
        words::count(machines, "machine key", "machine keys")
    );
    match pins::pinned(&store.repo) {
        Ok(Some(_)) => Check::ok("policy", detail),
        _ => Check::not(
            State::Warn,
            "policy",
            format!("{detail}, not pinned in this clone"),
            "run `hangar init`",
        ),
    }
}

fn person_without_policy(here: &Here, repo: Option<&Repository>, checks: &mut Vec<Check>) {
    checks.push(match here.keys(repo) {
        Ok(found) => match found.candidates.first() {
            Some(candidate) => Check::ok("your key", describe(candidate)),
            None => without_key(&found),
        },
        Err(error) => missing("your key", &error, MEND_KEY),
    });
}

fn without_key(found: &Discovery) -> Check {
    let remedy = match mend(found) {
        Some(mend) => format!("others can read a key file of yours: `{mend}`"),
        None => "`hangar key new` makes one".to_owned(),
    };
    missing("your key", &no_key(found), &remedy)
}

/// What helps where Git's configuration names a key that can't be used.
const MEND_KEY: &str = "`git config --show-origin user.signingKey` says who names it: name a key that \
                        can be used, or `git config --unset user.signingKey`";

fn describe(candidate: &Candidate) -> String {
    let source = crate::app::setup::init::source(candidate);
    format!("{} in {source}", candidate.public.fingerprint())
}

fn person(here: &Here, store: &Store) -> Vec<Check> {
    let found = match here.keys(Some(&store.repo)) {
        Ok(found) => found,
        Err(error) => return vec![missing("your key", &error, MEND_KEY)],
    };
    let Some(candidate) = choose(&found, store) else {
        return vec![without_key(&found)];
    };
    let newest = store.policy.newest();
    let mut checks = Vec::new();
    match holder(newest, &candidate.public) {
        Ok((Actor::Person { name, .. }, _)) => {
            checks.push(Check::ok(
                "your key",
                format!("{name}, {}", describe(candidate)),
            ));
            checks.push(reading(here, store));
        }
        Ok((Actor::Machine { name, .. }, _)) => checks.push(Check::not(
            State::Missing,
            "your key",
            format!("{} is {name}'s, a machine key", describe(candidate)),
            "sign with a key of your own (`git config user.signingKey`)",
        )),
        Err(_) => checks.push(Check::not(
            State::Missing,
            "your key",
            format!("{} belongs to nobody in the policy", describe(candidate)),
            "`hangar init` prints the line by which an admin adds you",
        )),
    }
    checks
}

/// Whether hidden tests could be read. Asks for no passphrase: a key behind one counts as there.
fn reading(here: &Here, store: &Store) -> Check {
    match keys::identity(here, store, &mut |_| None) {
        Ok(_) => Check::ok("reading hidden tests", "your key or age identity decrypts"),
        Err(Error::AgeIdentity {
            source: crate::seal::IdentityError::NoPassphrase,
            ..
        }) => Check::ok(
            "reading hidden tests",
            "your key decrypts, with its passphrase",
        ),
        Err(error) => Check::not(
            State::Warn,
            "reading hidden tests",
            with_causes(&error),
            "run `hangar init`",
        ),
    }
}

fn machine_keys(here: &Here, store: &Store) -> Vec<Check> {
    let dir = match here.data_dir(&store.policy.repo()) {
        Ok(dir) => dir,
        Err(error) => return vec![missing("machine keys", &error, "")],
    };
    [MachineRole::Worker, MachineRole::Grader]
        .into_iter()
        .map(|role| machine_key(store, &dir, role))
        .collect()
}

fn machine_key(store: &Store, dir: &Path, role: MachineRole) -> Check {
    use crate::model::policy::MachineRole as Wanted;
    let name = format!("{} key", role.file_name());
    let key = match MachineKey::load(dir, role) {
        Ok(key) => key,
        // Its text says what to do.
        Err(error) => return missing(&name, &error, ""),
    };
    let wanted = match role {
        MachineRole::Worker => Wanted::Worker,
        MachineRole::Grader => Wanted::Grader,
    };
    match holder(store.policy.newest(), key.public()) {
        Ok((actor, fingerprint)) if is_machine(&actor, wanted) => {
            Check::ok(&name, format!("{}, {fingerprint}", actor.name()))
        }
        _ => Check::not(
            State::Missing,
            &name,
            format!("{} is not in the policy", key.public().fingerprint()),
            "`hangar init` prints the line by which an admin adds it",
        ),
    }
}

/// `hangar.toml` of the checked-out commit and the programs that its framework needs.
fn grader(here: &Here, store: &Store) -> Vec<Check> {
    let Ok(Some(head)) = store.repo.head() else {
        return Vec::new();
    };
    let config = match config_at(&store.repo, head) {
        Ok(Some(config)) => config,
        Ok(None) => return vec![not_committed(here, &store.repo)],
        Err(error) => return vec![missing("hangar.toml", &error, "correct and commit it")],
    };
    let mut checks = Vec::new();
    checks.push(match config.repo {
        Some(named) if named != store.policy.repo() => Check::not(
            State::Missing,
            "hangar.toml",
            "it names another policy than the refs hold",
            "ask an admin which one is right",
        ),
        Some(_) => Check::ok("hangar.toml", "names this policy"),
        None => Check::not(
            State::Warn,
            "hangar.toml",
            "it does not name the policy",
            "run `hangar init` and commit the change",
        ),
    });
    if config.deliver.form == DeliverAs::Pr {
        let detail = format!("`deliver.as` is \"pr\": {NO_PULL_REQUESTS}");
        let remedy = "set `deliver.as = \"branch\"` and commit it";
        checks.push(Check::not(State::Warn, "hangar.toml", detail, remedy));
    }
    checks.extend(
        config
            .warnings
            .iter()
            .map(|warning| Check::not(State::Warn, "hangar.toml", warning.to_string(), "")),
    );
    checks.extend(tools(here, &config));
    checks
}

/// No `hangar.toml` in the commit: it was never written, or only not committed.
fn not_committed(here: &Here, repo: &Repository) -> Check {
    let file = repo.work_tree().map(|dir| dir.join(FILE));
    let (detail, remedy) = if file.is_some_and(|file| file.is_file()) {
        let git = here.git();
        (
            "it is in the work tree and not committed yet",
            format!("commit it: `{git} add {FILE} && {git} commit -m \"Set up hangar\"`"),
        )
    } else {
        (
            "it is not in the checked-out commit",
            "run `hangar init` and commit it".to_owned(),
        )
    };
    Check::not(State::Missing, FILE, detail, remedy)
}

fn tools(here: &Here, config: &Config) -> Vec<Check> {
    let Some(framework) = config.framework() else {
        return vec![Check::not(
            State::Warn,
            "grader",
            "hangar.toml names no test framework",
            "set `grader.framework` in hangar.toml for test-first tasks",
        )];
    };
    let plan = match config.to_plan(&[]) {
        Ok(plan) => plan,
        Err(error) => return vec![missing("grader", &error, "")],
    };
    let user = here.user().unwrap_or_default();
    let needed = adapter(framework).tools(&plan);
    let mut checks = vec![Check::ok("grader", format!("framework {framework}"))];
    checks.extend(needed.into_iter().map(|tool| {
        let name = format!("grader needs {}", tool.name);
        match find_program(&user, &tool.name) {
            Err(error) => missing(&name, &error, ""),
            Ok(Some(path)) => Check::ok(&name, path.display().to_string()),
            Ok(None) if tool.prepared.is_some() && !plan.prepare.is_empty() => {
                Check::ok(&name, "expected from `prepare`")
            }
            Ok(None) => Check::not(
                State::Missing,
                &name,
                "it is not on this machine",
                tool.remedy,
            ),
        }
    }));
    checks
}

/// The policy that a remote holds: `hangar sync` refuses one that is not this clone's.
fn held(repo: &Repository, name: &str) -> Check {
    let wanted = Wanted {
        remote: name,
        timeout: PATIENCE,
        push: false,
        prefix: None,
    };
    let own = pins::pinned(repo).ok().flatten();
    let (detail, remedy) = match offered(repo, &wanted, own) {
        Ok(Some(offer)) if own.is_none_or(|own| own == offer.policy.repo()) => {
            return Check::ok("remote", format!("{name} answers and holds a policy"));
        }
        Ok(Some(offer)) => (
            format!(
                "{name} holds the policy {}, which is not this clone's",
                offer.policy.repo()
            ),
            "`hangar sync` takes nothing of it, and says what to do",
        ),
        Ok(None) => (
            format!("{name} holds two policies, and none is this clone's"),
            "ask an admin which one is right",
        ),
        Err(error) => (with_causes(&error), "`hangar sync` says what to do"),
    };
    Check::not(State::Missing, "remote", detail, remedy)
}

/// Whether the remote answers, and holds what this clone can sync with.
pub(super) fn remote(here: &Here, repo: Option<&Repository>) -> Vec<Check> {
    let Some(repo) = repo else { return Vec::new() };
    let policy = Layout::of(repo).and_then(|layout| pins::load(repo, &layout));
    let name = match remote::chosen(here, repo, policy.ok().as_ref()) {
        Ok(name) => name,
        Err(error) => return vec![missing("remote", &error, "")],
    };
    let is_set = repo
        .config_value(&format!("remote.{name}.url"))
        .is_some_and(|url| !url.is_empty());
    if !is_set {
        return vec![Check::ok("remote", "none; this repository stands alone")];
    }
    if here.offline {
        return vec![Check::ok(
            "remote",
            format!("{name}, not asked (--offline)"),
        )];
    }
    let policies = Prefix::ALL.map(|prefix| Layout::at(prefix).policy());
    let names = [policies[0].as_str(), policies[1].as_str()];
    let check = match repo.list_remote(&name, &names, PATIENCE) {
        Ok(refs) if !refs.iter().any(|(name, _)| policies.contains(name)) => {
            Check::ok("remote", format!("{name} answers; it holds no policy"))
        }
        Ok(_) => held(repo, &name),
        Err(error) => Check::not(
            State::Warn,
            "remote",
            with_causes(&error),
            "work goes on without it; what is not published says so",
        ),
    };
    vec![check]
}
