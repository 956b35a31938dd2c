//! A YAML document with the place of every key and value, in bytes.

use std::ops::Range;

use narrows_scenario::{Fault, ScenarioError};
use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

/// Maximum depth of what is read; deeper values are text.
const DEEPEST: usize = 32;

/// Maximum number of lines: more than any engine has containers for.
const MOST_LINES: usize = 100_000;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing, as in `web:` without more.
    Null,
    /// A text, and a number or a boolean as it would be written; whether it was one of these.
    Scalar(String, bool),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
}

impl Node {
    /// Parses the first document of a text.
    pub(crate) fn document(text: &str, file: &str) -> Result<Self, ScenarioError> {
        if text.lines().nth(MOST_LINES).is_some() {
            let fault = fault(format!("more than {MOST_LINES} lines"), &(0..0), &[]);
            return Err(ScenarioError::of_faults(file, text, [fault]));
        }
        let places = Places::of(text);
        let documents = MarkedYaml::load_from_str(text).map_err(|error| {
            let start = places.byte(error.marker().index());
            let fault = fault(format!("invalid YAML: {}", error.info()), &(start..start), &[]);
            ScenarioError::of_faults(file, text, [fault])
        })?;
        match documents.first() {
            Some(root) => Ok(read(root, &places, 0)),
            None => Ok(Self { span: 0..0, value: Value::Null }),
        }
    }

    /// The value of this key, if this is a map that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.map()?.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    pub(crate) fn map(&self) -> Option<&[(Key, Self)]> {
        match &self.value {
            Value::Map(all) => Some(all),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(all) => Some(all),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// What it is, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Scalar(..) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The value as a scenario file would have it, without quotes if it is a text.
    pub(crate) fn typed(&self) -> String {
        match &self.value {
            Value::Scalar(text, _) => text.clone(),
            _ => self.toml(),
        }
    }

    fn toml(&self) -> String {
        match &self.value {
            Value::Null => "\"\"".into(),
            Value::Scalar(text, true) => text.clone(),
            Value::Scalar(text, false) => toml::Value::from(text.as_str()).to_string(),
            Value::List(all) => format!("[{}]", all.iter().map(Self::toml).collect::<Vec<_>>().join(", ")),
            Value::Map(all) => {
                let pair = |(key, node): &(Key, Self)| {
                    format!("{} = {}", toml::Value::from(key.name.as_str()), node.toml())
                };
                format!("{{ {} }}", all.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A fault at a place.
pub(crate) fn fault(title: impl Into<String>, span: &Range<usize>, help: &[&str]) -> Fault {
    let help = help.iter().map(|help| (*help).to_owned()).collect();
    Fault { title: title.into(), help, key: String::new(), span: Some(span.clone()) }
}

fn read(node: &MarkedYaml<'_>, places: &Places, depth: usize) -> Node {
    let span = places.byte(node.span.start.index())..places.byte(node.span.end.index());
    let value = match &node.data {
        YamlData::Tagged(_, inner) if depth < DEEPEST => return read(inner, places, depth + 1),
        YamlData::Sequence(all) if depth < DEEPEST => {
            Value::List(all.iter().map(|one| read(one, places, depth + 1)).collect())
        }
        YamlData::Mapping(all) if depth < DEEPEST => {
            let mut map = Vec::new();
            let mut merged = Vec::new();
            for (key, node) in all {
                let node = read(node, places, depth + 1);
                let key = read(key, places, depth + 1);
                let name = key.typed();
                match (name.as_str(), node.value) {
                    // `<<: *anchor`
                    ("<<", Value::Map(inner)) => merged.extend(inner),
                    ("<<", Value::List(all)) => {
                        merged
                            .extend(all.into_iter().filter_map(|one| one.map().map(<[_]>::to_vec)).flatten());
                    }
                    (_, value) => map.push((Key { name, span: key.span }, Node { value, ..node })),
                }
            }
            for (key, node) in merged {
                if map.iter().all(|(own, _): &(Key, _)| own.name != key.name) {
                    map.push((key, node));
                }
            }
            Value::Map(map)
        }
        YamlData::Value(scalar) => of_scalar(scalar),
        YamlData::Representation(text, ..) => Value::Scalar(text.to_string(), false),
        _ => Value::Null,
    };
    Node { span, value }
}

fn of_scalar(scalar: &Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::String(text) => Value::Scalar(text.to_string(), false),
        Scalar::Boolean(boolean) => Value::Scalar(boolean.to_string(), true),
        Scalar::Integer(number) => Value::Scalar(number.to_string(), true),
        Scalar::FloatingPoint(number) => Value::Scalar(number.to_string(), true),
    }
}

/// The parser counts characters; here places are bytes.
struct Places(Vec<usize>);

impl Places {
    fn of(text: &str) -> Self {
        Self(text.char_indices().map(|(at, _)| at).chain([text.len()]).collect())
    }

    fn byte(&self, character: usize) -> usize {
        self.0.get(character).or(self.0.last()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bytes_and_anchors_are_merged() {
        let text = "ä: &base { delay: 5ms, n: 3 }\nb: { <<: *base, delay: 7ms }\n";
        let root = Node::document(text, "x").unwrap();
        let b = root.get("b").unwrap();
        assert_eq!(b.get("delay").unwrap().text(), Some("7ms"));
        assert_eq!(b.get("n").unwrap().typed(), "3");
        assert_eq!(&text[b.get("delay").unwrap().span.clone()], "7ms");
        let (key, _) = &root.map().unwrap()[0];
        assert_eq!(&text[key.span.clone()], "ä");
    }

    #[test]
    fn maps_are_tables_of_a_scenario() {
        let root =
            Node::document("d: { normal: { mean: 5ms, sigma: 1ms }, list: [1, a, true] }\n", "x").unwrap();
        let typed = root.get("d").unwrap().typed();
        assert_eq!(typed, r#"{ "normal" = { "mean" = "5ms", "sigma" = "1ms" }, "list" = [1, "a", true] }"#);
    }

    #[test]
    fn invalid_yaml_is_told_with_its_line() {
        let error = Node::document("a: 1\nb: [\n", "compose.yml").unwrap_err().to_string();
        assert!(error.contains("invalid YAML") && error.contains("compose.yml:"), "{error}");
    }
}
