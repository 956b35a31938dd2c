//! Words with the values of their variables, calculations and commands.

use std::ops::Range;

use super::arithmetic::{self, Numbers};
use super::field::{Expanded, Expansion, Field, Fields, How, NOT_RUN, Unknown, unnamed};
use super::printed::{MOST_NUMBERS, counted};
use super::printf::unescaped;
use super::scan::{self, byte, char_length, is_variable, name_length};
use super::state::{Place, Runner};
use super::values::{Missing, Scalar};
use crate::problem::{Found, Problem};

/// Maximum length of a value: variables that contain one another twice would grow without bound.
const LONGEST: usize = 1 << 16;
/// Expansions within one another.
const DEEPEST: usize = 16;

impl Runner<'_> {
    /// The words of a word of the script.
    pub(super) fn words(&mut self, word: &Range<usize>, all: &mut Vec<Expanded>) {
        let source = self.source.clone();
        let raw = &source.text[word.clone()];
        let place = source.place.at(word.start);
        // The span of a quoted word is what is in the quotes.
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        let is_whole =
            quote.is_some_and(|quote| raw.len() > 1 && raw[1..].find(quote) == Some(raw.len() - 2));
        let span = if is_whole { word.start + 1..word.end - 1 } else { word.clone() };
        let span = source.place.of(&span);
        for raw in self.braces(raw).as_deref().unwrap_or(&[raw.to_owned()]) {
            for field in self.expand(raw, &place, How::Words) {
                let unknown = field.unknown.map(|mut unknown| {
                    unknown.problem = unknown.problem.at(&span);
                    unknown
                });
                let is_unset =
                    unknown.as_deref().is_some_and(|unknown: &Unknown| unknown.what == Missing::Unset);
                let name =
                    raw.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
                let vanishes = is_unset && field.text.is_empty() && name.is_some_and(is_variable);
                all.push(Expanded { text: field.text, span: span.clone(), unknown, vanishes });
            }
        }
    }

    /// A word of the script as one text.
    pub(super) fn one(&mut self, word: &Range<usize>, how: How) -> Field {
        let source = self.source.clone();
        let place = source.place.at(word.start);
        self.expand_one(&source.text[word.clone()], &place, how)
    }

    pub(super) fn expand_one(&mut self, raw: &str, place: &Place, how: How) -> Field {
        self.expand(raw, place, how).into_iter().next().unwrap_or_default()
    }

    fn expand(&mut self, raw: &str, place: &Place, how: How) -> Vec<Field> {
        if !raw.contains(['$', '`', '"', '\'', '\\']) {
            return vec![Field::known(raw)];
        }
        let separators = match self.values.scalar("IFS") {
            Some(Scalar::Text(text)) => text.chars().collect(),
            _ => vec![' ', '\t', '\n', '\r'],
        };
        let mut fields = Fields::new(how, separators);
        self.fill(raw, place, false, &mut fields);
        if how != How::Words {
            fields.open();
        }
        fields.done.extend(fields.open.take());
        fields.done
    }

    /// Expands a text, all of it within quotes if `is_quoted`.
    pub(super) fn fill(&mut self, raw: &str, place: &Place, is_quoted: bool, fields: &mut Fields) {
        if self.expansions > DEEPEST {
            let problem = Problem::new(format!("variables within one another more than {DEEPEST} deep"));
            return fields.push(Expansion::One(Field::wrong(problem.at(&place.of(&(0..raw.len()))))), true);
        }
        self.expansions += 1;
        let mut at = 0;
        while at < raw.len() {
            match byte(raw, at) {
                b'\'' if !is_quoted => {
                    let close = raw[at + 1..].find('\'').map_or(raw.len(), |close| at + 1 + close);
                    fields.literal(&raw[at + 1..close], true);
                    at = close + 1;
                }
                b'"' if !is_quoted => {
                    let end = scan::double_quotes(raw, at, 0).unwrap_or(raw.len() + 1);
                    let inside = &raw[at + 1..(end - 1).min(raw.len())];
                    if inside.is_empty() {
                        fields.open();
                    }
                    self.fill(inside, &place.at(at + 1), true, fields);
                    at = end;
                }
                b'\\' => {
                    let escaped = raw[at + 1..].chars().next();
                    match escaped {
                        Some('\n') => {}
                        Some(c) if !is_quoted || matches!(c, '$' | '`' | '"' | '\\') => {
                            fields.literal(c.encode_utf8(&mut [0; 4]), true);
                        }
                        _ => {
                            fields.literal("\\", is_quoted);
                            at += 1;
                            continue;
                        }
                    }
                    at += 1 + escaped.map_or(0, char::len_utf8);
                }
                b'$' if !is_quoted && byte(raw, at + 1) == b'\'' => {
                    let close = scan::ansi_quote(&raw[at + 2..]).unwrap_or(raw.len() - at - 2);
                    let text = unescaped(&raw[at + 2..at + 2 + close]).replace("\\'", "'");
                    fields.literal(&text, true);
                    at += close + 3;
                }
                b'$' | b'`' => {
                    let (end, expansion) = self.expansion(raw, at, place, is_quoted);
                    if let Some(mut expansion) = expansion {
                        let span = place.of(&(at..end));
                        let all = match &mut expansion {
                            Expansion::One(field) => std::slice::from_mut(field),
                            Expansion::All(all) => &mut all[..],
                        };
                        for unknown in all.iter_mut().filter_map(|field| field.unknown.as_mut()) {
                            unknown.problem = unknown.problem.clone().at(&span);
                        }
                        fields.push(expansion, is_quoted);
                    }
                    at = end;
                }
                _ => {
                    let rest = &raw[at..];
                    let length = rest
                        .find(['$', '`', '"', '\'', '\\'])
                        .unwrap_or(rest.len())
                        .max(char_length(raw, at));
                    fields.literal(&rest[..length], is_quoted);
                    at += length;
                }
            }
            if fields.length > LONGEST {
                let problem = Problem::new(format!("variables of more than {LONGEST} bytes"));
                fields.push(Expansion::One(Field::wrong(problem.at(&place.of(&(0..raw.len()))))), true);
                break;
            }
        }
        self.expansions -= 1;
    }

    /// What stands at `$` or a backquote: where it ends, and what it comes to; `None` for nothing.
    fn expansion(
        &mut self,
        raw: &str,
        at: usize,
        place: &Place,
        is_quoted: bool,
    ) -> (usize, Option<Expansion>) {
        let one = |field| Some(Expansion::One(field));
        let end = scan::unit(raw, at, 0).unwrap_or(raw.len());
        let next = byte(raw, at + 1);
        match (byte(raw, at), next) {
            (b'`', _) => {
                let inside = &raw[at + 1..(end - 1).max(at + 1)];
                let field = match inside.contains('\\') {
                    true => {
                        let text = inside.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                        self.output(&text, &Place::Whole(place.of(&(at..end))))
                    }
                    false => self.output(inside, &place.at(at + 1)),
                };
                (end, one(field))
            }
            (_, b'(') => {
                let inside = raw[at + 2..end].strip_suffix(')').unwrap_or_default();
                let calculation = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
                (
                    end,
                    one(match calculation {
                        Some(calculation) => self.calculated(calculation, &place.at(at + 3)),
                        None => self.output(inside, &place.at(at + 2)),
                    }),
                )
            }
            (_, b'[') => (end, one(self.calculated(&raw[at + 2..end - 1], &place.at(at + 2)))),
            (_, b'{') => {
                let inside = raw[at + 2..end].strip_suffix('}').unwrap_or_default();
                (end, Some(self.parameter(inside, &place.at(at + 2), is_quoted)))
            }
            // `$"…"` is translated where there are translations.
            (_, b'"') if !is_quoted => (at + 1, None),
            (_, c) if c.is_ascii_digit() => (at + 2, one(self.argument(usize::from(c - b'0')))),
            (_, b'@' | b'*') => (at + 2, Some(self.arguments(next == b'*' && is_quoted))),
            (_, b'#' | b'?' | b'$' | b'!' | b'-') => {
                let name = raw[at + 1..at + 2].to_owned();
                (at + 2, one(self.special(&name)))
            }
            _ => match name_length(&raw[at + 1..]) {
                0 => (at + 1, one(Field::known("$"))),
                length => {
                    let name = raw[at + 1..at + 1 + length].to_owned();
                    (at + 1 + length, one(self.named(&name)))
                }
            },
        }
    }

    /// A calculation.
    pub(super) fn calculated(&mut self, raw: &str, place: &Place) -> Field {
        let text = self.expand_one(raw, place, How::One);
        if text.unknown.is_some() {
            return Field { unknown: unnamed(text.unknown), ..text };
        }
        match self.calculate(&text.text) {
            Ok(value) => Field::known(value.to_string()),
            Err(field) => field,
        }
    }

    /// The value of a calculation without expansions in it.
    pub(super) fn calculate(&mut self, text: &str) -> Result<i64, Field> {
        let mut numbers = OfScript { runner: self, unknown: None };
        let value = arithmetic::value(text, &mut numbers);
        let unknown = numbers.unknown;
        value.map_err(|problem| match unknown {
            Some(unknown) => Field { text: String::new(), unknown: unnamed(Some(unknown)) },
            None => Field::wrong(problem),
        })
    }

    /// What a command prints.
    fn output(&mut self, inside: &str, place: &Place) -> Field {
        let before = self.problems.len();
        if let Some(text) = self.captured(inside, place) {
            return Field::known(text.trim_end_matches('\n'));
        }
        let name = format!("$({})", inside.trim());
        let mut problem = Problem::new(format!("{} is a command or an expansion of a shell", Found(&name)));
        if self.problems.len() > before {
            problem = Problem::new(format!("{} is not understood", Found(&name)));
        }
        let unknown = Unknown { problem: problem.help(NOT_RUN), what: Missing::Output, is_named: true };
        Field {
            text: name.split_ascii_whitespace().collect::<Vec<_>>().join("_"),
            unknown: Some(Box::new(unknown)),
        }
    }

    /// `{1..4}` and `{a,b}` written out, where the script's shell does so.
    fn braces(&self, raw: &str) -> Option<Vec<String>> {
        if !raw.contains('{') || raw.contains(['"', '\'', '\\']) {
            return None;
        }
        let (open, _) = raw.match_indices('{').find(|(at, _)| !raw[..*at].ends_with('$'))?;
        let close = open + raw[open..].find('}')?;
        let inside = &raw[open + 1..close];
        if inside.contains(['{', '$', '`']) {
            return None;
        }
        let parts: Vec<String> = match inside.split("..").collect::<Vec<_>>()[..] {
            [first, last] => range(first, last, "1")?,
            [first, last, step] => range(first, last, step)?,
            _ if inside.contains(',') && self.has_lists => inside.split(',').map(str::to_owned).collect(),
            _ => return None,
        };
        let behind = self.braces(&raw[close + 1..]).unwrap_or_else(|| vec![raw[close + 1..].to_owned()]);
        if parts.len().saturating_mul(behind.len()) > MOST_NUMBERS as usize {
            return None;
        }
        let all = parts
            .iter()
            .flat_map(|part| behind.iter().map(move |behind| format!("{}{part}{behind}", &raw[..open])));
        Some(all.collect())
    }
}

/// `{first..last..step}`
fn range(first: &str, last: &str, step: &str) -> Option<Vec<String>> {
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let all = (first.min(last)..=first.max(last)).map(String::from);
        return Some(if first <= last { all.collect() } else { all.rev().collect() });
    }
    let (from, to, step): (i64, i64, i64) = (first.parse().ok()?, last.parse().ok()?, step.parse().ok()?);
    let step = step.saturating_abs().max(1);
    let width = |text: &str| if text.trim_start_matches('-').starts_with('0') { text.len() } else { 0 };
    let width = width(first).max(width(last)) * usize::from(first.len() > 1 || last.len() > 1);
    let numbers = counted(from, if from > to { -step } else { step }, to).ok()?;
    Some(numbers.iter().map(|number| format!("{number:0width$}")).collect())
}

/// The variables of a script in a calculation.
struct OfScript<'r, 'a> {
    runner: &'r mut Runner<'a>,
    unknown: Option<Box<Unknown>>,
}

impl Numbers for OfScript<'_, '_> {
    fn text(&mut self, name: &str, index: Option<i64>) -> Result<String, Problem> {
        let field = match index {
            Some(index) => self.runner.element(name, &index.to_string(), &Place::Whole(0..0)),
            None => self.runner.named(name),
        };
        match field.unknown {
            None => Ok(field.text),
            Some(unknown) => {
                let problem = unknown.problem.clone();
                self.unknown.get_or_insert(unknown);
                Err(problem)
            }
        }
    }

    fn set(&mut self, name: &str, index: Option<i64>, value: i64) {
        let value = Scalar::Text(value.to_string());
        match index {
            Some(index) => self.runner.values.set_at(name, index, value),
            None => self.runner.values.set(name, value),
        }
    }
}
