//! Sizes such as `4G` and durations such as `10m`.

use std::time::Duration;

/// Largest size of a limit: 1024T. A document holds no number of more than 63 bits.
pub const MAX_SIZE: u64 = 1 << 50;
/// Longest time limit: a year.
pub const MAX_DURATION: Duration = Duration::from_secs(365 * 86_400);

/// Bytes of `512`, `64K`, `64M`, `4G` or `1T` (powers of 1024; `B`, `iB` may follow). `None` when
/// the text is none of these, zero, or too large.
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit = unit
        .strip_suffix("iB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(unit);
    let shift = match unit {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number
        .checked_mul(1_u64 << shift)
        .filter(|bytes| *bytes > 0)
}

/// The shortest text that [`size`] reads as `bytes`.
pub fn size_text(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes > 0 && bytes.is_multiple_of(1_u64 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// `500ms`, `30s`, `10m`, `2h` or `1d`. `None` when the text is none of these, zero, or too large.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number.checked_mul(millis).filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(millis))
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("4G"), Some(4 << 30));
        assert_eq!(size("64 MiB"), Some(64 << 20));
        assert_eq!(size("100"), Some(100));
        for bad in ["", "G", "-1G", "1.5G", "0", "4X", "99999999999T"] {
            assert_eq!(size(bad), None, "{bad:?}");
        }
        assert_eq!(size_text(4 << 30), "4G");
        assert_eq!(size_text(1000), "1000");
    }

    #[test]
    fn durations_need_their_unit() {
        assert_eq!(duration("10m"), Some(Duration::from_secs(600)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for bad in ["", "10", "0s", "m", "1w", "99999999999999999999s"] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }
}
