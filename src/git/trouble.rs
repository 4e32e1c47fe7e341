//! Why a remote could not be talked to, read from what git and ssh say. The words are those of
//! `LC_ALL=C`; what is not recognised is [`RemoteTrouble::Other`], never a guess.

/// Why, by what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteTrouble {
    /// It wants a login that nobody gave, or does not take the one it got.
    Login,
    /// ssh does not know the host's key.
    HostKey,
    /// It answers, and forbids this.
    Forbidden,
    /// No repository there, or none that this login may see.
    NotThere,
    /// Nobody answers at this address.
    Away,
    /// It took the connection and did not answer in time.
    Silent,
    /// Something else.
    Other,
}

/// What git and ssh say, the telling words first.
const WORDS: [(&str, RemoteTrouble); 27] = [
    ("Host key verification failed", RemoteTrouble::HostKey),
    ("could not read Username", RemoteTrouble::Login),
    ("could not read Password", RemoteTrouble::Login),
    ("terminal prompts disabled", RemoteTrouble::Login),
    ("Authentication failed", RemoteTrouble::Login),
    ("Permission denied (", RemoteTrouble::Login),
    ("Too many authentication failures", RemoteTrouble::Login),
    ("returned error: 401", RemoteTrouble::Login),
    ("returned error: 403", RemoteTrouble::Forbidden),
    ("HTTP 403", RemoteTrouble::Forbidden),
    ("access denied", RemoteTrouble::Forbidden),
    ("returned error: 404", RemoteTrouble::NotThere),
    ("not found", RemoteTrouble::NotThere),
    ("not appear to be a git repository", RemoteTrouble::NotThere),
    ("repository does not exist", RemoteTrouble::NotThere),
    ("Could not resolve", RemoteTrouble::Away),
    ("unable to look up", RemoteTrouble::Away),
    ("Name or service not known", RemoteTrouble::Away),
    ("Connection refused", RemoteTrouble::Away),
    ("Connection timed out", RemoteTrouble::Away),
    ("Failed to connect", RemoteTrouble::Away),
    ("Couldn't connect", RemoteTrouble::Away),
    ("No route to host", RemoteTrouble::Away),
    ("Network is unreachable", RemoteTrouble::Away),
    ("hung up unexpectedly", RemoteTrouble::Away),
    ("unexpected disconnect", RemoteTrouble::Away),
    ("Connection reset", RemoteTrouble::Away),
];

impl RemoteTrouble {
    /// What a message means.
    pub(super) fn of(message: &str) -> Self {
        let found = WORDS.iter().find(|(words, _)| message.contains(words));
        found.map_or(Self::Other, |(_, trouble)| *trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_told_apart() {
        for (message, trouble) in [
            (
                "fatal: could not read Username for 'https://h.example': terminal prompts disabled",
                RemoteTrouble::Login,
            ),
            (
                "me@h.example: Permission denied (publickey).; fatal: Could not read from remote repository.",
                RemoteTrouble::Login,
            ),
            (
                "Host key verification failed.; fatal: Could not read from remote repository.",
                RemoteTrouble::HostKey,
            ),
            (
                "fatal: unable to access 'http://h/r/': The requested URL returned error: 403",
                RemoteTrouble::Forbidden,
            ),
            (
                "fatal: repository 'http://h/r/' not found",
                RemoteTrouble::NotThere,
            ),
            (
                "ssh: connect to host h port 22: Connection refused",
                RemoteTrouble::Away,
            ),
            ("fatal: something new", RemoteTrouble::Other),
        ] {
            assert_eq!(RemoteTrouble::of(message), trouble, "{message}");
        }
    }
}
