//! What cases have in common.

use super::explanations;
use crate::case::{Bound, Case, Ours};
use crate::traffic::{Datagram, Flow, merge, ms};

/// A bottleneck of 10 Mbit/s that HTB makes: it takes a packet from the queue below it when it may send.
const BOTTLENECK: [&str; 2] = [
    "qdisc add dev near root handle 1: htb default 10",
    "class add dev near parent 1: classid 1:10 htb rate 10mbit ceil 10mbit burst 2000b cburst 2000b",
];

/// What ours is below the bottleneck, as keys.
macro_rules! keys {
    ($keys:expr) => {
        $crate::case::Ours::Keys(concat!(
            "overhead = \"frame\"\nscheduler = { type = \"htb\", classes = [{ name = \"all\", rate = \"10mbit\", ",
            "burst = \"2000 bytes\", cburst = \"2000 bytes\", ",
            $keys,
            " }] }",
        ))
    };
}

/// PIE below the bottleneck as the kernel has it, at the interval that 20 ms are there.
macro_rules! pie {
    ($more:literal) => {
        $crate::cases::parts::keys!(concat!(
            "queue = { type = \"pie\", bound = \"1000 packets\", update = \"30ms\", mean-packet = \"1500 bytes\", ",
            "derandomize = true, cap-drop = true, high-delay-boost = \"250ms\"",
            $more,
            " }",
        ))
    };
}

pub(super) use {keys, pie};

/// The same words for both, from the first packet on.
pub(super) fn case(
    name: &'static str,
    tc: &[&'static str],
    traffic: Vec<Datagram>,
    bounds: &[Bound],
) -> Case {
    Case {
        name,
        tc: tc.to_vec(),
        ours: Ours::SameWords,
        traffic,
        bounds: bounds.to_vec(),
        steady_from: 0,
        needs: None,
        explanation: explanations::of(name),
    }
}

/// The same below the bottleneck.
pub(super) fn below(
    name: &'static str,
    tc: &[&'static str],
    traffic: Vec<Datagram>,
    bounds: &[Bound],
) -> Case {
    case(name, &[&BOTTLENECK[..], tc].concat(), traffic, bounds)
}

/// The same with one discipline below the bottleneck.
pub(super) fn behind(
    name: &'static str,
    queue: &'static str,
    traffic: Vec<Datagram>,
    bounds: &[Bound],
) -> Case {
    below(name, &[queue], traffic, bounds)
}

/// More than the bottleneck lets through for a second and a half, less for half a second, and more again.
pub(super) fn overload(flow: Flow) -> Vec<Datagram> {
    merge([
        flow.varied(137_000, ms(1500), 13_100),
        flow.varied(ms(1500), ms(2000), 4_000),
        flow.varied(ms(2000), ms(2600), 12_000),
    ])
}
