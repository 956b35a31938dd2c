//! Errors in a scenario, with their place in the text, as people read them.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// An invalid scenario. Prints one paragraph for each problem: what was found, in which file, line and key,
/// and what is allowed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct ScenarioError {
    file: String,
    text: String,
    problems: Vec<Problem>,
    /// Further problems, of which nothing but their number is known.
    more: usize,
}

/// Maximum number of problems printed; more would scroll the first ones away.
const MOST_SHOWN: usize = 20;
/// Maximum number of problems kept: a text may have a million.
const MOST_KEPT: usize = 1_000;

impl ScenarioError {
    pub(crate) fn new(file: &str, text: &str, problems: Vec<Problem>) -> Self {
        Self { file: file.into(), text: text.into(), problems, more: 0 }
    }

    /// Returns the same error for a text with another name.
    pub(crate) fn of(self, file: &str) -> Self {
        Self { file: file.into(), ..self }
    }

    /// Returns the same error for this part of a text.
    pub(crate) fn within(self, file: &str, text: &str, span: &Range<usize>) -> Self {
        let problems = self.problems.into_iter().map(|problem| problem.put_at(span)).collect();
        Self { more: self.more, ..Self::new(file, text, problems) }
    }

    /// An error about a text that is no scenario but contains values of one, such as a compose file.
    pub fn of_faults(file: &str, text: &str, faults: impl IntoIterator<Item = Fault>) -> Self {
        let problems = faults.into_iter().map(|Fault { title, help, key, span }| {
            let problem = Problem { help, ..Problem::new(title) }.inside(&key);
            match span {
                Some(span) => problem.at(&span),
                None => problem,
            }
        });
        Self::new(file, text, problems.collect())
    }

    /// The problems without their places, to be reported at others.
    pub fn faults(&self) -> Vec<Fault> {
        let fault = |problem: &Problem| Fault {
            title: problem.title.to_string(),
            help: problem.help.clone(),
            key: String::new(),
            span: None,
        };
        self.problems.iter().map(fault).collect()
    }

    /// Number of problems; at least one.
    pub fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    fn render(&self) -> String {
        let renderer = Renderer::plain();
        let shown = self.problems.iter().take(MOST_SHOWN);
        let mut paragraphs: Vec<String> = shown.map(|problem| self.paragraph(problem, &renderer)).collect();
        if self.count() > paragraphs.len() {
            paragraphs.push(format!("and {} more", self.count() - paragraphs.len()));
        }
        paragraphs.join("\n\n")
    }

    /// The first problem, with its line, as a problem of the scenario that names this file.
    pub(crate) fn into_problem(self) -> Problem {
        let Some(first) = self.problems.first() else {
            return Problem::new(format!("{} is wrong", self.file));
        };
        let elsewhere = first
            .span
            .as_ref()
            .map(|span| Box::new(Elsewhere::new(&self.file, &self.text, self.clamp(span))));
        let title = match elsewhere {
            Some(_) => first.title.to_string(),
            None => format!("{}: {}", self.file, first.title),
        };
        Problem { elsewhere, help: first.help.clone(), ..Problem::new(title) }
    }

    /// The first problem without its place, for text that nobody wrote.
    pub(crate) fn without_place(self) -> Problem {
        match self.problems.into_iter().next() {
            Some(Problem { title, help, .. }) => Problem { help, ..Problem::new(title) },
            None => Problem::new("a link cannot do this"),
        }
    }

    fn paragraph(&self, problem: &Problem, renderer: &Renderer) -> String {
        let title = match (&problem.span, problem.key.as_str()) {
            (Some(_), _) | (None, "") => problem.title.to_string(),
            (None, key) => format!("`{key}`: {}", problem.title),
        };
        let mut group = annotate_snippets::Group::with_title(Level::ERROR.primary_title(title));
        if let Some(Elsewhere { file, line, number, span }) = problem.elsewhere.as_deref() {
            let place = AnnotationKind::Primary.span(span.clone());
            group = group.element(Snippet::source(line).path(file).line_start(*number).annotation(place));
        }
        if let Some(span) = &problem.span {
            let kind = match &problem.elsewhere {
                None => AnnotationKind::Primary,
                Some(_) => AnnotationKind::Context,
            };
            let mut span = self.clamp(span);
            // The end of a text that ends with a line feed is on its last line.
            if span.start == self.text.len() && self.text.ends_with('\n') {
                span = span.start - 1..span.start - 1;
            }
            let also: Vec<_> = problem.also.iter().map(|(span, label)| (self.clamp(span), label)).collect();
            let part = self.part(&span, also.iter().map(|(span, _)| span));
            let inside = |span: &Range<usize>| {
                span.start.saturating_sub(part.start)..span.end.min(part.end).saturating_sub(part.start)
            };
            // Of a place that ends far away, the first line.
            let line = || self.text[span.start..part.end].find('\n').map_or(part.end, |at| span.start + at);
            let end = if span.end > part.end { line() } else { span.end };
            let mut place = kind.span(inside(&(span.start..end)));
            if !problem.key.is_empty() {
                place = place.label(format!("in `{}`", problem.key));
            }
            let first = 1 + self.text[..part.start].bytes().filter(|&byte| byte == b'\n').count();
            let source = &self.text[part.clone()];
            let mut snippet = Snippet::source(source).path(&self.file).line_start(first).annotation(place);
            for (span, label) in also {
                if part.start <= span.start && span.end <= part.end {
                    snippet = snippet.annotation(AnnotationKind::Context.span(inside(&span)).label(label));
                }
            }
            group = group.element(snippet);
        }
        for help in &problem.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }

    /// The lines of these places, as far as they are near to the first: all that the renderer gets, because it builds a
    /// table of what it gets. Of a very long line it is an excerpt.
    fn part<'a>(
        &self,
        span: &Range<usize>,
        also: impl Iterator<Item = &'a Range<usize>> + Clone,
    ) -> Range<usize> {
        const NEAR: usize = 1 << 16;
        let least = self.floor(span.start.saturating_sub(NEAR));
        let most = self.floor(span.start + NEAR);
        let near = |at: &usize| (least..=most).contains(at);
        let starts = also.clone().map(|span| span.start).filter(near);
        let ends = also.map(|span| span.end).chain([span.end]).filter(near);
        let from = starts.chain([span.start]).min().unwrap_or(span.start);
        let to = ends.chain([span.start]).max().unwrap_or(span.start);
        let start = self.text[least..from].rfind('\n').map_or(least, |at| least + at + 1);
        let end = self.text[to..most].find('\n').map_or(most, |at| to + at + 1);
        start..end
    }

    /// Clamps any span to the text and to character boundaries.
    fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.floor(span.start);
        start..self.floor(span.end).max(start)
    }

    /// Clamps any place to the text and to a character boundary.
    fn floor(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// A problem in a text that contains values of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was found.
    pub title: String,
    /// What is allowed.
    pub help: Vec<String>,
    /// The path of keys to the place.
    pub key: String,
    /// The place, in bytes; `None` for the whole text.
    pub span: Option<Range<usize>>,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    title: Box<str>,
    span: Option<Range<usize>>,
    /// The path of keys to the place, such as `links.access.delay`.
    key: String,
    help: Vec<String>,
    also: Vec<(Range<usize>, String)>,
    /// The place in another file, which the scenario names at `span`.
    elsewhere: Option<Box<Elsewhere>>,
}

/// A place in a file that a scenario names: the line, or an excerpt of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Elsewhere {
    file: String,
    line: String,
    /// Line number, from 1.
    number: usize,
    span: Range<usize>,
}

impl Elsewhere {
    /// `span` lies in `text`, on character boundaries.
    fn new(file: &str, text: &str, span: Range<usize>) -> Self {
        /// Bytes of a line shown on either side of the place: a whole trace may be one line.
        const MOST: usize = 60;
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
        let border = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let from = border(start.max(span.start.saturating_sub(MOST)));
        let to = border(end.min(span.end.min(span.start + MOST) + MOST)).max(from);
        Self {
            file: file.into(),
            line: text[from..to].into(),
            number: 1 + text[..start].matches('\n').count(),
            span: span.start - from..span.end.min(to) - from,
        }
    }
}

impl Problem {
    /// `title` says what was found and why it is wrong.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into().into_boxed_str(),
            span: None,
            key: String::new(),
            help: Vec::new(),
            also: Vec::new(),
            elsewhere: None,
        }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The place, if it is known.
    pub(crate) const fn place(&self) -> Option<&Range<usize>> {
        self.span.as_ref()
    }

    /// Adds what is allowed, or what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Asks "did you mean" with the nearest of `known`, if one is near enough.
    pub(crate) fn did_you_mean<'a>(self, found: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(found, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Sets the place, unless a more precise one is set.
    pub(crate) fn at(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// Shifts the place for text that starts `by` bytes into a larger one.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        let moved = |span: Range<usize>| span.start + by..span.end + by;
        self.span = self.span.map(moved);
        self.also = self.also.into_iter().map(|(span, label)| (moved(span), label)).collect();
        self
    }

    /// Adds another related place.
    pub(crate) fn also(mut self, span: &Range<usize>, label: impl Into<String>) -> Self {
        self.also.push((span.clone(), label.into()));
        self
    }

    /// Sets a place in another file: the line with this number.
    pub(crate) fn on_line(mut self, file: &str, number: usize, line: &str) -> Self {
        let shown = line.trim_end();
        self.elsewhere = Some(Box::new(Elsewhere { number, ..Elsewhere::new(file, shown, 0..shown.len()) }));
        self
    }

    /// Whether it reports a missing key in the table that is being read, rather than in a nested table.
    pub(crate) fn is_about_a_missing_key(&self) -> bool {
        self.key.is_empty() && self.help.is_empty() && self.title.ends_with("` is missing")
    }

    /// Removes a leading key that was not written but is implied by the value.
    pub(crate) fn outside(mut self, key: &str) -> Self {
        if let Some(rest) = self.key.strip_prefix(key) {
            self.key = rest.trim_start_matches('.').into();
        }
        self
    }

    /// Prepends a key to the path. Called from the innermost key outwards.
    pub(crate) fn inside(mut self, key: &str) -> Self {
        if self.key.is_empty() {
            self.key = key.into();
        } else {
            self.key = format!("{key}.{}", self.key);
        }
        self
    }
}

impl Problem {
    /// For a value assembled from other values: the problem is at `span`, and the caller adds the path.
    pub(crate) fn put_at(mut self, span: &Range<usize>) -> Self {
        self.span = Some(span.clone());
        self.key.clear();
        self.also.clear();
        self
    }
}

/// Collects the problems of independent parts, to report all at once.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// Keeps the problem of an `Err`; returns the value of an `Ok`.
    pub(crate) fn catch<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }

    pub(crate) fn extend(&mut self, problems: Vec<Problem>) {
        problems.into_iter().for_each(|problem| self.add(problem));
    }

    fn add(&mut self, problem: Problem) {
        match self.kept.len() < MOST_KEPT {
            true => self.kept.push(problem),
            false => self.more += 1,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Makes the error, with problems in the order of the file.
    pub(crate) fn into_error(mut self, file: &str, text: &str) -> ScenarioError {
        self.kept.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        ScenarioError { more: self.more, ..ScenarioError::new(file, text, self.kept) }
    }
}

/// `text` in backticks, shortened if it is long.
pub(crate) struct Found<'a>(pub(crate) &'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 40;
        let all = self.0.chars().map(|c| if c.is_control() { ' ' } else { c });
        let line: String = all.take(MOST + 1).collect();
        match line.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "`{}…`", &line[..end]),
            None => write!(f, "`{line}`"),
        }
    }
}

/// The nearest of `known` to `found`, if it is near enough to be a typo.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// No name is as long as this.
    const LONGEST: usize = 100;
    if found.len() > LONGEST {
        return None;
    }
    let found = found.to_lowercase().replace('_', "-");
    let similarity = |name: &str| {
        let name = name.to_lowercase();
        // A prefix counts as near: `dup` for `duplicate`.
        let begins = found.len() >= 2 && name.starts_with(&found);
        if begins { 0.95 } else { strsim::jaro_winkler(&found, &name) }
    };
    known
        .into_iter()
        .map(|name| (similarity(name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The indefinite article of a noun.
pub(crate) fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// `a`, `b` or `c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "nothing".into(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}
