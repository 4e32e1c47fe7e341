//! The caller as the policy will know them: name, key, and what they can decrypt with.

use crate::app::keys::{AGE_IDENTITY, read_native};
use crate::app::{Error, Here};
use crate::base::files;
use crate::base::redact::Secret;
use crate::git::Repository;
use crate::model::ids::Principal;
use crate::seal;
use crate::trust::{Candidate, How};
use std::path::Path;

/// The name for a new person: the mail address up to the `@`, else the login, cut down to what a
/// principal may hold.
pub(super) fn proposed_name(here: &Here, repo: &Repository) -> Option<Principal> {
    let mail = repo.config_value("user.email");
    let local = mail.as_deref().and_then(|mail| mail.split('@').next());
    let login = here.var("USER").map(|user| user.to_string_lossy());
    let sources = [
        local.map(str::to_owned),
        login.map(std::borrow::Cow::into_owned),
    ];
    sources
        .into_iter()
        .flatten()
        .find_map(|text| principal_of(&text))
}

fn principal_of(text: &str) -> Option<Principal> {
    let lower = text.to_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c == ' ' { '-' } else { c })
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(*c))
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(40)
        .collect();
    plain.parse().ok()
}

/// What the person can be sent sealed tests with: their key where hangar can decrypt with it by
/// itself, else a native age identity, which is made in `dir` where there is none yet.
pub(super) fn recipient(candidate: &Candidate, dir: &Path) -> Result<Recipient, Error> {
    if own_key_decrypts(candidate) {
        return Ok(Recipient {
            text: candidate.public.as_str().to_owned(),
            made: false,
        });
    }
    let path = dir.join(AGE_IDENTITY);
    if path.exists() {
        let identity = read_native(&path)?;
        let recipient = identity
            .recipient()
            .map_err(|error| Error::invalid(error.to_string()))?;
        return Ok(Recipient {
            text: recipient.as_str().to_owned(),
            made: false,
        });
    }
    let (secret, text) = seal::generate_identity();
    files::create_private_dir(dir)?;
    let mut bytes = secret.expose().to_vec();
    bytes.push(b'\n');
    let bytes = Secret::new(bytes);
    files::write_atomic(&path, bytes.expose(), 0o600)?;
    Ok(Recipient { text, made: true })
}

/// A key in an agent or token, an ECDSA key and one behind a passphrase can't decrypt unattended.
fn own_key_decrypts(candidate: &Candidate) -> bool {
    let plain_file = matches!(
        candidate.how,
        How::File {
            encrypted: false,
            ..
        }
    );
    plain_file && candidate.public.algorithm().can_decrypt()
}

/// An age recipient of the person.
#[derive(Debug, Clone)]
pub(super) struct Recipient {
    /// Its text.
    pub(super) text: String,
    /// Whether an identity was made for it just now.
    pub(super) made: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_down_to_what_a_principal_may_hold() {
        let name = |text: &str| principal_of(text).map(|name| name.to_string());
        assert_eq!(name("Alice B.").as_deref(), Some("alice-b."));
        assert_eq!(name("-_x").as_deref(), Some("x"));
        assert_eq!(name("Ω"), None);
    }
}
