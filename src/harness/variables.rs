//! The environment of an agent program, some of whose values are credentials.

use super::Error;
use super::adapter::{Environment, Turn};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

/// Shorter values stand in texts by chance.
const SHORTEST_REDACTED: usize = 8;
/// Shorter values are no credentials.
const SHORTEST_CREDENTIAL: usize = 16;

/// Variables whose values may be credentials: `Debug` shows their names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables {
    all: BTreeMap<OsString, OsString>,
    /// Names of those that come from the user's environment.
    passed: BTreeSet<OsString>,
}

impl Variables {
    /// Sets one to a value of hangar's own.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.all.insert(name, value);
    }

    /// Passes one on from the user's environment.
    pub fn pass(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.passed.insert(name.as_ref().to_owned());
        self.set(name, value);
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.all.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All of them, for the process that gets them.
    pub fn expose(&self) -> &BTreeMap<OsString, OsString> {
        &self.all
    }

    /// `bytes` with the name of a variable in the place of each value that was passed on: a program
    /// that prints its environment must not put a key into what is kept.
    pub fn redact<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut secrets: Vec<_> = self
            .passed
            .iter()
            .filter_map(|name| Some((name, self.all.get(name)?.as_bytes())))
            .filter(|(_, value)| value.len() >= SHORTEST_REDACTED)
            .collect();
        // One value may hold another.
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let mut out = Cow::Borrowed(bytes);
        for (name, value) in secrets {
            if let Some(clean) = replace(&out, value, name.as_bytes()) {
                out = Cow::Owned(clean);
            }
        }
        out
    }

    /// The name of a credential whose value stands in one of these texts. A place (a URL or a path) is
    /// none: it may well stand in code.
    pub fn credential_in(&self, texts: &[Vec<u8>]) -> Option<&OsStr> {
        let is_credential = |value: &[u8]| {
            let place = value.starts_with(b"/") || value.windows(3).any(|part| part == b"://");
            value.len() >= SHORTEST_CREDENTIAL && !place
        };
        let stands = |name: &&OsString| {
            let value = self
                .all
                .get(*name)
                .map_or(&[][..], |value| value.as_bytes());
            is_credential(value) && texts.iter().any(|text| replace(text, value, b"").is_some())
        };
        self.passed.iter().find(stands).map(OsString::as_os_str)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

/// `None` where `value` does not occur.
fn replace(bytes: &[u8], value: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let first = *value.first()?;
    let mut out = Vec::new();
    let (mut from, mut at, mut found) = (0, 0, false);
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| *byte == first))
    {
        at += next;
        if bytes[at..].starts_with(value) {
            out.extend_from_slice(&bytes[from..at]);
            out.extend([b"[", name, b"]"].concat());
            at += value.len();
            (from, found) = (at, true);
        } else {
            at += 1;
        }
    }
    out.extend_from_slice(bytes.get(from..)?);
    found.then_some(out)
}

/// Variables that every kind gets, and those that the harness passes on by name.
pub(super) fn environment(
    harness: &str,
    pass: &[String],
    turn: &Turn<'_>,
) -> Result<Variables, Error> {
    are_set(harness, pass, turn.env)?;
    let mut env = Variables::default();
    for name in pass {
        if let Some(value) = turn.env.get(OsStr::new(name)) {
            env.pass(name, value);
        }
    }
    env.set(super::exchange::VARIABLE, turn.exchange);
    Ok(env)
}

/// Fails where one that a harness passes on is not set.
pub(super) fn are_set(harness: &str, pass: &[String], env: &Environment) -> Result<(), Error> {
    match pass.iter().find(|name| !env.contains_key(OsStr::new(name))) {
        None => Ok(()),
        Some(name) => Err(Error::MissingVariable {
            harness: harness.to_owned(),
            variable: name.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_on_is_never_kept_and_never_printed() {
        let mut env = Variables::default();
        env.pass("KEY", "sk-12345678");
        env.pass("LONGER", "sk-12345678-and-more");
        env.pass("RETRIES", "2");
        env.set("OWN", "hangar's own value");
        let text =
            b"KEY=sk-12345678 twice sk-12345678, sk-12345678-and-more, 2, hangar's own value";
        let clean = env.redact(text);
        assert_eq!(
            String::from_utf8_lossy(&clean),
            "KEY=[KEY] twice [KEY], [LONGER], 2, hangar's own value"
        );
        assert!(matches!(env.redact(b"sk-1234567"), Cow::Borrowed(_)));
        assert!(!format!("{env:?}").contains("sk-"));
    }

    #[test]
    fn a_credential_in_a_text_is_named_and_a_place_is_none() {
        let mut env = Variables::default();
        env.pass("URL", "http://127.0.0.1:8080");
        env.pass("DIR", "/home/alice/models/one");
        env.pass("KEY", "sk-0123456789abcdef");
        let texts = |text: &str| vec![b"x".to_vec(), text.as_bytes().to_vec()];
        let found = env.credential_in(&texts("key = 'sk-0123456789abcdef'"));
        assert_eq!(found, Some(OsStr::new("KEY")));
        let fine = "http://127.0.0.1:8080 /home/alice/models/one sk-0123456789abcde";
        assert_eq!(env.credential_in(&texts(fine)), None);
    }
}
