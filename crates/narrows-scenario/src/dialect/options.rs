//! Tables of options: parse words into documents, and print documents in the language.

use super::{Read, Source, Word};
use crate::node::{Key, Node, Table, Value, suggest};
use crate::problem::{Found, Problem};
use crate::units::decimal::Decimal;

/// The argument of an option, which becomes the value of a key.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// Description with its article.
    pub(crate) what: &'static str,
    /// Parses the argument; the second word is that of the option.
    pub(crate) read: fn(Word<'_>, Word<'_>) -> Result<Read<Value>, Problem>,
    /// The argument as the language prints it; `None` if it cannot express the value.
    pub(crate) show: fn(&Node) -> Option<String>,
}

/// An option of a language.
pub(crate) struct Opt {
    /// Its word, followed by synonyms.
    words: &'static [&'static str],
    /// The word in output.
    printed: &'static str,
    /// The key that it sets.
    key: &'static str,
    takes: Takes,
    zero_is_none: bool,
    /// A remark for people, added when the option is used.
    remark: &'static str,
}

enum Takes {
    Value(Unit),
    /// The word means `true`. `off` words mean `false`, one of which may be printed.
    Switch {
        off: &'static [&'static str],
        printed_off: Option<&'static str>,
    },
    /// So many whole numbers in a range, which become a list.
    Numbers {
        count: usize,
        low: i64,
        high: i64,
    },
    /// The word is the value.
    Word(&'static str),
    /// The word sets several keys, none of which it is printed for.
    Several(&'static [Effect]),
    /// Ignored.
    Nothing(Follows),
    Refused {
        title: &'static str,
        help: &'static str,
    },
}

/// What a word does to a key.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    /// Sets it to this text.
    Text(&'static str, &'static str),
    /// Sets it to this number.
    Number(&'static str, i64),
    /// Adds to the number that the words before have set.
    Add(&'static str, i64),
}

impl Effect {
    fn apply(self, word: Word<'_>, into: &mut Table) {
        let (key, value) = match self {
            Self::Text(key, value) => (key, Value::String(value.into())),
            Self::Number(key, value) => (key, number(value)),
            Self::Add(key, more) => (key, number(number_of::<i64>(into, key).unwrap_or(0) + more)),
        };
        into.insert(Key { name: key.into(), span: word.span() }, Node { span: word.span(), value });
    }
}

/// The arguments of an ignored option.
#[derive(Clone, Copy)]
pub(crate) enum Follows {
    /// None.
    Nothing,
    /// One, described with its article.
    One(&'static str),
    /// Any number of numbers.
    Numbers,
}

impl Opt {
    const fn new(words: &'static [&'static str], key: &'static str, takes: Takes) -> Self {
        Self { words, printed: words[0], key, takes, zero_is_none: false, remark: "" }
    }

    /// An option with a value. The first of its words is used in errors and output. Without a key it is
    /// parsed and ignored.
    pub(crate) const fn value(words: &'static [&'static str], key: &'static str, unit: Unit) -> Self {
        Self::new(words, key, Takes::Value(unit))
    }

    /// A word that means `true`, with words that mean `false`.
    pub(crate) const fn switch(
        words: &'static [&'static str],
        off: &'static [&'static str],
        key: &'static str,
    ) -> Self {
        Self::new(words, key, Takes::Switch { off, printed_off: None })
    }

    /// An option with `count` whole numbers from `low` to `high`, as a list.
    pub(crate) const fn numbers(
        words: &'static [&'static str],
        key: &'static str,
        count: usize,
        (low, high): (i64, i64),
    ) -> Self {
        Self::new(words, key, Takes::Numbers { count, low, high })
    }

    /// A word that is the value of a key. Its synonyms stand for the same value.
    pub(crate) const fn word(words: &'static [&'static str], key: &'static str, value: &'static str) -> Self {
        Self::new(words, key, Takes::Word(value))
    }

    /// A word that stands for the values of several keys.
    pub(crate) const fn several(words: &'static [&'static str], effects: &'static [Effect]) -> Self {
        Self::new(words, "", Takes::Several(effects))
    }

    /// An ignored option.
    pub(crate) const fn nothing(words: &'static [&'static str], follows: Follows) -> Self {
        Self::new(words, "", Takes::Nothing(follows))
    }

    /// An option that is an error; `title` follows the word.
    pub(crate) const fn refused(
        words: &'static [&'static str],
        title: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(words, "", Takes::Refused { title, help })
    }

    /// Sets a different word for output.
    pub(crate) const fn printed(self, printed: &'static str) -> Self {
        Self { printed, ..self }
    }

    /// Makes a switch print both positions.
    pub(crate) const fn both(self, printed: &'static str, printed_off: &'static str) -> Self {
        let Takes::Switch { off, .. } = self.takes else { panic!("only a switch can be on or off") };
        Self { printed, takes: Takes::Switch { off, printed_off: Some(printed_off) }, ..self }
    }

    /// Adds a remark for people.
    pub(crate) const fn remark(self, remark: &'static str) -> Self {
        Self { remark, ..self }
    }

    /// Makes zero mean that no key is set.
    pub(crate) const fn zero_is_none(self) -> Self {
        Self { zero_is_none: true, ..self }
    }

    /// The word used in errors.
    pub(crate) const fn name(&self) -> &'static str {
        self.words[0]
    }

    fn off(&self) -> &'static [&'static str] {
        match self.takes {
            Takes::Switch { off, .. } => off,
            _ => &[],
        }
    }

    fn has(&self, text: &str) -> bool {
        self.words.contains(&text) || self.off().contains(&text)
    }

    /// Parses the arguments.
    fn read<'a>(
        &self,
        word: Word<'_>,
        words: &mut impl Source<'a>,
        into: &mut Table,
        remarks: &mut Vec<String>,
    ) -> Result<(), Problem> {
        match self.takes {
            Takes::Value(unit) => {
                let Some(after) = words.next_word() else { return Err(words.without(word, unit.what)) };
                words.advance();
                let read = (unit.read)(after, word)?;
                remarks.extend(read.taken_as.map(|taken| format!("{} is {taken}", Found(after.text))));
                if self.zero_is_none && is_zero(&read.value) {
                    into.remove(self.key);
                } else if !self.key.is_empty() {
                    self.set(word, Node { span: after.span(), value: read.value }, into);
                }
            }
            Takes::Switch { off, .. } => {
                let value = Value::Boolean(!off.contains(&word.text));
                self.set(word, Node { span: word.span(), value }, into);
            }
            Takes::Numbers { count, low, high } => {
                let mut numbers = Vec::new();
                let mut span = word.span();
                while numbers.len() < count {
                    let Some(after) = words.next_word() else {
                        return Err(words.without(word, &format!("a list of {count} numbers")));
                    };
                    words.advance();
                    span = after.span();
                    let found = after.text.parse::<i64>().ok().filter(|found| (low..=high).contains(found));
                    let Some(found) = found else {
                        return Err(after
                            .expected(&format!("number {} of {count}", numbers.len() + 1))
                            .help(format!("whole numbers from {low} to {high}")));
                    };
                    numbers.push(Node::new(number(found)));
                }
                self.set(word, Node { span, value: Value::Array(numbers) }, into);
            }
            Takes::Word(value) => {
                self.set(word, Node { span: word.span(), value: Value::String(value.into()) }, into);
            }
            Takes::Several(effects) => effects.iter().for_each(|effect| effect.apply(word, into)),
            Takes::Nothing(follows) => match follows {
                Follows::Nothing => {}
                Follows::One(what) => match words.next_word() {
                    Some(_) => words.advance(),
                    None => return Err(words.without(word, what)),
                },
                Follows::Numbers => {
                    let is_number = |word: &Word<'_>| word.text.starts_with(|c: char| c.is_ascii_digit());
                    while words.next_word().as_ref().is_some_and(is_number) {
                        words.advance();
                    }
                }
            },
            Takes::Refused { title, help } => {
                return Err(word.problem(format!("{} {title}", Found(word.text))).help(help));
            }
        }
        remarks.extend((!self.remark.is_empty()).then(|| self.remark.into()));
        Ok(())
    }

    fn set(&self, word: Word<'_>, node: Node, into: &mut Table) {
        into.insert(Key { name: self.key.into(), span: word.span() }, node);
    }

    /// Its output; empty for a switch in its default position, and for a word that stands for another value.
    fn show(&self, node: &Node) -> Option<String> {
        match (&self.takes, &node.value) {
            (Takes::Value(unit), _) => Some(format!("{} {}", self.printed, (unit.show)(node)?)),
            (Takes::Word(of), Value::String(value)) => {
                Some(if value == of { self.printed.into() } else { String::new() })
            }
            (Takes::Switch { .. }, Value::Boolean(true)) => Some(self.printed.into()),
            (Takes::Switch { printed_off, .. }, _) => Some(printed_off.unwrap_or_default().into()),
            (Takes::Numbers { .. }, Value::Array(numbers)) => {
                let numbers: Vec<String> = numbers.iter().map(Node::toml).collect();
                Some(format!("{} {}", self.printed, numbers.join(" ")))
            }
            _ => None,
        }
    }
}

/// The options of an object, in groups that several objects may share.
#[derive(Clone, Copy)]
pub(crate) struct Options(pub(crate) &'static [&'static [Opt]]);

impl Options {
    fn rows(self) -> impl Iterator<Item = &'static Opt> {
        self.0.iter().copied().flatten()
    }

    /// The option with this word.
    pub(crate) fn find(self, text: &str) -> Option<&'static Opt> {
        self.rows().find(|option| option.has(text))
    }

    /// The words with an effect, for errors.
    pub(crate) fn known(self) -> Vec<&'static str> {
        let means = |option: &&Opt| !matches!(option.takes, Takes::Nothing(_) | Takes::Refused { .. });
        let words = |option: &'static Opt| option.words.iter().take(1).chain(option.off().iter().take(1));
        self.rows().filter(means).flat_map(words).copied().collect()
    }

    /// Parses the next word and its arguments, if it is an option.
    pub(crate) fn read_one<'a>(
        self,
        words: &mut impl Source<'a>,
        into: &mut Table,
        remarks: &mut Vec<String>,
    ) -> Result<bool, Problem> {
        let Some(word) = words.next_word() else { return Ok(false) };
        let Some(option) = self.find(word.text) else { return Ok(false) };
        words.advance();
        option.read(word, words, into, remarks)?;
        Ok(true)
    }

    /// Parses options up to the first other word. If an option is repeated, the last one counts.
    pub(crate) fn read_some<'a>(
        self,
        words: &mut impl Source<'a>,
        remarks: &mut Vec<String>,
    ) -> Result<Table, Problem> {
        let mut table = Table::default();
        while self.read_one(words, &mut table, remarks)? {}
        Ok(table)
    }

    /// Parses options up to the end; `of` names their object.
    pub(crate) fn read_all<'a>(self, of: &str, words: &mut impl Source<'a>) -> Result<Table, Problem> {
        self.read_all_remarking(of, words, &mut Vec::new())
    }

    /// Same, with remarks for people.
    pub(crate) fn read_all_remarking<'a>(
        self,
        of: &str,
        words: &mut impl Source<'a>,
        remarks: &mut Vec<String>,
    ) -> Result<Table, Problem> {
        let table = self.read_some(words, remarks)?;
        match words.next_word() {
            None => Ok(table),
            Some(word) => {
                let problem = word.problem(format!("{} is not an option of `{of}`", Found(word.text)));
                let known = self.known();
                Err(if known.is_empty() { problem } else { suggest(problem, word.text, &known) })
            }
        }
    }

    /// Whether an option sets this key.
    pub(crate) fn sets(self, key: &str) -> bool {
        self.rows().any(|option| option.key == key)
    }

    /// The options for a document, in the order of the rows; `None` if the language cannot express a value.
    pub(crate) fn show(self, table: &Table) -> Option<String> {
        let shown = |option: &'static Opt| table.get(option.key).map(|node| option.show(node));
        let words: Vec<String> = self.rows().filter_map(shown).collect::<Option<_>>()?;
        Some(words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// The document with its keys in the order of the rows.
    pub(crate) fn arranged(self, table: &Table) -> Table {
        let place = |key: &Key| self.rows().position(|option| option.key == key.name);
        let mut entries: Vec<_> = table.iter().map(|(key, node)| (key.clone(), node.clone())).collect();
        entries.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
        entries.into_iter().collect()
    }
}

/// Whether a number is zero in any unit.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) | Value::Integer(text) | Value::Float(text) => {
            Decimal::split(text).0.is_some_and(|number| number.times(1) == Ok(0))
        }
        _ => false,
    }
}

/// A value as in a document, without quotes.
pub(crate) fn shown_as_is(node: &Node) -> Option<String> {
    Some(match &node.value {
        Value::String(text) => text.clone(),
        _ => node.toml(),
    })
}

/// The value of a key as in a document, without quotes; empty if unset.
pub(crate) fn text_of(table: &Table, key: &str) -> String {
    table.get(key).and_then(shown_as_is).unwrap_or_default()
}

/// A whole number without a unit.
pub(crate) fn number(value: impl std::fmt::Display) -> Value {
    Value::Integer(value.to_string())
}

/// The whole number of a key, ignoring its unit.
pub(crate) fn number_of<T: std::str::FromStr>(table: &Table, key: &str) -> Option<T> {
    text_of(table, key).split(' ').next()?.parse().ok()
}
