//! Loops, functions and conditions of a shell: `for i in 1 2 3; do …; done`, and `if [ A = B ]; then …; fi` or `case A in …`
//! where both sides are in the script, or are arguments of the script, which has those of `set -- A B` or none. Loops are
//! written out; their lists are in the script, so the number of commands is known before any is read.
//!
//! [`parser`] makes parts of the commands, and [`runner`] executes them.

mod parser;
mod pattern;
mod runner;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::parser::parse;
use self::runner::execute;
use super::shell::Piece;
use super::variables::Variables;
use crate::problem::Problem;

/// Loops and conditions within one another.
const DEEPEST: usize = 32;

/// What to do about conditions.
const KEEP: &str = "keep the branch that applies, or use `narrows tc commands` (`narrows ipfw commands`)";

/// A part of a script.
#[derive(Debug)]
enum Part {
    Command(Piece),
    Loop {
        name: String,
        list: Range<usize>,
        body: Vec<Part>,
    },
    /// `for ((FIRST; WHILE; STEP))`
    Count {
        calculations: [Range<usize>; 3],
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
    /// A part in a shell of its own: what it sets, or an `exit` in it, is of that shell alone.
    Apart {
        part: Box<Part>,
        is_background: bool,
        at: Range<usize>,
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
    /// `&&` behind what succeeds, as far as is known.
    Then,
}

/// Calls `command` with each command in the order in which a shell would run it, until it says that it was
/// the last one. Returns problems of loops and conditions.
pub(crate) fn run(
    text: &str,
    pieces: Vec<Piece>,
    variables: &mut Variables,
    command: &mut dyn FnMut(&Piece, &mut Variables) -> Next,
) -> Vec<Problem> {
    execute(text, &parse(text, pieces), variables, command)
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

fn first_word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next().filter(|word| text.starts_with(word))
}

fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}
