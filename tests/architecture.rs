//! `docs/architecture.md` against the code: who may import whom, who owns which crate, what stands
//! in one place only, how long a file may be.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 600;
/// Longer files say at the top what they own.
const HEADER_FROM: usize = 100;

struct Source {
    /// Relative to `src/`.
    path: String,
    /// First folder, or the file itself directly under `src/`.
    folder: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            out.push(path);
        }
    }
    out.sort();
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut paths = Vec::new();
    rust_files(&src, &mut paths);
    paths
        .iter()
        .map(|path| {
            let relative = path.strip_prefix(&src).unwrap().to_str().unwrap();
            let folder = relative.split('/').next().unwrap().to_owned();
            Source {
                path: relative.to_owned(),
                folder,
                text: fs::read_to_string(path).unwrap(),
            }
        })
        .collect()
}

/// Rows of the table under a heading, as cells without backticks.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, rest) = page.split_once(&format!("## {heading}\n")).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| {
        let inner = line.trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().replace('`', ""))
            .collect::<Vec<_>>()
    };
    // The first row is the heading.
    rows.skip(1).map(cells).collect()
}

/// Code without comments, strings and characters, and without the tests at a file's end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if first == '"' {
            string_end(rest)
        } else if let Some(end) = raw_string_end(rest) {
            end
        } else if first == '\'' {
            character_end(rest)
        } else {
            0
        };
        if skip > 0 {
            out.push_str(if first == '"' { "\"\"" } else { " " });
            rest = &rest[skip..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return at + 1,
            _ => escaped = false,
        }
    }
    text.len()
}

fn raw_string_end(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if !rest[hashes..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - rest.len() + hashes + 1;
    Some(
        text[start..]
            .find(&close)
            .map_or(text.len(), |at| start + at + close.len()),
    )
}

/// The length of a character literal; 0 for a lifetime.
fn character_end(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[2..]
            .char_indices()
            .skip(1)
            .find(|(_, c)| *c == '\'')
            .map_or(0, |(at, _)| at + 3),
        Some((at, c)) if text[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 0,
    }
}

/// Whether `word` stands in `code` as a path's first part: `word::`, not `other::word::` and not
/// `a_word::`.
fn names(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + word.len()..];
        let starts = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
        let used = after.starts_with("::") || (after.starts_with(" as ") || after.starts_with(';'));
        // `use word;` counts, a variable called `word` does not.
        let imported = code[..at].ends_with("use ") || after.starts_with("::");
        starts && used && imported
    })
}

/// Folders that `code` reaches by `crate::…`, `use crate::{a, b}` included.
fn imports(code: &str, own: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        // `$crate` of a macro and `pub(in crate::x)` name the same folders.
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            out.extend(group_heads(group));
        } else {
            out.insert(word(rest));
        }
    }
    out.remove(own);
    out.remove("");
    out
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// First parts of the paths in `a::b, c::{d, e}, f}`.
fn group_heads(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut heads = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(String::new()),
            _ if depth == 0 => heads.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    heads.iter().map(|head| word(head.trim())).collect()
}

#[test]
fn lower_levels_never_import_higher_ones() {
    let levels: BTreeMap<String, u32> = table("Levels")
        .into_iter()
        .map(|row| (row[1].clone(), row[0].parse().unwrap()))
        .collect();
    let mut faults = Vec::new();
    let mut folders = BTreeSet::new();
    for source in sources() {
        // Directly under `src/` lie only the crate's two roots.
        if source.folder == source.path {
            assert!(
                matches!(source.folder.as_str(), "lib.rs" | "main.rs"),
                "{}",
                source.path
            );
            continue;
        }
        folders.insert(source.folder.clone());
        let Some(own) = levels.get(&source.folder) else {
            faults.push(format!("{} is in no table", source.folder));
            continue;
        };
        for import in imports(&code(&source.text), &source.folder) {
            match levels.get(&import) {
                Some(level) if level < own => {}
                Some(level) => faults.push(format!(
                    "src/{} (level {own}) imports {import} (level {level})",
                    source.path
                )),
                None => faults.push(format!("src/{} imports crate::{import}", source.path)),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let named: BTreeSet<_> = levels.into_keys().collect();
    assert_eq!(named, folders, "folders in the table and folders of src/");
}

#[test]
fn heavy_crates_have_one_owner() {
    let mut faults = Vec::new();
    let sources: Vec<_> = sources()
        .into_iter()
        .map(|source| (source.path, source.folder, code(&source.text)))
        .collect();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for row in table("Heavy crates") {
        let (krate, owners) = (&row[0], row[1].split(", ").collect::<Vec<_>>());
        let listed = manifest.lines().any(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            name.replace('-', "_") == *krate
        });
        assert!(listed, "{krate} is no dependency");
        for (path, folder, text) in &sources {
            if names(text, krate) && !owners.contains(&folder.as_str()) {
                faults.push(format!(
                    "src/{path} uses {krate}, which belongs to {}",
                    row[1]
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn some_things_stand_in_one_place_only() {
    let mut faults = Vec::new();
    for source in sources() {
        let text = code(&source.text);
        let mut fault = |what: &str| faults.push(format!("src/{}: {what}", source.path));
        if text.contains("Command::new(") && source.path != "base/process.rs" {
            fault("Command::new outside base/process.rs");
        }
        let prints = ["print!", "println!", "eprint!", "eprintln!"]
            .iter()
            .any(|word| text.contains(word))
            || text.contains("stdout()")
            || text.contains("stderr()");
        // What runs inside a sandbox writes to streams that are captured.
        let captured = [
            "sandbox/probe/inside",
            "harness/script.rs",
            "grade/external/remote",
        ];
        let allowed = matches!(source.folder.as_str(), "ui" | "cli")
            || captured.iter().any(|path| source.path.starts_with(path));
        if prints && !allowed {
            fault("writes to the terminal outside ui and cli");
        }
        let unsafe_code =
            text.contains("unsafe {") || text.contains("unsafe fn") || text.contains("unsafe impl");
        if unsafe_code && source.folder != "sandbox" {
            fault("unsafe outside sandbox");
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_file_is_too_long_and_long_ones_have_a_header() {
    let mut faults = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            faults.push(format!("src/{} has {lines} lines", source.path));
        }
        let is_tests = source.path.ends_with("tests.rs");
        if !source.text.starts_with("//!") && !is_tests && lines > HEADER_FROM {
            faults.push(format!("src/{} has no header", source.path));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn ignored_tests_say_why() {
    let mut paths = Vec::new();
    rust_files(&root().join("tests"), &mut paths);
    rust_files(&root().join("src"), &mut paths);
    for path in paths {
        let text = code(&fs::read_to_string(&path).unwrap());
        assert!(
            !text.contains("#[ignore]"),
            "{}: an ignored test needs a reason",
            path.display()
        );
        let raw = fs::read_to_string(&path).unwrap();
        for line in raw.lines().map(str::trim) {
            let reason = line.strip_prefix("#[ignore = \"");
            assert!(
                reason.is_none_or(|reason| reason.starts_with("heavy: ")),
                "{}: {line} does not say `heavy: why`",
                path.display()
            );
        }
    }
}

/// Pages that a file names, each with the heading in quotes behind it, if there is one.
fn named_pages(text: &str) -> Vec<(String, Option<String>)> {
    // A reference may be broken over two comment lines.
    let flat = text.replace("\n//! ", " ").replace("\n/// ", " ");
    let mut out = Vec::new();
    for (at, _) in flat.match_indices("docs/") {
        let rest = &flat[at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '.' | '_')))
            .unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('.');
        if Path::new(name).extension().is_some_and(|ext| ext == "md") {
            let heading = rest[end..].strip_prefix("`, \"");
            let heading = heading.and_then(|rest| Some(rest.split_once('"')?.0.to_owned()));
            out.push((name.to_owned(), heading));
        }
    }
    out
}

#[test]
fn pages_and_headings_that_the_code_names_exist() {
    let mut missing = BTreeSet::new();
    for source in sources() {
        for (name, heading) in named_pages(&source.text) {
            let page = fs::read_to_string(root().join(&name)).unwrap_or_default();
            let found = match &heading {
                None => !page.is_empty(),
                Some(heading) => page.lines().any(|line| {
                    line.starts_with('#') && line.trim_start_matches('#').trim() == heading
                }),
            };
            if !found {
                missing.insert(format!("src/{}: {name} {heading:?}", source.path));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_reader_of_this_test_sees_what_it_should() {
    // The checks above are worth what these helpers are worth.
    let text = code(
        "use crate::{git::x, seal}; // crate::flow\nlet s = \"crate::cli\"; let c = '\"'; crate::store::y();",
    );
    let found: Vec<_> = imports(&text, "seal").into_iter().collect();
    assert_eq!(found, ["git", "store"]);
    assert!(
        names("use age::x;", "age")
            && names("let a = age::b();", "age")
            && names("use tar;", "tar")
    );
    assert!(!names("use crate::age::x; page::y; storage::z", "age"));
    let named = named_pages("//! Formats: `docs/format.md`, \"A\n//! b\". And `docs/x.md`.");
    let wanted = [("docs/format.md", Some("A b")), ("docs/x.md", None)];
    assert_eq!(
        named,
        wanted.map(|(page, heading)| (page.to_owned(), heading.map(str::to_owned)))
    );
    assert_eq!(code("r#\"gix::\"# + b'\\''").trim(), "+ b");
}
