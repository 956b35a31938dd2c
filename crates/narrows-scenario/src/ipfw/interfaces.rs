//! The interfaces that rules name.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::rules::Test;

use super::directions::Directions;
use super::lexer::Word;
use super::options::{Made, fits};
use super::reader::Reader;
use super::source;
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
        if pattern.parse::<IpAddr>().is_ok() {
            return Err(name
                .problem(format!("{} names an interface by its address", Found(pattern)))
                .help("narrows does not support this: write the interface's name, `any`, or a pattern such as `em*`"));
        }
        if pattern.starts_with("table(") {
            return Err(name
                .problem("a table of interfaces exists in ipfw but not in narrows")
                .help("write the interface's name, `any`, or a pattern such as `em*`"));
        }
        let says = match word.text.as_str() {
            "via" => self.directions.of_via(),
            says => says,
        };
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
        if pattern != "none" {
            let names =
                if known.is_empty() { "none is known".into() } else { format!("known: {}", one_of(known)) };
            self.remarks.push(format!("no interface {} ({names}): it matches no packet", Found(pattern)));
        }
        Ok(Made::One(Test::Never))
    }
}

/// The interfaces that the rules of a script name.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Names and patterns, each with its place and line number.
    pub(crate) all: Vec<(String, Range<usize>, usize)>,
    /// Whether a rule is for packets that a router sends on.
    pub(crate) is_router: bool,
}

impl Named {
    pub(crate) fn of(text: &str) -> Self {
        let is_name = |text: &str| {
            !matches!(text, "any" | "none") && !text.starts_with("table(") && text.parse::<IpAddr>().is_err()
        };
        let mut named = Self::default();
        for line in source::commands(text).into_iter().flatten() {
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
