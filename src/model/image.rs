//! A container image, named so that it can never be another one.

use std::fmt;
use std::str::FromStr;

/// An image by its digest: `NAME@sha256:HEX`, or `sha256:HEX`, the id of one on this machine.
///
/// Invariant: it begins with a letter or digit and holds no space, so that no program takes it for
/// an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image(String);

/// The text names no image by its digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "is an image by its digest, `NAME@sha256:HEX`, since a tag can name another one tomorrow; \
     `podman image inspect --format '{{{{index .RepoDigests 0}}}}' {name}` prints it, and so does \
     `docker image inspect` with the same words"
)]
pub struct ImageError {
    name: String,
}

impl Image {
    /// Whether it is the id of one on this machine, which no registry knows.
    pub fn is_id(&self) -> bool {
        !self.0.contains('@')
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Image {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let (name, digest) = match text.rsplit_once('@') {
            Some((name, digest)) => (Some(name), digest),
            None => (None, text),
        };
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() == 64 && hex.bytes().all(digits) && name.is_none_or(is_name) {
            return Ok(Self(text.to_owned()));
        }
        // What is shown may be pasted into a shell.
        let plain = Some(name.unwrap_or(text)).filter(|name| is_name(name));
        Err(ImageError {
            name: plain.unwrap_or("NAME").to_owned(),
        })
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digest_names_an_image() {
        let hex = "ab12".repeat(16);
        for good in [
            format!("docker.io/library/python@sha256:{hex}"),
            format!("localhost:5000/a_b/c.d@sha256:{hex}"),
            format!("sha256:{hex}"),
        ] {
            let image: Image = good.parse().unwrap();
            assert_eq!(image.as_str(), good);
            assert_eq!(image.is_id(), good.starts_with("sha256:"));
        }
        for bad in [
            String::new(),
            "python".to_owned(),
            "python:3.13".to_owned(),
            format!("python@sha256:{}", &hex[1..]),
            format!("python@sha256:{}", hex.to_uppercase()),
            format!("python@md5:{hex}"),
            format!("--privileged@sha256:{hex}"),
            format!("a b@sha256:{hex}"),
            format!("@sha256:{hex}"),
        ] {
            bad.parse::<Image>().unwrap_err();
        }
    }

    #[test]
    fn a_tag_is_refused_with_the_command_that_finds_the_digest() {
        let error = "python:3.13".parse::<Image>().unwrap_err().to_string();
        let command = "podman image inspect --format '{{index .RepoDigests 0}}' python:3.13";
        assert!(error.contains(command), "{error}");
        let error = "x; rm -r ~".parse::<Image>().unwrap_err().to_string();
        assert!(error.contains("' NAME`"), "{error}");
    }
}
