//! Assignments, of arrays, too, and commands that declare variables.

use std::collections::BTreeMap;
use std::ops::Range;

use super::KEEP;
use super::field::{Expanded, Field, How};
use super::parser::is_assignment;
use super::place::Place;
use super::scan::{self, byte, name_length};
use super::state::{Runner, Status};
use super::values::{Missing, Scalar, Value};
use crate::problem::{Found, Problem};

/// The maximum length of a value that grows by `+=`.
const LONGEST: usize = 1 << 16;

impl Runner<'_> {
    /// `local A=1`, `declare -A B`, `export C`.
    pub(super) fn declare(&mut self, name: &str, words: &[Range<usize>], span: &Range<usize>) {
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
    pub(super) fn assignment(&mut self, raw: &str, place: &Place) -> Option<(Scalar, bool)> {
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
    pub(super) fn store(&mut self, name: &str, mut scalar: Scalar, appends: bool, span: &Range<usize>) {
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
    pub(super) fn is_refused(&mut self, name: &str, span: &Range<usize>) -> bool {
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

    pub(super) fn appended(&mut self, before: Scalar, behind: Scalar, span: &Range<usize>) -> Scalar {
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
    pub(super) fn assigned(&mut self, field: Field, name: &str, span: &Range<usize>) -> Option<Scalar> {
        let Some(unknown) = field.unknown else { return Some(Scalar::Text(field.text)) };
        if !self.is_unclear(&unknown) {
            self.wrong(unknown.problem, span);
            return None;
        }
        let word = Expanded { text: field.text, span: span.clone(), unknown: Some(unknown), vanishes: false };
        Some(self.scalar(&word, name))
    }

    /// `NAME=(A B [KEY]=C)`
    pub(super) fn assign_list(
        &mut self,
        name: &str,
        value: &str,
        place: &Place,
        appends: bool,
        is_map: bool,
    ) {
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

    pub(super) fn unset_at(&mut self, name: &str, index: &str) {
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
}
