//! Makes a tree of a script, one chain of commands after another.
//!
//! Grammar: POSIX.1-2017, Shell Command Language, 2.10, with `function`, `[[`, `((`, `for ((`, `|&`, `<<<`, `;&` and `select`
//! of bash. What a shell would refuse inside a command, as a parenthesis in the middle of its words, is part of a word.

use std::ops::Range;
use std::rc::Rc;

use super::Lines;
use super::scan::{self, byte, name_length};
use super::tree::{Arm, ArmEnd, Chain, Command, Document, Joint, List, Node, Pipeline, Redirect, Word};
use crate::problem::{Found, Problem};

/// Loops, conditions, groups and functions within one another.
pub(super) const DEEPEST: usize = 64;

/// Words of the language that end a list of commands.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    lines: Lines<'a>,
    /// `# tc` at the start of a line is a command behind the prompt of a root shell.
    has_prompts: bool,
    /// Where the lines of here-documents end that begin behind the next line end.
    documents_end: Option<usize>,
    depth: usize,
    /// How many parentheses are open.
    open: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, lines: Lines<'a>, has_prompts: bool) -> Self {
        Self { text, at: 0, lines, has_prompts, documents_end: None, depth: 0, open: 0 }
    }

    /// The next chain of commands; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Chain>, Problem> {
        let Some(chain) = self.chain(&[])? else {
            return match self.text[self.at..].trim().is_empty() {
                true => Ok(None),
                false => Err(self.unexpected()),
            };
        };
        Ok(Some(chain))
    }

    /// The error for what no command begins with.
    fn unexpected(&self) -> Problem {
        let end = scan::word(self.text, self.at, false).unwrap_or(self.text.len());
        let end = end.max(self.at + scan::char_length(self.text, self.at)).min(self.text.len());
        let word = &self.text[self.at..end];
        let place = self.at..end;
        match word {
            "done" | "fi" | "esac" | "}" | "then" | "do" | "else" | "elif" => {
                Problem::new(format!("`{word}` without what it belongs to")).at(&place)
            }
            _ => Problem::new(format!("{} where a command is expected", Found(word))).at(&place),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks, continued lines and a comment.
    fn blanks(&mut self) {
        loop {
            match byte(self.text, self.at) {
                _ if self.at >= self.text.len() => return,
                b'\n' => return,
                space if space.is_ascii_whitespace() => self.at += 1,
                b'\\' => match scan::continuation(self.text, self.at) {
                    Some(length) => self.at = (self.at + length).min(self.text.len()),
                    None => return,
                },
                _ if self.prompt() > 0 => self.at += self.prompt(),
                b'#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    /// The length of a prompt before a command, as in a session that somebody shows.
    fn prompt(&self) -> usize {
        let is_first =
            self.text[..self.at].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
        let line = self.rest().split('\n').next().unwrap_or_default();
        match is_first {
            true => scan::prompt(line, self.has_prompts),
            false => 0,
        }
    }

    /// Takes a line end, with the here-documents behind it.
    fn take_line_end(&mut self) -> bool {
        if self.at >= self.text.len() || byte(self.text, self.at) != b'\n' {
            return false;
        }
        self.at = self.documents_end.take().unwrap_or(self.at + 1);
        true
    }

    fn lines_and_blanks(&mut self) {
        self.blanks();
        while self.take_line_end() {
            if self.own().is_some() {
                return;
            }
            self.blanks();
        }
    }

    /// Whether commands end here: at a word of the language, a parenthesis, or `;;`.
    fn is_end(&self, ends: &[&str]) -> bool {
        self.at >= self.text.len()
            || self.open > 0 && byte(self.text, self.at) == b')'
            || self.rest().starts_with(";;")
            || self.rest().starts_with(";&")
            || self.reserved().is_some_and(|word| ends.contains(&word) || ENDS.contains(&word))
    }

    /// The word at this place, if it is one of letters, or a brace.
    fn reserved(&self) -> Option<&'a str> {
        let rest = self.rest();
        let length = match rest.as_bytes().first()? {
            b'{' | b'}' | b'!' => 1,
            _ => rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_lowercase()).len(),
        };
        let behind = rest.as_bytes().get(length).copied().unwrap_or(b'\n');
        let is_word = length > 0
            && (behind.is_ascii_whitespace() || matches!(behind, b';' | b'&' | b'|' | b')'))
            || rest[length..].starts_with('(') && matches!(&rest[..length], "if" | "while" | "until" | "for")
            || rest[length..].starts_with('#');
        (is_word && length > 0).then(|| &rest[..length])
    }

    fn take_reserved(&mut self, word: &str) -> bool {
        let is = self.reserved() == Some(word);
        if is {
            self.at += word.len();
        }
        is
    }

    /// Commands up to a word of the language.
    fn list(&mut self) -> Result<List, Problem> {
        let mut all = Vec::new();
        while let Some(chain) = self.chain(ENDS)? {
            all.push(chain);
        }
        Ok(all)
    }

    /// Pipelines joined by `&&` and `||`, and what separates them from the next.
    fn chain(&mut self, ends: &[&str]) -> Result<Option<Chain>, Problem> {
        loop {
            self.lines_and_blanks();
            // Where nothing stands before it, it separates nothing.
            let is_separator = match byte(self.text, self.at) {
                _ if self.at >= self.text.len() => false,
                b';' => self.depth == 0 || !matches!(byte(self.text, self.at + 1), b';' | b'&'),
                b'&' | b'|' => self.depth == 0,
                _ => false,
            };
            if !is_separator {
                break;
            }
            self.at += 1;
        }
        if self.own().is_none() && self.is_end(ends) {
            return Ok(None);
        }
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        let mut is_background = false;
        loop {
            self.blanks();
            let joint = match self.rest().as_bytes() {
                [b'&', b'&', ..] => Joint::And,
                [b'|', b'|', ..] => Joint::Or,
                [b';', b';' | b'&', ..] if self.depth > 0 => break,
                [b';', ..] => {
                    self.at += 1;
                    break;
                }
                [b'&', ..] => {
                    self.at += 1;
                    is_background = true;
                    break;
                }
                [b'\n', ..] => {
                    self.take_line_end();
                    break;
                }
                _ => break,
            };
            let joint_at = self.at;
            self.at += 2;
            self.lines_and_blanks();
            if self.is_end(ENDS) || matches!(byte(self.text, self.at), b';' | b'&' | b'|' | b'\n') {
                return Err(Problem::new(format!(
                    "`{}` without a command behind it",
                    &self.text[joint_at..joint_at + 2]
                ))
                .at(&(joint_at..joint_at + 2)));
            }
            rest.push((joint, self.pipeline()?));
        }
        Ok(Some(Chain { first, rest, is_background }))
    }

    fn pipeline(&mut self) -> Result<Pipeline, Problem> {
        let mut is_negated = false;
        let mut commands = Vec::new();
        loop {
            if commands.is_empty() {
                while self.take_reserved("!") || self.take_reserved("time") {
                    is_negated ^= byte(self.text, self.at - 1) == b'!';
                    self.blanks();
                }
            }
            commands.push(self.command()?);
            self.blanks();
            match self.rest().as_bytes() {
                [b'|', b'|', ..] => break,
                [b'|', b'&', ..] => self.at += 2,
                [b'|', ..] => self.at += 1,
                _ => break,
            }
            self.lines_and_blanks();
            // A pipe that ends the script, or a list.
            if self.is_end(ENDS) {
                break;
            }
        }
        Ok(Pipeline { is_negated, commands })
    }

    /// The lines at this place that a program reads itself.
    fn own(&self) -> Option<Range<usize>> {
        let before = self.text[..self.at].trim_end_matches([' ', '\t']);
        let line = before.len();
        if !before.is_empty() && !before.ends_with('\n') {
            return None;
        }
        let length = (self.lines.own)(line)?;
        Some(line..line + length)
    }

    fn command(&mut self) -> Result<Command, Problem> {
        if let Some(lines) = self.own() {
            self.at = lines.end;
            let text = &self.text[lines.clone()];
            let start = lines.start + text.len() - text.trim_start().len();
            // The line end separates it from the next.
            self.at -= usize::from(text.ends_with('\n'));
            let span = start..start + text.trim().len();
            return Ok(Command { node: Node::Own(span.clone()), redirects: Vec::new(), span });
        }
        let start = self.at;
        if self.depth >= DEEPEST {
            let title = format!("loops, conditions, groups and functions more than {DEEPEST} deep");
            return Err(Problem::new(title).at(&(start..start + scan::char_length(self.text, start))));
        }
        self.depth += 1;
        let node = self.compound()?;
        self.depth -= 1;
        let Some(node) = node else { return self.simple() };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command { node, redirects, span: start..self.at.max(start) }),
            }
        }
    }

    /// A command with other commands inside.
    fn compound(&mut self) -> Result<Option<Node>, Problem> {
        let start = self.at;
        if self.rest().starts_with("((") {
            let end = scan::parentheses(self.text, start, 0)?;
            let inside = self.text[start..end].strip_prefix("((").and_then(|text| text.strip_suffix("))"));
            if let Some(inside) = inside {
                self.at = end;
                return Ok(Some(Node::Calculation(start + 2..start + 2 + inside.len())));
            }
        }
        if self.rest().starts_with('(') {
            self.at += 1;
            self.open += 1;
            let body = self.list()?;
            self.open -= 1;
            if byte(self.text, self.at) != b')' || self.at >= self.text.len() {
                return Err(Problem::new("`(` without `)`").at(&(start..start + 1)));
            }
            self.at += 1;
            return Ok(Some(Node::Subshell(body)));
        }
        if self.rest().starts_with("[[") && byte(self.text, start + 2).is_ascii_whitespace() {
            return self.condition().map(Some);
        }
        if let Some(name) = self.function_name() {
            return self.function(name).map(Some);
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        let opens = self.at..self.at + word.len();
        match word {
            "{" => {
                self.at += 1;
                let body = self.list_inside()?;
                self.expect("}", &opens)?;
                Ok(Some(Node::Group(body)))
            }
            "if" => self.of_if(&opens).map(Some),
            "while" | "until" => {
                self.at += word.len();
                let test = self.list_inside()?;
                self.expect("do", &opens)?;
                let body = self.list_inside()?;
                self.expect("done", &opens)?;
                Ok(Some(Node::While { test, body, is_until: word == "until" }))
            }
            "for" => self.of_for(&opens).map(Some),
            "case" => self.of_case(&opens).map(Some),
            "select" => Err(Problem::new("`select` asks the user").at(&opens).help(super::KEEP)),
            _ => Ok(None),
        }
    }

    /// Commands that parentheses around do not end.
    fn list_inside(&mut self) -> Result<List, Problem> {
        let open = std::mem::take(&mut self.open);
        let list = self.list();
        self.open = open;
        list
    }

    /// Takes a word of the language, which must follow.
    fn expect(&mut self, word: &str, opens: &Range<usize>) -> Result<(), Problem> {
        match self.take_reserved(word) {
            true => Ok(()),
            false => Err(Problem::new(format!("`{}` without `{word}`", &self.text[opens.clone()])).at(opens)),
        }
    }

    fn of_if(&mut self, opens: &Range<usize>) -> Result<Node, Problem> {
        self.at += "if".len();
        let mut branches = Vec::new();
        loop {
            let test = self.list_inside()?;
            self.expect("then", opens)?;
            branches.push((Some(test), self.list_inside()?));
            if self.take_reserved("elif") {
                continue;
            }
            if self.take_reserved("else") {
                branches.push((None, self.list_inside()?));
            }
            self.expect("fi", opens)?;
            return Ok(Node::If(branches));
        }
    }

    fn of_for(&mut self, opens: &Range<usize>) -> Result<Node, Problem> {
        self.at += "for".len();
        self.blanks();
        let wrong = |span: Range<usize>| {
            Problem::new("`for` that is not understood").at(&span).help("as in: for i in 1 2 3; do …; done")
        };
        let start = self.at;
        if self.rest().starts_with("((") {
            let end = scan::parentheses(self.text, start, 0)?;
            self.at = end;
            let calculations = calculations(self.text, start..end).ok_or_else(|| wrong(opens.start..end))?;
            self.blanks();
            if byte(self.text, self.at) == b';' {
                self.at += 1;
            }
            let body = self.body(opens)?;
            return Ok(Node::Count { calculations, body });
        }
        let name = start..start + name_length(self.rest());
        self.at = name.end;
        if name.is_empty()
            || !byte(self.text, self.at).is_ascii_whitespace() && byte(self.text, self.at) != b';'
        {
            return Err(wrong(opens.start..name.end.max(opens.end)));
        }
        self.lines_and_blanks();
        let mut list = None;
        if self.take_reserved("in") {
            let mut words = Vec::new();
            loop {
                self.blanks();
                match byte(self.text, self.at) {
                    b';' | b'\n' => break,
                    b'&' | b'|' | b'<' | b'>' => return Err(wrong(opens.start..self.at)),
                    _ => words.push(self.word()?),
                }
            }
            list = Some(words);
        }
        self.blanks();
        if byte(self.text, self.at) == b';' {
            self.at += 1;
        }
        let body = self.body(opens)?;
        Ok(Node::For { name, list, body })
    }

    /// `do`, commands, `done`; or in braces.
    fn body(&mut self, opens: &Range<usize>) -> Result<List, Problem> {
        self.lines_and_blanks();
        let end = if self.take_reserved("{") { "}" } else { "done" };
        if end == "done" {
            self.expect("do", opens)?;
        }
        let body = self.list_inside()?;
        self.expect(end, opens)?;
        Ok(body)
    }

    fn of_case(&mut self, opens: &Range<usize>) -> Result<Node, Problem> {
        self.at += "case".len();
        self.blanks();
        let wrong = |end: usize| {
            Problem::new("`case` that is not understood")
                .at(&(opens.start..end.max(opens.end)))
                .help("as in: case $1 in start) …;; *) …;; esac")
        };
        if byte(self.text, self.at) == b'\n' {
            return Err(wrong(self.at));
        }
        let word = self.word()?;
        self.lines_and_blanks();
        if !self.take_reserved("in") {
            return Err(wrong(self.at));
        }
        let mut arms = Vec::new();
        loop {
            self.lines_and_blanks();
            if self.take_reserved("esac") {
                return Ok(Node::Case { word, arms });
            }
            if self.at >= self.text.len() {
                return Err(wrong(opens.end));
            }
            if byte(self.text, self.at) == b'(' {
                self.at += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                let end = self.pattern(true)?;
                if end == self.at {
                    return Err(wrong(self.at));
                }
                patterns.push(self.at..end);
                self.at = end;
                self.blanks();
                self.at += 1;
                match byte(self.text, self.at - 1) {
                    b'|' => {}
                    b')' if self.at <= self.text.len() => break,
                    _ => return Err(wrong(self.at - 1)),
                }
            }
            let body = self.list_inside()?;
            let (length, end) = match self.rest().as_bytes() {
                [b';', b';', b'&', ..] => (3, ArmEnd::GoesOn),
                [b';', b'&', ..] => (2, ArmEnd::Falls),
                [b';', b';', ..] => (2, ArmEnd::Leaves),
                _ if self.reserved() == Some("esac") => (0, ArmEnd::Leaves),
                _ => return Err(wrong(opens.end)),
            };
            self.at += length;
            arms.push(Arm { patterns, body, end });
        }
    }

    /// `[[ … ]]`
    fn condition(&mut self) -> Result<Node, Problem> {
        let start = self.at;
        self.at += 2;
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.take_line_end() {
                continue;
            }
            if self.at >= self.text.len() {
                return Err(Problem::new("`[[` without `]]`").at(&(start..start + 2)));
            }
            let length = match self.rest().as_bytes() {
                [b'&', b'&', ..] | [b'|', b'|', ..] => 2,
                [b'(' | b')' | b'<' | b'>', ..] => 1,
                // A pattern of `=~`, or of `==`, may have parentheses and `|`.
                _ if words.last().is_some_and(|last: &Word| {
                    matches!(&self.text[last.clone()], "=~" | "==" | "=" | "!=")
                }) =>
                {
                    self.pattern(false)? - self.at
                }
                _ => scan::word(self.text, self.at, true)? - self.at,
            };
            let word = self.at..self.at + length.max(1);
            self.at = word.end;
            if &self.text[word.clone()] == "]]" {
                return Ok(Node::Condition(words));
            }
            words.push(word);
        }
    }

    /// The end of a pattern, which may have parentheses; of one of `case` at `|`.
    fn pattern(&self, is_one_of: bool) -> Result<usize, Problem> {
        let (mut at, mut deep) = (self.at, 0_usize);
        while at < self.text.len() {
            let c = byte(self.text, at);
            match c {
                b'(' => deep += 1,
                b')' if deep == 0 => break,
                b'|' if deep == 0 && is_one_of => break,
                b')' => deep -= 1,
                _ if c.is_ascii_whitespace() && deep == 0 => break,
                _ => {
                    at = scan::unit(self.text, at, 0)?;
                    continue;
                }
            }
            at += 1;
        }
        Ok(at)
    }

    /// The name of a function that is defined here: `NAME()`, or `function NAME`.
    fn function_name(&self) -> Option<Range<usize>> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let by_word = self.rest().strip_prefix("function").filter(|rest| rest.starts_with([' ', '\t']));
        let named = by_word.map_or(self.rest(), str::trim_start);
        let start = self.text.len() - named.len();
        let length = named.len() - named.trim_start_matches(is_of_name).len();
        let behind = named[length..].trim_start_matches([' ', '\t']);
        let parentheses = behind.strip_prefix('(').map(|inside| inside.trim_start_matches([' ', '\t']));
        let is_one = by_word.is_some() || parentheses.is_some_and(|inside| inside.starts_with(')'));
        (length > 0 && is_one).then(|| start..start + length)
    }

    fn function(&mut self, name: Range<usize>) -> Result<Node, Problem> {
        self.at = name.end;
        self.blanks();
        if byte(self.text, self.at) == b'(' {
            self.at = scan::parentheses(self.text, self.at, 0)?;
        }
        self.lines_and_blanks();
        if !matches!(byte(self.text, self.at), b'{' | b'(' | b'[')
            && !matches!(self.reserved(), Some("if" | "for" | "while" | "case"))
        {
            return Err(Problem::new("a function of a shell that is not understood")
                .at(&name)
                .help("as in: shape() { tc qdisc add …; }"));
        }
        // `{echo …` is a mistake that shells refuse, and publications have.
        let open = std::mem::take(&mut self.open);
        let body = self.command();
        self.open = open;
        Ok(Node::Function { name, body: Rc::new(body?) })
    }

    /// A word, which must not be empty.
    fn word(&mut self) -> Result<Word, Problem> {
        let start = self.at;
        let end = scan::word(self.text, start, self.open > 0)?;
        self.at = end.max(start + scan::char_length(self.text, start)).min(self.text.len());
        Ok(start..self.at)
    }

    /// Assignments, words and redirections.
    fn simple(&mut self) -> Result<Command, Problem> {
        let start = self.at;
        let mut end = start;
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                end = self.at;
                continue;
            }
            match byte(self.text, self.at) {
                _ if self.at >= self.text.len() => break,
                b'\n' => {
                    if start == end || !(self.lines.continued)(start, self.at) {
                        break;
                    }
                    self.at += 1;
                    continue;
                }
                b';' | b'|' | b'&' => break,
                b')' if self.open > 0 => break,
                _ => {}
            }
            let word = self.word()?;
            end = word.end;
            let text = &self.text[word.clone()];
            if words.is_empty()
                && text[name_length(text)..].starts_with('[')
                && name_length(text) > 0
                && scan::brackets(&text[name_length(text)..]).is_none()
            {
                return Err(Problem::new("an index with blanks is not understood").at(&word));
            }
            match words.is_empty() && is_assignment(&self.text[word.clone()]) {
                true => assignments.push(word),
                false => words.push(word),
            }
        }
        if start == end {
            return Err(self.unexpected());
        }
        Ok(Command { node: Node::Simple { assignments, words }, redirects, span: start..end })
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, Problem> {
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = &self.rest()[digits..];
        let is_one = rest.starts_with(['<', '>']) && !rest.starts_with("<(") && !rest.starts_with(">(")
            || digits == 0 && rest.starts_with("&>");
        if !is_one {
            return Ok(None);
        }
        if let Some(length) = placeholder(rest) {
            return Err(Problem::new(format!(
                "{} stands for a word that is to be written there",
                Found(&rest[..length])
            ))
            .at(&(self.at..self.at + length))
            .help("a shell reads a file of that name"));
        }
        let descriptor = &self.rest()[..digits];
        self.at += digits;
        let operators = ["<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">&", ">|", ">"];
        let operator = operators.into_iter().find(|operator| rest.starts_with(operator)).unwrap_or("<");
        self.at += operator.len();
        if matches!(operator, "<<" | "<<-") {
            return self.document(operator == "<<-").map(Some);
        }
        self.blanks();
        let target = match byte(self.text, self.at) {
            b'\n' | b';' | b'&' | b'|' => self.at..self.at,
            _ => self.word()?,
        };
        Ok(Some(match operator {
            "<<<" => Redirect::HereString(target),
            "<" if matches!(descriptor, "" | "0") => Redirect::Input(target),
            ">" | ">>" | ">&" | ">|" | "&>" | "&>>" if matches!(descriptor, "" | "1") => {
                Redirect::Output { target, appends: operator.ends_with(">>") }
            }
            _ => Redirect::Other,
        }))
    }

    /// The lines of a here-document, which begin behind this line's end, or behind those of the one before.
    fn document(&mut self, is_indented: bool) -> Result<Redirect, Problem> {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let word = self.word()?;
        let raw = &self.text[word.clone()];
        let end_word: String = raw.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        if end_word.trim().is_empty() {
            return Ok(Redirect::Other);
        }
        let line_end = |from: usize| self.text[from..].find('\n').map_or(self.text.len(), |at| from + at + 1);
        let start = self.documents_end.unwrap_or_else(|| line_end(word.end));
        let is_expanded = end_word.len() == raw.len();
        let (mut at, mut is_continued) = (start, false);
        loop {
            let next = line_end(at);
            let line = self.text[at..next].trim_end_matches(['\n', '\r']);
            let line = if is_indented { line.trim_start_matches('\t') } else { line };
            if at >= self.text.len() || line == end_word && !is_continued {
                self.documents_end = Some(next);
                return Ok(Redirect::Here(Document { lines: start..at, is_expanded, is_indented }));
            }
            at = next;
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            is_continued = is_expanded && backslashes % 2 == 1;
        }
    }
}

/// Whether a word is `NAME=…`, `NAME+=…` or `NAME[…]=…`.
pub(super) fn is_assignment(word: &str) -> bool {
    let name = name_length(word);
    let mut rest = &word[name..];
    if let Some(close) = scan::brackets(rest) {
        rest = &rest[close + 1..];
    }
    name > 0 && (rest.starts_with('=') || rest.starts_with("+="))
}

/// The three calculations of `((I = 0; I < 4; I++))`.
fn calculations(text: &str, header: Range<usize>) -> Option<[Range<usize>; 3]> {
    let inside = text[header.clone()].strip_prefix("((")?.strip_suffix("))")?;
    let mut start = header.start + 2;
    let mut all = Vec::new();
    for part in inside.split(';') {
        let first = start + part.len() - part.trim_start().len();
        all.push(first..first + part.trim().len());
        start += part.len() + 1;
    }
    all.try_into().ok()
}

/// The length of `<INTERFACE>` and the like, as manuals have them.
fn placeholder(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let length = inside.find('>')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_- ".contains(c);
    let is_one = inside[..length].starts_with(|c: char| c.is_ascii_alphabetic())
        && !inside[..length].ends_with(' ')
        && inside[..length].chars().all(is_name);
    is_one.then_some(length + 2)
}
