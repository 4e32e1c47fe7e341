//! Names, keys and recipients as people type them.

use crate::app::Error;
use crate::base::redact::holds_secret_key;
use crate::model::ids::Principal;
use crate::seal::Recipient;
use crate::trust::PublicKey;

pub(super) fn name_of(text: &str) -> Result<Principal, Error> {
    text.parse()
        .map_err(|error| Error::invalid(format!("`{text}` is no name: {error}")))
}

/// A public key as the policy keeps it: kind and base64, no comment.
pub(super) fn key_text(text: &str) -> Result<String, Error> {
    let mut words = text.split_ascii_whitespace();
    let plain = match (words.next(), words.next()) {
        (Some(kind), Some(base64)) => format!("{kind} {base64}"),
        _ => text.trim().to_owned(),
    };
    let key: Result<PublicKey, _> = plain.parse();
    key.map(|key| key.as_str().to_owned())
        .map_err(|error| unfit(text, "no public key", &error))
}

pub(super) fn recipient_text(text: &str) -> Result<String, Error> {
    let recipient: Result<Recipient, _> = text.parse();
    recipient
        .map(|recipient| recipient.as_str().to_owned())
        .map_err(|error| unfit(text, "no age recipient", &error))
}

/// What is wrong with a key that was given. The text itself is never said: it may be a secret key.
fn unfit(text: &str, what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid(if holds_secret_key(text) {
        "a secret key was given; give its public half".to_owned()
    } else {
        format!("{what}: {error}")
    })
}

pub(super) fn add_new(all: &mut Vec<String>, more: &[String]) {
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
}
