//! The one source of time. Nothing in hangar decides by a clock except the expiry of an approval
//! and of a lease, both judged by the reader's own clock.

use jiff::Timestamp;

/// Environment variable that fixes the clock (RFC 3339), for tests and reproducible demos.
///
/// It can only change *claimed* times, which never decide anything, and expiry, which the person
/// who could set the variable could as well change with `date`.
pub const NOW_VARIABLE: &str = "HANGAR_NOW";

/// A source of the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The operating system's clock.
    System,
    /// Always the same moment.
    Fixed(Timestamp),
}

/// [`NOW_VARIABLE`] holds no time.
#[derive(Debug, thiserror::Error)]
#[error("{NOW_VARIABLE} holds no RFC 3339 time before 9999-12-30T22:00:00Z, such as 2026-01-02T03:04:05Z: `{}`", .0.escape_debug())]
pub struct NoTime(String);

impl Clock {
    /// The system clock, unless [`NOW_VARIABLE`] holds a valid time; [`Clock::check`] says at the
    /// start of a process that what it holds is one.
    pub fn from_env() -> Self {
        Self::named()
            .ok()
            .flatten()
            .map_or(Self::System, Self::Fixed)
    }

    /// Refuses a process whose [`NOW_VARIABLE`] holds something else than a time.
    pub fn check() -> Result<(), NoTime> {
        Self::named().map(drop)
    }

    fn named() -> Result<Option<Timestamp>, NoTime> {
        let set = std::env::var_os(NOW_VARIABLE);
        let Some(text) = set.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let text = text.to_string_lossy();
        let time = text.parse().map_err(|_| NoTime(text.to_string()))?;
        Ok(Some(time))
    }

    /// The current time, cut to whole seconds.
    #[expect(clippy::disallowed_methods, reason = "this is the wrapper")]
    pub fn now(self) -> Timestamp {
        let now = match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => at,
        };
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clock_is_cut_to_seconds() {
        let at: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(Clock::Fixed(at).now().to_string(), "2026-01-02T03:04:05Z");
    }
}
