//! Division by a number that seldom changes.

/// A divisor with its inverse: a division costs two multiplications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    divisor: u64,
    /// ⌊(2⁶⁴ − 1) / divisor⌋.
    inverse: u64,
}

impl Divisor {
    pub(super) const fn new(divisor: u64) -> Self {
        Self { divisor, inverse: u64::MAX / divisor }
    }

    /// A divisor whose inverse is known.
    pub(super) const fn with_inverse(divisor: u64, inverse: u64) -> Self {
        Self { divisor, inverse }
    }

    pub(super) const fn inverse(self) -> u64 {
        self.inverse
    }

    pub(super) const fn get(self) -> u64 {
        self.divisor
    }

    /// Exact quotient and remainder.
    #[inline]
    pub(super) const fn divide(self, dividend: u64) -> (u64, u64) {
        // The inverse is too small by less than 2⁻⁶⁴. So this is below the quotient by less than dividend · 2⁻⁶⁴ < 1
        // before truncation, and by at most 1 after.
        let quotient = ((dividend as u128 * self.inverse as u128) >> 64) as u64;
        let remainder = dividend - quotient * self.divisor;
        if remainder < self.divisor {
            (quotient, remainder)
        } else {
            (quotient + 1, remainder - self.divisor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_is_exact(dividend: u64, divisor in 1u64.., shift in 0u32..64, small in 0u32..64) {
            for (dividend, divisor) in
                [(dividend, divisor), (dividend, (divisor >> shift).max(1)), (dividend >> small, (divisor >> shift).max(1))]
            {
                for dividend in [dividend, dividend - dividend % divisor, u64::MAX - dividend % divisor] {
                    let expected = (dividend / divisor, dividend % divisor);
                    prop_assert_eq!(Divisor::new(divisor).divide(dividend), expected);
                }
            }
        }
    }
}
