//! Hierarchical fair service curves. Rates are divisors of a second's ticks in the kernel, whose inverse slopes are then
//! exact.

use super::parts;
use crate::case::{Bound, Case};
use crate::traffic::{Datagram, Flow, merge, ms};

/// The kernel has ticks of 64 ns: the start of a curve, and the time at which a class fits or is eligible, are each one
/// tick early at most, and narrows rounds up to a nanosecond.
const TICKS: u64 = 2 * 64 + 2;

/// The kernel cuts the work at which the curves of two backlogged periods cross to whole bytes. A class loses up to a
/// byte, 4 µs at 2 Mbit/s, each time it becomes active, until a curve starts anew.
const CROSSINGS: u64 = 20_000;

fn crossing(case: Case) -> Case {
    Case { bounds: vec![Bound::Delay(CROSSINGS, 0), Bound::Fates(0), Bound::Order(0)], ..case }
}

fn case(name: &'static str, classes: &[&'static str], traffic: Vec<Datagram>) -> Case {
    const ROOT: &str = "qdisc add dev near root handle 1: hfsc default 20";
    let bounds = [Bound::Delay(TICKS, 0), Bound::Fates(0), Bound::Order(0)];
    parts::case(name, &[&[ROOT], classes].concat(), traffic, &bounds)
}

/// All that the classes 1:10 and 1:20 have in common: a class of 20 Mbit/s above them, queues, a filter.
fn below_limit(leaves: [&'static str; 2]) -> Vec<&'static str> {
    let all = "class add dev near parent 1: classid 1:1 hfsc ls m2 20mbit ul m2 20mbit";
    [&[all], &leaves[..], &FLOWS].concat()
}

const FLOWS: [&str; 3] = [
    "qdisc add dev near parent 1:10 handle 10: pfifo limit 50",
    "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
    "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10",
];

/// Busy and quiet times of a flow. Each begins at another phase: within one tick, what fits or is eligible first would be
/// another class in the kernel.
fn on_and_off(flow: Flow, busy: u64, quiet: u64) -> Vec<Datagram> {
    merge((0..4).map(|n| match if n % 2 == 0 { busy } else { quiet } {
        0 => vec![],
        rate => flow.varied(ms(200 * n) + 137_123 * n + phase(flow), ms(200 * (n + 1)), rate),
    }))
}

fn steady(flow: Flow, rate: u64) -> Vec<Datagram> {
    flow.varied(phase(flow), ms(800), rate)
}

fn phase(flow: Flow) -> u64 {
    u64::from(flow.number) * 91_117
}

/// The cases of service curves.
pub(super) fn cases() -> Vec<Case> {
    let (first, second) = (Flow::new(0), Flow::new(1));
    let busy = || merge([on_and_off(first, 16_000, 16_000), on_and_off(second, 20_000, 20_000)]);
    let short = steady(first.length(250), 1_500);
    vec![
        case(
            "hfsc-limit",
            &[
                "class add dev near parent 1: classid 1:20 hfsc sc m2 10mbit ul m2 10mbit",
                "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
            ],
            on_and_off(first, 16_000, 6_000),
        ),
        case(
            "hfsc-limit-pieces",
            &[
                "class add dev near parent 1: classid 1:20 hfsc ls m2 10mbit ul m1 20mbit d 20ms m2 5mbit",
                "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
            ],
            on_and_off(first, 25_000, 0),
        ),
        case(
            "hfsc-shares",
            &below_limit([
                "class add dev near parent 1:1 classid 1:10 hfsc ls m2 4mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m2 16mbit",
            ]),
            busy(),
        ),
        // The one is idle at times, and comes back.
        case(
            "hfsc-return",
            &below_limit([
                "class add dev near parent 1:1 classid 1:10 hfsc ls m1 16mbit d 10ms m2 4mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m1 4mbit d 10ms m2 16mbit",
            ]),
            merge([on_and_off(first, 16_000, 500), steady(second, 20_000)]),
        ),
        case(
            "hfsc-concave",
            &below_limit([
                "class add dev near parent 1:1 classid 1:10 hfsc rt m1 8mbit d 1ms m2 2mbit ls m2 2mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m2 16mbit",
            ]),
            merge([short.clone(), steady(second, 24_000)]),
        ),
        case(
            "hfsc-convex",
            &below_limit([
                "class add dev near parent 1:1 classid 1:10 hfsc sc m1 0bit d 10ms m2 4mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc sc m2 10mbit",
            ]),
            merge([on_and_off(first, 8_000, 1_000), steady(second, 24_000)]),
        ),
        // A guarantee alone, and by the delay of a packet.
        crossing(case(
            "hfsc-guarantee",
            &below_limit([
                "class add dev near parent 1:1 classid 1:10 hfsc rt umax 250b dmax 500us rate 2mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m2 20mbit",
            ]),
            merge([short, steady(second, 24_000)]),
        )),
        case(
            "hfsc-levels",
            &[
                "class add dev near parent 1: classid 1:1 hfsc ls m2 20mbit ul m2 20mbit",
                "class add dev near parent 1:1 classid 1:2 hfsc ls m2 10mbit ul m2 8mbit",
                "class add dev near parent 1:2 classid 1:10 hfsc ls m2 5mbit",
                "class add dev near parent 1:2 classid 1:30 hfsc ls m2 5mbit ul m2 2mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m2 10mbit",
                "qdisc add dev near parent 1:10 handle 10: pfifo limit 50",
                "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
                "qdisc add dev near parent 1:30 handle 30: pfifo limit 50",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10",
                "filter add dev near parent 1: protocol ip prio 2 u32 match ip sport 4002 0xffff flowid 1:30",
            ],
            merge([
                on_and_off(first, 16_000, 2_000),
                on_and_off(second, 20_000, 20_000),
                steady(Flow::new(2), 4_000),
            ]),
        ),
        // tc-hfsc(7), realtime criterion: the convex class has sent ahead when the concave one becomes active.
        Case {
            tc: vec![
                "qdisc add dev near root handle 1: htb default 10",
                "class add dev near parent 1: classid 1:10 htb rate 10mbit ceil 10mbit burst 2000b cburst 2000b",
                "qdisc add dev near parent 1:10 handle 2: hfsc default 20",
                "class add dev near parent 2: classid 2:10 hfsc sc m1 2mbit d 100ms m2 8mbit",
                "class add dev near parent 2: classid 2:20 hfsc sc m1 8mbit d 100ms m2 2mbit",
                "qdisc add dev near parent 2:10 handle 10: pfifo limit 50",
                "qdisc add dev near parent 2:20 handle 20: pfifo limit 50",
                "filter add dev near parent 2: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 2:10",
            ],
            ..case("hfsc-ahead", &[], merge([steady(first, 12_000), second.varied(ms(400), ms(800), 10_000)]))
        },
        // tc-hfsc(7), linksharing criterion: a class becomes active when all others are in their second pieces.
        case(
            "hfsc-subtrees",
            &[
                "class add dev near parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit",
                "class add dev near parent 1:1 classid 1:2 hfsc ls m1 8mbit d 100ms m2 2mbit",
                "class add dev near parent 1:2 classid 1:10 hfsc ls m1 5mbit d 100ms m2 1mbit",
                "class add dev near parent 1:2 classid 1:30 hfsc ls m1 2mbit d 100ms m2 1mbit",
                "class add dev near parent 1:1 classid 1:20 hfsc ls m1 2mbit d 100ms m2 8mbit",
                "qdisc add dev near parent 1:10 handle 10: pfifo limit 50",
                "qdisc add dev near parent 1:20 handle 20: pfifo limit 50",
                "qdisc add dev near parent 1:30 handle 30: pfifo limit 50",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10",
                "filter add dev near parent 1: protocol ip prio 2 u32 match ip sport 4002 0xffff flowid 1:30",
            ],
            merge([
                first.varied(ms(400) + 31_337, ms(800), 6_000),
                steady(second, 12_000),
                steady(Flow::new(2), 4_000),
            ]),
        ),
        // Packets of the second flow have no class.
        Case {
            tc: vec![
                "qdisc add dev near root handle 1: hfsc",
                "class add dev near parent 1: classid 1:10 hfsc sc m2 10mbit ul m2 10mbit",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10",
            ],
            ..case(
                "hfsc-unclassified",
                &[],
                merge([on_and_off(first, 8_000, 8_000), on_and_off(second, 2_000, 0)]),
            )
        },
    ]
}
