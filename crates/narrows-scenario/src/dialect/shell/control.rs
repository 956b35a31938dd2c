//! Loops and conditions.

use std::ops::Range;

use super::KEEP;
use super::chains::{Tried, span_of};
use super::field::{Expanded, How, NOT_RUN, Unknown};
use super::pattern::Pattern;
use super::programs;
use super::state::{Flow, Runner, Status};
use super::tree::{Arm, ArmEnd, List};
use super::values::{Missing, Scalar};
use crate::problem::{Found, Problem};

/// The most turns of a loop whose end is not written in its first line.
const MOST_TURNS: usize = 1 << 16;
/// The most turns of a loop that waits in each.
const MOST_WAITING: usize = 1 << 12;

impl Runner<'_> {
    /// Whether a loop ends with this turn, and how the script goes on then.
    pub(super) fn turn(&mut self, flow: Flow, wrong_before: usize) -> Option<Flow> {
        match flow {
            Flow::Break(1) => Some(Flow::On),
            Flow::Break(levels) => Some(Flow::Break(levels - 1)),
            Flow::Continue(levels) if levels > 1 => Some(Flow::Continue(levels - 1)),
            Flow::Return | Flow::Exit => Some(flow),
            Flow::MayReturn => {
                let span = self.last_step.clone();
                self.wrong(Problem::new("a loop of a function that may return in it").help(NOT_RUN), &span);
                Some(Flow::On)
            }
            // What is wrong in one turn is wrong in the others.
            _ if self.wrong > wrong_before => Some(Flow::On),
            _ => None,
        }
    }

    pub(super) fn of_for(
        &mut self,
        name: &Range<usize>,
        list: Option<&[Range<usize>]>,
        body: &List,
        span: &Range<usize>,
    ) -> Flow {
        let header = span.start..list.and_then(<[_]>::last).map_or(name.end, |last| last.end);
        let name = self.source.text[name.clone()].to_owned();
        let mut words = match list {
            Some(list) => self.all_words(list),
            None => {
                let arguments = self.values.arguments().map(<[Scalar]>::to_vec).unwrap_or_default();
                let of = |scalar| match scalar {
                    Scalar::Text(text) => {
                        Expanded { text, span: self.place(span), unknown: None, vanishes: false }
                    }
                    missing @ Scalar::Missing(..) => {
                        let field = self.of_scalar(missing, "@");
                        Expanded {
                            text: field.text,
                            span: self.place(span),
                            unknown: field.unknown,
                            vanishes: false,
                        }
                    }
                };
                arguments.into_iter().map(of).collect()
            }
        };
        // Nothing, if the surroundings have not set it.
        words.retain(|word| !word.vanishes || word.text.is_empty());
        for word in &mut words {
            if word.unknown.as_ref().is_some_and(|unknown| unknown.what == Missing::Unset && unknown.is_named)
            {
                (word.text, word.unknown) = (String::new(), None);
            }
        }
        words.iter_mut().for_each(doubt_files);
        if let Some(word) = words.iter().find(|word| word.unknown.is_some()) {
            let scalar = self.scalar(word, &name);
            let is_argument = word.unknown.as_ref().is_some_and(|unknown| unknown.what == Missing::Argument);
            let trial = self.tried(|runner| {
                runner.values.set(&name, scalar.clone());
                runner.body(body)
            });
            let is_wrong = word.unknown.as_ref().is_some_and(|unknown| !self.is_unclear(unknown));
            if !is_wrong && !is_argument && words.len() == 1 && trial.done.has_effect && !trial.done.sleeps {
                let word = word.clone();
                return self.once(&header, (name, scalar), word, body);
            }
            // Without arguments there is none to go through.
            let is_none = is_argument && words.len() == 1;
            if is_wrong || (trial.done.has_effect || trial.done.sleeps) && !is_none {
                let problem =
                    word.problem().cloned().unwrap_or_else(|| Problem::new("a list that is not known"));
                let span = word.span.clone();
                self.wrong(problem, &span);
                return Flow::On;
            }
            self.doubt([trial]);
            return Flow::On;
        }
        if words.is_empty() {
            self.status = Status::SUCCESS;
        }
        for word in words {
            if self.step(span) != Flow::On {
                return Flow::Exit;
            }
            self.values.set(&name, Scalar::Text(word.text));
            let wrong = self.wrong;
            let flow = self.body(body);
            if let Some(flow) = self.turn(flow, wrong) {
                return flow;
            }
        }
        Flow::On
    }

    /// Goes through a list of the host once, as for one of its values.
    fn once(
        &mut self,
        header: &Range<usize>,
        (name, value): (String, Scalar),
        list: Expanded,
        body: &List,
    ) -> Flow {
        let span = self.place(header);
        let part =
            |text: &str| Expanded { text: text.into(), span: span.clone(), unknown: None, vanishes: false };
        let flow = self.program(&[part("for"), part(&name), part("in"), list.clone()], header);
        if flow != Flow::On {
            return flow;
        }
        self.values.set(&name, value);
        let (wrong, once) = (self.wrong, std::mem::replace(&mut self.once, self.loops + 1));
        let flow = self.body(body);
        self.once = once;
        self.turn(flow, wrong).unwrap_or(Flow::On)
    }

    /// The commands of a loop.
    fn body(&mut self, body: &List) -> Flow {
        self.loops += 1;
        let flow = self.list(body);
        self.loops -= 1;
        flow
    }

    /// Runs a loop that counts.
    pub(super) fn count(&mut self, [first, test, step]: &[Range<usize>; 3], body: &List) -> Flow {
        let calculate = |runner: &mut Self, span: &Range<usize>| {
            let place = runner.source.place.at(span.start);
            let raw = runner.source.text[span.clone()].to_owned();
            let value = runner.calculated(&raw, &place);
            match value.unknown {
                None => Some(value.text != "0" || raw.trim().is_empty()),
                Some(unknown) => {
                    let span = runner.place(span);
                    runner.wrong(unknown.problem, &span);
                    None
                }
            }
        };
        if calculate(self, first).is_none() {
            return Flow::On;
        }
        self.status = Status::SUCCESS;
        for _ in 0..MOST_TURNS {
            match calculate(self, test) {
                Some(true) => {}
                Some(false) => return Flow::On,
                None => return Flow::On,
            }
            if self.step(test) != Flow::On {
                return Flow::Exit;
            }
            let wrong = self.wrong;
            let flow = self.body(body);
            if let Some(flow) = self.turn(flow, wrong) {
                return flow;
            }
            if calculate(self, step).is_none() {
                return Flow::On;
            }
        }
        let span = self.place(test);
        self.wrong_at(&span, format!("a loop that does not end within {MOST_TURNS} turns"));
        Flow::On
    }

    /// Evaluates a condition.
    pub(super) fn test(&mut self, test: &List) -> (Flow, Status) {
        self.conditions += 1;
        let flow = self.list(test);
        self.conditions -= 1;
        (flow, self.status)
    }

    /// Whether a turn of a loop changes nothing, so that the next one is the same: what is behind the loop never runs.
    fn goes_on(&mut self, test: &List, body: &List, is_until: bool) -> bool {
        if self.input.is_some() {
            return false;
        }
        let trial = self.tried(|runner| {
            let (flow, status) = runner.test(test);
            let status = if is_until { status.negated() } else { status };
            let arguments = runner.values.arguments().map(<[Scalar]>::to_vec);
            match flow {
                Flow::On if status == Status::SUCCESS => match runner.body(body) {
                    Flow::On if runner.values.arguments() != arguments.as_deref() => Flow::Exit,
                    flow => flow,
                },
                _ => Flow::Exit,
            }
        });
        let is_quiet = !trial.done.has_effect && !trial.done.sleeps && !trial.prints;
        trial.flow == Flow::On && is_quiet && trial.changed.is_empty()
    }

    pub(super) fn of_while(&mut self, test: &List, body: &List, is_until: bool, span: &Range<usize>) -> Flow {
        let (mut waiting, mut turns) = (0, 0);
        let mut starts = Vec::new();
        let mut last = Status::SUCCESS;
        let at = test.first().map_or(span.clone(), |chain| span_of(&chain.first));
        loop {
            let (slept, wrong) = (self.slept, self.wrong);
            starts.push(self.told);
            self.loops += 1;
            let (flow, status) = self.test(test);
            self.loops -= 1;
            if let Some(flow) = self.turn(flow, self.wrong).filter(|_| flow != Flow::On) {
                return flow;
            }
            let runs = match if is_until { status.negated() } else { status } {
                Status::Known(status) | Status::WithoutArguments(status) => status == 0,
                Status::Assumed | Status::Unknown { .. } => {
                    let trial = self.tried(|runner| runner.body(body));
                    if trial.done.has_effect
                        || matches!(trial.flow, Flow::Exit | Flow::Return | Flow::MayReturn)
                    {
                        self.doubtful(&at);
                        return Flow::On;
                    }
                    self.doubt([trial]);
                    return Flow::On;
                }
            };
            if !runs {
                self.status = last;
                return Flow::On;
            }
            if self.step(&at) != Flow::On {
                return Flow::Exit;
            }
            let flow = self.body(body);
            if let Some(flow) = self.turn(flow, wrong) {
                return flow;
            }
            last = self.status;
            turns += 1;
            if turns > MOST_TURNS {
                let span = self.place(&at);
                self.wrong_at(&span, format!("a loop that does not end within {MOST_TURNS} turns"));
                return Flow::On;
            }
            if turns == 2 && self.goes_on(test, body, is_until) {
                return Flow::Exit;
            }
            waiting += usize::from(self.slept > slept);
            // What waits in a trial has been seen.
            let is_seen = self.trial.is_some_and(|trial| trial.sleeps);
            if waiting > MOST_WAITING || is_seen {
                let span = self.place(&at);
                starts.push(self.told);
                if !is_seen && !self.repeats(&starts) {
                    self.wrong(
                        Problem::new(
                            "a loop that waits in each turn, does not end, and does not repeat itself",
                        )
                        .help("write out the turns that are to happen: for i in $(seq 1 100); do …; done"),
                        &span,
                    );
                }
                return Flow::Exit;
            }
        }
    }

    pub(super) fn of_if(&mut self, branches: &[(Option<List>, List)], span: &Range<usize>) -> Flow {
        for (index, (test, body)) in branches.iter().enumerate() {
            let Some(test) = test else { return self.list(body) };
            let at = match (test.first(), test.last()) {
                (Some(first), Some(last)) => {
                    span_of(&first.first).start
                        ..last.rest.last().map_or(span_of(&last.first), |(_, last)| span_of(last)).end
                }
                _ => span.clone(),
            };
            if self.step(&at) != Flow::On {
                return Flow::Exit;
            }
            let (flow, status) = self.test(test);
            if flow != Flow::On {
                return flow;
            }
            let holds = match status {
                Status::Known(status) => status == 0,
                Status::WithoutArguments(status) => {
                    let is_harmless = branches[index..].iter().all(|(_, body)| {
                        let trial = self.tried(|runner| runner.list(body));
                        !trial.done.has_effect && !trial.done.sleeps && trial.changed.is_empty()
                    });
                    if is_harmless {
                        self.status = Status::SUCCESS;
                        return Flow::On;
                    }
                    status == 0
                }
                Status::Assumed | Status::Unknown { .. } => return self.either(&branches[index..], &at),
            };
            if holds {
                return self.list(body);
            }
        }
        self.status = Status::SUCCESS;
        Flow::On
    }

    /// Whether a function is executed for what it prints, and no word of it names a program that changes a network.
    fn only_prints(&self) -> bool {
        let (Some(body), Some(_)) = (&self.body, &self.output) else { return false };
        let words =
            self.source.text[body.clone()].split(|c: char| c.is_whitespace() || ";|&()`\"".contains(c));
        let mut named = words.filter(|word| !word.starts_with('$'));
        !named.any(|word| programs::has_effect(&[word]) || programs::sleeps(&[word]))
    }

    /// Branches of which it is not known which one runs.
    pub(super) fn either(&mut self, branches: &[(Option<List>, List)], at: &Range<usize>) -> Flow {
        let mut trials = Vec::new();
        for (index, (test, body)) in branches.iter().enumerate() {
            trials.push(self.tried(|runner| {
                runner.status = Status::SUCCESS;
                let flow = match test.as_ref().filter(|_| index > 0) {
                    Some(test) => runner.test(test).0,
                    None => Flow::On,
                };
                if flow == Flow::On { runner.list(body) } else { flow }
            }));
        }
        let acts = |trial: &Tried| trial.done.has_effect || trial.done.sleeps;
        let only_returns = |trial: &Tried| {
            trial.flow == Flow::Return && !acts(trial) && !trial.prints && trial.changed.is_empty()
        };
        // A function that returns in any case: how is the question.
        if matches!(branches, [.., (None, _)]) && trials.iter().all(only_returns) {
            self.status = Status::QUESTION;
            return Flow::Return;
        }
        let may_return = |trial: &Tried| {
            let does_nothing = !acts(trial) && !trial.prints && trial.changed.is_empty();
            trial.flow == Flow::On && does_nothing || self.may_return(trial)
        };
        let returns = trials
            .iter()
            .any(|trial| matches!(trial.flow, Flow::Return | Flow::MayReturn) && self.is_jump(trial));
        if returns && trials.iter().all(may_return) {
            self.status = Status::QUESTION;
            return Flow::MayReturn;
        }
        let acts = trials.iter().any(acts);
        let jumps = trials.iter().any(|trial| self.is_jump(trial));
        if jumps && !acts && self.only_prints() {
            self.output.iter_mut().for_each(|output| output.is_unknown = true);
            return Flow::Exit;
        }
        if jumps || acts {
            self.doubtful(at);
            return Flow::On;
        }
        self.doubt(trials);
        Flow::On
    }

    /// Runs the commands of the first pattern that a word fits.
    pub(super) fn of_case(&mut self, word: &Range<usize>, arms: &[Arm]) -> Flow {
        if self.step(word) != Flow::On {
            return Flow::Exit;
        }
        let mut field = self.one(word, How::One);
        if let Some(unknown) = field.unknown.take() {
            let trials: Vec<Tried> =
                arms.iter().map(|arm| self.tried(|runner| runner.list(&arm.body))).collect();
            let has_effect = trials.iter().any(|trial| trial.done.has_effect || trial.done.sleeps);
            let is_fixed = !has_effect && trials.iter().all(|trial| trial.changed.is_empty());
            let is_argument = matches!(unknown.what, Missing::Argument | Missing::Unset);
            if is_fixed {
                self.status = Status::SUCCESS;
                return Flow::On;
            }
            if !is_argument && !has_effect {
                self.doubt(trials);
                return Flow::On;
            }
            if !is_argument
                || self.values.is_function()
                    && unknown.what == Missing::Argument
                    && self.values.arguments().is_none()
            {
                let span = self.place(word);
                self.trial.iter_mut().for_each(|trial| trial.has_effect = true);
                self.wrong(unknown.problem.help(KEEP), &span);
                return Flow::On;
            }
            field = self.without(|runner| runner.one(word, How::One));
        }
        // The first command may ask for the status from before.
        let (mut falls, mut is_run) = (false, false);
        for arm in arms {
            let mut fits = falls;
            for pattern in arm.patterns.iter().filter(|_| !falls) {
                let found = self.one(pattern, How::Pattern);
                let compiled = match found.unknown {
                    None => Pattern::new(&found.text),
                    Some(unknown) => {
                        let span = self.place(pattern);
                        self.wrong(unknown.problem, &span);
                        return Flow::On;
                    }
                };
                let Some(compiled) = compiled else {
                    let span = self.place(pattern);
                    let text = self.source.text[pattern.clone()].to_owned();
                    self.wrong(
                        Problem::new(format!("the pattern `{text}` is not understood"))
                            .help("understood: words, `*`, `?` and `[…]`")
                            .help(KEEP),
                        &span,
                    );
                    return Flow::On;
                };
                fits |= compiled.fits(&field.text);
            }
            if !fits {
                continue;
            }
            let flow = self.list(&arm.body);
            is_run |= !arm.body.is_empty();
            if flow != Flow::On {
                return flow;
            }
            if arm.end == ArmEnd::Leaves {
                break;
            }
            falls = arm.end == ArmEnd::Falls;
        }
        if !is_run {
            self.status = Status::SUCCESS;
        }
        Flow::On
    }

    /// What something comes to where the script has no arguments, and the environment none of its variables.
    pub(super) fn without<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_without, true);
        let result = run(self);
        self.is_without = before;
        result
    }
}

/// Names of files of the host, in place of which a shell puts those that there are, are not known.
fn doubt_files(word: &mut Expanded) {
    let is_pattern = word.text.starts_with('/') && word.text.contains(['*', '?']);
    if is_pattern && word.unknown.is_none() {
        let problem = Problem::new(format!("{} are files of the host", Found(&word.text))).help(NOT_RUN);
        word.unknown = Some(Box::new(Unknown { problem, what: Missing::File, is_named: true }));
    }
}
