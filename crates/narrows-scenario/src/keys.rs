//! Keys as data: all that there is to know about a key of a scenario file stands in one [`Row`].
//!
//! The rows of a table say how it is read, with errors that name what is allowed; how it is written, as what differs from
//! the defaults; which parts `set` can change; what the JSON Schema says of it; what `check` prints; and the tables of
//! `docs/scenario.md`. A default is that of the struct's `Default`: no row repeats it, nor its unit or range.
//!
//! By hand stay checks across keys ([`Keyed::check`]), and what values become in the engine.

pub(crate) mod kind;
pub(crate) mod quantity;
mod reference;
pub(crate) mod schema;
mod table;

pub(crate) use kind::{Form, Kind};
pub use reference::reference;
pub(crate) use table::{
    Parameters, differing, keys, named, names, only, only_tagged, read, read_table, unknown, whole,
};

use std::ops::Range;

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::value::Surroundings;

/// A struct that a table of the file becomes, key by key.
pub(crate) trait Keyed: Default + 'static {
    /// Its keys, in the order in which they are read, written and described.
    const ROWS: &'static [Row<Self>];

    /// What is wrong across keys, after all of them were read from `table`; `place` is pointed at where no key is.
    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let (_, _) = (table, place);
        Ok(())
    }
}

/// Gets a value as it stands in a file; nothing where there is none.
type Get<T> = fn(&T) -> Option<Value>;
/// Sets a value from what stands in a file.
type Set<T> = fn(&mut T, &Node, Surroundings<'_>) -> Result<(), Problem>;

/// One key of a table that becomes a `T`.
pub(crate) struct Row<T: 'static> {
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
    kind: &'static dyn Kind,
    get: Get<T>,
    set: Set<T>,
    is_required: bool,
    default: Option<&'static str>,
    flag: Flag,
    is_explained: bool,
}

/// How the help shows the flag of a key: what its value is called, and examples.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) value: &'static str,
    pub(crate) examples: &'static str,
}

impl<T> Row<T> {
    /// A key. `doc` says in one sentence what it does; [`row!`](crate::keys::row) makes one from a field.
    pub(crate) const fn new(
        name: &'static str,
        kind: &'static dyn Kind,
        doc: &'static str,
        get: Get<T>,
        set: Set<T>,
    ) -> Self {
        let flag = Flag { value: "VALUE", examples: "" };
        Self {
            name,
            aliases: &[],
            doc,
            kind,
            get,
            set,
            is_required: false,
            default: None,
            flag,
            is_explained: false,
        }
    }

    /// The same, with other names that mean this key.
    #[cfg(test)]
    pub(crate) const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same, where a table must have it.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// The same, with how the help shows its flag.
    pub(crate) const fn flag(self, value: &'static str, examples: &'static str) -> Self {
        Self { flag: Flag { value, examples }, ..self }
    }

    /// The same, where `check` explains its value in words of its own.
    pub(crate) const fn explained(self) -> Self {
        Self { is_explained: true, ..self }
    }

    /// Whether it does.
    pub(crate) const fn is_explained(&self) -> bool {
        self.is_explained
    }

    /// Sets it in a value.
    pub(crate) fn set(&self, of: &mut T, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        (self.set)(of, node, around)
    }

    /// The same, with what holds where the key is left out, for people: only for what no value says.
    pub(crate) const fn default(self, words: &'static str) -> Self {
        Self { default: Some(words), ..self }
    }
}

/// What is known of a key whatever it is a key of.
pub(crate) trait Key: Sync {
    /// The name.
    fn name(&self) -> &'static str;
    /// Other names that mean it.
    fn aliases(&self) -> &'static [&'static str];
    /// What it does, in one sentence.
    fn doc(&self) -> &'static str;
    /// What its value may be.
    fn kind(&self) -> &'static dyn Kind;
    /// Whether a table must have it.
    fn is_required(&self) -> bool;
    /// What holds where it is left out, as it stands in a file.
    fn default(&self) -> Option<Value>;
    /// The same in words, where it is no value.
    fn default_words(&self) -> Option<&'static str>;
    /// How the help shows its flag.
    fn flag(&self) -> Flag;
}

impl<T: Keyed> Key for Row<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn kind(&self) -> &'static dyn Kind {
        self.kind
    }

    fn is_required(&self) -> bool {
        self.is_required
    }

    fn default(&self) -> Option<Value> {
        if self.is_required { None } else { (self.get)(&T::default()) }
    }

    fn default_words(&self) -> Option<&'static str> {
        self.default
    }

    fn flag(&self) -> Flag {
        self.flag
    }
}

/// A row for a field: `row!("mean-packet", mean_packet, PacketSize, "The mean packet …")`.
macro_rules! row {
    ($name:literal, $($field:ident).+, $form:expr, $doc:literal) => {
        $crate::keys::Row::new(
            $name,
            &$form,
            $doc,
            |of: &Self| $crate::keys::Form::write(&$form, &of.$($field).+),
            |of: &mut Self, node, around| {
                of.$($field).+ = $crate::keys::Form::read(&$form, node, around)?;
                Ok(())
            },
        )
    };
}
pub(crate) use row;

#[cfg(test)]
mod tests;
