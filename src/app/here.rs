//! Where a use case runs: folder, environment, clock; and what is found there.

use super::Error;
use super::error::with_causes;
use super::named;
use super::notices::Notices;
use crate::base::clock::Clock;
use crate::config::paths::{Env, Paths};
use crate::config::repository::{self, DeliverAs, Repository as Config};
use crate::config::user::{self, User};
use crate::git::Repository;
use crate::harness::ledger::Ledger;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::policy::Actor;
use crate::store::Store;
use crate::store::identity::holder;
use crate::trust::{
    AskPassphrase, Candidate, Discovery, DiscoveryInput, KeyFileError, Signer, SkipReason, Source,
    discover,
};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What `deliver.as = "pr"` comes to.
pub(super) const NO_PULL_REQUESTS: &str = "pull requests are not made yet; a branch is delivered";

/// What every command says while rival versions of the policy are undecided.
const IN_DOUBT: &str = "rival versions of the policy are here: nothing is decided until one stands (`hangar policy show`)";

/// The surroundings of a use case, given explicitly so that nothing below reads the process's own.
#[derive(Debug, Clone)]
pub struct Here {
    /// The folder that the command is about.
    pub dir: PathBuf,
    /// The environment.
    pub env: Env,
    /// The time.
    pub clock: Clock,
    /// Leave the remote alone.
    pub offline: bool,
    /// Who hears what a command says beside its answer.
    pub notices: Notices,
}

impl Here {
    /// The surroundings of this process.
    pub fn of_process(dir: PathBuf, offline: bool) -> Self {
        Self {
            dir,
            env: std::env::vars_os().collect(),
            clock: Clock::from_env(),
            offline,
            notices: Notices::default(),
        }
    }

    /// A variable of the environment.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        let home = PathBuf::from(self.var("HOME")?);
        home.is_absolute().then_some(home)
    }

    /// The user's folders.
    pub fn paths(&self) -> Result<Paths, Error> {
        Ok(Paths::from_env(&self.env)?)
    }

    /// Health of the user's agent programs.
    pub fn health(&self) -> Result<Ledger, Error> {
        Ok(Ledger::new(&self.paths()?.state, self.clock))
    }

    /// The user configuration; empty when there is no file.
    pub fn user(&self) -> Result<User, Error> {
        let user = User::load(&self.paths()?.config_file, self.home().as_deref())?;
        self.notices.unknown_keys(&user.warnings);
        Ok(user)
    }

    /// The remote that the user's file names. What else is wrong with the file is told, and stops only
    /// what needs it.
    pub(super) fn user_remote(&self) -> Result<Option<String>, Error> {
        let name = user::remote_name(&self.paths()?.config_file)?;
        if let Err(error) = self.user() {
            let text = format!("{}: without effect here", with_causes(&error));
            self.notices.once("user", &text);
        }
        Ok(name)
    }

    /// The repository that the folder lies in. Where Git's own variables name another one, git would
    /// work on that: nothing is done then.
    pub fn repository(&self) -> Result<Repository, Error> {
        let repo = Repository::discover(&self.dir)?;
        let real = |path: &Path| path.canonicalize().ok();
        let named = |variable| {
            let value = self.var(variable).filter(|value| !value.is_empty())?;
            Some(real(&self.dir.join(value)))
        };
        let is = |path: &Path| named("GIT_DIR").is_none_or(|dir| dir == real(path));
        // The work tree that is named is the repository's for whoever asks; the folder must lie in it.
        let outside = |tree: Option<PathBuf>| {
            let folder = real(&self.dir);
            let within = |tree: &PathBuf| folder.as_ref().is_some_and(|one| one.starts_with(tree));
            !tree.as_ref().is_some_and(within)
        };
        let variable = if !is(repo.git_dir()) {
            "GIT_DIR"
        } else if named("GIT_WORK_TREE").is_some_and(outside) {
            "GIT_WORK_TREE"
        } else {
            return Ok(repo);
        };
        let dir = self.dir.clone();
        Err(Error::OtherRepository { variable, dir })
    }

    /// The repository with its verified policy. What `hangar.toml` names must be the policy that the
    /// refs hold; then it is pinned.
    pub fn store(&self) -> Result<Store, Error> {
        let mut store = Store::open(self.repository()?, self.clock)?;
        store.heard = self.notices.reading();
        store.brought = self.notices.brought();
        store.offline = self.offline;
        named::compare(self, &store)?;
        store.pin();
        if !store.policy.rivals().is_empty() {
            self.notices.once("rivals", IN_DOUBT);
        }
        Ok(store)
    }

    /// `hangar.toml` at a commit; `None` when there is none. Unknown keys are told.
    pub fn config_at(&self, repo: &Repository, commit: ObjectId) -> Result<Option<Config>, Error> {
        let config = config_at(repo, commit)?;
        if let Some(config) = &config {
            self.tell(config);
        }
        Ok(config)
    }

    /// Tells what is odd about a file that can be used.
    pub(super) fn tell(&self, config: &Config) {
        self.notices.unknown_keys(&config.warnings);
        self.deliverable(config);
    }

    /// Tells once when a file asks for what is not made yet.
    pub(super) fn deliverable(&self, config: &Config) {
        if config.deliver.form == DeliverAs::Pr {
            let text = format!("`deliver.as = \"pr\"` in hangar.toml: {NO_PULL_REQUESTS}");
            self.notices.once("deliver.as", &text);
        }
    }

    /// How Git is told to work where this command does: `git`, or `git -C DIR`.
    pub fn git(&self) -> String {
        if self.dir == Path::new(".") {
            "git".to_owned()
        } else {
            format!("git -C {}", shell_word(&self.dir))
        }
    }

    /// This repository's own folder for keys, `$XDG_DATA_HOME/hangar/<repo id>`.
    pub fn data_dir(&self, repo: &Digest) -> Result<PathBuf, Error> {
        Ok(self.paths()?.repository_data(&repo.to_string())?)
    }

    /// Every key that the person could sign with, best first.
    pub fn keys(&self, repo: Option<&Repository>) -> Result<Discovery, Error> {
        let value = |key: &str| repo.and_then(|repo| repo.config_value(key));
        Ok(discover(&DiscoveryInput {
            signing_key: value("user.signingKey"),
            gpg_format: value("gpg.format"),
            home: self.home(),
            // Set to nothing is how an agent is switched off.
            agent_socket: self
                .var("SSH_AUTH_SOCK")
                .filter(|socket| !socket.is_empty())
                .map(PathBuf::from),
        })?)
    }

    /// Who would sign here, as the newest policy has it; `None` where it knows no key of this person.
    /// No key is opened.
    pub fn known_actor(&self, store: &Store) -> Result<Option<Actor>, Error> {
        let found = self.keys(Some(&store.repo))?;
        let known = choose(&found, store)
            .and_then(|candidate| holder(store.policy.newest(), &candidate.public).ok());
        Ok(known.map(|(actor, _)| actor))
    }

    /// The person's key, ready to sign: the one that Git's configuration names, else the first that
    /// the policy knows.
    pub fn signer(&self, store: &Store, ask: &mut AskPassphrase<'_>) -> Result<Signer, Error> {
        let found = self.keys(Some(&store.repo))?;
        let candidate = choose(&found, store).ok_or_else(|| no_key(&found))?;
        Ok(candidate.open(ask)?)
    }
}

/// The key to sign with in this repository.
pub(super) fn choose<'a>(found: &'a Discovery, store: &Store) -> Option<&'a Candidate> {
    let first = found.candidates.first()?;
    if first.source == Source::GitConfig {
        return Some(first);
    }
    let newest = store.policy.newest();
    let mut all = found.candidates.iter();
    let known = all.find(|candidate| holder(newest, &candidate.public).is_ok());
    // One that was declared compromised is nobody's for ever.
    let mut all = found.candidates.iter();
    let free = all.find(|one| {
        newest
            .members
            .compromised(&one.public.fingerprint())
            .is_none()
    });
    Some(known.or(free).unwrap_or(first))
}

/// The error that says what was looked at in vain.
pub(super) fn no_key(found: &Discovery) -> Error {
    let skipped = found.skipped.iter();
    Error::NoKey {
        skipped: skipped.map(|one| with_causes(&one.reason)).collect(),
        mend: mend(found),
    }
}

/// What makes a key that was left out one that can be used, as a command.
pub(super) fn mend(found: &Discovery) -> Option<String> {
    found.skipped.iter().find_map(|one| match &one.reason {
        SkipReason::File(KeyFileError::Permissions { path, .. }) => {
            Some(format!("chmod 600 {}", shell_word(path)))
        }
        _ => None,
    })
}

/// A path as it is typed in a shell.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%:=~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// `hangar.toml` at a commit; `None` when there is none.
pub(super) fn config_at(repo: &Repository, commit: ObjectId) -> Result<Option<Config>, Error> {
    let Some(bytes) = repo.blob_at(commit, repository::FILE, crate::config::MAX_FILE)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let name = format!("{}:{}", commit.short(), repository::FILE);
    Ok(Some(Config::parse(Path::new(&name), &text)?))
}
