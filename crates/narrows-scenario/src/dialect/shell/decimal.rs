//! Decimal numbers as `bc` calculates them.

/// The values of lines of calculations; `None` if one is not understood.
pub(super) fn of_lines(text: &str, mut scale: u32) -> Option<String> {
    let mut out = String::new();
    for statement in text.split(['\n', ';']).map(str::trim).filter(|statement| !statement.is_empty()) {
        if let Some(digits) = statement.strip_prefix("scale") {
            scale =
                digits.trim_start().strip_prefix('=')?.trim().parse().ok().filter(|scale| *scale <= 20)?;
            continue;
        }
        let mut reader = Reader { rest: statement, scale, deep: 0 };
        let value = reader.sum()?;
        if !reader.rest.trim().is_empty() {
            return None;
        }
        out += &value.printed();
        out.push('\n');
    }
    Some(out)
}

/// A number of so many digits behind the point.
#[derive(Clone, Copy)]
struct Number {
    digits: i128,
    scale: u32,
}

const LARGEST: i128 = 1_i128 << 96;

impl Number {
    fn at_scale(self, scale: u32) -> Option<i128> {
        match scale >= self.scale {
            true => self.digits.checked_mul(10_i128.checked_pow(scale - self.scale)?),
            // It is cut off, not rounded.
            false => Some(self.digits / 10_i128.checked_pow(self.scale - scale)?),
        }
    }

    /// Without zeros at its end.
    fn shortest(mut self) -> Self {
        while self.scale > 0 && self.digits % 10 == 0 {
            self = Self { digits: self.digits / 10, scale: self.scale - 1 };
        }
        self
    }

    fn new(digits: i128, scale: u32) -> Option<Self> {
        (digits.abs() < LARGEST).then_some(Self { digits, scale })
    }

    /// As `bc` prints it: without a zero before the point.
    fn printed(self) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = self.digits.unsigned_abs().to_string();
        let scale = self.scale as usize;
        if scale == 0 {
            return format!("{sign}{digits}");
        }
        let padded = format!("{digits:0>scale$}");
        let (whole, part) = padded.split_at(padded.len() - scale);
        match self.digits {
            0 => "0".to_owned(),
            _ => format!("{sign}{whole}.{part}"),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    scale: u32,
    deep: usize,
}

impl Reader<'_> {
    fn take(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Option<Number> {
        let mut left = self.product()?;
        loop {
            let minus = match (self.take('+'), self.take('-')) {
                (true, _) => false,
                (false, true) => true,
                _ => return Some(left),
            };
            let right = self.product()?;
            let scale = left.scale.max(right.scale);
            let (one, other) = (left.at_scale(scale)?, right.at_scale(scale)?);
            left = Number::new(if minus { one.checked_sub(other)? } else { one.checked_add(other)? }, scale)?;
        }
    }

    fn product(&mut self) -> Option<Number> {
        let mut left = self.one()?;
        loop {
            if self.take('*') {
                let right = self.one()?;
                let scale = (left.scale + right.scale).min(self.scale.max(left.scale).max(right.scale));
                let (one, other) = (left.shortest(), right.shortest());
                let digits = one.digits.checked_mul(other.digits)?;
                let product = Number { digits, scale: one.scale + other.scale };
                left = Number::new(product.at_scale(scale)?, scale)?;
            } else if self.take('/') {
                let right = self.one()?;
                let top = left.digits.checked_mul(10_i128.checked_pow(right.scale)?)?;
                let bottom = right.digits.checked_mul(10_i128.checked_pow(left.scale)?)?;
                // Digit by digit, as on paper.
                let (mut digits, mut rest) = (top.checked_div(bottom)?, top.checked_rem(bottom)?);
                for _ in 0..self.scale {
                    rest = rest.checked_mul(10)?;
                    digits = digits.checked_mul(10)?.checked_add(rest / bottom)?;
                    rest %= bottom;
                }
                left = Number::new(digits, self.scale)?;
            } else {
                return Some(left);
            }
        }
    }

    fn one(&mut self) -> Option<Number> {
        self.deep += 1;
        if self.deep > 64 {
            return None;
        }
        let value = if self.take('-') {
            let value = self.one()?;
            Number { digits: -value.digits, ..value }
        } else if self.take('(') {
            let value = self.sum()?;
            self.take(')').then_some(value)?
        } else {
            let length = self.rest.len()
                - self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
            let (digits, rest) = self.rest.split_at(length);
            self.rest = rest;
            let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
            if digits.is_empty() || part.contains('.') || digits.len() > 34 {
                return None;
            }
            Number::new(format!("{whole}{part}").parse().ok()?, u32::try_from(part.len()).ok()?)?
        };
        self.deep -= 1;
        Some(value)
    }
}
