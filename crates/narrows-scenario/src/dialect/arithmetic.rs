//! `$((…))`: whole numbers, variables and operators as in a shell. Nothing is assigned.

use crate::problem::{Found, Problem};

/// Parentheses and signs within one another.
const DEEPEST: usize = 64;

/// The value of an expression. `variable` gives the value of a variable by its name.
pub(crate) fn value(text: &str, variable: &dyn Fn(&str) -> Result<String, Problem>) -> Result<i64, Problem> {
    let mut reader = Reader { text, at: 0, variable };
    let value = reader.level(0, 0)?;
    match reader.rest() {
        "" => Ok(value),
        rest => Err(reader.wrong(rest)),
    }
}

/// Operators of two sides, from the weakest to the strongest; the longer one of two that begin alike first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    variable: &'a dyn Fn(&str) -> Result<String, Problem>,
}

impl<'a> Reader<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    fn wrong(&self, rest: &str) -> Problem {
        let what = if rest.is_empty() { Found(self.text) } else { Found(rest) };
        Problem::new(format!("a calculation that is not understood, at {what}"))
            .help("understood: whole numbers, variables, parentheses and the operators + - * / % << >> & ^ | and comparisons")
    }

    fn level(&mut self, level: usize, depth: usize) -> Result<i64, Problem> {
        let Some(operators) = LEVELS.get(level) else { return self.one(depth) };
        let mut left = self.level(level + 1, depth)?;
        loop {
            let rest = self.rest();
            let longer = |operator: &str| {
                // `<` is not the beginning of `<<`, nor `|` of `||`.
                let doubled = rest.as_bytes().get(1) == rest.as_bytes().first();
                operator.len() == 1 && doubled && matches!(operator, "<" | ">" | "|" | "&")
            };
            let found = operators.iter().find(|operator| rest.starts_with(**operator) && !longer(operator));
            let Some(operator) = found else { return Ok(left) };
            self.at += operator.len();
            let right = self.level(level + 1, depth)?;
            left = apply(operator, left, right)
                .ok_or_else(|| Problem::new(format!("`{left} {operator} {right}` has no value")))?;
        }
    }

    /// A number, a variable, a sign or parentheses.
    fn one(&mut self, depth: usize) -> Result<i64, Problem> {
        let rest = self.rest();
        if depth > DEEPEST {
            return Err(Problem::new(format!("parentheses of a calculation more than {DEEPEST} deep")));
        }
        // `--A` would change it.
        let counts = rest.strip_prefix("--").or_else(|| rest.strip_prefix("++"));
        if counts.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')) {
            return Err(self.wrong(rest));
        }
        if let Some(sign) = rest.chars().next().filter(|c| matches!(c, '-' | '+' | '!' | '~')) {
            self.at += 1;
            let value = self.one(depth + 1)?;
            return Ok(match sign {
                '-' => value.wrapping_neg(),
                '!' => (value == 0).into(),
                '~' => !value,
                _ => value,
            });
        }
        if rest.starts_with('(') {
            self.at += 1;
            let value = self.level(0, depth + 1)?;
            let rest = self.rest();
            if !rest.starts_with(')') {
                return Err(self.wrong(rest));
            }
            self.at += 1;
            return Ok(value);
        }
        let bare = rest.strip_prefix('$').unwrap_or(rest);
        let (open, inside) = match bare.strip_prefix('{') {
            Some(inside) if bare.len() < rest.len() => ("}", inside),
            _ => ("", bare),
        };
        let name = &inside[..inside.len() - inside.trim_start_matches(is_name).len()];
        if name.is_empty() || !inside[name.len()..].starts_with(open) {
            return Err(self.wrong(rest));
        }
        let is_variable = bare.len() < rest.len() || !name.as_bytes()[0].is_ascii_digit();
        self.at += rest.len() - inside.len() + name.len() + open.len();
        let text = if is_variable { (self.variable)(name)? } else { name.to_owned() };
        number(text.trim())
            .ok_or_else(|| Problem::new(format!("{} in a calculation is no whole number", Found(&text))))
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A number as in C.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    let shift = u32::try_from(right).ok();
    Some(match operator {
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        "<<" => left.checked_shl(shift?)?,
        ">>" => left.checked_shr(shift?)?,
        "&" => left & right,
        "^" => left ^ right,
        "|" => left | right,
        "==" => (left == right).into(),
        "!=" => (left != right).into(),
        "<=" => (left <= right).into(),
        ">=" => (left >= right).into(),
        "<" => (left < right).into(),
        ">" => (left > right).into(),
        "&&" => (left != 0 && right != 0).into(),
        "||" => (left != 0 || right != 0).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculations_are_those_of_a_shell() {
        let variable = |name: &str| match name {
            "i" => Ok("7".to_owned()),
            other => Err(Problem::new(format!("no {other}"))),
        };
        for (text, expected) in [
            ("1 + 2 * 3", Some(7)),
            ("(1+2)*3", Some(9)),
            ("$i*10 + ${i} - i", Some(70)),
            ("0x10 + 010", Some(24)),
            ("-7 / 2", Some(-3)),
            ("7 % 4 << 2", Some(12)),
            ("i > 5 && i != 8", Some(1)),
            ("1 / 0", None),
            ("9223372036854775807 + 1", None),
            ("1 +", None),
            ("x", None),
            ("i++", None),
            ("1 2", None),
        ] {
            assert_eq!(value(text, &variable).ok(), expected, "{text}");
        }
        let deep = "(".repeat(1000) + "1" + &")".repeat(1000);
        assert!(value(&deep, &variable).is_err());
    }
}
