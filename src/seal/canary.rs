//! The canary: a random token in every sealed file by which a leak is recognised.
//!
//! Scanners know only its SHA-256, so hooks and CI need no key.

use super::comment::{ALL, Syntax, position, syntax};
use crate::base::random;
use crate::model::digest::Digest;
use crate::model::ids::base32;
use std::fmt;

const PREFIX: &[u8] = b"hgc1_";
const BODY: usize = 32;
/// Length of a token in bytes.
pub const TOKEN_LEN: usize = PREFIX.len() + BODY;

/// UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Says to whoever meets the line what it is.
const NOTE: &str = "marks a sealed test; it must not appear in an ordinary branch";

/// `hgc1_` and 32 characters of lowercase base32: 160 random bits.
///
/// It is as hidden as the tests are, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Canary(String);

impl Canary {
    /// A new one.
    ///
    /// # Panics
    /// When the kernel has no randomness to give.
    #[expect(clippy::new_without_default, reason = "two canaries are never equal")]
    pub fn new() -> Self {
        let body = base32(&random::bytes::<20>());
        Self(String::from_utf8_lossy(PREFIX).into_owned() + &body)
    }

    /// Reads a token; `None` when the text is not exactly one.
    pub fn parse(text: &str) -> Option<Self> {
        let whole = text.len() == TOKEN_LEN && token_at(text.as_bytes()).is_some();
        whole.then(|| Self(text.to_owned()))
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the token, which is public.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    fn line(&self, syntax: Syntax) -> String {
        format!("{}{} {NOTE}{}", syntax.open, self.0, syntax.close)
    }
}

impl fmt::Debug for Canary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Canary({})", self.digest().short())
    }
}

/// The digests of every token in `bytes`, in order. Whatever stands around a token, it is found.
pub fn scan(bytes: &[u8]) -> impl Iterator<Item = Digest> + '_ {
    let starts = bytes.iter().enumerate().filter(|(_, b)| **b == PREFIX[0]);
    starts.filter_map(|(at, _)| token_at(&bytes[at..]).map(Digest::of))
}

/// The token that `bytes` starts with.
fn token_at(bytes: &[u8]) -> Option<&[u8]> {
    let body = bytes.strip_prefix(PREFIX)?.get(..BODY)?;
    body.iter()
        .all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
        .then(|| &bytes[..TOKEN_LEN])
}

/// `bytes` with a comment line that holds the canary, where the comment syntax is known by name or
/// `#!` line; otherwise unchanged.
pub fn insert(path: &str, bytes: &[u8], canary: &Canary) -> Vec<u8> {
    let Some(syntax) = syntax(path, bytes) else {
        return bytes.to_vec();
    };
    let at = position(path, bytes);
    let (head, tail) = bytes.split_at(at);
    let line = canary.line(syntax);
    let line_break = line_break(bytes);
    let mut out = Vec::with_capacity(bytes.len() + line.len() + 2);
    out.extend(head);
    // Behind a last line without a break, a plain break goes before the comment.
    let unbroken = tail.is_empty() && !matches!(head, b"" | BOM) && !head.ends_with(b"\n");
    if unbroken {
        out.push(b'\n');
    }
    out.extend(line.as_bytes());
    if !unbroken {
        out.extend(line_break);
    }
    out.extend(tail);
    out
}

/// Undoes [`insert`]: takes out exactly the line that it puts in.
pub fn remove(bytes: &[u8], canary: &Canary) -> Vec<u8> {
    for syntax in ALL {
        let line = canary.line(syntax);
        let mut found = bytes.windows(line.len()).enumerate();
        while let Some((at, _)) = found.find(|(_, window)| *window == line.as_bytes()) {
            if let Some((from, to)) = span(bytes, at, at + line.len()) {
                return [&bytes[..from], &bytes[to..]].concat();
            }
        }
    }
    bytes.to_vec()
}

/// What was put in around the comment at `start..end`: its own line break, or the one before where
/// it is the last line. `None` when the comment is not a line of its own.
fn span(bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let (before, after) = (&bytes[..start], &bytes[end..]);
    let own_line = before.is_empty() || before.ends_with(b"\n") || before == BOM;
    if !own_line {
        return None;
    }
    if after.starts_with(b"\r\n") {
        Some((start, end + 2))
    } else if after.starts_with(b"\n") {
        Some((start, end + 1))
    } else if after.is_empty() && before.ends_with(b"\n") {
        Some((start - 1, end))
    } else {
        None
    }
}

/// The line break that the file's first line ends with.
fn line_break(bytes: &[u8]) -> &'static [u8] {
    let first = bytes.split_inclusive(|b| *b == b'\n').next();
    if first.is_some_and(|line| line.ends_with(b"\r\n")) {
        b"\r\n"
    } else {
        b"\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canary() -> Canary {
        Canary::parse(&format!("hgc1_{}", "a2".repeat(16))).unwrap()
    }

    /// `text` with `|` where the canary's line is expected.
    fn expect(path: &str, text: &str, open: &str) {
        let plain = text.replacen('|', "", 1);
        let out = String::from_utf8(insert(path, plain.as_bytes(), &canary())).unwrap();
        let line = format!("{open}{} {NOTE}", canary().token());
        let at = out.find(&line).unwrap_or_else(|| panic!("{path}: {out}"));
        assert_eq!(at, text.find('|').unwrap(), "{path}: {out}");
        assert_eq!(remove(out.as_bytes(), &canary()), plain.as_bytes());
    }

    #[test]
    fn tokens_are_new_and_well_formed() {
        let (a, b) = (Canary::new(), Canary::new());
        assert_ne!(a, b);
        assert_eq!(Canary::parse(a.token()), Some(a.clone()));
        assert_eq!(a.token().len(), TOKEN_LEN);
        assert!(!format!("{a:?}").contains(a.token()));
        for bad in ["", "hgc1_", &a.token()[1..], &format!("{}a", a.token())] {
            assert_eq!(Canary::parse(bad), None, "{bad}");
        }
        assert_eq!(Canary::parse(&a.token().to_uppercase()), None);
    }

    #[test]
    fn digest_vector_holds() {
        assert_eq!(
            canary().digest().hex(),
            include_str!("../../tests/vectors/canary.sha256").trim()
        );
    }

    #[test]
    fn tokens_are_found_inside_anything() {
        let (a, b) = (Canary::new(), Canary::new());
        let bytes = [
            b"\0\xffhgc1_hgc1_".as_slice(),
            a.token().as_bytes(),
            b"abc\0hgc1_short",
            b.token().as_bytes(),
        ]
        .concat();
        let found: Vec<_> = scan(&bytes).collect();
        assert_eq!(found, [a.digest(), b.digest()]);
        assert_eq!(scan(b"hgc1_").count(), 0);
    }

    #[test]
    fn the_line_goes_where_it_changes_nothing() {
        expect("a.py", "|import os\n", "# ");
        expect(
            "tests/CMakeLists.txt",
            "|add_test(NAME a COMMAND a)\n",
            "# ",
        );
        expect("a_test.go", "|//go:build x\n\npackage a\n", "// ");
        expect("a.py", "|", "# ");
        expect("a.py", "#!/usr/bin/python3\n|import os\n", "# ");
        expect(
            "a.py",
            "#!/usr/bin/python3\n# -*- coding: latin-1 -*-\n|x\n",
            "# ",
        );
        expect("a.py", "# -*- coding: latin-1 -*-\n|x\n", "# ");
        expect("a.py", "\n# coding=utf8\n|x\n", "# ");
        expect("a.py", "|x = 1\n# coding=utf8\n", "# ");
        expect("a.py", "|from __future__ import annotations\n", "# ");
        expect("a.py", "\u{feff}|x\n", "# ");
        expect("a.rs", "|#![allow(unused)]\n", "// ");
        expect(
            "a.rs",
            "#!/usr/bin/env run-cargo-script\n|fn main() {}\n",
            "// ",
        );
        expect("a.test.ts", "|import x from 'x';\n", "// ");
        expect("a.js", "/**\n * @jest-environment jsdom\n */\n|x\n", "// ");
        expect("a.js", "#!/usr/bin/env node\n|'use strict';\n", "// ");
        expect("a.js", "|/* a */ b()\n", "// ");
        expect("a.go", "|//go:build linux\n\npackage a\n", "// ");
        expect("A.java", "|class A {}\n", "/* ");
        expect("a.yaml", "|a: 1\n", "# ");
        expect("a.toml", "|a = 1", "# ");
        expect("a.rb", "# encoding: utf-8\n|x\n", "# ");
        expect("tests/run", "#!/bin/sh\n|exit 0\n", "# ");
        expect("tests/run", "#!/usr/bin/env -S node --test\n|x\n", "// ");
    }

    #[test]
    fn files_without_a_known_syntax_stay_as_they_are() {
        for (path, bytes) in [
            ("a.json", b"{}".as_slice()),
            ("a.txt", b"text"),
            ("a", b"text"),
            ("a.py", b"binary\0"),
            ("run", b"#!/opt/unknown\n"),
        ] {
            assert_eq!(insert(path, bytes, &canary()), bytes, "{path}");
        }
    }

    #[test]
    fn line_breaks_are_kept() {
        let out = insert("a.py", b"x\r\ny\r\n", &canary());
        assert!(out.windows(2).any(|pair| pair == b"\r\n"));
        assert!(
            !String::from_utf8(out.clone())
                .unwrap()
                .replace("\r\n", "")
                .contains('\n')
        );
        assert_eq!(remove(&out, &canary()), b"x\r\ny\r\n");
        let unbroken = insert("run", b"#!/bin/sh", &canary());
        assert!(unbroken.starts_with(b"#!/bin/sh\n# hgc1_"));
        assert_eq!(remove(&unbroken, &canary()), b"#!/bin/sh");
    }

    #[test]
    fn only_the_own_line_is_removed() {
        for bytes in [
            format!("x = '{}'\n", canary().token()),
            format!("x {}\n", canary().line(ALL[0])),
            format!("{} y\n", canary().line(ALL[0])),
        ] {
            assert_eq!(remove(bytes.as_bytes(), &canary()), bytes.as_bytes());
        }
        let other = insert("a.py", b"x\n", &Canary::new());
        assert_eq!(remove(&other, &canary()), other);
    }

    proptest! {
        #[test]
        fn removing_undoes_inserting(
            ext in prop::sample::select(vec!["py", "rs", "js", "c", "sql", "rb", "none"]),
            parts in prop::collection::vec(prop::sample::select(vec![
                "#!", "/bin/sh", "\n", "\r\n", "\r", "# coding: x", "/*", "*/", " ", "x", "//",
                "\u{feff}", "#![a]", "#!/usr/bin/env node", "\u{e9}", "--",
            ]), 0..12),
        ) {
            let bytes = parts.concat().into_bytes();
            let canary = Canary::new();
            let out = insert(&format!("t.{ext}"), &bytes, &canary);
            prop_assert_eq!(remove(&out, &canary), bytes.clone());
            let inserted = out != bytes;
            prop_assert_eq!(scan(&out).any(|d| d == canary.digest()), inserted);
        }
    }
}
