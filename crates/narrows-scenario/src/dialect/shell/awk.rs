//! The little of awk that scripts calculate with: `{ print $2 }`, `BEGIN { printf "%.2f", A / 8 }`, with a pattern
//! `/…/` or `NR == 2` before it (POSIX.1-2017, awk).

use std::collections::BTreeMap;

use super::printf::{Escapes, formatted, unescaped};
use super::regular;

/// Parentheses and signs within one another.
const DEEPEST: usize = 32;

/// What awk prints; `None` if its program is not understood.
pub(super) fn printed(words: &[&str], input: Option<&str>) -> Option<String> {
    let mut separator = None;
    let mut variables = BTreeMap::new();
    let mut rest = words.iter();
    let program = loop {
        match *rest.next()? {
            "-F" => separator = Some((*rest.next()?).to_owned()),
            "-v" => {
                let (name, text) = rest.next()?.split_once('=')?;
                variables.insert(name.to_owned(), Value::Text(text.to_owned()));
            }
            flag if flag.starts_with("-F") => separator = Some(flag[2..].to_owned()),
            flag if flag.starts_with('-') => return None,
            program => break program,
        }
    };
    if rest.next().is_some() {
        return None;
    }
    let (pattern, body) = program.trim().split_once('{')?;
    let body = body.trim_end().strip_suffix('}')?;
    let mut out = String::new();
    let mut run = |line: &str, number: usize| -> Option<()> {
        let fields: Vec<&str> = match separator.as_deref() {
            None | Some(" ") => line.split_whitespace().collect(),
            Some("\\t") => line.split('\t').collect(),
            Some(one) if one.trim_start_matches('\\').chars().count() == 1 => {
                line.split(one.trim_start_matches('\\')).collect()
            }
            Some(_) => return None,
        };
        let mut reader =
            Reader { rest: body, line, fields: &fields, number, variables: &mut variables, deep: 0 };
        let pattern = pattern.trim();
        let runs = match pattern.strip_prefix('/').and_then(|pattern| pattern.strip_suffix('/')) {
            Some(pattern) => regular::fits(pattern, line)?,
            None if matches!(pattern, "" | "BEGIN") => true,
            None => {
                reader.rest = pattern;
                let holds = reader.choice()?.holds();
                let is_whole = reader.rest.trim().is_empty();
                reader.rest = body;
                is_whole.then_some(holds)?
            }
        };
        if runs {
            reader.statements(&mut out)?;
        }
        Some(())
    };
    match pattern.trim() {
        "BEGIN" => run("", 0)?,
        _ => (1..).zip(input?.lines()).try_for_each(|(number, line)| run(line, number))?,
    }
    Some(out)
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    /// The number at the start of a text.
    fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => {
                let text = text.trim_start();
                let ends = (0..=text.len()).rev().filter(|end| text.is_char_boundary(*end));
                ends.filter(|end| text[..*end].ends_with(|c: char| c.is_ascii_digit() || c == '.'))
                    .find_map(|end| text[..end].parse().ok())
                    .unwrap_or(0.0)
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
            Self::Number(number) => six_digits(*number),
        }
    }

    fn holds(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
        }
    }
}

/// A number as by `%.6g`.
fn six_digits(number: f64) -> String {
    let exponent = libm::log10(number.abs()).floor();
    if !(-5.0..6.0).contains(&exponent) {
        let text = format!("{number:.5e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let decimals = (5.0 - exponent).max(0.0) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

struct Reader<'a> {
    rest: &'a str,
    line: &'a str,
    fields: &'a [&'a str],
    number: usize,
    variables: &'a mut BTreeMap<String, Value>,
    deep: usize,
}

impl Reader<'_> {
    fn take(&mut self, sign: &str) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &str {
        self.rest = self.rest.trim_start();
        let length = super::scan::name_length(self.rest);
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word
    }

    /// `print …; printf …`
    fn statements(&mut self, out: &mut String) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
            if self.rest.starts_with('#') {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
                continue;
            }
            if self.rest.is_empty() {
                return Some(());
            }
            let mut runs = true;
            let mut name = self.word().to_owned();
            if name == "if" {
                let test = self.take("(").then(|| self.choice())??;
                self.take(")").then_some(())?;
                runs = test.holds();
                name = self.word().to_owned();
            }
            if self.rest.trim_start().starts_with('=') && !self.rest.trim_start().starts_with("==") {
                self.take("=");
                let value = self.choice()?;
                if runs {
                    self.variables.insert(name, value);
                }
                continue;
            }
            let ends = |reader: &mut Self| {
                let rest = reader.rest.trim_start_matches([' ', '\t']);
                rest.is_empty() || rest.starts_with([';', '\n'])
            };
            let mut values = Vec::new();
            // `printf("%d", $1)`: parentheses around all of it.
            let is_around = name == "printf" && self.take("(");
            while !(ends(self) || is_around && self.rest.trim_start().starts_with(')')) {
                values.push(self.choice()?);
                if !self.take(",") && !ends(self) && !is_around {
                    return None;
                }
            }
            if is_around && !(self.take(")") && ends(self)) {
                return None;
            }
            match name.as_str() {
                "print" | "printf" if !runs => {}
                "print" if values.is_empty() => *out += &format!("{}\n", self.line),
                "print" => *out += &(values.iter().map(Value::text).collect::<Vec<_>>().join(" ") + "\n"),
                "printf" => {
                    let texts: Vec<String> = values.iter().skip(1).map(whole).collect();
                    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
                    *out += &formatted(&values.first()?.text(), &words)?;
                }
                _ => return None,
            }
        }
    }

    /// `A ? B : C`
    fn choice(&mut self) -> Option<Value> {
        self.deep += 1;
        if self.deep > DEEPEST {
            return None;
        }
        let test = self.comparison()?;
        let value = match self.take("?") {
            false => test,
            true => {
                let yes = self.choice()?;
                let no = self.take(":").then(|| self.choice())??;
                if test.holds() { yes } else { no }
            }
        };
        self.deep -= 1;
        Some(value)
    }

    fn comparison(&mut self) -> Option<Value> {
        let left = self.joined()?;
        for (sign, holds) in [
            ("==", (|one, other| one == other) as fn(f64, f64) -> bool),
            ("!=", |one, other| one != other),
            ("<=", |one, other| one <= other),
            (">=", |one, other| one >= other),
            ("<", |one, other| one < other),
            (">", |one, other| one > other),
        ] {
            if self.take(sign) {
                let right = self.joined()?;
                let holds = match (&left, &right) {
                    (Value::Text(one), Value::Text(other)) if one.parse::<f64>().is_err() => match sign {
                        "==" => one == other,
                        "!=" => one != other,
                        _ => return None,
                    },
                    _ => holds(left.number(), right.number()),
                };
                return Some(Value::Number(f64::from(u8::from(holds))));
            }
        }
        Some(left)
    }

    /// Values beside one another are one text.
    fn joined(&mut self) -> Option<Value> {
        let mut left = self.sum()?;
        loop {
            let next = self.rest.trim_start_matches([' ', '\t']).chars().next();
            if !next.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '"' | '$' | '_' | '(')) {
                return Some(left);
            }
            let right = self.sum()?;
            left = Value::Text(left.text() + &right.text());
        }
    }

    fn sum(&mut self) -> Option<Value> {
        let mut left = self.product()?;
        loop {
            let sign = match (self.take("+"), self.take("-")) {
                (true, _) => 1.0,
                (false, true) => -1.0,
                _ => return Some(left),
            };
            let right = self.product()?;
            left = Value::Number(left.number() + sign * right.number());
        }
    }

    fn product(&mut self) -> Option<Value> {
        let mut left = self.power()?;
        loop {
            let (one, by) = if self.take("*") {
                (left.number(), self.power()?.number())
            } else if self.take("/") {
                let by = self.power()?.number();
                if by == 0.0 {
                    return None;
                }
                (left.number() / by, 1.0)
            } else if self.take("%") {
                (left.number() % self.power()?.number(), 1.0)
            } else {
                return Some(left);
            };
            left = Value::Number(one * by);
        }
    }

    fn power(&mut self) -> Option<Value> {
        let base = self.one()?;
        if self.take("^") || self.take("**") {
            let exponent = self.one()?.number();
            // Whole ones are the same on every machine.
            if exponent.fract() != 0.0 || exponent.abs() > 64.0 {
                return None;
            }
            return Some(Value::Number(libm::pow(base.number(), exponent)));
        }
        Some(base)
    }

    /// `(A, B)`
    fn arguments(&mut self) -> Option<Vec<Value>> {
        let mut all = Vec::new();
        self.take("(").then_some(())?;
        loop {
            all.push(self.choice()?);
            if self.take(")") {
                return Some(all);
            }
            self.take(",").then_some(())?;
        }
    }

    fn one(&mut self) -> Option<Value> {
        if self.take("(") {
            let value = self.choice()?;
            return self.take(")").then_some(value);
        }
        if self.take("-") {
            self.deep += 1;
            let value = (self.deep <= DEEPEST).then(|| self.one())??;
            self.deep -= 1;
            return Some(Value::Number(-value.number()));
        }
        if self.take("\"") {
            let end = super::scan::quote_end(self.rest)?;
            let text = self.rest[..end].to_owned();
            self.rest = &self.rest[end + 1..];
            return Some(Value::Text(unescaped(&text, Escapes::OfQuotes)?));
        }
        if self.take("$") {
            let at = match self.take("NF") {
                true => self.fields.len(),
                false => self.one()?.number() as usize,
            };
            let text = if at == 0 { self.line } else { self.fields.get(at - 1).copied().unwrap_or_default() };
            return Some(Value::Text(text.to_owned()));
        }
        let digits = self.rest.trim_start();
        let mut length =
            digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        if length > 0 {
            let power =
                digits[length..].strip_prefix(['e', 'E']).map(|rest| rest.trim_start_matches(['-', '+']));
            if let Some(power) = power.filter(|power| power.starts_with(|c: char| c.is_ascii_digit())) {
                let after = power.trim_start_matches(|c: char| c.is_ascii_digit());
                length = digits.len() - after.len();
            }
            self.rest = &digits[length..];
            return digits[..length].parse().ok().map(Value::Number);
        }
        let name = self.word().to_owned();
        match name.as_str() {
            "" => None,
            "NR" => Some(Value::Number(self.number as f64)),
            "NF" => Some(Value::Number(self.fields.len() as f64)),
            "int" => {
                let value = self.take("(").then(|| self.choice())??;
                self.take(")").then(|| Value::Number(value.number().trunc()))
            }
            "length" | "index" | "substr" if self.rest.starts_with('(') => {
                let arguments = self.arguments()?;
                of_text(&name, &arguments)
            }
            name => self.variables.get(name).cloned(),
        }
    }
}

/// `length`, `index` and `substr`, which count characters from 1.
fn of_text(name: &str, arguments: &[Value]) -> Option<Value> {
    let count = |text: &str| text.chars().count() as f64;
    match (name, arguments) {
        ("length", [text]) => Some(Value::Number(count(&text.text()))),
        ("index", [text, part]) => {
            let text = text.text();
            let found = text.find(&part.text());
            Some(Value::Number(found.map_or(0.0, |at| count(&text[..at]) + 1.0)))
        }
        ("substr", [text, from, rest @ ..]) if rest.len() <= 1 => {
            // Versions of awk differ about what lies before the first character.
            let from = libm::rint(from.number());
            if from < 1.0 {
                return None;
            }
            let end = rest.first().map_or(f64::INFINITY, |length| from + libm::rint(length.number()));
            let text = text.text();
            let part = text.chars().enumerate().filter(|(at, _)| (from..end).contains(&(*at as f64 + 1.0)));
            Some(Value::Text(part.map(|(_, letter)| letter).collect()))
        }
        _ => None,
    }
}

/// A value for `printf`, which takes whole numbers of others, too.
fn whole(value: &Value) -> String {
    match value {
        Value::Number(number) if number.fract() != 0.0 => number.to_string(),
        other => other.text(),
    }
}
