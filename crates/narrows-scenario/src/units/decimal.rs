//! Exact decimal numbers.

/// `digits · 10^−scale`, possibly negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: u128,
    scale: i32,
}

/// Why a number is not a whole number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Negative,
    NotWhole,
    TooLarge,
}

impl Decimal {
    /// Splits a text into the number at its start, if any, and the unit after it.
    pub(crate) fn split(text: &str) -> (Option<Self>, &str) {
        let text = text.trim();
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut number = Self { negative, digits: 0, scale: 0 };
        let (mut end, mut seen, mut point) = (0, false, false);
        for (at, c) in rest.char_indices() {
            match c.to_digit(10) {
                Some(digit) => {
                    number.append(digit, point);
                    seen = true;
                }
                None if c == '.' && !point => point = true,
                None if c == '_' && seen => {}
                None => break,
            }
            end = at + 1; // what is consumed is ASCII
        }
        if !seen {
            return (None, text);
        }
        let mut unit = &rest[end..];
        if let Some((exponent, length)) = exponent(unit) {
            number.scale = number.scale.saturating_sub(exponent);
            unit = &unit[length..];
        }
        (Some(number), unit.trim())
    }

    fn append(&mut self, digit: u32, after_point: bool) {
        match self.digits.checked_mul(10).and_then(|d| d.checked_add(u128::from(digit))) {
            Some(digits) => {
                self.digits = digits;
                self.scale = self.scale.saturating_add(i32::from(after_point));
            }
            // More digits than 128 bits hold: far too large, or far too precise, for any unit.
            None => (self.digits, self.scale) = (u128::MAX, if after_point { i32::MAX } else { i32::MIN }),
        }
    }

    pub(crate) fn is_one(self) -> bool {
        self.times(1) == Ok(1)
    }

    /// The number times `factor`, if the result is whole.
    pub(crate) fn times(self, factor: u128) -> Result<u128, Misfit> {
        if self.digits == 0 {
            return Ok(0);
        }
        if self.negative {
            return Err(Misfit::Negative);
        }
        // Cancel common factors first, so that the product overflows only if it must.
        let (mut digits, mut factor, mut scale) = (self.digits, factor, self.scale);
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        while scale > 0 && factor.is_multiple_of(10) {
            factor /= 10;
            scale -= 1;
        }
        let product = digits.checked_mul(factor);
        if scale <= 0 {
            let power = 10u128.checked_pow(scale.unsigned_abs()).ok_or(Misfit::TooLarge)?;
            return product.and_then(|p| p.checked_mul(power)).ok_or(Misfit::TooLarge);
        }
        let power = 10u128.checked_pow(scale.unsigned_abs()).ok_or(Misfit::NotWhole)?;
        match product {
            Some(product) if product.is_multiple_of(power) => Ok(product / power),
            Some(_) => Err(Misfit::NotWhole),
            None => Err(Misfit::TooLarge),
        }
    }

    /// The number times `factor`, rounded down.
    pub(crate) fn times_rounded_down(self, factor: u128) -> Result<u128, Misfit> {
        match self.times(factor) {
            Err(Misfit::NotWhole) => {
                // Digits beyond the 38 that 128 bits hold amount to less than one unit.
                let power = 10u128.checked_pow(self.scale.unsigned_abs());
                power.map_or(Ok(0), |power| {
                    self.digits.checked_mul(factor).map(|product| product / power).ok_or(Misfit::TooLarge)
                })
            }
            other => other,
        }
    }
}

/// An exponent such as `e-3` at the beginning of the text, and its length.
fn exponent(text: &str) -> Option<(i32, usize)> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let (sign, digits) = match rest.as_bytes().first()? {
        b'-' => (-1, &rest[1..]),
        b'+' => (1, &rest[1..]),
        _ => (1, rest),
    };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    // Exponents of five digits are out of any range.
    let value: i32 =
        if length == 0 { return None } else { digits[..length].parse().unwrap_or(99_999).min(99_999) };
    Some((sign * value, text.len() - digits.len() + length))
}
