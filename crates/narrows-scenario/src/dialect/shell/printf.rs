//! `printf`, and escapes in texts.

use super::arithmetic;

pub(super) fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
}

/// The text of `printf`.
pub(super) fn formatted(format: &str, words: &[&str]) -> Option<String> {
    let mut out = String::new();
    let mut words = words.iter();
    let format = unescaped(format);
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
                    let precision = precision
                        .map_or(Some(6), |precision| precision.parse().ok().filter(|digits| *digits < 64))?;
                    format!("{:.precision$}", word.parse::<f64>().ok()?)
                }
                _ => return None,
            };
            out += &if pads_zero { format!("{text:0>width$}") } else { format!("{text:>width$}") };
        }
        out += rest;
        // The format is used again for the words that are left.
        if words.len() == 0 || words.len() == before {
            return Some(out);
        }
    }
}
