//! `printf`, and escapes in texts.

use super::arithmetic;

/// Whose escapes: beside the ones that all have, a quote may have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Of `echo -e` and `tr`.
    OfText,
    /// Of `printf`, awk and `$'…'`.
    OfQuotes,
}

/// A text without escapes; `None` if it has others than the common ones.
pub(super) fn unescaped(text: &str, escapes: Escapes) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some(c @ ('"' | '\'')) if escapes == Escapes::OfQuotes => out.push(c),
            Some(c) if c.is_ascii_alphanumeric() || c == '?' => return None,
            Some(c) => out.extend(['\\', c]),
        }
    }
    Some(out)
}

/// Whether the digits of a number end half way between two that have so many digits behind the point.
fn is_between(word: &str, value: f64, precision: usize) -> bool {
    let digits = word.split_once('.').map_or("", |(_, digits)| digits.trim_end_matches('0'));
    // Some programs calculate with more digits than others, unless the number has an end in binary, too.
    let is_exact = digits.len() < 53 && (value * (1_u64 << digits.len()) as f64).fract() == 0.0;
    digits.len() == precision + 1 && digits.ends_with('5') && !is_exact
}

/// The text of `printf`.
pub(super) fn formatted(format: &str, words: &[&str]) -> Option<String> {
    let mut out = String::new();
    let mut words = words.iter();
    let format = unescaped(format, Escapes::OfQuotes)?;
    loop {
        let before = words.len();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            out += &rest[..at];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                out.push('%');
                rest = behind;
                continue;
            }
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let (flags, kind) = (&rest[..end], &rest[end..=end]);
            rest = &rest[end + 1..];
            let word = words.next().copied().unwrap_or_default();
            let (width, precision) =
                flags.split_once('.').map_or((flags, None), |(width, precision)| (width, Some(precision)));
            let pads_zero = width.starts_with('0');
            if !width.chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            let width: usize =
                if width.is_empty() { 0 } else { width.parse().ok().filter(|width| *width < 256)? };
            let integer = || if word.is_empty() { Some(0) } else { arithmetic::number(word) };
            let text = match (kind, precision) {
                ("s", None) => word.to_owned(),
                // Of a fraction, awk takes the whole part.
                ("d" | "i" | "u", None) => match integer() {
                    Some(number) => number.to_string(),
                    None => format!("{:.0}", word.parse::<f64>().ok()?.trunc()),
                },
                ("x", None) => format!("{:x}", integer()?),
                ("X", None) => format!("{:X}", integer()?),
                ("f", precision) => {
                    let precision = precision.map_or(Some(6), |precision| match precision {
                        "" => Some(0),
                        precision => precision.parse().ok().filter(|digits| *digits < 64),
                    })?;
                    let value =
                        word.parse::<f64>().ok().filter(|value| !is_between(word, *value, precision))?;
                    format!("{value:.precision$}")
                }
                _ => return None,
            };
            // Zeros stand behind the sign.
            let (sign, digits) = match text.strip_prefix('-').filter(|_| pads_zero && kind != "s") {
                Some(digits) => ("-", digits),
                None => ("", text.as_str()),
            };
            let width = width.saturating_sub(sign.len());
            out += sign;
            out += &match pads_zero && kind != "s" {
                true => format!("{digits:0>width$}"),
                false => format!("{digits:>width$}"),
            };
        }
        out += rest;
        // The format is used again for the words that are left.
        if words.len() == 0 || words.len() == before {
            return Some(out);
        }
    }
}
