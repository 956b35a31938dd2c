//! What the parser makes of a script. Words stay as they are written, until they are expanded.

use std::ops::Range;
use std::rc::Rc;

/// A word in the text, with its quotes.
pub(super) type Word = Range<usize>;

/// Commands in the order in which they run.
pub(super) type List = Vec<Chain>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Joint, Pipeline)>,
    /// `&`
    pub(super) is_background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands of which each reads the output of the one before.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// `!`
    pub(super) is_negated: bool,
    pub(super) commands: Vec<Command>,
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) node: Node,
    pub(super) redirects: Vec<Redirect>,
    pub(super) span: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Node {
    Simple {
        assignments: Vec<Word>,
        words: Vec<Word>,
    },
    /// `for NAME in WORDS`; without `in` the arguments.
    For {
        name: Range<usize>,
        list: Option<Vec<Word>>,
        body: List,
    },
    /// `for ((FIRST; TEST; STEP))`
    Count {
        calculations: [Range<usize>; 3],
        body: List,
    },
    /// `while`, or `until`.
    While {
        test: List,
        body: List,
        is_until: bool,
    },
    /// Each branch with its condition; `else` has none.
    If(Vec<(Option<List>, List)>),
    Case {
        word: Word,
        arms: Vec<Arm>,
    },
    /// `{ …; }`
    Group(List),
    /// `( … )`
    Subshell(List),
    /// `((…))`
    Calculation(Range<usize>),
    /// The words between `[[` and `]]`.
    Condition(Vec<Word>),
    Function {
        name: Range<usize>,
        body: Rc<Command>,
    },
    /// A line that a program reads, not the shell.
    Own(Range<usize>),
}

/// `PATTERN | PATTERN) …;;`
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) patterns: Vec<Word>,
    pub(super) body: List,
    pub(super) end: ArmEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmEnd {
    /// `;;`
    Leaves,
    /// `;&`: the next arm runs, too.
    Falls,
    /// `;;&`: the next patterns are tried.
    GoesOn,
}

#[derive(Debug)]
pub(super) enum Redirect {
    /// `< FILE`
    Input(Word),
    /// `<<< WORD`
    HereString(Word),
    /// `<< END`
    Here(Document),
    /// What is printed goes elsewhere: `> FILE`, `>> FILE`, `>&2`.
    Output { target: Word, appends: bool },
    /// Another descriptor: `2>&1`, `3< FILE`.
    Other,
}

/// The lines of a here-document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) lines: Range<usize>,
    /// Whether variables in it have their values.
    pub(super) is_expanded: bool,
    /// `<<-`: tabs before its lines do not count.
    pub(super) is_indented: bool,
}
