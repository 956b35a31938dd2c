//! Commands of the shell itself.

use std::collections::BTreeMap;
use std::ops::Range;

use super::KEEP;
use super::field::{Expanded, Field, How};
use super::parser::is_assignment;
use super::place::Place;
use super::printf;
use super::scan::{self, byte, is_variable, name_length};
use super::state::{Flow, InputLine, Runner, Status};
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
            "return" if !self.values.is_function() && self.sourced == 0 => self.status = Status::Known(2),
            "exit" | "return" => {
                if let Some(status) = second {
                    self.status = match status.parse::<i64>() {
                        Ok(status) => Status::Known(status.rem_euclid(256) as u8),
                        // It is the one of before.
                        Err(_) if status == "$?" => self.status,
                        Err(_) => Status::QUESTION,
                    };
                }
                return Some(if name == "exit" { Flow::Exit } else { Flow::Return });
            }
            // Outside loops they do nothing.
            "break" | "continue" if self.loops == 0 => self.status = Status::SUCCESS,
            "break" | "continue" => {
                let levels =
                    second.map_or(Some(1), |levels| levels.parse().ok().filter(|levels| *levels > 0));
                let Some(levels) = levels.map(|levels: usize| levels.min(self.loops)) else {
                    let span = self.place(span);
                    self.wrong(Problem::new(format!("`{name}` without a number of loops")), &span);
                    return Some(Flow::On);
                };
                self.status = Status::SUCCESS;
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
            "command" | "builtin" if second.is_some_and(|second| matches!(second, "command" | "builtin")) => {
                let span = self.place(span);
                self.wrong(Problem::new(format!("`{name}` before another one is not understood")), &span);
            }
            "command" | "builtin" if second.is_some_and(|second| !second.starts_with('-')) => {
                return Some(match (second, &all[1..]) {
                    (Some(name), rest) if name != "command" => {
                        match self.builtin(name, rest, words.get(1..).unwrap_or_default(), span) {
                            Some(flow) => flow,
                            None => self.program(rest, span),
                        }
                    }
                    (_, rest) => self.program(rest, span),
                });
            }
            "exec" if all.len() == 1 => self.status = Status::SUCCESS,
            // A program takes the place of the shell.
            "exec" if second.is_some_and(|second| !second.starts_with('{')) => {
                self.program(all, span);
                return Some(Flow::Exit);
            }
            "." | "source" => {
                let file = all.get(1).filter(|word| word.unknown.is_none())?;
                let text = self.beside(&file.text)?;
                let place = Place::Whole(self.place(span));
                self.sourced += 1;
                let flow = self.eval(text, place);
                self.sourced -= 1;
                return Some(if flow == Flow::Return { Flow::On } else { flow });
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
                let is_function = second.is_some_and(|flags| flags.starts_with('-') && flags.contains('f'));
                for word in &all[1..] {
                    if is_function || self.values.get(&word.text).is_none() {
                        std::rc::Rc::make_mut(&mut self.functions).remove(&word.text);
                    }
                    match word.text.split_once('[').filter(|_| !is_function) {
                        Some((name, index)) => self.unset_at(name, index.trim_end_matches(']')),
                        None if !word.text.starts_with('-') && !is_function => self.values.unset(&word.text),
                        None => {}
                    }
                }
                self.status = Status::SUCCESS;
            }
            "read" => self.read(&all[1..], span),
            "mapfile" | "readarray" => self.read_lines(&all[1..], span),
            "getopts" => self.getopts(&all[1..], span),
            "printf" if second == Some("-v") => self.print_to(&all[2..]),
            "eval" => {
                if let Some(word) = all.iter().find(|word| word.unknown.is_some()) {
                    let (problem, span) = (word.problem().cloned(), word.span.clone());
                    problem.into_iter().for_each(|problem| self.wrong(problem, &span));
                    return Some(Flow::On);
                }
                let text = all[1..].iter().map(Expanded::text).collect::<Vec<_>>().join(" ");
                if text.trim().is_empty() {
                    self.status = Status::SUCCESS;
                }
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
            let mut option = "";
            if flags.ends_with('o')
                && let Some((first, behind)) = rest.split_first()
            {
                option = first.text.as_str();
                rest = behind;
            }
            let is_on = text.starts_with('-');
            if flags.contains('e') || option == "errexit" {
                self.exits_on_failure = is_on;
            }
            if flags.contains('u') || option == "nounset" {
                self.exits_on_unset = is_on;
            }
            if option == "pipefail" {
                self.fails_in_pipes = is_on;
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
        let length = arguments.len();
        self.take_steps(length / 256);
        let arguments = self.values.arguments().unwrap_or_default();
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
        let is_local = matches!(name, "local" | "declare" | "typeset");
        let source = self.source.clone();
        let (mut flags, mut all) = (String::new(), Vec::new());
        for word in words.get(1..).unwrap_or_default() {
            let raw = &source.text[word.clone()];
            if raw.starts_with(['-', '+']) {
                flags += raw;
                continue;
            }
            // All values are those from before the command.
            if is_assignment(raw) {
                let assignment = self.assignment(raw, &source.place.at(word.start));
                all.push((
                    raw[..name_length(raw)].to_owned(),
                    Some((raw.to_owned(), word.clone(), assignment)),
                ));
                continue;
            }
            let mut fields = Vec::new();
            self.words(word, &mut fields);
            for field in fields {
                let own = &field.text[..name_length(&field.text)];
                let behind = &field.text[own.len()..];
                let value = match (behind.strip_prefix('='), &field.unknown) {
                    (Some(_), Some(_)) => Some(Scalar::Missing(Missing::Output, own.to_owned())),
                    (Some(text), None) => Some(Scalar::Text(text.to_owned())),
                    (None, None) if behind.is_empty() => None,
                    (None, None) => {
                        let span = field.span.clone();
                        return self
                            .wrong(Problem::new(format!("{} is no variable", Found(&field.text))), &span);
                    }
                    (None, Some(unknown)) => {
                        let span = field.span.clone();
                        return self.wrong(unknown.problem.clone(), &span);
                    }
                };
                let value = value.map(|value| (String::new(), word.clone(), Some((value, false))));
                all.push((own.to_owned(), value));
            }
        }
        // The one of a command in a value is lost.
        self.status = Status::SUCCESS;
        let (is_map, is_list) = (flags.contains('A'), flags.contains('a'));
        if is_local && flags.contains(['n', 'u', 'l', 'c']) {
            let span = self.place(span);
            let title = "a variable that stands for another one, or changes its letters, is not understood";
            return self.wrong(Problem::new(title).help(KEEP), &span);
        }
        if name == "export" && flags.contains('f') {
            all.iter().for_each(|(own, _)| self.values.export(&format!("{own}()")));
        }
        if flags.contains(['p', 'f', 'F']) {
            return;
        }
        if name == "export" || flags.contains('x') {
            all.iter().for_each(|(own, _)| self.values.export(own));
        }
        let is_new = is_local && !flags.contains('g') && self.values.is_function();
        for (own, value) in all {
            if own.is_empty() {
                continue;
            }
            let before = self.values.get(&own).cloned();
            if is_new {
                self.values.make_local(&own);
            }
            if flags.contains('i') {
                self.values.make_integer(&own);
            }
            match value {
                Some((_, word, Some((scalar, appends)))) => {
                    let span = self.place(&word);
                    if is_map || is_list {
                        let title = "one value for an array is not understood";
                        return self.wrong(Problem::new(title).help(KEEP), &span);
                    }
                    self.store(&own, scalar, appends, &span);
                }
                Some((raw, word, None)) => {
                    let place = self.source.place.at(word.start);
                    self.assign(&raw, &place, is_map);
                }
                None => {
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
            // Those of a function end with it.
            if (name == "readonly" || flags.contains('r')) && !is_new {
                self.values.make_constant(&own);
            }
        }
    }

    /// What `NAME=VALUE` assigns, and whether it is appended; `None` for what it is not that simple for.
    fn assignment(&mut self, raw: &str, place: &Place) -> Option<(Scalar, bool)> {
        let name = &raw[..name_length(raw)];
        let rest = &raw[name.len()..];
        let appends = rest.starts_with("+=");
        let value = rest.strip_prefix("+=").or_else(|| rest.strip_prefix('='))?;
        if value.starts_with('(') {
            return None;
        }
        let place = place.at(raw.len() - value.len());
        let field = self.expand_one(value, &place, How::One);
        let span = place.of(&(0..value.len()));
        Some((self.assigned(field, name, &span).unwrap_or(Scalar::empty()), appends))
    }

    /// Sets a variable, unless that means something else for it.
    fn store(&mut self, name: &str, mut scalar: Scalar, appends: bool, span: &Range<usize>) {
        if self.is_refused(name, span) {
            return;
        }
        let is_whole = |text: &str| text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
        if self.values.is_integer(name)
            && (appends || matches!(&scalar, Scalar::Text(text) if !is_whole(text)))
        {
            let title = format!(
                "`{name}` is a variable of whole numbers: calculations without $((…)) are not understood"
            );
            return self.wrong(Problem::new(title), span);
        }
        if appends {
            let before = self.values.scalar(name).cloned().unwrap_or(Scalar::empty());
            scalar = self.appended(before, scalar, span);
        }
        self.values.set(name, scalar);
    }

    /// Whether a variable is one that a script has made read-only, which is a problem.
    fn is_refused(&mut self, name: &str, span: &Range<usize>) -> bool {
        let is_constant = self.values.is_constant(name);
        if is_constant {
            self.wrong(Problem::new(format!("`{name}` is read-only")), span);
        }
        is_constant
    }

    /// `NAME=VALUE`, `NAME+=VALUE`, `NAME[…]=VALUE`, `NAME=(…)`.
    pub(super) fn assign(&mut self, raw: &str, place: &Place, is_map: bool) {
        let name = &raw[..name_length(raw)];
        if let Some((scalar, appends)) = self.assignment(raw, place) {
            return self.store(name, scalar, appends, &place.of(&(0..raw.len())));
        }
        if self.is_refused(name, &place.of(&(0..raw.len()))) {
            return;
        }
        let mut rest = &raw[name.len()..];
        let mut index = None;
        if let Some(close) = scan::brackets(rest) {
            index = Some((&rest[1..close], place.at(name.len() + 1)));
            rest = &rest[close + 1..];
        }
        let appends = rest.starts_with("+=");
        let value = &rest[if appends { 2 } else { 1 }.min(rest.len())..];
        let place = place.at(raw.len() - value.len());
        let Some((index, index_place)) = index else {
            return self.assign_list(name, value, &place, appends, is_map);
        };
        let field = self.expand_one(value, &place, How::One);
        let span = place.of(&(0..value.len()));
        if let Some(scalar) = self.assigned(field, name, &span) {
            self.set_element(name, index, &index_place, scalar, appends);
        }
    }

    /// Sets one of an array; returns its index, if that is a number.
    pub(super) fn set_element(
        &mut self,
        name: &str,
        index: &str,
        place: &Place,
        mut scalar: Scalar,
        appends: bool,
    ) -> Option<i64> {
        let span = place.of(&(0..index.len()));
        if let Some(Value::Map(map)) = self.values.get(name) {
            let before = if appends { map.clone() } else { BTreeMap::new() };
            let key = self.expand_one(index, place, How::One);
            if let Some(unknown) = key.unknown {
                self.wrong(unknown.problem, &span);
                return None;
            }
            if key.text.is_empty() {
                self.wrong(Problem::new("an index that is empty"), &span);
                return None;
            }
            if appends {
                let before = before.get(&key.text).cloned().unwrap_or(Scalar::empty());
                scalar = self.appended(before, scalar, &span);
            }
            self.values.set_key(name, key.text, scalar);
            return None;
        }
        let at = self.calculated(index, place);
        let last = match self.values.get(name) {
            Some(Value::List(list)) => list.keys().next_back().map_or(0, |last| last + 1),
            _ => 0,
        };
        let number = at.text.parse::<i64>().ok().map(|at| if at < 0 { last + at } else { at });
        match (at.unknown, number.filter(|at| *at >= 0)) {
            (None, Some(at)) => {
                if appends {
                    let before = match self.values.get(name) {
                        Some(Value::List(list)) => list.get(&at).cloned(),
                        Some(Value::One(first)) if at == 0 => Some(first.clone()),
                        _ => None,
                    };
                    scalar = self.appended(before.unwrap_or(Scalar::empty()), scalar, &span);
                }
                self.values.set_at(name, at, scalar);
                return Some(at);
            }
            (Some(unknown), _) => self.wrong(unknown.problem, &span),
            (None, None) => self.wrong(Problem::new(format!("{} is no index", Found(index))), &span),
        }
        None
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
        // The values may be of the variable itself.
        let mut items = Vec::new();
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
            let close = scan::brackets(&raw).filter(|close| raw[close + 1..].starts_with('='));
            if let Some(close) = close {
                let value = &raw[close + 2..];
                let field = self.expand_one(value, &own.at(close + 2), How::One);
                if let Some(scalar) = self.assigned(field, name, &span) {
                    items.push((Some((raw[1..close].to_owned(), own.at(1))), scalar));
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
            if is_map {
                let title = "values without keys for an associative array are not understood";
                return self.wrong(Problem::new(title), &span);
            }
            for word in words {
                if let Some(unknown) = word.unknown.clone().filter(|unknown| !self.is_unclear(unknown)) {
                    self.wrong(unknown.problem, &span);
                    continue;
                }
                items.push((None, self.scalar(&word, name)));
            }
        }
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
        for (index, scalar) in items {
            match index {
                Some((index, place)) => {
                    if let Some(at) = self.set_element(name, &index, &place, scalar, false) {
                        next = at + 1;
                    }
                }
                None => {
                    self.values.set_at(name, next, scalar);
                    next += 1;
                }
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
    fn read(&mut self, words: &[Expanded], span: &Range<usize>) {
        let mut names = Vec::new();
        let (mut list, mut keeps_backslash, mut is_plain, mut reads_all) = (None, false, true, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.text.strip_prefix('-') {
                Some(flags) if names.is_empty() => {
                    keeps_backslash |= flags.contains('r');
                    is_plain &= !(flags.contains(['n', 'N', 'u', 'i'])
                        || flags.contains('d') && !flags.ends_with('d'));
                    if flags.ends_with(['p', 't', 'n', 'N', 'd', 'u', 'i', 'a']) {
                        let value = rest.next().map(|word| word.text.clone());
                        // Nothing ends what is read but its end.
                        if flags.ends_with('d') {
                            reads_all = value.as_deref() == Some("");
                            is_plain &= reads_all;
                        }
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
        let mut line = lines.pop_front();
        if let Some(line) = line.as_mut().filter(|_| reads_all) {
            for next in lines.drain(..) {
                line.text.push('\n');
                line.join(&next);
            }
            line.is_open = true;
        }
        if let Some(line) = line.as_mut().filter(|_| !keeps_backslash) {
            let backslashes = |text: &str| text.len() - text.trim_end_matches('\\').len();
            while backslashes(&line.text) % 2 == 1 {
                line.text.pop();
                match lines.pop_front() {
                    Some(next) => line.join(&next),
                    None => line.is_open = true,
                }
            }
        }
        if !is_plain {
            let span = self.place(span);
            return self.wrong(Problem::new("flags of `read` that are not understood").help(KEEP), &span);
        }
        self.status = Status::of(line.as_ref().is_some_and(|line| !line.is_open));
        if line.as_ref().is_some_and(|line| line.unknown.is_some()) {
            for name in names.into_iter().chain(list) {
                self.values.put(&name, Value::One(Scalar::Missing(Missing::Input, name.clone())));
            }
            return;
        }
        let text = line.map(|line| line.text).unwrap_or_default();
        let separators: Vec<char> = match self.values.scalar("IFS") {
            Some(Scalar::Text(text)) => text.chars().collect(),
            _ => vec![' ', '\t', '\n', '\r'],
        };
        let most = if list.is_some() { usize::MAX } else { names.len() };
        let parts = parts_of(&text, &separators, most, keeps_backslash);
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
    fn read_lines(&mut self, words: &[Expanded], span: &Range<usize>) {
        let flags: Vec<&str> =
            words.iter().map(Expanded::text).filter(|word| word.starts_with('-')).collect();
        let is_known =
            self.input.as_ref().is_some_and(|lines| lines.iter().all(|line| line.unknown.is_none()));
        if is_known && flags != ["-t"] {
            let span = self.place(span);
            let title = "lines with their ends, as `mapfile` without -t alone keeps them, are not understood";
            return self.wrong(Problem::new(title), &span);
        }
        let name = words.iter().rev().map(Expanded::text).find(|word| is_variable(word)).unwrap_or("MAPFILE");
        let value = match self.input.replace(std::collections::VecDeque::new()).filter(|_| is_known) {
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

/// The words of a line that `read` gives to so many variables, the last of which has the rest of the line.
fn parts_of(text: &str, separators: &[char], most: usize, keeps_backslash: bool) -> Vec<String> {
    // Characters, and whether a backslash stands before them.
    let mut all: Vec<(char, bool)> = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !keeps_backslash => all.extend(chars.next().map(|c| (c, true))),
            c => all.push((c, false)),
        }
    }
    let is_separator = |(c, is_escaped): &(char, bool)| !is_escaped && separators.contains(c);
    let is_blank = |one: &(char, bool)| is_separator(one) && one.0.is_whitespace();
    let behind_blanks = |at: usize| at + all[at..].iter().take_while(|one| is_blank(one)).count();
    let of = |part: &[(char, bool)]| part.iter().map(|(c, _)| *c).collect::<String>();
    let mut parts = Vec::new();
    let mut at = behind_blanks(0);
    while at < all.len() {
        let end = all[at..].iter().position(is_separator).map_or(all.len(), |length| at + length);
        let mut next = behind_blanks(end);
        if all.get(next).is_some_and(is_separator) {
            next = behind_blanks(next + 1);
        }
        if parts.len() + 1 == most && next < all.len() {
            let length = all.iter().rposition(|one| !is_blank(one)).map_or(at, |last| last + 1);
            parts.push(of(&all[at..length.max(at)]));
            return parts;
        }
        parts.push(of(&all[at..end]));
        at = next;
    }
    parts
}
