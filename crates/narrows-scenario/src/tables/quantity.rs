//! Numbers and units of data files.

use std::fmt;
use std::str::FromStr;

/// The unit of a file's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 10⁻⁹ s.
    Nanoseconds,
    /// 10⁻⁶ s.
    Microseconds,
    /// 10⁻³ s.
    Milliseconds,
    /// 1 s.
    Seconds,
}

const UNITS: [(&str, TimeUnit); 6] = [
    ("ns", TimeUnit::Nanoseconds),
    ("us", TimeUnit::Microseconds),
    ("µs", TimeUnit::Microseconds),
    ("μs", TimeUnit::Microseconds),
    ("ms", TimeUnit::Milliseconds),
    ("s", TimeUnit::Seconds),
];

impl TimeUnit {
    /// The unit in nanoseconds.
    pub fn nanoseconds(self) -> f64 {
        match self {
            Self::Nanoseconds => 1.0,
            Self::Microseconds => 1e3,
            Self::Milliseconds => 1e6,
            Self::Seconds => 1e9,
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        UNITS.into_iter().find(|(known, _)| *known == name).map(|(_, unit)| unit)
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = UNITS.into_iter().find(|(_, unit)| unit == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text.trim()).ok_or_else(|| format!("`{text}` is not a unit of these: ns, us, ms, s"))
    }
}

/// Splits off the number at the start of a text, as the nearest `f64`, from the trimmed rest. `nan` and
/// `inf` are not numbers.
pub(super) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(usize::from(matches!(bytes.first(), Some(b'-' | b'+'))));
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = end + 1 + sign;
        if exponent < bytes.len() && digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// Whether a text can be a column name. A word that may be meant as a number cannot.
pub(super) fn is_name(text: &str) -> bool {
    let word = text.trim().to_lowercase();
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !matches!(word.as_str(), "nan" | "inf" | "infinity" | "null" | "na" | "none")
}
