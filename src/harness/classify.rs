//! Which class a failure has: a table of texts and fields by which agent programs tell it.
//!
//! Only what a program says about itself is looked at (terminal events, its notes on retries, the
//! end of standard error), never what the model or a tool said: an agent may talk about limits.
//! Programs change their texts without notice; a row is added, never taken out, and has its sample
//! in `classify_tests.rs`.

use super::finish::ErrorClass;
use super::reset;
use jiff::Timestamp;
use unicode_normalization::UnicodeNormalization as _;

/// Longest text that is looked at.
const MAX_TEXT: usize = 8 << 10;

/// A class before its time of reset is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Limit,
    Rate,
    Overloaded,
    Auth,
    Billing,
    Context,
    Protocol,
    Unknown,
}

impl Kind {
    const fn class(self, reset: Option<Timestamp>) -> ErrorClass {
        match self {
            Self::Limit => ErrorClass::Limit(reset),
            Self::Rate => ErrorClass::Rate,
            Self::Overloaded => ErrorClass::Overloaded,
            Self::Auth => ErrorClass::Auth,
            Self::Billing => ErrorClass::Billing,
            Self::Context => ErrorClass::Context,
            Self::Protocol => ErrorClass::Protocol,
            Self::Unknown => ErrorClass::Unknown,
        }
    }
}

/// A part of a text, normalised, and what it means. The first row that fits counts.
pub(super) type Rows = &'static [(&'static str, Row)];

/// What a row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row(Kind);

const LIMIT: Row = Row(Kind::Limit);
const RATE: Row = Row(Kind::Rate);
const OVERLOADED: Row = Row(Kind::Overloaded);
const AUTH: Row = Row(Kind::Auth);
const BILLING: Row = Row(Kind::Billing);
const CONTEXT: Row = Row(Kind::Context);
const PROTOCOL: Row = Row(Kind::Protocol);
const UNKNOWN: Row = Row(Kind::Unknown);

/// Texts of Claude Code up to 2.1.332, version 1 of the table.
pub(super) const CLAUDE: Rows = &[
    ("you've hit your monthly spend limit", BILLING),
    ("you've hit your channel's monthly spend limit", BILLING),
    ("you've hit your session limit", LIMIT),
    ("you've hit your weekly limit", LIMIT),
    ("you've hit your limit", LIMIT),
    ("you've hit your ", LIMIT),
    ("claude ai usage limit reached", LIMIT),
    ("claude usage limit reached", LIMIT),
    ("you're out of extra usage", LIMIT),
    ("you've reached your ", LIMIT),
    ("request rejected (429)", RATE),
    ("server is temporarily limiting requests", RATE),
    ("repeated 529 overloaded errors", OVERLOADED),
    ("api error: 529", OVERLOADED),
    ("api error (529", OVERLOADED),
    ("api error: 500", OVERLOADED),
    ("api error: 502", OVERLOADED),
    ("api error: 503", OVERLOADED),
    ("not logged in", AUTH),
    ("invalid api key", AUTH),
    ("failed to authenticate", AUTH),
    ("oauth token revoked", AUTH),
    ("session expired. please run /login", AUTH),
    ("disabled claude subscription access", AUTH),
    ("credit balance is too low", BILLING),
    ("prompt is too long", CONTEXT),
    ("autocompact is thrashing", CONTEXT),
    ("there's an issue with the selected model", UNKNOWN),
    ("no conversation found with session id", PROTOCOL),
    ("is already in use", PROTOCOL),
    ("unable to connect to api", OVERLOADED),
    ("request timed out", OVERLOADED),
    ("connection error", OVERLOADED),
    ("api returned an empty or malformed response", OVERLOADED),
];

/// Texts of Codex up to 0.171.0, version 1 of the table.
pub(super) const CODEX: Rows = &[
    ("you've hit your usage limit", LIMIT),
    ("you're out of codex messages", LIMIT),
    ("your workspace is out of credits", BILLING),
    ("you hit your spend cap", BILLING),
    ("quota exceeded", BILLING),
    ("to use codex with your chatgpt plan, upgrade", BILLING),
    ("exceeded retry limit, last status: 429", RATE),
    ("rate limit exceeded", RATE),
    ("rate limit reached for", RATE),
    ("selected model is at capacity", OVERLOADED),
    ("currently experiencing high demand", OVERLOADED),
    ("unexpected status 401", AUTH),
    ("your access token could not be refreshed", AUTH),
    ("not logged in", AUTH),
    ("missing environment variable:", AUTH),
    ("ran out of room in the model's context window", CONTEXT),
    ("error running remote compact task:", CONTEXT),
    ("no rollout found for thread id", PROTOCOL),
    ("stream disconnected before completion", OVERLOADED),
    ("connection failed:", OVERLOADED),
    ("access blocked by cloudflare", OVERLOADED),
    ("request timed out", OVERLOADED),
];

/// Words of Claude Code's fields `error` and `api_error`.
pub(super) const CLAUDE_FIELD: Rows = &[
    ("usage_limit_reached", LIMIT),
    ("authentication_failed", AUTH),
    ("oauth_org_not_allowed", AUTH),
    ("account_on_hold", AUTH),
    ("verification_required", AUTH),
    ("cloud_credential_error", AUTH),
    ("billing_error", BILLING),
    ("rate_limit", RATE),
    ("overloaded", OVERLOADED),
    ("server_error", OVERLOADED),
];

/// The class of a text; `None` where no row fits. `at` is when it was said.
pub(super) fn of_text(rows: Rows, text: &str, at: Timestamp) -> Option<ErrorClass> {
    let text = normalised(text);
    let (_, Row(kind)) = rows.iter().find(|(part, _)| text.contains(part))?;
    let reset = (*kind == Kind::Limit).then(|| reset::until(&text, at));
    Some(kind.class(reset.flatten()))
}

/// The class of a word in a field.
pub(super) fn of_field(rows: Rows, word: &str) -> Option<ErrorClass> {
    let (_, Row(kind)) = rows.iter().find(|(known, _)| *known == word)?;
    Some(kind.class(None))
}

/// The class of an HTTP status.
pub(super) const fn of_status(status: u64) -> Option<ErrorClass> {
    match status {
        401 | 403 => Some(ErrorClass::Auth),
        402 => Some(ErrorClass::Billing),
        429 => Some(ErrorClass::Rate),
        500..=599 => Some(ErrorClass::Overloaded),
        _ => None,
    }
}

/// Compatibility forms, plain quotes, single spaces, lower case.
fn normalised(text: &str) -> String {
    let plain = text.chars().take(MAX_TEXT).nfkc().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' | '`' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        other => other,
    });
    let plain: String = plain.flat_map(char::to_lowercase).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
