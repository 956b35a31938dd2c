//! Scripts of a shell, executed as far as what they say: variables, conditions, loops, functions, `$(…)` of what prints its own
//! words. No program is run: a reader gets the commands of other programs in the order in which a shell would run them.
//!
//! [`parser`] makes a tree of a script, [`runner`] executes it, and [`expand`] gives words their values. A value that is not
//! in the script, as the output of most programs, is not known; what depends on it is refused if it has an effect on a network.
//!
//! Source: POSIX.1-2017, Shell Command Language; what is added for bash is from its reference manual, edition 5.2.

mod arithmetic;
mod assignments;
mod awk;
mod builtins;
mod chains;
mod condition;
mod control;
mod decimal;
mod expand;
mod field;
mod lines;
mod parameters;
mod parser;
mod pattern;
mod place;
mod printed;
mod printf;
mod programs;
mod reading;
mod redirects;
mod regular;
mod runner;
mod scan;
mod state;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;

pub(crate) use self::field::Expanded;
use self::parser::Parser;
pub(crate) use self::programs::{is_batch_flag, is_of_system, raises_rights};
pub(crate) use self::state::InputLine;
use self::state::Runner;
use self::tree::{Chain, Command, List, Node};
use super::{Word, Words};
use crate::problem::Problem;

/// What to do about what a script alone does not say.
const KEEP: &str = "keep the branch that applies, or use `narrows tc commands` (`narrows ipfw commands`)";

/// What a script is started with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// Its arguments; `None` if they are not known.
    pub arguments: Option<&'a [String]>,
    /// Variables of its surroundings.
    pub variables: &'a [(String, String)],
    /// Its path: what it sources or reads may be beside it. `None` for a text.
    pub path: Option<&'a Path>,
}

/// A command of another program.
pub(crate) struct Call<'a> {
    pub(crate) words: &'a [Expanded],
    /// Where it stands, without the assignments before it.
    pub(crate) span: Range<usize>,
    pub(crate) role: Role,
    /// It executes lines that it reads, which follow as calls of their own.
    pub(crate) reads_lines: bool,
    /// The script ends if it fails: `set -e`.
    pub(crate) ends_on_failure: bool,
    /// Variables that are not set, for which no word stands.
    pub(crate) unset: &'a [Expanded],
    /// The lines of a file of rules that it reads (`pfctl -f`), if they are known.
    pub(crate) input: Option<&'a VecDeque<InputLine>>,
    /// It runs this script, which is not in the folder of the one that calls it.
    pub(crate) missing: Option<&'a Expanded>,
}

impl<'a> Call<'a> {
    /// One that reads nothing and whose failure does not matter.
    fn new(words: &'a [Expanded], span: Range<usize>, role: Role) -> Self {
        let (reads_lines, ends_on_failure) = (false, false);
        Self { words, span, role, reads_lines, ends_on_failure, unset: &[], input: None, missing: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Command,
    /// It reads what another one prints, which is not known.
    Piped,
    /// A line that a program reads itself: of `tc -batch -`, or what [`Lines::own`] says.
    Line,
    /// No command: the calls before came from a loop that never ends, and whose turns are alike.
    Repeats(Turns),
}

/// Turns of a loop, by the numbers of their first calls, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    /// The turn that repeats.
    pub(crate) one: usize,
    pub(crate) next: usize,
    /// The one behind the next.
    pub(crate) end: usize,
}

/// What a reader says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ran,
    /// It fails wherever it runs.
    Failed,
    /// It was wrong, and has been said to be.
    Wrong,
    /// The script ends.
    End,
}

/// What lines of a script mean that is not a shell's alone.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// The length of what starts at this line start, with its line end, if a program reads that itself.
    pub(crate) own: &'a dyn Fn(usize) -> Option<usize>,
    /// Whether the line behind this line end continues the command that starts at the first place.
    pub(crate) continued: &'a dyn Fn(usize, usize) -> bool,
}

impl Lines<'_> {
    pub(crate) const OF_SHELL: Self = Self { own: &|_| None, continued: &|_, _| false };
}

/// Calls `call` with each command in the order in which a shell would run it, until the script ends. Returns what is wrong
/// with the script itself.
pub(crate) fn run(
    text: &str,
    start: Start<'_>,
    lines: Lines<'_>,
    call: &mut dyn FnMut(&Call<'_>) -> Answer,
) -> Vec<Problem> {
    let mut runner = Runner::new(text, start, call);
    runner.run(lines, has_prompts(text));
    runner.problems
}

/// Whether `#` before a command is the prompt of a root shell: nothing else stands in the text.
fn has_prompts(text: &str) -> bool {
    let mut continues = false;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.all(|line| {
        let is_one = line.starts_with('#') || continues;
        continues = line.ends_with('\\');
        is_one
    })
}

/// The commands of a text, whether a shell would run them or not, as they are written; those before what is not understood.
pub(crate) fn commands(text: &str) -> Vec<Range<usize>> {
    let mut parser = Parser::new(text, Lines::OF_SHELL, has_prompts(text));
    let mut all = Vec::new();
    while let Ok(Some(chain)) = parser.next() {
        of_chain(&chain, &mut all);
    }
    all
}

fn of_chain(chain: &Chain, all: &mut Vec<Range<usize>>) {
    let pipelines = std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, pipeline)| pipeline));
    pipelines.flat_map(|pipeline| &pipeline.commands).for_each(|command| of_command(command, all));
}

fn of_command(command: &Command, all: &mut Vec<Range<usize>>) {
    let mut of_list = |list: &List| list.iter().for_each(|chain| of_chain(chain, all));
    match &command.node {
        Node::Simple { words, .. } => all.extend(words.first().map(|first| first.start..command.span.end)),
        Node::For { body, .. } | Node::Count { body, .. } | Node::Group(body) | Node::Subshell(body) => {
            of_list(body)
        }
        Node::While { test, body, .. } => [test, body].into_iter().for_each(of_list),
        Node::If(branches) => {
            branches.iter().flat_map(|(test, body)| test.iter().chain([body])).for_each(of_list);
        }
        Node::Case { arms, .. } => arms.iter().for_each(|arm| of_list(&arm.body)),
        Node::Function { body, .. } => of_command(body, all),
        Node::Calculation(_) | Node::Condition(_) | Node::Own(_) => {}
    }
}

/// The words of a command, for a reader of `end` bytes of text.
pub(crate) fn as_words(words: &[Expanded], end: usize) -> Words<'_> {
    Words::of_words(words.iter().map(|word| Word::new(word.text(), &word.span())).collect(), end)
}
