//! A callback that watches an experiment of many runs and can stop it.

use std::ops::ControlFlow;

/// The progress of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs completed.
    pub done: usize,
    /// Total number of runs.
    pub total: usize,
    /// A description of the next run.
    pub what: String,
}

/// Called before each run; decides whether to continue. Does not affect the results of runs.
pub type Watch<'a> = &'a mut dyn FnMut(&Step) -> ControlFlow<()>;

/// Always continues.
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
