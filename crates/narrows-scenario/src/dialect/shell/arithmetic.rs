//! `$((…))`: whole numbers, variables and operators as in a shell, with assignments.

use super::scan::is_name;
use crate::problem::{Found, Problem};

/// Parentheses, signs and variables within one another.
const DEEPEST: usize = 24;

/// The variables of a calculation.
pub(super) trait Numbers {
    /// The text of a variable, or of one of an array.
    fn text(&mut self, name: &str, index: Option<i64>) -> Result<String, Problem>;

    fn set(&mut self, name: &str, index: Option<i64>, value: i64);
}

/// The value of an expression.
pub(super) fn value(text: &str, numbers: &mut dyn Numbers) -> Result<i64, Problem> {
    nested(text, numbers, 0)
}

fn nested(text: &str, numbers: &mut dyn Numbers, depth: usize) -> Result<i64, Problem> {
    let mut reader = Reader { text, at: 0, numbers, is_run: true };
    if reader.rest().is_empty() {
        return Ok(0);
    }
    let value = reader.comma(depth)?;
    match reader.rest() {
        "" => Ok(value),
        rest => Err(reader.wrong(rest)),
    }
}

/// Operators of two sides, from the weakest to the strongest.
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
    &["**"],
];
/// Operators before `=` in an assignment.
const ASSIGNED: &[&str] = &["<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    numbers: &'a mut dyn Numbers,
    /// Whether what is read has an effect: not behind `0 &&`.
    is_run: bool,
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
            .help("understood: whole numbers, variables, parentheses, assignments and the operators + - * / % ** << >> & ^ | ? : and comparisons")
    }

    fn comma(&mut self, depth: usize) -> Result<i64, Problem> {
        loop {
            let value = self.assignment(depth)?;
            if !self.rest().starts_with(',') {
                return Ok(value);
            }
            self.at += 1;
        }
    }

    /// `A = …`, `A += …`, or a condition.
    fn assignment(&mut self, depth: usize) -> Result<i64, Problem> {
        let Some(operator) = self.assigns() else { return self.choice(depth) };
        let Some((name, index)) = self.target(depth)? else { return self.choice(depth) };
        self.rest();
        self.at += operator.len() + 1;
        let value = match operator {
            "" => self.deeper(depth)?,
            operator => {
                let left = self.variable(&name, index, depth)?;
                let right = self.deeper(depth)?;
                self.applied(operator, left, right)?
            }
        };
        self.set(&name, index, value);
        Ok(value)
    }

    /// The operator before `=`, if an assignment begins here.
    fn assigns(&mut self) -> Option<&'static str> {
        let rest = self.rest();
        let length = super::scan::name_length(rest);
        let mut behind = &rest[length..];
        if behind.starts_with('[') {
            let mut deep = 0_usize;
            let close = behind.char_indices().find(|(_, c)| {
                deep = if *c == '[' { deep + 1 } else { deep.saturating_sub(usize::from(*c == ']')) };
                deep == 0
            });
            behind = &behind[close?.0 + 1..];
        }
        let behind = behind.trim_start();
        let assigned =
            |operator: &&&str| behind.strip_prefix(**operator).is_some_and(|rest| rest.starts_with('='));
        match behind.starts_with('=') && !behind.starts_with("==") {
            _ if length == 0 => None,
            true => Some(""),
            false => ASSIGNED.iter().find(assigned).copied(),
        }
    }

    fn deeper(&mut self, depth: usize) -> Result<i64, Problem> {
        if depth > DEEPEST {
            return Err(Problem::new(format!("parentheses of a calculation more than {DEEPEST} deep")));
        }
        self.assignment(depth + 1)
    }

    /// `TEST ? A : B`
    fn choice(&mut self, depth: usize) -> Result<i64, Problem> {
        let test = self.level(0, depth)?;
        if !self.rest().starts_with('?') {
            return Ok(test);
        }
        self.at += 1;
        let was_run = self.is_run;
        self.is_run = was_run && test != 0;
        let yes = self.deeper(depth)?;
        let rest = self.rest();
        if !rest.starts_with(':') {
            return Err(self.wrong(rest));
        }
        self.at += 1;
        self.is_run = was_run && test == 0;
        let no = self.deeper(depth)?;
        self.is_run = was_run;
        Ok(if test != 0 { yes } else { no })
    }

    fn level(&mut self, level: usize, depth: usize) -> Result<i64, Problem> {
        let Some(operators) = LEVELS.get(level) else { return self.one(depth) };
        let mut left = self.level(level + 1, depth)?;
        loop {
            let rest = self.rest();
            let longer = |operator: &str| {
                // `<` is not the beginning of `<<`, nor `|` of `||`.
                let doubled = rest.as_bytes().get(1) == rest.as_bytes().first();
                let assigns = ASSIGNED.contains(&operator)
                    && rest[operator.len()..].starts_with('=')
                    && !rest[operator.len()..].starts_with("==");
                assigns || operator.len() == 1 && doubled && matches!(operator, "<" | ">" | "|" | "&" | "*")
            };
            let found = operators.iter().find(|operator| rest.starts_with(**operator) && !longer(operator));
            let Some(operator) = found else { return Ok(left) };
            self.at += operator.len();
            let was_run = self.is_run;
            self.is_run = was_run
                && match *operator {
                    "&&" => left != 0,
                    "||" => left == 0,
                    _ => true,
                };
            // `**` binds to the right.
            let right = match *operator {
                "**" => self.level(level, depth + 1)?,
                _ => self.level(level + 1, depth)?,
            };
            self.is_run = was_run;
            left = self.applied(operator, left, right)?;
        }
    }

    fn applied(&self, operator: &str, left: i64, right: i64) -> Result<i64, Problem> {
        match apply(operator, left, right) {
            Some(value) => Ok(value),
            None if !self.is_run => Ok(0),
            None => Err(Problem::new(format!("`{left} {operator} {right}` has no value"))),
        }
    }

    /// A number, a variable, a sign or parentheses.
    fn one(&mut self, depth: usize) -> Result<i64, Problem> {
        let rest = self.rest();
        if depth > DEEPEST {
            return Err(Problem::new(format!("parentheses of a calculation more than {DEEPEST} deep")));
        }
        for (sign, by) in [("++", 1), ("--", -1)] {
            if rest.strip_prefix(sign).is_some_and(|rest| {
                rest.trim_start().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            }) {
                self.at += sign.len();
                let Some((name, index)) = self.target(depth)? else { return Err(self.wrong(rest)) };
                let value = self.variable(&name, index, depth)?.wrapping_add(by);
                self.set(&name, index, value);
                return Ok(value);
            }
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
            let value = self.comma(depth + 1)?;
            let rest = self.rest();
            if !rest.starts_with(')') {
                return Err(self.wrong(rest));
            }
            self.at += 1;
            return Ok(value);
        }
        if let Some((name, index)) = self.target(depth)? {
            let value = self.variable(&name, index, depth)?;
            for (sign, by) in [("++", 1), ("--", -1)] {
                if self.rest().starts_with(sign) {
                    self.at += sign.len();
                    self.set(&name, index, value.wrapping_add(by));
                }
            }
            return Ok(value);
        }
        let length = rest.len() - rest.trim_start_matches(|c: char| is_name(c) || c == '#').len();
        let digits = &rest[..length];
        let Some(value) = number(digits) else {
            return Err(match digits.starts_with(|c: char| c.is_ascii_digit()) {
                true => Problem::new(format!("{} in a calculation is no whole number", Found(digits))),
                false => self.wrong(rest),
            });
        };
        self.at += length;
        Ok(value)
    }

    /// The name of a variable at this place, with its index.
    fn target(&mut self, depth: usize) -> Result<Option<(String, Option<i64>)>, Problem> {
        let rest = self.rest();
        let length = super::scan::name_length(rest);
        if length == 0 {
            return Ok(None);
        }
        self.at += length;
        let mut index = None;
        if self.text[self.at..].starts_with('[') {
            self.at += 1;
            index = Some(self.deeper(depth)?);
            let rest = self.rest();
            if !rest.starts_with(']') {
                return Err(self.wrong(rest));
            }
            self.at += 1;
        }
        Ok(Some((rest[..length].to_owned(), index)))
    }

    /// The number of a variable, whose value is a calculation itself.
    fn variable(&mut self, name: &str, index: Option<i64>, depth: usize) -> Result<i64, Problem> {
        if !self.is_run {
            return Ok(0);
        }
        let text = self.numbers.text(name, index)?;
        if let Some(value) = number(text.trim()) {
            return Ok(value);
        }
        let is_expression = !text.trim().is_empty() && !text.contains(['.', ':']) && depth < DEEPEST;
        match is_expression.then(|| nested(&text, self.numbers, depth + DEEPEST / 4)) {
            Some(Ok(value)) => Ok(value),
            _ if text.trim().is_empty() => Ok(0),
            _ => Err(Problem::new(format!("{} in a calculation is no whole number", Found(&text)))),
        }
    }

    fn set(&mut self, name: &str, index: Option<i64>, value: i64) {
        if self.is_run {
            self.numbers.set(name, index, value);
        }
    }
}

/// A number as in C, or with its base as in `2#101`.
pub(super) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None => match digits.split_once('#') {
            Some((base, digits)) => {
                let base = base.parse().ok().filter(|base| (2..=36).contains(base))?;
                i64::from_str_radix(digits, base).ok()?
            }
            None => digits.parse().ok()?,
        },
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
        "**" => left.checked_pow(shift?)?,
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
    use std::collections::BTreeMap;

    use super::*;

    impl Numbers for BTreeMap<String, i64> {
        fn text(&mut self, name: &str, index: Option<i64>) -> Result<String, Problem> {
            let name = index.map_or(name.to_owned(), |index| format!("{name}{index}"));
            match self.get(&name) {
                Some(value) => Ok(value.to_string()),
                None => Err(Problem::new(format!("no {name}"))),
            }
        }

        fn set(&mut self, name: &str, _: Option<i64>, value: i64) {
            self.insert(name.to_owned(), value);
        }
    }

    #[test]
    fn calculations_are_those_of_a_shell() {
        for (text, expected) in [
            ("1 + 2 * 3", Some(7)),
            ("(1+2)*3", Some(9)),
            ("i*10 + i - i", Some(70)),
            ("0x10 + 010", Some(24)),
            ("-7 / 2", Some(-3)),
            ("7 % 4 << 2", Some(12)),
            ("i > 5 && i != 8", Some(1)),
            ("2 ** 3 ** 2", Some(512)),
            ("i > 5 ? 1 : 1/0", Some(1)),
            ("0 && x", Some(0)),
            ("j = i + 1, j * 2", Some(16)),
            ("i++ + i", Some(15)),
            ("--i - 1", Some(5)),
            ("i += 3", Some(10)),
            ("a[1 + 1] * 2", Some(84)),
            ("", Some(0)),
            ("16#ff", Some(255)),
            ("1 / 0", None),
            ("9223372036854775807 + 1", None),
            ("1 +", None),
            ("x", None),
            ("1 2", None),
            ("1 ? 2", None),
        ] {
            let mut numbers = BTreeMap::from([("i".to_owned(), 7), ("a2".to_owned(), 42)]);
            assert_eq!(value(text, &mut numbers).ok(), expected, "{text}");
        }
        let mut none = BTreeMap::new();
        let deep = "(".repeat(1000) + "1" + &")".repeat(1000);
        assert!(value(&deep, &mut none).is_err());
        assert!(value(&"-".repeat(100_000), &mut none).is_err());
        assert!(value(&"a=".repeat(100_000), &mut none).is_err());
        assert!(value(&"1?".repeat(100_000), &mut none).is_err());
        assert!(value(&"1**".repeat(100_000), &mut none).is_err());
    }
}
