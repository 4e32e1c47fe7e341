//! Each row of the tables with the text that was seen, as the programs wrote it.

use super::*;

fn at() -> Timestamp {
    "2026-11-30T17:53:00Z".parse().unwrap()
}

/// What a sample means: a limit until then (empty: no time), or another class.
enum Sample {
    Limit(&'static str),
    Is(ErrorClass),
}

impl Sample {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Limit(until) => ErrorClass::Limit(until.parse().ok()),
            Self::Is(class) => *class,
        }
    }
}

use Sample::{Is, Limit};

const CODEX_SAMPLES: &[(&str, Sample)] = &[
    // 0.171.0, with its typographic apostrophe
    (
        "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 6:53 PM.",
        Limit("2026-11-30T18:53:00Z"),
    ),
    (
        "You've hit your usage limit. To get more access now, send a request to your admin or try again at 3:51 PM.",
        Limit("2026-12-01T15:51:00Z"),
    ),
    (
        "You’ve hit your usage limit. Upgrade to Plus. Try again at Dec 8th, 2026 7:58 PM.",
        Limit("2026-12-08T19:58:00Z"),
    ),
    (
        "You've hit your usage limit. Try again in 5 days 22 hours 11 minutes.",
        Limit("2026-12-06T16:04:00Z"),
    ),
    ("You've hit your usage limit, try again later.", Limit("")),
    (
        "You've hit your usage limit for gpt-x. Switch to another model now, or try again at 6:53 PM.",
        Limit("2026-11-30T18:53:00Z"),
    ),
    (
        "You’re out of Codex messages. Your rate limit resets on Dec 12, 2026, 5:04 AM.",
        Limit("2026-12-12T05:04:00Z"),
    ),
    ("Your workspace is out of credits.", Is(ErrorClass::Billing)),
    (
        "You hit your spend cap set in your workspace.",
        Is(ErrorClass::Billing),
    ),
    (
        "Quota exceeded. Check your plan and billing details.",
        Is(ErrorClass::Billing),
    ),
    (
        "To use Codex with your ChatGPT plan, upgrade to Plus",
        Is(ErrorClass::Billing),
    ),
    (
        "exceeded retry limit, last status: 429 Too Many Requests, request id: r1",
        Is(ErrorClass::Rate),
    ),
    (
        "rate limit exceeded: Rate limit reached for gpt-x in organization o. Please try again in 1.5s.",
        Is(ErrorClass::Rate),
    ),
    (
        "Rate limit reached for gpt-x. Please try again in 1.5s.",
        Is(ErrorClass::Rate),
    ),
    (
        "Selected model is at capacity. Please try a different model.",
        Is(ErrorClass::Overloaded),
    ),
    (
        "We’re currently experiencing high demand, which may cause temporary errors.",
        Is(ErrorClass::Overloaded),
    ),
    (
        "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:9911/v1/responses",
        Is(ErrorClass::Auth),
    ),
    (
        "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.",
        Is(ErrorClass::Auth),
    ),
    ("Not logged in", Is(ErrorClass::Auth)),
    (
        "Missing environment variable: `CODEX_API_KEY`.",
        Is(ErrorClass::Auth),
    ),
    (
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        Is(ErrorClass::Context),
    ),
    (
        "Error running remote compact task: x",
        Is(ErrorClass::Context),
    ),
    (
        "thread/resume failed: no rollout found for thread id 01a2",
        Is(ErrorClass::Protocol),
    ),
    (
        "stream disconnected before completion: stream closed before response.completed",
        Is(ErrorClass::Overloaded),
    ),
    (
        "Connection failed: error sending request",
        Is(ErrorClass::Overloaded),
    ),
    ("Access blocked by Cloudflare.", Is(ErrorClass::Overloaded)),
    ("request timed out", Is(ErrorClass::Overloaded)),
];

#[test]
fn texts_of_codex_have_their_class() {
    check(CODEX, CODEX_SAMPLES);
}

const CLAUDE_SAMPLES: &[(&str, Sample)] = &[
    (
        "You've hit your session limit · resets 6:38pm (UTC)",
        Limit("2026-11-30T18:38:00Z"),
    ),
    (
        "You've hit your weekly limit · resets Dec 3 at 4pm (UTC)",
        Limit("2026-12-03T16:00:00Z"),
    ),
    // 2.1.332
    (
        "You've hit your 5-hour limit · resets 7:47pm (UTC)",
        Limit("2026-11-30T19:47:00Z"),
    ),
    (
        "You've hit your channel's monthly spend limit.",
        Is(ErrorClass::Billing),
    ),
    ("You've hit your limit · resets 3pm (Asia/Seoul)", Limit("")),
    (
        "Claude AI usage limit reached|1796061600",
        Limit("2026-11-30T18:00:00Z"),
    ),
    (
        "Claude usage limit reached. Your limit will reset at 3pm (UTC).",
        Limit("2026-12-01T15:00:00Z"),
    ),
    (
        "You're out of extra usage · resets 3pm (UTC)",
        Limit("2026-12-01T15:00:00Z"),
    ),
    ("You've reached your Opus limit.", Limit("")),
    (
        "You've hit your monthly spend limit.",
        Is(ErrorClass::Billing),
    ),
    (
        "API Error: Request rejected (429) · This request would exceed your rate limit",
        Is(ErrorClass::Rate),
    ),
    (
        "API Error: Server is temporarily limiting requests (not your usage limit)",
        Is(ErrorClass::Rate),
    ),
    (
        "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.",
        Is(ErrorClass::Overloaded),
    ),
    (
        "API Error: Repeated 529 Overloaded errors.",
        Is(ErrorClass::Overloaded),
    ),
    (
        "API Error (529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}})",
        Is(ErrorClass::Overloaded),
    ),
    (
        "API Error: 500 Internal server error.",
        Is(ErrorClass::Overloaded),
    ),
    ("API Error: 502 Bad gateway", Is(ErrorClass::Overloaded)),
    (
        "API Error: 503 Service unavailable",
        Is(ErrorClass::Overloaded),
    ),
    ("Not logged in · Please run /login", Is(ErrorClass::Auth)),
    (
        "Invalid API key · Fix external API key",
        Is(ErrorClass::Auth),
    ),
    (
        "Failed to authenticate. API Error: 401 OAuth token has expired. Please obtain a new token or refresh your existing token.",
        Is(ErrorClass::Auth),
    ),
    (
        "OAuth token revoked · Please run /login",
        Is(ErrorClass::Auth),
    ),
    (
        "Session expired. Please run /login to sign in again.",
        Is(ErrorClass::Auth),
    ),
    (
        "Your organization has disabled Claude subscription access for Claude Code",
        Is(ErrorClass::Auth),
    ),
    ("Credit balance is too low", Is(ErrorClass::Billing)),
    ("Prompt is too long", Is(ErrorClass::Context)),
    ("Autocompact is thrashing", Is(ErrorClass::Context)),
    (
        "There's an issue with the selected model (X). It may not exist or you may not have access to it.",
        Is(ErrorClass::Unknown),
    ),
    (
        "No conversation found with session ID: 01a2",
        Is(ErrorClass::Protocol),
    ),
    (
        "Session ID 01a2 is already in use.",
        Is(ErrorClass::Protocol),
    ),
    (
        "Unable to connect to API (ConnectionRefused)",
        Is(ErrorClass::Overloaded),
    ),
    ("Request timed out", Is(ErrorClass::Overloaded)),
    ("Connection error.", Is(ErrorClass::Overloaded)),
    (
        "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request",
        Is(ErrorClass::Overloaded),
    ),
];

#[test]
fn texts_of_claude_code_have_their_class() {
    check(CLAUDE, CLAUDE_SAMPLES);
}

/// Each sample has its class, and no row is without a sample.
fn check(rows: Rows, samples: &[(&str, Sample)]) {
    for (text, sample) in samples {
        let class = sample.class();
        assert_eq!(of_text(rows, text, at()), Some(class), "{text}");
        let shouted = text.to_uppercase().replace(' ', " \n ");
        let found = of_text(rows, &shouted, at()).map(|class| class.to_string());
        assert_eq!(found, Some(class.to_string()), "{shouted}");
    }
    for (part, _) in rows {
        let first = |text: &str| rows.iter().find(|(one, _)| normalised(text).contains(one));
        let has = samples
            .iter()
            .any(|(text, _)| first(text).is_some_and(|(one, _)| one == part));
        assert!(has, "no sample for {part:?}");
    }
}

#[test]
fn what_is_no_known_text_has_no_class() {
    for text in [
        "",
        "I wrote a limiter that answers 429.",
        "the usage limit test passes now",
    ] {
        assert_eq!(of_text(CODEX, text, at()), None, "{text}");
        assert_eq!(of_text(CLAUDE, text, at()), None, "{text}");
    }
}

#[test]
fn fields_and_statuses_have_their_class() {
    assert_eq!(
        of_field(CLAUDE_FIELD, "overloaded"),
        Some(ErrorClass::Overloaded)
    );
    assert_eq!(of_field(CLAUDE_FIELD, "rate_limit"), Some(ErrorClass::Rate));
    assert_eq!(
        of_field(CLAUDE_FIELD, "usage_limit_reached"),
        Some(ErrorClass::Limit(None))
    );
    assert_eq!(
        of_field(CLAUDE_FIELD, "billing_error"),
        Some(ErrorClass::Billing)
    );
    assert_eq!(of_field(CLAUDE_FIELD, "invalid_request"), None);
    for word in [
        "authentication_failed",
        "oauth_org_not_allowed",
        "account_on_hold",
    ] {
        assert_eq!(of_field(CLAUDE_FIELD, word), Some(ErrorClass::Auth));
    }
    assert_eq!(of_status(529), Some(ErrorClass::Overloaded));
    assert_eq!(of_status(401), Some(ErrorClass::Auth));
    assert_eq!(of_status(200), None);
}
