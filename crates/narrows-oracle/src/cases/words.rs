//! Words of tc that change what becomes of a packet: where packets are dropped, what marks them, and what they count.

use super::parts::{behind, below, case, keys, overload, pie};
use crate::case::{Bound, Case, ROUNDING};
use crate::codel::Parameters;
use crate::traffic::{Flow, merge, ms};

/// The cases of words.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let plain = Flow::new(0);
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    vec![
        // A second flow comes while the first is the longest, and is never the longest itself.
        Case {
            ours: keys!(
                "scheduler = { type = \"sfq\", quantum = \"1479 bytes\", bound = \"60 packets\", drop = \"head\" }"
            ),
            ..behind(
                "sfq-headdrop",
                "qdisc add dev near parent 1:10 handle 20: sfq quantum 1500 limit 60 headdrop",
                merge([overload(plain), Flow::new(1).varied(ms(300) + 91_000, ms(2200), 1_000)]),
                &exact,
            )
        },
        // A flow has no more than 127 packets, whatever the limit.
        behind(
            "sfq-depth",
            "qdisc add dev near parent 1:10 handle 20: sfq limit 500",
            overload(plain),
            &exact,
        ),
        behind(
            "sfq-depth-headdrop",
            "qdisc add dev near parent 1:10 handle 20: sfq limit 500 depth 20 headdrop",
            overload(plain),
            &exact,
        ),
        // All flows have one source, and so one queue.
        below(
            "sfq-flow",
            &[
                "qdisc add dev near parent 1:10 handle 20: sfq limit 500",
                "filter add dev near parent 20: protocol all prio 1 handle 1 flow hash keys src divisor 256",
            ],
            merge([overload(plain), Flow::new(1).varied(ms(300) + 91_000, ms(2200), 1_000)]),
            &exact,
        ),
        Case {
            steady_from: ms(500),
            ..behind(
                "sfq-red",
                "qdisc add dev near parent 1:10 handle 20: sfq limit 500 redflowlimit 400000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.3",
                plain.varied(137_000, ms(3000), 12_000),
                &[LostShare, MeanDelay],
            )
        },
        Case {
            steady_from: ms(2000),
            ours: pie!(", ecn = false, byte-mode = true"),
            ..behind(
                "pie-bytemode",
                "qdisc add dev near parent 1:10 handle 10: pie limit 1000 target 15ms tupdate 20ms bytemode",
                merge([
                    plain.varied(137_000, ms(10_000), 9_000),
                    Flow::new(1).length(200).varied(91_000, ms(10_000), 3_000),
                ]),
                &[LostShare, MeanDelay],
            )
        },
        Case {
            steady_from: ms(2000),
            ours: pie!(", ecn = false, departure-rate = true"),
            ..behind(
                "pie-rate",
                "qdisc add dev near parent 1:10 handle 10: pie limit 1000 target 15ms tupdate 20ms dq_rate_estimator",
                plain.varied(137_000, ms(10_000), 12_000),
                &[LostShare, MeanDelay],
            )
        },
        // Frames of more than 1000 bytes do not fit in the bucket.
        case(
            "tbf-small",
            &["qdisc add dev near root tbf rate 10mbit burst 1000 limit 600000"],
            plain.mixed(137_000, ms(1000), 9_000),
            &exact,
        ),
        case(
            "htb-low-ceil",
            &[
                "qdisc add dev near root handle 1: htb default 10",
                "class add dev near parent 1: classid 1:10 htb rate 20mbit ceil 10mbit burst 4000b cburst 2000b",
                "qdisc add dev near parent 1:10 handle 10: pfifo limit 50",
            ],
            overload(plain),
            &exact,
        ),
        // tc's thresholds: 20,000 and 60,000 bytes.
        Case {
            steady_from: ms(500),
            ..behind(
                "red-thresholds",
                "qdisc add dev near parent 1:10 handle 10: red limit 240000 avpkt 1000 probability 0.3",
                plain.varied(137_000, ms(3000), 12_000),
                &[LostShare, MeanDelay],
            )
        },
        // The control law has nothing to do: what is marked has waited for more than 5 ms.
        behind(
            "codel-ce",
            "qdisc add dev near parent 1:10 handle 10: codel limit 1000 target 5s interval 10s ce_threshold 5ms",
            overload(Flow::new(0).class(2)),
            &[Delay(ROUNDING, 0), Fates(0), Order(0), Marks(2)],
        ),
        // In one queue, so that nothing else makes a difference: ECT(1) only.
        behind(
            "fq_codel-ce",
            "qdisc add dev near parent 1:10 handle 10: fq_codel flows 1 target 5s interval 10s ce_threshold 5ms ce_threshold_selector 0x1/0x3",
            merge([
                Flow::new(0).class(1).varied(137_000, ms(1500), 7_000),
                Flow::new(1).class(2).varied(91_000, ms(1500), 6_000),
            ]),
            &[Delay(ROUNDING, 0), Fates(0), Order(0), Marks(2)],
        ),
        behind(
            "codel-equal",
            "qdisc add dev near parent 1:10 handle 10: codel limit 1000 target 41ms interval 41ms noecn",
            overload(plain),
            &[
                Delay(5_000_000, 0),
                Losses(6),
                KernelsCodel(Parameters { target: 41_000, interval: 41_000, ecn: false }, 0),
            ],
        ),
        case(
            "stab-atm",
            &[
                "qdisc add dev near root handle 1: stab overhead 20 linklayer atm tbf rate 10mbit burst 10000 limit 2000000",
            ],
            plain.mixed(137_000, ms(1000), 9_000),
            &exact,
        ),
        case(
            "stab-mpu",
            &[
                "qdisc add dev near root handle 1: stab overhead 25 mpu 128 htb default 10",
                "class add dev near parent 1: classid 1:10 htb rate 2mbit ceil 2mbit burst 5000b cburst 5000b",
            ],
            merge([
                Flow::new(0).length(60).varied(137_000, ms(1000), 500),
                Flow::new(1).mixed(91_000, ms(1000), 1_000),
            ]),
            &exact,
        ),
    ]
}
