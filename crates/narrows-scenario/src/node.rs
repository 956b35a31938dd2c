//! A TOML document with the position of every value, and functions that read tables and names.
//!
//! Numbers keep their text, so that `0.01` is exactly one hundredth.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::problem::{Found, Problem, article, one_of};

/// Maximum number of lines and items of a document: more than the largest network takes. Each takes some hundred bytes once
/// it is read.
const MOST_ITEMS: usize = 2_000_000;

/// Checks, before a document is read, that it has no absurd number of lines and items, which begin or end with these bytes.
pub(crate) fn check_size(text: &str, marks: &[u8]) -> Result<(), Problem> {
    let count = text.bytes().filter(|byte| marks.contains(byte)).count();
    match count <= MOST_ITEMS {
        true => Ok(()),
        false => Err(Problem::new(format!("{count} lines and items: at most {MOST_ITEMS}"))),
    }
}

/// A value and its position. Equality ignores positions.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    String(String),
    /// The number in decimal digits.
    Integer(String),
    /// As it was written.
    Float(String),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table(Vec<(Key, Node)>);

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Value {
    /// The table, if it is one.
    pub(crate) fn into_table(self) -> Option<Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl FromIterator<(Key, Node)> for Table {
    fn from_iter<T: IntoIterator<Item = (Key, Node)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

/// Whether a number is nothing else.
fn is_whole(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Integer(number) => {
            let digits = number.as_str().trim_start_matches(['+', '-']);
            digits.chars().all(|c| c.is_digit(number.radix()))
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().is_ok(),
        _ => true,
    }
}

impl Node {
    /// A value without a position.
    pub(crate) fn new(value: Value) -> Self {
        Self { span: 0..0, value }
    }

    /// Parses a whole document.
    pub(crate) fn document(text: &str) -> Result<Table, Problem> {
        check_size(text, b",\n")
            .map_err(|problem| problem.help("a long series of values belongs in a trace"))?;
        let document = DeTable::parse(text).map_err(|error| syntax(&error, text))?;
        Ok(Table::from_toml(document.into_inner(), 0))
    }

    /// Parses what was typed after `=` in an assignment or after a flag: a TOML value, or else bare text.
    /// `start` is its offset in a larger text.
    pub(crate) fn typed(text: &str, start: usize) -> Self {
        let span = start..start + text.len();
        match DeValue::parse(text) {
            // A TOML date is treated as a plain word, and so is `1_000kbit`, of which the parser makes a number.
            Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_)) && is_whole(value.get_ref()) => {
                Self::from_toml(value, start)
            }
            _ => Self { span, value: Value::String(text.into()) },
        }
    }

    fn from_toml(node: Spanned<DeValue<'_>>, start: usize) -> Self {
        let span = node.span();
        let value = match node.into_inner() {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(number) => Value::Integer(decimal(&number)),
            DeValue::Float(number) => Value::Float(number.as_str().into()),
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(value) => Value::Datetime(value.to_string()),
            DeValue::Array(items) => {
                Value::Array(items.into_iter().map(|item| Self::from_toml(item, start)).collect())
            }
            DeValue::Table(table) => Value::Table(Table::from_toml(table, start)),
        };
        Self { span: shift(span, start), value }
    }

    /// As typed after `=`: without quotes where the meaning stays the same.
    pub(crate) fn typed_text(&self) -> String {
        match &self.value {
            Value::String(text) if text.trim() == text && Self::typed(text, 0).value == self.value => {
                text.clone()
            }
            _ => self.toml(),
        }
    }

    /// As written in a file, on one line.
    pub(crate) fn toml(&self) -> String {
        match &self.value {
            Value::String(text) => toml_string(text),
            Value::Integer(text) | Value::Float(text) | Value::Datetime(text) => text.clone(),
            Value::Boolean(value) => value.to_string(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Self::toml).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) if table.0.is_empty() => "{}".into(),
            Value::Table(table) => {
                let entry = |(key, node): (&Key, &Self)| format!("{} = {}", toml_key(&key.name), node.toml());
                let entries: Vec<String> = table.iter().map(entry).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// Description for "found …" in errors.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::String(text) => Found(text).to_string(),
            Value::Integer(text) | Value::Float(text) | Value::Datetime(text) => Found(text).to_string(),
            Value::Boolean(value) => format!("`{value}`"),
            Value::Array(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// The error for a value of the wrong kind. `allowed` starts the text after "expected".
    pub(crate) fn expected(&self, allowed: &str) -> Problem {
        Problem::new(format!("found {}, expected {allowed}", self.found())).at(&self.span)
    }

    pub(crate) fn text(&self, allowed: &str) -> Result<&str, Problem> {
        match &self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.expected(allowed)),
        }
    }

    pub(crate) fn table(&self, allowed: &str) -> Result<&Table, Problem> {
        match &self.value {
            Value::Table(table) => Ok(table),
            _ => Err(self.expected(allowed)),
        }
    }

    pub(crate) fn list(&self, allowed: &str) -> Result<&[Node], Problem> {
        match &self.value {
            Value::Array(items) => Ok(items),
            _ => Err(self.expected(allowed)),
        }
    }

    pub(crate) fn boolean(&self) -> Result<bool, Problem> {
        match &self.value {
            Value::Boolean(value) => Ok(*value),
            Value::String(text) if text == "true" => Ok(true),
            Value::String(text) if text == "false" => Ok(false),
            _ => Err(self.expected("`true` or `false`")),
        }
    }

    /// Reads a whole number without a unit, in a range. `what` is a noun with its article.
    pub(crate) fn integer(&self, what: &str, range: Range<i64>) -> Result<i64, Problem> {
        let text = match &self.value {
            Value::Integer(text) | Value::String(text) => text.trim(),
            _ => "",
        };
        let value = text.parse().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| self.expected(&format!("{what} from {} to {}", range.start, range.end - 1)))
    }

    /// Reads one of several words.
    pub(crate) fn choice<T: Copy>(&self, what: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.text(&format!("{what}: {}", one_of(&names)))?;
        choices.iter().find(|(name, _)| *name == text.trim()).map(|(_, value)| *value).ok_or_else(|| {
            let problem =
                Problem::new(format!("{} is not {} {what}", self.found(), article(what))).at(&self.span);
            suggest(problem, text, &names)
        })
    }
}

impl Table {
    fn from_toml(table: DeTable<'_>, start: usize) -> Self {
        let mut entries: Vec<(Key, Node)> = table
            .into_iter()
            .map(|(key, value)| {
                let span = shift(key.span(), start);
                (Key { name: key.into_inner().into_owned(), span }, Node::from_toml(value, start))
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        Self(entries)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Node)> {
        self.0.iter().map(|(key, node)| (key, node))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    pub(crate) fn key(&self, key: &str) -> Option<&Key> {
        self.0.iter().find(|(k, _)| k.name == key).map(|(k, _)| k)
    }

    /// Sets a key, new or existing.
    pub(crate) fn set(&mut self, key: &str, node: Node) {
        match self.0.iter_mut().find(|(k, _)| k.name == key) {
            Some((_, value)) => *value = node,
            None => self.0.push((Key { name: key.into(), span: node.span.clone() }, node)),
        }
    }

    /// Appends a key without a position.
    pub(crate) fn put(&mut self, key: &str, value: Value) {
        self.0.push((Key { name: key.into(), span: 0..0 }, Node::new(value)));
    }

    /// Sets a key that has a position, new or existing.
    pub(crate) fn insert(&mut self, key: Key, node: Node) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => *entry = (key, node),
            None => self.0.push((key, node)),
        }
    }

    /// Removes a key; returns it with its value.
    pub(crate) fn take(&mut self, name: &str) -> Option<(Key, Node)> {
        let at = self.0.iter().position(|(key, _)| key.name == name)?;
        Some(self.0.remove(at))
    }

    /// Returns a copy with this key added, unless the name exists.
    pub(crate) fn and(&self, key: &str, value: Value) -> Self {
        let mut table = self.clone();
        if table.get(key).is_none() {
            table.put(key, value);
        }
        table
    }

    /// Appends the keys of another table.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Keeps the keys for which `holds` is true.
    pub(crate) fn retain(&mut self, holds: impl Fn(&str, &Node) -> bool) {
        self.0.retain(|(key, node)| holds(&key.name, node));
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key.name != name);
    }

    /// Keeps the keys that are in `known`.
    pub(crate) fn keep(&mut self, known: &[&str]) {
        self.0.retain(|(key, _)| known.contains(&key.name.as_str()));
    }

    /// Reads an optional key.
    pub(crate) fn optional<'a, T>(
        &'a self,
        key: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        self.get(key).map(read).transpose().map_err(|problem| problem.inside(key))
    }

    /// Reads a required key. The error points at `place` if it is missing.
    pub(crate) fn required<'a, T>(
        &'a self,
        key: &str,
        place: &Range<usize>,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        self.optional(key, read)?.ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(place))
    }

    /// One problem for each key that is not in `known`.
    pub(crate) fn unknown_keys(&self, known: &[&str]) -> Vec<Problem> {
        let unknown = self.0.iter().filter(|(key, _)| !known.contains(&key.name.as_str()));
        unknown
            .map(|(key, _)| {
                suggest(Problem::new(format!("unknown key {}", Found(&key.name))), &key.name, known)
                    .at(&key.span)
            })
            .collect()
    }

    /// Like [`Table::unknown_keys`], but reports the first one only.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        self.unknown_keys(known).into_iter().next().map_or(Ok(()), Err)
    }
}

/// Adds the allowed names to a problem, nearest first.
pub(crate) fn suggest(problem: Problem, found: &str, known: &[&str]) -> Problem {
    match known {
        [] => problem.help("no key is allowed here"),
        _ => problem.did_you_mean(found, known.iter().copied()).help(format!("allowed: {}", one_of(known))),
    }
}

/// Checks the name of a host, junction, link or traffic source. Such names become parts of names joined by
/// dots.
pub(crate) fn check_name(key: &Key, what: &str) -> Result<(), Problem> {
    if key.name.len() <= 64 && is_name(&key.name) {
        return Ok(());
    }
    Err(Problem::new(format!("{} cannot be the name of a {what}", Found(&key.name)))
        .at(&key.span)
        .help("a name has 1 to 64 characters of a–z, A–Z, 0–9, `-` and `_`"))
}

/// Checks the name of a class, which may be a tc class ID: `1:10`.
pub(crate) fn check_class_name(key: &Key) -> Result<(), Problem> {
    if key.name.len() <= 64 && is_name(&key.name.replace(':', "")) {
        return Ok(());
    }
    Err(Problem::new(format!("{} cannot be the name of a class", Found(&key.name)))
        .at(&key.span)
        .help("a name has 1 to 64 characters of a–z, A–Z, 0–9, `-`, `_` and `:`"))
}

/// A key, quoted if necessary.
pub(crate) fn toml_key(name: &str) -> String {
    if is_name(name) { name.into() } else { toml_string(name) }
}

/// A quoted string.
pub(crate) fn toml_string(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn decimal(number: &DeInteger<'_>) -> String {
    let negative = number.as_str().starts_with('-');
    let digits = number.as_str().trim_start_matches(['+', '-']);
    match u128::from_str_radix(digits, number.radix()) {
        Ok(value) if negative => format!("-{value}"),
        Ok(value) => value.to_string(),
        Err(_) => number.to_string(),
    }
}

fn shift(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// Converts the TOML parser's error, rephrased in the scenario's terms where one exists.
fn syntax(error: &toml::de::Error, text: &str) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let problem = Problem::new(format!("invalid TOML: {}", error.message()));
    let problem = if error.message().contains("duplicate key") {
        let line_start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default().trim();
        let name = line.trim_start_matches('[').split(']').next().unwrap_or_default();
        let mut parts = name.split('.').map(str::trim);
        match (line.starts_with('['), parts.next(), parts.next(), parts.next()) {
            (true, Some(kind @ ("hosts" | "links" | "junctions")), Some(name), None) => {
                let one = kind.trim_end_matches('s');
                Problem::new(format!("duplicate {kind}: {}", Found(name)))
                    .help(format!("give each {one} a unique name"))
            }
            _ => Problem::new("duplicate key").help("keep one of the two"),
        }
    } else {
        problem
    };
    problem.at(&span)
}
