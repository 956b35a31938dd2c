//! Exact rational numbers, as plain as can be.

use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

/// In lowest terms, the denominator above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    numerator: i128,
    denominator: i128,
}

fn common_divisor(mut a: i128, mut b: i128) -> i128 {
    if b & (b - 1) == 0 && b > 0 {
        return 1 << a.trailing_zeros().min(b.trailing_zeros()); // the same, and most of these tests' time
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

impl Fraction {
    pub(crate) const ZERO: Self = Self { numerator: 0, denominator: 1 };

    pub(crate) fn new(numerator: i128, denominator: i128) -> Self {
        assert!(denominator > 0);
        if denominator == 1 {
            return Self { numerator, denominator };
        }
        let divisor = common_divisor(numerator, denominator).max(1);
        Self { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    pub(crate) fn whole(number: impl Into<i128>) -> Self {
        Self { numerator: number.into(), denominator: 1 }
    }

    pub(crate) fn power_of_two(exponent: i32) -> Self {
        match exponent {
            0.. => Self::whole(1_i128 << exponent),
            _ => Self { numerator: 1, denominator: 1 << -exponent },
        }
    }

    /// The greatest multiple of `step` that is not above it.
    pub(crate) fn floor_to(self, step: Self) -> Self {
        let quotient = self * Self::new(step.denominator, step.numerator);
        Self::whole(quotient.numerator.div_euclid(quotient.denominator)) * step
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Both numerators over the least common denominator.
    fn together(self, other: Self) -> (i128, i128, i128) {
        if self.denominator == other.denominator {
            return (self.numerator, other.numerator, self.denominator);
        }
        let divisor = common_divisor(self.denominator, other.denominator);
        let (mine, theirs) = (other.denominator / divisor, self.denominator / divisor);
        let wide = |a: i128, b: i128| a.checked_mul(b).expect("128 bits are enough for these tests");
        (wide(self.numerator, mine), wide(other.numerator, theirs), wide(self.denominator, mine))
    }
}

impl Add for Fraction {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b, denominator) = self.together(other);
        Self::new(a + b, denominator)
    }
}

impl Sub for Fraction {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let (a, b, denominator) = self.together(other);
        Self::new(a - b, denominator)
    }
}

impl Mul for Fraction {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (a, b) =
            (Self::new(self.numerator, other.denominator), Self::new(other.numerator, self.denominator));
        let wide = |a: i128, b: i128| a.checked_mul(b).expect("128 bits are enough for these tests");
        Self { numerator: wide(a.numerator, b.numerator), denominator: wide(a.denominator, b.denominator) }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, _) = self.together(*other);
        a.cmp(&b)
    }
}

#[test]
fn fractions_are_in_lowest_terms() {
    let third = Fraction::new(2, 6);
    assert_eq!(third + third + third, Fraction::whole(1));
    assert_eq!(third - Fraction::new(1, 2), Fraction::new(-1, 6));
    assert_eq!(Fraction::new(-7, 2).floor_to(Fraction::new(1, 1)), Fraction::whole(-4));
    assert_eq!(Fraction::new(7, 2).floor_to(Fraction::new(3, 4)), Fraction::whole(3));
    assert!(Fraction::new(1, 3) < Fraction::new(1, 2));
}
