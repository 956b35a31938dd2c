//! Quantities in the syntax of ns-3: `15ms`, `10Mbps`.
//!
//! Source: `data-rate.cc` and `time.cc` of ns-3 3.46.1. A time without a unit is in seconds.

use narrows_core::Duration;

use super::InteropError;

/// Longest time, ten years, in nanoseconds: far beyond any run.
const LONGEST: u128 = 10 * 365 * 86_400 * NANOS;
const NANOS: u128 = 1_000_000_000;
/// Most decimals and digits of a number.
const DIGITS: usize = 15;

/// Units of time, in nanoseconds.
const TIMES: [(&str, u128); 8] = [
    ("s", NANOS),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
    ("min", 60 * NANOS),
    ("h", 3600 * NANOS),
    ("d", 86_400 * NANOS),
    ("", NANOS),
];

/// A time, to the nanosecond.
pub(super) fn time(name: &str, text: &str) -> Result<Duration, InteropError> {
    let nanos = split(text).and_then(|(number, unit)| {
        let (_, scale) = TIMES.into_iter().find(|(known, _)| *known == unit)?;
        scaled(number, scale).filter(|nanos| *nanos <= LONGEST)
    });
    match nanos {
        Some(nanos) => Ok(Duration::from_nanos(nanos as u64)),
        None => Err(InteropError(format!(
            "--{name}: expected a time up to ten years in s, ms, us, ns, min, h or d, found `{text}`"
        ))),
    }
}

/// A rate, above zero.
pub(super) fn bits_per_second(name: &str, text: &str) -> Result<u64, InteropError> {
    let bits = split(text).and_then(|(number, unit)| {
        let scale = rate_unit(unit)?;
        scaled(number, scale).and_then(|bits| u64::try_from(bits).ok()).filter(|bits| *bits > 0)
    });
    bits.ok_or_else(|| {
        InteropError(format!(
            "--{name}: expected a rate above zero in bps, Kbps, Mbps or Gbps (Bps for bytes, Kibps for 1024), found `{text}`"
        ))
    })
}

/// Bits per second of a unit: `Mbps`, `Mb/s`, `MB/s`, `Mib/s`.
fn rate_unit(unit: &str) -> Option<u128> {
    let unit = unit.strip_suffix("ps").or_else(|| unit.strip_suffix("/s"))?;
    let (prefix, size) = match unit.strip_suffix('b') {
        Some(prefix) => (prefix, 1),
        None => (unit.strip_suffix('B')?, 8),
    };
    let scale = match prefix {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    Some(scale * size)
}

/// A number and its unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The number times the scale, rounded down.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // Below 10^30 · 4·10^15, no overflow.
    if whole.len() > DIGITS || part.len() > DIGITS || whole.len() + part.len() == 0 {
        return None;
    }
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    Some(digits.checked_mul(scale)? / 10_u128.pow(part.len() as u32))
}
