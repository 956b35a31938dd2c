//! Values as text, one per line.

/// Maximum length of a line with a value.
const LONGEST_LINE: usize = 4096;
/// Longer than any valid delay, and counted as too long by the run: some 290 years.
const LONGEST: f64 = 9.2e18;

/// Assembles lines from chunks.
#[derive(Debug)]
pub(super) struct Lines {
    /// Unit of numbers without one, in nanoseconds.
    unit: f64,
    /// The incomplete last line.
    part: Vec<u8>,
    /// Number of lines so far.
    number: u64,
}

impl Lines {
    /// Starts at the first line; numbers without a unit count `unit` nanoseconds.
    pub(super) fn new(unit: f64) -> Self {
        Self { unit, part: Vec::new(), number: 0 }
    }

    /// The values of the lines completed by these bytes, up to the first error, and that error.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> (Vec<i64>, Result<(), String>) {
        let mut values = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.part.extend_from_slice(piece);
            let ends = piece.ends_with(b"\n");
            if !ends && let Some(at) = self.part.iter().position(|&byte| byte == b'#') {
                // A comment may have any length.
                self.part.truncate(at + 1);
            }
            let is_whole = ends || self.part.len() > LONGEST_LINE;
            if is_whole && let Err(message) = self.line(&mut values) {
                return (values, Err(message));
            }
        }
        (values, Ok(()))
    }

    /// The last line may have no line end.
    pub(super) fn finish(&mut self) -> (Vec<i64>, Result<(), String>) {
        let mut values = Vec::new();
        let result = self.line(&mut values);
        (values, result)
    }

    fn line(&mut self, values: &mut Vec<i64>) -> Result<(), String> {
        self.number += 1;
        let line = std::mem::take(&mut self.part);
        let text = String::from_utf8_lossy(&line);
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(());
        }
        let value = value(text, self.unit).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            let examples = "such as 200us, 12.5ms, 200000 (nanoseconds), `-` or `lose`";
            format!("line {}: `{shown}` is not a value; a line has one, {examples}", self.number)
        })?;
        values.push(value);
        Ok(())
    }
}

/// Nanoseconds, or −1 for a loss.
fn value(text: &str, unit: f64) -> Option<i64> {
    if matches!(text, "-" | "lose") {
        return Some(-1);
    }
    let end = text.trim_end_matches(|c: char| c.is_alphabetic());
    // The exponent of a number without a unit ends with a digit, so letters at the end are a unit.
    let (number, nanos) = match &text[end.len()..] {
        "" => (text, unit),
        "ns" => (end, 1.0),
        "us" | "µs" | "μs" => (end, 1e3),
        "ms" => (end, 1e6),
        "s" => (end, 1e9),
        "min" => (end, 60e9),
        "h" => (end, 3600e9),
        _ => return None,
    };
    let number: f64 = number.trim_end().parse().ok()?;
    if number == -1.0 && end == text {
        return Some(-1);
    }
    let nanos = number * nanos;
    // NaN fails here, too.
    (0.0..=LONGEST).contains(&nanos).then(|| nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_numbers_and_losses() {
        for (text, expected) in [
            ("200us", 200_000),
            ("200 µs", 200_000),
            ("12.5ms", 12_500_000),
            ("1s", 1_000_000_000),
            ("0", 0),
            ("200000", 200_000),
            ("2.5e5", 250_000),
            ("199999.6", 200_000),
            ("-", -1),
            ("lose", -1),
            ("-1", -1),
            ("-1.0", -1),
            ("3600s", 3_600_000_000_000),
            ("1.5min", 90_000_000_000),
            ("2 h", 7_200_000_000_000),
        ] {
            assert_eq!(value(text, 1.0), Some(expected), "{text}");
        }
        assert_eq!(value("1.5", 1e6), Some(1_500_000));
        assert_eq!(value("1.5us", 1e6), Some(1_500));
        for text in ["", "-2", "-1us", "-5ms", "us", "inf", "nan", "1 2", "5 parsecs", "1e30", "0x10"] {
            assert_eq!(value(text, 1.0), None, "{text}");
        }
    }

    #[test]
    fn lines_may_come_in_any_pieces() {
        let text = b"1us\n\n# all\n 2us  # the second\r\nlose\n3";
        for size in 1..text.len() {
            let mut lines = Lines::new(1.0);
            let mut all = Vec::new();
            for piece in text.chunks(size) {
                let (values, result) = lines.parse(piece);
                result.unwrap();
                all.extend(values);
            }
            let (values, result) = lines.finish();
            result.unwrap();
            all.extend(values);
            assert_eq!(all, [1000, 2000, -1, 3], "{size}");
        }
    }

    #[test]
    fn a_comment_may_be_of_any_length() {
        let text = format!("1us # {}\n2us\n#{}\n3us", "5 ".repeat(10_000), " 7".repeat(10_000));
        for size in [1, 100, LONGEST_LINE, 8192, text.len()] {
            let mut lines = Lines::new(1.0);
            let mut all = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                let (values, result) = lines.parse(piece);
                result.unwrap();
                all.extend(values);
            }
            all.extend(lines.finish().0);
            assert_eq!((all, lines.number), (vec![1000, 2000, 3000], 4), "{size}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_line_and_what_came_before_counts() {
        let mut lines = Lines::new(1.0);
        let (values, result) = lines.parse(b"1\n2\nthree\n4\n");
        assert_eq!(values, [1, 2]);
        assert_eq!(
            result.unwrap_err(),
            "line 3: `three` is not a value; a line has one, such as 200us, 12.5ms, 200000 (nanoseconds), `-` or `lose`"
        );
        let endless = Lines::new(1.0).parse(&vec![b'1'; 1 << 20]).1.unwrap_err();
        assert!(endless.starts_with("line 1: `1111") && endless.len() < 200, "{endless}");
    }
}
