//! When, how often and how late the engine is polled changes no event.

use proptest::prelude::*;

use crate::drive::{Step, run};
use crate::random::{plan_and_inputs, steps};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The whole list, with instants, copies, verdicts, flips, order, and who brings the body back.
    #[test]
    fn every_pattern_of_polls_gives_the_same_events((plan, inputs) in plan_and_inputs(), steps in steps()) {
        let exact = run(&plan, &inputs, &[Step::Exactly]);
        prop_assert_eq!(&run(&plan, &inputs, &[Step::Wait]), &exact, "all handed in before the first poll");
        prop_assert_eq!(&run(&plan, &inputs, &steps), &exact, "polls in a pattern");
    }
}
