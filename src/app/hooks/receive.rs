//! `pre-receive`: a server that takes nothing which a reader would not believe.

use super::{Verdict, object, unread};
use crate::app::{Error, Here};
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::store::receive::{Refused, Update, judge};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where a server's Git configuration says which repository it is for.
const WANTED: &str = "hangar.repo";

const HINT: &str = "nothing of this push was taken";

pub(super) fn check(here: &Here, repo: Repository, lines: &str) -> Result<Verdict, Error> {
    let updates = lines.lines().map(update).collect::<Result<Vec<_>, _>>()?;
    let wanted = repo.config_value(WANTED);
    let wanted = wanted.map(|text| text.parse()).transpose().map_err(|_| {
        Error::invalid(format!("`{WANTED}` of this server is no digest (sha256:…)"))
    })?;
    let repo = repo.reading_also(&quarantine(here)?)?;
    let refused = judge(repo, &updates, wanted, here.clock)?;
    let hints = hints(&refused);
    Ok(Verdict { refused, hints })
}

/// Most documents that are named: the pusher's own `hangar sync` names all.
const NAMED: usize = 8;

fn hints(refused: &[Refused]) -> Vec<String> {
    let Some(first) = refused.iter().find(|one| !one.lost.is_empty()) else {
        let any = (!refused.is_empty()).then(|| HINT.to_owned());
        return any.into_iter().collect();
    };
    let all: BTreeSet<&Digest> = refused.iter().flat_map(|one| &one.lost).collect();
    let named: Vec<_> = all.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match all.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more, which `hangar sync` names in the clone that has them"),
    };
    // Each is short enough to be passed on whole where it names one document.
    vec![
        HINT.to_owned(),
        "what lost its right since it was signed and is honest, an admin lets in: `hangar sync CLONE` (the path or address of the clone that has it), then".to_owned(),
        format!("`hangar policy adopt {}`{more}; then push again", named.join(" ")),
        "where it is not honest, whoever runs this server takes the ref as it is (it has no effect):".to_owned(),
        format!("`git fetch CLONE {0}:{0}` here", first.name),
    ]
}

/// `OLD NEW NAME`
fn update(line: &str) -> Result<Update, Error> {
    let mut parts = line.splitn(3, ' ');
    let mut next = || parts.next().ok_or_else(unread);
    Ok(Update {
        old: object(next()?)?,
        new: object(next()?)?,
        name: next()?.to_owned(),
    })
}

/// Folders of objects that Git names beside the repository's own: the push lies in one until it is
/// taken.
fn quarantine(here: &Here) -> Result<Vec<PathBuf>, Error> {
    let mut folders = Vec::new();
    if let Some(own) = here.var("GIT_OBJECT_DIRECTORY") {
        folders.push(here.dir.join(own));
    }
    if let Some(list) = here.var("GIT_ALTERNATE_OBJECT_DIRECTORIES") {
        for folder in std::env::split_paths(list) {
            // Git quotes a path that holds what separates two of them.
            if folder.to_string_lossy().starts_with('"') {
                return Err(Error::invalid(
                    "a folder of objects has `:` or `\"` in its name, which this hook can't read",
                ));
            }
            if !folder.as_os_str().is_empty() {
                folders.push(here.dir.join(folder));
            }
        }
    }
    Ok(folders)
}
