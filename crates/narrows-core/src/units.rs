//! Rates, sizes and probabilities as types.

use core::fmt;

/// Bits per second. Zero is a link that is down; on a link at [`Rate::UNLIMITED`] a transmission takes no
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// The link is down.
    pub const DOWN: Self = Self(0);
    /// A transmission takes no time.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
}

/// Exact, with a decimal prefix: `1.5mbit`, `10gbit`, `unlimited`, `down`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNLIMITED => f.pad("unlimited"),
            Self::DOWN => f.pad("down"),
            Self(bits) => {
                let (unit, digits, name) = match bits {
                    0..1_000 => (1, 0, "bit"),
                    1_000..1_000_000 => (1_000, 3, "kbit"),
                    1_000_000..1_000_000_000 => (1_000_000, 6, "mbit"),
                    _ => (1_000_000_000, 9, "gbit"),
                };
                let (whole, mut part, mut width) = (bits / unit, bits % unit, digits);
                if part == 0 {
                    return f.pad(&alloc::format!("{whole}{name}"));
                }
                while part.is_multiple_of(10) {
                    part /= 10;
                    width -= 1;
                }
                f.pad(&alloc::format!("{whole}.{part:0width$}{name}"))
            }
        }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&alloc::format!("{} bytes", self.0))
    }
}

/// A probability, stored as a multiple of 2⁻⁶³: 0 and 1 are exact, and a decimal fraction is off by less than
/// 10⁻¹⁸.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

impl Probability {
    const ONE_RAW: u64 = 1 << 63;
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(Self::ONE_RAW);

    /// `numerator / denominator`, or `None` if that is not between 0 and 1.
    pub const fn from_ratio(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 || numerator > denominator {
            return None;
        }
        // numerator ≤ 2^64 and ONE_RAW = 2^63: the product stays below 2^127. Rounded to nearest.
        let scaled = numerator as u128 * Self::ONE_RAW as u128 + denominator as u128 / 2;
        Some(Self((scaled / denominator as u128) as u64))
    }

    /// The probability nearest to `p`; 0 if `p` is below 0 or NaN, 1 if above 1. For computed values:
    /// configured values are exact as a ratio.
    pub fn nearest(p: f64) -> Self {
        // A cast from a float saturates and turns NaN into 0.
        Self(((p * Self::ONE_RAW as f64) as u64).min(Self::ONE_RAW))
    }

    /// The probability that one of two mutually exclusive events happens; `None` if the sum exceeds 1 by more
    /// than the rounding error.
    pub const fn plus(self, other: Self) -> Option<Self> {
        match self.0 + other.0 {
            sum if sum <= Self::ONE_RAW => Some(Self(sum)),
            sum if sum == Self::ONE_RAW + 1 => Some(Self::ONE),
            _ => None,
        }
    }

    /// As a multiple of 2⁻⁶³.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The complementary probability. Exact: near 1 a float has few digits left for this.
    pub(crate) const fn complement(self) -> Self {
        Self(Self::ONE_RAW - self.0)
    }

    /// The value `part / whole` of the way from `self` to `other`, rounded down; `other` if `part` is `whole`
    /// or more.
    pub(crate) const fn towards(self, other: Self, part: u64, whole: u64) -> Self {
        if part >= whole {
            return other;
        }
        // Both are at most 2^63 and the parts below 2^64: a product stays below 2^127, and so does their sum.
        let sum = self.0 as u128 * (whole - part) as u128 + other.0 as u128 * part as u128;
        Self((sum / whole as u128) as u64)
    }

    /// True for a share `self` of all 2⁶⁴ values of `bits`.
    pub const fn decides(self, bits: u64) -> bool {
        bits >> 1 < self.0
    }

    /// Whether this is exactly zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// As a float, for display and closed forms.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE_RAW as f64
    }
}

/// In percent, without trailing zeros: `1%`, `0.01%`.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits after the decimal point of a percentage; trailing zeros are omitted.
        let percent_e10 = (self.0 as u128 * 1_000_000_000_000 + (1 << 62)) >> 63;
        let (whole, part) = (percent_e10 / 10_000_000_000, percent_e10 % 10_000_000_000);
        if part == 0 {
            return f.pad(&alloc::format!("{whole}%"));
        }
        let digits = alloc::format!("{part:010}");
        f.pad(&alloc::format!("{whole}.{}%", digits.trim_end_matches('0')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn probabilities_are_exact_at_the_ends_and_print_in_percent() {
        assert_eq!(Probability::from_ratio(5, 5), Some(Probability::ONE));
        assert_eq!(Probability::from_ratio(6, 5), None);
        assert_eq!(Probability::from_ratio(0, 0), None);
        assert!(Probability::ONE.decides(u64::MAX));
        assert!(!Probability::ZERO.decides(0));
        let thirds = |n| Probability::from_ratio(n, 3).unwrap();
        assert_eq!(thirds(1).plus(thirds(2)), Some(Probability::ONE));
        assert_eq!(thirds(2).plus(thirds(2)), None);
        assert_eq!(Probability::nearest(0.25), Probability::from_ratio(1, 4).unwrap());
        assert_eq!(Probability::nearest(7.0), Probability::ONE);
        assert_eq!(Probability::nearest(f64::NAN), Probability::ZERO);
        for (n, d, text) in [(1, 100, "1%"), (1, 10_000, "0.01%"), (1, 1, "100%"), (125, 1000, "12.5%")] {
            assert_eq!(Probability::from_ratio(n, d).unwrap().to_string(), text);
        }
    }

    #[test]
    fn rates_print_exactly() {
        assert_eq!(Rate::from_bits_per_second(1_500_000).to_string(), "1.5mbit");
        assert_eq!(Rate::from_bits_per_second(56_000).to_string(), "56kbit");
        assert_eq!(Rate::UNLIMITED.to_string(), "unlimited");
    }
}
