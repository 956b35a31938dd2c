//! Words with the values of their variables, calculations and commands.

use std::ops::Range;

use super::arithmetic::{self, Numbers};
use super::field::{Expanded, Expansion, Field, Fields, How, NOT_RUN, Quotes, Unknown};
use super::place::Place;
use super::printed::{MOST_NUMBERS, counted};
use super::printf::{Escapes, unescaped};
use super::scan::{self, byte, char_length, is_variable, name_length};
use super::state::Runner;
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
        let written = match if raw.contains('{') { self.braces(raw, 0) } else { Ok(None) } {
            Ok(written) => written,
            Err(problem) => {
                let unknown = Field::wrong(problem.at(&span)).unknown;
                return all.push(Expanded { text: raw.to_owned(), span, unknown, vanishes: false });
            }
        };
        for raw in written.as_deref().unwrap_or(&[raw.to_owned()]) {
            for field in self.expand(raw, &place, How::Words) {
                let unknown = field.unknown.map(|mut unknown| {
                    unknown.problem = unknown.problem.at(&span);
                    unknown
                });
                let is_unset =
                    unknown.as_deref().is_some_and(|unknown: &Unknown| unknown.what == Missing::Unset);
                let name =
                    raw.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
                let name = name.map(|name| name.trim_end_matches("[@]").trim_end_matches("[*]"));
                // A device has a name, whichever it is.
                let is_device = all.last().is_some_and(|last| {
                    matches!(
                        last.text.as_str(),
                        "dev" | "-i" | "-o" | "--in-interface" | "--out-interface" | "-n" | "via"
                    )
                });
                // `$sudo tc …`: the prompt of a session, and no blank behind it.
                let programs = ["sudo", "tc", "ip", "ping", "iperf", "iperf3"];
                if let Some(program) =
                    name.filter(|name| is_unset && all.is_empty() && programs.contains(name))
                {
                    all.push(Expanded {
                        text: program.into(),
                        span: span.clone(),
                        unknown: None,
                        vanishes: false,
                    });
                    continue;
                }
                let vanishes =
                    is_unset && (field.text.is_empty() || !is_device) && name.is_some_and(is_variable);
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
        let is_home = is_home(raw) && how != How::Pattern;
        if raw.is_empty() && how == How::Words {
            return Vec::new();
        }
        if !is_home && !raw.contains(['$', '`', '"', '\'', '\\']) {
            return vec![Field::known(raw)];
        }
        let separators = match self.values.scalar("IFS") {
            Some(Scalar::Text(text)) => text.chars().collect(),
            _ => vec![' ', '\t', '\n', '\r'],
        };
        let mut fields = Fields::new(how, separators);
        if is_home {
            fields.push(Expansion::One(self.named("HOME")), true);
        }
        let start = usize::from(is_home);
        self.fill(&raw[start..], &place.at(start), false, &mut fields);
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
                b'"' if fields.quotes == Quotes::Default => at += 1,
                b'\\' => {
                    let escaped = raw[at + 1..].chars().next();
                    let is_special = |c: char| match c {
                        '$' | '`' | '\\' => true,
                        '"' => fields.quotes != Quotes::Document,
                        '}' => fields.quotes == Quotes::Default,
                        _ => false,
                    };
                    match escaped {
                        Some('\n') => {}
                        Some(c) if !is_quoted || is_special(c) => {
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
                    let text = &raw[at + 2..at + 2 + close];
                    match unescaped(text, Escapes::OfQuotes) {
                        Some(text) => fields.literal(&text, true),
                        None => {
                            let title = format!("the escapes in {} are not understood", Found(text));
                            let span = place.of(&(at..at + close + 3));
                            fields.push(Expansion::One(Field::wrong(Problem::new(title).at(&span))), true);
                        }
                    }
                    at += close + 3;
                }
                b'$' | b'`' => {
                    let (end, expansion) = self.expansion(raw, at, place, is_quoted);
                    if let Some(Expansion::Default(text, place)) = expansion {
                        self.fill_default(&text, &place, is_quoted, fields);
                    } else if let Some(mut expansion) = expansion {
                        let span = place.of(&(at..end));
                        let all = match &mut expansion {
                            Expansion::One(field) => std::slice::from_mut(field),
                            Expansion::All(all) | Expansion::Joined(all, _) => &mut all[..],
                            Expansion::Default(..) => &mut [],
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
                    match fields.quotes == Quotes::Default && !is_quoted {
                        true => fields.push(Expansion::One(Field::known(&rest[..length])), false),
                        false => fields.literal(&rest[..length], is_quoted),
                    }
                    at += length;
                }
            }
            if fields.length > LONGEST || !self.take_steps(fields.length / 4096) {
                let problem = Problem::new(format!("variables of more than {LONGEST} bytes"));
                fields.push(Expansion::One(Field::wrong(problem.at(&place.of(&(0..raw.len()))))), true);
                break;
            }
        }
        self.expansions -= 1;
    }

    /// Expands what stands in place of a value.
    fn fill_default(&mut self, text: &str, place: &Place, is_quoted: bool, fields: &mut Fields) {
        let quotes = std::mem::replace(&mut fields.quotes, Quotes::Default);
        if is_quoted && text.contains('\'') && text.contains(['"', '}', '\\']) {
            let title = format!("the quotes in {} are not understood", Found(text));
            let problem = Problem::new(title).at(&place.of(&(0..text.len())));
            fields.push(Expansion::One(Field::wrong(problem)), true);
        } else {
            if is_quoted || text.contains(['"', '\'']) && fields.how != How::Words {
                fields.open();
            }
            self.fill(text, place, is_quoted, fields);
        }
        fields.quotes = quotes;
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
                // One that is not closed goes to the end.
                let inside = &raw[at + 1..end];
                let inside = inside.strip_suffix('`').unwrap_or(inside);
                let field = match inside.contains('\\') {
                    true => {
                        let text = of_backquotes(inside, is_quoted);
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
            (_, b'[') => {
                let inside = &raw[at + 2..end];
                let inside = inside.strip_suffix(']').unwrap_or(inside);
                (end, one(self.calculated(inside, &place.at(at + 2))))
            }
            (_, b'{') => {
                let inside = raw[at + 2..end].strip_suffix('}').unwrap_or_default();
                (end, Some(self.parameter(inside, &place.at(at + 2), is_quoted)))
            }
            // `$"…"` is translated where there are translations.
            (_, b'"') if !is_quoted => (at + 1, None),
            (_, c) if c.is_ascii_digit() => (at + 2, one(self.argument(usize::from(c - b'0')))),
            (_, b'@' | b'*') => (at + 2, Some(self.arguments(next == b'*'))),
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
        if let Some(unknown) = text.unknown {
            return Field { unknown: Some(self.calculated_from(unknown)), ..text };
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
            Some(unknown) => Field { text: String::new(), unknown: Some(self.calculated_from(unknown)) },
            None => Field::wrong(problem),
        })
    }

    /// What is calculated from a value that is not known, or is wrong.
    fn calculated_from(&self, mut unknown: Box<Unknown>) -> Box<Unknown> {
        if self.is_unclear(&unknown) && unknown.what != Missing::Unset {
            unknown.what = Missing::Calculated;
        }
        unknown.is_named = false;
        unknown
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

    /// `{1..4}` and `{a,b}` written out, where the script's shell does so; `None` if there are none.
    fn braces(&self, raw: &str, depth: usize) -> Result<Option<Vec<String>>, Problem> {
        let mut at = 0;
        while at < raw.len() {
            if byte(raw, at) != b'{' {
                at = scan::unit(raw, at, 0)?;
                continue;
            }
            let parts = match list_in_braces(raw, at)? {
                Some((end, parts)) if parts.len() > 1 && self.has_lists => Some((end, parts)),
                Some((end, parts)) if parts.len() == 1 => range_of(&parts[0])?.map(|parts| (end, parts)),
                _ => None,
            };
            let Some((end, parts)) = parts else {
                at += 1;
                continue;
            };
            if depth > DEEPEST {
                return Err(Problem::new(format!("braces more than {DEEPEST} deep")));
            }
            let written = |raw: &str| -> Result<Vec<String>, Problem> {
                Ok(self.braces(raw, depth + 1)?.unwrap_or_else(|| vec![raw.to_owned()]))
            };
            let behind = written(&raw[end..])?;
            let mut all = Vec::new();
            for part in &parts {
                for part in written(part)? {
                    if all.len() + behind.len() > MOST_NUMBERS as usize {
                        return Err(Problem::new(format!("braces of more than {MOST_NUMBERS} words")));
                    }
                    all.extend(behind.iter().map(|behind| format!("{}{part}{behind}", &raw[..at])));
                }
            }
            return Ok(Some(all));
        }
        Ok(None)
    }
}

/// What stands between the commas of the braces that open here, and the place behind them; `None` if they are not closed.
fn list_in_braces(raw: &str, open: usize) -> Result<Option<(usize, Vec<String>)>, Problem> {
    let (mut at, mut start, mut deep) = (open + 1, open + 1, 0_usize);
    let mut parts = Vec::new();
    while at < raw.len() {
        match byte(raw, at) {
            b'{' => deep += 1,
            b'}' if deep == 0 => {
                parts.push(raw[start..at].to_owned());
                return Ok(Some((at + 1, parts)));
            }
            b'}' => deep -= 1,
            b',' if deep == 0 => {
                parts.push(raw[start..at].to_owned());
                start = at + 1;
            }
            _ => {
                at = scan::unit(raw, at, 0)?;
                continue;
            }
        }
        at += 1;
    }
    Ok(None)
}

/// `1..4`, `1..9..2` or `a..e`.
fn range_of(inside: &str) -> Result<Option<Vec<String>>, Problem> {
    match inside.split("..").collect::<Vec<_>>()[..] {
        [first, last] => range(first, last, "1"),
        [first, last, step] => range(first, last, step),
        _ => Ok(None),
    }
}

/// Whether a word begins with the home folder: `~`, `~/a`.
fn is_home(raw: &str) -> bool {
    raw.strip_prefix('~').is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The commands in backquotes, where a backslash stands before what would end or expand them.
fn of_backquotes(inside: &str, is_quoted: bool) -> String {
    let mut text = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(next)) => {
                let is_kept = !matches!(next, '`' | '$' | '\\') && (!is_quoted || next != '"');
                if is_kept {
                    text.push(c);
                }
                text.push(next);
                chars.next();
            }
            _ => text.push(c),
        }
    }
    text
}

/// `{first..last..step}`; `None` if that is a text.
fn range(first: &str, last: &str, step: &str) -> Result<Option<Vec<String>>, Problem> {
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let Ok(step) = step.parse::<i64>() else { return Ok(None) };
    let step = step.saturating_abs().max(1);
    if let (Some(from), Some(to)) = (letter(first), letter(last)) {
        if from.is_ascii_lowercase() != to.is_ascii_lowercase() {
            return Err(Problem::new("braces from a lower case letter to an upper case one"));
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let letters = |all: &mut dyn Iterator<Item = char>| all.step_by(step).map(String::from).collect();
        return Ok(Some(match from <= to {
            true => letters(&mut (from..=to)),
            false => letters(&mut (to..=from).rev()),
        }));
    }
    let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) else { return Ok(None) };
    let is_padded =
        |text: &str| text.len() > 1 && text.trim_start_matches('-').starts_with('0') && text != "-0";
    let width = if is_padded(first) || is_padded(last) { first.len().max(last.len()) } else { 0 };
    let numbers = counted(from, if from > to { -step } else { step }, to)?;
    Ok(Some(numbers.iter().map(|number| format!("{number:0width$}")).collect()))
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
