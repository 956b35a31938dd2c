//! Splits lines into the words that ipfw would receive, each with its position.
//!
//! Each line is one command. `#` starts a comment anywhere. A word that starts with `//` also starts a
//! comment, which a rule keeps. A backslash at the end of a line continues it. White space next to a comma
//! is ignored. Braces and parentheses are words of their own if they group several words.

use std::ops::Range;

use crate::dialect;
use crate::problem::{Found, Problem};

/// A word and its span in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Word {
    /// A problem at this word.
    pub(super) fn problem(&self, title: impl Into<String>) -> Problem {
        Problem::new(title).at(&self.span)
    }

    /// The error for an unexpected word. `expected` starts the text after "expected".
    pub(super) fn expected(&self, expected: &str) -> Problem {
        self.problem(format!("found {}, expected {expected}", Found(&self.text)))
    }

    /// Part of it as a word; must be a slice of its text. The span is the whole word if white space was
    /// removed.
    pub(super) fn part(&self, part: &str) -> Self {
        let part = dialect::Word::from(self).part(part);
        Self { text: part.text.into(), span: part.span() }
    }
}

/// A command of a script, or a line with only a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<Word>,
    /// The text after `//`, with single spaces between words.
    pub(super) comment: Option<String>,
    /// From the first word to the end of the last word or of the comment.
    pub(super) span: Range<usize>,
    /// Number of its first line, from 1.
    pub(super) number: usize,
    /// Problems of variables of a shell that are not set, in whose place there is no word.
    pub(super) unset: Vec<Problem>,
    /// What is to be said about it.
    pub(super) said: Vec<String>,
    /// No command: here begins a turn of a loop that never ends, or the next one, which is as this one.
    pub(super) begins_turn: bool,
}

/// The commands of a text, one on each line.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut joined = false;
    for (raw, start, number) in raw_lines(text) {
        let line = physical(raw, start, number);
        match lines.last_mut() {
            Some(last) if joined && last.comment.is_none() => last.append(line),
            _ if line.is_empty() => {}
            _ => lines.push(line),
        }
        joined = ends_with_backslash(raw);
    }
    lines
}

/// The lines of a text with their ends: where each starts, and its number.
pub(super) fn raw_lines(text: &str) -> impl Iterator<Item = (&str, usize, usize)> {
    let mut start = 0;
    text.split_inclusive('\n').enumerate().map(move |(index, raw)| {
        start += raw.len();
        (raw, start - raw.len(), index + 1)
    })
}

/// Whether the next line continues this one.
pub(super) fn ends_with_backslash(raw: &str) -> bool {
    let line = raw.trim_end();
    line.ends_with('\\') && !line.contains('#')
}

impl Line {
    /// Whether it has neither words nor a comment.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.comment.is_none()
    }

    /// On one line, with the values of variables.
    pub(super) fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.text.clone());
        let comment = self.comment.iter().map(|comment| format!("// {comment}"));
        words.chain(comment).collect::<Vec<_>>().join(" ")
    }

    /// Adds a word, or the next word of its comment.
    pub(super) fn take(&mut self, text: &str, span: Range<usize>) {
        match (&mut self.comment, text.strip_prefix("//")) {
            (Some(comment), _) if comment.is_empty() => comment.push_str(text),
            (Some(comment), _) => {
                comment.push(' ');
                comment.push_str(text);
            }
            (None, Some(rest)) => self.comment = Some(rest.to_owned()),
            (None, None) => push(&mut self.words, text, span),
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        if self.words.is_empty() {
            *self = other;
            return;
        }
        if !other.words.is_empty() || other.comment.is_some() {
            self.span.end = other.span.end;
        }
        self.words.extend(other.words);
        self.comment = other.comment;
    }
}

/// Splits one line of the file, which starts at offset `start` of the text.
pub(super) fn physical(raw: &str, start: usize, number: usize) -> Line {
    let line = raw.find('#').map_or(raw, |at| &raw[..at]);
    // A line continuation is not part of a word.
    let line = line.trim_end_matches(|c: char| c == '\\' || c.is_whitespace());
    let mut found = Line { span: start..start, number, ..Line::default() };
    let place = |word: &str| {
        let at = start + (word.as_ptr() as usize - raw.as_ptr() as usize);
        at..at + word.len()
    };
    let mut words = line.split_whitespace();
    let mut first = true;
    while let Some(text) = words.next() {
        let span = place(text);
        if first {
            found.span = span.start..start + line.len();
            first = false;
        }
        if let Some(rest) = text.strip_prefix("//") {
            let comment: Vec<&str> =
                std::iter::once(rest).filter(|rest| !rest.is_empty()).chain(words.by_ref()).collect();
            found.comment = Some(comment.join(" "));
            break;
        }
        push(&mut found.words, text, span);
    }
    found
}

/// Expands a verb abbreviated to at least three letters.
pub(super) fn full<'a>(word: &'a Word, known: &[&'a str]) -> &'a str {
    let text = word.text.as_str();
    if known.contains(&text) || text.len() < 3 {
        return text;
    }
    known.iter().copied().find(|verb| verb.starts_with(text)).unwrap_or(text)
}

/// Adds a word: joins it to the previous one at a comma, and splits off braces.
fn push(words: &mut Vec<Word>, text: &str, span: Range<usize>) {
    if let Some(last) = words.last_mut()
        && (last.text.ends_with(',') || text.starts_with(','))
        && !is_brace(&last.text)
    {
        last.text.push_str(text);
        last.span.end = span.end;
        let (text, span) = (last.text.clone(), last.span.clone());
        // The trailing part of the first half becomes part of the joined word.
        words.pop();
        return split(words, &text, span);
    }
    split(words, text, span);
}

fn is_brace(text: &str) -> bool {
    matches!(text, "{" | "}" | "(" | ")")
}

fn split(words: &mut Vec<Word>, text: &str, span: Range<usize>) {
    let exact = text.len() == span.len();
    let mut part = |text: &str, from: usize, to: usize| {
        let span = if exact { span.start + from..span.start + to } else { span.clone() };
        words.push(Word { text: text.into(), span });
    };
    let (mut from, mut to) = (0, text.len());
    // `\{`, as escaped for a shell.
    let escaped = usize::from(text.starts_with("\\{") || text.starts_with("\\("));
    if text[escaped..].starts_with(['{', '(']) {
        part(&text[escaped..=escaped], 0, escaped + 1);
        from = escaped + 1;
    }
    let rest = &text[from..to];
    let count = |braces: [char; 2]| rest.matches(braces).count();
    let closes = rest.ends_with(['}', ')']) && count(['}', ')']) > count(['{', '(']);
    if closes {
        to -= 1;
    }
    let middle = &text[from..to];
    let middle = if closes { middle.strip_suffix('\\').unwrap_or(middle) } else { middle };
    if !middle.is_empty() {
        part(middle, from, from + middle.len());
    }
    if closes {
        part(&text[to..], to, text.len());
    }
}

impl<'a> From<&'a Word> for dialect::Word<'a> {
    fn from(word: &'a Word) -> Self {
        Self::new(&word.text, &word.span)
    }
}

impl<'a> dialect::Source<'a> for Words<'a> {
    fn next_word(&self) -> Option<dialect::Word<'a>> {
        self.peek().map(Into::into)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn without(&self, _: dialect::Word<'_>, what: &str) -> Problem {
        self.missing(what)
    }
}

/// The remaining words.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    all: &'a [Word],
    next: usize,
    /// Position for errors about missing words.
    end: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(all: &'a [Word]) -> Self {
        Self { all, next: 0, end: all.last().map_or(0, |word| word.span.end) }
    }

    pub(super) fn peek(&self) -> Option<&'a Word> {
        self.all.get(self.next)
    }

    /// The word after the next.
    pub(super) fn peek_second(&self) -> Option<&'a Word> {
        self.all.get(self.next + 1)
    }

    pub(super) fn next_is(&self, texts: &[&str]) -> bool {
        self.peek().is_some_and(|word| texts.contains(&word.text.as_str()))
    }

    pub(super) fn take(&mut self) -> Option<&'a Word> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next word if it is in `texts`.
    pub(super) fn take_if(&mut self, texts: &[&str]) -> Option<&'a Word> {
        if self.next_is(texts) { self.take() } else { None }
    }

    /// Takes the next word, which is required. `what` describes it, with its article.
    pub(super) fn expect(&mut self, what: &str) -> Result<&'a Word, Problem> {
        self.take().ok_or_else(|| self.missing(what))
    }

    /// The error for a line that ends where `what` should follow.
    pub(super) fn missing(&self, what: &str) -> Problem {
        let before = self.next.checked_sub(1).and_then(|last| self.all.get(last));
        let title = match before {
            Some(word) => format!("{what} is missing after {}", Found(&word.text)),
            None => format!("{what} is missing"),
        };
        Problem::new(title).at(&(self.end..self.end))
    }

    /// Checks that no words remain.
    pub(super) fn end(&self) -> Result<(), Problem> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(word.expected("the end of the command")),
        }
    }

    /// Number of words taken.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// Returns to an earlier position.
    pub(super) fn back_to(&mut self, position: usize) {
        self.next = position;
    }

    /// The remaining words.
    pub(super) fn rest(&self) -> &'a [Word] {
        self.all.get(self.next..).unwrap_or_default()
    }
}
