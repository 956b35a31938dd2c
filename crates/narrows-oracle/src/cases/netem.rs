//! NetEm: the kernel's single queue, which ours is in exact mode.

use super::parts;
use crate::case::{Bound, Case, Ours, ROUNDING};
use crate::traffic::{Flow, ms};

fn case(name: &'static str, tc: &'static str, bounds: &[Bound]) -> Case {
    let traffic = Flow::new(0).length(500).varied(0, ms(1000), 8_000);
    Case { ours: Ours::ExactNetem, ..parts::case(name, &[tc], traffic, bounds) }
}

/// Below the bottleneck, with more than it lets through.
fn within(name: &'static str, tc: &[&'static str], bounds: &[Bound]) -> Case {
    Case { ours: Ours::ExactNetem, ..parts::below(name, tc, parts::overload(Flow::new(0)), bounds) }
}

/// The cases of NetEm.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    vec![
        Case { tc: vec![], ours: Ours::Keys(""), ..case("cable", "", &exact) },
        case("netem-delay", "qdisc add dev near root netem delay 20ms", &exact),
        Case {
            ours: Ours::SameWords,
            ..case("netem-delay-own", "qdisc add dev near root netem delay 20ms", &exact)
        },
        case("netem-limit", "qdisc add dev near root netem delay 50ms limit 60", &exact),
        Case {
            traffic: Flow::new(0).mixed(0, ms(1000), 9_000),
            ..case("netem-rate", "qdisc add dev near root netem delay 10ms rate 8mbit limit 50", &exact)
        },
        Case {
            traffic: Flow::new(0).mixed(0, ms(1000), 6_000),
            ..case("netem-cells", "qdisc add dev near root netem rate 8mbit 20 48 5 limit 50", &exact)
        },
        case("netem-gap", "qdisc add dev near root netem delay 10ms reorder 100% gap 5", &exact),
        // What the limit counts has changed three times.
        case(
            "netem-limit-twins",
            "qdisc add dev near root netem delay 50ms duplicate 100% limit 101",
            &[Delay(ROUNDING, 0), Fates(0), Order(0), TwiceShare],
        ),
        within(
            "netem-limit-child",
            &[
                "qdisc add dev near parent 1:10 handle 20: netem delay 5ms limit 60",
                "qdisc add dev near parent 20:1 handle 30: prio",
            ],
            &exact,
        ),
        within(
            "netem-limit-early",
            &["qdisc add dev near parent 1:10 handle 20: netem delay 5ms reorder 100% gap 4 limit 60"],
            &exact,
        ),
        // The kernel reckons each slot from when it looked at the clock, so all that follow are late by those looks.
        case(
            "netem-slot",
            "qdisc add dev near root netem slot 7168us 7168us packets 9 limit 300",
            &[Delay(500, 0), Fates(0), Order(0)],
        ),
        case("netem-loss", "qdisc add dev near root netem loss 10%", &[LostShare]),
        case("netem-loss-correlated", "qdisc add dev near root netem loss 20% 40%", &[LostShare]),
        case("netem-loss-state", "qdisc add dev near root netem loss state 3% 30% 20% 60% 1%", &[LostShare]),
        case("netem-loss-gemodel", "qdisc add dev near root netem loss gemodel 3% 20% 70% 1%", &[LostShare]),
        case("netem-duplicate", "qdisc add dev near root netem duplicate 20%", &[TwiceShare, Fates(0)]),
        case("netem-corrupt", "qdisc add dev near root netem corrupt 15%", &[LostShare]),
        case(
            "netem-reorder",
            "qdisc add dev near root netem delay 20ms reorder 40% 50% gap 4",
            &[OvertakenShare, DelayDistribution],
        ),
        case(
            "netem-uniform",
            "qdisc add dev near root netem delay 30ms 10ms 60%",
            &[DelayDistribution, OvertakenShare, Fates(0)],
        ),
        case(
            "netem-normal",
            "qdisc add dev near root netem delay 30ms 5ms distribution normal",
            &[DelayDistribution, OvertakenShare, Fates(0)],
        ),
        case(
            "netem-pareto",
            "qdisc add dev near root netem delay 30ms 5ms distribution pareto",
            &[DelayDistribution, OvertakenShare, Fates(0)],
        ),
        case(
            "netem-paretonormal",
            "qdisc add dev near root netem delay 30ms 5ms distribution paretonormal",
            &[DelayDistribution, OvertakenShare, Fates(0)],
        ),
        Case {
            ours: Ours::SameWords,
            ..case(
                "netem-normal-own",
                "qdisc add dev near root netem delay 30ms 5ms distribution normal",
                &[DelayDistribution, OvertakenShare, Fates(0)],
            )
        },
    ]
}
