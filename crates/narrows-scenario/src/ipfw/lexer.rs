//! Scripts as the words that ipfw would get, each with its place.
//!
//! A line is a command. `#` begins a comment anywhere, a word that begins with `//` begins one, too, which a rule keeps. A
//! backslash at the end of a line goes on with the next, and so does a next line that begins with white space and is no
//! command by itself. White space at a comma does not count; braces and parentheses stand by themselves where they hold
//! several words together.

use std::ops::Range;

use crate::dialect;
use crate::problem::{Found, Problem};

/// A word, and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Word {
    /// A problem with this word.
    pub(super) fn problem(&self, title: impl Into<String>) -> Problem {
        Problem::new(title).at(&self.span)
    }

    /// That this is not what belongs here. `expected` begins a sentence after "expected".
    pub(super) fn expected(&self, expected: &str) -> Problem {
        self.problem(format!("found {}, expected {expected}", Found(&self.text)))
    }

    /// A part of it as a word, which must be a slice of its text. Points at the whole where white space was taken out.
    pub(super) fn part(&self, part: &str) -> Self {
        let part = dialect::Word::from(self).part(part);
        Self { text: part.text.into(), span: part.span() }
    }
}

/// A command of a script, or a line that has only a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<Word>,
    /// What stands behind `//`, with one space between words.
    pub(super) comment: Option<String>,
    /// From the first word to the end of the last, or of the comment.
    pub(super) span: Range<usize>,
    /// The number of the line that it begins on, from 1.
    pub(super) number: usize,
    /// Whether it begins with white space.
    indented: bool,
}

/// The commands of a script. `is_command` says whether an indented line stands by itself.
pub(super) fn lines(text: &str, is_command: impl Fn(&[Word]) -> bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // Whether the line before ends with a backslash, and whether it is one that an indented line may go on with.
    let (mut joined, mut open) = (false, false);
    let mut start = 0;
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let line = physical(raw, start, index + 1);
        start += raw.len();
        let empty = line.words.is_empty() && line.comment.is_none();
        let goes_on = joined || open && line.indented && !line.words.is_empty() && !is_command(&line.words);
        joined = ends_with_backslash(raw);
        open = (goes_on && open) || !line.words.is_empty();
        match lines.last_mut() {
            Some(last) if goes_on && last.comment.is_none() => last.append(line),
            _ if !empty => lines.push(line),
            _ => {}
        }
    }
    lines
}

fn ends_with_backslash(raw: &str) -> bool {
    let line = raw.trim_end();
    line.ends_with('\\') && !line.contains('#')
}

impl Line {
    fn append(&mut self, other: Self) {
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

/// Splits one line of the file. `start` is where it begins in the text.
fn physical(raw: &str, start: usize, number: usize) -> Line {
    let line = raw.find('#').map_or(raw, |at| &raw[..at]);
    // What joins lines belongs to no word of theirs.
    let line = line.trim_end_matches(|c: char| c == '\\' || c.is_whitespace());
    let mut found = Line {
        indented: line.starts_with(char::is_whitespace),
        span: start..start,
        number,
        ..Line::default()
    };
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

/// Adds a word: to the one before it at a comma, and in several where braces hold on to it.
fn push(words: &mut Vec<Word>, text: &str, span: Range<usize>) {
    if let Some(last) = words.last_mut()
        && (last.text.ends_with(',') || text.starts_with(','))
        && !is_brace(&last.text)
    {
        last.text.push_str(text);
        last.span.end = span.end;
        let (text, span) = (last.text.clone(), last.span.clone());
        // What stood at the end of the first half alone belongs to the whole now.
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
    // As a shell needs it: `\{`.
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

/// The words that are left to read.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    all: &'a [Word],
    next: usize,
    /// Where what is missing would stand.
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

    /// Takes the next word if it is one of these.
    pub(super) fn take_if(&mut self, texts: &[&str]) -> Option<&'a Word> {
        if self.next_is(texts) { self.take() } else { None }
    }

    /// The next word, which must be there. `what` says what it is, with its article.
    pub(super) fn expect(&mut self, what: &str) -> Result<&'a Word, Problem> {
        self.take().ok_or_else(|| self.missing(what))
    }

    /// That the line ends where this should follow.
    pub(super) fn missing(&self, what: &str) -> Problem {
        let before = self.next.checked_sub(1).and_then(|last| self.all.get(last));
        let title = match before {
            Some(word) => format!("{what} is missing after {}", Found(&word.text)),
            None => format!("{what} is missing"),
        };
        Problem::new(title).at(&(self.end..self.end))
    }

    /// That nothing more is left.
    pub(super) fn end(&self) -> Result<(), Problem> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(word.expected("the end of the command")),
        }
    }

    /// How many words have been taken.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// Goes back to where it was.
    pub(super) fn back_to(&mut self, position: usize) {
        self.next = position;
    }

    /// The words that are left.
    pub(super) fn rest(&self) -> &'a [Word] {
        self.all.get(self.next..).unwrap_or_default()
    }
}
