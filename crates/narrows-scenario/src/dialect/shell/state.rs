//! What is known at a place of a script that is executed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use super::field::{Expanded, Unknown};
use super::place::Place;
use super::programs::Success;
use super::tree::Command;
use super::values::Values;
use super::{Answer, Call, Start};
use crate::problem::Problem;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Known(u8),
    /// Success, which a script relies on; its failure would be a reason to end.
    Assumed,
    /// A question to the host. A condition of `[` is not told apart from none by what only ends the script.
    Unknown {
        is_condition: bool,
    },
    /// Not known, but this if the script has no arguments.
    WithoutArguments(u8),
}

impl Status {
    pub(super) const SUCCESS: Self = Self::Known(0);
    pub(super) const FAILURE: Self = Self::Known(1);
    pub(super) const QUESTION: Self = Self::Unknown { is_condition: false };

    pub(super) fn of(holds: bool) -> Self {
        Self::Known(u8::from(!holds))
    }

    /// What is known of how a program ended.
    pub(super) fn from(success: Success) -> Self {
        match success {
            Success::Sure => Self::SUCCESS,
            Success::Assumed => Self::Assumed,
            Success::Asks => Self::QUESTION,
        }
    }

    pub(super) fn known(self) -> Option<u8> {
        match self {
            Self::Known(status) => Some(status),
            _ => None,
        }
    }

    pub(super) fn negated(self) -> Self {
        match self {
            Self::Known(status) => Self::of(status != 0),
            Self::WithoutArguments(status) => Self::WithoutArguments(u8::from(status == 0)),
            Self::Assumed => Self::QUESTION,
            unknown => unknown,
        }
    }
}

/// How to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break(usize),
    Continue(usize),
    Return,
    /// The function may have returned: what follows in it has been tried, and has no effect.
    MayReturn,
    Exit,
}

/// A text that is executed.
pub(super) struct Source {
    pub(super) text: String,
    pub(super) place: Place,
}

#[derive(Clone)]
pub(super) struct Function {
    pub(super) body: Rc<Command>,
    pub(super) source: Rc<Source>,
}

/// What a branch would do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    pub(super) has_effect: bool,
    pub(super) sleeps: bool,
    /// Turns and commands so far.
    pub(super) steps: usize,
}

/// A line that a command can read.
#[derive(Clone, Debug)]
pub(crate) struct InputLine {
    pub(super) text: String,
    pub(super) place: Place,
    /// Why it has a name in place of a value.
    pub(super) unknown: Option<Box<Unknown>>,
    /// The text ends without a line end.
    pub(super) is_open: bool,
}

impl InputLine {
    /// Takes the line that continues it.
    pub(super) fn join(&mut self, next: &Self) {
        let start = self.place.of(&(0..0)).start;
        self.place = Place::Whole(start..next.place.of(&(0..next.text.len())).end);
        self.text += &next.text;
        self.is_open = next.is_open;
        self.unknown = self.unknown.take().or_else(|| next.unknown.clone());
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where it stands in the script.
    pub(crate) fn span(&self) -> Range<usize> {
        self.place.of(&(0..self.text.len()))
    }

    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.unknown.as_ref().map(|unknown| &unknown.problem)
    }
}

/// What is printed.
#[derive(Default)]
pub(super) struct Output {
    pub(super) text: String,
    pub(super) is_unknown: bool,
    /// It is what tc says of a device without a discipline of the script.
    pub(super) is_default: bool,
}

pub(super) struct Runner<'a> {
    pub(super) start: Start<'a>,
    pub(super) source: Rc<Source>,
    pub(super) values: Values,
    pub(super) functions: Rc<BTreeMap<String, Function>>,
    pub(super) call: &'a mut dyn FnMut(&Call<'_>) -> Answer,
    pub(super) problems: Vec<Problem>,
    pub(super) said: BTreeSet<(usize, usize)>,
    pub(super) left: usize,
    pub(super) steps: usize,
    pub(super) deep: usize,
    pub(super) expansions: usize,
    /// How often what commands print was put in place of `$(…)`.
    pub(super) captures: usize,
    /// `$?`
    pub(super) status: Status,
    /// `set -e`
    pub(super) exits_on_failure: bool,
    /// `set -u`
    pub(super) exits_on_unset: bool,
    /// `set -o pipefail`
    pub(super) fails_in_pipes: bool,
    /// Loops around, within the same function.
    pub(super) loops: usize,
    /// The number of loops around in the turn that stands for all of a list that is not known; 0 for none.
    pub(super) once: usize,
    /// Texts of other files within one another.
    pub(super) sourced: usize,
    /// Whether the function or shell of its own that is executed may have ended before, with a failure.
    pub(super) is_doubtful: bool,
    /// Shells of their own within one another.
    pub(super) shells: usize,
    /// How many conditions are being evaluated, where failure does not end the script.
    pub(super) conditions: usize,
    /// Whether arguments that are not known are taken to be left out.
    pub(super) is_without: bool,
    /// Whether the script may be in another folder by now.
    pub(super) has_moved: bool,
    /// Whether `{a,b}` is written out.
    pub(super) has_lists: bool,
    /// Whether the first word of a command may be an alias.
    pub(super) has_aliases: bool,
    pub(super) output: Option<Output>,
    pub(super) input: Option<VecDeque<InputLine>>,
    pub(super) trial: Option<Trial>,
    /// The files that the script has written, as far as it is known what is in them.
    pub(super) written: BTreeMap<String, Option<String>>,
    /// The words before each command of a text that a program runs elsewhere: `ssh HOST`.
    pub(super) elsewhere: Vec<Expanded>,
    /// Whether what runs reads the output of a command before.
    pub(super) is_piped: bool,
    /// Whether that is what tc says of a device without a discipline of the script.
    pub(super) reads_default: bool,
    /// The kinds and numbers of disciplines that the script has configured so far; `None` if one is not known.
    pub(super) disciplines: Option<BTreeSet<String>>,
    /// The devices that commands have configured, and whether by filters; `None` if one of them is not known.
    pub(super) configured: Option<BTreeSet<(String, bool)>>,
    /// The devices that commands configure: those of lists that are not known, and others.
    pub(super) devices: (bool, bool),
    /// Commands that were wrong so far.
    pub(super) wrong: usize,
    /// How often `sleep` ran.
    pub(super) slept: usize,
    /// A file of the host has been sourced that is not read: it may have set any variable that the script has not.
    pub(super) reads_others: bool,
    /// The commands of the function that is executed.
    pub(super) body: Option<Range<usize>>,
    /// How many calls there have been.
    pub(super) told: usize,
    /// The calls of loops that have an effect or wait, by their numbers.
    pub(super) in_loops: Vec<(usize, String)>,
    /// Where the last turn was.
    pub(super) last_step: Range<usize>,
    pub(super) is_over: bool,
}

/// The lines of a text.
pub(super) fn lines_of(text: &str, place: &Place) -> VecDeque<InputLine> {
    let of =
        |line: &str| InputLine { text: line.to_owned(), place: place.clone(), unknown: None, is_open: false };
    let mut all: VecDeque<InputLine> = text.lines().map(of).collect();
    all.back_mut().into_iter().for_each(|last| last.is_open = !text.ends_with('\n'));
    all
}

/// Lines as one text.
pub(super) fn text_of(lines: &VecDeque<InputLine>) -> String {
    lines.iter().flat_map(|line| [line.text.as_str(), if line.is_open { "" } else { "\n" }]).collect()
}
