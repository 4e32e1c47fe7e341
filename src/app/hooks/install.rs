//! Putting hooks in place, and taking exactly that out again.
//!
//! A hook that was there moves to `NAME.before-hangar` beside ours, which runs it after the check with
//! the same arguments and input. Folders that come with the code, or that other repositories use, are
//! never written to: what has to be added there is said.

use super::Hook;
use crate::app::Error;
use crate::app::here::shell_word;
use crate::base::files;
use crate::git::{HooksFolder, HooksOwner, Repository};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A line that every version of our scripts has.
const MARK: &str = "# Written by hangar, which writes it anew when it changes;";
/// What the name of a hook that was there before ends in.
const BEFORE: &str = ".before-hangar";
/// Most bytes of a hook that are looked at.
const MAX: u64 = 1 << 20;

/// What stands in the place of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Nothing.
    Missing,
    /// Ours, as this version writes it.
    Current,
    /// Ours, of another version, changed or not executable.
    Outdated,
    /// Somebody else's, which calls `hangar hook`.
    Called,
    /// The same, and not executable: Git does not run it.
    Asleep,
    /// Somebody else's.
    Foreign,
}

/// What was done about one hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It was not there.
    Installed,
    /// It was there in another form.
    Updated,
    /// Everything was right.
    Kept,
    /// It was taken out.
    Removed,
    /// Nothing was changed; `why` says why.
    Refused,
}

impl Action {
    /// Whether something is other than before.
    pub const fn changes(self) -> bool {
        matches!(self, Self::Installed | Self::Updated | Self::Removed)
    }
}

/// One hook.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookView {
    /// Git's name for it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What was done.
    pub action: Action,
    /// Whether a hook that was there before runs after it, or was put back.
    pub chained: bool,
    /// Why nothing was done, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Puts these hooks in place.
pub fn install(repo: &Repository, hooks: &[Hook]) -> Result<Vec<HookView>, Error> {
    let folder = repo.hooks_folder()?;
    hooks
        .iter()
        .map(|hook| install_one(&folder, *hook))
        .collect()
}

fn install_one(folder: &HooksFolder, hook: Hook) -> Result<HookView, Error> {
    let place = Place::new(&folder.path, hook);
    let standing = place.standing()?;
    let own = folder.owner == HooksOwner::Repository;
    let (action, why) = match standing {
        Standing::Current | Standing::Called => (Action::Kept, None),
        Standing::Asleep => (Action::Refused, Some(asleep(&place.path))),
        _ if is_no_folder(&folder.path) => {
            let why = format!(
                "core.hooksPath, {}, is no folder, so Git runs no hooks here; \
                 `git config --show-origin core.hooksPath` says where that is set",
                folder.path.display()
            );
            (Action::Refused, Some(why))
        }
        _ if !own => (Action::Refused, Some(place.by_hand(folder.owner))),
        Standing::Foreign => {
            let why = place.why_not_chained()?;
            if why.is_none() {
                // Both names for a moment, so that one hook or the other always runs.
                fs::hard_link(&place.path, &place.before).map_err(|e| place.fail("move", e))?;
                place.write()?;
            }
            let refused = why.is_some();
            (
                if refused {
                    Action::Refused
                } else {
                    Action::Installed
                },
                why,
            )
        }
        Standing::Outdated => (Action::Updated, place.write().map(|()| None)?),
        Standing::Missing => (Action::Installed, place.write().map(|()| None)?),
    };
    Ok(place.view(action, why))
}

/// Hooks from before that ours would run and that are not executable.
pub fn idle(repo: &Repository) -> Result<Vec<PathBuf>, Error> {
    let folder = repo.hooks_folder()?;
    let places = Hook::OF_CLONE.into_iter();
    let before = places.map(|hook| Place::new(&folder.path, hook).before);
    Ok(before
        .filter(|path| path.exists() && !is_executable(path))
        .collect())
}

/// That a hook is there which nothing runs, and how it would be.
fn asleep(path: &Path) -> String {
    format!(
        "{} is not executable, so it does not run; `chmod +x {}` makes it run",
        path.display(),
        shell_word(path)
    )
}

fn is_executable(path: &Path) -> bool {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o111 != 0)
}

/// Whether something else stands there: `/dev/null`, by which people turn hooks off.
fn is_no_folder(path: &Path) -> bool {
    // Without a slash at its end, which would ask for a folder.
    let path: PathBuf = path.components().collect();
    path.exists() && !path.is_dir()
}

/// Takes our hooks out of every folder of this repository where they are.
pub fn remove(repo: &Repository, hooks: &[Hook]) -> Result<Vec<HookView>, Error> {
    let mut done = Vec::new();
    for place in ours(repo, hooks)? {
        let chained = place.has_before();
        if chained {
            fs::rename(&place.before, &place.path).map_err(|e| place.fail("put back", e))?;
        } else {
            fs::remove_file(&place.path).map_err(|e| place.fail("remove", e))?;
        }
        done.push(HookView {
            chained,
            ..place.view(Action::Removed, None)
        });
    }
    Ok(done)
}

/// Where our hooks are.
pub fn installed(repo: &Repository) -> Result<Vec<PathBuf>, Error> {
    let places = ours(repo, &Hook::ALL)?;
    Ok(places.into_iter().map(|place| place.path).collect())
}

fn ours(repo: &Repository, hooks: &[Hook]) -> Result<Vec<Place>, Error> {
    let mut folders = vec![repo.own_hooks()];
    let named = repo.hooks_folder()?;
    if named.owner == HooksOwner::Repository && !same(&named.path, &folders[0]) {
        folders.push(named.path);
    }
    let mut found = Vec::new();
    for folder in folders {
        for hook in hooks {
            let place = Place::new(&folder, *hook);
            let standing = place.standing()?;
            if matches!(standing, Standing::Current | Standing::Outdated) {
                found.push(place);
            }
        }
    }
    Ok(found)
}

fn same(one: &Path, two: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(two)
}

/// What stands where Git looks for the hooks of a clone.
pub fn look(repo: &Repository) -> Result<Vec<(Hook, Standing)>, Error> {
    let folder = repo.hooks_folder()?;
    let look = |hook: Hook| Ok((hook, Place::new(&folder.path, hook).standing()?));
    Hook::OF_CLONE.into_iter().map(look).collect()
}

/// The place of one hook.
struct Place {
    hook: Hook,
    path: PathBuf,
    before: PathBuf,
}

impl Place {
    fn new(folder: &Path, hook: Hook) -> Self {
        Self {
            hook,
            path: folder.join(hook.name()),
            before: folder.join(format!("{}{BEFORE}", hook.name())),
        }
    }

    fn view(&self, action: Action, why: Option<String>) -> HookView {
        let before = action != Action::Refused && self.has_before();
        // Ours passes over one that Git would not have run.
        let idle = before && action != Action::Removed && !is_executable(&self.before);
        HookView {
            name: self.hook.name().to_owned(),
            path: self.path.clone(),
            action,
            chained: before && !idle,
            why: why.or_else(|| idle.then(|| asleep(&self.before))),
        }
    }

    /// The text, and whether Git would run it.
    fn read(&self) -> Result<Option<(Vec<u8>, bool)>, Error> {
        let fail = |source| self.fail("read", source);
        let file = match fs::File::open(&self.path) {
            Ok(file) => file,
            // A link that leads nowhere is no hook, but it is somebody's.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                let link = self.path.symlink_metadata().is_ok();
                return Ok(link.then(|| (Vec::new(), false)));
            }
            Err(error) => return Err(fail(error)),
        };
        let mode = file.metadata().map_err(fail)?.permissions().mode();
        let mut text = Vec::new();
        file.take(MAX).read_to_end(&mut text).map_err(fail)?;
        Ok(Some((text, mode & 0o111 != 0)))
    }

    fn standing(&self) -> Result<Standing, Error> {
        let Some((text, runs)) = self.read()? else {
            return Ok(Standing::Missing);
        };
        let holds = |words: &str| {
            let words = words.as_bytes();
            text.windows(words.len()).any(|window| window == words)
        };
        Ok(if text == self.hook.script().as_bytes() && runs {
            Standing::Current
        } else if holds(MARK) {
            Standing::Outdated
        } else if holds(&format!("hangar hook {}", self.hook.name())) {
            if runs {
                Standing::Called
            } else {
                Standing::Asleep
            }
        } else {
            Standing::Foreign
        })
    }

    fn has_before(&self) -> bool {
        self.before.symlink_metadata().is_ok()
    }

    /// Why the hook that is there can't run under another name.
    fn why_not_chained(&self) -> Result<Option<String>, Error> {
        let shown = self.path.display();
        if self.has_before() {
            return Ok(Some(format!(
                "{shown} is somebody's, and so is {}: take one of them away first",
                self.before.display()
            )));
        }
        let (text, _) = self.read()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let by_name = ["basename", "##*/", "$PROGRAM_NAME", "__FILE__"];
        Ok(by_name.iter().any(|word| text.contains(word)).then(|| {
            format!(
                "{shown} looks at its own name, so it can't run under another; {}",
                self.line()
            )
        }))
    }

    fn write(&self) -> Result<(), Error> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|e| self.fail("create the folder of", e))?;
        }
        Ok(files::write_atomic(
            &self.path,
            self.hook.script().as_bytes(),
            0o755,
        )?)
    }

    /// What to add where hangar does not write.
    fn by_hand(&self, owner: HooksOwner) -> String {
        let folder = self.path.parent().unwrap_or(&self.path).display();
        let whose = match owner {
            HooksOwner::WorkTree => "is in the work tree, and what is there comes with the code",
            _ => "is set for other repositories too",
        };
        format!(
            "core.hooksPath, {folder}, {whose}: hangar writes nothing there; {}",
            self.line()
        )
    }

    fn line(&self) -> String {
        let name = self.hook.name();
        format!(
            "let the {name} hook there run `hangar hook {name} \"$@\" || exit` with its own input"
        )
    }

    fn fail(&self, action: &'static str, source: io::Error) -> Error {
        files::Error {
            action,
            path: self.path.clone(),
            source,
        }
        .into()
    }
}
