//! CAKE at the root, where it shapes, and below a bottleneck that HTB makes.

use super::acks::acknowledgements;
use super::parts::{case, overload};
use crate::case::{Bound, Case, Ours, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

/// Half as much again as the link takes, for as long as queue management has nothing to do, and a pause; twice.
fn short(send: impl Fn(u64, u64) -> Vec<Datagram>) -> Vec<Datagram> {
    merge([send(137_000, ms(150)), send(ms(400) + 91_000, ms(550))])
}

/// Three flows, the second of which sends in the middle only.
fn three(ecn: u8) -> Vec<Datagram> {
    merge([
        Flow::new(0).class(ecn).varied(137_000, ms(1500), 7_000),
        Flow::new(1).class(ecn).varied(ms(500) + 91_000, ms(1000), 9_000),
        Flow::new(2).class(ecn).varied(53_000, ms(1500), 2_000),
    ])
}

/// Of these code points, each with more than its part.
fn points(points: &[(u8, u64)]) -> Vec<Datagram> {
    let flow = |(&(dscp, kilobits), number): (&(u8, u64), u16)| {
        Flow::new(number).class(dscp << 2).varied(53_000 + u64::from(number) * 41_000, ms(1500), kilobits)
    };
    merge(points.iter().zip(0..).map(flow))
}

/// Acknowledgements of one connection or two, about three times what the link takes: its rate has a whole number of
/// nanoseconds for each byte, as the kernel drops fractions of them. Two share a queue: the kernel draws turns of queues of
/// 300 bytes from 299 and 300 at random.
fn acks<const N: usize>() -> Vec<Datagram> {
    let each: [_; N] =
        std::array::from_fn(|flow| acknowledgements(flow as u16, 137_000 - 46_000 * flow as u64, ms(1500)));
    merge(each)
}

/// The cases of CAKE.
pub(super) fn cases() -> Vec<Case> {
    use Bound::*;
    let exact = [Delay(ROUNDING, 0), Fates(0), Order(0)];
    let mixed = |from, until| Flow::new(0).mixed(from, until, 15_000);
    vec![
        case(
            "cake-shaper",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort flowblind rtt 2s"],
            short(|from, until| Flow::new(0).varied(from, until, 15_000)),
            &exact,
        ),
        case(
            "cake-lengths",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort rtt 2s docsis"],
            short(mixed),
            &exact,
        ),
        case(
            "cake-ethernet",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort rtt 2s ethernet ether-vlan"],
            short(mixed),
            &exact,
        ),
        case(
            "cake-atm",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort rtt 2s bridged-llcsnap"],
            short(mixed),
            &exact,
        ),
        case(
            "cake-ptm",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort rtt 2s pppoe-ptm"],
            short(mixed),
            &exact,
        ),
        case(
            "cake-cobalt",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort"],
            overload(Flow::new(0)),
            &exact,
        ),
        case(
            "cake-cobalt-ecn",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort regional"],
            overload(Flow::new(0).class(2)),
            &[Delay(ROUNDING, 0), Fates(0), Marks(0)],
        ),
        case(
            "cake-ingress",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort ingress"],
            overload(Flow::new(0)),
            &exact,
        ),
        case(
            "cake-flows",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort flows"],
            three(0),
            &exact,
        ),
        case(
            "cake-hosts",
            &["qdisc add dev near root cake bandwidth 10mbit besteffort rtt 2s"],
            three(0),
            &exact,
        ),
        case(
            "cake-tins",
            &["qdisc add dev near root cake bandwidth 10mbit diffserv4 memlimit 32Mb"],
            points(&[(8, 4_000), (0, 8_000), (34, 6_000), (46, 4_000)]),
            &exact,
        ),
        case(
            "cake-precedence",
            &["qdisc add dev near root cake bandwidth 10mbit precedence memlimit 32Mb"],
            points(&[(0, 8_000), (16, 6_000), (40, 4_000)]),
            &exact,
        ),
        case(
            "cake-diffserv8",
            &["qdisc add dev near root cake bandwidth 10mbit diffserv8 memlimit 32Mb"],
            points(&[(1, 3_000), (10, 4_000), (0, 5_000), (20, 4_000), (48, 2_000)]),
            &exact,
        ),
        case(
            "cake-acks",
            &["qdisc add dev near root cake bandwidth 320kbit besteffort flows ack-filter"],
            acks::<1>(),
            &exact,
        ),
        case(
            "cake-acks-aggressive",
            &["qdisc add dev near root cake bandwidth 320kbit besteffort flows ack-filter-aggressive rtt 2s"],
            acks::<1>(),
            &exact,
        ),
        case(
            "cake-acks-ingress",
            &["qdisc add dev near root cake bandwidth 320kbit besteffort flows ack-filter ingress rtt 2s"],
            acks::<1>(),
            &exact,
        ),
        // Two connections share a queue.
        case(
            "cake-acks-flowblind",
            &[
                "qdisc add dev near root cake bandwidth 640kbit besteffort flowblind ack-filter-aggressive rtt 2s",
            ],
            acks::<2>(),
            &exact,
        ),
        case(
            "cake-filters",
            &[
                "qdisc add dev near root handle 1: cake bandwidth 10mbit diffserv3 flows memlimit 32Mb",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4002 0xffff action skbedit priority 1:3",
                "filter add dev near parent 1: protocol ip prio 2 u32 match ip sport 4000 0xfffe classid 0:5",
                "filter add dev near parent 1: protocol ip prio 3 u32 match ip sport 4003 0xffff action drop",
            ],
            merge([
                three(0),
                Flow::new(3).varied(71_000, ms(1500), 2_000),
                Flow::new(4).varied(31_000, ms(1500), 4_000),
            ]),
            &exact,
        ),
        case(
            "cake-filter-hosts",
            &[
                "qdisc add dev near root handle 1: cake bandwidth 10mbit besteffort rtt 2s",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xfffe classid 7:0",
            ],
            three(0),
            &exact,
        ),
        // The kernel's buffers of frames of 1000 bytes take 2304 bytes: 88 of them fit.
        Case {
            ours: Ours::Keys(
                "scheduler = { type = \"cake\", bandwidth = \"10mbit\", tins = \"besteffort\", bound = \"88 packets\" }",
            ),
            steady_from: ms(2000),
            ..case(
                "cake-blue",
                &["qdisc add dev near root cake bandwidth 10mbit besteffort memlimit 200kb"],
                Flow::new(0).varied(137_000, ms(10_000), 13_000),
                &[LostShare, MeanDelay],
            )
        },
        case(
            "cake-unlimited",
            &[
                "qdisc add dev near root handle 1: htb default 10",
                "class add dev near parent 1: classid 1:10 htb rate 10mbit ceil 10mbit burst 2000b cburst 2000b",
                "qdisc add dev near parent 1:10 handle 20: cake",
            ],
            points(&[(8, 4_000), (0, 8_000), (46, 6_000)]),
            &exact,
        ),
    ]
}
