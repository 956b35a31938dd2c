//! What tc's words mean where they say nothing: limits, and what a change leaves. More comes at once than has room, and nothing
//! but the limit drops.

use super::parts;
use crate::case::{Bound, Case, Ours};
use crate::traffic::{Datagram, Flow, merge, ms};

/// A wire of 100 Mbit/s that HTB makes.
const HTB: [&str; 2] = [
    "qdisc add dev near root handle 1: htb default 10",
    "class add dev near parent 1: classid 1:10 htb rate 100mbit ceil 100mbit burst 2000b cburst 2000b",
];

/// A discipline behind it.
macro_rules! behind {
    ($($line:literal),+) => {
        vec![HTB[0], HTB[1], $(concat!("qdisc ", $line)),+]
    };
}

fn case(name: &'static str, tc: Vec<&'static str>, traffic: Vec<Datagram>) -> Case {
    parts::case(name, &tc, traffic, &[Bound::Delay(ROUNDED, 0), Bound::Fates(0), Bound::Order(0)])
}

/// What cutting each packet's time to nanoseconds comes to over the longest queue.
const ROUNDED: u64 = 20;

/// So many frames of 100 bytes at once, and a few later.
fn flood(count: usize) -> Vec<Datagram> {
    let flow = Flow::new(0).length(100);
    merge([flow.burst(137_000, count), flow.burst(ms(1200), 50)])
}

/// Where the order of drops differs: how many there are.
fn counted(case: Case) -> Case {
    Case { bounds: vec![Bound::Losses(0)], ..case }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("default-pfifo", behind!("add dev near parent 1:10 pfifo"), flood(1200)),
        case("default-class", HTB.to_vec(), flood(1200)),
        // No sojourn is too long for them.
        case("default-codel", behind!("add dev near parent 1:10 codel target 5s interval 10s"), flood(1200)),
        case("default-pie", behind!("add dev near parent 1:10 pie target 10s"), flood(1200)),
        counted(case("default-sfq", behind!("add dev near parent 1:10 sfq"), flood(400))),
        counted(case(
            "default-fq_codel",
            behind!("add dev near parent 1:10 fq_codel target 5s interval 10s"),
            flood(10_600),
        )),
        counted(case("default-fq_pie", behind!("add dev near parent 1:10 fq_pie target 10s"), flood(10_600))),
        case(
            "change-codel",
            behind!(
                "add dev near parent 1:10 handle 10: codel limit 300 target 5s interval 10s",
                "change dev near parent 1:10 handle 10: codel ecn"
            ),
            flood(600),
        ),
        counted(case(
            "change-fq_codel",
            behind!(
                "add dev near parent 1:10 handle 10: fq_codel limit 300 target 5s interval 10s",
                "replace dev near parent 1:10 fq_codel quantum 3000"
            ),
            flood(600),
        )),
        case(
            "change-pfifo",
            behind!(
                "add dev near parent 1:10 handle 10: pfifo limit 30",
                "change dev near parent 1:10 handle 10: pfifo limit 70"
            ),
            flood(300),
        ),
        // tc-tbf(8): the limit is no longer in effect once the queue inside is another's.
        case(
            "tbf-pfifo",
            vec![
                "qdisc add dev near root handle 1: tbf rate 10mbit burst 10000 limit 15400",
                "qdisc add dev near parent 1:1 handle 10: pfifo limit 400",
            ],
            flood(600),
        ),
        Case {
            ours: Ours::ExactNetem,
            ..case(
                "tbf-netem",
                vec![
                    "qdisc add dev near root handle 1: tbf rate 10mbit burst 10000 limit 15400",
                    "qdisc add dev near parent 1:1 handle 10: netem delay 20ms limit 400",
                ],
                flood(600),
            )
        },
        // The other way round: what is due goes into the bucket.
        Case {
            ours: Ours::ExactNetem,
            ..case(
                "netem-tbf",
                vec![
                    "qdisc add dev near root handle 1: netem delay 20ms limit 400",
                    "qdisc add dev near parent 1:1 handle 10: tbf rate 10mbit burst 10000 limit 15400",
                ],
                Flow::new(0).length(1003).constant(137_000, ms(50), 100_000),
            )
        },
        // In a class, as tcconfig writes it.
        case(
            "prio-netem-tbf",
            vec![
                "qdisc add dev near root handle 1: prio",
                "qdisc add dev near parent 1:1 handle 2: netem delay 20ms limit 400",
                "qdisc add dev near parent 2:1 handle 20: tbf rate 10mbit burst 10000 limit 15400",
                "filter add dev near parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
            ],
            Flow::new(0).length(1003).constant(137_000, ms(50), 100_000),
        ),
        // What waits for the bucket counts against netem's limit, too.
        Case {
            ours: Ours::ExactNetem,
            ..case(
                "netem-tbf-limit",
                vec![
                    "qdisc add dev near root handle 1: netem delay 5ms limit 30",
                    "qdisc add dev near parent 1:1 handle 10: tbf rate 4mbit burst 3000 limit 400000",
                ],
                Flow::new(0).length(1003).constant(137_000, ms(200), 16_000),
            )
        },
    ]
}
