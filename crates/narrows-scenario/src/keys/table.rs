//! Parses and writes tables of a file by their rows, and finds unknown keys.

use std::ops::Range;

use super::kind::Compound;
use super::{Key, Keyed, Kind, Row};
use crate::node::{self, Node, Table, Value, suggest};
use crate::problem::{Found, Problem, one_of};
use crate::surroundings::Surroundings;

/// What every struct with keys can do.
pub(crate) trait Parameters {
    /// Reads its keys from a table that may have others. Errors without a key point at `place`.
    fn read(&mut self, table: &Table, place: &Range<usize>, around: Surroundings<'_>) -> Result<(), Problem>;

    /// Adds the keys that differ from their defaults to a table.
    fn write(&self, table: &mut Table);

    /// All keys with their values, for display: `target 5ms, interval 100ms, ecn on`. A switch that is off
    /// by default appears only when on.
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
        rows::<T>().filter_map(of).collect::<Vec<_>>().join(", ")
    }
}

/// Reads the keys of a value from a table that may have others; returns all problems.
pub(crate) fn read_all<T: Keyed>(
    value: &mut T,
    table: &Table,
    place: &Range<usize>,
    around: Surroundings<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !T::CHOICES.is_empty() {
        problems.extend(chosen(table, place, &choices::<T>(), &T::CHOOSING).err());
    }
    for row in rows::<T>().filter(|row| row.set.is_some()) {
        problems.extend(match find(row, table) {
            Ok(Some((name, node))) => row.set(value, node, around).map_err(|p| p.inside(name)).err(),
            Ok(None) if row.is_required => Some(row.missing().at(place)),
            Ok(None) => None,
            Err(problem) => Some(problem),
        });
    }
    if problems.is_empty() {
        problems.extend(value.finish(table, place, around).err());
    }
    problems
}

/// The value of a key in a table, and the name that the table uses for it.
fn find<'a>(key: &dyn Key, table: &'a Table) -> Result<Option<(&'static str, &'a Node)>, Problem> {
    let names = std::iter::once(key.name()).chain(key.aliases().iter().copied());
    let mut found = names.filter_map(|name| Some((name, table.get(name)?)));
    match (found.next(), found.next()) {
        (Some((one, node)), Some((other, second))) => {
            Err(Problem::new(format!("`{one}` and `{other}` are the same key"))
                .at(&second.span)
                .also(&node.span, "here")
                .help("keep one of the two"))
        }
        (one, _) => Ok(one),
    }
}

/// Error texts for keys of which a table has exactly one.
pub(crate) struct Choosing {
    /// Text for none of them.
    pub(crate) none: &'static str,
    /// Text for several of them.
    pub(crate) several: &'static str,
    /// Help text for both.
    pub(crate) help: &'static str,
}

/// The key among these that a table has, and its value. The error for none points at `place`.
pub(crate) fn chosen<'a>(
    table: &'a Table,
    place: &Range<usize>,
    names: &[&str],
    saying: &Choosing,
) -> Result<(&'a node::Key, &'a Node), Problem> {
    let found: Vec<_> = table.iter().filter(|(key, _)| names.contains(&key.name.as_str())).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Problem::new(saying.none).at(place).help(format!("write one of {}", one_of(names)))),
        [(first, _), (second, _), ..] => Err(Problem::new(saying.several)
            .at(&second.span)
            .also(&first.span, "the first")
            .help(saying.help)),
    }
}

fn rows<T: Keyed>() -> impl Iterator<Item = &'static Row<T>> {
    T::CHOICES.iter().chain(T::ROWS)
}

/// The names of the keys of which a table has exactly one.
pub(crate) fn choices<T: Keyed>() -> Vec<&'static str> {
    T::CHOICES.iter().map(|row| row.name).collect()
}

/// The keys of a struct.
pub(crate) fn keys<T: Keyed>() -> Vec<&'static dyn Key> {
    rows::<T>().map(|row| row as &dyn Key).collect()
}

/// The keys of a value that differ from their defaults, and the required keys.
pub(crate) fn differing<T: Keyed>(of: &T) -> Vec<(&'static str, Value)> {
    let plain = T::default();
    let differs = |row: &Row<T>| {
        let value = (row.get)(of)?;
        let may_be_usual = !row.is_required && !row.is_choice;
        let is_usual = may_be_usual && Some(&value) == (row.get)(&plain).as_ref();
        (!is_usual).then_some((row.name, value))
    };
    rows::<T>().filter_map(differs).collect()
}

/// Same, as a table.
pub(crate) fn written<T: Keyed>(of: &T) -> Table {
    let mut table = Table::default();
    Parameters::write(of, &mut table);
    table
}

/// All keys that have a value.
pub(crate) fn whole<T: Keyed>(value: &T) -> Table {
    let mut table = Table::default();
    for row in rows::<T>() {
        if let Some(value) = (row.get)(value) {
            table.put(row.name, value);
        }
    }
    table
}

/// The row with this name.
pub(crate) fn named<T: Keyed>(name: &str) -> Option<&'static Row<T>> {
    rows::<T>().find(|row| row.is_called(name))
}

/// The names of the keys of a struct, other names last.
pub(crate) fn names<T: Keyed>() -> Vec<&'static str> {
    all_names(&keys::<T>())
}

/// Reads a value from its keys in a table that may have others; `node` is the table.
pub(crate) fn read<T: Keyed>(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<T, Problem> {
    let mut value = T::default();
    Parameters::read(&mut value, table, &node.span, around)?;
    Ok(value)
}

/// A value parsed from a table of the file, with the keys of one struct or of several.
pub(crate) trait Tabled: Sized + 'static {
    /// All its keys.
    fn keys() -> Vec<&'static dyn Key>;
    /// Reads it from its keys in a table; `node` is the table.
    fn from_table(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<Self, Problem>;
    /// The keys that differ from their defaults, and the required keys.
    fn to_table(&self) -> Table;
}

impl<T: Keyed> Tabled for T {
    fn keys() -> Vec<&'static dyn Key> {
        keys::<T>()
    }

    fn from_table(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<Self, Problem> {
        read(node, table, around)
    }

    fn to_table(&self) -> Table {
        written(self)
    }
}

/// Reads a value from a table that may have no other keys.
pub(crate) fn read_table<T: Tabled>(
    node: &Node,
    table: &Table,
    around: Surroundings<'_>,
) -> Result<T, Problem> {
    only(table, &T::keys())?;
    T::from_table(node, table, around)
}

/// Reads `[SECTION.NAME]`, whose table may be empty, into a value whose name is already set.
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

/// Returns a value of this kind with the part at `path` set to `part`. Expands shorthand on the way to a
/// table, and creates missing tables.
pub(crate) fn with_part(kind: Option<&dyn Kind>, value: Option<Value>, path: &[&str], part: &Node) -> Value {
    let Some((key, rest)) = path.split_first() else { return part.value.clone() };
    let compound = kind.and_then(Kind::compound);
    let table = value.and_then(|value| match compound {
        Some(compound) => compound.table(value),
        None => value.into_table(),
    });
    let mut table = table.unwrap_or_default();
    let known =
        compound.map(Compound::keys).unwrap_or_default().into_iter().find(|known| known.is_called(key));
    let name = known.map_or(*key, |known| known.name());
    let node = match rest {
        [] => part.clone(),
        _ => {
            let value = table.get(name).map(|node| node.value.clone());
            Node::new(with_part(known.map(Key::kind), value, rest, part))
        }
    };
    table.set(name, node);
    Value::Table(table)
}

/// Checks that a table has no keys but these.
pub(crate) fn only(table: &Table, known: &[&'static dyn Key]) -> Result<(), Problem> {
    match unknown(table, known) {
        Some(key) => {
            let problem = Problem::new(format!("unknown key {}", Found(&key.name)));
            Err(suggest(problem, &key.name, &all_names(known)).at(&key.span))
        }
        None => Ok(()),
    }
}

/// Same for a table whose `type` determines its keys.
pub(crate) fn only_tagged(table: &Table, known: &[&'static dyn Key]) -> Result<(), Problem> {
    let mut rest = table.clone();
    rest.remove("type");
    match unknown(&rest, known) {
        Some(key) => {
            let names = [vec!["type"], all_names(known)].concat();
            let problem = Problem::new(format!("unknown key {}", Found(&key.name)));
            Err(suggest(problem, &key.name, &names).at(&key.span))
        }
        None => Ok(()),
    }
}

/// The names of keys, other names last.
pub(crate) fn all_names(keys: &[&'static dyn Key]) -> Vec<&'static str> {
    let others = keys.iter().flat_map(|key| key.aliases()).copied();
    keys.iter().map(|key| key.name()).chain(others).collect()
}

/// The first unknown key of a table.
pub(crate) fn unknown<'a>(table: &'a Table, known: &[&'static dyn Key]) -> Option<&'a node::Key> {
    table.iter().map(|(key, _)| key).find(|key| !known.iter().any(|known| known.is_called(&key.name)))
}
