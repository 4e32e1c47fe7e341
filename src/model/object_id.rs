//! Names of Git objects, as documents write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The name of a Git object: 40 (SHA-1) or 64 (SHA-256) lowercase hex digits.
///
/// Invariant: the bytes after [`ObjectId::as_bytes`] are zero, so equal names are equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    bytes: [u8; 32],
    len: u8,
}

/// The text or the bytes are not the name of a Git object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Git object id (40 or 64 lowercase hex digits)")]
pub struct ParseError(String);

impl ObjectId {
    /// The id with these 20 or 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        if !matches!(bytes.len(), 20 | 32) {
            return Err(ParseError(format!("{} bytes", bytes.len())));
        }
        let mut out = [0; 32];
        out[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            bytes: out,
            len: if bytes.len() == 20 { 20 } else { 32 },
        })
    }

    /// The 20 or 32 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The first twelve hex digits, for people.
    pub fn short(&self) -> String {
        hex::encode(&self.bytes[..6])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.as_bytes()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({})", self.short())
    }
}

impl FromStr for ObjectId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError(text.chars().take(80).collect());
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(error());
        }
        let bytes = hex::decode(text).map_err(|_| error())?;
        Self::from_bytes(&bytes).map_err(|_| error())
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl schemars::JsonSchema for ObjectId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ObjectId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lengths_round_trip() {
        for text in ["0123456789abcdef".repeat(4), "ab".repeat(20)] {
            assert_eq!(text.parse::<ObjectId>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn only_the_canonical_text_is_accepted() {
        for text in [
            "",
            "ab",
            &"AB".repeat(20),
            &"ab".repeat(21),
            "HEAD",
            "--all",
        ] {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
    }
}
