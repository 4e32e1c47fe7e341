//! What a remote that does not take a push says: which refs, why, and in which words of its own.

use super::error::show;
use super::program::hide_password;
use crate::base::process::Output;

/// Most lines of a remote that are kept; each is cut as well.
const MAX_LINES: usize = 8;

/// Refs that a remote did not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Each with the reason that git gives.
    pub refs: Vec<(String, String)>,
    /// What the remote itself said, such as its hooks, in the first lines: without control characters
    /// and passwords. Anybody who runs a remote can say anything here: it decides nothing.
    pub said: Vec<String>,
}

impl Rejected {
    /// From what `git push --porcelain` printed.
    pub(super) fn of(out: &Output) -> Self {
        Self {
            refs: refs(&String::from_utf8_lossy(&out.stdout)),
            said: said(&out.stderr_text()),
        }
    }

    /// Why the first of them was not taken, with what the remote said.
    pub fn why(&self) -> String {
        let why = self.refs.first().map(|(_, why)| why.as_str());
        self.with_said(why.unwrap_or_default())
    }

    /// The same with the name of that ref.
    pub fn named(&self) -> String {
        let first = self.refs.first();
        let first = first.map(|(name, why)| format!("{name}: {why}"));
        self.with_said(&first.unwrap_or_default())
    }

    fn with_said(&self, why: &str) -> String {
        if self.said.is_empty() {
            return why.to_owned();
        }
        format!("{why}; it says: {}", self.said.join("; "))
    }
}

/// Lines of `push --porcelain` that begin with `!`: (ref on the remote, reason).
fn refs(porcelain: &str) -> Vec<(String, String)> {
    porcelain
        .lines()
        .filter_map(|line| {
            let mut fields = line.strip_prefix("!\t")?.splitn(2, '\t');
            let (_, name) = fields.next()?.rsplit_once(':')?;
            let reason = fields.next().unwrap_or_default();
            Some((name.to_owned(), show(reason.as_bytes())))
        })
        .collect()
}

/// Lines that git passes on from the remote.
fn said(stderr: &str) -> Vec<String> {
    let lines = stderr.split(['\n', '\r']);
    let own = lines.filter_map(|line| line.strip_prefix("remote:"));
    let plain = own.map(|line| {
        let line = line.replace('\t', " ");
        let line = line.replace(|c: char| c.is_control(), "");
        show(hide_password(line.trim()).as_bytes())
    });
    let mut lines: Vec<_> = plain.filter(|line| !line.is_empty()).collect();
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push("…".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_read_from_the_porcelain() {
        let text = "To /r\n!\tabc:refs/hangar/a\t[rejected] (stale info)\n=\tx:refs/b\t[up to date]\nDone\n";
        assert_eq!(
            refs(text),
            [(
                "refs/hangar/a".to_owned(),
                "[rejected] (stale info)".to_owned()
            )]
        );
    }

    #[test]
    fn what_a_remote_says_is_cut_and_harmless() {
        let text = "remote: no \u{1b}[2Jentry        \nTo /r\nremote:\nremote: \u{7}see https://me:tok@h.example/x\r\nerror: failed to push\n";
        assert_eq!(said(text), ["no [2Jentry", "see https://…@h.example/x"]);
        assert_eq!(said("remote: a\tb\n"), ["a b"]);
        let long = "remote: x\n".repeat(100) + &"remote: y".repeat(1000);
        let said = said(&long);
        assert_eq!(said.len(), MAX_LINES + 1);
        assert!(said.concat().len() < 20);
        assert!(super::said(&"remote: y".repeat(1000))[0].chars().count() < 300);
    }
}
