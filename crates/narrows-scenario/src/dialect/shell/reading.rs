//! Commands that read: lines by `read` and `mapfile`, arguments by `getopts`.

use std::ops::Range;

use super::KEEP;
use super::field::Expanded;
use super::scan::is_variable;
use super::state::{InputLine, Runner, Status};
use super::values::{Missing, Scalar, Value};
use crate::problem::Problem;

/// Where `getopts` is within a word of several flags.
const POSITION: &str = "OPTIND within its word";

impl Runner<'_> {
    /// `read A B`
    pub(super) fn read(&mut self, words: &[Expanded], span: &Range<usize>) {
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
    pub(super) fn read_lines(&mut self, words: &[Expanded], span: &Range<usize>) {
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

    /// `getopts FLAGS NAME`: the next flag of the arguments (POSIX.1-2017, getopts).
    pub(super) fn getopts(&mut self, words: &[Expanded], span: &Range<usize>) {
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
