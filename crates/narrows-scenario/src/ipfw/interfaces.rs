//! The interfaces that rules name.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::rules::{Field, Test};

use super::address;
use super::directions::Directions;
use super::lexer::{Line, Word};
use super::options::{Made, fits};
use super::reader::Reader;
use super::source;
use crate::dialect::shell::Start;
use crate::problem::{Found, Problem, one_of};

impl Reader<'_> {
    /// The meaning of an interface for the rules of a link: sent packets leave by it, received packets
    /// arrive by it.
    pub(super) fn interface(&mut self, word: &Word) -> Result<Made, Problem> {
        let name = self.words.expect("the name of an interface")?;
        let pattern = name.text.as_str();
        if pattern == "any" {
            return Ok(Made::One(Test::Any));
        }
        if is_loopback(pattern) {
            self.remarks
                .push(format!("{}: what a host sends to itself does not cross the link", Found(pattern)));
            return Ok(Made::One(Test::Never));
        }
        if pattern.parse::<IpAddr>().is_ok() {
            return Err(name
                .problem(format!("{} names an interface by its address", Found(pattern)))
                .help("narrows does not support this: write the interface's name, `any`, or a pattern such as `em*`"));
        }
        let says = match word.text.as_str() {
            "via" => self.directions.of_via(),
            says => says,
        };
        if let Some(table) = address::named_table(name)? {
            let field = match says {
                "recv" => Field::Received,
                "xmit" => Field::Sent,
                _ => Field::Via,
            };
            return Ok(Made::One(Test::Lookup { field, mask: u128::MAX, table }));
        }
        let known = self.context.interfaces;
        if known.iter().any(|known| fits(pattern, known)) {
            return Ok(Made::One(match says {
                "recv" => Test::In,
                "xmit" => Test::Out,
                _ => Test::Any,
            }));
        }
        // What the other end sends arrives here.
        if self.context.outside.iter().any(|known| fits(pattern, known)) {
            return Ok(Made::One(match says {
                "recv" => Test::Out,
                "xmit" => Test::In,
                _ => Test::Any,
            }));
        }
        let is_elsewhere = self.context.elsewhere.iter().any(|known| fits(pattern, known));
        if pattern != "none" && !is_elsewhere {
            let names =
                if known.is_empty() { "none is known".into() } else { format!("known: {}", one_of(known)) };
            self.remarks.push(format!("no interface {} ({names}): it matches no packet", Found(pattern)));
        }
        Ok(Made::One(Test::Never))
    }
}

/// Whether it is the interface by which a host talks to itself, or a pattern for such.
fn is_loopback(name: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || "*?[-]".contains(c);
    name.strip_prefix("lo").is_some_and(|number| number.chars().all(is_number))
}

/// The interfaces that the rules of a script name, other than those of a host to itself.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Names and patterns, each with its place and line number.
    pub(crate) all: Vec<(String, Range<usize>, usize)>,
    /// Whether a rule is for packets that a router sends on.
    pub(crate) is_router: bool,
    /// Those whose addresses translators use.
    pub(crate) translated: Vec<(String, usize)>,
}

impl Named {
    pub(crate) fn of(text: &str, start: Start<'_>) -> Self {
        let is_name = |text: &str| {
            !matches!(text, "any" | "none")
                && !text.starts_with("table(")
                && text.parse::<IpAddr>().is_err()
                && !is_loopback(text)
        };
        let mut named = Self::default();
        let lines: Vec<_> = source::commands(text, start).into_iter().flatten().collect();
        let tables = tables(&lines);
        for line in lines {
            for name in entries(&line.words, &tables) {
                named.all.push((name.text.clone(), name.span.clone(), line.number));
            }
            if let Some(name) = of_translator(&line.words).filter(|name| is_name(&name.text)) {
                named.all.push((name.text.clone(), name.span.clone(), line.number));
                named.translated.push((name.text.clone(), line.number));
            }
            if !line.words.iter().take(4).any(|word| word.text == "add") {
                continue;
            }
            named.is_router |= Directions::of(&line.words).forwards();
            for pair in line.words.windows(2) {
                if let [word, name] = pair
                    && matches!(word.text.as_str(), "recv" | "xmit" | "via")
                    && is_name(&name.text)
                {
                    named.all.push((name.text.clone(), name.span.clone(), line.number));
                }
            }
        }
        named
    }
}

impl Named {
    /// The two interfaces that rules name besides known ones, if there are two, and the line of the first.
    pub(crate) fn two(&self, is_known: impl Fn(&str) -> bool) -> Option<(&String, &String, usize)> {
        let mut unknown: Vec<(&String, usize)> = Vec::new();
        for (name, _, line) in self.all.iter().filter(|(name, ..)| !is_known(name)) {
            if !unknown.iter().any(|(other, _)| *other == name) {
                unknown.push((name, *line));
            }
        }
        match unknown[..] {
            [(one, line), (other, _)] if !one.contains(['*', '?']) && !other.contains(['*', '?']) => {
                Some((one, other, line))
            }
            _ => None,
        }
    }
}

/// The interface of `nat N config if NAME`.
fn of_translator(words: &[Word]) -> Option<&Word> {
    let at = words.iter().take(4).position(|word| word.text == "nat")?;
    let rest = &words[at + 1..];
    rest.iter().take(2).any(|word| word.text == "config").then_some(())?;
    rest.windows(2).find(|pair| pair[0].text == "if").map(|pair| &pair[1])
}

/// The tables that these commands create with the type `iface`.
pub(super) fn tables<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<String> {
    let created = |line: &Line| match command_for_table(&line.words) {
        Some((name, "create", options)) => {
            let mut pairs = options.windows(2);
            let is_type = pairs.any(|pair| pair[0].text == "type" && pair[1].text == "iface");
            address::table_name(name).ok().filter(|_| is_type)
        }
        _ => None,
    };
    lines.into_iter().filter_map(created).collect()
}

/// The interfaces that a command adds to one of these tables.
fn entries<'a>(words: &'a [Word], tables: &[String]) -> impl Iterator<Item = &'a Word> {
    let added = match command_for_table(words) {
        Some((name, "add", entries)) => {
            address::table_name(name).ok().filter(|name| tables.contains(name)).map(|_| entries)
        }
        _ => None,
    };
    let is_value = |word: &Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    added.into_iter().flatten().filter(move |word| !is_value(word))
}

/// The table, the command for it, and what follows.
pub(super) fn command_for_table(words: &[Word]) -> Option<(&Word, &str, &[Word])> {
    let at = words.iter().take(4).position(|word| word.text == "table")?;
    match &words[at + 1..] {
        [name, atomic, verb, rest @ ..] if atomic.text == "atomic" => Some((name, &verb.text, rest)),
        [name, verb, rest @ ..] => Some((name, &verb.text, rest)),
        _ => None,
    }
}
