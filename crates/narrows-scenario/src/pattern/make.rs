//! Generates patterns.

use std::ops::Range;

use narrows_core::{Probability, Seed, Stream};

use crate::node::{Node, Value};
use crate::pattern::{About, Content, LONGEST, Pattern, Per};
use crate::problem::{Problem, ScenarioError};
use crate::source::{MOST_POINTS, Source};
use crate::units::{self, Share};

/// Maximum number of places of a random pattern, as each needs a draw.
const MOST_DRAWN: u64 = 1_000_000_000;

/// Why a pattern cannot be generated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CannotMake {
    /// The property has no places of this unit.
    #[error("a pattern of {about} is not per {per}")]
    Places {
        /// The property.
        about: About,
        /// The unit of places.
        per: Per,
    },
    /// There are no places, or too many.
    #[error("a length of {0} places: from 1 to {LONGEST}, or {MOST_DRAWN} where places are drawn")]
    Length(u64),
    /// Only hits can be random.
    #[error("only losses and bit errors are drawn at random: give a pattern of {0} as runs or a list")]
    NoHits(About),
    /// The rate is one, or the mean burst is shorter than possible.
    #[error(
        "bursts of mean length {burst} cannot cover {rate} of all places: the mean must be at least {least:.3}"
    )]
    Burst {
        /// The share of places.
        rate: Share,
        /// The requested mean burst length.
        burst: f64,
        /// The minimum mean burst length at this rate.
        least: f64,
    },
    /// An invalid share, or another error in a text.
    #[error(transparent)]
    Text(#[from] ScenarioError),
}

/// Parameters of random hits.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// Long-run share of places that are hit.
    pub rate: Share,
    /// Mean burst length, with a geometric distribution; `None` for independent hits, whose mean is 1/(1 −
    /// rate).
    pub burst: Option<f64>,
    /// Seed of the draws.
    pub seed: u64,
}

impl Pattern {
    /// A pattern of random hits: a two-state Markov chain in which one state is hit. With mean burst b and
    /// share r, it leaves that state with probability 1/b and enters it with r/(b·(1 − r)). It starts in
    /// its stationary distribution.
    ///
    /// # Errors
    /// If such a pattern is impossible.
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
                // Each block of 2²⁰ places has its own draw, as the words of a draw have 23-bit numbers.
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

    /// A pattern from places, written as in a file: `11-15, 400`, or `1 10ms, 51 30ms`.
    ///
    /// # Errors
    /// If the places are invalid.
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

    /// A pattern from runs, each a number of places and the event there: `100 pass, 5 hit`, or `50 10ms, 50
    /// 30ms`. Its length is their sum.
    ///
    /// # Errors
    /// If the runs are invalid.
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

    /// A pattern from a list with one line per place: `0` or `pass`, `1` or `hit`, or a delay or rate with
    /// its unit. Empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// If the list is invalid.
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

/// The content for spans of places, and their total length.
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

/// Adds a change only if the value differs from the previous one.
fn push<T: PartialEq>(changes: &mut Vec<(u64, T)>, place: u64, end: u64, value: T) {
    if end > place && changes.last().is_none_or(|last| last.1 != value) {
        changes.push((place, value));
    }
}
