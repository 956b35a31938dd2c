//! Variables of a shell script: `DEV=eth0`, and `$DEV` or `${DEV:-eth0}` in later words. Commands are not
//! run, so a variable that takes their output has no value.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::shell::{Joined, Piece};
use super::{Word, Words};
use super::{arithmetic, shell};
use crate::problem::{Found, Problem};

/// Maximum length of a value: variables that contain one another twice would grow without bound.
const LONGEST: usize = 1 << 16;

/// The most numbers of a `seq` or of braces.
const MOST_NUMBERS: i64 = 1 << 16;
/// Expansions within one another.
const DEEPEST: usize = 16;

/// The variables known so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, Value>,
    reading: Cell<Reading>,
    /// How many arguments the function that is being executed has, or the script by `set -- …`; `None` if that is not known.
    arguments: Option<usize>,
    /// What the local variables of that function were before; `None` outside functions.
    local: Option<Vec<Former>>,
    /// What variables were before assignments that may be undone.
    assigned: Option<Vec<Former>>,
}

/// A variable, and its value from before.
type Former = (String, Option<Value>);

/// What a function takes back at its end.
pub(crate) struct Frame {
    former: Vec<Former>,
    arguments: Option<usize>,
    local: Option<Vec<Former>>,
}

/// What a value becomes that is not in the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    Error,
    /// A name: `$NAME` of the first variable that has it.
    Name,
    /// Nothing, for an argument of the script.
    NoArguments,
}

/// What is known of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    /// It is not in the script, but this; and the first variable that has it.
    Other(&'static str, String),
}

const OUTPUT: &str = "the output of a command";
const ARGUMENT: &str = "an argument of the script";
/// As a variable: the number of arguments is not known, because `set` has got what a command prints.
const COUNT: &str = "#";

/// A word after expansion, and its span in the script.
pub(crate) struct Expanded {
    text: String,
    span: Range<usize>,
}

impl Expanded {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The words of a command, for a reader of `end` bytes of text.
pub(crate) fn as_words(words: &[Expanded], end: usize) -> Words<'_> {
    Words::of_words(words.iter().map(|word| Word::new(&word.text, &word.span)).collect(), end)
}

impl Variables {
    /// The words of a command, where a value that is not in the script is a name, `$NAME`. Two variables that have the same
    /// such value have the same name.
    pub(crate) fn words_with_names(
        &self,
        text: &str,
        command: Range<usize>,
    ) -> Result<Vec<Expanded>, Problem> {
        self.words_by(Reading::Name, text, command)
    }

    /// The words of a command in a script that is started without arguments.
    pub(crate) fn words_without_arguments(
        &self,
        text: &str,
        command: Range<usize>,
    ) -> Result<Vec<Expanded>, Problem> {
        self.words_by(Reading::NoArguments, text, command)
    }

    fn words_by(
        &self,
        reading: Reading,
        text: &str,
        command: Range<usize>,
    ) -> Result<Vec<Expanded>, Problem> {
        self.reading.set(reading);
        let words = self.words(text, command);
        self.reading.set(Reading::default());
        words
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.put(name, Some(Value::Text(value.into())));
    }

    fn put(&mut self, name: &str, value: Option<Value>) -> Former {
        let before = match value {
            Some(value) => self.values.insert(name.into(), value),
            None => self.values.remove(name),
        };
        (name.into(), before)
    }

    fn take_back(&mut self, former: Vec<Former>) {
        for (name, value) in former.into_iter().rev() {
            self.put(&name, value);
        }
    }

    /// Those of a script with these arguments.
    pub(crate) fn with_arguments(arguments: &[String]) -> Self {
        let mut variables = Self::default();
        let word = |text: &String| Expanded { text: text.clone(), span: 0..0 };
        variables.put_arguments(&arguments.iter().map(word).collect::<Vec<_>>());
        variables
    }

    /// A function begins with these arguments.
    pub(crate) fn begin_function(&mut self, arguments: &[Expanded]) -> Frame {
        let outer = self.arguments;
        let former = self.put_arguments(arguments);
        Frame { former, arguments: outer, local: self.local.replace(Vec::new()) }
    }

    /// Replaces the arguments; returns what they were.
    fn put_arguments(&mut self, arguments: &[Expanded]) -> Vec<Former> {
        let most = self.arguments.unwrap_or(0).max(arguments.len());
        let value = |at: usize| arguments.get(at).map(|word| Value::Text(word.text.clone()));
        self.arguments = Some(arguments.len());
        (0..most).map(|at| self.put(&(at + 1).to_string(), value(at))).collect()
    }

    /// Executes `set -- A B` and `shift`: from now on, these are the arguments. Returns whether it is such a command.
    pub(crate) fn take_arguments(&mut self, text: &str, command: &Range<usize>) -> bool {
        let mut words = text[command.clone()].split_ascii_whitespace();
        let new = match (words.next(), words.next()) {
            // Without `--` it may be a command of ipfw, where nothing has set arguments.
            (Some("set"), Some(first))
                if first == "--" || self.arguments.is_some() && !first.starts_with(['-', '+']) =>
            {
                let skipped = if first == "--" { 2 } else { 1 };
                self.words(text, command.clone()).ok().map(|words| words.into_iter().skip(skipped).collect())
            }
            (Some("shift"), by) => {
                let by = by.filter(|by| !by.contains('>')).map_or(Ok(1), str::parse::<usize>);
                // With too few arguments it fails, and they stay.
                if by.as_ref().ok().zip(self.arguments).is_some_and(|(by, all)| *by > all) {
                    return true;
                }
                let of = |at: usize| Expanded { text: self.argument(at).to_owned(), span: command.clone() };
                by.ok().zip(self.arguments).map(|(by, all)| (by.saturating_add(1)..=all).map(of).collect())
            }
            _ => return false,
        };
        let former: Vec<Former> = match new {
            Some(new) => {
                let known: Vec<Expanded> = new;
                let count = self.put(COUNT, None);
                self.put_arguments(&known).into_iter().chain([count]).collect()
            }
            None => {
                self.arguments = None;
                let unknown = |name: String| self.put(&name, Some(Value::Other(OUTPUT, name.clone())));
                (1..=9).map(|at| at.to_string()).chain([COUNT.to_owned()]).map(unknown).collect()
            }
        };
        self.local.iter_mut().for_each(|local| local.extend(former.iter().cloned()));
        true
    }

    /// The argument with this number.
    fn argument(&self, at: usize) -> &str {
        match self.values.get(&at.to_string()) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// It ends: the arguments, and what was local in it, are those from before.
    pub(crate) fn end_function(&mut self, frame: Frame) {
        let local = std::mem::replace(&mut self.local, frame.local);
        self.take_back(local.unwrap_or_default());
        self.take_back(frame.former);
        self.arguments = frame.arguments;
    }

    /// Takes assignments back.
    fn undo_assignments(&mut self) {
        let assigned = self.assigned.take().unwrap_or_default();
        self.take_back(assigned);
    }

    /// Whether they happen is not known: a variable that they change may have either value.
    fn doubt_assignments(&mut self) {
        for (name, before) in self.assigned.take().unwrap_or_default() {
            if self.values.get(&name) != before.as_ref() {
                self.put(&name, Some(Value::Other(OUTPUT, name.clone())));
            }
        }
    }

    /// Takes the assignments of a command; returns the rest of the command. Before a command they are for that alone, and
    /// behind `|` for another shell.
    ///
    /// # Errors
    /// As [`Self::assign`].
    pub(crate) fn assign_for(&mut self, text: &str, piece: &Piece) -> Result<Range<usize>, Problem> {
        let first = text[piece.span.clone()].split_ascii_whitespace().next().unwrap_or_default();
        if !first.contains('=') && matches!(piece.joined, Joined::After | Joined::Batch) {
            return self.assign(text, piece.span.clone());
        }
        self.assigned = Some(Vec::new());
        let rest = self.assign(text, piece.span.clone())?;
        match piece.joined {
            _ if !text[rest.clone()].trim().is_empty() => self.undo_assignments(),
            Joined::Piped => self.undo_assignments(),
            Joined::OnFailure => self.doubt_assignments(),
            Joined::After | Joined::Batch => self.assigned = None,
        }
        Ok(rest)
    }

    /// Takes the assignments at the start of a command; returns the rest of the command.
    ///
    /// # Errors
    /// If a value refers to a variable that is not set.
    pub(crate) fn assign(&mut self, text: &str, command: Range<usize>) -> Result<Range<usize>, Problem> {
        let mut rest = command;
        let (mut exports, mut is_local) = (false, false);
        loop {
            let left = &text[rest.clone()];
            let blank = left.len() - left.trim_start().len();
            rest.start += blank;
            let left = &left[blank..];
            if let Some(calculations) = calculations(left) {
                self.calculate(text, calculations, rest.clone())?;
                return Ok(rest.end..rest.end);
            }
            if let Some(keyword) = ["export", "local", "readonly", "declare", "typeset"]
                .into_iter()
                .find(|keyword| left.strip_prefix(*keyword).is_some_and(|rest| rest.starts_with(' ')))
            {
                rest.start += keyword.len();
                exports = true;
                is_local = matches!(keyword, "local" | "declare" | "typeset");
                continue;
            }
            let name = left.len() - left.trim_start_matches(is_name).len();
            if name == 0 || left.as_bytes()[0].is_ascii_digit() {
                return Ok(rest);
            }
            let appends = left[name..].starts_with("+=");
            if left.as_bytes().get(name) != Some(&b'=') && !appends {
                // `export NAME` assigns nothing.
                let ends = left[name..].chars().next().is_none_or(char::is_whitespace);
                if !(exports && ends) {
                    return Ok(rest);
                }
                if is_local && self.local.is_some() {
                    let former = self.put(&left[..name], None);
                    self.local.iter_mut().for_each(|local| local.push(former.clone()));
                }
                rest.start += name;
                continue;
            }
            let start = rest.start + name + 1 + usize::from(appends);
            let value = start..start + value_length(&text[start..rest.end]);
            let mut expanded = self.value(text, value.clone(), &left[..name])?;
            if let (true, Some(before), Value::Text(behind)) =
                (appends, self.values.get(&left[..name]), &expanded)
            {
                expanded = match before {
                    Value::Text(before) if before.len() + behind.len() > LONGEST => {
                        return Err(too_long().at(&value));
                    }
                    Value::Text(before) => Value::Text(format!("{before}{behind}")),
                    Value::Other(what, of) => Value::Other(what, of.clone()),
                };
            }
            let former = self.put(&left[..name], Some(expanded));
            if let Some(log) = self.local.as_mut().filter(|_| is_local).or(self.assigned.as_mut()) {
                log.push(former);
            }
            rest.start = value.end;
        }
    }

    /// `let A=1+2 B=A*2`, `((A = 1 + 2))`: sets variables.
    fn calculate(&mut self, text: &str, inside: Inside<'_>, span: Range<usize>) -> Result<(), Problem> {
        let all = match inside {
            Inside::Words(skipped) => {
                let words = self.words(text, span.start + skipped..span.end)?;
                words.into_iter().map(|word| (word.text, word.span)).collect()
            }
            Inside::One(calculation) => vec![(calculation.to_owned(), span.clone())],
        };
        for (word, span) in all {
            self.calculate_one(&word, &span)?;
        }
        Ok(())
    }

    /// The same for one calculation: `A = 1 + 2`, `A += 2`, `A++`.
    pub(crate) fn calculate_one(&mut self, word: &str, span: &Range<usize>) -> Result<(), Problem> {
        let Some((name, calculation)) = assignment(word.trim()) else {
            return Err(Problem::new(format!("{} assigns no variable", Found(word)))
                .at(span)
                .help("as in: let RATE=8*100"));
        };
        let value = self.calculated(&calculation).map_err(|problem| problem.at(span))?;
        let former = self.put(name, Some(Value::Text(value.to_string())));
        self.assigned.iter_mut().for_each(|assigned| assigned.push(former.clone()));
        Ok(())
    }

    /// The value of a calculation.
    pub(crate) fn calculated(&self, calculation: &str) -> Result<i64, Problem> {
        arithmetic::value(calculation, &|name| self.named(name, None, 0))
    }

    /// The value that is assigned to a variable.
    fn value(&self, text: &str, value: Range<usize>, name: &str) -> Result<Value, Problem> {
        let raw = &text[value.clone()];
        let found = self.fields(text, value, false).map(|fields| fields.into_iter().next());
        match found {
            Ok(first) => Ok(Value::Text(first.map_or(String::new(), |word| word.text))),
            Err(problem) => self.other(raw, name).ok_or(problem),
        }
    }

    /// A value that is not in the script.
    fn other(&self, raw: &str, name: &str) -> Option<Value> {
        if raw.replace("$((", "").contains("$(") || raw.contains('`') {
            return Some(Value::Other(OUTPUT, name.into()));
        }
        let bare = raw.trim_matches('"').strip_prefix('$')?;
        if matches!(bare, "?" | "$" | "!") {
            return Some(Value::Other(OUTPUT, name.into()));
        }
        let bare = bare.strip_prefix('{').map_or(bare, |inside| inside.trim_end_matches('}'));
        if bare.starts_with(|c: char| c.is_ascii_digit()) {
            let end = bare.find(|c: char| !c.is_ascii_digit()).unwrap_or(bare.len());
            return Some(Value::Other(ARGUMENT, bare[..end].into()));
        }
        self.values.get(bare).filter(|value| matches!(value, Value::Other(..))).cloned()
    }

    /// The words of a command, with the values of variables. A value without quotes may be several words.
    ///
    /// # Errors
    /// If a variable is not set, or its value is not in the script.
    pub(crate) fn words(&self, text: &str, command: Range<usize>) -> Result<Vec<Expanded>, Problem> {
        let mut all = Vec::new();
        for span in shell::words(text, command) {
            match self.arguments.filter(|_| &text[span.clone()] == "\"$@\"") {
                Some(count) => {
                    let argument =
                        |at: usize| Expanded { text: self.argument(at).to_owned(), span: span.clone() };
                    all.extend((1..=count).map(argument));
                }
                None => all.extend(self.fields(text, span, true)?),
            }
        }
        Ok(all)
    }

    /// A word without its quotes, with the values of its variables. With `split`, a value outside quotes may
    /// be several words.
    fn fields(&self, text: &str, span: Range<usize>, split: bool) -> Result<Vec<Expanded>, Problem> {
        let mut done: Vec<String> = Vec::new();
        let mut open: Option<String> = None;
        let mut at = span.start;
        let mut length = 0;
        while at < span.end {
            let left = &text[at..span.end];
            let c = left.chars().next().unwrap_or(' ');
            match c {
                '\'' => {
                    let close = left[1..].find('\'').map_or(left.len() - 1, |close| close);
                    *open.get_or_insert_default() += &left[1..1 + close];
                    at += close + 2;
                }
                // `$"…"` is translated where there are translations.
                '$' if left[1..].starts_with('"') => at += 1,
                '"' => {
                    let close = quote_end(&left[1..]);
                    let inside = self.expand(text, at + 1..at + 1 + close, 0)?;
                    length += inside.len();
                    *open.get_or_insert_default() += &inside;
                    at += close + 2;
                }
                '\\' => {
                    let escaped = left[1..].chars().next();
                    open.get_or_insert_default().extend(escaped);
                    at += 1 + escaped.map_or(0, char::len_utf8);
                }
                '$' | '`' => {
                    let (skip, value) =
                        self.variable(left, 0).map_err(|problem| problem.at(&(at..at + end_of(left))))?;
                    at += skip;
                    length += value.len();
                    let parts = |c: char| split && c.is_ascii_whitespace();
                    for (index, part) in value.split(parts).enumerate() {
                        if index > 0 {
                            done.extend(open.take());
                        }
                        if !part.is_empty() || !split {
                            *open.get_or_insert_default() += part;
                        }
                    }
                }
                c => {
                    open.get_or_insert_default().push(c);
                    at += c.len_utf8();
                }
            }
            if length > LONGEST {
                return Err(too_long().at(&span));
            }
        }
        done.extend(open);
        // The span of a quoted word is what is in the quotes.
        let raw = &text[span.clone()];
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        let whole = quote.is_some_and(|quote| raw.len() > 1 && raw[1..].find(quote) == Some(raw.len() - 2));
        let span = if whole { span.start + 1..span.end - 1 } else { span };
        Ok(done.into_iter().map(|text| Expanded { text, span: span.clone() }).collect())
    }

    /// A part of the text with the values of its variables.
    fn expand(&self, text: &str, span: Range<usize>, depth: usize) -> Result<String, Problem> {
        let mut out = String::new();
        let mut at = span.start;
        while at < span.end {
            let left = &text[at..span.end];
            let Some(dollar) = left.find(['$', '`', '\\']) else {
                out += left;
                break;
            };
            out += &left[..dollar];
            at += dollar;
            let left = &text[at..span.end];
            // Within quotes, too, it continues a line.
            if left.starts_with("\\\n") {
                at += 2;
                continue;
            }
            if let Some(escaped) = left.strip_prefix('\\') {
                let taken = escaped.chars().next().filter(|c| matches!(c, '$' | '`' | '"' | '\\'));
                out.push(taken.unwrap_or('\\'));
                at += 1 + taken.map_or(0, char::len_utf8);
                continue;
            }
            let (length, value) =
                self.variable(left, depth).map_err(|problem| problem.at(&(at..at + end_of(left))))?;
            out += &value;
            at += length;
            if out.len() > LONGEST {
                return Err(too_long().at(&span));
            }
        }
        Ok(out)
    }

    /// The length and value of the variable, calculation or command at the start of a text.
    fn variable(&self, text: &str, depth: usize) -> Result<(usize, String), Problem> {
        if depth > DEEPEST {
            return Err(Problem::new(format!("variables within one another more than {DEEPEST} deep")));
        }
        let bare = text.strip_prefix('$').unwrap_or("");
        if bare.starts_with('(') {
            let end = shell::parenthesis(text, 1);
            let inside = text[2..end].strip_suffix(')').unwrap_or("");
            let calculation = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
            return match calculation {
                Some(calculation) => {
                    let value = arithmetic::value(calculation, &|name| self.named(name, None, depth))?;
                    Ok((end, value.to_string()))
                }
                None => match self.output(inside, depth)? {
                    Some(output) => Ok((end, output)),
                    // One word.
                    None if self.reading.get() == Reading::Name => {
                        Ok((end, text[..end].split_ascii_whitespace().collect::<Vec<_>>().join("_")))
                    }
                    None => Err(not_run(&text[..end])),
                },
            };
        }
        // Bash's former way to calculate.
        if let Some(inside) = bare.strip_prefix('[') {
            let Some(length) = inside.find(']') else { return Err(Problem::new("`$[` without `]`")) };
            let value = arithmetic::value(&inside[..length], &|name| self.named(name, None, depth))?;
            return Ok((length + "$[]".len(), value.to_string()));
        }
        if let Some(command) = text.strip_prefix('`') {
            let end = command.find('`').unwrap_or(command.len());
            let output = self.output(&command[..end], depth)?;
            return Ok((end + 2, output.ok_or_else(|| not_run(&text[..(end + 2).min(text.len())]))?));
        }
        let special = bare.chars().next().filter(|c| matches!(c, '#' | '@' | '*'));
        if let Some((count, special)) = self.arguments.zip(special) {
            let all = || (1..=count).map(|at| self.argument(at)).collect::<Vec<_>>().join(" ");
            return Ok((2, if special == '#' { count.to_string() } else { all() }));
        }
        match (self.reading.get(), special) {
            (_, Some(_)) if self.values.contains_key(COUNT) => return Err(not_run(&text[..2])),
            (Reading::NoArguments, Some('#')) => return Ok((2, "0".into())),
            (Reading::NoArguments, Some(_)) => return Ok((2, String::new())),
            (Reading::Name, Some(special)) => return Ok((2, format!("${special}"))),
            _ => {}
        }
        let (name, default, length) = match bare.strip_prefix('{') {
            Some(braced) => {
                let Some(inside) = in_braces(braced) else { return Err(Problem::new("`${` without `}`")) };
                let name = &inside[..inside.len() - inside.trim_start_matches(is_name).len()];
                let rest = &inside[name.len()..];
                let default = [":-", ":=", "-", "="].into_iter().find_map(|word| rest.strip_prefix(word));
                // Without the colon an empty value counts.
                let is_empty = matches!(self.values.get(name), Some(Value::Text(text)) if text.is_empty());
                let default = default.filter(|_| rest.starts_with(':') || !is_empty);
                let is_plain = rest.is_empty() || rest.starts_with([':', '-', '=']);
                let name =
                    if rest.is_empty() || default.is_some() || is_plain && is_empty { name } else { inside };
                (name, default, inside.len() + 3)
            }
            None => {
                let name = &bare[..bare.len() - bare.trim_start_matches(is_name).len()];
                // One digit alone is an argument: `$10` is `${1}0`.
                let name = if name.starts_with(|c: char| c.is_ascii_digit()) { &name[..1] } else { name };
                (name, None, name.len() + 1)
            }
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(not_run(&text[..end_of(text)]));
        }
        Ok((length, self.named(name, default, depth)?))
    }

    /// The value of a variable, or its default.
    fn named(&self, name: &str, default: Option<&str>, depth: usize) -> Result<String, Problem> {
        let is_argument = name.starts_with(|c: char| c.is_ascii_digit());
        let is_left_out = is_argument && name != "0" && self.arguments.is_some();
        if is_left_out && default.is_none() && !self.values.contains_key(name) {
            return Ok(String::new());
        }
        if matches!(name, "UID" | "EUID") && !self.values.contains_key(name) {
            return Ok(ROOT.to_owned());
        }
        match (self.values.get(name), default, self.reading.get()) {
            (None | Some(Value::Other(ARGUMENT, _)), None, Reading::NoArguments)
                if is_argument || self.values.contains_key(name) =>
            {
                return Ok(String::new());
            }
            (Some(Value::Other(_, of)), None, Reading::Name) => return Ok(format!("${of}")),
            (None, None, Reading::Name) if is_argument => return Ok(format!("${name}")),
            _ => {}
        }
        match (self.values.get(name), default) {
            (Some(Value::Text(value)), _) if !value.is_empty() || default.is_none() => Ok(value.clone()),
            (None | Some(Value::Text(_) | Value::Other(ARGUMENT, _)), Some(default)) => {
                let inside = default.trim_matches('"');
                self.expand(inside, 0..inside.len(), depth + 1)
            }
            (Some(Value::Other(what, _)), _) => {
                let problem = Problem::new(format!("`${name}` has {what} as its value"));
                Err(if *what == ARGUMENT { problem.help(GIVEN) } else { problem }.help(NOT_RUN))
            }
            (None, None) if is_argument => {
                Err(Problem::new(format!("`${name}` is an argument of the script, which has none"))
                    .help(GIVEN)
                    .help(NOT_RUN))
            }
            (_, _) => Err(Problem::new(format!("`${name}` is a variable of a shell that is not set"))
                .help(format!("set it above, as in: {name}=eth0"))),
        }
    }

    /// What a command prints, for the few whose output depends on their words alone.
    fn output(&self, command: &str, depth: usize) -> Result<Option<String>, Problem> {
        let expanded = self.expand(command, 0..command.len(), depth + 1)?;
        let mut words = expanded.split_ascii_whitespace();
        let program = words.next();
        let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\''])).collect();
        let said: Vec<&str> = words.iter().copied().filter(|word| !word.contains('>')).collect();
        match (program, &said[..]) {
            // Wherever a program is, its name tells which one is meant.
            (Some("which"), [name])
            | (Some("command"), ["-v", name])
            | (Some("type"), ["-p" | "-P", name]) => {
                return Ok(Some((*name).to_owned()));
            }
            (Some("id"), ["-u"]) => return Ok(Some(ROOT.to_owned())),
            _ => {}
        }
        match program {
            Some("seq") => {
                let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
                Ok(match numbers.as_deref() {
                    Some([last]) => Some(counted(1, 1, *last)?),
                    Some([first, last]) => Some(counted(*first, 1, *last)?),
                    Some([first, step, last]) => Some(counted(*first, *step, *last)?),
                    _ => None,
                })
            }
            Some("jot") => {
                // How many, from which one on: `jot 3`, `jot 3 5`, `jot - 5 7`.
                let number = |at: usize| words.get(at).map_or(Ok(1), |word| word.parse::<i64>()).ok();
                Ok(match (&words[..], number(0), number(1), number(2)) {
                    (["-", _, _], _, Some(first), Some(last)) => Some(counted(first, 1, last)?),
                    ([_] | [_, _], Some(count), Some(first), _) => {
                        Some(counted(first, 1, first.saturating_add(count).saturating_sub(1))?)
                    }
                    _ => None,
                })
            }
            Some("expr") => {
                let text = words.join(" ").replace('\\', "");
                arithmetic::value(&text, &|name| self.named(name, None, depth))
                    .map(|value| Some(value.to_string()))
            }
            Some("echo")
                if !words
                    .iter()
                    .any(|word| word.contains(['|', '<', '>', ';', '&']) || word.starts_with('-')) =>
            {
                Ok(Some(words.join(" ")))
            }
            _ => Ok(None),
        }
    }
}

/// Scripts that configure networks run as root.
const ROOT: &str = "0";

/// What a command calculates.
enum Inside<'a> {
    /// The words behind so many bytes.
    Words(usize),
    One(&'a str),
}

/// The calculations of `let …` or `((…))`, if a command is one of these.
fn calculations(command: &str) -> Option<Inside<'_>> {
    if command.starts_with("let ") {
        return Some(Inside::Words("let".len()));
    }
    Some(Inside::One(command.trim_end().strip_prefix("((")?.strip_suffix("))")?))
}

/// The variable that a calculation sets, and the calculation of its value.
fn assignment(text: &str) -> Option<(&str, String)> {
    let name = |text: &str| !text.is_empty() && text.chars().all(is_name);
    for (sign, by) in [("++", "+1"), ("--", "-1")] {
        let around = text.strip_suffix(sign).or_else(|| text.strip_prefix(sign)).map(str::trim);
        if let Some(around) = around.filter(|around| name(around)) {
            return Some((around, format!("{around}{by}")));
        }
    }
    let (left, value) = text.split_once('=')?;
    let left = left.trim_end();
    match left.strip_suffix(['+', '-', '*', '/', '%']).map(str::trim_end) {
        Some(bare) if name(bare) => {
            let operator = &left[left.len() - 1..];
            Some((bare, format!("{bare}{operator}({value})")))
        }
        _ => name(left).then(|| (left, value.to_owned())),
    }
}

fn too_long() -> Problem {
    Problem::new(format!("variables of more than {LONGEST} bytes"))
}

/// Where a text in quotes ends that have been opened: those within `${…}` are its own.
fn quote_end(text: &str) -> usize {
    let mut deep = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '"' if deep == 0 => return at,
            '{' if text[..at].ends_with('$') => deep += 1,
            '}' => deep = deep.saturating_sub(1),
            _ => {}
        }
    }
    text.find('"').unwrap_or(text.len())
}

const GIVEN: &str = "a tc script gets arguments behind its name: narrows tc check SCRIPT ARG…";
const NOT_RUN: &str = "scripts are read and not run: write the value itself, or use `narrows tc commands` (`narrows ipfw commands`)";

fn not_run(text: &str) -> Problem {
    Problem::new(format!("{} is a command or an expansion of a shell", Found(text))).help(NOT_RUN)
}

/// Numbers from the first to the last.
pub(crate) fn counted(first: i64, step: i64, last: i64) -> Result<String, Problem> {
    let most = last.checked_sub(first).and_then(|span| span.checked_div(step)?.checked_add(1));
    let Some(most) = most.filter(|most| *most <= MOST_NUMBERS) else {
        return Err(Problem::new(format!("more than {MOST_NUMBERS} numbers")));
    };
    let numbers: Vec<String> = (0..most.max(0)).map(|index| (first + index * step).to_string()).collect();
    Ok(numbers.join(" "))
}

/// What is in braces that are open.
fn in_braces(text: &str) -> Option<&str> {
    let mut deep = 1;
    for (at, c) in text.char_indices() {
        match c {
            '{' => deep += 1,
            '}' => deep -= 1,
            _ => {}
        }
        if deep == 0 {
            return Some(&text[..at]);
        }
    }
    None
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The length of an assigned value: up to white space outside quotes and parentheses.
fn value_length(text: &str) -> usize {
    let (mut quote, mut deep) = (None, 0_u32);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(') => deep += 1,
            (None, ')') => deep = deep.saturating_sub(1),
            (None, c) if c.is_whitespace() && deep == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// Where an expansion that is not understood ends, for its error.
fn end_of(text: &str) -> usize {
    text.find([' ', '\t', '\n', '"']).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(problem: Problem) -> String {
        crate::ScenarioError::new("", "", vec![problem]).to_string()
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut variables = Variables::default();
        let mut last = Vec::new();
        for piece in shell::pieces(text).unwrap() {
            let rest = variables.assign(text, piece.span).map_err(said)?;
            let words = variables.words(text, rest).map_err(said)?;
            last = words.into_iter().map(|word| word.text).collect();
        }
        Ok(last)
    }

    #[test]
    fn variables_have_their_last_value() {
        for (text, words) in [
            ("A=b\nx $A", &["x", "b"][..]),
            ("A='b c'\nx $A \"$A\" '$A'", &["x", "b", "c", "b c", "$A"]),
            ("export A=1 B=\"${A}2\"\nx $B${A}", &["x", "121"]),
            ("A=1\nA=2; x dev$A", &["x", "dev2"]),
            ("x ${A:-eth0}", &["x", "eth0"]),
            ("x ${1:-eth0} ${2-${A:-b}}", &["x", "eth0", "b"]),
            ("A=${1:-eth0}\nx $A", &["x", "eth0"]),
            ("A=3\nx 1:$((A * 2 + 1)) $(( 1 + 1 ))", &["x", "1:7", "2"]),
            ("A=$((1 + 2))\nx $A", &["x", "3"]),
            ("A=30\nx $[9*$A/10]kbit", &["x", "27kbit"]),
            ("x $(seq 2 4) `seq 2`", &["x", "2", "3", "4", "1", "2"]),
            ("A=2\nx `expr $A \\* 3` $(echo a \"b\")", &["x", "6", "a", "b"]),
            ("A='b c'\nx d\"$A\"e 1:\"2\" 'f'g \\$A", &["x", "db ce", "1:2", "fg", "$A"]),
            ("A=1\nA+=2 B+=c\nx $A$B", &["x", "12c"]),
            ("A=6\nlet B=60*$A/100 C=\"A + 1\"\n((D = C * 2))\nx $B $C $D", &["x", "3", "7", "14"]),
            ("A=1 B=5\n((A++)); ((B -= A * 2))\nlet --A\nx $A $B $\"c $A\"", &["x", "1", "1", "c 1"]),
            ("A=\"b \\\n c\"\nx $A", &["x", "b", "c"]),
            ("x \"${A:=\"b\"}\" \"${A:-}\"c", &["x", "b", "c"]),
            (
                "A=$(which tc) B=`command -v ipfw 2>/dev/null`\n$A $B $(id -u) $EUID",
                &["tc", "ipfw", "0", "0"],
            ),
            ("A=1 x $B", &[][..]),
            ("export A\nexport B=$(ls -l)\nx", &["x"]),
        ] {
            match words {
                [] => {
                    assert!(read(text).unwrap_err().contains("`$B` is a variable of a shell that is not set"))
                }
                _ => assert_eq!(
                    read(text).as_deref(),
                    Ok(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                    "{text}"
                ),
            }
        }
    }

    #[test]
    fn values_that_are_not_in_the_script_as_names() {
        for (text, words) in [
            ("A=$(ip route) B=\"$A\" C=${B}\nx $A \"$B.10\" $C", &["x", "$A", "$A.10", "$A"][..]),
            ("A=$1 B=${1}\nx ${A} $2 $B $1", &["x", "$1", "$2", "$1", "$1"]),
            ("A=$(ip route)\nx ${A:-b}", &[]),
        ] {
            let mut variables = Variables::default();
            let mut found = Vec::new();
            for piece in shell::pieces(text).unwrap() {
                let rest = variables.assign(text, piece.span).unwrap();
                found = variables.words_with_names(text, rest).unwrap_or_default();
            }
            assert_eq!(found.iter().map(Expanded::text).collect::<Vec<_>>(), words, "{text}");
        }
    }

    #[test]
    fn arguments_that_are_not_there() {
        let mut variables = Variables::default();
        let text = "A=$1\nx \"$A\" \"$2\" $# $@ ${3:-b}";
        let mut found = Vec::new();
        for piece in shell::pieces(text).unwrap() {
            let rest = variables.assign(text, piece.span).unwrap();
            found = variables.words_without_arguments(text, rest).unwrap_or_default();
        }
        assert_eq!(found.iter().map(Expanded::text).collect::<Vec<_>>(), ["x", "", "", "0", "b"]);
    }

    #[test]
    fn values_that_are_not_in_the_script() {
        for (text, error) in [
            ("A=$(ip route)\nx $A", "`$A` has the output of a command as its value"),
            ("A=`ls`\nx $A", "`$A` has the output of a command as its value"),
            ("x $1", "`$1` is an argument of the script"),
            ("x $(date)", "`$(date)` is a command or an expansion of a shell"),
            ("A=$1\nx $A", "`$A` has an argument of the script as its value"),
            ("x $((1/0))", "has no value"),
            ("x $(seq 99999999)", "more than 65536 numbers"),
            ("x ${A", "`${` without `}`"),
            ("let A", "assigns no variable"),
            ("let A=b", "`$b` is a variable of a shell that is not set"),
            ("x ${A#b}", "is a command or an expansion of a shell"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }

    #[test]
    fn values_do_not_grow_without_bound() {
        let mut text = "A=aaaaaaaaaaaaaaaa\n".to_owned();
        (0..40).for_each(|_| text += "A=$A$A\n");
        assert!(read(&text).unwrap_err().contains("bytes"));
    }
}
