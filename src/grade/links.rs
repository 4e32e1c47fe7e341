//! Where symbolic links of a tree lead. Works on listings alone; nothing is followed on disk.

use crate::model::listing::{Listing, Mode};
use std::collections::BTreeSet;

/// Most links that are followed one after the other, as Linux has it (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// The text of a link, by its path.
pub type ReadLink<'a> = dyn Fn(&[u8]) -> Option<Vec<u8>> + 'a;

/// All places that a path leads through by links, the last one first: what is read there in the end. Empty
/// where there is no link on the way, or where it leaves the tree.
pub fn followed(tree: &Listing, read: &ReadLink<'_>, path: &[u8]) -> Vec<Vec<u8>> {
    let mut places = Vec::new();
    let mut at = path.to_vec();
    while places.len() < MAX_LINKS {
        let Some(link) = first_link(tree, &at) else {
            break;
        };
        let rest = at.get(link.len() + 1..).unwrap_or_default();
        let Some(next) = read(&link).and_then(|target| joined(&link, &target, rest)) else {
            return Vec::new();
        };
        places.push(next.clone());
        at = next;
    }
    places.reverse();
    places
}

/// What every link of `tree` that `counts` leads through.
pub fn targets(
    tree: &Listing,
    read: &ReadLink<'_>,
    counts: impl Fn(&[u8]) -> bool,
) -> BTreeSet<Vec<u8>> {
    let links = tree.iter().filter(|(_, entry)| entry.mode == Mode::Symlink);
    let links = links.map(|(path, _)| path).filter(|path| counts(path));
    links.flat_map(|path| followed(tree, read, path)).collect()
}

/// The first link on a path, which may be the whole of it.
fn first_link(tree: &Listing, path: &[u8]) -> Option<Vec<u8>> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let ends = ends.map(|(at, _)| at).chain([path.len()]);
    let mut above = ends.map(|end| &path[..end]);
    let is_link = |path: &&[u8]| {
        tree.get(path)
            .is_some_and(|entry| entry.mode == Mode::Symlink)
    };
    above.find(is_link).map(<[u8]>::to_vec)
}

/// The place that a link's target names, with what follows. `None`: outside of the tree.
fn joined(link: &[u8], target: &[u8], rest: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut out: Vec<&[u8]> = link.split(|byte| *byte == b'/').collect();
    out.pop();
    for part in target
        .split(|byte| *byte == b'/')
        .chain(rest.split(|byte| *byte == b'/'))
    {
        match part {
            b"" | b"." => {}
            b".." => {
                out.pop()?;
            }
            part => out.push(part),
        }
    }
    Some(out.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::listing::Entry;

    fn tree(links: &[(&str, &str)]) -> Listing {
        let mut tree = Listing::new();
        for (path, target) in links {
            tree.insert(*path, Entry::of(Mode::Symlink, target.as_bytes()));
        }
        tree.insert("a/file", Entry::of(Mode::Regular, b"x"));
        tree
    }

    fn of(links: &[(&str, &str)], path: &str) -> Vec<String> {
        let read = |path: &[u8]| {
            let found = links.iter().find(|(have, _)| have.as_bytes() == path);
            found.map(|(_, target)| target.as_bytes().to_vec())
        };
        let places = followed(&tree(links), &read, path.as_bytes());
        places
            .into_iter()
            .map(|place| String::from_utf8(place).unwrap())
            .collect()
    }

    #[test]
    fn links_are_followed_inside_of_the_tree() {
        assert_eq!(of(&[("tests/x", "../a/file")], "tests/x"), ["a/file"]);
        assert_eq!(of(&[("x", "y"), ("y", "./a//file")], "x"), ["a/file", "y"]);
        assert_eq!(of(&[("tests", "a")], "tests/file"), ["a/file"]);
        assert_eq!(of(&[], "a/file"), Vec::<String>::new());
        for target in ["/etc/hosts", "../../x", ".."] {
            let places = of(&[("x", target)], "x");
            assert_eq!(places, Vec::<String>::new(), "{target}");
        }
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(of(&[("x", "y"), ("y", "x")], "x").len(), MAX_LINKS);
        assert_eq!(of(&[("x", "x/x")], "x").len(), MAX_LINKS);
    }
}
