//! Disciplines against flows that do not respond to losses, behind a bottleneck that HTB makes.

use super::parts::{behind, keys, overload};
use crate::case::{Bound, Case, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

/// One flow of these many kilobits a second, numbered 0, and eight of a sixteenth of the link each.
fn one_and_eight(kilobits: u64, until: u64) -> Vec<Datagram> {
    let small = (1..=8).map(|n| Flow::new(n).varied(137_000 + ms(u64::from(n)), until, 625));
    merge(small.chain([Flow::new(0).varied(91_000, until, kilobits)]))
}

/// The cases.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    let long = |case: Case| Case { steady_from: ms(2000), ..case };
    vec![
        // The average follows so slowly that it stays below `min`.
        behind(
            "choke-below",
            "qdisc add dev near parent 1:10 handle 10: choke limit 40 min 30 max 40 burst 5000 bandwidth 10mbit",
            overload(Flow::new(0)),
            &exact,
        ),
        long(behind(
            "choke",
            "qdisc add dev near parent 1:10 handle 10: choke limit 200 min 15 max 60 burst 30 bandwidth 10mbit",
            one_and_eight(8_000, ms(10_000)),
            &[LostShare, LostOfFirst],
        )),
        // The same, with thresholds 0.36 packets lower.
        long(Case {
            ours: keys!(
                "queue = { type = \"choke\", bound = \"200 packets\", min = \"14435 bytes\", max = \"58805 bytes\", probability = 0.02, weight = 0.03125, typical-packet = \"1000 bytes\", longest-packet = \"986 bytes\", ecn = false }"
            ),
            ..behind(
                "choke-average",
                "qdisc add dev near parent 1:10 handle 10: choke limit 200 min 15 max 60 burst 30 bandwidth 10mbit",
                one_and_eight(8_000, ms(10_000)),
                &[LostShare, LostOfFirst, MeanDelay],
            )
        }),
        long(behind(
            "choke-alone",
            "qdisc add dev near parent 1:10 handle 10: choke limit 200 min 15 max 60 burst 30 bandwidth 10mbit",
            Flow::new(0).varied(137_000, ms(10_000), 12_000),
            &[LostShare],
        )),
        // So many flows that most of what is lost or marked is RED's.
        long(behind(
            "choke-ecn",
            "qdisc add dev near parent 1:10 handle 10: choke limit 400 min 15 max 60 burst 30 probability 0.3 bandwidth 10mbit ecn",
            merge(
                (0..12)
                    .map(|n| Flow::new(n).class(2).varied(137_000 + 41_000 * u64::from(n), ms(10_000), 900)),
            ),
            &[LostShare, MarkedShare, MeanDelay],
        )),
        // Below any threshold of a bin, the bound alone counts.
        behind(
            "sfb-below",
            "qdisc add dev near parent 1:10 handle 10: sfb limit 40 max 100 target 90",
            overload(Flow::new(0)),
            &exact,
        ),
        // A bin holds 25 packets, whatever its probability: a flow has no more, and others pass.
        behind(
            "sfb-bins",
            "qdisc add dev near parent 1:10 handle 10: sfb limit 200 max 25 target 100 increment 0 decrement 0",
            one_and_eight(8_000, ms(2000)),
            &[Delay(ROUNDING, 3), Fates(0), Order(0)],
        ),
        long(behind(
            "sfb",
            "qdisc add dev near parent 1:10 handle 10: sfb limit 200 max 60 target 20 increment 0.005 decrement 0.0005",
            one_and_eight(8_000, ms(10_000)),
            &[LostShare, LostOfFirst, MeanDelay],
        )),
        long(behind(
            "sfb-ecn",
            "qdisc add dev near parent 1:10 handle 10: sfb limit 400 max 300 target 20 increment 0.0005 decrement 0.0005",
            merge([
                Flow::new(0).class(2).varied(91_000, ms(10_000), 10_600),
                Flow::new(1).varied(137_000, ms(10_000), 400),
            ]),
            &[LostShare, MarkedShare, MeanDelay],
        )),
        // All probabilities rise at once to 1, and then so many packets pass in each tick of the kernel, 10 ms.
        long(behind(
            "sfb-penalty",
            "qdisc add dev near parent 1:10 handle 10: sfb limit 400 max 300 target 2 increment 1 decrement 0 penalty_rate 400 penalty_burst 50",
            Flow::new(0).varied(137_000, ms(10_000), 12_000),
            &[LostShare],
        )),
        // No flow sends so much that it is heavy.
        behind(
            "hhf-below",
            "qdisc add dev near parent 1:10 handle 10: hhf limit 40 admit_bytes 100000000",
            overload(Flow::new(0)),
            &exact,
        ),
        // One is, from its 21st packet on, and stays so: the counters are never cleared, and it is never forgotten.
        behind(
            "hhf",
            "qdisc add dev near parent 1:10 handle 10: hhf limit 100 admit_bytes 20000 reset_timeout 100s evict_timeout 100s",
            merge([Flow::new(0).burst(137_000, 60), late(one_and_eight(8_000, ms(220)))]),
            &[Delay(ROUNDING, 3), Fates(0), Order(0)],
        ),
        // All but one are heavy soon, and the one has five times their share.
        behind(
            "hhf-weight",
            "qdisc add dev near parent 1:10 handle 10: hhf limit 100 quantum 3000 non_hh_weight 5 admit_bytes 20000 reset_timeout 100s evict_timeout 100s",
            merge([Flow::new(0).burst(137_000, 60), late(one_and_eight(14_000, ms(230)))]),
            &[Delay(ROUNDING, 3), Fates(0), Order(0)],
        ),
        // Counters are cleared and flows forgotten, in the kernel at whole ticks of 10 ms: flow 0 comes in waves, and is heavy anew
        // from a while after each begins; no other is.
        long(behind(
            "hhf-times",
            "qdisc add dev near parent 1:10 handle 10: hhf limit 100 admit_bytes 30000 reset_timeout 150ms evict_timeout 50ms",
            merge([one_and_eight(10, ms(10_000)), waves()]),
            &[LostShare, LostOfFirst, MeanDelay],
        )),
    ]
}

/// Of flow 0: one and a half times what the link takes, for 60 ms of each 200.
fn waves() -> Vec<Datagram> {
    merge((0..50).map(|n| Flow::new(0).varied(ms(200 * n) + 219_000, ms(200 * n + 60), 15_000)))
}

/// A tenth of a second later.
fn late(datagrams: Vec<Datagram>) -> Vec<Datagram> {
    datagrams.into_iter().map(|datagram| Datagram { at: datagram.at + ms(100), ..datagram }).collect()
}
