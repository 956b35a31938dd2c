//! Keys as data: one [`Row`] holds everything that is known about a key of a scenario file.
//!
//! The rows of a table define how it is parsed, with errors that name what is allowed; how it is written,
//! as the keys that differ from their defaults; which parts `set` can change; its JSON Schema; what `check`
//! prints; and the tables of `docs/scenario.md`. A default is the field's value in the struct's `Default`:
//! no row repeats the default, nor its unit or range.
//!
//! Code outside the rows handles checks across keys ([`Keyed::check`]) and the conversion of values to the
//! engine's.

pub(crate) mod compound;
pub(crate) mod kind;
pub(crate) mod quantity;
pub(crate) mod schema;
mod table;

pub(crate) use kind::{Form, Kind};
pub(crate) use table::{
    Choosing, Parameters, Tabled, all_names, choices, chosen, differing, keys, named, names, only,
    only_tagged, read, read_all, read_named, read_table, unknown, whole, with_part, written,
};

use std::ops::Range;

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;

/// A struct that is parsed from a table of the file, key by key.
pub(crate) trait Keyed: Default + 'static {
    /// Its keys, in the order in which they are parsed, written and documented.
    const ROWS: &'static [Row<Self>];
    /// Keys of which a table has exactly one. They precede the others.
    const CHOICES: &'static [Row<Self>] = &[];
    /// Error texts for a table that has none of them, or several.
    const CHOOSING: Choosing =
        Choosing { none: "a key is missing", several: "too many keys", help: "keep one" };

    /// Derives what depends on several keys, after all keys were read from `table`, and checks constraints
    /// across keys. Errors without a key point at `place`.
    fn finish(
        &mut self,
        table: &Table,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        let _ = around;
        self.check(table, place)
    }

    /// Checks constraints across keys, after all keys were read from `table`. Errors without a key point at
    /// `place`.
    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let (_, _) = (table, place);
        Ok(())
    }
}

/// Returns a value as written in a file; `None` if unset.
type Get<T> = fn(&T) -> Option<Value>;
/// Sets a value from a node of a file.
type Set<T> = fn(&mut T, &Node, Surroundings<'_>) -> Result<(), Problem>;

/// One key of a table that is parsed into a `T`.
pub(crate) struct Row<T: 'static> {
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
    kind: &'static dyn Kind,
    get: Get<T>,
    /// `None` if the reader of the table parses this key itself.
    set: Option<Set<T>>,
    is_required: bool,
    is_choice: bool,
    /// The help text of the error for a missing key.
    help: Option<&'static str>,
    default: Option<&'static str>,
    flag: Flag,
    is_explained: bool,
}

/// How the help shows the flag of a key: a placeholder for its value, and examples.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) value: &'static str,
    pub(crate) examples: &'static str,
}

impl<T> Row<T> {
    /// A key. `doc` says in one sentence what it does. [`row!`](crate::keys::row) makes one from a field.
    pub(crate) const fn new(
        name: &'static str,
        kind: &'static dyn Kind,
        doc: &'static str,
        get: Get<T>,
        set: Set<T>,
    ) -> Self {
        Self { set: Some(set), ..Self::apart(name, kind, doc, get) }
    }

    /// A key that the reader of the table parses itself, because its value needs more context.
    pub(crate) const fn apart(
        name: &'static str,
        kind: &'static dyn Kind,
        doc: &'static str,
        get: Get<T>,
    ) -> Self {
        let flag = Flag { value: "VALUE", examples: "" };
        Self {
            name,
            aliases: &[],
            doc,
            kind,
            get,
            set: None,
            is_required: false,
            is_choice: false,
            help: None,
            default: None,
            flag,
            is_explained: false,
        }
    }

    /// Adds other names for this key.
    pub(crate) const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Makes the key required.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Makes this key one of several of which a table has exactly one. It has no default.
    pub(crate) const fn choice(self) -> Self {
        Self { is_choice: true, ..self }
    }

    /// Makes the key required, with a help text for the error when it is missing.
    pub(crate) const fn required_with(self, help: &'static str) -> Self {
        Self { is_required: true, help: Some(help), ..self }
    }

    /// Sets how the help shows its flag.
    pub(crate) const fn flag(self, value: &'static str, examples: &'static str) -> Self {
        Self { flag: Flag { value, examples }, ..self }
    }

    /// Marks the key as one whose value `check` explains in a sentence of its own.
    pub(crate) const fn explained(self) -> Self {
        Self { is_explained: true, ..self }
    }

    /// Whether `check` explains it in a sentence of its own.
    pub(crate) const fn is_explained(&self) -> bool {
        self.is_explained
    }

    /// Returns its value as written in a file; `None` if unset.
    pub(crate) fn get(&self, of: &T) -> Option<Value> {
        (self.get)(of)
    }

    /// The error for a table that lacks it.
    pub(crate) fn missing(&self) -> Problem {
        let problem = Problem::new(format!("`{}` is missing", self.name));
        match self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// Sets it in a value. The error for a key missing in its table shows a complete example.
    pub(crate) fn set(&self, of: &mut T, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let Some(set) = self.set else { return Ok(()) };
        set(of, node, around).map_err(|problem| match self.kind.compound() {
            Some(compound) if problem.is_about_a_missing_key() => {
                problem.help(format!("write it like {} = {}", self.name, compound.example()))
            }
            _ => problem,
        })
    }

    /// Sets the text for its default, for defaults that no value expresses.
    pub(crate) const fn default(self, words: &'static str) -> Self {
        Self { default: Some(words), ..self }
    }
}

/// What is known of a key, whatever the type of its table.
pub(crate) trait Key: Sync {
    /// The name.
    fn name(&self) -> &'static str;
    /// Other names for it.
    fn aliases(&self) -> &'static [&'static str];
    /// What it does, in one sentence.
    fn doc(&self) -> &'static str;
    /// The kind of its value.
    fn kind(&self) -> &'static dyn Kind;
    /// Whether a table must have it.
    fn is_required(&self) -> bool;
    /// The default, as written in a file.
    fn default(&self) -> Option<Value>;
    /// The default in words, if no value expresses it.
    fn default_words(&self) -> Option<&'static str>;
    /// How the help shows its flag.
    fn flag(&self) -> Flag;

    /// Whether this is its name or one of its other names.
    fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.aliases().contains(&name)
    }
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
        if self.is_required || self.is_choice { None } else { (self.get)(&T::default()) }
    }

    fn default_words(&self) -> Option<&'static str> {
        self.default
    }

    fn flag(&self) -> Flag {
        self.flag
    }
}

/// Makes a row for a field: `row!("mean-packet", mean_packet, PACKET_SIZE, "The mean packet …")`.
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

/// Declares an enum of which a table has exactly one variant, each under its own key, along with the rows
/// of these keys and a trait that all variants share: `enum Shape: dyn Law, the shape of Distribution {
/// Normal(Normal) = "normal" as Normal::FORM, "…"; … }`.
macro_rules! alternatives {
    (
        $(#[$doc:meta])*
        enum $name:ident: dyn $common:ident, the $field:ident of $owner:ident {
            $($variant:ident($of:ty) = $key:literal as $form:expr, $words:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $words] $variant($of),)+
        }

        impl $name {
            /// The rows of the keys.
            pub(super) const ROWS: &'static [$crate::keys::Row<$owner>] = &[$(
                $crate::keys::Row::new(
                    $key,
                    &$form,
                    $words,
                    |of: &$owner| match &of.$field {
                        Self::$variant(value) => $crate::keys::Form::write(&$form, value),
                        _ => None,
                    },
                    |of: &mut $owner, node, around| {
                        of.$field = Self::$variant($crate::keys::Form::read(&$form, node, around)?);
                        Ok(())
                    },
                )
                .choice(),
            )+];

            /// The shared trait of all variants.
            fn common(&self) -> &dyn $common {
                match self {
                    $(Self::$variant(value) => value,)+
                }
            }
        }
    };
}
pub(crate) use alternatives;

#[cfg(test)]
mod tests;
