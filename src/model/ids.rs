//! Ids as types: what an object is called, who somebody is.

use crate::model::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;
use std::str::FromStr;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseError {
    text: String,
    expected: &'static str,
}

fn refuse(text: &str, expected: &'static str) -> ParseError {
    ParseError {
        text: text.chars().take(80).collect(),
        expected,
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(text.to_owned())) } else { Err(refuse(text, $expected)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

text_id!(
    /// A task: lowercase base32 (RFC 4648, no padding) of the SHA-256 of its creation event.
    TaskId, "a task id (52 lowercase base32 characters)",
    |text| text.len() == 52 && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
);

text_id!(
    /// A person, worker, grader or agent, as the policy names it: lowercase letters, digits, `.`,
    /// `_`, `-`, `@`, starting with a letter or digit, at most 64 characters.
    Principal, "a principal (lowercase letters, digits and . _ - @, at most 64)",
    |text| text.len() <= 64
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-@".contains(&byte))
);

text_id!(
    /// An acceptance criterion within its task: `c1`, `c2`, …
    CriterionId, "a criterion id (`c` and a number from 1 to 999)",
    |text| text.strip_prefix('c').is_some_and(|number| {
        number.len() <= 3 && !number.starts_with('0') && number.parse::<u16>().is_ok()
    })
);

text_id!(
    /// The public name of a hidden test: criterion and ordinal (`c1.2`), `o3` for one of the
    /// others, `s1` for a sentinel.
    Alias, "an alias such as `c1.2`, `o3` or `s1`",
    is_alias
);

text_id!(
    /// The fingerprint of a public key as OpenSSH writes it: `SHA256:` and unpadded base64.
    Fingerprint, "a key fingerprint (`SHA256:…`)",
    |text| text.strip_prefix("SHA256:").is_some_and(|rest| {
        rest.len() == 43 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
    })
);

impl TaskId {
    /// The id that a creation event with these bytes gives its task.
    pub fn of_creation(event: &[u8]) -> Self {
        Self(base32(Digest::of(event).as_bytes()))
    }

    /// The first characters, for people.
    pub fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl CriterionId {
    /// The id of the criterion at `index` (from 0) of a new task.
    pub fn at(index: usize) -> Self {
        Self(format!("c{}", index + 1))
    }
}

impl Alias {
    /// `c1.2`: the `ordinal`-th (from 1) test of a criterion.
    pub fn of_criterion(criterion: &CriterionId, ordinal: usize) -> Self {
        Self(format!("{criterion}.{ordinal}"))
    }

    /// `o3`: the `ordinal`-th (from 1) test outside every criterion.
    pub fn other(ordinal: usize) -> Self {
        Self(format!("o{ordinal}"))
    }

    /// `s1`: the `ordinal`-th (from 1) sentinel.
    pub fn sentinel(ordinal: usize) -> Self {
        Self(format!("s{ordinal}"))
    }

    /// Whether it is the name of a sentinel.
    pub fn is_sentinel(&self) -> bool {
        self.0.starts_with('s')
    }
}

impl Fingerprint {
    /// Lowercase hex of the key's SHA-256, for names in trees and refs (base64 differs by case).
    pub fn hex(&self) -> String {
        let base64 = self.0.trim_start_matches("SHA256:");
        let bytes = data_encoding::BASE64_NOPAD
            .decode(base64.as_bytes())
            .unwrap_or_default();
        hex::encode(bytes)
    }
}

/// `c1.2`, `o3` or `s1`, each number from 1 to 99999 without leading zeros.
fn is_alias(text: &str) -> bool {
    let number = |digits: &str| {
        (1..=5).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match text.split_at_checked(1) {
        Some(("c", rest)) => rest.split_once('.').is_some_and(|(criterion, ordinal)| {
            criterion.len() <= 3 && number(criterion) && number(ordinal)
        }),
        Some(("o" | "s", rest)) => number(rest),
        _ => false,
    }
}

/// Lowercase base32 (RFC 4648) without padding.
pub fn base32(bytes: &[u8]) -> String {
    data_encoding::BASE32_NOPAD
        .encode(bytes)
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_is_the_base32_of_the_creation_event() {
        let id = TaskId::of_creation(b"abc");
        assert_eq!(
            id.as_str(),
            "xj4bnp4pahh6uqkbidpf3lrceoyagyndsylxvhfucd7wd4qacwwq"
        );
        assert_eq!(id.as_str().parse::<TaskId>().unwrap(), id);
        assert!("XJ4BNP4P".parse::<TaskId>().is_err());
    }

    #[test]
    fn principals_and_criteria_are_narrow() {
        for good in ["alice", "a.b-c_d@example.com", "0x"] {
            assert!(good.parse::<Principal>().is_ok(), "{good}");
        }
        for bad in ["", "Alice", "-a", "a b", "a/b", "é"] {
            assert!(bad.parse::<Principal>().is_err(), "{bad}");
        }
        for bad in ["c0", "c", "c01", "d1", "c1000"] {
            assert!(bad.parse::<CriterionId>().is_err(), "{bad}");
        }
        assert_eq!(CriterionId::at(0).as_str(), "c1");
    }

    #[test]
    fn aliases_have_three_forms() {
        for good in ["c1.2", "c999.10", "o3", "s1"] {
            assert!(good.parse::<Alias>().is_ok(), "{good}");
        }
        for bad in [
            "", "c1", "c1.", "c0.1", "c1.0", "c1000.1", "o", "o01", "x1", "...", "c1.2.3", "s-1",
        ] {
            assert!(bad.parse::<Alias>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fingerprints_have_a_case_free_form() {
        let text = "SHA256:".to_owned() + &data_encoding::BASE64_NOPAD.encode(&[7; 32]);
        assert_eq!(text.parse::<Fingerprint>().unwrap().hex(), "07".repeat(32));
    }
}
