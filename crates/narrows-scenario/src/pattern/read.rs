//! Parses pattern files.

use std::ops::Range;

use crate::node::{Node, Value};
use crate::pattern::{About, Content, LONGEST, Pattern, Per};
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::source::{MOST_POINTS, Source};
use crate::units;

impl Pattern {
    /// Parses a pattern. `name` is that of the file, for errors.
    ///
    /// # Errors
    /// If the file is invalid: the error has the line, what was found there, and what is allowed.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, ScenarioError> {
        Source::read(name, bytes, parse)
    }
}

/// The header lines, with their positions.
#[derive(Default)]
struct Head<'a> {
    about: Option<(About, &'a str)>,
    per: Option<(Per, &'a str)>,
    length: Option<u64>,
}

pub(crate) fn parse(source: &Source<'_>) -> Result<Pattern, Problem> {
    let mut head = Head::default();
    let mut content: Option<Content> = None;
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            match content {
                None => head.line(source, line)?,
                Some(_) => {
                    return Err(source.expected(line, "a place: header lines come first"));
                }
            }
            continue;
        }
        let content = match &mut content {
            Some(content) => content,
            None => content.insert(head.content(source, line)?),
        };
        let length = head.length.expect("it is checked before the first place");
        content.line(source, line, length)?;
    }
    let content = match content {
        Some(content) => content,
        // A loss pattern may have no places.
        None => head.content(source, source.text.get(..0).unwrap_or_default())?,
    };
    let (Some((_, _)), Some((per, _)), Some(length)) = (head.about, head.per, head.length) else {
        unreachable!("the head is whole where there is a content")
    };
    if content.says_nothing() {
        let problem = Problem::new("the pattern is empty").at(&(0..source.text.len()));
        return Err(problem
            .help("a change is a place and the value from there on, such as `1 10ms`; the first is at 1"));
    }
    Ok(Pattern { per, length, content })
}

impl<'a> Head<'a> {
    /// Parses a line that starts with a word.
    fn line(&mut self, source: &Source<'_>, line: &'a str) -> Result<(), Problem> {
        let (word, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        let again = match word {
            "pattern" => {
                self.about.replace((choice(source, value, &About::ALL, About::name)?, value)).is_some()
            }
            "per" => {
                const ALL: [Per; 3] = [Per::Packet, Per::Millisecond, Per::Bit];
                let value_of = if value == "ms" { "millisecond" } else { value };
                let per = ALL.into_iter().find(|per| per.name() == value_of);
                let per = match per {
                    Some(per) => per,
                    None => choice(source, value, &ALL, Per::name)?,
                };
                self.per.replace((per, value)).is_some()
            }
            "length" => match source.whole(value, LONGEST, "the number of places")? {
                0 => return Err(source.expected(value, "one place or more")),
                length => self.length.replace(length).is_some(),
            },
            _ => {
                let known = ["pattern", "per", "length"];
                let problem = Problem::new(format!("unknown word {}", Found(word))).at(&source.span(word));
                return Err(problem
                    .did_you_mean(word, known)
                    .help(format!("a line begins with {} or a place", one_of(&known))));
            }
        };
        match again {
            true => Err(Problem::new(format!("duplicate `{word}`")).at(&source.span(line))),
            false => Ok(()),
        }
    }

    /// The empty content of the type that the header declares. Errors about missing lines point at `at`.
    fn content(&self, source: &Source<'_>, at: &str) -> Result<Content, Problem> {
        let missing = |line: &str| {
            let problem = Problem::new(format!("the line `{line}` is missing")).at(&source.span(at));
            problem.help("a pattern begins with `pattern loss`, `per packet` and `length 1000`, for example")
        };
        let (about, _) = self.about.ok_or_else(|| missing("pattern …"))?;
        let (per, place) = self.per.ok_or_else(|| missing("per …"))?;
        self.length.ok_or_else(|| missing("length …"))?;
        if !about.places().contains(&per) {
            let allowed: Vec<&str> = about.places().iter().map(|per| per.name()).collect();
            let problem =
                Problem::new(format!("a pattern of {about} is not per {per}")).at(&source.span(place));
            return Err(problem.help(format!("it is per {}", one_of(&allowed))));
        }
        Ok(Content::empty(about))
    }
}

impl Content {
    /// No places.
    pub(super) const fn empty(about: About) -> Self {
        match about {
            About::Loss => Self::Loss(Vec::new()),
            About::BitErrors => Self::BitErrors(Vec::new()),
            About::Delay => Self::Delay(Vec::new()),
            About::Rate => Self::Rate(Vec::new()),
        }
    }

    /// Whether the value at the start is missing. Losses and bit errors may be empty.
    pub(super) fn says_nothing(&self) -> bool {
        match self {
            Self::Loss(_) | Self::BitErrors(_) => false,
            Self::Delay(changes) => changes.is_empty(),
            Self::Rate(changes) => changes.is_empty(),
        }
    }

    /// Parses a line that starts with a place.
    pub(super) fn line(&mut self, source: &Source<'_>, line: &str, length: u64) -> Result<(), Problem> {
        let count = match self {
            Self::Loss(hits) | Self::BitErrors(hits) => {
                for part in line.split([',', ' ', '\t']).filter(|part| !part.is_empty()) {
                    push_hits(hits, source, part, length)?;
                }
                hits.len()
            }
            Self::Delay(changes) => push_change(changes, source, line, length, units::time)?,
            Self::Rate(changes) => push_change(changes, source, line, length, units::rate)?,
        };
        match count > MOST_POINTS {
            true => Err(Problem::new(format!("more than {MOST_POINTS} places")).at(&source.span(line))),
            false => Ok(()),
        }
    }
}

/// `11` or `11-15`.
fn push_hits(
    hits: &mut Vec<Range<u64>>,
    source: &Source<'_>,
    part: &str,
    length: u64,
) -> Result<(), Problem> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last_place) = (place(source, first, length)?, place(source, last, length)?);
    let after = hits.last().map_or(0, |range| range.end);
    if first < after {
        let problem = Problem::new(format!("{} is not after {after}, the place before it", Found(part)));
        return Err(problem.at(&source.span(part)).help("places are in ascending order"));
    }
    if last_place < first {
        return Err(source.expected(last, "a place that is not before the first of the range"));
    }
    match hits.last_mut().filter(|range| range.end == first) {
        Some(range) => range.end = last_place + 1,
        None => hits.push(first..last_place + 1),
    }
    Ok(())
}

/// `11 20ms`.
fn push_change<T>(
    changes: &mut Vec<(u64, T)>,
    source: &Source<'_>,
    line: &str,
    length: u64,
    read: impl Fn(&Node) -> Result<T, Problem>,
) -> Result<usize, Problem> {
    let Some((number, value)) = line.split_once(char::is_whitespace) else {
        return Err(source.expected(line, "a place and the value from there on, such as `1 10ms`"));
    };
    let at = place(source, number, length)?;
    let value = value.trim();
    match changes.last() {
        None if at != 0 => {
            let problem = source.expected(number, "1: the value from the start");
            return Err(problem);
        }
        Some(last) if last.0 >= at => {
            let before = last.0 + 1;
            let problem =
                Problem::new(format!("{} is not after {before}, the place before it", Found(number)));
            return Err(problem.at(&source.span(number)).help("places are in ascending order"));
        }
        _ => {}
    }
    let node = Node { span: source.span(value), value: Value::String(value.into()) };
    changes.push((at, read(&node)?));
    Ok(changes.len())
}

/// Parses a place, counted from 0.
fn place(source: &Source<'_>, text: &str, length: u64) -> Result<u64, Problem> {
    match source.whole(text, LONGEST, "the number of a place")? {
        0 => Err(source.expected(text, "a place: they count from 1")),
        place if place > length => {
            let problem = Problem::new(format!("{} is beyond the length, {length}", Found(text)));
            Err(problem.at(&source.span(text)))
        }
        place => Ok(place - 1),
    }
}

fn choice<T: Copy>(
    source: &Source<'_>,
    found: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Problem> {
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    all.iter().copied().find(|one| name(*one) == found).ok_or_else(|| {
        let problem = source.expected(found, &one_of(&names));
        problem.did_you_mean(found, names)
    })
}
