//! Which paths may be in a tree that hangar writes out or takes in.

use super::error::{Error, PathFault};
use super::objects::EntryKind;
use gix::validate::path::component;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization as _;

/// Longest path component, in bytes (`NAME_MAX` of Linux file systems).
const MAX_COMPONENT: usize = 255;
/// Longest path, in bytes.
const MAX_PATH: usize = 4096;
/// Most folders above a file.
pub(super) const MAX_DEPTH: usize = 128;

/// Checks one path component: not empty, `.`, `..`, no `/` or NUL, at most 255 bytes, nothing that
/// HFS+ or NTFS reads as `.git`, and no link that Git would read as one of its own files.
pub fn check_component(name: &[u8], kind: EntryKind) -> Result<(), PathFault> {
    if name.len() > MAX_COMPONENT {
        return Err(PathFault::TooLong);
    }
    if name.contains(&0) {
        return Err(PathFault::NotRelative);
    }
    let options = component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    let mode = (kind == EntryKind::Link).then_some(component::Mode::Symlink);
    // NTFS takes `\` for a separator and what follows `:` for a stream.
    let pieces = name.split(|byte| matches!(byte, b'\\' | b':'));
    for piece in pieces.filter(|piece| *piece != name) {
        let found = gix::validate::path::component(piece.into(), None, options);
        if matches!(found, Err(component::Error::DotGitDir)) {
            return Err(PathFault::DotGit);
        }
    }
    match gix::validate::path::component(name.into(), mode, options) {
        Ok(_) => Ok(()),
        Err(component::Error::DotGitDir) => Err(PathFault::DotGit),
        Err(component::Error::SymlinkedGitModules) => Err(PathFault::SpecialLink),
        Err(_) => Err(PathFault::NotRelative),
    }
}

/// Checks a whole path (`/` between components) of an entry of this kind.
pub fn check_path(path: &[u8], kind: EntryKind) -> Result<(), PathFault> {
    if path.len() > MAX_PATH {
        return Err(PathFault::TooLong);
    }
    let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
    if parts.len() > MAX_DEPTH {
        return Err(PathFault::TooDeep);
    }
    let last = parts.len() - 1;
    for (at, part) in parts.into_iter().enumerate() {
        let kind = if at == last { kind } else { EntryKind::Tree };
        check_component(part, kind)?;
    }
    Ok(())
}

/// Finds paths that are one path where case or Unicode form do not count.
#[derive(Debug, Default)]
pub(super) struct Collisions {
    /// Folded path of a file or folder → the first spelling seen.
    seen: HashMap<Vec<u8>, Vec<u8>>,
}

impl Collisions {
    /// Adds a path and the folders above it; the fault names what it collides with.
    pub(super) fn add(&mut self, path: &[u8]) -> Result<(), PathFault> {
        let folded = fold(path);
        // A folded path has as many `/` as the path: no character folds to or from one.
        let mut ends = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        let mut folded_ends = folded.iter().enumerate().filter(|(_, b)| **b == b'/');
        loop {
            let end = ends.next().map(|(at, _)| at);
            let folded_end = folded_ends.next().map(|(at, _)| at);
            let part = &path[..end.unwrap_or(path.len())];
            let key = &folded[..folded_end.unwrap_or(folded.len())];
            match self.seen.get(key) {
                Some(other) if other != part => return Err(PathFault::Collision(other.clone())),
                Some(_) => {}
                None => {
                    self.seen.insert(key.to_vec(), part.to_vec());
                }
            }
            if end.is_none() {
                return Ok(());
            }
        }
    }
}

/// Checks every path and that no two collide.
pub(super) fn check_all<'a>(
    paths: impl IntoIterator<Item = (&'a [u8], EntryKind)>,
) -> Result<(), Error> {
    let mut collisions = Collisions::default();
    for (path, kind) in paths {
        check_path(path, kind)
            .and_then(|()| collisions.add(path))
            .map_err(|fault| Error::Path {
                path: path.to_vec(),
                fault,
            })?;
    }
    Ok(())
}

/// The form in which two names are compared: decomposed, upper then lower case (so that `ß` meets
/// `ss` and `ſ` meets `s`), composed. Bytes that are not UTF-8 fold by ASCII case alone.
fn fold(path: &[u8]) -> Vec<u8> {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    match std::str::from_utf8(path) {
        Ok(text) => text
            .nfd()
            .filter(|c| !is_ignorable(*c))
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .nfc()
            .collect::<String>()
            .into_bytes(),
        Err(_) => path.to_ascii_lowercase(),
    }
}

/// Characters without a width, which HFS+ leaves out when it compares.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_may_become_dot_git_is_refused() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git ",
            ".git.",
            ".git...",
            "git~1",
            "GIT~1",
            ".git::$DATA",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\\x",
            ".git:x",
            "a\\.git\\hooks",
        ] {
            let fault = check_component(name.as_bytes(), EntryKind::Tree);
            assert_eq!(fault, Err(PathFault::DotGit), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            ".gitx",
            "git",
            "dev-disk-by\\x2duuid",
        ] {
            assert_eq!(
                check_component(name.as_bytes(), EntryKind::Blob),
                Ok(()),
                "{name}"
            );
        }
    }

    #[test]
    fn paths_stay_below_their_root() {
        for path in [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "../x",
            "a/../b",
            "./a",
            "a\0b",
        ] {
            assert!(
                check_path(path.as_bytes(), EntryKind::Blob).is_err(),
                "{path:?}"
            );
        }
        assert_eq!(check_path(b"a/b c/d", EntryKind::Blob), Ok(()));
        assert_eq!(
            check_path(&[b'x'; 256], EntryKind::Blob),
            Err(PathFault::TooLong)
        );
        let deep = vec!["d"; 129].join("/");
        assert_eq!(
            check_path(deep.as_bytes(), EntryKind::Blob),
            Err(PathFault::TooDeep)
        );
        assert_eq!(
            check_path(b"sub/.gitmodules", EntryKind::Link),
            Err(PathFault::SpecialLink)
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_accepted_stays_below_its_root(path in proptest::collection::vec(
            proptest::sample::select(b"a/.gG~1 \0:\\\xe2\x80\x8c".to_vec()), 0..24)
        ) {
            let mut seen = Collisions::default();
            if check_path(&path, EntryKind::Blob).is_ok() {
                seen.add(&path).unwrap();
                for part in path.split(|byte| *byte == b'/') {
                    proptest::prop_assert!(!part.is_empty() && part != b"." && part != b"..");
                    proptest::prop_assert!(!part.eq_ignore_ascii_case(b".git"));
                    proptest::prop_assert!(!part.contains(&0));
                }
            }
        }
    }

    #[test]
    fn names_that_one_file_system_takes_for_one_collide() {
        for (a, b) in [
            ("README", "readme"),
            ("Tests/a", "tests/b"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("STRASSE", "stra\u{df}e"),
            ("a/B/c", "a/b"),
            ("key", "k\u{200d}ey"),
        ] {
            let mut seen = Collisions::default();
            seen.add(a.as_bytes()).unwrap();
            let fault = seen.add(b.as_bytes()).unwrap_err();
            assert!(matches!(fault, PathFault::Collision(_)), "{a} {b}");
        }
        let mut seen = Collisions::default();
        for path in ["a/b", "a/c", "ab", "a.b", "b/a"] {
            seen.add(path.as_bytes()).unwrap();
        }
    }
}
