//! Commands of the shell itself.

use std::collections::BTreeMap;
use std::ops::Range;

use super::KEEP;
use super::field::{Expanded, Field, How};
use super::parser::is_assignment;
use super::printf;
use super::scan::{self, byte, is_variable, name_length};
use super::state::{Flow, InputLine, Place, Runner, Status};
use super::values::{Missing, Scalar, Value};
use crate::problem::{Found, Problem};

/// The maximum length of a value that grows by `+=`.
const LONGEST: usize = 1 << 16;
/// Where `getopts` is within a word of several flags.
const POSITION: &str = "OPTIND within its word";

impl Runner<'_> {
    /// Executes a command of the shell; `None` for other commands.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        all: &[Expanded],
        words: &[Range<usize>],
        span: &Range<usize>,
    ) -> Option<Flow> {
        let second = all.get(1).map(Expanded::text);
        match name {
            "exit" => return Some(Flow::Exit),
            "return" => {
                if let Some(status) = second {
                    self.status = match status.parse::<u8>() {
                        Ok(status) => Status::Known(status),
                        Err(_) if status.starts_with("$?") => Status::Assumed,
                        Err(_) => Status::QUESTION,
                    };
                }
                return Some(Flow::Return);
            }
            "break" | "continue" => {
                let levels = second.and_then(|levels| levels.parse().ok()).unwrap_or(1).max(1);
                return Some(if name == "break" { Flow::Break(levels) } else { Flow::Continue(levels) });
            }
            "true" | ":" if self.output.is_none() => self.status = Status::SUCCESS,
            "false" => self.status = Status::FAILURE,
            "[" | "test" => self.status = self.tested(all, words),
            "command" | "type" | "hash"
                if self.output.is_none()
                    && (name != "command" || second.is_some_and(|second| second.starts_with('-'))) =>
            {
                self.status = Status::SUCCESS;
            }
            "command" | "builtin" if second.is_some_and(|second| !second.starts_with('-')) => {
                return Some(match (second, &all[1..]) {
                    (Some(name), rest) if name != "command" => {
                        match self.builtin(name, rest, &words[1..], span) {
                            Some(flow) => flow,
                            None => self.program(rest, span),
                        }
                    }
                    (_, rest) => self.program(rest, span),
                });
            }
            "exec" if all.len() == 1 => self.status = Status::SUCCESS,
            "." | "source" => {
                let file = all.get(1).filter(|word| word.unknown.is_none())?;
                let text = self.beside(&file.text)?;
                let place = Place::Whole(self.place(span));
                return Some(match self.eval(text, place) {
                    Flow::Return => Flow::On,
                    flow => flow,
                });
            }
            "cd" if self.output.is_some() => {
                let folder = all.get(1).filter(|word| word.unknown.is_none() && !word.text.starts_with('-'));
                let folder = match folder {
                    Some(folder) => Scalar::Text(folder.text.clone()),
                    None => Scalar::Missing(Missing::Output, "PWD".to_owned()),
                };
                self.values.set("PWD", folder);
                self.status = Status::SUCCESS;
            }
            "pwd" if self.output.is_some() && matches!(self.values.scalar("PWD"), Some(Scalar::Text(_))) => {
                if let (Some(output), Some(Scalar::Text(folder))) =
                    (&mut self.output, self.values.scalar("PWD"))
                {
                    output.text += &format!("{folder}\n");
                }
                self.status = Status::SUCCESS;
            }
            "set" => return self.set(all, span),
            "shift" => self.shift(second),
            "export" | "local" | "declare" | "typeset" | "readonly" => self.declare(name, words, span),
            "let" => {
                for word in &all[1..] {
                    let field = match &word.unknown {
                        Some(unknown) => Field { text: String::new(), unknown: Some(unknown.clone()) },
                        None => match self.calculate(&word.text) {
                            Ok(value) => Field::known(value.to_string()),
                            Err(field) => field,
                        },
                    };
                    self.status_of_calculation(field, span);
                }
            }
            "unset" => {
                for word in &all[1..] {
                    match word.text.split_once('[') {
                        Some((name, index)) => self.unset_at(name, index.trim_end_matches(']')),
                        None if !word.text.starts_with('-') => self.values.unset(&word.text),
                        None => {}
                    }
                }
                self.status = Status::SUCCESS;
            }
            "read" => self.read(&all[1..]),
            "mapfile" | "readarray" => self.read_lines(&all[1..]),
            "getopts" => self.getopts(&all[1..], span),
            "printf" if second == Some("-v") => self.print_to(&all[2..]),
            "eval" => {
                if let Some(word) = all.iter().find(|word| word.unknown.is_some()) {
                    let (problem, span) = (word.problem().cloned(), word.span.clone());
                    problem.into_iter().for_each(|problem| self.wrong(problem, &span));
                    return Some(Flow::On);
                }
                let text = all[1..].iter().map(Expanded::text).collect::<Vec<_>>().join(" ");
                let place = Place::Whole(self.place(span));
                return Some(self.eval(text, place));
            }
            _ => return None,
        }
        Some(Flow::On)
    }

    /// `set -e`, `set -- A B`; `None` for what another program calls `set`.
    fn set(&mut self, all: &[Expanded], _: &Range<usize>) -> Option<Flow> {
        let mut rest = all.get(1..).unwrap_or_default();
        self.status = Status::SUCCESS;
        while let Some((first, behind)) = rest.split_first() {
            let text = first.text.as_str();
            let Some(flags) = text.strip_prefix(['-', '+']).filter(|_| first.unknown.is_none()) else {
                break;
            };
            rest = behind;
            if matches!(flags, "" | "-") {
                self.set_arguments(rest);
                return Some(Flow::On);
            }
            let mut exits = flags.contains('e');
            if flags.ends_with('o')
                && let Some((option, behind)) = rest.split_first()
            {
                exits |= option.text == "errexit";
                rest = behind;
            }
            if exits {
                self.exits_on_failure = text.starts_with('-');
            }
        }
        if rest.is_empty() {
            return Some(Flow::On);
        }
        // Without `--` it may be a command of ipfw, where nothing has set arguments.
        if self.values.arguments().is_none() && all.len() == rest.len() + 1 {
            return None;
        }
        self.set_arguments(rest);
        Some(Flow::On)
    }

    fn set_arguments(&mut self, words: &[Expanded]) {
        let is_known = words.iter().all(|word| word.unknown.is_none());
        let scalars = words.iter().map(|word| Scalar::Text(word.text.clone())).collect();
        self.values.set_arguments(is_known.then_some(scalars));
        self.values.set_unclear(!is_known);
    }

    fn shift(&mut self, count: Option<&str>) {
        let count = count.map_or(Some(1), |count| count.parse::<usize>().ok());
        let Some(arguments) = self.values.arguments() else {
            self.status = Status::Assumed;
            return;
        };
        // With too few arguments it fails, and they stay.
        match count.and_then(|count| arguments.get(count..)).map(<[Scalar]>::to_vec) {
            Some(left) => {
                self.values.set_arguments(Some(left));
                self.status = Status::SUCCESS;
            }
            None => self.status = Status::FAILURE,
        }
    }

    /// `local A=1`, `declare -A B`, `export C`.
    fn declare(&mut self, name: &str, words: &[Range<usize>], span: &Range<usize>) {
        self.status = Status::SUCCESS;
        let is_local = matches!(name, "local" | "declare" | "typeset");
        let source = self.source.clone();
        let (mut is_map, mut is_list, mut is_global) = (false, false, false);
        for word in words.get(1..).unwrap_or_default() {
            let raw = &source.text[word.clone()];
            if raw.starts_with(['-', '+']) {
                is_map |= raw.contains('A');
                is_list |= raw.contains('a');
                is_global |= raw.contains('g');
                if raw.contains('n') && is_local {
                    let span = self.place(span);
                    let problem = Problem::new("a name for another variable is not understood").help(KEEP);
                    return self.wrong(problem, &span);
                }
                continue;
            }
            let raw = match is_assignment(raw) {
                true => raw.to_owned(),
                false => self.one(word, How::One).text,
            };
            let own = raw[..name_length(&raw)].to_owned();
            if own.is_empty() {
                continue;
            }
            let is_new = is_local && !is_global && self.values.is_function();
            let before = self.values.get(&own).cloned();
            if is_new {
                self.values.make_local(&own);
            }
            let is_assigned = is_assignment(&raw);
            if is_assigned {
                let place = self.source.place.at(word.start);
                // The value may be of the outer one with its name.
                self.assign(&raw, &place, is_map);
                continue;
            }
            let empty = match (is_map, is_list) {
                (true, _) => Value::Map(BTreeMap::new()),
                (_, true) => Value::List(BTreeMap::new()),
                _ => Value::Unset,
            };
            let is_kind = matches!(
                (&before, is_map, is_list),
                (Some(Value::Map(_)), true, _) | (Some(Value::List(_)), _, true)
            );
            if is_new || is_local && before.is_none() || (is_map || is_list) && !is_kind {
                self.values.put(&own, empty);
            }
        }
    }

    /// `NAME=VALUE`, `NAME+=VALUE`, `NAME[…]=VALUE`, `NAME=(…)`.
    pub(super) fn assign(&mut self, raw: &str, place: &Place, is_map: bool) {
        let name = &raw[..name_length(raw)];
        let mut rest = &raw[name.len()..];
        let mut index = None;
        if rest.starts_with('[')
            && let Some(close) = rest.find(']')
        {
            index = Some((&rest[1..close], place.at(name.len() + 1)));
            rest = &rest[close + 1..];
        }
        let appends = rest.starts_with("+=");
        let value = &rest[if appends { 2 } else { 1 }.min(rest.len())..];
        let place = place.at(raw.len() - value.len());
        if value.starts_with('(') && index.is_none() {
            return self.assign_list(name, value, &place, appends, is_map);
        }
        let field = self.expand_one(value, &place, How::One);
        let span = place.of(&(0..value.len()));
        let Some(mut scalar) = self.assigned(field, name, &span) else { return };
        match index {
            None => {
                if appends {
                    let before = self.values.scalar(name).cloned().unwrap_or(Scalar::empty());
                    scalar = self.appended(before, scalar, &span);
                }
                self.values.set(name, scalar);
            }
            Some((index, place)) => self.set_element(name, index, &place, scalar, appends),
        }
    }

    fn set_element(&mut self, name: &str, index: &str, place: &Place, mut scalar: Scalar, appends: bool) {
        let span = place.of(&(0..index.len()));
        if let Some(Value::Map(map)) = self.values.get(name) {
            let before = if appends { map.clone() } else { BTreeMap::new() };
            let key = self.expand_one(index, place, How::One);
            if let Some(unknown) = key.unknown {
                return self.wrong(unknown.problem, &span);
            }
            if appends {
                let before = before.get(&key.text).cloned().unwrap_or(Scalar::empty());
                scalar = self.appended(before, scalar, &span);
            }
            return self.values.set_key(name, key.text, scalar);
        }
        let at = self.calculated(index, place);
        match (at.unknown, at.text.parse::<i64>()) {
            (None, Ok(at)) => self.values.set_at(name, at, scalar),
            (Some(unknown), _) => self.wrong(unknown.problem, &span),
            (None, Err(_)) => self.wrong(Problem::new(format!("{} is no index", Found(index))), &span),
        }
    }

    fn appended(&mut self, before: Scalar, behind: Scalar, span: &Range<usize>) -> Scalar {
        match (before, behind) {
            (Scalar::Text(before), Scalar::Text(behind)) => {
                if before.len() + behind.len() > LONGEST {
                    self.wrong(Problem::new(format!("variables of more than {LONGEST} bytes")), span);
                    return Scalar::Text(before);
                }
                Scalar::Text(before + &behind)
            }
            (missing @ Scalar::Missing(..), _) | (_, missing) => missing,
        }
    }

    /// What is assigned, as far as it is known; `None` if it is wrong.
    fn assigned(&mut self, field: Field, name: &str, span: &Range<usize>) -> Option<Scalar> {
        let Some(unknown) = field.unknown else { return Some(Scalar::Text(field.text)) };
        if !self.is_unclear(&unknown) {
            self.wrong(unknown.problem, span);
            return None;
        }
        let word = Expanded { text: field.text, span: span.clone(), unknown: Some(unknown), vanishes: false };
        Some(self.scalar(&word, name))
    }

    /// `NAME=(A B [KEY]=C)`
    fn assign_list(&mut self, name: &str, value: &str, place: &Place, appends: bool, is_map: bool) {
        let is_map = is_map || matches!(self.values.get(name), Some(Value::Map(_)));
        let inside = value.strip_prefix('(').unwrap_or(value);
        let inside = inside.strip_suffix(')').unwrap_or(inside);
        let place = place.at(1);
        let before = self.values.take(name).filter(|_| appends);
        let mut next = 0;
        match before {
            Some(Value::List(list)) => {
                next = list.keys().next_back().map_or(0, |last| last + 1);
                self.values.put(name, Value::List(list));
            }
            Some(Value::One(one)) => {
                next = 1;
                self.values.put(name, Value::List(BTreeMap::from([(0, one)])));
            }
            Some(map @ Value::Map(_)) => self.values.put(name, map),
            _ if is_map => self.values.put(name, Value::Map(BTreeMap::new())),
            _ => self.values.put(name, Value::List(BTreeMap::new())),
        }
        let mut at = 0;
        while at < inside.len() {
            let c = byte(inside, at);
            if c.is_ascii_whitespace() {
                at += 1;
                continue;
            }
            if c == b'#' {
                at += inside[at..].find('\n').unwrap_or(inside.len() - at);
                continue;
            }
            let end = scan::word(inside, at, false).unwrap_or(inside.len());
            let end = end.max(at + scan::char_length(inside, at)).min(inside.len());
            let raw = inside[at..end].to_owned();
            let own = place.at(at);
            at = end;
            let span = own.of(&(0..raw.len()));
            let keyed = raw.strip_prefix('[').and_then(|rest| rest.split_once("]="));
            if let Some((index, value)) = keyed {
                let field = self.expand_one(value, &own.at(raw.len() - value.len()), How::One);
                if let Some(scalar) = self.assigned(field, name, &span) {
                    self.set_element(name, index, &own.at(1), scalar, false);
                }
                continue;
            }
            let source = std::mem::replace(
                &mut self.source,
                std::rc::Rc::new(super::state::Source { text: raw.clone(), place: own }),
            );
            let mut words = Vec::new();
            self.words(&(0..raw.len()), &mut words);
            self.source = source;
            for word in words {
                let scalar = self.scalar(&word, name);
                self.values.set_at(name, next, scalar);
                next += 1;
            }
        }
    }

    fn unset_at(&mut self, name: &str, index: &str) {
        match self.values.take(name) {
            Some(Value::List(mut list)) => {
                index.parse().iter().for_each(|index| drop(list.remove(index)));
                self.values.put(name, Value::List(list));
            }
            Some(Value::Map(mut map)) => {
                map.remove(index);
                self.values.put(name, Value::Map(map));
            }
            Some(other) => self.values.put(name, other),
            None => {}
        }
    }

    /// `read A B`
    fn read(&mut self, words: &[Expanded]) {
        let mut names = Vec::new();
        let (mut list, mut keeps_backslash) = (None, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.text.strip_prefix('-') {
                Some(flags) if names.is_empty() => {
                    keeps_backslash |= flags.contains('r');
                    if flags.ends_with(['p', 't', 'n', 'N', 'd', 'u', 'i', 'a']) {
                        let value = rest.next().map(|word| word.text.clone());
                        if flags.ends_with('a') {
                            list = value;
                        }
                    }
                }
                _ => names.push(word.text.clone()),
            }
        }
        if names.is_empty() && list.is_none() {
            names.push("REPLY".to_owned());
        }
        let Some(lines) = &mut self.input else {
            for name in names.into_iter().chain(list) {
                self.values.put(&name, Value::One(Scalar::Missing(Missing::Input, name.clone())));
            }
            self.status = Status::Unknown { is_condition: true };
            return;
        };
        let line = lines.pop_front();
        self.status = Status::of(line.is_some());
        if line.as_ref().is_some_and(|line| line.unknown.is_some()) {
            for name in names.into_iter().chain(list) {
                self.values.put(&name, Value::One(Scalar::Missing(Missing::Output, name.clone())));
            }
            return;
        }
        let text = line.map(|line| line.text).unwrap_or_default();
        let text = if keeps_backslash { text } else { text.replace('\\', "") };
        let separators: Vec<char> = match self.values.scalar("IFS") {
            Some(Scalar::Text(text)) => text.chars().collect(),
            _ => vec![' ', '\t', '\n', '\r'],
        };
        let is_blank = |c: char| separators.contains(&c) && c.is_whitespace();
        let mut left = text.trim_matches(is_blank);
        let mut parts: Vec<String> = Vec::new();
        let most = if list.is_some() { usize::MAX } else { names.len() };
        while !left.is_empty() && parts.len() + 1 < most {
            let end = left.find(|c| separators.contains(&c)).unwrap_or(left.len());
            parts.push(left[..end].to_owned());
            left = left[end..].trim_start_matches(is_blank);
            if let Some(c) = left.chars().next().filter(|c| separators.contains(c) && !c.is_whitespace()) {
                left = left[c.len_utf8()..].trim_start_matches(is_blank);
            }
        }
        if !left.is_empty() {
            parts.push(left.to_owned());
        }
        match list {
            Some(list) => {
                let all = (0..).zip(parts.into_iter().map(Scalar::Text)).collect();
                self.values.put(&list, Value::List(all));
            }
            None => {
                let mut parts = parts.into_iter();
                for name in names {
                    self.values.set(&name, Scalar::Text(parts.next().unwrap_or_default()));
                }
            }
        }
    }

    /// `mapfile -t A`
    fn read_lines(&mut self, words: &[Expanded]) {
        let name = words.iter().rev().map(Expanded::text).find(|word| is_variable(word)).unwrap_or("MAPFILE");
        let value = match self.input.take() {
            Some(lines) => Value::List(
                (0..).zip(lines.into_iter().map(|line: InputLine| Scalar::Text(line.text))).collect(),
            ),
            None => Value::One(Scalar::Missing(Missing::Input, name.to_owned())),
        };
        self.values.put(name, value);
        self.status = Status::SUCCESS;
    }

    /// `printf -v NAME FORMAT WORDS`
    fn print_to(&mut self, words: &[Expanded]) {
        let Some((name, rest)) = words.split_first() else { return };
        let texts: Vec<&str> = rest.iter().map(Expanded::text).collect();
        let is_known = rest.iter().all(|word| word.unknown.is_none());
        let text = texts.split_first().and_then(|(format, words)| printf::formatted(format, words));
        let value = match text.filter(|_| is_known) {
            Some(text) => Scalar::Text(text),
            None => Scalar::Missing(Missing::Output, name.text.clone()),
        };
        self.values.set(&name.text, value);
        self.status = Status::SUCCESS;
    }

    /// `getopts FLAGS NAME`: the next flag of the arguments (POSIX.1-2017, getopts).
    fn getopts(&mut self, words: &[Expanded], span: &Range<usize>) {
        let [flags, name, own @ ..] = words else {
            let span = self.place(span);
            return self.wrong(Problem::new("`getopts` without flags and a variable"), &span);
        };
        let arguments: Option<Vec<Scalar>> = match own {
            [] => self.values.arguments().map(<[Scalar]>::to_vec),
            own => Some(own.iter().map(|word| self.scalar(word, "")).collect()),
        };
        let Some(arguments) = arguments else {
            self.status = match self.values.is_unclear() {
                true => Status::QUESTION,
                false => Status::WithoutArguments(1),
            };
            return;
        };
        let number = |runner: &Self, name: &str| match runner.values.scalar(name) {
            Some(Scalar::Text(text)) => text.parse::<usize>().ok(),
            _ => None,
        };
        let index = number(self, "OPTIND").unwrap_or(1).max(1);
        let position = number(self, POSITION).unwrap_or(1).max(1);
        let set = |runner: &mut Self, name: &str, value: String| runner.values.set(name, Scalar::Text(value));
        let ended = |runner: &mut Self, index: usize| {
            set(runner, "OPTIND", index.to_string());
            set(runner, POSITION, "1".to_owned());
            set(runner, &name.text, "?".to_owned());
            runner.status = Status::FAILURE;
        };
        let word = match arguments.get(index - 1) {
            Some(Scalar::Text(word)) if word == "--" => return ended(self, index + 1),
            Some(Scalar::Text(word)) if word.len() > 1 && word.starts_with('-') => word.clone(),
            _ => return ended(self, index),
        };
        let chars: Vec<char> = word.chars().collect();
        let flag = chars.get(position).copied().unwrap_or('?');
        let (mut next, mut next_position) =
            if position + 1 < chars.len() { (index, position + 1) } else { (index + 1, 1) };
        let is_silent = flags.text.starts_with(':');
        let known = flags.text.trim_start_matches(':');
        let at = known.find(flag).filter(|_| flag != ':');
        let takes = at.is_some_and(|at| known[at + flag.len_utf8()..].starts_with(':'));
        let mut found = flag.to_string();
        self.values.unset("OPTARG");
        match (at, takes) {
            (Some(_), false) => {}
            (Some(_), true) => {
                let value = match position + 1 < chars.len() {
                    true => Some(Scalar::Text(chars[position + 1..].iter().collect())),
                    false => {
                        next += 1;
                        arguments.get(index).cloned()
                    }
                };
                if position + 1 < chars.len() {
                    next = index + 1;
                }
                next_position = 1;
                match value {
                    Some(value) => self.values.put("OPTARG", Value::One(value)),
                    None if is_silent => {
                        self.values.put("OPTARG", Value::One(Scalar::Text(found.clone())));
                        found = ":".to_owned();
                    }
                    None => found = "?".to_owned(),
                }
            }
            (None, _) => {
                if is_silent {
                    self.values.put("OPTARG", Value::One(Scalar::Text(found.clone())));
                }
                found = "?".to_owned();
            }
        }
        set(self, "OPTIND", next.to_string());
        set(self, POSITION, next_position.to_string());
        set(self, &name.text, found);
        self.status = Status::SUCCESS;
    }
}
