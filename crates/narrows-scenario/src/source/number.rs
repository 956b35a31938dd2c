//! Decimal numbers of measurements. They are rounded to whole units, whereas a scenario's own numbers must
//! be whole.

use narrows_core::Probability;

/// Why a text is not a whole number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not a number, or not a finite one, such as `nan`.
    NoNumber,
    Negative,
    TooLarge,
}

/// One, in the units of 10⁻¹⁹ in which shares are read.
pub(crate) const SHARE_ONE: u64 = 10_000_000_000_000_000_000;
/// Number of digits kept; further digits are below any unit.
const MOST_DIGITS: u32 = 30;

/// The number times 10 to the `power`, rounded to the nearest whole.
pub(crate) fn scaled(text: &str, power: i32) -> Result<u128, Fault> {
    let (negative, text) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (number, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], exponent(&text[at + 1..]).ok_or(Fault::NoNumber)?),
        None => (text, 0),
    };
    let (mut digits, mut kept, mut scale, mut seen, mut point) = (0u128, 0, 0i32, false, false);
    for byte in number.bytes() {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                if kept < MOST_DIGITS {
                    digits = digits * 10 + u128::from(byte - b'0');
                    kept += u32::from(digits > 0);
                    scale += i32::from(point);
                } else {
                    scale = scale.saturating_sub(i32::from(!point));
                }
            }
            b'.' if !point => point = true,
            _ => return Err(Fault::NoNumber),
        }
    }
    if !seen {
        return Err(Fault::NoNumber);
    }
    if digits == 0 {
        return Ok(0);
    }
    if negative {
        return Err(Fault::Negative);
    }
    let power = exponent.saturating_add(power).saturating_sub(scale);
    match (power, 10u128.checked_pow(power.unsigned_abs())) {
        (0.., Some(factor)) => digits.checked_mul(factor).ok_or(Fault::TooLarge),
        (0.., None) => Err(Fault::TooLarge),
        // At most 30 digits and half of 10^38 fit in 128 bits.
        (_, Some(divisor)) => Ok((digits + divisor / 2) / divisor),
        (_, None) => Ok(0),
    }
}

/// Reads at most five digits: more are out of any range.
fn exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().unwrap_or(99_999).min(99_999);
    Some(if text.starts_with('-') { -value } else { value })
}

/// `value · 10^−places`, without trailing zeros.
pub(crate) fn decimal(value: u64, places: u32) -> String {
    // `places` belongs to a unit: at most 19.
    let one = 10u128.pow(places);
    let (whole, part) = (u128::from(value) / one, u128::from(value) % one);
    if part == 0 {
        return whole.to_string();
    }
    let digits = format!("{part:0width$}", width = places as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// The shortest decimal that parses to the same share.
pub(crate) fn share(value: Probability) -> String {
    for places in 0..=19 {
        let one = 10u64.pow(places);
        let guess = (value.as_f64() * one as f64) as u64;
        // The float has 53 of the 63 bits. The search below finds the last digits.
        for parts in guess.saturating_sub(1)..=guess.saturating_add(1).min(one) {
            if Probability::from_ratio(parts, one) == Some(value) {
                return decimal(parts, places);
            }
        }
    }
    let one = 10u64.pow(19);
    let (mut low, mut high) = (0, one);
    while low < high {
        let middle = low + (high - low) / 2;
        let less = Probability::from_ratio(middle, one).is_some_and(|middle| middle < value);
        (low, high) = if less { (middle + 1, high) } else { (low, middle) };
    }
    decimal(low, 19)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest_and_nothing_else_is_a_number() {
        for (text, power, value) in [
            ("1.5", 3, Ok(1500)),
            ("0.0004999", 3, Ok(0)),
            ("0.0005", 3, Ok(1)),
            ("1e-3", 9, Ok(1_000_000)),
            ("1E+2", 0, Ok(100)),
            ("-0.0", 9, Ok(0)),
            ("0.30000000000000004", 9, Ok(300_000_000)),
            (".5", 1, Ok(5)),
            ("1700000000.123456789", 9, Ok(1_700_000_000_123_456_789)),
            ("123456789012345678901234567890123", 0, Ok(123_456_789_012_345_678_901_234_567_890_000)),
            ("1e99", 0, Err(Fault::TooLarge)),
            ("1e-99999999999", 0, Ok(0)),
            ("-1", 0, Err(Fault::Negative)),
            ("nan", 0, Err(Fault::NoNumber)),
            ("inf", 0, Err(Fault::NoNumber)),
            ("", 0, Err(Fault::NoNumber)),
            (".", 0, Err(Fault::NoNumber)),
            ("1e", 0, Err(Fault::NoNumber)),
            ("1 2", 0, Err(Fault::NoNumber)),
            ("0x10", 0, Err(Fault::NoNumber)),
        ] {
            assert_eq!(scaled(text, power), value, "{text}");
        }
    }

    #[test]
    fn shares_are_written_so_that_they_are_read_again() {
        for (parts, one, text) in [(1, 100, "0.01"), (1, 1, "1"), (0, 1, "0"), (3, 1000, "0.003")] {
            assert_eq!(share(Probability::from_ratio(parts, one).unwrap()), text);
        }
        // Fractions of 2³² − 1, as TheaterQ has them, have no short decimal.
        for parts in [1, 42_949_673, 2_863_311_530, 4_294_967_294] {
            let value = Probability::from_ratio(parts, u64::from(u32::MAX)).unwrap();
            let again = scaled(&share(value), 19).unwrap() as u64;
            assert_eq!(Probability::from_ratio(again, 10u64.pow(19)), Some(value));
        }
    }
}
