//! Reading the pages of `docs/`, for the tests that keep them true.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The text of one file of the repository.
pub(crate) fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Whether pages are to be written instead of compared.
const WRITE: &str = "HANGAR_WRITE_DOCS";

/// Whether files of the repository are to be written.
pub(crate) fn are_written() -> bool {
    std::env::var_os(WRITE).is_some()
}

/// Compares a file of the repository with what it should be. With `HANGAR_WRITE_DOCS=1` in the
/// environment it is written.
pub(crate) fn keep(path: &str, wanted: &str) {
    let found = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    if found == wanted {
        return;
    }
    assert!(
        are_written(),
        "{path} is not current; write it with `{WRITE}=1 cargo test --test it docs`"
    );
    std::fs::write(root().join(path), wanted).unwrap();
}

/// The same for the text between `<!-- NAME: … -->` and `<!-- /NAME -->` of a page.
pub(crate) fn keep_part(path: &str, name: &str, wanted: &str) {
    let text = page(path);
    let open = format!("<!-- {name}: ");
    let close = format!("<!-- /{name} -->");
    let at = text.find(&open).unwrap();
    let start = at + text[at..].find('\n').unwrap() + 1;
    let end = text.find(&close).unwrap();
    let new = format!("{}{wanted}{}", &text[..start], &text[end..]);
    keep(path, &new);
}

/// One section of a page: from its heading to the next one of any level.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) text: String,
    /// First cell → the whole row, of every table row whose first cell is one name in backticks.
    pub(crate) rows: BTreeMap<String, String>,
}

/// Sections by heading, without `#` and backticks.
pub(crate) fn sections(page: &str) -> BTreeMap<String, Section> {
    let mut out: BTreeMap<String, Section> = BTreeMap::new();
    let mut heading = String::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().replace('`', "");
            assert!(
                !out.contains_key(&heading),
                "two sections are called {heading}"
            );
        }
        let section = out.entry(heading.clone()).or_default();
        section.text.push_str(line);
        section.text.push('\n');
        let first = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split_once("` |"));
        if let Some((name, _)) = first {
            section.rows.insert(name.to_owned(), line.to_owned());
        }
    }
    out
}

/// The text of every fenced block of this language, in order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match &mut open {
            None if line == format!("```{language}") => open = Some(String::new()),
            Some(text) if line == "```" => {
                out.push(std::mem::take(text));
                open = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
    }
    out
}

/// Where `#heading` links of a page lead, as GitHub names them.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = heading.chars().filter(kept).collect();
    text.to_lowercase().replace(' ', "-")
}

/// Relative links of a page: (path or empty, anchor or empty).
fn links(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for rest in text.split("](").skip(1) {
        let Some((target, _)) = rest.split_once(')') else {
            continue;
        };
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        out.push((path.to_owned(), anchor.to_owned()));
    }
    out
}

fn markdown_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_files(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "md") {
            out.push(path);
        }
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut files = Vec::new();
    markdown_files(&root().join("docs"), &mut files);
    for name in ["README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md"] {
        files.push(root().join(name));
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (path, wanted) in links(&text) {
            let target = if path.is_empty() {
                file.clone()
            } else {
                file.parent().unwrap().join(&path)
            };
            let place = format!("{}: {path}#{wanted}", file.display());
            assert!(target.exists(), "{place} leads nowhere");
            if !wanted.is_empty() {
                let headings = sections(&std::fs::read_to_string(&target).unwrap());
                assert!(
                    headings.keys().any(|heading| anchor(heading) == wanted),
                    "{place}: no such heading"
                );
            }
        }
    }
}
