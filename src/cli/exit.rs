//! Exit codes. The one list of them.

use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;

/// How a command ended. Scripts decide by the number, people by the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ExitStatus {
    /// Done, or the answer is yes.
    Done = 0,
    /// The answer is no: not accepted, void, a check found something.
    No = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Something needed is missing: sandbox, key, harness, dependency, grader identity.
    Missing = 3,
    /// Refused by policy, signature, role or state.
    Refused = 4,
    /// Lost a race, or held elsewhere.
    Held = 5,
    /// Waits for a person.
    Waiting = 6,
    /// Trouble outside: network, disk, agent program, provider limit. Running it again is safe.
    Trouble = 7,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl ExitStatus {
    /// All of them with their meaning, for help and reference.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Done, "done, or the answer is yes"),
        (
            Self::No,
            "the answer is no (not accepted, void, a check found something)",
        ),
        (Self::Usage, "wrong usage"),
        (
            Self::Missing,
            "something needed is missing (sandbox, key, harness, dependency, grader identity)",
        ),
        (Self::Refused, "refused (policy, signature, role, state)"),
        (Self::Held, "lost a race, or held elsewhere"),
        (Self::Waiting, "waiting for a person"),
        (
            Self::Trouble,
            "trouble outside (network, disk, agent program, provider limit); running it again is safe",
        ),
        (Self::Interrupted, "interrupted"),
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Yes or no as a status.
    pub const fn answer(yes: bool) -> Self {
        if yes { Self::Done } else { Self::No }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let codes: Vec<u8> = ExitStatus::ALL
            .iter()
            .map(|(status, _)| status.code())
            .collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 130]);
    }
}
