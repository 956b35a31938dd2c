//! `ets` and `fq`.

use super::parts::{below, case};
use crate::case::{Bound, Case, Ours, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

/// Flows that ask for low delay, for high throughput, and for nothing, at these rates.
fn by_service(kilobits: [u64; 3]) -> Vec<Datagram> {
    merge([
        Flow::new(0).class(0x10).varied(137_000, ms(1500), kilobits[0]),
        Flow::new(1).class(0x08).varied(91_000, ms(1500), kilobits[1]),
        Flow::new(2).class(0x00).varied(53_000, ms(1500), kilobits[2]),
    ])
}

/// Three flows, the second of which sends in the middle only.
fn three() -> Vec<Datagram> {
    merge([
        Flow::new(0).varied(137_000, ms(1500), 7_000),
        Flow::new(1).varied(ms(500) + 91_000, ms(1000), 9_000),
        Flow::new(2).varied(53_000, ms(1500), 2_000),
    ])
}

pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    let paced = [Delay(TIMER, 0), Fates(0), Order(0)];
    vec![
        Case {
            // 2958 and 1479 bytes of IP packets are 3000 and 1500 of frames of 1000 bytes.
            ours: Ours::Keys(
                "overhead = \"frame\"\nscheduler = { type = \"htb\", classes = [{ name = \"all\", rate = \"10mbit\", \
                 burst = \"2000 bytes\", cburst = \"2000 bytes\", scheduler = { type = \"ets\", strict = 1, classes = [\
                 { name = \"a\", match = { dscp = 4 }, queue = \"30 packets\" }, \
                 { name = \"b\", match = { dscp = 2 }, quantum = \"2958 bytes\", queue = \"30 packets\" }, \
                 { name = \"c\", quantum = \"1479 bytes\", queue = \"30 packets\" }] } }] }",
            ),
            ..below("ets", ETS, by_service([3_000, 6_000, 4_000]), &exact)
        },
        below("ets-tc", ETS, by_service([3_000, 6_000, 4_000]), &[Service(3_000), Losses(6)]),
        below("fq", &["qdisc add dev near parent 1:10 handle 20: fq"], three(), &exact),
        below(
            "fq-limits",
            &[
                "qdisc add dev near parent 1:10 handle 20: fq limit 60 flow_limit 40 quantum 1514 initial_quantum 1514",
            ],
            three(),
            &exact,
        ),
        below(
            "fq-lengths",
            &["qdisc add dev near parent 1:10 handle 20: fq"],
            merge([
                Flow::new(0).mixed(137_000, ms(1000), 7_000),
                Flow::new(1).mixed(ms(300) + 91_000, ms(1000), 9_000),
                Flow::new(2).length(100).varied(53_000, ms(1000), 2_000),
            ]),
            &exact,
        ),
        below(
            "fq-bands",
            &["qdisc add dev near parent 1:10 handle 20: fq flow_limit 1000 limit 300"],
            by_service([9_000, 6_000, 4_000]),
            &exact,
        ),
        below(
            "fq-ce",
            &["qdisc add dev near parent 1:10 handle 20: fq ce_threshold 5ms"],
            merge([
                Flow::new(0).class(2).varied(137_000, ms(1500), 7_000),
                Flow::new(1).class(1).varied(ms(500) + 91_000, ms(1000), 9_000),
                Flow::new(2).varied(53_000, ms(1500), 2_000),
            ]),
            &[Delay(ROUNDING, 0), Fates(0), Order(0), Marks(0)],
        ),
        case("fq-maxrate", &["qdisc add dev near root fq maxrate 4mbit timer_slack 1ns"], three(), &paced),
        case(
            "fq-low-rate",
            &["qdisc add dev near root fq maxrate 400kbit flow_limit 20 timer_slack 1ns"],
            merge([
                Flow::new(0).varied(137_000, ms(1500), 700),
                Flow::new(1).varied(ms(500) + 91_000, ms(1000), 900),
                Flow::new(2).varied(53_000, ms(1500), 200),
            ]),
            &paced,
        ),
    ]
}

/// How far the kernel's timer and ours may be apart.
const TIMER: u64 = 100;

const ETS: &[&str] = &[
    "qdisc add dev near parent 1:10 handle 20: ets bands 3 strict 1 quanta 3000 1500 priomap 2 2 1 2 2 2 0",
    "qdisc add dev near parent 20:1 handle 21: pfifo limit 30",
    "qdisc add dev near parent 20:2 handle 22: pfifo limit 30",
    "qdisc add dev near parent 20:3 handle 23: pfifo limit 30",
];
