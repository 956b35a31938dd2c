//! Somebody who watches an experiment of many runs, and may break it off.

use std::ops::ControlFlow;

/// Where an experiment has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// The run that is next, in words.
    pub what: String,
}

/// Told before each run, and asked whether to go on. Changes no result of a run.
pub type Watch<'a> = &'a mut dyn FnMut(&Step) -> ControlFlow<()>;

/// Lets it be.
pub(crate) fn go_on(_: &Step) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use crate::fairness::{FairnessOptions, fairness, fairness_watched};
    use narrows_scenario::SchedulerKind;

    #[test]
    fn what_is_broken_off_has_what_was_done() {
        let algorithms = vec![Algorithm::Of(SchedulerKind::Drr)];
        let options = FairnessOptions { algorithms, packets: 500, ..FairnessOptions::default() };
        let whole = fairness(&options).unwrap();
        let mut steps = Vec::new();
        let part = fairness_watched(&options, &mut |step| {
            steps.push((step.done, step.total));
            if step.done == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let total = whole.trials.len();
        assert_eq!(steps, [(0, total), (1, total), (2, total)]);
        assert_eq!(part.unwrap().trials, whole.trials[..2]);
    }
}
