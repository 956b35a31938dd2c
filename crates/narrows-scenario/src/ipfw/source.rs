//! Splits scripts into commands. A line that starts with an ipfw command is read as ipfw reads a file of
//! rules; all others are read as a shell reads its script, with variables, quotes, `;`, `&&` and
//! redirections. Nothing is run.
//!
//! An indented line that is not a command of its own continues the previous line, as in published listings.

use std::ops::Range;

use super::lexer::{Line, Word, ends_with_backslash, physical, raw_lines};
use super::programs;
use super::verbs::{is_command, is_program};
use crate::dialect::control::{self, Next};
use crate::dialect::shell::{self, Joined, raises_rights};
use crate::dialect::{Variables, as_words};
use crate::problem::{Found, Problem};

/// The commands of a script in order, each with the problem if it cannot be read.
pub(super) fn commands(text: &str) -> Vec<Result<Line, Problem>> {
    let found = read(text);
    if !found.is_empty() {
        return found;
    }
    // Where nothing else stands, `#` is the prompt of a root shell.
    let is_prompt = |line: &str| {
        let command = line.trim_start().strip_prefix('#').map_or("", str::trim_start);
        ["ipfw ", "dnctl "].iter().any(|program| command.starts_with(program))
    };
    let line = |raw: &str| if is_prompt(raw) { raw.replacen('#', " ", 1) } else { raw.to_owned() };
    read(&text.split_inclusive('\n').map(line).collect::<String>())
}

fn read(text: &str) -> Vec<Result<Line, Problem>> {
    let mut source = Source { text, ..Source::default() };
    // The lines that a backslash joins: start, end, and the number of the first.
    let mut joined: Option<(usize, usize, usize)> = None;
    let mut read_to = 0;
    for (raw, start, number) in raw_lines(text) {
        if start < read_to {
            continue;
        }
        if let Some(end) = loop_end(&text[start..]).filter(|_| joined.is_none() && source.depth == 0)
            && source.turns(start..start + end, number)
        {
            read_to = start + end;
            continue;
        }
        let (first, _, at) = joined.unwrap_or((start, start, number));
        joined = Some((first, start + raw.len(), at));
        if !ends_with_backslash(raw) {
            joined = None;
            source.line(first..start + raw.len(), at);
        }
        if source.ended {
            return source.commands;
        }
    }
    if let Some((start, end, number)) = joined {
        source.line(start..end, number);
    }
    source.end();
    source.commands
}

#[derive(Default)]
struct Source<'a> {
    text: &'a str,
    commands: Vec<Result<Line, Problem>>,
    variables: Variables,
    /// Whether an indented line may continue the last command, and whether a shell reads it.
    open: Option<Style>,
    /// Blocks such as `if` that have begun and not ended, with the place of the outermost.
    depth: usize,
    block: Range<usize>,
    block_number: usize,
    /// Whether the block has been reported.
    told: bool,
    /// `exit` was reached.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Rules,
    Shell,
}

impl Source<'_> {
    /// Reads a line, with those that continue it by a backslash.
    fn line(&mut self, span: Range<usize>, number: usize) {
        let raw = &self.text[span.clone()];
        let first = physical(raw.lines().next().unwrap_or_default(), span.start, number);
        if first.is_empty() {
            self.open = None;
            return;
        }
        let indented = raw.starts_with(char::is_whitespace);
        let continues =
            indented && self.depth == 0 && !is_command(&first.words) && !starts_in_shell(&first.words);
        match self.open.filter(|_| continues && !first.words.is_empty()) {
            Some(Style::Rules) => {
                let line = self.rules(span, number);
                if let Some(Ok(last)) = self.commands.last_mut()
                    && last.comment.is_none()
                {
                    last.append(line);
                }
            }
            Some(Style::Shell) => self.shell(&span, number, true),
            None if is_rules(&first.words) => {
                let line = self.rules(span, number);
                self.open = Some(Style::Rules);
                self.commands.push(Ok(line));
            }
            None => {
                let count = self.commands.len();
                // The prompt of a shell.
                let prompt = raw.len() - raw.trim_start().strip_prefix("$ ").unwrap_or(raw).len();
                self.shell(&(span.start + prompt..span.end), number, false);
                self.open = (self.commands.len() > count).then_some(Style::Shell);
            }
        }
    }

    /// Reads a line as ipfw reads a file of rules.
    fn rules(&self, span: Range<usize>, number: usize) -> Line {
        let mut line = Line::default();
        for (raw, start, index) in raw_lines(&self.text[span.clone()]) {
            if line.comment.is_none() {
                line.append(physical(raw, span.start + start, number + index - 1));
            }
        }
        line
    }

    /// Reads a line as a shell does. If it `continues` the previous one, its first words belong to the last
    /// command.
    fn shell(&mut self, span: &Range<usize>, number: usize, mut continues: bool) {
        let pieces = match shell::pieces(&self.text[span.clone()]) {
            Ok(pieces) => pieces,
            Err(problem) => {
                let at = span.start;
                return self.commands.push(Err(problem.moved(at)));
            }
        };
        let (mut number, mut counted) = (number, span.start);
        for (index, piece) in pieces.iter().enumerate() {
            let place = span.start + piece.span.start..span.start + piece.span.end;
            number += self.text[counted..place.start].matches('\n').count();
            counted = place.start;
            let goes_on = std::mem::take(&mut continues);
            if !goes_on && self.is_block(&place, number) {
                continue;
            }
            // `[ … ] || exit`: the condition has no effect by itself, and no ipfw command may follow.
            let is_guard = pieces.get(index + 1).is_some_and(|next| next.joined == Joined::OnFailure);
            if is_guard && programs::is_condition(self.text[place.clone()].split_whitespace().next()) {
                continue;
            }
            match self.piece(place, piece.joined, number, goes_on) {
                Ok(Some(line)) => match self.commands.last_mut() {
                    Some(Ok(last)) if goes_on => last.append(line),
                    // The command that it continues has a problem.
                    Some(Err(_)) if goes_on => {}
                    _ => self.commands.push(Ok(line)),
                },
                Ok(None) => {}
                Err(problem) => self.commands.push(Err(problem)),
            }
            if self.ended {
                return;
            }
        }
    }

    /// Reads a loop, turn by turn; returns whether its list is in the script.
    fn turns(&mut self, span: Range<usize>, number: usize) -> bool {
        let Ok(mut pieces) = shell::pieces(&self.text[span.clone()]) else { return false };
        for piece in &mut pieces {
            piece.span = span.start + piece.span.start..span.start + piece.span.end;
        }
        let (text, mut lines, mut ended) = (self.text, Vec::new(), false);
        let mut variables = self.variables.clone();
        let mut command = |piece: &shell::Piece, variables: &mut Variables| {
            let number = number + text[span.start..piece.span.start].matches('\n').count();
            let mut inside = Source { text, variables: std::mem::take(variables), ..Source::default() };
            let line = inside.piece(piece.span.clone(), piece.joined, number, false);
            *variables = inside.variables;
            ended |= inside.ended;
            let next = match (&line, inside.ended) {
                (_, true) => Next::End,
                (Err(_), _) => Next::Wrong,
                (Ok(_), _) => Next::Command,
            };
            lines.extend(line.transpose());
            next
        };
        if !control::run(text, pieces, &mut variables, &mut command).is_empty() {
            return false;
        }
        self.commands.extend(lines);
        (self.variables, self.ended, self.open) = (variables, ended, None);
        true
    }

    /// Reads one command; `None` if it has no effect.
    fn piece(
        &mut self,
        span: Range<usize>,
        joined: Joined,
        number: usize,
        goes_on: bool,
    ) -> Result<Option<Line>, Problem> {
        let span = if goes_on { span } else { self.variables.assign(self.text, span)? };
        let expanded = match self.variables.words(self.text, span.clone()) {
            Ok(expanded) => expanded,
            // What processes output, or handles a failure, has no effect on the network.
            Err(_) if joined != Joined::After => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let mut line = Line { span: span.start..span.start, number, ..Line::default() };
        let mut words = as_words(&expanded, span.end);
        while let Some(word) = words.take() {
            let place = word.span();
            if line.words.is_empty() && line.comment.is_none() {
                line.span.start = place.start;
            }
            line.span.end = place.end;
            line.take(word.text, place);
        }
        if goes_on {
            return Ok(Some(line));
        }
        split_argument(&mut line);
        let is_sudo = |word: &Word| raises_rights(&word.text) || word.text.starts_with('-');
        let Some(first) = line.words.iter_mut().find(|word| !is_sudo(word)) else {
            return Ok(None);
        };
        // A batch file of Windows does not print such commands.
        if let Some(name) = first.text.strip_prefix('@') {
            first.text = name.into();
        }
        if first.text == "exit" {
            if self.text[..span.start].trim_end().ends_with("&&") {
                return Err(first
                    .problem("an `exit` that depends on another command")
                    .help("scripts are read, not run: remove it, or what follows"));
            }
            self.ended = joined == Joined::After;
            return Ok(None);
        }
        let counts = is_program(&first.text) || programs::is_refused(&first.text);
        match joined {
            Joined::After => Ok(Some(line)),
            Joined::Piped if counts => Ok(Some(line)),
            Joined::OnFailure if counts => Err(first
                .problem("a command that depends on the failure of another")
                .help("scripts are read, not run: keep the command that applies, or use `narrows ipfw commands`")),
            Joined::OnFailure | Joined::Piped | Joined::Batch => Ok(None),
        }
    }

    /// Whether a command is part of a block. A block has no effect here if its commands have none, which is
    /// said at its end; otherwise it is a problem.
    fn is_block(&mut self, span: &Range<usize>, number: usize) -> bool {
        let mut words = self.text[span.clone()].split_whitespace().peekable();
        let mut within = self.depth > 0;
        let mut condition = false;
        while let Some(word) = words.peek() {
            match *word {
                "if" | "for" | "while" | "until" | "case" | "{" => {
                    if self.depth == 0 {
                        self.block = span.start..span.start + word.len();
                        self.block_number = number;
                        self.told = false;
                    }
                    self.depth += 1;
                    condition = *word != "{";
                }
                "elif" if within => condition = true,
                "fi" | "done" | "esac" | "}" if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 && !self.told {
                        self.commands.push(Ok(self.block_line()));
                    }
                    return true;
                }
                "then" | "else" | "do" | "!" if within || condition => {}
                _ => break,
            }
            within = true;
            words.next();
        }
        let Some(name) = words.next().filter(|_| within && !condition) else { return within };
        if !programs::is_ignored(name) && name != "exit" && !self.told {
            self.told = true;
            self.commands.push(Err(block_problem(&self.block, &self.text[self.block.clone()])));
        }
        true
    }

    /// The keyword of a block as a command, which has no effect.
    fn block_line(&self) -> Line {
        let mut line = Line { span: self.block.clone(), number: self.block_number, ..Line::default() };
        line.take(&self.text[self.block.clone()], self.block.clone());
        line
    }

    fn end(&mut self) {
        if self.depth > 0 && !self.told {
            self.commands.push(Err(block_problem(&self.block, &self.text[self.block.clone()])));
        }
    }
}

/// A problem of a command, at its line if it has no place.
pub(super) fn of_line(problem: Problem, line: &Line) -> Problem {
    let problem = problem.at(&line.span);
    match line.words.iter().any(|word| word.text.ends_with(';') || word.text == "&&") {
        true => problem.help(
            "`;` and `&&` separate commands of a shell, which start with `ipfw`; a list of rules has one on each line",
        ),
        false => problem,
    }
}

fn block_problem(place: &Range<usize>, keyword: &str) -> Problem {
    Problem::new(format!("{}: scripts are read and not run", Found(keyword)))
        .at(place)
        .help("write the commands that it would run, or let `narrows ipfw commands` print them")
}

/// The most lines of a loop: each line that begins one is searched so far for its end.
const MOST_LINES: usize = 200;

/// Where the loop ends that a text begins with: behind the line of its `done`.
fn loop_end(text: &str) -> Option<usize> {
    text.trim_start().starts_with("for ").then_some(())?;
    let mut deep = 0;
    let mut end = 0;
    for line in text.split_inclusive('\n').take(MOST_LINES) {
        end += line.len();
        for command in line.split(';') {
            let mut words =
                command.split_whitespace().skip_while(|word| matches!(*word, "do" | "then" | "else"));
            match words.next() {
                Some("for" | "while" | "until") => deep += 1,
                Some("done") => deep -= 1,
                _ => {}
            }
        }
        if deep == 0 {
            return Some(end);
        }
    }
    None
}

/// Whether a line starts with an ipfw command, as in a file of rules.
fn is_rules(words: &[Word]) -> bool {
    is_command(words) && !starts_in_shell(words)
        || words.is_empty()
        || words[0].text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a line starts with a program, a variable or an assignment.
fn starts_in_shell(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return false };
    let text = first.text.trim_start_matches('@');
    let name = text.len() - text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    text.starts_with('$')
        || name > 0 && text[name..].starts_with('=')
        || is_program(text)
        || match (text, words.get(1)) {
            ("set", next) => next.is_some_and(|next| programs::is_set_of_shell(&next.text)),
            _ => programs::is_known(text),
        }
        || matches!(
            text,
            "sudo" | "doas" | "export" | "exit" | "if" | "then" | "else" | "fi" | "do" | "done" | "{" | "}"
        )
}

/// `ipfw` takes the whole command as a single argument, too.
fn split_argument(line: &mut Line) {
    let Some([program, argument]) = line.words.len().checked_sub(2).and_then(|at| line.words.get(at..))
    else {
        return;
    };
    if !is_program(&program.text) || !argument.text.contains(char::is_whitespace) {
        return;
    }
    let Some(argument) = line.words.pop() else { return };
    for part in argument.text.split_whitespace() {
        let part = argument.part(part);
        line.take(&part.text, part.span);
    }
}
