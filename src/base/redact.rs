//! Types that cannot print what they hold.

use std::fmt;
use zeroize::Zeroize;

/// Bytes that are wiped when dropped and never shown by `Debug`.
///
/// Invariant: the content reaches the outside only through [`Secret::expose`].
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes ownership of `bytes`.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The content. Call it where the bytes are used, and keep no copy.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

/// Whether a text that somebody gave holds a secret key, by its first line or prefix: then no message
/// repeats it.
pub fn holds_secret_key(text: &str) -> bool {
    text.contains("PRIVATE KEY") || text.to_ascii_uppercase().contains("AGE-SECRET-KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_content() {
        let secret = Secret::from("hunter2".to_string());
        assert_eq!(format!("{secret:?}"), "Secret(7 bytes)");
    }
}
