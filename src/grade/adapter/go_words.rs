//! Words that Go itself gives a meaning and that a package can give another one, for all its files: those of
//! the universe block ("Predeclared identifiers" in the specification of Go).

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

/// Files of the graded tree that declare such a word, which the base's package does not, beside kept files
/// of the same package that use it.
pub(super) fn redefined(suite: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
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
