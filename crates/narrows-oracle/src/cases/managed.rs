//! Queue management behind a bottleneck that HTB makes: it takes a packet from the queue below it when it may send.

use super::parts::{behind, below, keys, overload, pie};
use crate::case::{Bound, Case, ROUNDING};
use crate::codel::Parameters;
use crate::traffic::{Flow, merge, ms};

/// A fifth more than the link takes, for three seconds, of which the last two and a half count.
fn steady(case: Case) -> Case {
    Case { traffic: Flow::new(0).varied(137_000, ms(3000), 12_000), steady_from: ms(500), ..case }
}

/// A fifth more than the link takes, for ten seconds, of which the last eight count: a controller swings.
fn long(case: Case) -> Case {
    Case { traffic: Flow::new(0).varied(137_000, ms(10_000), 12_000), steady_from: ms(2000), ..case }
}

/// A little more than the link takes, of packets that can be marked, for three seconds: it is marked until PIE, whose probability
/// goes on rising as nobody responds, drops it.
fn slight(case: Case) -> Case {
    Case { traffic: Flow::new(0).class(2).varied(137_000, ms(3000), 10_800), ..case }
}

/// A tenth of a second with twice what the link takes, and as long with next to nothing, for three seconds.
fn waves(case: Case) -> Case {
    let flow = Flow::new(0).class(2);
    let parts = (0..15).flat_map(|n| {
        let from = ms(200 * n);
        [
            flow.varied(from + 137_000, from + ms(70), 15_000),
            flow.varied(from + ms(70), from + ms(200), 6_000),
        ]
    });
    Case { traffic: merge(parts), steady_from: ms(400), ..case }
}

/// The cases of queue management.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let plain = Flow::new(0);
    let ect = Flow::new(0).class(2);
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    vec![
        behind("pfifo", "qdisc add dev near parent 1:10 handle 10: pfifo limit 40", overload(plain), &exact),
        behind(
            "bfifo",
            "qdisc add dev near parent 1:10 handle 10: bfifo limit 40000",
            overload(plain),
            &exact,
        ),
        behind(
            "pfifo-head-drop",
            "qdisc add dev near parent 1:10 handle 10: pfifo_head_drop limit 40",
            overload(plain),
            &exact,
        ),
        steady(behind(
            "red",
            "qdisc add dev near parent 1:10 handle 10: red limit 200000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.3 bandwidth 10mbit",
            vec![],
            &[LostShare, MeanDelay],
        )),
        waves(behind(
            "red-ecn",
            "qdisc add dev near parent 1:10 handle 10: red limit 200000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.3 bandwidth 10mbit ecn",
            vec![],
            &[Fates(0), MarkedShare, MeanDelay],
        )),
        long(behind(
            "red-adaptive",
            "qdisc add dev near parent 1:10 handle 10: red adaptive limit 200000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.3 bandwidth 10mbit",
            vec![],
            &[LostShare, MeanDelay],
        )),
        // Of a flow that can be marked and one that cannot.
        Case {
            traffic: merge([
                Flow::new(0).class(2).varied(137_000, ms(1500), 7_000),
                Flow::new(1).varied(137_000, ms(1500), 4_000),
            ]),
            ..behind(
                "red-nodrop",
                "qdisc add dev near parent 1:10 handle 10: red limit 2000000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.3 bandwidth 10mbit ecn nodrop",
                vec![],
                &[Fates(0), MarkedShare],
            )
        },
        steady(Case {
            traffic: Flow::new(0).class(2).varied(137_000, ms(3000), 12_000),
            ours: keys!(
                "queue = { type = \"red\", bound = \"197200 bytes\", min = \"14790 bytes\", max = \"44370 bytes\", probability = 0.05, weight = 0.0625, typical-packet = \"1000 bytes\", longest-packet = \"986 bytes\", ecn = true, harddrop = true }"
            ),
            ..behind(
                "red-harddrop",
                "qdisc add dev near parent 1:10 handle 10: red limit 200000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.05 bandwidth 10mbit ecn harddrop",
                vec![],
                &[LostShare, MeanDelay],
            )
        }),
        // So small a probability that the average gets to the upper threshold, beyond which RED drops all and gentle RED not.
        Case {
            ours: keys!(
                "queue = { type = \"red\", bound = \"197200 bytes\", min = \"14790 bytes\", max = \"44370 bytes\", probability = 0.02, weight = 0.0625, typical-packet = \"1000 bytes\", longest-packet = \"986 bytes\", ecn = false }"
            ),
            ..steady(below(
                "gred",
                &[
                    "qdisc add dev near parent 1:10 handle 10: gred setup vqs 1 default 0",
                    "qdisc change dev near parent 1:10 handle 10: gred vq 0 limit 200000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02 bandwidth 10mbit",
                ],
                vec![],
                &[LostShare, MeanDelay],
            ))
        },
        // The thresholds are so near one another that nothing is left to chance.
        Case {
            ours: keys!(
                "queue = { type = \"red\", bound = \"200 packets\", min = \"19720 bytes\", max = \"19721 bytes\", probability = 0.5, weight = 0.125, typical-packet = \"1000 bytes\", longest-packet = \"986 bytes\", ecn = false }"
            ),
            ..behind(
                "red-average",
                "qdisc add dev near parent 1:10 handle 10: red limit 200000 min 20000 max 20001 avpkt 1000 burst 25 probability 0.5 bandwidth 10mbit",
                overload(plain),
                &[Delay(ROUNDING, 30), Fates(30), Losses(2), Service(1_000)],
            )
        },
        // An interval of whole packets' times would be over just when one departs.
        behind(
            "codel",
            "qdisc add dev near parent 1:10 handle 10: codel limit 1000 target 5ms interval 97ms noecn",
            overload(plain),
            &[
                Delay(5_000_000, 0),
                Losses(6),
                KernelsCodel(Parameters { target: 5_000, interval: 97_000, ecn: false }, 0),
            ],
        ),
        behind(
            "codel-ecn",
            "qdisc add dev near parent 1:10 handle 10: codel limit 1000 target 10ms interval 50ms ecn",
            overload(ect),
            &[
                Delay(ROUNDING, 0),
                Fates(0),
                MarkCount(12),
                KernelsCodel(Parameters { target: 10_000, interval: 50_000, ecn: true }, 0),
            ],
        ),
        Case {
            ours: pie!(", ecn = false"),
            ..long(behind(
                "pie",
                "qdisc add dev near parent 1:10 handle 10: pie limit 1000 target 15ms tupdate 20ms noecn",
                vec![],
                &[LostShare, MeanDelay],
            ))
        },
        Case {
            ours: pie!(""),
            ..slight(behind(
                "pie-ecn",
                "qdisc add dev near parent 1:10 handle 10: pie limit 1000 target 15ms tupdate 20ms ecn",
                vec![],
                &[LostShare, MarkedShare, MeanDelay],
            ))
        },
    ]
}
