//! The branches that this clone knows as the default one, and whether a commit was landed there.

use super::{Error, Here, remote as remotes};
use crate::git::Repository;
use crate::model::object_id::ObjectId;
use crate::store::Store;

/// The remote's name. Where the user's configuration can't be read, the usual one: verifying needs
/// nothing of a user.
pub(super) fn remote(here: &Here, store: &Store) -> String {
    let chosen = remotes::chosen(here, &store.repo, Some(&*store.policy));
    chosen.unwrap_or_else(|_| "origin".to_owned())
}

/// The remote's default branch as it last showed it: the name of the ref, and its tip. `None` where this
/// clone has no branch of the remote. Several, of which none is known to be the default one, are an error.
/// The policy is not asked which remote that is: this is what the policy is held against.
pub(super) fn remote_default(
    here: &Here,
    repo: &Repository,
) -> Result<Option<(String, ObjectId)>, Error> {
    let remote = remotes::chosen(here, repo, None);
    let remote = remote.unwrap_or_else(|_| "origin".to_owned());
    let tracking = format!("refs/remotes/{remote}/");
    let names = default_names(repo, &remote).into_iter();
    let mut known = names.filter(|name| name.starts_with(&tracking));
    let found = known.find_map(|name| Some((name.clone(), repo.resolve(&name).ok()?)));
    if found.is_some() {
        return Ok(found);
    }
    let mut all = repo.list_refs(&tracking)?.into_iter();
    match (all.next(), all.next()) {
        (Some(_), Some(_)) => Err(Error::NoDefaultBranch { remote }),
        (only, _) => Ok(only),
    }
}

/// Why nothing here says that `base` was ever landed: what it holds, workflows included, is then only
/// its creator's word. `None` where the default branch holds it, here or as the remote last showed it,
/// or where a shallow history can't tell.
pub(super) fn unlanded(store: &Store, remote: &str, base: ObjectId) -> Option<String> {
    let repo = &store.repo;
    let names = default_names(repo, remote);
    let known = names
        .iter()
        .filter_map(|name| Some((name, repo.resolve(name).ok()?)));
    let known: Vec<(&String, ObjectId)> = known.collect();
    if known.is_empty() {
        return Some(format!(
            "nothing says that the base {} was ever landed: this clone knows no default branch",
            base.short()
        ));
    }
    let mut tips: Vec<ObjectId> = known.iter().map(|(_, tip)| *tip).collect();
    tips.sort_unstable();
    tips.dedup();
    let holds = |tip: &ObjectId| repo.is_ancestor(base, *tip).unwrap_or(true);
    if tips.iter().any(holds) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in known {
        let short = name.strip_prefix("refs/heads/");
        let short = short.or_else(|| name.strip_prefix("refs/remotes/"));
        let short = short.unwrap_or(name).to_owned();
        if !names.contains(&short) {
            names.push(short);
        }
    }
    Some(format!(
        "the base {} was never landed on {}, as far as this clone knows: read what it holds, workflows included",
        base.short(),
        names.join(", ")
    ))
}

/// Where a revision may have left a branch: its tip as the remote last showed it, and the one here. Without a
/// name: of the default branch, each side by the first name that it has.
pub(super) fn grounds(store: &Store, remote: &str, branch: Option<&str>) -> Vec<ObjectId> {
    let tip = |name: &String| store.repo.resolve(name).ok();
    let (here, there): (Vec<_>, Vec<_>) = names_of(&store.repo, remote, branch)
        .into_iter()
        .partition(|name| name.starts_with("refs/heads/"));
    let sides = [there, here].into_iter();
    sides
        .filter_map(|names| names.iter().find_map(tip))
        .collect()
}

/// Tips of a branch, as the remote last showed it, then here. Without a name: the default branch.
pub(super) fn branch_tips(store: &Store, remote: &str, branch: Option<&str>) -> Vec<ObjectId> {
    let names = names_of(&store.repo, remote, branch);
    // A name that is not there, or is not well formed, is no tip.
    let tips = names
        .iter()
        .filter_map(|name| store.repo.resolve(name).ok());
    tips.collect()
}

fn names_of(repo: &Repository, remote: &str, branch: Option<&str>) -> Vec<String> {
    match branch {
        Some(branch) => {
            let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
            vec![
                format!("refs/remotes/{remote}/{branch}"),
                format!("refs/heads/{branch}"),
            ]
        }
        None => default_names(repo, remote),
    }
}

fn default_names(repo: &Repository, remote: &str) -> Vec<String> {
    let mut names = vec![format!("refs/remotes/{remote}/HEAD")];
    let branches = [
        repo.config_value("init.defaultBranch").unwrap_or_default(),
        "main".to_owned(),
        "master".to_owned(),
    ];
    let branches = branches.iter().filter(|name| !name.is_empty());
    for branch in branches {
        names.push(format!("refs/remotes/{remote}/{branch}"));
        names.push(format!("refs/heads/{branch}"));
    }
    names
}
