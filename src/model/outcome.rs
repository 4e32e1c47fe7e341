//! What a run of tests can end as, and how far a grade may be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A framework's own name of one test (`docs/format.md`, "Test ids").
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TestId(String);

impl TestId {
    /// Longest id in bytes.
    pub const MAX: usize = 1024;

    /// Takes an id. `None` when it is empty, too long or holds a control character.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fine =
            !text.is_empty() && text.len() <= Self::MAX && !text.chars().any(char::is_control);
        fine.then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id without a trailing parameter list (`test_x[3-a]` → `test_x`): parameters often are
    /// the expected values.
    pub fn without_parameters(&self) -> &str {
        self.0
            .split_once('[')
            .map_or(self.0.as_str(), |(name, _)| name)
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a test failed, as far as the runner could tell.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// An assertion did not hold.
    Assertion,
    /// A name, attribute, module or function of the code under test is not there.
    MissingSymbol,
    /// The test or the code does not compile.
    Compile,
    /// It did not end in time.
    Timeout,
    /// It died: signal, abort, exit in the middle.
    Crash,
    /// Any other error.
    Error,
}

/// How one test ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "class")]
pub enum Outcome {
    /// It ran to its end and held.
    Passed,
    /// It did not hold.
    Failed(FailureClass),
    /// The runner says that it was not run (skip, xfail, todo all count here).
    Skipped,
    /// What it needs is not there: a declared dependency, an interpreter, the network.
    Environment,
}

impl Outcome {
    /// Whether it is [`Outcome::Failed`].
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// What the sandbox of a run really held, from probes in a twin of it.
///
/// Ordered from the weakest; a grade carries the weakest that every probe supports.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Trust {
    /// The tests ran.
    #[default]
    #[serde(rename = "none")]
    None,
    /// No network, only listed files.
    #[serde(rename = "confined")]
    Confined,
    /// And hidden processes, no survivors, fresh state, no host sockets.
    #[serde(rename = "sealed")]
    Sealed,
    /// And bounded memory, processes, CPU and disk for the whole tree.
    #[serde(rename = "sealed+limits")]
    SealedLimits,
    /// And a separate kernel.
    #[serde(rename = "isolated")]
    Isolated,
}

/// How the outcomes were learnt.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One exit status for each file.
    #[default]
    Exit,
    /// A report from the process under test.
    Report,
    /// Report, completion records, exit status, expected ids and sentinels agree.
    Crosschecked,
    /// Assertions in a process that the patch's code never runs in.
    External,
}

/// How well the tests were hidden from the author of the patch.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Secrecy {
    /// The author could open the tests.
    #[default]
    None,
    /// The author was asked not to look.
    Policy,
    /// The author's clone did not hold them.
    Filtered,
    /// And there was no way to a key, shown by the run's probes.
    Confined,
    /// And the author ran on another host.
    SeparateHost,
}

macro_rules! text_form {
    ($type:ty: $($variant:ident = $text:literal),+ $(,)?) => {
        impl $type {
            /// The word used in documents and output.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("`{text}` is none of {}", [$($text),+].join(", "))),
                }
            }
        }
    };
}
pub(crate) use text_form;

text_form!(Trust: None = "none", Confined = "confined", Sealed = "sealed", SealedLimits = "sealed+limits", Isolated = "isolated");
text_form!(Verdict: Exit = "exit", Report = "report", Crosschecked = "crosschecked", External = "external");
text_form!(Secrecy: None = "none", Policy = "policy", Filtered = "filtered", Confined = "confined", SeparateHost = "separate-host");
text_form!(FailureClass: Assertion = "assertion", MissingSymbol = "missing-symbol", Compile = "compile", Timeout = "timeout", Crash = "crash", Error = "error");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_from_the_weakest() {
        assert!(Trust::None < Trust::Confined && Trust::Sealed < Trust::SealedLimits);
        assert!(Verdict::Report < Verdict::Crosschecked);
        assert!(Secrecy::Filtered < Secrecy::Confined);
    }

    #[test]
    fn words_round_trip_and_match_serde() {
        for trust in [
            Trust::None,
            Trust::Confined,
            Trust::Sealed,
            Trust::SealedLimits,
            Trust::Isolated,
        ] {
            assert_eq!(trust.as_str().parse::<Trust>().unwrap(), trust);
            assert_eq!(serde_json::to_value(trust).unwrap(), trust.as_str());
        }
        assert_eq!(
            serde_json::to_value(Secrecy::SeparateHost).unwrap(),
            "separate-host"
        );
    }

    #[test]
    fn parameters_are_cut_from_ids() {
        let id = TestId::new("tests/test_a.py::test_sum[3-4-7]").unwrap();
        assert_eq!(id.without_parameters(), "tests/test_a.py::test_sum");
        assert!(TestId::new("a\nb").is_none());
    }
}
