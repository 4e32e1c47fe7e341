//! What a package or a module can make Go mean in the files of the tests: the words of the universe block
//! ("Predeclared identifiers" in the specification of Go), and the version of the language ("go directive" in
//! the reference of modules; since 1.22 each round of a loop has variables of its own).

use super::Sides;
use super::go_scan::Source;
use crate::grade::manifest::{Tree, has_extension};
use crate::grade::suite::Suite;
use std::collections::{BTreeMap, BTreeSet};

const PREDECLARED: [&str; 44] = [
    "any",
    "append",
    "bool",
    "byte",
    "cap",
    "clear",
    "close",
    "comparable",
    "complex",
    "complex128",
    "complex64",
    "copy",
    "delete",
    "error",
    "false",
    "float32",
    "float64",
    "imag",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "iota",
    "len",
    "make",
    "max",
    "min",
    "new",
    "nil",
    "panic",
    "print",
    "println",
    "real",
    "recover",
    "rune",
    "string",
    "true",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uintptr",
];

/// Files of the graded tree that give what kept files say another meaning.
pub(super) fn redefined(suite: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
    let mut found = words(suite, sides);
    found.extend(modules(sides));
    found
}

/// Files that declare a predeclared word, which the base's package does not, beside kept files of the same
/// package that use it.
fn words(suite: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
    let used = used(suite, sides);
    let own = declared(sides.base, sides.kept, &used);
    let mut found = BTreeSet::new();
    for (path, package, words) in declared(sides.graded, sides.kept, &used) {
        let at_base = own.iter().filter(|(_, same, _)| *same == package);
        let at_base: BTreeSet<&String> = at_base.flat_map(|(.., words)| words).collect();
        if words.iter().any(|word| !at_base.contains(word)) {
            found.insert(path);
        }
    }
    found
}

/// Each go.mod that counts for kept files and asks for an older Go, or another behaviour of it, than the one
/// that counted for them on the base.
fn modules(sides: &Sides<'_>) -> BTreeSet<String> {
    let kept = sides.kept.iter().filter(|path| has_extension(path, "go"));
    let folders: BTreeSet<&str> = kept.map(|path| folder(path)).collect();
    let changed = folders.into_iter().filter_map(|folder| {
        let new = module_of(folder, sides.graded)?;
        let read = |tree: Tree<'_>, path: &str| {
            let text = (tree.read)(path)?;
            Some(Language::of(&String::from_utf8_lossy(&text)))
        };
        let old = module_of(folder, sides.base).and_then(|old| read(sides.base, &old))?;
        let same = read(sides.graded, &new)
            .is_some_and(|new| new.version >= old.version && new.settings == old.settings);
        (!same).then_some(new)
    });
    changed.collect()
}

/// The go.mod of the module that a folder belongs to.
fn module_of(folder: &str, tree: Tree<'_>) -> Option<String> {
    let mut at = folder;
    loop {
        let path = if at.is_empty() {
            "go.mod".to_owned()
        } else {
            format!("{at}/go.mod")
        };
        if tree.has(&path) {
            return Some(path);
        }
        if at.is_empty() {
            return None;
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

/// What a go.mod says of the language.
#[derive(Debug, PartialEq, Eq)]
struct Language {
    /// Major and minor number; without a directive it is 1.16.
    version: (u32, u32),
    /// `godebug` settings.
    settings: BTreeSet<String>,
}

impl Language {
    fn of(text: &str) -> Self {
        let mut language = Self {
            version: (1, 16),
            settings: BTreeSet::new(),
        };
        let mut block = "";
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or(line).trim();
            match line.split_once(char::is_whitespace).unwrap_or((line, "")) {
                (")", _) => block = "",
                (word, "(") => block = word,
                ("go", version) => language.version = numbers(version.trim_matches(['"', '`'])),
                ("godebug", setting) => {
                    language.settings.insert(setting.trim().to_owned());
                }
                _ if block == "godebug" => {
                    language.settings.insert(line.to_owned());
                }
                _ => {}
            }
        }
        language
    }
}

/// `1.22.3` and `1.22rc1` are 1.22.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.trim().split('.').map(|part| {
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        part[..digits].parse().unwrap_or(0)
    });
    let mut next = || parts.next().unwrap_or(0);
    (next(), next())
}

/// A package: its folder and its name, since the tests from outside one stand in its folder.
type Package = (String, String);

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The predeclared words that the kept files of each package use.
fn used(suite: &Suite, sides: &Sides<'_>) -> BTreeMap<Package, BTreeSet<String>> {
    let mut used: BTreeMap<Package, BTreeSet<String>> = BTreeMap::new();
    for path in sides.kept.iter().filter(|path| has_extension(path, "go")) {
        let sealed = suite.file(path).map(|file| file.text.expose().to_vec());
        let text = sealed.or_else(|| (sides.base.read)(path));
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let source = Source::read(&text);
        let words = PREDECLARED
            .iter()
            .filter(|word| source.words.contains(*word));
        let package = (folder(path).to_owned(), source.package.to_owned());
        let known = used.entry(package).or_default();
        known.extend(words.map(|word| (*word).to_owned()));
    }
    used
}

/// Which of these words each other file of the packages declares. One that can't be read may declare all.
fn declared(
    tree: Tree<'_>,
    kept: &BTreeSet<String>,
    used: &BTreeMap<Package, BTreeSet<String>>,
) -> Vec<(String, Package, BTreeSet<String>)> {
    let mut found = Vec::new();
    let sources = tree
        .paths
        .iter()
        .filter(|path| has_extension(path, "go") && !kept.contains(*path));
    for path in sources {
        let packages = used.iter().filter(|((of, _), _)| of == folder(path));
        let text = packages.clone().next().and_then(|_| (tree.read)(path));
        let text = text.as_deref().map(String::from_utf8_lossy);
        let source = text.as_deref().map(Source::read);
        for (package, words) in packages {
            let declares = |word: &&String| match &source {
                Some(source) => {
                    source.package == package.1 && source.declares.contains(word.as_str())
                }
                None => true,
            };
            let words = words.iter().filter(declares).cloned().collect();
            found.push((path.clone(), package.clone(), words));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_which_language_it_is_written_in() {
        let of = |text: &str| Language::of(text);
        assert_eq!(of("module x\n").version, (1, 16));
        for text in [
            "go 1.22",
            "module x // go 1.3\n\ngo 1.22.3 // why\n",
            "go 1.22rc1\ntoolchain go1.23.1",
        ] {
            assert_eq!(of(text).version, (1, 22), "{text}");
        }
        let block = of("godebug (\n\tpanicnil=1\n\tx=2 // y\n)\nrequire (\n\ta v1\n)\n");
        assert_eq!(
            block.settings,
            of("godebug x=2\ngodebug panicnil=1\n").settings
        );
        assert_eq!(block.settings.len(), 2);
    }
}
