//! What would make a provider work, in words for a person.

/// The remedy for a failed step of the set-up, where the machine is to blame.
pub(super) fn remedy(_what: &str, _errno: i32) -> Option<String> {
    None
}
