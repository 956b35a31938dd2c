//! Patterns, made.

use std::ops::Range;

use narrows_core::{Probability, Seed, Stream};

use crate::node::{Node, Value};
use crate::pattern::{About, Content, LONGEST, Pattern, Per};
use crate::problem::{Problem, ScenarioError};
use crate::source::{MOST_POINTS, Source};
use crate::units::{self, Share};

/// Places of a random pattern: each is drawn for.
const MOST_DRAWN: u64 = 1_000_000_000;

/// Why a pattern cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CannotMake {
    /// What it is about has no such places.
    #[error("a pattern of {about} is not per {per}")]
    Places {
        /// What it is about.
        about: About,
        /// What its places would be.
        per: Per,
    },
    /// It has no places, or too many.
    #[error("a length of {0} places: from 1 to {LONGEST}, or {MOST_DRAWN} where places are drawn")]
    Length(u64),
    /// Only hits are drawn.
    #[error("only losses and bit errors are drawn at random: give a pattern of {0} as runs or a list")]
    NoHits(About),
    /// The rate is one, or the mean burst shorter than it can be.
    #[error(
        "bursts of mean length {burst} cannot cover {rate} of all places: the mean must be at least {least:.3}"
    )]
    Burst {
        /// The share of places.
        rate: Share,
        /// The mean burst that was asked for.
        burst: f64,
        /// The shortest mean burst at this rate.
        least: f64,
    },
    /// A share that is no share, and the like.
    #[error(transparent)]
    Text(#[from] ScenarioError),
}

/// Places hit at random.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// The share of places that are hit, in the long run.
    pub rate: Share,
    /// How many are hit in a row in the mean, geometrically distributed; nothing for independent ones, which come to
    /// 1/(1 − rate).
    pub burst: Option<f64>,
    /// The seed of the draws.
    pub seed: u64,
}

impl Pattern {
    /// Places hit at random: a chain of two states, of which the one is hit. With mean burst b and share r it is left with
    /// probability 1/b and entered with r/(b·(1 − r)), and begins in its long-run law.
    ///
    /// # Errors
    /// When there can be no such pattern.
    pub fn random(about: About, per: Per, length: u64, random: &Random) -> Result<Self, CannotMake> {
        check(about, per, length)?;
        if length > MOST_DRAWN {
            return Err(CannotMake::Length(length));
        }
        let rate = random.rate.as_f64();
        let least = (rate / (1.0 - rate)).max(1.0);
        let burst = random.burst.unwrap_or(1.0 / (1.0 - rate));
        let probability =
            |of: f64| Probability::from_ratio((of.min(1.0) * (1u64 << 53) as f64) as u64, 1 << 53);
        let fits = burst >= least && burst.is_finite();
        let enter = probability(rate / (burst * (1.0 - rate))).filter(|_| fits);
        let (Some(enter), Some(leave)) = (enter, probability(1.0 / burst)) else {
            return Err(CannotMake::Burst { rate: random.rate, burst, least });
        };
        let stay_out = |bits| !enter.decides(bits);
        let mut draw = Stream::new(Seed(random.seed), "pattern", about.name()).nth(0);
        let mut is_hit = draw.chance(random.rate.probability());
        let mut hits: Vec<Range<u64>> = Vec::new();
        for place in 0..length {
            if place > 0 {
                // A draw of its own for each block of 2²⁰ places: a draw's words are numbered in 23 bits.
                if place.is_multiple_of(1 << 20) {
                    draw = Stream::new(Seed(random.seed), "pattern", about.name()).nth(place >> 20);
                }
                let bits = draw.bits();
                is_hit = if is_hit { !leave.decides(bits) } else { !stay_out(bits) };
            }
            match hits.last_mut().filter(|range| range.end == place) {
                _ if !is_hit => {}
                Some(range) => range.end += 1,
                None => hits.push(place..place + 1),
            }
        }
        Self::of_hits(about, per, length, hits)
    }

    /// Of places, as they stand in a file: `11-15, 400`, or `1 10ms, 51 30ms`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn at(about: About, per: Per, length: u64, places: &str) -> Result<Self, CannotMake> {
        check(about, per, length)?;
        let read = |source: &Source<'_>| {
            let mut content = Content::empty(about);
            for part in source.text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                content.line(source, part, length)?;
            }
            match content.says_nothing() {
                true => Err(source.empty()),
                false => Ok(content),
            }
        };
        Ok(Self { per, length, content: Source::read("the places", places.as_bytes(), read)? })
    }

    /// Of runs, each a number of places and what happens there: `100 pass, 5 hit`, or `50 10ms, 50 30ms`. Its length is
    /// all of them together.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn runs(about: About, per: Per, runs: &str) -> Result<Self, CannotMake> {
        check(about, per, 1)?;
        let spans = |source: &Source<'_>| {
            let mut spans = Vec::new();
            for part in source.text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
                let Some((count, value)) = part.split_once(char::is_whitespace) else {
                    return Err(source
                        .expected(part, "a number of places and what happens there, such as `100 pass`"));
                };
                spans.push((source.whole(count, LONGEST, "a number of places")?, value.trim()));
            }
            content(source, about, &spans)
        };
        let (length, content) = Source::read("the runs", runs.as_bytes(), spans)?;
        check(about, per, length)?;
        Ok(Self { per, length, content })
    }

    /// Of a list with a line for each place: `0` or `pass`, `1` or `hit`, or a delay or a rate with its unit. Lines that are
    /// empty or begin with `#` are none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn list(about: About, per: Per, name: &str, bytes: &[u8]) -> Result<Self, CannotMake> {
        check(about, per, 1)?;
        let spans = |source: &Source<'_>| {
            let lines =
                source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            let spans: Vec<(u64, &str)> = lines.map(|line| (1, line)).collect();
            content(source, about, &spans)
        };
        let (length, content) = Source::read(name, bytes, spans)?;
        check(about, per, length)?;
        Ok(Self { per, length, content })
    }

    fn of_hits(about: About, per: Per, length: u64, hits: Vec<Range<u64>>) -> Result<Self, CannotMake> {
        let content = match about {
            About::Loss => Content::Loss(hits),
            About::BitErrors => Content::BitErrors(hits),
            About::Delay | About::Rate => return Err(CannotMake::NoHits(about)),
        };
        Ok(Self { per, length, content })
    }
}

fn check(about: About, per: Per, length: u64) -> Result<(), CannotMake> {
    match about.places().contains(&per) {
        false => Err(CannotMake::Places { about, per }),
        true if (1..=LONGEST).contains(&length) => Ok(()),
        true => Err(CannotMake::Length(length)),
    }
}

/// What spans of places come to, and their length together.
fn content(source: &Source<'_>, about: About, spans: &[(u64, &str)]) -> Result<(u64, Content), Problem> {
    if spans.is_empty() {
        return Err(source.empty());
    }
    let mut place = 0u64;
    let mut hits: Vec<Range<u64>> = Vec::new();
    let mut delays = Vec::new();
    let mut rates = Vec::new();
    for (count, word) in spans {
        let node = Node { span: source.span(word), value: Value::String((*word).into()) };
        let end = place.saturating_add(*count);
        if end > LONGEST || hits.len().max(delays.len()).max(rates.len()) > MOST_POINTS {
            let problem = Problem::new("the pattern is too long").at(&source.span(word));
            return Err(problem.help(format!("it has {LONGEST} places and {MOST_POINTS} changes at most")));
        }
        match about {
            About::Loss | About::BitErrors => {
                let is_hit = match *word {
                    "0" | "pass" => false,
                    "1" | "hit" | "lose" | "loss" => true,
                    _ => return Err(source.expected(word, "`pass` or `hit`")),
                };
                match hits.last_mut().filter(|range| range.end == place) {
                    _ if !is_hit || end == place => {}
                    Some(range) => range.end = end,
                    None => hits.push(place..end),
                }
            }
            About::Delay => push(&mut delays, place, end, units::time(&node)?),
            About::Rate => push(&mut rates, place, end, units::rate(&node)?),
        }
        place = end;
    }
    Ok((
        place,
        match about {
            About::Loss => Content::Loss(hits),
            About::BitErrors => Content::BitErrors(hits),
            About::Delay => Content::Delay(delays),
            About::Rate => Content::Rate(rates),
        },
    ))
}

/// Only a value that is another than before is a change.
fn push<T: PartialEq>(changes: &mut Vec<(u64, T)>, place: u64, end: u64, value: T) {
    if end > place && changes.last().is_none_or(|last| last.1 != value) {
        changes.push((place, value));
    }
}
