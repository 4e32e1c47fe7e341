//! How a turn ended, and what that means.

use jiff::Timestamp;
use std::fmt;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit status.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// The wall clock ran out.
    TimedOut,
    /// Nothing moved for the idle time.
    Idle,
    /// It could not be started (errno).
    NotStarted(i32),
}

/// A process that has ended, with its streams.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// How.
    pub exit: Exit,
    /// Standard output.
    pub stdout: &'a [u8],
    /// Standard error.
    pub stderr: &'a [u8],
    /// When: times of day that a program names are read from here on.
    pub at: Timestamp,
}

/// Class of a failure: decides whether another lane takes over, and whether it counts as an
/// attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A usage limit, with the time of its reset where the program tells one that can be read.
    Limit(Option<Timestamp>),
    /// Too many requests.
    Rate,
    /// The provider is overloaded, out, or can't be reached.
    Overloaded,
    /// Not logged in, or a key that is not accepted.
    Auth,
    /// Payment.
    Billing,
    /// The context is full.
    Context,
    /// Stopped: by a signal, by a timer, by the person.
    Interrupted,
    /// It did not keep to what its kind promises.
    Protocol,
    /// Anything else.
    Unknown,
}

impl fmt::Display for ErrorClass {
    /// What it is, after the name of a program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(None) => f.write_str("has reached its usage limit"),
            Self::Limit(Some(until)) => {
                write!(f, "has reached its usage limit, until {}", minute(*until))
            }
            Self::Rate => f.write_str("was refused: too many requests"),
            Self::Overloaded => {
                f.write_str("was not served: its provider is overloaded or can't be reached")
            }
            Self::Auth => f.write_str("is not logged in, or its key is not accepted"),
            Self::Billing => f.write_str("was refused: its account has no credit left for it"),
            Self::Context => f.write_str("needs more context than its model has"),
            Self::Interrupted => f.write_str("was stopped"),
            Self::Protocol => f.write_str("did not say how its turn ended"),
            Self::Unknown => f.write_str("failed"),
        }
    }
}

/// `2026-11-30 18:53 UTC`
pub fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// A turn that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: ErrorClass,
    /// More of it in hangar's own words; may be empty.
    pub why: String,
    /// What the program said, one short line. It is not hangar's text: a writer's may hold tests,
    /// unless the table of known texts has it.
    pub said: Option<Said>,
}

/// A text of a program about its own failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// One line, without control characters.
    pub text: String,
    /// Whether the table of known texts has it.
    pub known: bool,
}

/// What a turn came to, as far as the program tells. The caller's own checks decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// The program says that it did what it was asked.
    Done,
    /// It did not.
    Failed(Failure),
}

/// Tokens as the program counts them: of one turn, or of a whole session that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read, those from a cache included.
    pub input: u64,
    /// Written.
    pub output: u64,
}

/// What was learnt from a finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// How it ended.
    pub end: TurnEnd,
    /// Tokens, where the program tells: the raw number.
    pub usage: Option<Usage>,
    /// The program's own name of the session, for a resume.
    pub session: Option<String>,
    /// Its version, where its stream tells.
    pub version: Option<String>,
}

impl Finish {
    /// What an exit alone says. No text of the program is part of it.
    pub(super) fn of_exit(exit: Exit) -> Self {
        Self {
            end: match exit {
                Exit::Code(0) => TurnEnd::Done,
                other => TurnEnd::Failed(Failure::of_exit(other)),
            },
            usage: None,
            session: None,
            version: None,
        }
    }
}

impl Failure {
    /// What an exit says of a turn that did not end well.
    pub(super) fn of_exit(exit: Exit) -> Self {
        let (class, why) = match exit {
            Exit::Code(code @ (130 | 137 | 143)) => (
                ErrorClass::Interrupted,
                format!("it ended by signal {}", code - 128),
            ),
            Exit::Code(code) => (ErrorClass::Unknown, format!("exit status {code}")),
            Exit::Signal(signal) => (
                ErrorClass::Interrupted,
                format!("it ended by signal {signal}"),
            ),
            Exit::TimedOut => (
                ErrorClass::Interrupted,
                "the time for the turn ran out".into(),
            ),
            Exit::Idle => (ErrorClass::Interrupted, "it was silent for too long".into()),
            Exit::NotStarted(errno) => {
                let why = std::io::Error::from_raw_os_error(errno);
                (
                    ErrorClass::Protocol,
                    format!("it could not be started: {why}"),
                )
            }
        };
        Self {
            class,
            why,
            said: None,
        }
    }

    /// What people are told after the name of the program. `all` tells its own words too, also where
    /// they are not known ones.
    pub fn words(&self, all: bool) -> String {
        let mut out = self.class.to_string();
        let said = self.said.as_ref().filter(|said| all || said.known);
        for (open, text, close) in [
            (": ", Some(self.why.as_str()), ""),
            (" (it says: ", said.map(|said| said.text.as_str()), ")"),
        ] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                out.extend([open, text, close]);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_nobody_knows_is_told_only_where_it_may_be() {
        let failure = |known| Failure {
            class: ErrorClass::Limit(Some("2026-01-02T18:53:30Z".parse().unwrap())),
            why: String::new(),
            said: Some(Said {
                text: "no more".into(),
                known,
            }),
        };
        let class = "has reached its usage limit, until 2026-01-02 18:53 UTC";
        assert_eq!(failure(false).words(false), class);
        let all = format!("{class} (it says: no more)");
        assert_eq!(failure(false).words(true), all);
        assert_eq!(failure(true).words(false), all);
    }

    #[test]
    fn a_status_that_stands_for_a_signal_is_an_interruption() {
        for exit in [Exit::Code(143), Exit::Signal(15)] {
            let failure = Failure::of_exit(exit);
            assert_eq!(failure.class, ErrorClass::Interrupted);
            assert_eq!(failure.words(false), "was stopped: it ended by signal 15");
        }
        assert_eq!(
            Failure::of_exit(Exit::Code(3)).words(false),
            "failed: exit status 3"
        );
    }
}
