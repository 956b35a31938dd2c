//! Schedulers behind a bottleneck that HTB makes: it takes a packet from the queue below it when it may send.

use super::parts::{below, keys};
use crate::case::{Bound, Case, Ours, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

fn case(
    name: &'static str,
    tc: &[&'static str],
    ours: Ours,
    traffic: Vec<Datagram>,
    bounds: &[Bound],
) -> Case {
    Case { ours, ..below(name, tc, traffic, bounds) }
}

/// Three flows, the second of which sends in the middle only.
fn three() -> Vec<Datagram> {
    merge([
        Flow::new(0).varied(137_000, ms(1500), 7_000),
        Flow::new(1).varied(ms(500) + 91_000, ms(1000), 9_000),
        Flow::new(2).varied(53_000, ms(1500), 2_000),
    ])
}

/// The cases of schedulers.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    let turns = [Service(3_000), Losses(6)];
    vec![
        case(
            "prio",
            &[
                "qdisc add dev near parent 1:10 handle 20: prio",
                "qdisc add dev near parent 20:1 handle 21: pfifo limit 30",
                "qdisc add dev near parent 20:2 handle 22: pfifo limit 30",
                "qdisc add dev near parent 20:3 handle 23: pfifo limit 30",
            ],
            Ours::SameWords,
            merge([
                Flow::new(0).class(0x10).varied(137_000, ms(1500), 3_000),
                Flow::new(1).class(0x00).varied(91_000, ms(1500), 6_000),
                Flow::new(2).class(0x08).varied(53_000, ms(1500), 4_000),
            ]),
            &exact,
        ),
        case(
            "drr",
            &[
                "qdisc add dev near parent 1:10 handle 20: drr",
                "class add dev near parent 20: classid 20:1 drr quantum 1500",
                "class add dev near parent 20: classid 20:2 drr quantum 3000",
                "class add dev near parent 20: classid 20:3 drr quantum 1500",
                "qdisc add dev near parent 20:1 handle 21: pfifo limit 30",
                "qdisc add dev near parent 20:2 handle 22: pfifo limit 30",
                "qdisc add dev near parent 20:3 handle 23: pfifo limit 30",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 20:1",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4001 0xffff flowid 20:2",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4002 0xffff flowid 20:3",
            ],
            // 1479 bytes of IP packets are 1500 of frames of 1000 bytes.
            keys!(
                "scheduler = { type = \"drr\", quantum = \"1479 bytes\", classes = [{ name = \"a\", match = { source-port = 4000 }, queue = \"30 packets\" }, { name = \"b\", weight = 2, match = { source-port = 4001 }, queue = \"30 packets\" }, { name = \"c\", queue = \"30 packets\" }] }"
            ),
            three(),
            &exact,
        ),
        case(
            "qfq",
            &[
                "qdisc add dev near parent 1:10 handle 20: qfq",
                "class add dev near parent 20: classid 20:1 qfq weight 1 maxpkt 1000",
                "class add dev near parent 20: classid 20:2 qfq weight 2 maxpkt 1000",
                "class add dev near parent 20: classid 20:3 qfq weight 4 maxpkt 1000",
                "qdisc add dev near parent 20:1 handle 21: pfifo limit 30",
                "qdisc add dev near parent 20:2 handle 22: pfifo limit 30",
                "qdisc add dev near parent 20:3 handle 23: pfifo limit 30",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 20:1",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4001 0xffff flowid 20:2",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4002 0xffff flowid 20:3",
            ],
            keys!(
                "scheduler = { type = \"qfq\", classes = [{ name = \"a\", match = { source-port = 4000 }, queue = \"30 packets\", longest = \"986 bytes\" }, { name = \"b\", weight = 2, match = { source-port = 4001 }, queue = \"30 packets\", longest = \"986 bytes\" }, { name = \"c\", weight = 4, queue = \"30 packets\", longest = \"986 bytes\" }] }"
            ),
            merge([
                Flow::new(0).varied(137_000, ms(1500), 5_000),
                Flow::new(1).varied(91_000, ms(1500), 6_000),
                Flow::new(2).varied(ms(500) + 53_000, ms(1200), 8_000),
            ]),
            &turns,
        ),
        // One class has the default quantum, 1514 bytes, and packets of one flow have no class.
        case(
            "drr-tc",
            &[
                "qdisc add dev near parent 1:10 handle 20: drr",
                "class add dev near parent 20: classid 20:1 drr",
                "class add dev near parent 20: classid 20:2 drr quantum 4kb",
                "class change dev near parent 20: classid 20:2 drr quantum 3028",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 20:1",
                "filter add dev near parent 20: protocol ip prio 2 u32 match ip sport 4001 0xffff flowid 20:2",
            ],
            Ours::SameWords,
            three(),
            &turns,
        ),
        case(
            "qfq-tc",
            &[
                "qdisc add dev near parent 1:10 handle 20: qfq",
                "class add dev near parent 20: classid 20:1 qfq",
                "class add dev near parent 20: classid 20:2 qfq weight 3 maxpkt 1000",
                "filter add dev near parent 20: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 20:1",
                "filter add dev near parent 20: protocol ip prio 2 u32 match ip sport 4001 0xffff flowid 20:2",
            ],
            Ours::SameWords,
            three(),
            &turns,
        ),
        case(
            "sfq",
            &["qdisc add dev near parent 1:10 handle 20: sfq quantum 1500 limit 60"],
            keys!("scheduler = { type = \"sfq\", quantum = \"1479 bytes\", bound = \"60 packets\" }"),
            three(),
            &[Service(0), Losses(0)],
        ),
        // CoDel has nothing to do here: what is lost is lost to the limit. The kernel's hash has a random key: with
        // 1024 queues, two of the three flows share one in 3 of 1000 guests.
        case(
            "fq_codel-limit",
            &[
                "qdisc add dev near parent 1:10 handle 20: fq_codel flows 65536 limit 100 quantum 1500 target 1s interval 2s noecn",
            ],
            keys!(
                "scheduler = { type = \"fq_codel\", quantum = \"1479 bytes\", bound = \"100 packets\", target = \"1s\", interval = \"2s\", ecn = false }"
            ),
            three(),
            &exact,
        ),
        case(
            "fq_codel",
            &[
                "qdisc add dev near parent 1:10 handle 20: fq_codel flows 65536 limit 10000 quantum 1500 target 5ms interval 100ms noecn",
            ],
            keys!(
                "scheduler = { type = \"fq_codel\", quantum = \"1479 bytes\", bound = \"10000 packets\", ecn = false }"
            ),
            three(),
            &[Service(3_000), Losses(6)],
        ),
        case(
            "fq_codel-ecn",
            &[
                "qdisc add dev near parent 1:10 handle 20: fq_codel flows 65536 limit 10000 quantum 1500 target 5ms interval 100ms ecn",
            ],
            keys!("scheduler = { type = \"fq_codel\", quantum = \"1479 bytes\", bound = \"10000 packets\" }"),
            merge([
                Flow::new(0).class(2).varied(137_000, ms(1500), 7_000),
                Flow::new(1).class(2).varied(ms(500) + 91_000, ms(1000), 9_000),
                Flow::new(2).varied(53_000, ms(1500), 2_000),
            ]),
            &[Delay(ROUNDING, 0), Fates(0), MarkCount(6)],
        ),
        // Packets of any length, and the same words for both: what the quantum counts makes the difference.
        case(
            "fq_codel-lengths",
            &[
                "qdisc add dev near parent 1:10 handle 20: fq_codel flows 65536 limit 10000 target 1s interval 2s noecn",
            ],
            Ours::SameWords,
            merge([
                Flow::new(0).mixed(137_000, ms(1000), 7_000),
                Flow::new(1).mixed(ms(300) + 91_000, ms(1000), 9_000),
                Flow::new(2).length(100).varied(53_000, ms(1000), 2_000),
            ]),
            &[Service(3_000), Fates(0)],
        ),
        Case {
            steady_from: ms(2000),
            ..case(
                "fq_pie",
                &["qdisc add dev near parent 1:10 handle 20: fq_pie limit 1000 target 15ms tupdate 20ms"],
                keys!(
                    "scheduler = { type = \"fq_pie\", bound = \"1000 packets\", update = \"30ms\", ecn = false, \
                     mean-packet = \"1500 bytes\", derandomize = true, cap-drop = true, high-delay-boost = \"250ms\" }"
                ),
                merge([
                    Flow::new(0).varied(137_000, ms(40_000), 7_000),
                    Flow::new(1).varied(91_000, ms(40_000), 5_500),
                    Flow::new(2).varied(53_000, ms(40_000), 1_000),
                ]),
                &[LostShare, MeanDelay],
            )
        },
    ]
}
