//! Filters: which class a packet is in, and what becomes of it. Each class has a rate of its own, so that a packet in another
//! class has another delay. At these rates a byte takes whole nanoseconds: the kernel drops the fraction of each packet.

use super::parts;
use crate::case::{Bound, Case, ROUNDING};
use crate::traffic::{Datagram, Flow, merge, ms};

fn case(name: &'static str, filters: &[&'static str], traffic: Vec<Datagram>) -> Case {
    const ROOT: [&str; 8] = [
        "qdisc add dev near root handle 1: htb default 30",
        "class add dev near parent 1: classid 1:10 htb rate 8mbit burst 3000b cburst 3000b",
        "class add dev near parent 1: classid 1:20 htb rate 5mbit burst 3000b cburst 3000b",
        "class add dev near parent 1: classid 1:30 htb rate 4mbit burst 3000b cburst 3000b",
        "qdisc add dev near parent 1:10 handle 10: pfifo limit 30",
        "qdisc add dev near parent 1:20 handle 20: pfifo limit 30",
        "qdisc add dev near parent 1:30 handle 30: pfifo limit 30",
        "class add dev near parent 1: classid 1:1 htb rate 20mbit",
    ];
    parts::case(name, &[&ROOT[..], filters].concat(), traffic, &[Bound::Delay(ROUNDING, 0), Bound::Fates(0)])
}

/// Four flows in frames of 1000 bytes; of each, the code points differ from those of the one before.
fn flows() -> Vec<Datagram> {
    merge((0..4).map(|number| {
        let flow = Flow::new(number).class([0, 0xb8, 0x28, 0x12][usize::from(number)]);
        flow.varied(137_123 * u64::from(number), ms(300), 5_000)
    }))
}

/// Frames of any length.
fn lengths() -> Vec<Datagram> {
    merge((0..2).map(|number| Flow::new(number).mixed(137_123 * u64::from(number), ms(300), 5_000)))
}

/// A filter at the root of `near`.
macro_rules! filter {
    ($filter:literal) => {
        concat!("filter add dev near parent 1: ", $filter)
    };
}

/// The cases of filters.
pub(super) fn cases() -> Vec<Case> {
    vec![
        // A table by the low bits of the source port, and ports behind the header that the link skips.
        case(
            "filter-tables",
            &[
                filter!("protocol ip prio 1 handle 2: u32 divisor 16"),
                filter!("protocol ip prio 1 u32 ht 2:0: match udp src 4000 0xffff flowid 1:10"),
                filter!("protocol ip prio 1 u32 ht 2:1: match u16 4001 0xffff at nexthdr+0 flowid 1:20"),
                // In the bucket of other ports.
                filter!("protocol ip prio 1 u32 ht 2:5: match u16 4002 0xffff at 20 flowid 1:10"),
                filter!(
                    "protocol ip prio 1 u32 match ip protocol 17 0xff hashkey mask 0x000f0000 at 20 link 2: offset at 0 mask 0f00 shift 6"
                ),
                filter!("protocol ip prio 2 u32 match ip sport 4003 0xffff flowid 1:20"),
            ],
            flows(),
        ),
        // Without a link, the next header is the IP header: this is the length.
        case(
            "filter-next-header",
            &[filter!(
                "protocol ip prio 1 u32 match udp dst 986 0xffff match ip sport 4000 0xffff flowid 1:10"
            )],
            flows(),
        ),
        case(
            "filter-lengths",
            &[
                filter!(
                    "protocol ip prio 1 u32 match u8 0x05 0x0f at 0 match u16 0x0000 0xfe00 at 2 flowid 1:10"
                ),
                filter!("protocol ip prio 2 u32 match u32 0x0fa10000 0xffff0000 at 20 flowid 1:20"),
            ],
            lengths(),
        ),
        // The one without a priority comes last of those with one, and before an earlier one without.
        case(
            "filter-order",
            &[
                filter!("protocol ip u32 match ip sport 4000 0xfffc flowid 1:20"),
                filter!("protocol ip prio 9 u32 match ip sport 4000 0xffff flowid 1:10"),
                filter!("protocol ip u32 match ip sport 4001 0xffff flowid 1:10"),
                filter!("protocol ipv6 prio 1 u32 match u32 0 0 flowid 1:10"),
                filter!("protocol arp prio 2 matchall flowid 1:10"),
            ],
            flows(),
        ),
        case(
            "filter-flower",
            &[
                filter!(
                    "protocol ip prio 1 flower ip_proto udp src_port 4000-4001 ip_tos 0xb8/0xfc classid 1:10"
                ),
                filter!("protocol ip prio 2 flower ip_tos 0x28 classid 1:20"),
                filter!("protocol ip prio 3 flower ip_proto tcp classid 1:10"),
                filter!("protocol all prio 4 matchall classid 1:20"),
            ],
            flows(),
        ),
        case(
            "filter-actions",
            &[
                filter!("protocol ip prio 1 u32 match ip sport 4000 0xffff action drop"),
                filter!("protocol ip prio 2 u32 match ip sport 4001 0xffff action continue flowid 1:10"),
                filter!("protocol ip prio 3 u32 match ip sport 4002 0xffff action pass"),
                filter!("protocol ip prio 4 matchall flowid 1:20"),
            ],
            flows(),
        ),
        // What no filter of a chain matches is for the default class, not for the next filter of chain 0.
        case(
            "filter-chains",
            &[
                filter!("chain 1 protocol ip prio 1 u32 match ip sport 4000 0xffff flowid 1:10"),
                filter!("chain 1 protocol ip prio 2 u32 match ip sport 4001 0xffff action goto chain 2"),
                filter!("chain 2 protocol ip prio 1 matchall flowid 1:20"),
                filter!("protocol ip prio 1 u32 match ip sport 4000 0xfffe action goto chain 1"),
                filter!("protocol ip prio 2 flower ip_proto udp src_port 4002 action goto chain 1"),
                filter!("protocol ip prio 3 matchall flowid 1:20"),
            ],
            flows(),
        ),
        case(
            "filter-comparisons",
            &[
                filter!(
                    "protocol ip prio 1 basic match cmp(u16 at 0 layer transport gt 4000) and not u32(u16 4003 0xffff at 20) flowid 1:10"
                ),
                filter!(
                    "protocol ip prio 2 basic match cmp(u8 at 1 layer network mask 0xfc gt 0x10) or meta(pkt_len gt 3000) flowid 1:20"
                ),
            ],
            flows(),
        ),
        case(
            "filter-frame-lengths",
            &[
                filter!("protocol ip prio 1 basic match meta(pkt_len gt 1000) flowid 1:10"),
                filter!("protocol ip prio 2 basic match cmp(u16 at 2 layer 1 lt 300) flowid 1:20"),
            ],
            lengths(),
        ),
        // Marks that the hook gives.
        case(
            "egress-marks",
            &[
                filter!("protocol ip prio 1 handle 1 fw flowid 1:10"),
                filter!("protocol ip prio 1 handle 2 fw flowid 1:20"),
                "qdisc add dev near clsact",
                "filter add dev near egress protocol ip prio 1 u32 match ip sport 4000 0xfffe action skbedit mark 1 continue",
                "filter add dev near egress protocol ip prio 2 u32 match ip sport 4001 0xffff action skbedit mark 2",
                "filter add dev near egress protocol ip prio 3 u32 match ip sport 4002 0xffff action skbedit mark 2 pipe action drop",
            ],
            flows(),
        ),
        // What no filter of an inner class matches is for the default class, not for the next filter.
        case(
            "filter-inner",
            &[
                "class add dev near parent 1:1 classid 1:2 htb rate 10mbit burst 3000b cburst 3000b",
                "qdisc add dev near parent 1:2 handle 2: pfifo limit 30",
                filter!("protocol ip prio 1 u32 match ip sport 4000 0xfffe flowid 1:1"),
                filter!("protocol ip prio 2 u32 match u32 0 0 flowid 1:20"),
                "filter add dev near parent 1:1 protocol ip prio 1 u32 match ip sport 4001 0xffff flowid 1:2",
            ],
            flows(),
        ),
        case(
            "policer-leaving",
            &[
                filter!(
                    "protocol ip prio 1 u32 match ip sport 4001 0xffff police rate 3mbit burst 10000 drop flowid 1:10"
                ),
                filter!("protocol ip prio 2 u32 match ip sport 4000 0xfffe flowid 1:20"),
            ],
            flows(),
        ),
        // Each packet costs the same; none is a fragment.
        Case {
            tc: vec![
                "qdisc add dev far handle ffff: ingress",
                "filter add dev far parent ffff: protocol ip prio 1 u32 match ip sport 4000 0xfffe action police pkts_rate 400 pkts_burst 20 conform-exceed drop/ok",
                "filter add dev far parent ffff: protocol ip prio 2 flower ip_flags frag action drop",
                "filter add dev far parent ffff: protocol ip prio 3 flower ip_proto udp src_port 4002 ip_flags nofrag action drop",
                "filter add dev far parent ffff: protocol 802.1Q prio 4 flower vlan_id 100 action drop",
            ],
            ..case("policer-packets", &[], flows())
        },
        // Through another device first: its discipline, and then the class of the filter.
        Case {
            tc: vec![
                "qdisc add dev near root handle 1: prio",
                "qdisc add dev ifb0 root handle 2: tbf rate 4mbit burst 3000 limit 30000",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xfffe flowid 1:1 action mirred egress redirect dev ifb0",
                "filter add dev near parent 1: protocol ip prio 2 u32 match ip sport 4002 0xffff action drop",
            ],
            ..case("redirect-leaving", &[], flows())
        },
        Case {
            tc: vec![
                "qdisc add dev near clsact",
                "qdisc add dev ifb0 root handle 2: tbf rate 8mbit burst 3000 limit 30000",
                "filter add dev near egress protocol all prio 1 matchall action mirred egress redirect dev ifb0",
            ],
            ..case("redirect-leaving-hook", &[], flows())
        },
        Case {
            tc: vec![
                "qdisc add dev near root handle 1: htb default 30",
                "class add dev near parent 1: classid 1:10 htb rate 4mbit burst 3000b cburst 3000b",
                "class add dev near parent 1: classid 1:30 htb rate 8mbit burst 3000b cburst 3000b",
                "qdisc add dev near parent 1:30 handle 30: pfifo limit 30",
                "qdisc add dev ifb0 root netem delay 10ms limit 1000",
                "filter add dev near parent 1: protocol ip prio 1 u32 match ip sport 4000 0xfffe flowid 1:10 action mirred egress redirect dev ifb0",
            ],
            ..case("redirect-leaving-class", &[], flows())
        },
        // The TTL of all packets is 64. What a filter writes is not seen by the one that chooses the class.
        Case {
            bounds: vec![Bound::Delay(ROUNDING, 0), Bound::Fates(0), Bound::Marks(0)],
            ..case(
                "filter-edits",
                &[
                    filter!(
                        "protocol ip prio 1 u32 match ip sport 4003 0xffff flowid 1:10 action skbmod ecn"
                    ),
                    filter!("protocol ip prio 2 u32 match u8 0x3f 0xff at 8 flowid 1:10"),
                    filter!("protocol ip prio 3 u32 match ip sport 4001 0xffff flowid 1:20"),
                    filter!("protocol ip prio 4 flower ip_proto udp ip_ttl 64 src_port 4000 classid 1:20"),
                ],
                flows(),
            )
        },
        Case {
            tc: vec![
                "qdisc add dev far handle ffff: ingress",
                "filter add dev far parent ffff: protocol ip prio 1 u32 match ip sport 4001 0xffff police rate 3mbit burst 10000 drop flowid :1",
            ],
            ..case("policer-some", &[], flows())
        },
        // The first that decides counts; what a policer passes may meet the next one.
        Case {
            tc: vec![
                "qdisc add dev far clsact",
                "filter add dev far ingress protocol ip prio 1 u32 match ip sport 4001 0xffff action drop",
                "filter add dev far ingress protocol ip prio 2 u32 match ip sport 4002 0xffff action police rate 3mbit burst 10000 conform-exceed drop/continue",
                "filter add dev far ingress protocol ip prio 3 u32 match ip sport 4003 0xffff action pass",
                "filter add dev far ingress protocol ip prio 4 matchall action police rate 8mbit burst 10000 conform-exceed drop",
            ],
            ..case("ingress-filters", &[], flows())
        },
        Case {
            tc: vec![
                "qdisc add dev far clsact",
                "filter add dev far ingress chain 5 protocol ip prio 1 u32 match ip sport 4001 0xffff action drop",
                "filter add dev far ingress protocol ip prio 1 u32 match ip sport 4000 0xfffe action police rate 3mbit burst 10000 conform-exceed drop/pipe action goto chain 5",
                "filter add dev far ingress protocol ip prio 2 u32 match ip sport 4002 0xffff action pipe action jump 3 action drop action pass",
                "filter add dev far ingress protocol ip prio 3 u32 match ip sport 4003 0xffff action reclassify",
                "filter add dev far ingress protocol ip prio 4 u32 match ip sport 4000 0xfffe action drop",
            ],
            ..case("ingress-chains", &[], flows())
        },
        // Before the root's filters, by the priority that the hook gives.
        case(
            "egress-priority",
            &[
                filter!("protocol ip prio 1 u32 match u32 0 0 flowid 1:20"),
                "qdisc add dev near clsact",
                "filter add dev near egress protocol ip prio 1 u32 match ip sport 4001 0xffff action skbedit priority 1:10",
                "filter add dev near egress protocol ip prio 2 u32 match ip sport 4002 0xffff action drop",
            ],
            flows(),
        ),
        case(
            "filter-missing-class",
            &[
                filter!("protocol ip prio 1 u32 match ip sport 4001 0xffff flowid 1:99"),
                filter!("protocol ip prio 2 u32 match ip sport 4002 0xffff flowid 1:20"),
            ],
            flows(),
        ),
    ]
}
