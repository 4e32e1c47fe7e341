//! The block in `AGENTS.md` that tells coding agents how this repository accepts work.

use super::config_file::FileAction;
use crate::app::Error;
use crate::base::files;
use std::path::Path;

/// The file, at the root of the work tree.
pub const FILE: &str = "AGENTS.md";
const BEGIN: &str = "<!-- hangar: begin -->";
const END: &str = "<!-- hangar: end -->";
/// Largest file that is changed.
const MAX: u64 = 4 << 20;

const BODY: &str = "\
## Acceptance

Work in this repository is accepted by hangar: hidden tests, written from a task's criteria, run on
your patch in a sealed sandbox.

- Solve what the task and its criteria say; the tests can't be seen, guessed at or worked around.
- Leave test runner configuration, CI, hooks and `hangar.toml` alone unless the task is about them:
  a patch that touches a protected path is refused.
- Never run `hangar approve`, `hangar reject` or `hangar policy`: they are for people.
- `hangar task show TASK` prints a task; `hangar task comment TASK TEXT` adds a remark.
";

/// Writes the block, or replaces the one that is there; the rest of the file stays as it is.
pub fn ensure(work_tree: &Path) -> Result<FileAction, Error> {
    let path = work_tree.join(FILE);
    let fail = |source| Error::Read {
        path: path.clone(),
        source,
    };
    let there = match std::fs::File::open(&path) {
        Ok(file) => Some(files::whole_text(file, MAX).map_err(fail)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    let text = there.as_deref().unwrap_or_default();
    let changed = with_block(text);
    if changed == text {
        return Ok(FileAction::Kept);
    }
    files::write_atomic(&path, changed.as_bytes(), 0o644)?;
    Ok(if there.is_some() {
        FileAction::Changed
    } else {
        FileAction::Created
    })
}

fn with_block(text: &str) -> String {
    let block = format!("{BEGIN}\n{BODY}{END}\n");
    let begin = text.find(BEGIN);
    let end = begin.and_then(|begin| Some(begin + text[begin..].find(END)? + END.len()));
    if let (Some(begin), Some(end)) = (begin, end) {
        let rest = text[end..].strip_prefix('\n').unwrap_or(&text[end..]);
        return format!("{}{block}{rest}", &text[..begin]);
    }
    match text {
        "" => block,
        text if text.ends_with('\n') => format!("{text}\n{block}"),
        text => format!("{text}\n\n{block}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_added_once_and_replaced_where_it_stands() {
        let first = with_block("# Mine\n");
        assert!(first.starts_with("# Mine\n\n<!-- hangar: begin -->\n"));
        assert_eq!(with_block(&first), first);
        let old = format!("a\n{BEGIN}\nold words\n{END}\nb\n");
        let new = with_block(&old);
        assert!(new.starts_with("a\n<!-- hangar: begin -->\n## Acceptance"));
        assert!(new.ends_with("<!-- hangar: end -->\nb\n") && !new.contains("old words"));
    }
}
