//! Splits a text into the words that another tool would receive, with their positions.

use std::ops::Range;

use crate::node::suggest;
use crate::problem::{Found, Problem, article, one_of};

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Start and end in the text.
    start: usize,
    end: usize,
}

impl<'a> Word<'a> {
    pub(crate) fn new(text: &'a str, span: &Range<usize>) -> Self {
        Self { text, start: span.start, end: span.end }
    }

    pub(crate) fn span(self) -> Range<usize> {
        self.start..self.end
    }

    /// A problem at this word.
    pub(crate) fn problem(self, title: impl Into<String>) -> Problem {
        Problem::new(title).at(&self.span())
    }

    /// The error for an unexpected word. `expected` starts the text after "expected".
    pub(crate) fn expected(self, expected: &str) -> Problem {
        self.problem(format!("found {}, expected {expected}", Found(self.text)))
    }
}

impl<'a> Word<'a> {
    /// Part of it as a word; must be a slice of its text. The span is the whole word if its text differs
    /// from the source.
    pub(crate) fn part(self, part: &'a str) -> Self {
        let at = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        match at {
            Some(at) if self.text.len() == self.end - self.start && at + part.len() <= self.text.len() => {
                Self { text: part, start: self.start + at, end: self.start + at + part.len() }
            }
            _ => Self { text: part, ..self },
        }
    }
}

/// The remaining words, in any language.
pub(crate) trait Source<'a> {
    /// The next word.
    fn next_word(&self) -> Option<Word<'a>>;

    /// Skips it.
    fn advance(&mut self);

    /// The error for a text that ends where an argument must follow. `what` is a noun with its article.
    fn without(&self, after: Word<'_>, what: &str) -> Problem;
}

/// The remaining words.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    all: Vec<Word<'a>>,
    next: usize,
    /// Length of the text: the position for errors about missing words.
    end: usize,
}

impl<'a> Words<'a> {
    /// Splits at white space; a backslash at the end of a line continues it.
    pub(crate) fn new(text: &'a str) -> Self {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let all = text
            .split_whitespace()
            .map(|word| word.trim_end_matches('\\'))
            .filter(|word| !word.is_empty())
            .map(|word| Word { text: word, start: start(word), end: start(word) + word.len() })
            .collect();
        Self { all, next: 0, end: text.trim_end().len() }
    }

    pub(crate) fn peek(&self) -> Option<Word<'a>> {
        self.all.get(self.next).copied()
    }

    /// Puts a word in place of the next one, for which it stands.
    pub(crate) fn write_out(&mut self, word: Word<'a>) {
        self.all.get_mut(self.next).into_iter().for_each(|next| *next = word);
    }

    pub(crate) fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes all that are left.
    pub(crate) fn take_all(&mut self) {
        self.next = self.all.len();
    }

    /// Takes the next word if it is `text`.
    pub(crate) fn take_if(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == text);
        self.next += usize::from(is);
        is
    }

    /// Takes the next word if it starts like a number: tc decides by the first letter whether an optional
    /// number follows.
    pub(crate) fn take_number(&mut self, signed: bool) -> Option<Word<'a>> {
        let number = |word: &Word<'_>| {
            let text = word.text.strip_prefix('-').filter(|_| signed).unwrap_or(word.text);
            let text = text.strip_prefix('.').unwrap_or(text);
            text.starts_with(|c: char| c.is_ascii_digit())
        };
        let word = self.peek().filter(number)?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next word, which must follow `after`. `what` describes it, with its article.
    pub(crate) fn expect(&mut self, after: Word<'_>, what: &str) -> Result<Word<'a>, Problem> {
        self.take().ok_or_else(|| self.missing(after, what))
    }

    /// The error for a text that ends where an argument must follow.
    pub(crate) fn missing(&self, after: Word<'_>, what: &str) -> Problem {
        Problem::new(format!("`{}` lacks {what}", after.text)).at(&(self.end..self.end))
    }

    /// Moves the next word behind the `count` words that follow it.
    pub(crate) fn put_behind(&mut self, count: usize) {
        let end = (self.next + count + 1).min(self.all.len());
        if let Some(words) = self.all.get_mut(self.next..end).filter(|words| !words.is_empty()) {
            words.rotate_left(1);
        }
    }

    /// Number of words taken.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// The words taken since `position`, separated by single spaces.
    pub(crate) fn since(&self, position: usize) -> String {
        let words: Vec<&str> = self.all[position..self.next].iter().map(|word| word.text).collect();
        words.join(" ")
    }
}

impl<'a> Words<'a> {
    /// These words of a text that ends at `end`.
    pub(crate) fn of_words(all: Vec<Word<'a>>, end: usize) -> Self {
        Self { all, next: 0, end }
    }
}

impl<'a> Source<'a> for Words<'a> {
    fn next_word(&self) -> Option<Word<'a>> {
        self.peek()
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn without(&self, after: Word<'_>, what: &str) -> Problem {
        self.missing(after, what)
    }
}

/// The value of a keyword: the whole word, or an unambiguous prefix. tc also accepts prefixes, but resolves
/// an ambiguous one silently to the first in its own order; here it is an error.
pub(crate) fn keyword<T: Copy + PartialEq>(
    word: Word<'_>,
    what: &str,
    known: &[(&'static str, T)],
) -> Result<T, Problem> {
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == word.text) {
        return Ok(*value);
    }
    let fitting: Vec<_> = known.iter().filter(|(name, _)| name.starts_with(word.text)).collect();
    match fitting[..] {
        [] => {}
        [(_, value), ref others @ ..] if others.iter().all(|(_, other)| other == value) => return Ok(*value),
        _ => {
            let names: Vec<&str> = fitting.iter().map(|(name, _)| *name).collect();
            return Err(word
                .problem(format!("{} could be {}", Found(word.text), one_of(&names)))
                .help("write more letters"));
        }
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let problem = word.problem(format!("{} is not {} {what}", Found(word.text), article(what)));
    Err(suggest(problem, word.text, &names))
}
