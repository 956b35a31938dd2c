//! Loops, functions and conditions of a shell: `for i in 1 2 3; do …; done`, and `if [ A = B ]; then …; fi` or `case A in …`
//! where both sides are in the script, or are arguments, of which a script has none here. Loops are written out; their lists are in the script, so the number of commands
//! is known before any is read.

use std::collections::BTreeMap;
use std::ops::Range;

use super::arithmetic;
use super::shell::{self, Joined, Piece, raises_rights};
use super::variables::{Expanded, Variables, counted};
use crate::problem::{Found, Problem};

/// The most commands of a script, with those that loops come to.
const MOST: usize = 1 << 20;
/// The most turns of loops and looks at conditions, whether they lead to commands or not.
const MOST_STEPS: usize = 1 << 22;
/// The longest function that is looked through for commands without effect.
const SHORT: usize = 16;
/// Loops and conditions within one another.
const DEEPEST: usize = 32;

/// A part of a script.
#[derive(Debug)]
enum Part {
    Command(Piece),
    Loop {
        name: String,
        list: Range<usize>,
        body: Vec<Part>,
    },
    Function {
        name: String,
        body: Vec<Part>,
    },
    /// `case WORD in PATTERN | PATTERN) …;; esac`
    Case {
        word: Range<usize>,
        arms: Vec<(Vec<Range<usize>>, Vec<Part>)>,
    },
    /// Each branch with its condition; `None` for `else`.
    If(Vec<(Option<Range<usize>>, Vec<Part>)>),
    /// A condition, and what depends on it: `[ A = B ] && …`.
    Test {
        test: Range<usize>,
        dependent: Vec<(Joint, Part)>,
    },
    /// `{ …; }`
    Group(Vec<Part>),
    /// What runs only if the command before fails (`||`), or only if one succeeds of which that is not known (`&&`).
    Depends {
        on: Joint,
        at: Range<usize>,
        part: Box<Part>,
    },
    Wrong(Problem),
}

/// How a part depends on the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands without an effect on a network. What leads to these alone need not be known.
const HARMLESS: [&str; 7] = ["exit", "return", "echo", "printf", "logger", "true", ":"];

/// Programs whose success is a question; that of others is assumed.
const QUESTIONS: [&str; 13] = [
    "grep",
    "egrep",
    "fgrep",
    "false",
    "pgrep",
    "pidof",
    "cmp",
    "diff",
    "ping",
    "curl",
    "nc",
    "systemctl",
    "lsmod",
];

/// The most commands that are looked at for what they do.
const MOST_LOOKED_AT: usize = 1 << 10;

/// What to do about conditions.
const KEEP: &str = "keep the branch that applies, or use `narrows tc commands` (`narrows ipfw commands`)";
/// What to do about loops.
const LIST: &str = "write the list of values: for i in $(seq 1 4); do …, or use `narrows tc commands` (`narrows ipfw commands`)";

/// Words before a command that belong to a loop or condition.
const BEFORE: [&str; 3] = ["do", "then", "else"];
/// Words that begin what is not understood, the word that ends it, and what to write instead.
const OTHERS: [(&str, &str, &str); 3] =
    [("while", "done", LIST), ("until", "done", LIST), ("select", "done", LIST)];

/// Calls `command` with each command in the order in which a shell would run it, until it says that it was
/// the last one. Returns problems of loops and conditions.
pub(crate) fn run(
    text: &str,
    pieces: Vec<Piece>,
    variables: &mut Variables,
    command: &mut dyn FnMut(&Piece, &mut Variables) -> Next,
) -> Vec<Problem> {
    let mut parser = Parser { text, ahead: split(text, pieces).into_iter().peekable() };
    let parts = parser.parts(&[], 0);
    let mut runner = Runner {
        text,
        variables,
        command,
        problems: Vec::new(),
        left: MOST,
        steps: MOST_STEPS,
        functions: BTreeMap::new(),
        calls: 0,
    };
    runner.parts(&parts);
    runner.problems
}

/// How to go on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Command,
    /// A function ends.
    Return,
    /// It was wrong: the same in the next turn of a loop is not said again.
    Wrong,
    End,
}

/// Makes pieces of the words `do`, `then` and `else`, which stand before commands.
fn split(text: &str, pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        while let Some(length) =
            first_word(&text[piece.span.clone()]).filter(|word| BEFORE.contains(word)).map(str::len)
        {
            let start = piece.span.start;
            all.push(Piece { span: start..start + length, ..piece });
            let rest = &text[start + length..piece.span.end];
            piece.span.start = piece.span.end - rest.trim_start().len();
        }
        if !piece.span.is_empty() {
            all.push(piece);
        }
    }
    all
}

fn first_word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next().filter(|word| text.starts_with(word))
}

struct Parser<'a, I: Iterator<Item = Piece>> {
    text: &'a str,
    ahead: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = Piece>> Parser<'_, I> {
    fn word(&self, piece: &Piece) -> &str {
        first_word(&self.text[piece.span.clone()]).unwrap_or_default()
    }

    /// The name of the program that a piece runs.
    fn program(&self, piece: &Piece) -> &str {
        let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
        let name = words.find(|word| !raises_rights(word) && !word.contains('=')).unwrap_or_default();
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Reads parts up to one of these words, which stays, or to the end.
    fn parts(&mut self, ends: &[&str], depth: usize) -> Vec<Part> {
        self.parts_from(None, ends, false, depth)
    }

    /// The same behind a first command; with `is_arm`, also up to the `;;` of an arm of `case`.
    fn parts_from(
        &mut self,
        mut first: Option<Piece>,
        ends: &[&str],
        is_arm: bool,
        depth: usize,
    ) -> Vec<Part> {
        let mut all = Vec::new();
        let mut is_asked = false;
        loop {
            let piece = match first.take() {
                Some(piece) => piece,
                None => {
                    let Some(piece) = self.ahead.peek() else { break };
                    let word = first_word(&self.text[piece.span.clone()]).unwrap_or_default();
                    if ends.contains(&word) || is_arm && ends_an_arm(&self.text[..piece.span.start]) {
                        break;
                    }
                    let Some(piece) = self.ahead.next() else { break };
                    piece
                }
            };
            let before =
                self.text[..piece.span.start].trim_end_matches(|c: char| c.is_whitespace() || c == '\\');
            let is_chained = before.ends_with("&&") || before.ends_with("||");
            let was_asked = is_chained && is_asked;
            is_asked = was_asked || QUESTIONS.contains(&self.program(&piece));
            let on = match piece.joined {
                Joined::OnFailure => Some(Joint::Or),
                _ if was_asked && before.ends_with("&&") => Some(Joint::And),
                _ => None,
            };
            let at = piece.span.clone();
            let part = self.part(piece, depth);
            all.push(match on {
                Some(on) => Part::Depends { on, at, part: Box::new(part) },
                None => part,
            });
        }
        all
    }

    fn part(&mut self, piece: Piece, depth: usize) -> Part {
        let span = piece.span.clone();
        let word = self.word(&piece).to_owned();
        let at = span.start..span.start + word.len();
        let wrong = |title: String| Problem::new(title).at(&at);
        if depth >= DEEPEST && matches!(word.as_str(), "for" | "if" | "case") {
            return Part::Wrong(wrong(format!("loops and conditions more than {DEEPEST} deep")));
        }
        if let Some((_, end, instead)) = OTHERS.iter().find(|(name, _, _)| *name == word) {
            self.skip(end);
            return Part::Wrong(wrong(format!("`{word}` of a shell is not run")).help(*instead));
        }
        match word.as_str() {
            "for" => self.of_for(&piece, depth).unwrap_or_else(Part::Wrong),
            "if" => self.of_if(&piece, depth).unwrap_or_else(Part::Wrong),
            "case" => self.of_case(&piece, depth).unwrap_or_else(Part::Wrong),
            "function" => self.function(&piece, &at, depth).unwrap_or_else(Part::Wrong),
            _ if word.contains("()")
                || self.text[span.start + word.len()..span.end].trim_start().starts_with("()") =>
            {
                self.function(&piece, &at, depth).unwrap_or_else(Part::Wrong)
            }
            "[" | "[[" | "test" => self.test(piece, depth),
            "{" => self.group(&piece, &at, depth).unwrap_or_else(Part::Wrong),
            "do" | "done" | "then" | "else" | "elif" | "fi" | "esac" | "}" => {
                Part::Wrong(wrong(format!("`{word}` without what it belongs to")))
            }
            _ => Part::Command(piece),
        }
    }

    /// A condition by itself, with the commands that depend on it.
    fn test(&mut self, piece: Piece, depth: usize) -> Part {
        let test = piece.span.clone();
        let mut end = test.end;
        let mut dependent = Vec::new();
        while let Some(joint) = self.joint(end) {
            let Some(next) = self.ahead.next() else { break };
            end = next.span.end;
            let next = Piece { joined: Joined::After, ..next };
            let is_test = matches!(self.word(&next), "[" | "[[" | "test");
            let part = match is_test {
                true => Part::Test { test: next.span, dependent: Vec::new() },
                false => self.part(next, depth + 1),
            };
            if let Part::Wrong(_) = part {
                return part;
            }
            // A group ends elsewhere.
            let is_plain = is_test || matches!(part, Part::Command(_));
            dependent.push((joint, part));
            if !is_plain {
                break;
            }
        }
        Part::Test { test, dependent }
    }

    /// What joins the command that ends there with the next one.
    fn joint(&self, end: usize) -> Option<Joint> {
        let rest = self.text[end..].trim_start_matches([' ', '\t']);
        match rest.as_bytes() {
            [b'&', b'&', ..] => Some(Joint::And),
            [b'|', b'|', ..] => Some(Joint::Or),
            _ => None,
        }
    }

    /// `{`, commands, `}`.
    fn group(&mut self, piece: &Piece, at: &Range<usize>, depth: usize) -> Result<Part, Problem> {
        if depth >= DEEPEST {
            self.skip("}");
            return Err(Problem::new("groups, loops and conditions too deep within one another").at(at));
        }
        let rest = &self.text[piece.span.start + 1..piece.span.end];
        let first = piece.span.end - rest.trim_start().len()..piece.span.end;
        let first = (!first.is_empty()).then_some(Piece { span: first, joined: Joined::After });
        let body = self.parts_from(first, &["}"], false, depth + 1);
        match self.ahead.next() {
            Some(_) => Ok(Part::Group(body)),
            None => Err(Problem::new("`{` without `}`").at(at)),
        }
    }

    /// Skips to the word that ends something, with what is of the same kind inside.
    fn skip(&mut self, end: &str) {
        let mut deep = 1;
        while let Some(piece) = self.ahead.next() {
            let word = self.word(&piece);
            match end {
                "done" if matches!(word, "for" | "while" | "until" | "select") => deep += 1,
                "esac" if word == "case" => deep += 1,
                "}" if self.text[piece.span.clone()].trim_end().ends_with('{') => deep += 1,
                _ if word == end => deep -= 1,
                _ => {}
            }
            if deep == 0 {
                return;
            }
        }
    }

    /// `NAME() {`, commands, `}`.
    fn function(&mut self, piece: &Piece, at: &Range<usize>, depth: usize) -> Result<Part, Problem> {
        let header = &self.text[piece.span.clone()];
        let named = header.strip_prefix("function ").unwrap_or(header).trim_start();
        let name = named
            [..named.find(|c: char| c == '(' || c == '{' || c.is_whitespace()).unwrap_or(named.len())]
            .to_owned();
        let mut opens = piece.span.clone();
        let mut brace = header.find('{');
        if brace.is_none()
            && let Some(next) = self.ahead.next_if(|next| self.text[next.span.clone()].starts_with('{'))
        {
            (opens, brace) = (next.span, Some(0));
        }
        let wrong = |title: &str| Problem::new(title).at(at).help("as in: shape() { tc qdisc add …; }");
        let Some(brace) = brace.filter(|_| !name.is_empty()) else {
            return Err(wrong("a function of a shell that is not understood"));
        };
        if depth >= DEEPEST {
            self.skip("}");
            return Err(wrong("functions, loops and conditions too deep within one another"));
        }
        let rest = &self.text[opens.start + brace + 1..opens.end];
        let first = opens.end - rest.trim_start().len()..opens.end;
        let first = (!first.is_empty()).then_some(Piece { span: first, joined: Joined::After });
        let body = self.parts_from(first, &["}"], false, depth + 1);
        match self.ahead.next() {
            Some(_) => Ok(Part::Function { name, body }),
            None => Err(wrong("a function without `}`")),
        }
    }

    /// `for NAME in WORDS`, `do`, commands, `done`.
    fn of_for(&mut self, piece: &Piece, depth: usize) -> Result<Part, Problem> {
        let span = &piece.span;
        let words = shell::words(self.text, span.clone());
        let name = words.get(1).map(|word| &self.text[word.clone()]).unwrap_or_default();
        let is_list = words.get(2).is_some_and(|word| &self.text[word.clone()] == "in");
        let name = name.to_owned();
        let opens = self.ahead.next_if(|next| &self.text[next.span.clone()] == "do").is_some();
        if !opens {
            self.skip("done");
            return Err(Problem::new("`for` that is not understood")
                .at(span)
                .help("as in: for i in 1 2 3; do …; done"));
        }
        let body = self.parts(&["done"], depth + 1);
        if self.ahead.next().is_none() {
            return Err(Problem::new("`for` without `done`").at(span));
        }
        if !is_list || name.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            return Err(Problem::new("`for` without a list")
                .at(span)
                .help("as in: for i in 1 2 3; do …; done, or: for i in $(seq 1 4); do …"));
        }
        Ok(Part::Loop { name, list: words[2].end..span.end, body })
    }

    /// `case WORD in`, arms of patterns and commands, `esac`.
    fn of_case(&mut self, piece: &Piece, depth: usize) -> Result<Part, Problem> {
        let span = &piece.span;
        let words = shell::words(self.text, span.clone());
        let wrong = || {
            Problem::new("`case` that is not understood")
                .at(span)
                .help("as in: case $1 in start) …;; *) …;; esac")
        };
        let is_in = words.get(2).is_some_and(|word| &self.text[word.clone()] == "in");
        if !is_in {
            self.skip("esac");
            return Err(wrong());
        }
        // The first pattern may stand on the line of `case`.
        let rest = words[2].end + blank(&self.text[words[2].end..span.end])..span.end;
        let mut first = (!rest.is_empty()).then_some(Piece { span: rest, joined: Joined::After });
        let mut arms = Vec::new();
        loop {
            let Some(mut piece) = first.take().or_else(|| self.ahead.next()) else { return Err(wrong()) };
            if self.word(&piece) == "esac" {
                return Ok(Part::Case { word: words[1].clone(), arms });
            }
            // Patterns are joined by `|`.
            let mut patterns = Vec::new();
            let close = loop {
                let text = &self.text[piece.span.clone()];
                let close = text.find(')');
                patterns.push(piece.span.start..piece.span.start + close.unwrap_or(text.len()));
                if let Some(close) = close {
                    break piece.span.start + close + 1;
                }
                piece = self.ahead.next().ok_or_else(wrong)?;
            };
            let command = close + blank(&self.text[close..piece.span.end])..piece.span.end;
            let first = (!command.is_empty()).then_some(Piece { span: command, joined: Joined::After });
            // `a) ;; b) …`: an arm without commands.
            let body = match first {
                None if self.ahead.peek().is_some_and(|next| ends_an_arm(&self.text[..next.span.start])) => {
                    Vec::new()
                }
                first => self.parts_from(first, &["esac"], true, depth + 1),
            };
            arms.push((patterns, body));
        }
    }

    /// `if TEST`, `then`, commands, with `elif` and `else`, `fi`.
    fn of_if(&mut self, piece: &Piece, depth: usize) -> Result<Part, Problem> {
        let mut test = Some(piece.span.start + "if".len()..piece.span.end);
        let mut branches = Vec::new();
        loop {
            // Tests joined by `&&` and `||` are more pieces.
            while let Some(next) = self
                .ahead
                .next_if(|next| test.is_some() && first_word(&self.text[next.span.clone()]) != Some("then"))
            {
                if let Some(test) = &mut test {
                    test.end = next.span.end;
                }
            }
            if test.is_some() && self.ahead.next().is_none() {
                return Err(Problem::new("`if` without `then`").at(&piece.span));
            }
            let body = self.parts(&["elif", "else", "fi"], depth + 1);
            branches.push((test.take(), body));
            let Some(next) = self.ahead.next() else {
                return Err(Problem::new("`if` without `fi`").at(&piece.span));
            };
            match self.word(&next) {
                "elif" => test = Some(next.span.start + "elif".len()..next.span.end),
                "else" => {}
                _ => return Ok(Part::If(branches)),
            }
        }
    }
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
}

impl<'p> Runner<'_, 'p> {
    fn parts(&mut self, parts: &'p [Part]) -> Next {
        let mut worst = Next::Command;
        for part in parts {
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
                Part::If(branches) => self.branch(branches),
                Part::Case { word, arms } => self.case(word, arms),
                Part::Test { test, dependent } => self.test(test, dependent),
                Part::Group(body) => self.parts(body),
                Part::Depends { on, at, part } => self.depends(*on, at, part),
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
            return Next::Return;
        }
        let Some(body) = self.functions.get(word).copied() else {
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
        if next == Next::Return { Next::Command } else { next }
    }

    /// What depends on the command before: a command that fails is none here.
    fn depends(&mut self, on: Joint, at: &Range<usize>, part: &'p Part) -> Next {
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
            Joint::And => self.parts(std::slice::from_ref(part)),
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
            Part::Loop { body, .. } | Part::Group(body) => any(body),
            Part::If(branches) => branches.iter().any(|(_, body)| any(body)),
            Part::Case { arms, .. } => arms.iter().any(|(_, body)| any(body)),
            Part::Test { dependent, .. } => dependent.iter().any(|(_, part)| self.matters(part, on, left)),
            Part::Depends { part, .. } => self.matters(part, on, left),
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
        let is_tc = |word: &str| matches!(word, "tc" | "mtu") || word.ends_with("/tc");
        let ends = on == Joint::And && matches!(first, "exit" | "return");
        ends || first.starts_with(['$', '('])
            || first.contains('=')
            || OTHERS.contains(&first)
            || text.split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'')).any(is_tc)
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
        let word = |piece: &Piece| first_word(&self.text[piece.span.clone()]).unwrap_or_default();
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
            Part::Depends { part, .. } => self.is_harmless(part),
            Part::Loop { .. } | Part::Function { .. } | Part::Wrong(_) => false,
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
                            if branches
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
        let words = self.variables.words_without_arguments(self.text, test.clone());
        words.ok().filter(|_| self.calls == 0).and_then(|words| self.compared(&words))
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
        let shows = words.iter().any(|word| matches!(*word, "show" | "list" | "ls"));
        match (name, words.get(1).copied()) {
            ("command", Some("-v")) => Some((Next::Command, !not)),
            ("tc", _) if !shows => {
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
        let words = self.variables.words(self.text, test.clone()).map_err(|_| unknown())?;
        self.compared(&words).ok_or_else(unknown)
    }

    /// The same for its words, if it is a comparison that is understood.
    fn compared(&self, words: &[Expanded]) -> Option<bool> {
        let mut words: Vec<&str> = words.iter().map(Expanded::text).collect();
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
        let (not, words) = match words.split_first() {
            Some((&"!", rest)) => (true, rest),
            _ => (false, &words[..]),
        };
        let number = |text: &str| arithmetic::number(text);
        let holds = match words {
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
}

/// How many parts a part has, with itself.
fn size(part: &Part) -> usize {
    let all = |parts: &[Part]| parts.iter().map(size).sum::<usize>();
    1 + match part {
        Part::Command(_) | Part::Wrong(_) | Part::Function { .. } => 0,
        Part::Loop { body, .. } | Part::Group(body) => all(body),
        Part::If(branches) => branches.iter().map(|(_, body)| all(body)).sum(),
        Part::Case { arms, .. } => arms.iter().map(|(_, body)| all(body) + 1).sum(),
        Part::Test { dependent, .. } => dependent.iter().map(|(_, part)| size(part)).sum(),
        Part::Depends { part, .. } => size(part),
    }
}

/// Bytes before a command in which the `;;` of the arm before it is looked for.
const BEFORE_AN_ARM: usize = 1 << 12;

/// Whether the commands of a text end with the `;;` of an arm of `case`; comments may follow it.
fn ends_an_arm(text: &str) -> bool {
    let start = text.len().saturating_sub(BEFORE_AN_ARM);
    let near = (start..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default();
    let mut lines =
        near.rsplit('\n').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let code = line.rfind(";;").map(|at| line[at + 2..].trim_start());
        code.is_some_and(|behind| behind.is_empty() || behind.starts_with('#'))
    })
}

/// Whether a word fits a pattern of a shell, with `*` and `?`.
fn fits(pattern: &str, word: &str) -> bool {
    let word: Vec<char> = word.chars().collect();
    let alike = |part: &[char], at: &[char]| part.iter().zip(at).all(|(part, c)| *part == '?' || part == c);
    let parts: Vec<Vec<char>> = pattern.split('*').map(|part| part.chars().collect()).collect();
    let [first, middle @ .., last] = &parts[..] else {
        return parts[0].len() == word.len() && alike(&parts[0], &word);
    };
    if word.len() < first.len() + last.len() {
        return false;
    }
    let (start, rest) = word.split_at(first.len());
    let (mut rest, end) = rest.split_at(rest.len() - last.len());
    if !alike(first, start) || !alike(last, end) {
        return false;
    }
    // The first place where each of the others fits leaves most to those behind.
    middle.iter().all(|part| {
        let place = (0..(rest.len() + 1).saturating_sub(part.len())).find(|at| alike(part, &rest[*at..]));
        place.inspect(|at| rest = &rest[at + part.len()..]).is_some()
    })
}

fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that a script comes to, or its first problem.
    fn commands(text: &str) -> Result<Vec<String>, String> {
        let pieces = shell::pieces(text).unwrap();
        let mut all = Vec::new();
        let problems = run(text, pieces, &mut Variables::default(), &mut |piece, variables| {
            let rest = variables.assign(text, piece.span.clone()).unwrap();
            let words = variables.words(text, rest).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(Expanded::text).collect();
            all.extend((!words.is_empty()).then(|| words.join(" ")));
            if words.first() == Some(&"exit") { Next::End } else { Next::Command }
        });
        match problems.into_iter().next() {
            Some(problem) => Err(crate::ScenarioError::new("", "", vec![problem]).to_string()),
            None => Ok(all),
        }
    }

    #[test]
    fn the_first_pattern_that_fits_is_run() {
        for (text, expected) in [
            ("case b in a) x;; b) y; z;; *) w;; esac", &["y", "z"][..]),
            (
                "A=up\ncase \"$A\" in\n  start|up)\n    x\n    y ;; # or\n  # down\n  down) z\n;;\nesac\nw",
                &["x", "y", "w"],
            ),
            ("case eth0 in wlan*) x;; et?0) y;; esac", &["y"]),
            ("case a in (b) x;; (a) case c in c) y;; esac;; esac\nz", &["y", "z"]),
            ("case $1 in del) x;; *) y;; esac", &["y"]),
            ("case \"${1:-status}\" in start) x;; status) y;; esac", &["y"]),
            ("case $# in 0) x;; *) y;; esac", &["x"]),
            ("case a in b) x;; esac\ny", &["y"]),
            ("f() { case $1 in on) x $2;; esac; }\nf on 3\nf off 4", &["x 3"]),
            ("case $(uname) in Linux) echo a;; *) exit;; esac\nx", &["x"]),
            // A command is assumed to succeed.
            ("x || { echo a; exit 1; }\ny", &["x", "y"]),
            ("die() { echo a; exit 1; }\nx || die b\ny", &["x", "y"]),
            ("x || {\n  y\n  exit 1\n}\nz && w", &["x", "z", "w"]),
            ("f() { x || return 1; y; }\nf\nz", &["x", "y", "z"]),
            ("case a in a) x || { echo b; exit 1; }\n y;; esac\nz", &["x", "y", "z"]),
            ("case a in b) ;; a) x;; esac", &["x"]),
            // Of functions that call one another, too.
            ("D=eth0\nf() { local D; D=eth9; x $D; }\nf\ny $D", &["x eth9", "y eth0"]),
            ("f() { x ${2:-7}; }\ng() { f a; y $2; }\ng 1 99", &["x 7", "y 99"]),
            // Local variables end with their function.
            ("D=5\nf() { local D=9; x $D; }\nf\ny $D", &["x 9", "y 5"]),
        ] {
            assert_eq!(
                commands(text).as_deref(),
                Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        for (text, error) in [
            ("x || { tc y; }", "what depends on the success or failure of another command"),
            ("f() { tc y; }\nx || f", "what depends on the success or failure"),
            ("grep -q x y && tc z", "what depends on the success or failure"),
            ("ip x | grep y && exit", "what depends on the success or failure"),
            ("case $(uname) in Linux) x;; esac", "`$(uname)` is a command"),
            ("case a in [ab]) x;; esac", "the pattern `[ab]` is not understood"),
            ("case a in \"*\") x;; esac", "is not understood"),
            ("f() { grep -q x y && tc z; }\nf", "what depends on the success or failure"),
            ("grep -q x y && echo a && tc z", "what depends on the success or failure"),
            ("LANG=C grep -q x y && tc z", "what depends on the success or failure"),
            ("grep -q x y && DEV=a", "what depends on the success or failure"),
            ("grep -q x y && $TC z", "what depends on the success or failure"),
            ("x || { $TC z; }", "what depends on the success or failure"),
            ("case a in a) grep -q x y && tc z;; esac", "what depends on the success or failure"),
            ("case a b) x;; esac\ny", "`case` that is not understood"),
            ("case a in b) x", "`case` that is not understood"),
        ] {
            let found = commands(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }

    #[test]
    fn conditions_of_arguments_are_those_of_none() {
        for (text, expected) in [
            ("if [ \"$1\" == \"del\" ]; then x; else y; fi", &["y"][..]),
            ("if [ $# -gt 0 ]; then x; else y; fi", &["y"]),
            ("[ -z \"$1\" ] && x\n[ -n \"$2\" ] && y", &["x"]),
            ("A=$1\nif [ -z \"$A\" ]; then A=eth0; fi\nx $A", &["x eth0"]),
            // Where it does not matter, the script goes on.
            ("if [ $# -lt 1 ]; then echo usage; exit 1; fi\nx", &["x"]),
        ] {
            assert_eq!(
                commands(text).as_deref(),
                Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        let inside = commands("f() { if [ $# -gt 1 ]; then x; fi; }\nf a b").unwrap_err();
        assert!(inside.contains("a condition that depends on more than the script"), "{inside}");
    }

    #[test]
    fn patterns_of_a_shell() {
        for (pattern, word, expected) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("ab*ba", "aba", false),
            ("*a*a*a*a*a*a*a*b", &"a".repeat(5_000), false),
        ] {
            assert_eq!(fits(pattern, word), expected, "{pattern} {word}");
        }
    }
}
