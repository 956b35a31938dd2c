//! Variables and arguments of a script, as far as they are known.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    /// It is not in the script, but this; and the first variable that has it.
    Missing(Missing, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Output,
    Argument,
    /// It is set where a condition holds that is not known.
    Doubt,
    Input,
    /// It is a variable that is not set.
    Unset,
    /// A file may set it that is not read.
    File,
    /// It is calculated from a value that is not in the script.
    Calculated,
}

impl Missing {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Output => "the output of a command",
            Self::Argument => "an argument of the script",
            Self::Doubt => "what a condition decides that depends on more than the script",
            Self::Input => "what the script reads",
            Self::Unset => "a variable that is not set",
            Self::Calculated => "what is calculated from more than the script",
            Self::File => "what a file of the host says, which is not read,",
        }
    }
}

impl Scalar {
    pub(super) fn empty() -> Self {
        Self::Text(String::new())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    One(Scalar),
    List(BTreeMap<i64, Scalar>),
    Map(BTreeMap<String, Scalar>),
    /// After `unset`.
    Unset,
}

/// A variable, and its value from before.
type Former = (String, Option<Value>);

/// What a function takes back at its end.
pub(super) struct Frame {
    arguments: Option<Vec<Scalar>>,
    local: Vec<Former>,
    is_function: bool,
    is_unclear: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    all: BTreeMap<String, Value>,
    /// The arguments of the function that is executed, or of the script; `None` if they are not known.
    arguments: Option<Vec<Scalar>>,
    /// What the local variables of that function were before.
    local: Vec<Former>,
    is_function: bool,
    /// The arguments are what a command prints.
    is_unclear: bool,
    /// After `readonly`.
    constants: BTreeSet<String>,
    /// After `declare -i`.
    integers: BTreeSet<String>,
    /// After `export`: other shells get them. Functions have `()` behind their names.
    exported: BTreeSet<String>,
}

impl Values {
    /// Those of a script with these arguments, `None` if they are not known, and these variables around it.
    pub(super) fn new(arguments: Option<&[String]>, variables: &[(String, String)]) -> Self {
        let arguments = arguments.map(|all| all.iter().cloned().map(Scalar::Text).collect());
        let one = |(name, text): &(String, String)| (name.clone(), Value::One(Scalar::Text(text.clone())));
        Self {
            arguments,
            all: variables.iter().map(one).collect(),
            exported: variables.iter().map(|(name, _)| name.clone()).collect(),
            ..Self::default()
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.all.get(name)
    }

    /// Any variable may have another value.
    pub(super) fn doubt_all(&mut self) {
        for (name, value) in self.all.iter_mut().filter(|(name, _)| !self.constants.contains(*name)) {
            *value = Value::One(Scalar::Missing(Missing::File, name.clone()));
        }
    }

    /// The value without an index: of an array, its first.
    pub(super) fn scalar(&self, name: &str) -> Option<&Scalar> {
        match self.all.get(name)? {
            Value::One(scalar) => Some(scalar),
            Value::List(list) => list.get(&0),
            Value::Map(map) => map.get("0"),
            Value::Unset => None,
        }
    }

    pub(super) fn is_unset(&self, name: &str) -> bool {
        matches!(self.all.get(name), Some(Value::Unset))
    }

    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.constants.contains(name)
    }

    pub(super) fn make_constant(&mut self, name: &str) {
        self.constants.insert(name.to_owned());
    }

    pub(super) fn is_integer(&self, name: &str) -> bool {
        self.integers.contains(name)
    }

    pub(super) fn make_integer(&mut self, name: &str) {
        self.integers.insert(name.to_owned());
    }

    pub(super) fn is_function(&self) -> bool {
        self.is_function
    }

    pub(super) fn arguments(&self) -> Option<&[Scalar]> {
        self.arguments.as_deref()
    }

    pub(super) fn is_unclear(&self) -> bool {
        self.is_unclear
    }

    pub(super) fn set_unclear(&mut self, is_unclear: bool) {
        self.is_unclear = is_unclear;
    }

    pub(super) fn set_arguments(&mut self, arguments: Option<Vec<Scalar>>) {
        self.arguments = arguments;
    }

    pub(super) fn put(&mut self, name: &str, value: Value) {
        self.all.insert(name.to_owned(), value);
    }

    pub(super) fn set(&mut self, name: &str, value: Scalar) {
        match self.all.get_mut(name) {
            Some(Value::List(list)) => drop(list.insert(0, value)),
            Some(Value::Map(map)) => drop(map.insert("0".to_owned(), value)),
            Some(one) => *one = Value::One(value),
            None => self.put(name, Value::One(value)),
        }
    }

    /// Sets one of an array.
    pub(super) fn set_at(&mut self, name: &str, index: i64, value: Scalar) {
        let list = match self.all.remove(name) {
            Some(Value::List(mut list)) => {
                list.insert(index, value);
                list
            }
            Some(Value::One(first)) => BTreeMap::from([(0, first), (index, value)]),
            _ => BTreeMap::from([(index, value)]),
        };
        self.put(name, Value::List(list));
    }

    pub(super) fn set_key(&mut self, name: &str, key: String, value: Scalar) {
        match self.all.get_mut(name) {
            Some(Value::Map(map)) => drop(map.insert(key, value)),
            _ => self.put(name, Value::Map(BTreeMap::from([(key, value)]))),
        }
    }

    pub(super) fn export(&mut self, name: &str) {
        self.exported.insert(name.to_owned());
    }

    pub(super) fn forget_export(&mut self, name: &str) {
        self.exported.remove(name);
    }

    pub(super) fn is_exported(&self, name: &str) -> bool {
        self.exported.contains(name)
    }

    /// Only what other shells get.
    pub(super) fn keep_exported(&mut self) {
        self.all.retain(|name, _| self.exported.contains(name));
    }

    /// Nothing of this host.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.exported.clear();
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.put(name, Value::Unset);
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.all.remove(name)
    }

    /// The value is that of a caller again when the function ends.
    pub(super) fn make_local(&mut self, name: &str) {
        if self.is_function && !self.local.iter().any(|(known, _)| known == name) {
            let before = self.all.get(name).cloned();
            self.local.push((name.to_owned(), before));
        }
    }

    pub(super) fn begin_function(&mut self, arguments: Vec<Scalar>) -> Frame {
        Frame {
            arguments: self.arguments.replace(arguments),
            local: std::mem::take(&mut self.local),
            is_function: std::mem::replace(&mut self.is_function, true),
            is_unclear: std::mem::take(&mut self.is_unclear),
        }
    }

    pub(super) fn end_function(&mut self, frame: Frame) {
        for (name, value) in std::mem::replace(&mut self.local, frame.local).into_iter().rev() {
            self.restore(name, value);
        }
        self.arguments = frame.arguments;
        self.is_function = frame.is_function;
        self.is_unclear = frame.is_unclear;
    }

    /// Gives a variable the value from before.
    pub(super) fn restore(&mut self, name: String, value: Option<Value>) {
        match value {
            Some(value) => self.all.insert(name, value),
            None => self.all.remove(&name),
        };
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The names of variables with another value than here.
    pub(super) fn changed(&self, other: &Self) -> Vec<String> {
        let names = self.all.keys().chain(other.all.keys().filter(|name| !self.all.contains_key(*name)));
        names.filter(|name| self.all.get(*name) != other.all.get(*name)).cloned().collect()
    }
}
