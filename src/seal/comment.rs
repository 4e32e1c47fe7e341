//! Comment syntax by file name, and the place where a comment line can go without changing what
//! the file means.

/// What a comment line starts and ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
}

const HASH: Syntax = Syntax {
    open: "# ",
    close: "",
};
const SLASHES: Syntax = Syntax {
    open: "// ",
    close: "",
};
const BLOCK: Syntax = Syntax {
    open: "/* ",
    close: " */",
};
const DASHES: Syntax = Syntax {
    open: "-- ",
    close: "",
};

/// Every syntax in use, for finding a line again.
pub(super) const ALL: [Syntax; 4] = [HASH, SLASHES, BLOCK, DASHES];

/// The comment syntax of the file at `path`; `None` where it is not known.
pub(super) fn syntax(path: &str, bytes: &[u8]) -> Option<Syntax> {
    if bytes.contains(&0) {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "CMakeLists.txt" {
        return Some(HASH);
    }
    let extension = name.rsplit_once('.').map(|(_, ext)| ext);
    extension
        .and_then(by_extension)
        .or_else(|| by_interpreter(bytes))
}

fn by_extension(extension: &str) -> Option<Syntax> {
    Some(match extension {
        "py" | "pyi" | "sh" | "bash" | "zsh" | "bats" | "rb" | "pl" | "pm" | "toml" | "yaml"
        | "yml" | "ex" | "exs" | "r" | "R" | "jl" | "tcl" | "cmake" | "mk" => HASH,
        "rs" | "go" | "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "kt"
        | "kts" | "scala" | "cs" | "dart" | "zig" | "groovy" => SLASHES,
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "java" => BLOCK,
        "lua" | "sql" | "hs" => DASHES,
        _ => return None,
    })
}

/// By the program of a `#!` line, for files without a telling name.
fn by_interpreter(bytes: &[u8]) -> Option<Syntax> {
    let line = std::str::from_utf8(first_line(bytes)).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let base = |word: &'static str| move |path: &str| path.rsplit('/').next() == Some(word);
    let mut program = words.next()?;
    if base("env")(program) {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    let name = program.rsplit('/').next()?;
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match stem {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "python" | "pypy" | "ruby" | "perl" | "bats"
        | "make" | "tclsh" | "julia" | "Rscript" | "elixir" => Some(HASH),
        "node" | "nodejs" | "deno" | "bun" => Some(SLASHES),
        "lua" | "luajit" => Some(DASHES),
        _ => None,
    }
}

/// Where the comment line goes: behind a byte order mark, a `#!` line, a line that declares the
/// encoding (PEP 263, Ruby) and a leading block comment of JavaScript (its first one can carry
/// settings of the test runner).
pub(super) fn position(path: &str, bytes: &[u8]) -> usize {
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let has_shebang = is_shebang(&bytes[at..]);
    let extension = path.rsplit_once('.').map(|(_, ext)| ext);
    if has_shebang {
        at = next_line(bytes, at);
    }
    match extension {
        Some("js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx") => {
            after_block(bytes, at).unwrap_or(at)
        }
        Some("rs" | "go" | "java") => at,
        _ => after_encoding(bytes, at, has_shebang),
    }
}

/// `#![` starts an attribute in Rust, everything else with `#!` names an interpreter.
fn is_shebang(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"#!").is_some_and(|rest| {
        let first = rest.iter().find(|b| !b.is_ascii_whitespace());
        first != Some(&b'[')
    })
}

/// Behind the encoding line, which counts on the first two lines of a file, on the second only
/// when the first is a comment or blank.
fn after_encoding(bytes: &[u8], at: usize, has_shebang: bool) -> usize {
    let first = first_line(&bytes[at..]);
    if declares_encoding(first) {
        return next_line(bytes, at);
    }
    let text = first.trim_ascii();
    if has_shebang || !(text.is_empty() || text.starts_with(b"#")) {
        return at;
    }
    let second = next_line(bytes, at);
    if declares_encoding(first_line(&bytes[second..])) {
        next_line(bytes, second)
    } else {
        at
    }
}

/// A comment with `coding:` or `coding=` in it.
fn declares_encoding(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
        && line
            .windows(7)
            .any(|word| matches!(word, b"coding:" | b"coding="))
}

/// Behind a `/* … */` that stands first and is followed by nothing on its line.
fn after_block(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let start = rest.len() - rest.trim_ascii_start().len();
    if !rest[start..].starts_with(b"/*") {
        return None;
    }
    let body = start + 2;
    let end = rest[body..].windows(2).position(|pair| pair == b"*/")? + body + 2;
    let after = first_line(&rest[end..]);
    after
        .trim_ascii()
        .is_empty()
        .then(|| next_line(bytes, at + end))
}

/// The first line without its line break.
fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == b'\n').next().unwrap_or_default()
}

/// Where the line after the one at `at` starts.
fn next_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(bytes.len(), |end| at + end + 1)
}
