//! Splits scripts into commands. A line that starts with an ipfw command is read as ipfw reads a file of
//! rules; all others are read as a shell reads its script, and its branches, loops and functions are
//! executed as in [`shell`]. No program is run.
//!
//! An indented line that is not a command of its own continues the previous line, as in published listings.

use std::collections::BTreeSet;
use std::ops::Range;

use super::lexer::{Line, Word, ends_with_backslash, physical, raw_lines};
use super::pf::{Pf, is_pf};
use super::programs;
use super::shown;
use super::verbs::{is_command, is_program};
use crate::dialect::shell::{self, Answer, Call, Lines, Role, Start, as_words, raises_rights};
use crate::problem::Problem;

/// The commands of a script in order, each with the problem if it cannot be read.
pub(super) fn commands(text: &str, start: Start<'_>) -> Vec<Result<Line, Problem>> {
    if let Some(shown) = shown::commands(text) {
        return shown.into_iter().map(Ok).collect();
    }
    let found = read(text, start);
    if !found.is_empty() {
        return found;
    }
    // Where nothing else stands, `#` is the prompt of a root shell.
    let is_prompt = |line: &str| {
        let command = line.trim_start().strip_prefix('#').map_or("", str::trim_start);
        ["ipfw ", "dnctl "].iter().any(|program| command.starts_with(program))
    };
    let line = |raw: &str| if is_prompt(raw) { raw.replacen('#', " ", 1) } else { raw.to_owned() };
    read(&text.split_inclusive('\n').map(line).collect::<String>(), start)
}

fn read(text: &str, start: Start<'_>) -> Vec<Result<Line, Problem>> {
    let functions = functions(text);
    let lines = Lines {
        own: &|start| own(text, start, &functions),
        continued: &|start, end| continued(text, start, end),
    };
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut commands = Vec::new();
    let (mut pf, mut of_pf) = (Pf::default(), Vec::new());
    let number = |at: usize| 1 + ends.partition_point(|end| *end < at);
    // The number of commands before each call.
    let mut before = Vec::new();
    let mut command = |call: &Call<'_>| {
        let number = number(call.span.start);
        if let Role::Repeats(turns) = call.role {
            let at = |turn: usize| before.get(turn).copied().unwrap_or(commands.len());
            let (one, next, end) = (at(turns.one), at(turns.next), at(turns.end));
            commands.truncate(end);
            let turn = || Ok(Line { span: call.span.clone(), number, begins_turn: true, ..Line::default() });
            commands.insert(next, turn());
            commands.insert(one, turn());
            return Answer::Ran;
        }
        before.push(commands.len());
        if call.words.iter().find(|word| !raises_rights(word.text())).is_some_and(|word| is_pf(word.text())) {
            match pf.commands(call, number) {
                Ok(lines) => commands.extend(lines.into_iter().map(Ok)),
                Err(problem) => {
                    commands.push(Err(problem));
                    return Answer::Wrong;
                }
            }
        }
        match Pf::read(call) {
            Some(Ok(rule)) => {
                of_pf.push(rule);
                return Answer::Ran;
            }
            Some(Err(problem)) => {
                commands.push(Err(problem));
                return Answer::Wrong;
            }
            None => {}
        }
        match one(text, call, number) {
            Ok(Some(line)) => commands.push(Ok(line)),
            Ok(None) => {}
            Err(problem) => {
                commands.push(Err(problem));
                return Answer::Wrong;
            }
        }
        Answer::Ran
    };
    let problems = shell::run(text, start, lines, &mut command);
    commands.extend(problems.into_iter().map(Err));
    match pf.of_text(of_pf, number) {
        Ok(lines) => commands.extend(lines.into_iter().map(Ok)),
        Err(problem) => commands.push(Err(problem)),
    }
    commands
}

/// Reads one command; `None` if it has no effect.
fn one(text: &str, call: &Call<'_>, number: usize) -> Result<Option<Line>, Problem> {
    let is_own = call.words.is_empty();
    if is_own {
        return Ok(Some(rules(text, call.span.clone(), number)));
    }
    let mut expanded = call.words;
    // The prompt of a shell.
    if expanded.first().is_some_and(|first| first.text() == "$") {
        expanded = &expanded[1..];
    }
    let Some(program) = expanded.iter().find(|word| !raises_rights(word.text())) else { return Ok(None) };
    if let Some(problem) = expanded.iter().find_map(|word| word.problem()) {
        // What processes output, or prints, has no effect on the network.
        match call.role {
            Role::Piped => return Ok(None),
            _ if programs::prints(program.text()) => {}
            _ => return Err(problem.clone()),
        }
    }
    let unset = call.unset.iter().filter_map(|word| word.problem().cloned()).collect();
    let mut line = Line { span: call.span.start..call.span.start, number, unset, ..Line::default() };
    let mut words = as_words(expanded, call.span.end);
    while let Some(word) = words.take() {
        let place = word.span();
        if line.words.is_empty() && line.comment.is_none() {
            line.span.start = place.start;
        }
        line.span.end = place.end;
        line.take(word.text, place);
    }
    split_argument(&mut line);
    let is_sudo = |word: &Word| raises_rights(&word.text) || word.text.starts_with('-');
    let Some(first) = line.words.iter_mut().find(|word| !is_sudo(word)) else { return Ok(None) };
    // A batch file of Windows does not print such commands.
    if let Some(name) = first.text.strip_prefix('@') {
        first.text = name.into();
    }
    // The lines of its here-document stand for themselves.
    if call.reads_lines {
        return Ok(None);
    }
    // A shell finds no program with a number as its name.
    if call.role == Role::Command && first.text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    let counts = is_program(&first.text) || programs::is_refused(&first.text);
    match call.role {
        Role::Piped if !counts => Ok(None),
        Role::Command | Role::Piped | Role::Line | Role::Repeats(_) => Ok(Some(line)),
    }
}

/// Reads lines as ipfw reads a file of rules.
fn rules(text: &str, span: Range<usize>, number: usize) -> Line {
    let mut line = Line::default();
    for (raw, start, index) in raw_lines(&text[span.clone()]) {
        if line.comment.is_none() {
            line.append(physical(raw, span.start + start, number + index - 1));
        }
    }
    line
}

/// A line, its length, and what it says as a line of rules.
fn line_at(text: &str, start: usize) -> (&str, Line) {
    let raw = text[start..].split_inclusive('\n').next().unwrap_or_default();
    (raw, physical(raw, start, 0))
}

/// The names of functions of a shell, which may be those of commands of ipfw.
fn functions<'a>(text: &'a str) -> BTreeSet<&'a str> {
    let of = |line: &'a str| {
        let named = match line.strip_prefix("function ") {
            Some(rest) => rest,
            None => line.split_once("()")?.0,
        };
        named.split(|c: char| c.is_whitespace() || "({".contains(c)).find(|name| !name.is_empty())
    };
    text.lines().map(str::trim_start).filter_map(of).collect()
}

/// The length of a command of a list of rules at this line start, with the lines that continue it.
fn own(text: &str, start: usize, functions: &BTreeSet<&str>) -> Option<usize> {
    let (raw, line) = line_at(text, start);
    let is_function = line.words.first().is_some_and(|word| functions.contains(word.text.as_str()));
    if line.is_empty() || is_function || !is_rules(&line.words) {
        return None;
    }
    let (mut end, mut last) = (start + raw.len(), raw);
    while end < text.len() && (ends_with_backslash(last) || continues(text, start, end, 0)) {
        last = line_at(text, end).0;
        end += last.len();
    }
    Some(end - start)
}

/// Whether the line behind a line end continues the command that a shell reads from `start`.
fn continued(text: &str, start: usize, line_end: usize) -> bool {
    let first = text[start..].split_whitespace().next().unwrap_or_default();
    let is_ipfw = first.starts_with('$') || raises_rights(first) || is_program(first);
    // A shell's commands stand one below the other in its blocks.
    is_ipfw && continues(text, start, line_end + 1, 1)
}

/// A command that starts further from its line's start is not continued by indentation: for each line that might do so, the
/// start is looked for.
const FURTHEST_IN: usize = 1 << 12;

/// Whether a line with white space before it is not a command by itself, and stands in by so much more than the line at `start`.
fn continues(text: &str, start: usize, line: usize, further: usize) -> bool {
    let near = start.saturating_sub(FURTHEST_IN)..start;
    let line_start = match text.as_bytes()[near.clone()].iter().rposition(|byte| *byte == b'\n') {
        Some(end) => near.start + end + 1,
        None if near.start == 0 => 0,
        None => return false,
    };
    let indentation = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let (raw, next) = line_at(text, line);
    let indented = indentation(raw);
    indented > 0
        && indented >= indentation(&text[line_start..]) + further
        && !next.words.is_empty()
        && !is_command(&next.words)
        && !starts_in_shell(&next.words)
}

/// A problem of a command, at its line if it has no place.
pub(super) fn of_line(problem: Problem, line: &Line) -> Problem {
    if let Some(unset) = line.unset.first() {
        return unset.clone();
    }
    let problem = problem.at(&line.span);
    match line.words.iter().any(|word| word.text.ends_with(';') || word.text == "&&") {
        true => problem.help(
            "`;` and `&&` separate commands of a shell, which start with `ipfw`; a list of rules has one on each line",
        ),
        false => problem,
    }
}

/// Whether a line starts with an ipfw command, as in a file of rules.
fn is_rules(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return true };
    let is_own = is_command(words) || first.text.starts_with(|c: char| c.is_ascii_digit());
    is_own && !starts_in_shell(words) || matches!(first.text.trim_start_matches('@'), "rem" | "REM")
}

/// Whether a line starts with a program, a variable, an assignment, or a word of a shell.
fn starts_in_shell(words: &[Word]) -> bool {
    const OF_SHELL: [&str; 19] = [
        "sudo", "doas", "export", "exit", "if", "then", "elif", "else", "fi", "for", "while", "until", "do",
        "done", "case", "esac", "{", "}", "function",
    ];
    let Some(first) = words.first() else { return false };
    let text = first.text.trim_start_matches('@');
    let name = text.len() - text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    // `NAME()` of a function, `PATTERN | PATTERN)` of `case`.
    let is_part = words.get(1).is_some_and(|next| matches!(next.text.as_str(), "(" | ")" | "|"));
    is_part
        || text.starts_with(['$', ';', '&', '|', ')'])
        || name > 0 && text[name..].starts_with('=')
        || is_program(text)
        || match (text, words.get(1)) {
            ("set", next) => next.is_some_and(|next| programs::is_set_of_shell(&next.text)),
            _ => programs::is_known(text),
        }
        || OF_SHELL.contains(&text)
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
