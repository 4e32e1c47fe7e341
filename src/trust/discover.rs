//! Finding the key that a person signs with.
//!
//! Order: Git's `user.signingKey` when `gpg.format = ssh`, then `~/.ssh/id_*`, then what the agent
//! holds. Nothing here comes from a file that the repository carries.

use super::agent::{Agent, AgentError};
use super::file::{AskPassphrase, KeyFile, KeyFileError, Peek, peek};
use super::key::{KeyError, PublicKey};
use super::signer::{SignError, Signer};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names in `~/.ssh` that are tried first, in this order; other `id_*` follow by name.
const FIRST: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];
/// Most files of `~/.ssh` that are looked at.
const MAX_FILES: usize = 100;
/// Longest public key file that is read, in bytes.
const MAX_PUBLIC: u64 = 16 << 10;

/// What the search looks at. The caller reads configuration and environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoveryInput {
    /// Git's `user.signingKey`.
    pub signing_key: Option<String>,
    /// Git's `gpg.format`.
    pub gpg_format: Option<String>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// `SSH_AUTH_SOCK`.
    pub agent_socket: Option<PathBuf>,
}

/// Where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Git's `user.signingKey`.
    GitConfig,
    /// A file in `~/.ssh`.
    File(PathBuf),
    /// The agent's list, with its comment.
    Agent(String),
}

/// How a key signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// With a private key file, in this process.
    File {
        /// The file.
        path: PathBuf,
        /// Whether it needs a passphrase.
        encrypted: bool,
    },
    /// Through the agent.
    Agent(Agent),
    /// Through `ssh-keygen`: a FIDO key that no agent holds.
    Program(PathBuf),
}

/// A key that this person could sign with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The public half.
    pub public: PublicKey,
    /// Where it was found.
    pub source: Source,
    /// How it signs.
    pub how: How,
}

impl Candidate {
    /// Makes it ready to sign, asking for a passphrase where the file has one.
    pub fn open(&self, ask: &mut AskPassphrase<'_>) -> Result<Signer, SignError> {
        Ok(match &self.how {
            How::File { path, .. } => Signer::from_file(KeyFile::open(path, ask)?),
            How::Agent(agent) => Signer::from_agent(agent.clone(), self.public.clone()),
            How::Program(path) => Signer::from_program(path, self.public.clone()),
        })
    }
}

/// Why something that looked like a key was left out.
#[derive(Debug, thiserror::Error)]
pub enum SkipReason {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The agent did not answer.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// Something that looked like a key.
#[derive(Debug)]
pub struct Skipped {
    /// The file or socket.
    pub path: PathBuf,
    /// Why it was left out.
    pub reason: SkipReason,
}

/// What was found, best first.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Keys that can sign; the first is the one to take.
    pub candidates: Vec<Candidate>,
    /// What was left out and why.
    pub skipped: Vec<Skipped>,
}

/// The user named a key that can't be used. No other is taken in its place.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// `user.signingKey` holds no accepted public key.
    #[error("Git's user.signingKey is no key that can be used")]
    Key(#[source] KeyError),
    /// The file that `user.signingKey` names can't be used.
    #[error("the file that Git's user.signingKey names can't be used")]
    File(#[from] KeyFileError),
    /// Neither a file nor the agent has the private half.
    #[error(
        "Git's user.signingKey names {0}, but no key file and no ssh-agent has its private half"
    )]
    NoPrivateHalf(String),
}

/// Looks for keys in the stated order. A key is listed once, where it was found first.
pub fn discover(input: &DiscoveryInput) -> Result<Discovery, DiscoverError> {
    let mut search = Search::new(input);
    if input.gpg_format.as_deref() == Some("ssh")
        && let Some(text) = input.signing_key.as_deref().filter(|text| !text.is_empty())
    {
        let candidate = search.signing_key(text)?;
        search.add(candidate);
    }
    for (path, found) in std::mem::take(&mut search.files) {
        let how = search.how(&path, &found);
        search.add(Candidate {
            public: found.public,
            source: Source::File(path),
            how,
        });
    }
    for (public, comment) in std::mem::take(&mut search.held) {
        if let Some(agent) = search.agent.clone() {
            search.add(Candidate {
                public,
                source: Source::Agent(comment),
                how: How::Agent(agent),
            });
        }
    }
    Ok(search.found)
}

struct Search<'a> {
    home: Option<&'a Path>,
    agent: Option<Agent>,
    /// The agent's keys with their comments.
    held: Vec<(PublicKey, String)>,
    held_set: BTreeSet<PublicKey>,
    /// Usable private key files in `~/.ssh`.
    files: Vec<(PathBuf, Peek)>,
    seen: BTreeSet<PublicKey>,
    found: Discovery,
}

impl<'a> Search<'a> {
    fn new(input: &'a DiscoveryInput) -> Self {
        let mut search = Self {
            home: input.home.as_deref(),
            agent: input.agent_socket.clone().map(Agent::new),
            held: Vec::new(),
            held_set: BTreeSet::new(),
            files: Vec::new(),
            seen: BTreeSet::new(),
            found: Discovery::default(),
        };
        search.list_agent();
        search.list_files();
        search
    }

    fn list_agent(&mut self) {
        let Some(agent) = &self.agent else { return };
        match agent.keys() {
            Ok(keys) => {
                self.held_set = keys.iter().map(|key| key.public.clone()).collect();
                self.held = keys
                    .into_iter()
                    .map(|key| (key.public, key.comment))
                    .collect();
            }
            Err(error) => {
                let path = agent.socket().to_owned();
                self.skip(path, error);
            }
        }
    }

    fn list_files(&mut self) {
        let Some(dir) = self.home.map(|home| home.join(".ssh")) else {
            return;
        };
        for path in key_files(&dir) {
            match peek(&path) {
                Ok(found) => self.files.push((path, found)),
                // `id_notes.txt` is no failure; a key's own name with something else in it is.
                Err(KeyFileError::Malformed { .. }) if !is_keys_name(&path) => {}
                Err(error) => self.skip(path, error),
            }
        }
    }

    fn skip(&mut self, path: PathBuf, reason: impl Into<SkipReason>) {
        self.found.skipped.push(Skipped {
            path,
            reason: reason.into(),
        });
    }

    fn add(&mut self, candidate: Candidate) {
        if self.seen.insert(candidate.public.clone()) {
            self.found.candidates.push(candidate);
        }
    }

    /// An unencrypted file signs by itself; otherwise the agent is asked first, because it needs
    /// no passphrase and can keep a touch policy.
    fn how(&self, path: &Path, found: &Peek) -> How {
        let hardware = found.public.algorithm().is_hardware();
        if (found.encrypted || hardware)
            && self.held_set.contains(&found.public)
            && let Some(agent) = &self.agent
        {
            return How::Agent(agent.clone());
        }
        if hardware {
            return How::Program(path.to_owned());
        }
        How::File {
            path: path.to_owned(),
            encrypted: found.encrypted,
        }
    }

    /// `user.signingKey`: a literal public key, or the path of a public or private key file.
    fn signing_key(&self, text: &str) -> Result<Candidate, DiscoverError> {
        let literal = text.strip_prefix("key::").or_else(|| {
            let kinds = ["ssh-", "ecdsa-", "sk-"];
            kinds
                .iter()
                .any(|kind| text.starts_with(kind))
                .then_some(text)
        });
        let (public, how) = match literal {
            Some(key) => {
                let public: PublicKey = key.parse().map_err(DiscoverError::Key)?;
                let how = self.private_half(&public, None)?;
                (public, how)
            }
            None => self.signing_file(&self.expand(text))?,
        };
        Ok(Candidate {
            public,
            source: Source::GitConfig,
            how,
        })
    }

    fn expand(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        }
    }

    fn signing_file(&self, path: &Path) -> Result<(PublicKey, How), DiscoverError> {
        if let Some(text) = read_public(path) {
            let public: PublicKey = text.parse().map_err(DiscoverError::Key)?;
            let how = self.private_half(&public, Some(path))?;
            return Ok((public, how));
        }
        let found = peek(path)?;
        let how = self.how(path, &found);
        Ok((found.public, how))
    }

    /// How to sign for a key of which only the public half was named.
    fn private_half(
        &self,
        public: &PublicKey,
        public_file: Option<&Path>,
    ) -> Result<How, DiscoverError> {
        let beside = public_file
            .filter(|path| path.extension().is_some_and(|ext| ext == "pub"))
            .map(|path| path.with_extension(""));
        let beside = beside.and_then(|path| Some((peek(&path).ok()?, path)));
        if let Some((found, path)) = &beside
            && found.public == *public
        {
            return Ok(self.how(path, found));
        }
        if let Some((path, found)) = self.files.iter().find(|(_, key)| key.public == *public) {
            return Ok(self.how(path, found));
        }
        match &self.agent {
            Some(agent) if self.held_set.contains(public) => Ok(How::Agent(agent.clone())),
            _ => Err(DiscoverError::NoPrivateHalf(
                public.fingerprint().to_string(),
            )),
        }
    }
}

/// `id_*` files of `dir` in the order in which they are tried.
fn key_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            name.starts_with("id_") && Path::new(name).extension() != Some("pub".as_ref())
        })
        .collect();
    names.sort_by_key(|name| {
        let rank = FIRST.iter().position(|first| first == name);
        (rank.unwrap_or(FIRST.len()), name.clone())
    });
    names.truncate(MAX_FILES);
    names.into_iter().map(|name| dir.join(name)).collect()
}

/// Whether OpenSSH itself would take a file of this name for a key.
fn is_keys_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| FIRST.contains(&name))
}

/// The text of a public key file; `None` when it is none.
fn read_public(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_PUBLIC {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let public = ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|kind| text.starts_with(kind));
    public.then_some(text)
}
