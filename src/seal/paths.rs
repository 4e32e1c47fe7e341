//! Which paths a sealed file may have.

use std::collections::HashMap;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// Longest path component, in bytes.
const MAX_COMPONENT: usize = 255;
/// Longest path, in bytes.
const MAX_PATH: usize = 1024;

/// Why a path is not accepted. Paths of sealed files are hidden: this says nothing of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PathFault {
    /// Empty, absolute, or with an empty, `.` or `..` component.
    #[error("it is not a plain relative path")]
    NotRelative,
    /// A component over 255 bytes, or more than 1024 bytes in all.
    #[error("it is too long")]
    TooLong,
    /// A control character or a backslash.
    #[error("it holds a control character or a backslash")]
    Character,
    /// Not UTF-8 in normal form C.
    #[error("it is not UTF-8 in Unicode normal form C")]
    NotNormal,
    /// A component that some file system takes for `.git`.
    #[error("a part of it stands for `.git`")]
    DotGit,
    /// `criteria.json` in the root, which is the criteria map itself.
    #[error("the name is reserved for the criteria map")]
    Reserved,
    /// Twice the same, the same but for case, or a file where another path has a folder.
    #[error("two paths are one where case does not count, or one is a file and a folder")]
    Collision,
}

/// Checks one path (relative to the repository root, `/` between components).
pub fn check_path(path: &str) -> Result<(), PathFault> {
    if path.len() > MAX_PATH {
        return Err(PathFault::TooLong);
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err(PathFault::Character);
    }
    if !is_nfc(path) {
        return Err(PathFault::NotNormal);
    }
    if path == super::CRITERIA {
        return Err(PathFault::Reserved);
    }
    path.split('/').try_for_each(check_component)
}

fn check_component(name: &str) -> Result<(), PathFault> {
    if matches!(name, "" | "." | "..") {
        return Err(PathFault::NotRelative);
    }
    if name.len() > MAX_COMPONENT {
        return Err(PathFault::TooLong);
    }
    // HFS+ ignores invisible characters; NTFS ignores dots and spaces at the end and reads what
    // follows a colon as a stream.
    let plain: String = name
        .chars()
        .filter(|c| !is_invisible(*c))
        .flat_map(char::to_lowercase)
        .collect();
    let plain = plain.split(':').next().unwrap_or_default();
    if matches!(plain.trim_end_matches(['.', ' ']), ".git" | "git~1") {
        return Err(PathFault::DotGit);
    }
    Ok(())
}

const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}

/// Checks every path and that none collides with another.
pub fn check_paths<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<(), PathFault> {
    // Folded path of each file and folder → its spelling and whether it is a file.
    let mut seen: HashMap<String, (&str, bool)> = HashMap::new();
    seen.insert(super::CRITERIA.to_owned(), (super::CRITERIA, true));
    for path in paths {
        check_path(path)?;
        let ends = path.match_indices('/').map(|(at, _)| (&path[..at], false));
        for (part, is_file) in ends.chain([(path, true)]) {
            match seen.insert(fold(part), (part, is_file)) {
                Some(other) if is_file || other != (part, false) => {
                    return Err(PathFault::Collision);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The form in which names are compared where case does not count.
fn fold(path: &str) -> String {
    path.nfd()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_accepted() {
        for path in [
            "tests/test_a.py",
            "a",
            "a b/c-d.e",
            "caf\u{e9}",
            ".gitignore",
            "sub/criteria.json",
            "git",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn paths_that_leave_the_root_or_hit_git_are_refused() {
        use PathFault::{Character, DotGit, NotNormal, NotRelative, Reserved, TooLong};
        let long = "x".repeat(256);
        let longer = "x/".repeat(600) + "x";
        for (path, fault) in [
            ("", NotRelative),
            ("/etc/passwd", NotRelative),
            ("a//b", NotRelative),
            ("a/", NotRelative),
            ("../x", NotRelative),
            ("a/../b", NotRelative),
            ("./a", NotRelative),
            (".git/hooks/pre-commit", DotGit),
            ("sub/.GIT/config", DotGit),
            (".git. ", DotGit),
            (".g\u{200d}it/x", DotGit),
            ("GIT~1/x", DotGit),
            (".git::$INDEX_ALLOCATION/x", DotGit),
            ("a\0b", Character),
            ("a\nb", Character),
            ("a\\..\\b", Character),
            ("cafe\u{301}", NotNormal),
            ("criteria.json", Reserved),
            (&long, TooLong),
            (&longer, TooLong),
        ] {
            assert_eq!(check_path(path), Err(fault), "{path:?}");
        }
    }

    #[test]
    fn collisions_are_refused() {
        for pair in [
            ["a", "a"],
            ["README", "readme"],
            ["Tests/a", "tests/b"],
            ["a", "a/b"],
            ["a/b", "a"],
            ["STRASSE", "stra\u{df}e"],
            ["x", "Criteria.json"],
            ["x", "criteria.json/y"],
        ] {
            assert_eq!(check_paths(pair), Err(PathFault::Collision), "{pair:?}");
        }
        assert_eq!(check_paths(["a/b", "a/c", "ab", "a.b", "b/a"]), Ok(()));
    }
}
