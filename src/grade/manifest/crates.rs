//! Which code each crate name means: the graph of `cargo metadata`, and whether that of a patched tree
//! gives names of the tests to other code than the base does.
//!
//! Tests name crates. A manifest says what a name means, and a patch may write manifests: it can give
//! its own code the name of a crate that the base takes from outside (`same = { path = …, package = … }`,
//! `[lib] name`, `[patch]`), or of the standard library.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates of the compiler, which a dependency of that name hides.
const COMPILER: [&str; 5] = ["std", "core", "alloc", "test", "proc_macro"];

/// What crate names mean in a package. `None`: cargo could not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meanings {
    /// On the base.
    pub base: Option<Crates>,
    /// In the graded tree.
    pub graded: Option<Crates>,
}

/// The packages of a tree and what they call each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crates {
    packages: BTreeMap<String, Package>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Package {
    /// Its folder, relative to the root of the tree; `None` where it lies elsewhere.
    folder: Option<String>,
    /// Whether it comes from a registry or a Git repository.
    is_outside: bool,
    /// Its own name, as code writes it.
    name: String,
    /// What its library is called by its own tests.
    library: Option<String>,
    /// Names of its dependencies, each with what they mean (several for several platforms).
    uses: BTreeMap<String, BTreeSet<String>>,
    /// Those that its tests can name, each with the platform that it is for.
    seen: BTreeMap<String, BTreeSet<Meaning>>,
}

/// What a name means: a package, on one platform or on every.
type Meaning = (String, Option<String>);

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct RawPackage {
    id: String,
    name: String,
    source: Option<String>,
    manifest_path: String,
    targets: Vec<RawTarget>,
}

#[derive(Deserialize)]
struct RawTarget {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    name: String,
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
    target: Option<String>,
}

impl Crates {
    /// Reads what `cargo metadata --format-version=1` prints of a tree at `root`.
    pub(crate) fn read(json: &[u8], root: &Path) -> Option<Self> {
        let metadata: Metadata = serde_json::from_slice(json).ok()?;
        let mut packages = BTreeMap::new();
        // The root lies elsewhere for another tree: what lies below it is told by its folder.
        let mut ids: BTreeMap<&str, String> = BTreeMap::new();
        for raw in &metadata.packages {
            let folder = Path::new(&raw.manifest_path).parent()?;
            let folder = folder.strip_prefix(root).ok();
            let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
            let id = match (&raw.source, &folder) {
                (None, Some(folder)) => format!("{folder}#{}", raw.name),
                _ => raw.id.clone(),
            };
            let is_library = |target: &&RawTarget| {
                let other = ["bin", "test", "bench", "example", "custom-build"];
                !target
                    .kind
                    .iter()
                    .any(|kind| other.contains(&kind.as_str()))
            };
            let library = raw.targets.iter().find(is_library);
            let package = Package {
                folder,
                is_outside: raw.source.is_some(),
                name: word(&raw.name),
                library: library.map(|target| word(&target.name)),
                ..Package::default()
            };
            ids.insert(&raw.id, id.clone());
            packages.insert(id, package);
        }
        for node in &metadata.resolve.nodes {
            let package = packages.get_mut(ids.get(node.id.as_str())?)?;
            for edge in &node.deps {
                let to = ids.get(edge.pkg.as_str())?.clone();
                let name = word(&edge.name);
                let kinds = edge.dep_kinds.iter();
                let kinds = kinds.filter(|kind| kind.kind.as_deref() != Some("build"));
                for kind in kinds {
                    let meaning = (to.clone(), kind.target.clone());
                    package
                        .seen
                        .entry(name.clone())
                        .or_default()
                        .insert(meaning);
                }
                package.uses.entry(name).or_default().insert(to);
            }
        }
        Some(Self { packages })
    }

    /// What lies in a folder of the tree.
    fn at(&self, folder: &str) -> Option<&Package> {
        let mut packages = self.packages.values();
        packages.find(|package| package.folder.as_deref() == Some(folder) && !package.is_outside)
    }

    fn is_outside(&self, id: &str) -> bool {
        self.packages
            .get(id)
            .is_some_and(|package| package.is_outside)
    }

    /// Every name under which code from outside is known somewhere.
    fn outside_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for package in self.packages.values() {
            if package.is_outside {
                names.insert(package.name.as_str());
                names.extend(package.library.as_deref());
            }
            let uses = package.uses.iter();
            let outside = uses.filter(|(_, ids)| ids.iter().any(|id| self.is_outside(id)));
            names.extend(outside.map(|(name, _)| name.as_str()));
        }
        names
    }

    /// Whether tests of the package in `folder` would meet other code in this tree, under a name that is
    /// not the code under test's, than in `base`. `declared` are packages that the base's files name as
    /// from outside; `words` are the words of the tests.
    ///
    /// What was the repository's own stays free to change, and so is what gets a new name: that it is new
    /// is what the tests are about. Where a dependency from outside is gone, tests that use its name
    /// could be compiled only if something else took it.
    pub(crate) fn replaces(
        &self,
        base: &Self,
        folder: &str,
        declared: &BTreeSet<String>,
        words: &BTreeSet<&str>,
    ) -> bool {
        if self.bends_outside(base) {
            return true;
        }
        let Some(package) = self.at(folder) else {
            return true;
        };
        let none = Package::default();
        let before = base.at(folder).unwrap_or(&none);
        let mut taken = base.outside_names();
        let declared: BTreeSet<String> = declared.iter().map(|name| word(name)).collect();
        taken.extend(declared.iter().map(String::as_str));
        let is_compilers = |name: &str| COMPILER.contains(&name);
        let nothing = BTreeSet::new();
        let from_outside = |meanings: &BTreeSet<Meaning>| {
            let mut ids = meanings.iter().map(|(id, _)| id);
            ids.any(|id| base.is_outside(id))
        };
        let bent = package.seen.iter().any(|(name, now)| {
            let old = before.seen.get(name).unwrap_or(&nothing);
            let is_own = now.iter().any(|(id, _)| !self.is_outside(id));
            (from_outside(old) && !self.are_among(now, base, old))
                || (old.is_empty() && is_own && taken.contains(name.as_str()))
                || (old.is_empty() && is_compilers(name))
        });
        let gone = before.seen.iter().any(|(name, old)| {
            from_outside(old) && !package.seen.contains_key(name) && words.contains(name.as_str())
        });
        let library = package.library.as_deref().is_some_and(|name| {
            let is_new = before.library.as_deref() != Some(name);
            is_new && (taken.contains(name) || is_compilers(name))
        });
        bent || gone || library
    }

    /// Whether each of these meanings is one of `old` and lies where it lay.
    fn are_among(&self, now: &BTreeSet<Meaning>, base: &Self, old: &BTreeSet<Meaning>) -> bool {
        now.iter().all(|meaning| {
            let folder = |of: &Self| of.packages.get(&meaning.0).map(|one| one.folder.clone());
            old.contains(meaning) && folder(self) == folder(base)
        })
    }

    /// Whether a crate from outside uses code of the tree where it did not in the base.
    fn bends_outside(&self, base: &Self) -> bool {
        let outside = self.packages.iter().filter(|(_, one)| one.is_outside);
        let mut uses = outside.flat_map(|(from, package)| {
            let uses = package.uses.iter();
            uses.flat_map(move |(name, ids)| ids.iter().map(move |id| (from, name, id)))
        });
        uses.any(|(from, name, id)| {
            let before = base.packages.get(from);
            let before = before.and_then(|package| package.uses.get(name));
            !self.is_outside(id) && !before.is_some_and(|ids| ids.contains(id))
        })
    }
}

/// A name as code writes it.
fn word(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// A package: its id, its folder or, from outside, none; its library; what it names.
    type Row<'a> = (&'a str, Option<&'a str>, &'a str, &'a [(&'a str, &'a str)]);

    fn graph(rows: &[Row<'_>]) -> Crates {
        let packages: Vec<Value> = rows
            .iter()
            .map(|(id, folder, library, _)| {
                let path = folder.map_or(format!("/home/{id}"), |folder| format!("/src/{folder}"));
                json!({
                    "id": id, "name": id, "source": folder.is_none().then_some("registry"),
                    "manifest_path": format!("{}/Cargo.toml", path.trim_end_matches('/')),
                    "targets": [{"kind": ["test"], "name": "t"}, {"kind": ["lib"], "name": library}],
                })
            })
            .collect();
        let nodes: Vec<Value> = rows
            .iter()
            .map(|(id, _, _, uses)| {
                let edge = |(name, to): &(&str, &str)| {
                    let (to, kind) = to.split_once('!').unwrap_or((to, ""));
                    let kind = (!kind.is_empty()).then_some(kind);
                    json!({"name": name, "pkg": to, "dep_kinds": [{"kind": kind, "target": null}]})
                };
                json!({"id": id, "deps": uses.iter().map(edge).collect::<Vec<_>>()})
            })
            .collect();
        let json = json!({"packages": packages, "resolve": {"nodes": nodes}}).to_string();
        Crates::read(json.as_bytes(), Path::new("/src")).unwrap()
    }

    fn replaces(now: &[Row<'_>], words: &[&str]) -> bool {
        let base = graph(&[
            (
                "calc",
                Some(""),
                "calc",
                &[("help", "help"), ("same", "same!dev")],
            ),
            ("help", Some("help"), "help", &[]),
            ("same", None, "same", &[("inner", "in-ner")]),
            ("in-ner", None, "core_of_it", &[]),
        ]);
        let declared = BTreeSet::from(["not-in-the-graph".to_owned()]);
        graph(now).replaces(&base, "", &declared, &words.iter().copied().collect())
    }

    #[test]
    fn own_code_is_free_and_names_of_code_from_outside_are_not() {
        let help: Row<'_> = ("help", Some("help"), "help", &[]);
        let same: Row<'_> = ("same", None, "same", &[("inner", "in-ner")]);
        let inner: Row<'_> = ("in-ner", None, "core_of_it", &[]);
        let fake: Row<'_> = ("fake", Some("fake"), "fake", &[]);
        let calc = |library, uses| -> Row<'_> { ("calc", Some(""), library, uses) };
        let whole = |uses| vec![calc("calc", uses), help, same, inner, fake];
        let fine: &[&[(&str, &str)]] = &[
            &[("help", "help"), ("same", "same!dev")],
            // Another own crate under an own name, a new name, one more use of what is there.
            &[("help", "fake"), ("same", "same")],
            &[("same", "same!dev"), ("fake", "fake")],
            &[("same", "same!dev"), ("more", "in-ner")],
            &[("help", "help")],
        ];
        for uses in fine {
            assert!(!replaces(&whole(uses), &["calc"]), "{uses:?}");
        }
        let bent: &[&[(&str, &str)]] = &[
            &[("same", "fake!dev")],
            &[("same", "in-ner!dev")],
            &[("same", "same!dev"), ("same", "fake")],
            &[("same", "same!dev"), ("std", "fake")],
            &[("same", "same!dev"), ("core", "in-ner")],
            // Under a name that something from outside has elsewhere, or has where it is not used.
            &[("same", "same!dev"), ("core_of_it", "fake")],
            &[("same", "same!dev"), ("in_ner", "fake")],
            &[("same", "same!dev"), ("not_in_the_graph", "fake")],
        ];
        for uses in bent {
            assert!(replaces(&whole(uses), &["calc"]), "{uses:?}");
        }
        // Its tests can't name what only its build script uses.
        assert!(replaces(&whole(&[("same", "same!build")]), &["same"]));
        assert!(!replaces(&whole(&[("same", "same!build")]), &["calc"]));
    }

    #[test]
    fn a_library_of_the_tests_and_what_outside_code_uses_are_compared_too() {
        let uses: &[(&str, &str)] = &[("same", "same!dev")];
        let fake: Row<'_> = ("fake", Some("fake"), "fake", &[]);
        let same: Row<'_> = ("same", None, "same", &[("inner", "in-ner")]);
        let inner: Row<'_> = ("in-ner", None, "core_of_it", &[]);
        for (library, expected) in [
            ("calc", false),
            ("other", false),
            ("std", true),
            ("in_ner", true),
        ] {
            let rows = [("calc", Some(""), library, uses), same, inner];
            assert_eq!(replaces(&rows, &[]), expected, "{library}");
        }
        let deep: Row<'_> = ("same", None, "same", &[("inner", "fake")]);
        assert!(replaces(
            &[("calc", Some(""), "calc", uses), deep, fake],
            &[]
        ));
        // The package itself is not there.
        assert!(replaces(&[fake], &[]));
    }

    #[test]
    fn a_place_of_the_tree_says_nothing() {
        let json = |root: &str| {
            format!(
                "{{\"packages\":[{{\"id\":\"path+file://{root}/a#1\",\"name\":\"a\",\"source\":null,\
                 \"manifest_path\":\"{root}/a/Cargo.toml\",\"targets\":[]}}],\
                 \"resolve\":{{\"nodes\":[{{\"id\":\"path+file://{root}/a#1\",\"deps\":[]}}]}}}}"
            )
        };
        let read = |root: &str| Crates::read(json(root).as_bytes(), Path::new(root)).unwrap();
        assert_eq!(read("/x"), read("/y/z"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Crates::read(&bytes, Path::new("/src"));
        }
    }
}
