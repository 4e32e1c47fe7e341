//! What names mean that JavaScript looks up in package.json: `#name`, a package's own name and its parts, and
//! what a package is that another one of the repository links to. Compared between base and graded tree.
//!
//! Source: Node.js, "Modules: Packages" (subpath imports and patterns, self-referencing). All conditions of an
//! entry are compared, in their order, so it does not matter which of them a runner sets.

use super::Sides;
use crate::grade::manifest::Tree;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const FILE: &str = "package.json";
/// Any text in a pattern whose target is no file of the tree.
const ANYTHING: &str = "\u{1}";

/// Manifests of the graded tree that lead a name elsewhere which on the base meant a file that no patch may
/// change, or something installed. A name that leads nowhere any more does no harm: what asks for it fails.
pub(super) fn redefined(sides: &Sides<'_>) -> BTreeSet<String> {
    let folders = folders(sides.kept);
    let base = manifests(sides.base, &folders);
    let graded = manifests(sides.graded, &folders);
    if base == graded {
        return BTreeSet::new();
    }
    let scopes = folders.into_iter().filter_map(|folder| {
        let new = nearest(folder, &graded)?;
        Some((nearest(folder, &base), new))
    });
    let mut scopes: Vec<_> = scopes.collect();
    scopes.dedup_by_key(|(old, new)| (old.map(|old| old.0), new.0));
    let turned = scopes.into_iter().filter(|(old, new)| {
        let takes = takes_any_name(old.map(|old| old.1), new.1);
        takes || old.is_some_and(|old| turns(old, *new, sides.kept))
    });
    turned.map(|(_, new)| below(new.0, FILE)).collect()
}

/// The folders of these files and all above them; the root is the empty text.
fn folders(files: &BTreeSet<String>) -> BTreeSet<&str> {
    let mut folders = BTreeSet::from([""]);
    for file in files {
        let mut rest = file.as_str();
        while let Some((folder, _)) = rest.rsplit_once('/') {
            if !folders.insert(folder) {
                break;
            }
            rest = folder;
        }
    }
    folders
}

fn below(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

fn manifests<'a>(tree: Tree<'_>, folders: &BTreeSet<&'a str>) -> BTreeMap<&'a str, Manifest> {
    let paths: BTreeSet<&str> = tree.paths.iter().map(String::as_str).collect();
    let of = |folder: &&'a str| {
        let path = below(folder, FILE);
        let is_there = paths.contains(path.as_str());
        is_there.then(|| (*folder, Manifest::read(tree.text(&path).as_deref())))
    };
    folders.iter().filter_map(of).collect()
}

/// The manifest that counts for the files of a folder, and where it lies: there, or nearest above.
fn nearest<'a>(
    folder: &'a str,
    manifests: &'a BTreeMap<&str, Manifest>,
) -> Option<(&'a str, &'a Manifest)> {
    let mut at = folder;
    loop {
        if let Some(manifest) = manifests.get(at) {
            return Some((at, manifest));
        }
        if at.is_empty() {
            return None;
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

/// Whether a manifest calls itself, anew, something that no package is called. Node.js compares the name with
/// all that is asked for, paths of files and parts of other packages among them.
fn takes_any_name(old: Option<&Manifest>, new: &Manifest) -> bool {
    let taken = new
        .name()
        .filter(|name| old.and_then(Manifest::name) != Some(*name));
    taken.is_some_and(|name| {
        let bare = match name.strip_prefix('@') {
            Some(scoped) => scoped.split_once('/').map_or("/", |(_, bare)| bare),
            None => name,
        };
        bare.starts_with('.') || bare.contains(['/', '\\', ':']) || name.starts_with('#')
    })
}

/// Whether the manifest `new`, which counts where `old` did on the base, gives a name another meaning.
fn turns(old: (&str, &Manifest), new: (&str, &Manifest), kept: &BTreeSet<String>) -> bool {
    let folder = old.0;
    let moved = folder != new.0;
    let (imports, parts) = (old.1.imports(), old.1.parts());
    let turns = |before: &Entries, after: &Entries| before.turn(after, folder, moved, kept);
    match (&old.1.0, &new.1.0) {
        (None, _) => false,
        // JavaScript may read what can't be read here.
        (Some(_), None) => imports.matter(folder, kept) || parts.matter(folder, kept),
        (Some(before), Some(after)) => {
            let is_named = !moved || before.is_named_as(after);
            turns(&imports, &new.1.imports()) || is_named && turns(&parts, &new.1.parts())
        }
    }
}

/// What a package.json says that names depend on. `None`: it can't be read.
#[derive(Debug, PartialEq)]
struct Manifest(Option<Written>);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Written {
    name: Target,
    imports: Target,
    exports: Target,
    main: Target,
}

impl Written {
    /// Whether its files can name it as those of another package name that one.
    fn is_named_as(&self, other: &Self) -> bool {
        let names = |one: &Self| {
            matches!(one.name, Target::Path(_)) && !matches!(one.exports, Target::Other(_))
        };
        names(self) && names(other) && self.name == other.name
    }
}

impl Manifest {
    fn read(text: Option<&str>) -> Self {
        let text = text.map(|text| text.trim_start_matches('\u{feff}'));
        Self(text.and_then(|text| serde_json::from_str(text).ok()))
    }

    fn name(&self) -> Option<&str> {
        match &self.0.as_ref()?.name {
            Target::Path(name) => Some(name),
            _ => None,
        }
    }

    fn imports(&self) -> Entries {
        match self.0.as_ref().map(|written| &written.imports) {
            Some(Target::By(entries)) => entries.clone(),
            _ => Entries::default(),
        }
    }

    /// `.` and `./…`. Where a package says nothing, all its files are there by their paths.
    fn parts(&self) -> Entries {
        let Some(written) = &self.0 else {
            return Entries::default();
        };
        let main = || match &written.main {
            Target::Path(main) => Target::Path(format!("./{}", main.trim_start_matches("./"))),
            _ => Target::Path("./index".into()),
        };
        match &written.exports {
            Target::By(entries) if entries.0.iter().any(|(key, _)| key.starts_with('.')) => {
                entries.clone()
            }
            Target::Other(_) => {
                let all = Target::Path("./*".into());
                Entries(vec![(".".into(), main()), ("./*".into(), all)])
            }
            target => Entries(vec![(".".into(), target.clone())]),
        }
    }
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Target {
    Path(String),
    AnyOf(Vec<Self>),
    By(Entries),
    Other(IgnoredAny),
}

impl Default for Target {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl Target {
    fn paths(&self) -> Vec<&str> {
        match self {
            Self::Path(path) => vec![path],
            Self::AnyOf(all) => all.iter().flat_map(Self::paths).collect(),
            Self::By(entries) => entries.0.iter().flat_map(|(_, one)| one.paths()).collect(),
            Self::Other(_) => Vec::new(),
        }
    }
}

/// Keys and what they lead to, in the order of the file: of conditions the first that holds wins.
#[derive(Debug, Clone, Default, PartialEq)]
struct Entries(Vec<(String, Target)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(InOrder)
    }
}

impl Entries {
    /// Which entry tells what a name means: the one that spells it, else the most specific pattern.
    fn of(&self, name: &str) -> Option<usize> {
        let fits = |key: &str| {
            let pattern = Pattern::of(key)?;
            pattern.star(name).map(|_| pattern.rank())
        };
        let spelt = self.0.iter().rposition(|(key, _)| key == name);
        spelt.or_else(|| {
            let ranked = self.0.iter().enumerate();
            let ranked = ranked.filter_map(|(at, (key, _))| Some((fits(key)?, at)));
            ranked.max().map(|(_, at)| at)
        })
    }

    /// Whether a name that means something of `kept`, or something installed, has another entry in `after`,
    /// or one in another folder. `folder` is where these entries stand.
    fn turn(&self, after: &Self, folder: &str, moved: bool, kept: &BTreeSet<String>) -> bool {
        if self == after && !moved {
            return false;
        }
        let counts = |entry: &(String, Target)| matters(entry, folder, kept);
        let counts: Vec<bool> = self.0.iter().map(counts).collect();
        // Of what is installed nobody here knows which names there are: those count that `after` spells.
        let spelt = after.0.iter().map(|(key, _)| key.replace('*', ANYTHING));
        let spelt = spelt.filter(|name| self.of(name).is_some_and(|at| is_outside(&self.0[at].1)));
        let names = self.names(folder, kept).into_iter().chain(spelt);
        names.into_iter().any(|name| {
            let before = self.of(&name).filter(|at| counts[*at]);
            let before = before.and_then(|at| self.0.get(at));
            let after = after.of(&name).and_then(|at| after.0.get(at));
            before.is_some() && after.is_some() && (moved || before != after)
        })
    }

    /// Whether any name leads to what may not change.
    fn matter(&self, folder: &str, kept: &BTreeSet<String>) -> bool {
        self.0.iter().any(|entry| matters(entry, folder, kept))
    }

    /// What these entries give a meaning to. Of a pattern: what leads to files of `kept`, with their
    /// extension and without, and one for all the rest.
    fn names(&self, folder: &str, kept: &BTreeSet<String>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (key, target) in &self.0 {
            names.insert(key.replace('*', ANYTHING));
            let Some(pattern) = Pattern::of(key) else {
                continue;
            };
            for target in target.paths() {
                let files = kept.iter().filter_map(|file| star(target, folder, file));
                let both = files.flat_map(|star| [star, without_extension(star)]);
                names.extend(both.map(|star| pattern.with(star)));
            }
        }
        names
    }
}

/// Whether a target is a package, by its name.
fn is_outside(target: &Target) -> bool {
    target.paths().iter().any(|path| !path.starts_with('.'))
}

/// Whether an entry leads to a file of `kept`, or to a package.
fn matters((_, target): &(String, Target), folder: &str, kept: &BTreeSet<String>) -> bool {
    let leads = |target: &str, file: &String| {
        let target = target.strip_prefix("./").unwrap_or(target);
        let is_file = |inside: &str| {
            let stem = without_extension(inside);
            [inside, stem, stem.trim_end_matches("/index")].contains(&target)
        };
        inside(file, folder).is_some_and(is_file) || star(target, folder, file).is_some()
    };
    let to_kept = |target: &&str| kept.iter().any(|file| leads(target, file));
    is_outside(target) || target.paths().iter().any(to_kept)
}

/// What stands for the stars where a target means this file: for all of them the same.
fn star<'a>(target: &str, folder: &str, file: &'a str) -> Option<&'a str> {
    let target = target.strip_prefix("./").unwrap_or(target);
    let file = inside(file, folder)?;
    let star = match target.matches('*').count() {
        0 => return Pattern::of(target)?.star(file),
        stars => file.len().checked_sub(target.len() - stars)? / stars,
    };
    let before = target.find('*')?;
    let star = file.get(before..before + star)?;
    (!star.is_empty() && target.replace('*', star) == file).then_some(star)
}

/// The path from the folder of a package.
fn inside<'a>(file: &'a str, folder: &str) -> Option<&'a str> {
    let rest = file.strip_prefix(folder)?;
    if folder.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix('/')
}

fn without_extension(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => path,
    }
}

/// A key with a star, or with a slash at its end, as older versions have it.
struct Pattern<'a> {
    before: &'a str,
    after: &'a str,
}

impl<'a> Pattern<'a> {
    fn of(key: &'a str) -> Option<Self> {
        let parts = key.split_once('*');
        let (before, after) = parts.or_else(|| key.ends_with('/').then_some((key, "")))?;
        Some(Self { before, after })
    }

    fn star<'n>(&self, name: &'n str) -> Option<&'n str> {
        let star = name.strip_prefix(self.before)?.strip_suffix(self.after)?;
        (!star.is_empty()).then_some(star)
    }

    const fn rank(&self) -> (usize, usize) {
        (self.before.len(), self.after.len())
    }

    fn with(&self, star: &str) -> String {
        format!("{}{star}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Files<'a> = &'a [(&'a str, &'a str)];

    /// The manifests that turn a name, where `base` becomes `graded`. What lies in `tests/` is kept, and what
    /// has `.testlib.` in its name.
    fn found(base: Files<'_>, graded: Files<'_>) -> Vec<String> {
        let helpers = [
            "tests/check.js",
            "src/help.testlib.js",
            "pkg/index.testlib.js",
        ];
        let paths = |files: Files<'_>| -> Vec<String> {
            let own = files.iter().map(|(path, _)| *path);
            own.chain(helpers).map(str::to_owned).collect()
        };
        let (base_paths, graded_paths) = (paths(base), paths(graded));
        let read = |files: Files<'_>, path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let (of_base, of_graded) = (
            |path: &str| read(base, path),
            |path: &str| read(graded, path),
        );
        let found = redefined(&Sides {
            base: Tree {
                paths: &base_paths,
                read: &of_base,
            },
            graded: Tree {
                paths: &graded_paths,
                read: &of_graded,
            },
            kept: &helpers.map(str::to_owned).into(),
        });
        found.into_iter().collect()
    }

    fn at_root(base: &str, graded: &str) -> bool {
        !found(&[("package.json", base)], &[("package.json", graded)]).is_empty()
    }

    #[test]
    fn a_name_of_a_kept_file_keeps_its_meaning() {
        let imports = r##"{"imports": {"#check": "./tests/check.js", "#own": "./src/own.js"}}"##;
        for graded in [
            r##"{"imports": {"#check": "./src/own.js"}}"##,
            r##"{"imports": {"#check": {"module": "./src/own.js", "default": "./tests/check.js"}}}"##,
            r##"{"imports": {"#check": ["./tests/check.js", "./src/own.js"]}}"##,
            r##"{"imports": {"#ch*": "./src/*.js"}}"##,
            "no JSON",
        ] {
            assert!(at_root(imports, graded), "{graded}");
        }
        for graded in [
            imports,
            r##"{"imports": {"#check": "./tests/check.js", "#own": "./lib/own.js", "#new": "./src/new.js"}}"##,
            r#"{"version": "2"}"#,
        ] {
            assert!(!at_root(imports, graded), "{graded}");
        }
    }

    #[test]
    fn the_order_of_conditions_counts() {
        let base =
            r##"{"imports": {"#c": {"node": "./tests/check.js", "default": "./src/c.js"}}}"##;
        let turned =
            r##"{"imports": {"#c": {"default": "./src/c.js", "node": "./tests/check.js"}}}"##;
        assert!(at_root(base, turned));
    }

    #[test]
    fn a_name_of_a_package_keeps_its_meaning() {
        let base =
            r##"{"imports": {"#expect": "chai", "#lib/*": "lodash/*", "#fs": {"node": "fs"}}}"##;
        for graded in [
            r##"{"imports": {"#expect": "./src/own.js"}}"##,
            r##"{"imports": {"#lib/*": "lodash/*", "#lib/eq": "./src/own.js"}}"##,
            r##"{"imports": {"#lib/e*": "./src/own.js"}}"##,
            r##"{"imports": {"#fs": {"node": "./src/own.js"}}}"##,
        ] {
            assert!(at_root(base, graded), "{graded}");
        }
        let more = base.replace("\"#fs\"", "\"#chalk\": \"chalk\", \"#fs\"");
        assert!(!at_root(base, &more));
    }

    #[test]
    fn patterns_lead_to_kept_files() {
        let base = r#"{"name": "calc", "exports": {".": "./src/own.js", "./*": "./src/*.js"}}"#;
        for graded in [
            r#"{"name": "calc", "exports": {"./*": "./src/*.js", "./help.testlib": "./src/own.js"}}"#,
            r#"{"name": "calc", "exports": {"./*": "./src/*.js", "./help.*": "./src/own.js"}}"#,
            r#"{"name": "calc", "exports": {"./*": "./lib/*.js"}}"#,
        ] {
            assert!(at_root(base, graded), "{graded}");
        }
        for graded in [
            r#"{"name": "calc", "exports": {".": "./lib/new.js", "./*": "./src/*.js", "./new": "./lib/new.js"}}"#,
            r#"{"name": "calc"}"#,
        ] {
            assert_eq!(
                at_root(base, graded),
                graded.ends_with("calc\"}"),
                "{graded}"
            );
        }
    }

    #[test]
    fn all_stars_of_a_target_stand_for_the_same() {
        assert_eq!(star("./tests/*/*.js", "", "tests/a/a.js"), Some("a"));
        assert_eq!(star("./tests/*/*.js", "", "tests/a/b.js"), None);
        assert_eq!(star("./*/x/*/*.js", "p", "p/é/x/é/é.js"), Some("é"));
        assert_eq!(star("./tests/**.js", "", "tests/abab.js"), Some("ab"));
        let base = r##"{"imports": {"#kit/*": "./*/*.js"}}"##;
        let kept = base.replace("./*/*.js", "./tests/*.js");
        let turned = kept.replace("}}", r##", "#kit/check": "./own.js"}}"##);
        assert!(at_root(&kept, &turned));
    }

    #[test]
    fn a_name_that_no_package_has_is_taken_by_none() {
        for name in [
            "./check",
            "../calc.js",
            "lodash/isEqual",
            "@a/b/c",
            "#x",
            "/src/x",
            "node:assert",
        ] {
            assert!(
                at_root(r#"{"name": "calc"}"#, &format!(r#"{{"name": "{name}"}}"#)),
                "{name}"
            );
            assert_eq!(
                found(
                    &[],
                    &[("src/package.json", &format!(r#"{{"name": "{name}"}}"#))]
                )
                .len(),
                1
            );
        }
        for name in ["other", "@scope/other", "other.js", "calc"] {
            assert!(
                !at_root(r#"{"name": "calc"}"#, &format!(r#"{{"name": "{name}"}}"#)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_package_that_others_link_to_keeps_what_it_gives() {
        let base = r#"{"name": "pkg", "main": "index.testlib"}"#;
        let turned = |graded: &str| {
            let found = found(
                &[("pkg/package.json", base)],
                &[("pkg/package.json", graded)],
            );
            found == ["pkg/package.json"]
        };
        assert!(turned(r#"{"name": "pkg", "main": "own.js"}"#));
        assert!(turned(r#"{"name": "pkg", "exports": "./own.js"}"#));
        assert!(turned(r#"{"name": "pkg", "exports": {".": "./own.js"}}"#));
        assert!(turned(
            r#"{"name": "pkg", "main": "index.testlib", "exports": {"./index.testlib.js": "./own.js"}}"#
        ));
        assert!(!turned(
            r#"{"name": "pkg", "main": "./index.testlib", "version": "2"}"#
        ));
        assert!(!at_root(
            r#"{"main": "a.js"}"#,
            r#"{"exports": {".": "./b.js", "./c": "./c.js"}}"#
        ));
    }

    #[test]
    fn a_manifest_nearer_to_the_tests_does_not_take_their_names() {
        let root = r##"{"name": "calc", "imports": {"#help": "./src/help.testlib.js"},
            "exports": {"./check": "./tests/check.js"}}"##;
        let base: Files<'_> = &[("package.json", root)];
        let nearer =
            |text: &str| found(base, &[("package.json", root), ("src/package.json", text)]);
        let turned = ["src/package.json"];
        assert_eq!(nearer(r##"{"imports": {"#help": "./own.js"}}"##), turned);
        assert_eq!(
            nearer(r#"{"name": "calc", "exports": {"./check": "./own.js"}}"#),
            turned
        );
        assert!(nearer(r#"{"type": "module"}"#).is_empty());
        assert!(
            nearer(r##"{"name": "sub", "imports": {"#own": "./own.js"}, "main": "x.js"}"##)
                .is_empty()
        );
    }
}
