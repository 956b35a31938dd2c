//! Keys as data: all that there is to know about a key of a scenario file stands in one [`Row`].
//!
//! The rows of a table say how it is read, with errors that name what is allowed; how it is written, as what differs from
//! the defaults; which parts `set` can change; what the JSON Schema says of it; what `check` prints; and the tables of
//! `docs/scenario.md`. A default is that of the struct's `Default`: no row repeats it, nor its unit or range.
//!
//! By hand stay checks across keys ([`Keyed::check`]), and what values become in the engine.

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

/// A struct that a table of the file becomes, key by key.
pub(crate) trait Keyed: Default + 'static {
    /// Its keys, in the order in which they are read, written and described.
    const ROWS: &'static [Row<Self>];
    /// Keys of which a table has exactly one; they come before the others.
    const CHOICES: &'static [Row<Self>] = &[];
    /// What errors say where there is none of them, or several.
    const CHOOSING: Choosing =
        Choosing { none: "a key is missing", several: "too many keys", help: "keep one" };

    /// Makes what follows from several keys, after all of them were read from `table`, and says what is wrong across
    /// keys; `place` is pointed at where no key is.
    fn finish(
        &mut self,
        table: &Table,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        let _ = around;
        self.check(table, place)
    }

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
    /// Nothing where whoever reads the table reads it by itself.
    set: Option<Set<T>>,
    is_required: bool,
    is_choice: bool,
    /// What to do where it is missing.
    help: Option<&'static str>,
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
        Self { set: Some(set), ..Self::apart(name, kind, doc, get) }
    }

    /// A key whose value whoever reads the table reads apart, as it needs more than a value has around it.
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

    /// The same, with other names that mean this key.
    pub(crate) const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same, where a table must have it.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// The same, as one of several of which a table has one: it has no default.
    pub(crate) const fn choice(self) -> Self {
        Self { is_choice: true, ..self }
    }

    /// The same, with what the error where it is missing says to do.
    pub(crate) const fn required_with(self, help: &'static str) -> Self {
        Self { is_required: true, help: Some(help), ..self }
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

    /// Gets it as it stands in a file; nothing where there is none.
    pub(crate) fn get(&self, of: &T) -> Option<Value> {
        (self.get)(of)
    }

    /// That a table lacks it.
    pub(crate) fn missing(&self) -> Problem {
        let problem = Problem::new(format!("`{}` is missing", self.name));
        match self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// Sets it in a value. Where a key is missing in its table, the error shows a whole one.
    pub(crate) fn set(&self, of: &mut T, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let Some(set) = self.set else { return Ok(()) };
        set(of, node, around).map_err(|problem| match self.kind.compound() {
            Some(compound) if problem.is_about_a_missing_key() => {
                problem.help(format!("write it like {} = {}", self.name, compound.example()))
            }
            _ => problem,
        })
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

    /// Whether this is its name, or one of its others.
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

/// A row for a field: `row!("mean-packet", mean_packet, PACKET_SIZE, "The mean packet …")`.
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

/// Declares an enum of which a table has one, each variant under a key of its own, the rows of these keys, and what all
/// variants are: `enum Shape: dyn Law, the shape of Distribution { Normal(Normal) = "normal" as Normal::FORM, "…"; … }`.
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

            /// What it has in common with the others.
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
