//! Commands of the shell itself.

use std::ops::Range;

use super::field::{Expanded, Field};
use super::place::Place;
use super::printf;
use super::programs;
use super::scan::is_variable;
use super::state::{Flow, Runner, Status};
use super::values::{Missing, Scalar};
use crate::problem::Problem;

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
                let known: Vec<&str> = all[1..].iter().map(Expanded::text).collect();
                let is_known = all[1].unknown.is_none();
                // What it is when it runs beside the shell, if that is known here.
                if !(is_known && self.shell(&all[1..], span).is_some()) {
                    let is_read = is_known && programs::has_effect(&known);
                    self.program(if is_read { &all[1..] } else { all }, span);
                }
                return Some(Flow::Exit);
            }
            "." | "source" => {
                let file = all.get(1).filter(|word| word.unknown.is_none())?;
                let Some(text) = self.beside(&file.text) else {
                    if programs::is_of_system(&file.text) {
                        self.reads_others = true;
                        if !programs::is_library(&file.text) {
                            self.values.doubt_all();
                        }
                    }
                    return None;
                };
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
            "read" => {
                // A person is asked.
                if self.input.is_none() && self.conditions == 0 && self.trial.is_none() {
                    self.program(all, span);
                }
                self.read(&all[1..], span);
            }
            "shopt" => {
                self.has_aliases |= all.iter().any(|word| word.text == "expand_aliases")
                    && second.is_some_and(|flag| flag == "-s");
                return None;
            }
            "alias" if self.has_aliases => return self.alias(second, span),
            "mapfile" | "readarray" => self.read_lines(&all[1..], span),
            "getopts" => self.getopts(&all[1..], span),
            "printf" if second == Some("-v") => self.print_to(&all[2..]),
            "eval" => {
                if let [_, export, word] = all
                    && export.text == "export"
                    && self.keeps(word)
                {
                    self.status = Status::SUCCESS;
                    return Some(Flow::On);
                }
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

    /// `alias NAME='PROGRAM WORDS'` is as a function that runs these words, and its own behind them.
    fn alias(&mut self, said: Option<&str>, span: &Range<usize>) -> Option<Flow> {
        let (name, words) = said?.split_once('=')?;
        if !is_variable(name) {
            return None;
        }
        // It does not stand for itself within itself.
        let command = if words.split_whitespace().next() == Some(name) { "command " } else { "" };
        let place = Place::Whole(self.place(span));
        Some(self.eval(format!("{name}() {{ {command}{words} \"$@\"; }}"), place))
    }

    /// Whether a word gives a variable its own value, which the surroundings may have set.
    fn keeps(&mut self, word: &Expanded) -> bool {
        let name = word.text.strip_suffix('=').filter(|name| is_variable(name));
        let is_unset = word.unknown.as_ref().is_some_and(|unknown| unknown.what == Missing::Unset);
        match name.filter(|_| is_unset) {
            Some(name) => {
                self.values.set(name, Scalar::Missing(Missing::Unset, name.to_owned()));
                true
            }
            None => false,
        }
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
}
