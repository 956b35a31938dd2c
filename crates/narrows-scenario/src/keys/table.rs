//! Tables of a file by their rows: read, written, and what in them is not known.

use std::ops::Range;

use super::{Key, Keyed, Row};
use crate::node::{self, Node, Table, Value, suggest};
use crate::problem::{Found, Problem};
use crate::surroundings::Surroundings;

/// What a struct with keys can do whatever it is.
pub(crate) trait Parameters {
    /// Reads its keys from a table that may have others. `place` is pointed at where no key is.
    fn read(&mut self, table: &Table, place: &Range<usize>, around: Surroundings<'_>) -> Result<(), Problem>;

    /// Adds the keys that differ from their defaults to a table.
    fn write(&self, table: &mut Table);

    /// All keys with their values, for people: `target 5ms, interval 100ms, ecn on`. What is off unless it is asked for
    /// is named only where it is on.
    fn words(&self) -> String;
}

impl<T: Keyed> Parameters for T {
    fn read(&mut self, table: &Table, place: &Range<usize>, around: Surroundings<'_>) -> Result<(), Problem> {
        read_all(self, table, place, around).into_iter().next().map_or(Ok(()), Err)
    }

    fn write(&self, table: &mut Table) {
        differing(self).into_iter().for_each(|(name, value)| table.put(name, value));
    }

    fn words(&self) -> String {
        let plain = T::default();
        let of = |row: &Row<T>| match ((row.get)(self)?, (row.get)(&plain)) {
            (Value::Boolean(false), Some(Value::Boolean(false))) => None,
            (Value::Boolean(on), _) => Some(format!("{} {}", row.name, if on { "on" } else { "off" })),
            (Value::String(text), _) => Some(format!("{} {text}", row.name)),
            (value, _) => Some(format!("{} {}", row.name, Node::new(value).toml())),
        };
        T::ROWS.iter().filter_map(of).collect::<Vec<_>>().join(", ")
    }
}

/// Reads the keys of a value from a table that may have others; gives all that is wrong.
pub(crate) fn read_all<T: Keyed>(
    value: &mut T,
    table: &Table,
    place: &Range<usize>,
    around: Surroundings<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for row in T::ROWS.iter().filter(|row| row.set.is_some()) {
        problems.extend(match find(row, table) {
            Ok(Some((name, node))) => row.set(value, node, around).map_err(|p| p.inside(name)).err(),
            Ok(None) if row.is_required => Some(row.missing().at(place)),
            Ok(None) => None,
            Err(problem) => Some(problem),
        });
    }
    if problems.is_empty() {
        problems.extend(value.check(table, place).err());
    }
    problems
}

/// The value of a key in a table, and the name by which it stands there.
fn find<'a>(key: &dyn Key, table: &'a Table) -> Result<Option<(&'static str, &'a Node)>, Problem> {
    let names = std::iter::once(key.name()).chain(key.aliases().iter().copied());
    let mut found = names.filter_map(|name| Some((name, table.get(name)?)));
    match (found.next(), found.next()) {
        (Some((one, node)), Some((other, second))) => {
            Err(Problem::new(format!("both `{one}` and `{other}`, which mean the same"))
                .at(&second.span)
                .also(&node.span, "here")
                .help("keep one of the two"))
        }
        (one, _) => Ok(one),
    }
}

/// The keys of a struct.
pub(crate) fn keys<T: Keyed>() -> Vec<&'static dyn Key> {
    T::ROWS.iter().map(|row| row as &dyn Key).collect()
}

/// The keys of a value that differ from their defaults, and those that must be there.
pub(crate) fn differing<T: Keyed>(of: &T) -> Vec<(&'static str, Value)> {
    let plain = T::default();
    let differs = |row: &Row<T>| {
        let value = (row.get)(of)?;
        let is_usual = !row.is_required && Some(&value) == (row.get)(&plain).as_ref();
        (!is_usual).then_some((row.name, value))
    };
    T::ROWS.iter().filter_map(differs).collect()
}

/// The same as a table.
pub(crate) fn written<T: Keyed>(of: &T) -> Table {
    let mut table = Table::default();
    Parameters::write(of, &mut table);
    table
}

/// The row of this name.
pub(crate) fn named<T: Keyed>(name: &str) -> Option<&'static Row<T>> {
    T::ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name))
}

/// The names of the keys of a struct, with what else they are called at the end.
pub(crate) fn names<T: Keyed>() -> Vec<&'static str> {
    let others = T::ROWS.iter().flat_map(|row| row.aliases).copied();
    T::ROWS.iter().map(|row| row.name).chain(others).collect()
}

/// A value from its keys in a table that may have others; `node` is the table.
pub(crate) fn read<T: Keyed>(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<T, Problem> {
    let mut value = T::default();
    Parameters::read(&mut value, table, &node.span, around)?;
    Ok(value)
}

/// The same from a table that has no others.
pub(crate) fn read_table<T: Keyed>(
    node: &Node,
    table: &Table,
    around: Surroundings<'_>,
) -> Result<T, Problem> {
    only(table, &keys::<T>())?;
    read(node, table, around)
}

/// Reads `[SECTION.NAME]`, whose table may be empty, into a value that has its name already.
pub(crate) fn read_named<T: Keyed>(
    mut value: T,
    key: &node::Key,
    node: &Node,
    around: Surroundings<'_>,
) -> Result<T, Problem> {
    let table = node.table("a table, which may be empty")?;
    only(table, &keys::<T>())?;
    Parameters::read(&mut value, table, &key.span, around)?;
    Ok(value)
}

/// All keys of a value that have one.
pub(crate) fn whole<T: Keyed>(value: &T) -> Table {
    let mut table = Table::default();
    for row in T::ROWS {
        if let Some(value) = (row.get)(value) {
            table.put(row.name, value);
        }
    }
    table
}

/// That a table has no keys but these.
pub(crate) fn only(table: &Table, known: &[&'static dyn Key]) -> Result<(), Problem> {
    let names: Vec<&str> = known.iter().map(|key| key.name()).collect();
    match unknown(table, known) {
        Some(key) => {
            let problem = Problem::new(format!("unknown key {}", Found(&key.name)));
            Err(suggest(problem, &key.name, &names).at(&key.span))
        }
        None => Ok(()),
    }
}

/// The same for a table whose `type` says which keys it has.
pub(crate) fn only_tagged(table: &Table, known: &[&'static dyn Key]) -> Result<(), Problem> {
    let mut rest = table.clone();
    rest.remove("type");
    match unknown(&rest, known) {
        Some(key) => {
            let names: Vec<&str> =
                std::iter::once("type").chain(known.iter().map(|key| key.name())).collect();
            let problem = Problem::new(format!("unknown key {}", Found(&key.name)));
            Err(suggest(problem, &key.name, &names).at(&key.span))
        }
        None => Ok(()),
    }
}

/// The first key of a table that is none of these.
pub(crate) fn unknown<'a>(table: &'a Table, known: &[&'static dyn Key]) -> Option<&'a node::Key> {
    let is_known = |name: &str| known.iter().any(|key| key.name() == name || key.aliases().contains(&name));
    table.iter().map(|(key, _)| key).find(|key| !is_known(&key.name))
}
