//! Makes parts of a script's commands.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{DEEPEST, Joint, KEEP, Part, blank, first_word};
use crate::dialect::shell::{self, Joined, Piece, raises_rights};
use crate::problem::Problem;

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

/// Programs that succeed as long as a script does what it says, but for those of its commands that ask or delete: behind `&&`
/// of others, an `exit` may be taken or not.
const SURE: [&str; 8] = ["echo", "printf", "logger", "true", ":", "tc", "ipfw", "dnctl"];
const UNSURE: [&str; 5] = ["list", "show", "ls", "del", "delete"];

/// Commands of a shell that set variables.
const SETS: [&str; 7] = ["let", "export", "set", "shift", "declare", "typeset", "readonly"];

/// What to do about loops.
const LIST: &str = "write the list of values: for i in $(seq 1 4); do …, or use `narrows tc commands` (`narrows ipfw commands`)";

/// Words before a command that belong to a loop or condition.
const BEFORE: [&str; 3] = ["do", "then", "else"];
/// Words that begin what is not understood, the word that ends it, and what to write instead.
const OTHERS: [(&str, &str, &str); 3] =
    [("while", "done", LIST), ("until", "done", LIST), ("select", "done", LIST)];

/// The parts of a script.
pub(super) fn parse(text: &str, pieces: Vec<Piece>) -> Vec<Part> {
    let ahead = split(text, pieces).into_iter().peekable();
    Parser { text, ahead, last: 0, functions: BTreeMap::new() }.parts(&[], 0)
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

struct Parser<'a, I: Iterator<Item = Piece>> {
    text: &'a str,
    ahead: std::iter::Peekable<I>,
    /// Where the last piece ends that was taken.
    last: usize,
    /// The functions so far, and whether each may fail.
    functions: BTreeMap<String, bool>,
}

impl<I: Iterator<Item = Piece>> Parser<'_, I> {
    fn take(&mut self) -> Option<Piece> {
        self.take_if(|_| true)
    }

    fn take_if(&mut self, is: impl FnOnce(&Piece) -> bool) -> Option<Piece> {
        let piece = self.ahead.next_if(is)?;
        self.last = piece.span.end;
        Some(piece)
    }

    fn word(&self, piece: &Piece) -> &str {
        first_word(&self.text[piece.span.clone()]).unwrap_or_default()
    }

    /// Whether a command may fail, so that what depends on it may not run.
    fn is_question(&self, piece: &Piece) -> bool {
        let text = &self.text[piece.span.clone()];
        QUESTIONS.contains(&self.program(piece))
            // A calculation fails where it comes to zero.
            || text.starts_with("((")
            || text.starts_with("let ")
            || self.functions.get(self.word(piece)).is_some_and(|may_fail| *may_fail)
    }

    /// The same for the last of these parts.
    fn may_fail(&self, parts: &[Part]) -> bool {
        match parts.last() {
            Some(Part::Command(piece)) => self.is_question(piece),
            Some(Part::Test { .. }) => true,
            Some(Part::Group(body) | Part::Loop { body, .. } | Part::Count { body, .. }) => {
                self.may_fail(body)
            }
            Some(Part::If(branches)) => branches.iter().any(|(_, body)| self.may_fail(body)),
            Some(Part::Case { arms, .. }) => arms.iter().any(|(_, body)| self.may_fail(body)),
            Some(Part::Depends { part, .. }) => self.may_fail(std::slice::from_ref(part)),
            _ => false,
        }
    }

    /// A part that runs in a shell of its own: beside a pipe, or in the background.
    fn apart(&self, part: Part, is_piped: bool, at: &Range<usize>) -> Part {
        let behind = self.text[self.last..].trim_start_matches([' ', '\t']);
        let is_background = behind.starts_with('&') && !behind.starts_with("&&");
        let is_piped = is_piped || behind.starts_with('|') && !behind.starts_with("||");
        let is_plain = match &part {
            Part::Command(piece) => {
                let is_called = self.functions.contains_key(self.word(piece));
                let waits = is_background && matches!(self.program(piece), "sleep" | "exit");
                let word = self.word(piece);
                let sets = word.contains('=') || word.starts_with("((") || SETS.contains(&word);
                !is_called && !waits && !sets
            }
            Part::Function { .. } | Part::Wrong(_) => true,
            _ => false,
        };
        match (is_background || is_piped) && !is_plain {
            true => Part::Apart { part: Box::new(part), is_background, at: at.clone() },
            false => part,
        }
    }

    /// The name of the program that a piece runs.
    fn program(&self, piece: &Piece) -> &str {
        let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
        let name = words.find(|word| !raises_rights(word) && !word.contains('=')).unwrap_or_default();
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Whether the command surely succeeds.
    fn is_sure(&self, piece: &Piece) -> bool {
        let mut words = self.text[piece.span.clone()].split_ascii_whitespace();
        SURE.contains(&self.program(piece)) && !words.any(|word| UNSURE.contains(&word))
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
        let (mut is_asked, mut is_sure) = (false, true);
        loop {
            let piece = match first.take() {
                Some(piece) => piece,
                None => {
                    let Some(piece) = self.ahead.peek() else { break };
                    let word = first_word(&self.text[piece.span.clone()]).unwrap_or_default();
                    if ends.contains(&word) || is_arm && ends_an_arm(&self.text[..piece.span.start]) {
                        break;
                    }
                    let Some(piece) = self.take() else { break };
                    piece
                }
            };
            let before =
                self.text[..piece.span.start].trim_end_matches(|c: char| c.is_whitespace() || c == '\\');
            let is_chained = before.ends_with("&&") || before.ends_with("||");
            let was_asked = is_chained && is_asked;
            let was_sure = std::mem::replace(&mut is_sure, self.is_sure(&piece));
            is_asked = was_asked || self.is_question(&piece);
            let ends = matches!(self.word(&piece), "exit" | "return");
            let on = match piece.joined {
                Joined::OnFailure => Some(Joint::Or),
                _ if !before.ends_with("&&") => None,
                _ if was_asked || ends && !was_sure => Some(Joint::And),
                _ => Some(Joint::Then),
            };
            let at = piece.span.clone();
            let is_piped = piece.joined == Joined::Piped;
            let part = self.part(piece, depth);
            is_asked |= !matches!(part, Part::Command(_)) && self.may_fail(std::slice::from_ref(&part));
            let part = self.apart(part, is_piped, &at);
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
            let Some(next) = self.take() else { break };
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
            let is_known = is_test || matches!(&part, Part::Command(piece) if !self.is_question(piece));
            let at = end..end;
            dependent.push((joint, part));
            if !is_known && self.joint(self.last) == Some(Joint::And) {
                return Part::Wrong(
                    Problem::new("what depends on the success of a command or group that may fail")
                        .at(&(at.start.saturating_sub(1)..at.end))
                        .help(format!("scripts are read, not run: {KEEP}")),
                );
            }
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
        match self.take() {
            Some(_) => Ok(Part::Group(body)),
            None => Err(Problem::new("`{` without `}`").at(at)),
        }
    }

    /// Skips to the word that ends something, with what is of the same kind inside.
    fn skip(&mut self, end: &str) {
        let mut deep = 1;
        while let Some(piece) = self.take() {
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
        let text = self.text;
        let header = &text[piece.span.clone()];
        let named = header.strip_prefix("function ").unwrap_or(header).trim_start();
        let name = named
            [..named.find(|c: char| c == '(' || c == '{' || c.is_whitespace()).unwrap_or(named.len())]
            .to_owned();
        let mut opens = piece.span.clone();
        let mut brace = header.find('{');
        if brace.is_none()
            && let Some(next) = self.take_if(|next| text[next.span.clone()].starts_with('{'))
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
        match self.take() {
            Some(_) => {
                let may_fail = self.may_fail(&body);
                self.functions.insert(name.clone(), may_fail);
                Ok(Part::Function { name, body })
            }
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
        let text = self.text;
        let opens = self.take_if(|next| &text[next.span.clone()] == "do").is_some();
        if !opens {
            self.skip("done");
            return Err(Problem::new("`for` that is not understood")
                .at(span)
                .help("as in: for i in 1 2 3; do …; done"));
        }
        let body = self.parts(&["done"], depth + 1);
        if self.take().is_none() {
            return Err(Problem::new("`for` without `done`").at(span));
        }
        if let Some(calculations) = self.calculations(span) {
            return Ok(Part::Count { calculations, body });
        }
        if !is_list || name.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            return Err(Problem::new("`for` without a list")
                .at(span)
                .help("as in: for i in 1 2 3; do …; done, or: for i in $(seq 1 4); do …"));
        }
        Ok(Part::Loop { name, list: words[2].end..span.end, body })
    }

    /// The three calculations of `for ((I = 0; I < 4; I++))`.
    fn calculations(&self, header: &Range<usize>) -> Option<[Range<usize>; 3]> {
        let text = &self.text[header.clone()];
        let from = text.find("((")? + 2;
        let inside = &text[from..text.trim_end().strip_suffix("))")?.len()];
        let (mut all, mut start) = (Vec::new(), header.start + from);
        for part in inside.split(';') {
            let blank = blank(part);
            all.push(start + blank..start + blank + part.trim().len());
            start += part.len() + 1;
        }
        all.try_into().ok()
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
            let Some(mut piece) = first.take().or_else(|| self.take()) else { return Err(wrong()) };
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
                piece = self.take().ok_or_else(wrong)?;
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
            if test.is_some() && self.take().is_none() {
                return Err(Problem::new("`if` without `then`").at(&piece.span));
            }
            let body = self.parts(&["elif", "else", "fi"], depth + 1);
            branches.push((test.take(), body));
            let Some(next) = self.take() else {
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
