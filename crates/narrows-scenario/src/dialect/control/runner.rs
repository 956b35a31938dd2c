//! Executes the parts of a script.

use std::collections::BTreeMap;
use std::ops::Range;

use super::pattern::fits;
use super::{DEEPEST, Joint, KEEP, Next, Part, blank, first_word};
use crate::dialect::arithmetic;
use crate::dialect::shell::{self, Joined, Piece, raises_rights};
use crate::dialect::variables::{Expanded, Variables, counted};
use crate::problem::{Found, Problem};

/// The most commands of a script, with those that loops come to.
const MOST: usize = 1 << 20;
/// The most turns of loops and looks at conditions, whether they lead to commands or not.
const MOST_STEPS: usize = 1 << 22;
/// The longest function that is looked through for commands without effect.
const SHORT: usize = 16;
/// The most commands that are looked at for what they do.
const MOST_LOOKED_AT: usize = 1 << 10;
/// Commands without an effect on a network. What leads to these alone need not be known.
const HARMLESS: [&str; 14] = [
    "exit",
    "return",
    "echo",
    "printf",
    "logger",
    "true",
    ":",
    "modprobe",
    "insmod",
    "rmmod",
    "kldload",
    "kldunload",
    "kldstat",
    "sysrc",
];
/// Programs whose commands are executed here.
const EXECUTED: [&str; 3] = ["tc", "ipfw", "dnctl"];

/// Executes parts; returns problems of loops and conditions.
pub(super) fn execute(
    text: &str,
    parts: &[Part],
    variables: &mut Variables,
    command: &mut dyn FnMut(&Piece, &mut Variables) -> Next,
) -> Vec<Problem> {
    let mut runner = Runner {
        text,
        variables,
        command,
        problems: Vec::new(),
        left: MOST,
        steps: MOST_STEPS,
        functions: BTreeMap::new(),
        calls: 0,
        failed: false,
    };
    runner.parts(parts);
    runner.problems
}

struct Runner<'a, 'p> {
    text: &'a str,
    variables: &'a mut Variables,
    command: &'a mut dyn FnMut(&Piece, &mut Variables) -> Next,
    problems: Vec<Problem>,
    left: usize,
    steps: usize,
    functions: BTreeMap<&'p str, &'p [Part]>,
    /// How many of them are being executed.
    calls: usize,
    /// Whether the last command was a function that ended with `return 1`.
    failed: bool,
}

impl<'p> Runner<'_, 'p> {
    fn parts(&mut self, parts: &'p [Part]) -> Next {
        let mut worst = Next::Command;
        for part in parts {
            self.failed &= matches!(part, Part::Depends { .. });
            let next = match part {
                Part::Command(piece) => match self.left.checked_sub(1) {
                    Some(left) => {
                        self.left = left;
                        self.one(piece)
                    }
                    None => {
                        self.problems
                            .push(Problem::new(format!("more than {MOST} commands")).at(&piece.span));
                        Next::End
                    }
                },
                Part::Function { name, body } => {
                    self.functions.insert(name, body);
                    Next::Command
                }
                Part::Loop { name, list, body } => self.turns(name, list, body),
                Part::Count { calculations, body } => self.count(calculations, body),
                Part::If(branches) => self.branch(branches),
                Part::Case { word, arms } => self.case(word, arms),
                Part::Test { test, dependent } => self.test(test, dependent),
                Part::Group(body) => self.parts(body),
                Part::Depends { on, at, part } => self.depends(*on, at, part),
                Part::Apart { part, is_background, at } => self.apart(part, *is_background, at),
                Part::Wrong(problem) => self.wrong(problem.clone()),
            };
            match next {
                Next::End | Next::Return => return next,
                Next::Wrong => worst = Next::Wrong,
                Next::Command => {}
            }
        }
        worst
    }

    /// A command, or the commands of a function that it calls.
    fn one(&mut self, piece: &Piece) -> Next {
        let word = first_word(&self.text[piece.span.clone()]).unwrap_or_default();
        if word == "return" && self.calls > 0 {
            let status = self.text[piece.span.clone()].split_ascii_whitespace().nth(1);
            self.failed = status.is_some_and(|status| status.parse::<u8>().is_ok_and(|status| status > 0));
            return Next::Return;
        }
        self.failed = false;
        let Some(body) = self.functions.get(word).copied() else {
            if piece.joined == Joined::After && self.variables.take_arguments(self.text, &piece.span) {
                return Next::Command;
            }
            if let Some(problem) = self.hidden_call(word, piece) {
                return self.wrong(problem);
            }
            return (self.command)(piece, self.variables);
        };
        if self.calls == DEEPEST {
            let problem = Problem::new(format!("functions that call one another more than {DEEPEST} deep"));
            return self.wrong(problem.at(&piece.span));
        }
        let arguments = match self.variables.words(self.text, piece.span.clone()) {
            Ok(words) => words,
            Err(problem) => return self.wrong(problem),
        };
        let frame = self.variables.begin_function(arguments.get(1..).unwrap_or_default());
        self.calls += 1;
        let next = self.parts(body);
        self.calls -= 1;
        self.variables.end_function(frame);
        match next {
            Next::Return => Next::Command,
            other => {
                self.failed = false;
                other
            }
        }
    }

    /// The problem of a function that is called by a variable, or with variables of its own: `$RUN a`, `A=1 run`.
    fn hidden_call(&self, word: &str, piece: &Piece) -> Option<Problem> {
        if self.functions.is_empty() || !word.contains(['$', '=', '"', '\'', '`']) {
            return None;
        }
        let spans = shell::words(self.text, piece.span.clone());
        let assigns = |span: &Range<usize>| {
            let text = &self.text[span.clone()];
            let name = text.split('=').next().unwrap_or_default();
            name.len() < text.len() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let first = spans.into_iter().find(|span| !assigns(span))?;
        let words = self.variables.words(self.text, first.clone()).ok()?;
        let called = self.functions.contains_key(words.first()?.text());
        called.then(|| {
            Problem::new(
                "a function of the script that is called by a variable, or with variables of its own",
            )
            .at(&first)
            .help(format!("scripts are read, not run: {KEEP}"))
        })
    }

    /// A part in a shell of its own.
    fn apart(&mut self, part: &'p Part, is_background: bool, at: &Range<usize>) -> Next {
        if is_background {
            if matches!(part, Part::Command(piece) if self.sleeps(piece)) {
                // It waits by itself: what follows does not.
                return Next::Command;
            }
            let mut left = MOST_LOOKED_AT;
            if self.waits(part, &mut left) && self.matters(part, Joint::And, &mut left) {
                return self.wrong(
                    Problem::new("commands in the background that wait: what follows does not wait for them")
                        .at(at)
                        .help("write all commands in the order of time, with `sleep` between them"),
                );
            }
        }
        let kept = self.variables.clone();
        let next = self.parts(std::slice::from_ref(part));
        *self.variables = kept;
        if matches!(next, Next::End | Next::Return) { Next::Command } else { next }
    }

    /// Whether a command is `sleep`.
    fn sleeps(&self, piece: &Piece) -> bool {
        let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
        let first = words.find(|word| !raises_rights(word)).unwrap_or_default();
        first.rsplit('/').next() == Some("sleep")
    }

    /// Whether a part sleeps, as far as its words say.
    fn waits(&self, part: &Part, left: &mut usize) -> bool {
        let mut any = |parts: &[Part]| parts.iter().any(|part| self.waits(part, left));
        match part {
            Part::Command(piece) => {
                let Some(fewer) = left.checked_sub(1) else { return true };
                *left = fewer;
                let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
                words.any(|word| word.rsplit('/').next() == Some("sleep"))
                    || self
                        .functions
                        .get(self.word(piece))
                        .is_some_and(|body| body.iter().any(|part| self.waits(part, left)))
            }
            Part::Loop { body, .. } | Part::Count { body, .. } | Part::Group(body) => any(body),
            Part::If(branches) => branches.iter().any(|(_, body)| any(body)),
            Part::Case { arms, .. } => arms.iter().any(|(_, body)| any(body)),
            Part::Test { dependent, .. } => dependent.iter().any(|(_, part)| self.waits(part, left)),
            Part::Depends { part, .. } | Part::Apart { part, .. } => self.waits(part, left),
            Part::Function { .. } | Part::Wrong(_) => false,
        }
    }

    /// What depends on the command before: a command that fails is none here.
    fn depends(&mut self, on: Joint, at: &Range<usize>, part: &'p Part) -> Next {
        match (on, std::mem::take(&mut self.failed), part) {
            (Joint::Or, true, Part::Command(piece)) => {
                return self.one(&Piece { joined: Joined::After, ..piece.clone() });
            }
            (Joint::Or, true, _) | (Joint::Then, false, _) => return self.parts(std::slice::from_ref(part)),
            (Joint::And | Joint::Then, true, _) => {
                self.failed = true;
                return Next::Command;
            }
            (Joint::And | Joint::Or, false, _) => {}
        }
        let word = match part {
            Part::Command(piece) => self.word(piece),
            _ => "",
        };
        if let (Joint::Or, Part::Command(piece), false) = (on, part, self.functions.contains_key(word)) {
            return if matches!(word, "exit" | "return") { Next::Command } else { self.one(piece) };
        }
        let mut left = MOST_LOOKED_AT;
        let matters = self.matters(part, on, &mut left);
        if !self.step(MOST_LOOKED_AT - left + 1, at) {
            return Next::End;
        }
        match on {
            _ if matters => self.wrong(
                Problem::new("what depends on the success or failure of another command")
                    .at(at)
                    .help(format!("scripts are read, not run: {KEEP}")),
            ),
            Joint::Or => Next::Command,
            Joint::And | Joint::Then => self.parts(std::slice::from_ref(part)),
        }
    }

    fn word(&self, piece: &Piece) -> &str {
        first_word(&self.text[piece.span.clone()]).unwrap_or_default()
    }

    /// Whether it matters if a part runs, as far as its words say. It looks at so many commands, with those of functions.
    fn matters(&self, part: &Part, on: Joint, left: &mut usize) -> bool {
        let mut any = |parts: &[Part]| parts.iter().any(|part| self.matters(part, on, left));
        match part {
            Part::Command(piece) => {
                let Some(fewer) = left.checked_sub(1) else { return true };
                *left = fewer;
                let called = self.functions.get(self.word(piece));
                self.has_effect(piece, on)
                    || called.is_some_and(|body| body.iter().any(|part| self.matters(part, on, left)))
            }
            Part::Loop { body, .. } | Part::Count { body, .. } | Part::Group(body) => any(body),
            Part::If(branches) => branches.iter().any(|(_, body)| any(body)),
            Part::Case { arms, .. } => arms.iter().any(|(_, body)| any(body)),
            Part::Test { dependent, .. } => dependent.iter().any(|(_, part)| self.matters(part, on, left)),
            Part::Depends { part, .. } | Part::Apart { part, .. } => self.matters(part, on, left),
            Part::Function { .. } | Part::Wrong(_) => false,
        }
    }

    /// Whether a command configures something, sets a variable, or ends the script.
    fn has_effect(&self, piece: &Piece, on: Joint) -> bool {
        const OTHERS: [&str; 11] = [
            "iptables",
            "ip6tables",
            "ipset",
            "sleep",
            "export",
            "local",
            "declare",
            "typeset",
            "readonly",
            "let",
            "unset",
        ];
        let text = &self.text[piece.span.clone()];
        let first = text.split_ascii_whitespace().find(|word| !raises_rights(word)).unwrap_or_default();
        let is_tc = |word: &str| {
            word == "mtu"
                || first == "sysctl" && word.starts_with("net.inet")
                || EXECUTED.contains(&word.rsplit('/').next().unwrap_or(word))
        };
        let ends = on == Joint::And && matches!(first, "exit" | "return");
        ends || first.starts_with(['$', '('])
            || first.contains('=')
            || OTHERS.contains(&first)
            // A module of the kernel may have the name of a program.
            || !first.starts_with("kld") && text.split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'')).any(is_tc)
    }

    fn wrong(&mut self, problem: Problem) -> Next {
        self.problems.push(problem);
        Next::Wrong
    }

    fn turns(&mut self, name: &'p str, list: &Range<usize>, body: &'p [Part]) -> Next {
        let values = match self.list(list) {
            Ok(values) => values,
            Err(problem) => return self.wrong(problem),
        };
        for value in values {
            if !self.step(1, list) {
                return Next::End;
            }
            self.variables.set(name, &value);
            match self.parts(body) {
                Next::Command => {}
                other => return other,
            }
        }
        Next::Command
    }

    /// Runs a loop that counts.
    fn count(&mut self, [first, test, step]: &'p [Range<usize>; 3], body: &'p [Part]) -> Next {
        if let Err(problem) = self.variables.calculate_one(&self.text[first.clone()], first) {
            return self.wrong(problem);
        }
        loop {
            match self.variables.calculated(&self.text[test.clone()]) {
                Ok(0) => return Next::Command,
                Ok(_) => {}
                Err(problem) => return self.wrong(problem.at(test)),
            }
            if !self.step(1, test) {
                return Next::End;
            }
            match self.parts(body) {
                Next::Command => {}
                other => return other,
            }
            if let Err(problem) = self.variables.calculate_one(&self.text[step.clone()], step) {
                return self.wrong(problem);
            }
        }
    }

    /// The values of a list, with `{1..4}` written out.
    fn list(&self, list: &Range<usize>) -> Result<Vec<String>, Problem> {
        let mut all = Vec::new();
        for word in self.variables.words(self.text, list.clone())? {
            let text = word.text();
            let braces = text
                .strip_prefix('{')
                .and_then(|text| text.strip_suffix('}'))
                .filter(|text| text.contains(".."));
            let Some(inside) = braces else {
                all.push(text.to_owned());
                continue;
            };
            let numbers: Option<Vec<i64>> = inside.split("..").map(|part| part.parse().ok()).collect();
            let numbers = match numbers.as_deref() {
                Some([first, last]) => counted(*first, if first > last { -1 } else { 1 }, *last),
                Some([first, last, step]) => counted(
                    *first,
                    if first > last { -step.saturating_abs() } else { step.saturating_abs() },
                    *last,
                ),
                _ => Err(Problem::new(format!("{} is no range of numbers", Found(text)))),
            };
            all.extend(numbers.map_err(|problem| problem.at(list))?.split(' ').map(str::to_owned));
        }
        Ok(all)
    }

    /// Takes steps; returns whether so many are allowed.
    fn step(&mut self, count: usize, at: &Range<usize>) -> bool {
        match self.steps.checked_sub(count) {
            Some(left) => self.steps = left,
            None => {
                let title = format!("more than {MOST_STEPS} turns of loops and conditions");
                self.problems.push(Problem::new(title).at(at));
                return false;
            }
        }
        true
    }

    /// Runs what depends on a condition.
    fn test(&mut self, test: &Range<usize>, dependent: &'p [(Joint, Part)]) -> Next {
        if !self.step(dependent.iter().map(|(_, part)| size(part)).sum::<usize>() + 1, test) {
            return Next::End;
        }
        let mut status = match self.holds(test) {
            Ok(holds) => holds,
            // Whether it holds does not matter.
            Err(_) if dependent.iter().all(|(_, part)| self.is_harmless(part)) => return Next::Command,
            Err(problem) => match self.holds_without_arguments(test) {
                Some(holds) => holds,
                None => return self.wrong(problem),
            },
        };
        for (joint, part) in dependent {
            if status != (*joint == Joint::And) {
                continue;
            }
            status = match part {
                Part::Test { test, .. } => match self.holds(test) {
                    Ok(holds) => holds,
                    Err(problem) => return self.wrong(problem),
                },
                other => match self.parts(std::slice::from_ref(other)) {
                    Next::Command => true,
                    next => return next,
                },
            };
        }
        Next::Command
    }

    /// Whether a part has no effect on a network, whether it runs or not. It may call short functions of commands alone, so
    /// that this takes time in proportion to the script.
    fn is_harmless(&self, part: &Part) -> bool {
        let all = |parts: &[Part]| parts.iter().all(|part| self.is_harmless(part));
        let word = |piece: &Piece| {
            let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
            words.find(|word| !raises_rights(word)).unwrap_or_default()
        };
        let is_known = |part: &Part| matches!(part, Part::Command(piece) if HARMLESS.contains(&word(piece)));
        match part {
            Part::Command(piece) => {
                let called = self.functions.get(word(piece)).filter(|body| body.len() <= SHORT);
                is_known(part) || called.is_some_and(|body| body.iter().all(is_known))
            }
            Part::Group(body) => all(body),
            Part::Test { dependent, .. } => dependent.iter().all(|(_, part)| self.is_harmless(part)),
            Part::If(branches) => branches.iter().all(|(_, body)| all(body)),
            Part::Case { arms, .. } => arms.iter().all(|(_, body)| all(body)),
            Part::Depends { part, .. } | Part::Apart { part, .. } => self.is_harmless(part),
            Part::Loop { .. } | Part::Count { .. } | Part::Function { .. } | Part::Wrong(_) => false,
        }
    }

    fn branch(&mut self, branches: &'p [(Option<Range<usize>>, Vec<Part>)]) -> Next {
        let all = branches.iter().map(|(_, body)| body.iter().map(size).sum::<usize>() + 1).sum();
        if let Some(test) = branches.iter().find_map(|(test, _)| test.as_ref())
            && !self.step(all, test)
        {
            return Next::End;
        }
        for (test, body) in branches {
            let holds = match test {
                None => true,
                Some(test) => match self.ran(test) {
                    Some((Next::Command, holds)) => holds,
                    Some((next, _)) => return next,
                    None => match self.holds(test) {
                        Ok(holds) => holds,
                        Err(_)
                            if !self.executes(test)
                                && branches
                                    .iter()
                                    .all(|(_, body)| body.iter().all(|part| self.is_harmless(part))) =>
                        {
                            return Next::Command;
                        }
                        Err(problem) => match self.holds_without_arguments(test) {
                            Some(holds) => holds,
                            None => return self.wrong(problem),
                        },
                    },
                },
            };
            if holds {
                return self.parts(body);
            }
        }
        Next::Command
    }

    /// Runs the commands of the first pattern that a word fits.
    fn case(&mut self, word: &Range<usize>, arms: &'p [(Vec<Range<usize>>, Vec<Part>)]) -> Next {
        let all = arms.iter().map(|(_, body)| body.iter().map(size).sum::<usize>() + 1).sum::<usize>();
        if !self.step(all + 1, word) {
            return Next::End;
        }
        let strict = self.variables.words(self.text, word.clone());
        let is_harmless = || arms.iter().all(|(_, body)| body.iter().all(|part| self.is_harmless(part)));
        let words = match strict {
            Ok(words) => words,
            Err(_) if is_harmless() => return Next::Command,
            Err(problem) if self.calls > 0 => return self.wrong(problem.help(KEEP)),
            Err(problem) => match self.variables.words_without_arguments(self.text, word.clone()) {
                Ok(words) => words,
                Err(_) => return self.wrong(problem.help(KEEP)),
            },
        };
        let word = words.first().map_or("", Expanded::text);
        for (patterns, body) in arms {
            for pattern in patterns {
                let raw = &self.text[pattern.clone()];
                let is_quoted = raw.contains(['"', '\'', '\\']) && raw.contains(['*', '?']);
                if raw.contains('[') || is_quoted || raw.trim_start_matches('(').contains('(') {
                    let problem =
                        Problem::new(format!("the pattern {} is not understood", Found(raw.trim())));
                    return self.wrong(
                        problem
                            .at(pattern)
                            .help("understood: words, `*` and `?`, without quotes around these")
                            .help(KEEP),
                    );
                }
                let pattern = match self.variables.words(self.text, pattern.clone()) {
                    Ok(pattern) => pattern,
                    Err(problem) => return self.wrong(problem),
                };
                if pattern.iter().any(|pattern| fits(pattern.text().trim_start_matches('('), word)) {
                    return self.parts(body);
                }
            }
        }
        Next::Command
    }

    /// Whether a condition holds where the script is started without arguments, if it then depends on the script alone.
    fn holds_without_arguments(&self, test: &Range<usize>) -> Option<bool> {
        // The arguments of a function are its own.
        let words = |span| self.variables.words_without_arguments(self.text, span);
        (self.calls == 0).then(|| self.compared_all(test, &words)).flatten()
    }

    /// Whether a condition is a command that is executed here, not only asked.
    fn executes(&self, test: &Range<usize>) -> bool {
        let text = &self.text[test.clone()];
        let mut words = text.split_ascii_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        words.any(|word| EXECUTED.contains(&word)) && !shows(text)
    }

    /// Runs a command that is a condition; it succeeds, and with `!` the condition does not hold. `None` for other conditions.
    fn ran(&mut self, test: &Range<usize>) -> Option<(Next, bool)> {
        let text = &self.text[test.clone()];
        let start = test.start + blank(text);
        let (start, not) = match self.text[start..test.end].strip_prefix("! ") {
            Some(rest) => (test.end - rest.trim_start().len(), true),
            None => (start, false),
        };
        let text = &self.text[start..test.end];
        // What others print is not known.
        if ["|", "&&", ";", "\n"].iter().any(|joint| text.contains(joint)) {
            return None;
        }
        let words: Vec<&str> = text.split_whitespace().filter(|word| !raises_rights(word)).collect();
        let name = words.first()?.rsplit('/').next()?;
        match (name, words.get(1).copied()) {
            ("command", Some("-v")) => Some((Next::Command, !not)),
            // Whether there is something to delete is a question.
            ("ipfw" | "dnctl", _)
                if words.iter().any(|word| word.len() > 2 && "delete".starts_with(*word)) =>
            {
                None
            }
            (name, _) if EXECUTED.contains(&name) && !shows(text) => {
                let piece = Piece { span: start..test.end, joined: Joined::After };
                Some(((self.command)(&piece, self.variables), !not))
            }
            _ => None,
        }
    }

    /// Whether `[ A = B ]` holds.
    fn holds(&self, test: &Range<usize>) -> Result<bool, Problem> {
        let unknown = || {
            Problem::new("a condition that depends on more than the script")
                .at(&(test.start + blank(&self.text[test.clone()])..test.end))
                .help(format!("scripts are read, not run: {KEEP}"))
        };
        let words = |span| self.variables.words(self.text, span);
        self.compared_all(test, &words).ok_or_else(unknown)
    }

    /// The same for comparisons that are joined by `&&` and `||`, with their words, if they are understood.
    fn compared_all(
        &self,
        test: &Range<usize>,
        words: &dyn Fn(Range<usize>) -> Result<Vec<Expanded>, Problem>,
    ) -> Option<bool> {
        let text = &self.text[test.clone()];
        let compared = |piece: &Range<usize>| {
            // They would be taken for redirections.
            let raw = &text[piece.clone()];
            if raw.contains("[[") && raw.contains(['<', '>']) {
                return None;
            }
            compared(&words(test.start + piece.start..test.start + piece.end).ok()?)
        };
        let pieces = shell::pieces(text).ok()?;
        let (first, others) = pieces.split_first()?;
        let (mut holds, mut end) = (compared(&first.span)?, first.span.end);
        for next in others {
            let matters = match text[end..next.span.start].trim() {
                "&&" => holds,
                "||" => !holds,
                _ => return None,
            };
            if matters {
                holds = compared(&next.span)?;
            }
            end = next.span.end;
        }
        Some(holds)
    }
}

/// Whether a command only prints.
fn shows(command: &str) -> bool {
    command.split_whitespace().any(|word| matches!(word, "show" | "list" | "ls"))
}

/// Whether a comparison holds, if it is understood.
fn compared(words: &[Expanded]) -> Option<bool> {
    let mut words: Vec<&str> = words.iter().map(Expanded::text).collect();
    let mut not = false;
    while words.first() == Some(&"!") {
        words.remove(0);
        not = !not;
    }
    let is_double = words.first() == Some(&"[[");
    match (words.first().copied(), words.last().copied()) {
        (Some("["), Some("]")) | (Some("[["), Some("]]")) => {
            words.pop();
            words.remove(0);
        }
        (Some("test"), _) => {
            words.remove(0);
        }
        _ => return None,
    }
    let words = match words.split_first() {
        Some((&"!", rest)) => {
            not = !not;
            rest
        }
        _ => &words[..],
    };
    // `[` has decimal numbers only.
    let number = |text: &str| match is_double {
        true => arithmetic::number(text),
        false => text.parse::<i64>().ok(),
    };
    let holds = match words {
        [] => false,
        // Without quotes, an empty word is none, but for `[[`.
        ["-n"] if is_double => false,
        [text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        ["-n", text] => !text.is_empty(),
        [one, "=" | "==", other] if !other.contains(['*', '?', '[']) => one == other,
        [one, "!=", other] if !other.contains(['*', '?', '[']) => one != other,
        [one, "-eq", other] => number(one)? == number(other)?,
        [one, "-ne", other] => number(one)? != number(other)?,
        [one, "-lt", other] => number(one)? < number(other)?,
        [one, "-le", other] => number(one)? <= number(other)?,
        [one, "-gt", other] => number(one)? > number(other)?,
        [one, "-ge", other] => number(one)? >= number(other)?,
        _ => return None,
    };
    Some(holds != not)
}

/// How many parts a part has, with itself.
fn size(part: &Part) -> usize {
    let all = |parts: &[Part]| parts.iter().map(size).sum::<usize>();
    1 + match part {
        Part::Command(_) | Part::Wrong(_) | Part::Function { .. } => 0,
        Part::Loop { body, .. } | Part::Count { body, .. } | Part::Group(body) => all(body),
        Part::If(branches) => branches.iter().map(|(_, body)| all(body)).sum(),
        Part::Case { arms, .. } => arms.iter().map(|(_, body)| all(body) + 1).sum(),
        Part::Test { dependent, .. } => dependent.iter().map(|(_, part)| size(part)).sum(),
        Part::Depends { part, .. } | Part::Apart { part, .. } => size(part),
    }
}
