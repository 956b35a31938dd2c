//! Token buckets: TBF, HTB, policers.

use super::parts;
use crate::case::{Bound, Case, ROUNDING};
use crate::traffic::{Datagram, Flow, LONGEST, merge, ms};

/// Busy and quiet times of 200 ms, for 0.8 seconds.
fn on_and_off(send: impl Fn(u64, u64, u64) -> Vec<Datagram>, busy: u64, quiet: u64) -> Vec<Datagram> {
    merge((0..4).map(|n| match if n % 2 == 0 { busy } else { quiet } {
        0 => vec![],
        // Each at another phase, so that none begins just when a packet departs.
        rate => send(ms(200 * n) + 137_123 * n, ms(200 * (n + 1)), rate),
    }))
}

/// In frames of 1000 bytes, at gaps that vary.
fn alike(flow: u16) -> impl Fn(u64, u64, u64) -> Vec<Datagram> {
    move |from, until, rate| Flow::new(flow).varied(from, until, rate)
}

/// In frames of any length.
fn mixed(flow: u16) -> impl Fn(u64, u64, u64) -> Vec<Datagram> {
    move |from, until, rate| Flow::new(flow).mixed(from, until, rate)
}

fn case(name: &'static str, tc: Vec<&'static str>, traffic: Vec<Datagram>) -> Case {
    parts::case(name, &tc, traffic, &[Bound::Delay(ROUNDING, 0), Bound::Fates(0), Bound::Order(0)])
}

const ROOT: [&str; 2] = [
    "qdisc add dev near root handle 1: htb default 20",
    "class add dev near parent 1: classid 1:1 htb rate 20mbit ceil 20mbit burst 6000b cburst 6000b",
];

/// Where tokens of both suffice at one instant, or at two that differ by what is rounded, the kernel may take another packet
/// first, and what follows is another order with the same shares. They may be a turn of each class and a packet of each apart.
fn shares(case: Case, turns: u64) -> Case {
    Case { bounds: vec![Bound::Service(turns + 2 * u64::from(LONGEST)), Bound::Losses(60)], ..case }
}

fn htb(classes: [&'static str; 2]) -> Vec<&'static str> {
    let leaves = [
        "qdisc add dev near parent 1:10 handle 10: pfifo limit 50",
        "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
        "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10",
    ];
    [&ROOT[..], &classes, &leaves].concat()
}

/// A filter for what arrives.
macro_rules! policer {
    ($filter:literal) => {
        vec![
            "qdisc add dev far handle ffff: ingress",
            concat!("filter add dev far parent ffff: protocol ip prio 1 ", $filter),
        ]
    };
}

/// The cases of shapers.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "tbf",
            vec!["qdisc add dev near root tbf rate 10mbit burst 10000 limit 60000"],
            on_and_off(alike(0), 16_000, 6_000),
        ),
        // The kernel counts credit in whole bytes, and loses a fraction of one with each arrival.
        Case {
            bounds: vec![Bound::Service(3 * u64::from(LONGEST)), Bound::Losses(4)],
            ..case(
                "cbs",
                vec![
                    "qdisc add dev near root handle 1: cbs idleslope 10000 sendslope -9990000 hicredit 0 locredit -1600",
                    "qdisc add dev near parent 1:1 pfifo limit 60",
                ],
                on_and_off(alike(0), 16_000, 6_000),
            )
        },
        Case {
            bounds: vec![Bound::Delay(2_000, 0), Bound::Fates(0), Bound::Order(0)],
            ..case(
                "cbs-least-credit",
                vec![
                    "qdisc add dev near root cbs idleslope 10000 sendslope -9990000 hicredit 5000 locredit -400",
                ],
                on_and_off(alike(0), 14_000, 5_000),
            )
        },
        case(
            "tbf-lengths",
            vec!["qdisc add dev near root tbf rate 10mbit burst 10000 limit 600000"],
            on_and_off(mixed(0), 14_000, 5_000),
        ),
        case(
            "tbf-burst",
            vec!["qdisc add dev near root tbf rate 10mbit burst 40000 limit 60000"],
            on_and_off(alike(0), 25_000, 0),
        ),
        case(
            "tbf-peak",
            vec!["qdisc add dev near root tbf rate 10mbit burst 40000 limit 60000 peakrate 20mbit mtu 3000"],
            on_and_off(alike(0), 25_000, 0),
        ),
        case(
            "tbf-mpu",
            vec!["qdisc add dev near root tbf rate 1mbit burst 2000 limit 200000 mpu 200"],
            merge([
                Flow::new(0).length(60).varied(0, ms(1000), 300),
                Flow::new(1).length(800).varied(0, ms(1000), 600),
            ]),
        ),
        shares(
            case(
                "htb-shares",
                htb([
                    "class add dev near parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
                    "class add dev near parent 1:1 classid 1:20 htb rate 15mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
                ]),
                merge([on_and_off(mixed(0), 16_000, 16_000), on_and_off(mixed(1), 20_000, 20_000)]),
            ),
            4_000,
        ),
        shares(
            case(
                "htb-quanta",
                htb([
                    "class add dev near parent 1:1 classid 1:10 htb rate 2mbit ceil 20mbit burst 6000b cburst 6000b quantum 2000",
                    "class add dev near parent 1:1 classid 1:20 htb rate 2mbit ceil 20mbit burst 6000b cburst 6000b quantum 6000",
                ]),
                merge([on_and_off(mixed(0), 16_000, 16_000), on_and_off(mixed(1), 20_000, 2_000)]),
            ),
            8_000,
        ),
        shares(
            case(
                "htb-priorities",
                htb([
                    "class add dev near parent 1:1 classid 1:10 htb rate 4mbit ceil 20mbit burst 6000b cburst 6000b prio 1 quantum 2000",
                    "class add dev near parent 1:1 classid 1:20 htb rate 4mbit ceil 12mbit burst 6000b cburst 6000b prio 0 quantum 2000",
                ]),
                merge([on_and_off(mixed(0), 18_000, 18_000), on_and_off(mixed(1), 20_000, 2_000)]),
            ),
            4_000,
        ),
        case(
            "policer",
            policer!("u32 match u32 0 0 police rate 10mbit burst 10000 drop flowid :1"),
            on_and_off(alike(0), 16_000, 6_000),
        ),
        // As tc has it without a word of what becomes of the rest.
        case(
            "policer-lengths",
            policer!("u32 match u32 0 0 police rate 10mbit burst 10000 flowid :1"),
            on_and_off(mixed(0), 14_000, 5_000),
        ),
        case(
            "policer-peak",
            policer!(
                "matchall action police rate 10mbit burst 40000 peakrate 20mbit mtu 3000 conform-exceed reclassify"
            ),
            on_and_off(mixed(0), 25_000, 0),
        ),
        case(
            "policer-mpu",
            policer!("matchall action police rate 1mbit burst 2000 mpu 200 conform-exceed drop"),
            merge([
                Flow::new(0).length(60).varied(0, ms(1000), 300),
                Flow::new(1).length(800).varied(0, ms(1000), 600),
            ]),
        ),
        // Nothing waits in the bucket at the near end, which counts frames.
        case(
            "policer-behind-tbf",
            [
                vec!["qdisc add dev near root tbf rate 1gbit burst 100000 limit 1000000"],
                policer!("u32 match u32 0 0 police rate 10mbit burst 10000 drop flowid :1"),
            ]
            .concat(),
            on_and_off(alike(0), 16_000, 6_000),
        ),
    ]
}
