//! Parses JSON with positions into the same tree as TOML files.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;

use crate::node::{Key, Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::source::number::{Fault, scaled};

/// Parses a document.
pub(super) fn document(text: &str) -> Result<Node, Problem> {
    checked(text)?.value()
}

/// Parses the items of a list one by one, without keeping them. `allowed` says what the list is.
pub(super) fn each_item(
    text: &str,
    allowed: &str,
    mut item: impl FnMut(&Node) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut reader = checked(text)?;
    if reader.peek() != b'[' {
        return Err(reader.value()?.expected(allowed));
    }
    reader.at += 1;
    while !reader.take(b']') {
        item(&reader.value()?)?;
        reader.take(b',');
    }
    Ok(())
}

/// The number of a key that must be there, times ten to the power.
pub(super) fn required(
    of: &Node,
    table: &Table,
    key: &str,
    power: i32,
    most: u64,
    what: &str,
) -> Result<u64, Problem> {
    let node = table.get(key).ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(&of.span))?;
    number(node, power, most, what)
}

/// A number times ten to the power.
pub(super) fn number(node: &Node, power: i32, most: u64, what: &str) -> Result<u64, Problem> {
    let (Value::Integer(text) | Value::Float(text)) = &node.value else { return Err(node.expected(what)) };
    let value = scaled(text, power).and_then(|value| u64::try_from(value).map_err(|_| Fault::TooLarge));
    match value.map(|value| (value, value <= most)) {
        Ok((value, true)) => Ok(value),
        Ok(_) | Err(Fault::TooLarge) => {
            Err(Problem::new(format!("{} is too large for {what}", Found(text))).at(&node.span))
        }
        Err(Fault::Negative) => Err(Problem::new(format!("{} is below zero", Found(text))).at(&node.span)),
        Err(Fault::NoNumber) => Err(node.expected(what)),
    }
}

/// A reader of a text, after a check. Invalid JSON and excessive nesting are rejected here; the code below
/// relies on valid JSON.
fn checked(text: &str) -> Result<Reader<'_>, Problem> {
    let begin = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let rest = &text[begin..];
    serde_json::from_str::<IgnoredAny>(rest).map_err(|error| {
        let start: usize =
            rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = begin + (start + error.column().saturating_sub(1)).min(rest.len());
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        Problem::new(format!("this is not JSON: {said}")).at(&(at..at + 1))
    })?;
    Ok(Reader { text, at: begin })
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a text that is known to be valid JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// Returns the next non-blank character without taking it.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }

    /// Takes the next character if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Node, Problem> {
        let first = self.peek();
        let start = self.at;
        let value = match first {
            b'{' => Value::Table(self.table()?),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.take(b']') {
                    items.push(self.value()?);
                    self.take(b',');
                }
                Value::Array(items)
            }
            b'"' => Value::String(self.string()),
            _ => self.word(),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn table(&mut self) -> Result<Table, Problem> {
        self.at += 1;
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut names = BTreeSet::new();
        while !self.take(b'}') {
            self.peek();
            let start = self.at;
            let key = Key { name: self.string(), span: start..self.at };
            if !names.insert(key.name.clone()) {
                let problem = Problem::new(format!("duplicate {}", Found(&key.name))).at(&key.span);
                return Err(problem.help("keep one of the two"));
            }
            self.take(b':');
            entries.push((key, self.value()?));
            self.take(b',');
        }
        Ok(entries.into_iter().collect())
    }

    fn string(&mut self) -> String {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        while bytes.get(self.at).is_some_and(|byte| *byte != b'"') {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(bytes.len());
        self.text.get(start..self.at).and_then(|token| serde_json::from_str(token).ok()).unwrap_or_default()
    }

    /// Parses a number, `true`, `false` or `null`.
    fn word(&mut self) -> Value {
        let start = self.at;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        let length = self.text.as_bytes()[start..].iter().take_while(|byte| !ends(byte)).count();
        self.at += length;
        match &self.text[start..self.at] {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            // TOML has no `null`. Represent it by a value that no key accepts.
            "null" => Value::Datetime("null".into()),
            number if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
                Value::Integer(number.into())
            }
            number => Value::Float(number.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_toml_reads_and_knows_where() {
        let text = r#" {"a" : [1, -2.5e3, "x\"\u00e9,"], "b":{"c": true} } "#;
        let toml = "a = [1, -2.5e3, \"x\\\"é,\"]\nb = { c = true }\n";
        let node = document(text).unwrap();
        assert_eq!(node.value, Value::Table(Node::document(toml).unwrap()));
        let Value::Table(table) = &node.value else { panic!("a table") };
        let span = table.get("b").unwrap().span.clone();
        assert_eq!(&text[span], r#"{"c": true}"#);
    }

    #[test]
    fn what_is_no_json_has_a_place() {
        for (text, part) in [("{\n\"a\": 1,\n}", "}"), ("[1, nan]", "n"), ("{\"a\":1,\"a\":2}", "\"a\"")] {
            let problem = document(text).unwrap_err();
            let error = crate::ScenarioError::new("x.json", text, vec![problem]);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
