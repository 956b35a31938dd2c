//! DualPI2 behind a bottleneck that HTB makes. Linux has it since 6.17, and tc since then, too.

use super::parts::behind;
use crate::case::{Bound, Case, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

/// Can be marked, for low latency.
const LOW: Flow = Flow::new(0).class(1);
/// For the classic queue.
const CLASSIC: Flow = Flow::new(1);

fn case(name: &'static str, queue: &'static str, traffic: Vec<Datagram>, bounds: &[Bound]) -> Case {
    Case { steady_from: ms(1000), needs: Some("dualpi2"), ..behind(name, queue, traffic, bounds) }
}

/// Both at once, and then both at these many kilobits a second: from the first packet to the last both queues have some.
fn both(low: u64, classic: u64) -> Vec<Datagram> {
    merge([
        LOW.burst(137_000, 30),
        CLASSIC.burst(137_000, 30),
        LOW.varied(ms(1), ms(800), low),
        CLASSIC.varied(ms(1), ms(900), classic),
    ])
}

/// More than the link takes for a while, less, and more again.
fn overload() -> Vec<Datagram> {
    merge([
        LOW.varied(137_000, ms(700), 13_100),
        LOW.varied(ms(700), ms(1600), 4_000),
        LOW.varied(ms(1600), ms(1900), 12_000),
    ])
}

/// More than the link takes and less, as often as there are batches, and no whole number of updates from one time to the next.
fn waves(flow: Flow) -> Vec<Datagram> {
    merge((0..20).flat_map(|n| {
        let from = ms(210 * n);
        [
            flow.varied(from + 137_000, from + ms(60), 20_000),
            flow.varied(from + ms(60), from + ms(210), 4_000),
        ]
    }))
}

/// The cases of DualPI2. Where the target is far away the probability stays 0, and nothing is left to chance.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    vec![
        case(
            "dualpi2-step",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 200 target 2s step_thresh 5ms",
            overload(),
            &[Delay(ROUNDING, 0), Fates(0), Order(0), Marks(1)],
        ),
        case(
            "dualpi2-turns",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000 target 2s step_thresh 2s classic_protection 50",
            both(7_000, 7_000),
            &[Delay(ROUNDING, 0), Fates(0), Order(0), Marks(0)],
        ),
        case(
            "dualpi2-protection",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000 target 2s step_thresh 2s",
            both(11_000, 3_000),
            &[Service(3_000), Fates(0), Marks(0)],
        ),
        case(
            "dualpi2-drops",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000",
            CLASSIC.varied(137_000, ms(10_000), 12_000),
            &[LostShare, MeanDelay],
        ),
        // The step is so far away that all marks are those of the coupling.
        case(
            "dualpi2-coupled",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000 step_thresh 5ms",
            merge([LOW.varied(137_000, ms(10_000), 3_000), CLASSIC.varied(91_000, ms(10_000), 7_500)]),
            &[LostShare, MarkedShare, MeanDelay],
        ),
        Case {
            steady_from: 0,
            ..case(
                "dualpi2-marks",
                "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000 target 30ms beta 6",
                waves(CLASSIC.class(2)),
                &[Delay(ROUNDING, 0), Fates(0), MarkedShare],
            )
        },
        Case {
            steady_from: 0,
            ..case(
                "dualpi2-gains",
                "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000 target 30ms tupdate 10ms alpha 0.25 beta 3 step_thresh 1s coupling_factor 3",
                waves(LOW),
                &[Delay(ROUNDING, 0), Fates(0), MarkedShare],
            )
        },
        case(
            "dualpi2-overload",
            "qdisc add dev near parent 1:10 handle 10: dualpi2 limit 1000",
            LOW.varied(137_000, ms(10_000), 14_000),
            &[LostShare, MarkedShare, MeanDelay],
        ),
    ]
}
