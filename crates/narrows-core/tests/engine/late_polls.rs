//! When, how often and how late the engine is polled changes no event.

use proptest::prelude::*;

use crate::drive::{Step, finished};
use crate::random::{plan_and_inputs, steps};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The whole list, with instants, copies, verdicts, flips, order, and who brings the body back.
    #[test]
    fn every_pattern_of_polls_gives_the_same_events((plan, inputs) in plan_and_inputs(), steps in steps()) {
        let exact = finished(&plan, &inputs, &[Step::Exactly]);
        let at_the_end = finished(&plan, &inputs, &[Step::Wait]);
        prop_assert_eq!(&at_the_end.records, &exact.records, "all handed in before the first poll");
        prop_assert_eq!(&at_the_end.fed, &exact.fed);
        let in_a_pattern = finished(&plan, &inputs, &steps);
        prop_assert_eq!(&in_a_pattern.records, &exact.records, "polls in a pattern");
        prop_assert_eq!(&in_a_pattern.fed, &exact.fed);
    }
}
