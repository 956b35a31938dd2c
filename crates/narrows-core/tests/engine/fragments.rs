//! Packets that links cut: the pieces make up the packet, flipped bits and all.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::{Mtu, MtuPolicy, Probability, Protocol, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Record, Run};
use crate::plan::{LinkPlan, PacketPlan, Plan};

const HEADER: u32 = 20;

/// One bit of each packet is flipped at each of two links; then links with these MTUs follow.
fn deliver(seed: u64, mtus: &[u32], lengths: &[u32]) -> BTreeMap<u64, Vec<Record>> {
    let noisy = |name| LinkPlan { corruption: Probability::ONE, ..LinkPlan::new(name) };
    let mut links = vec![noisy("noise 1"), noisy("noise 2")];
    links.extend(mtus.iter().enumerate().map(|(n, &bytes)| {
        let mtu = Some(Mtu { bytes, policy: MtuPolicy::Fragment });
        LinkPlan { mtu, ..LinkPlan::new(&format!("narrow {n}")) }
    }));
    let mut run = Run::new(&Plan::chain(seed, links));
    for &length in lengths {
        run.hand_in(Time::ZERO, PacketPlan { port: 0, length, network: Protocol::Ipv4 });
    }
    run.poll(END, usize::MAX);
    let mut packets: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    run.records.into_iter().for_each(|record| packets.entry(record.body).or_default().push(record));
    packets
}

proptest! {
    #[test]
    fn the_pieces_make_up_the_packet(
        seed: u64,
        mtus in vec(28u32..1_500, 1..4),
        lengths in vec(HEADER + 1..3_000, 1..20),
    ) {
        let whole = deliver(seed, &[], &lengths);
        for (body, mut pieces) in deliver(seed, &mtus, &lengths) {
            let whole = &whole[&body][0];
            let least = *mtus.iter().min().expect("there is one");
            pieces.sort_by_key(|piece| piece.fragment.map_or(0, |place| place.offset));
            let (mut next, mut flipped) = (0, BTreeSet::new());
            for (n, piece) in pieces.iter().enumerate() {
                prop_assert!(piece.length <= least && piece.delivered());
                let last = n + 1 == pieces.len();
                match piece.fragment {
                    Some(place) => prop_assert_eq!((u32::from(place.offset), place.more), (next, !last)),
                    None => prop_assert!(whole.length <= least && last),
                }
                // A bit of the header is the same bit in each piece, one of the payload is in one piece only.
                for &bit in &piece.flips {
                    let payload = bit >= 8 * HEADER;
                    let fresh = flipped.insert(if payload { bit + 8 * next } else { bit });
                    prop_assert!(fresh || !payload || whole.flips[0] == whole.flips[1]);
                }
                next += piece.length - HEADER;
            }
            prop_assert_eq!(next, whole.length - HEADER);
            prop_assert_eq!(flipped, whole.flips.iter().copied().collect::<BTreeSet<_>>());
        }
    }
}

/// Who may not cut a packet answers; a packet in a shape that no IPv4 packet has is not cut either.
#[test]
fn what_may_not_be_cut_is_dropped() {
    let mtu = Some(Mtu { bytes: 1_000, policy: MtuPolicy::Fragment });
    let plan = Plan::chain(1, vec![LinkPlan { mtu, ..LinkPlan::new("l") }]);
    let mut run = Run::new(&plan);
    for (network, length) in [
        (Protocol::Ipv4DontFragment, 1_001),
        (Protocol::Ipv6, 1_001),
        (Protocol::Other, 1_001),
        (Protocol::Ipv4, 70_000),
        (Protocol::Ipv6, 1_000),
    ] {
        run.hand_in(Time::ZERO, PacketPlan { port: 0, length, network });
    }
    run.poll(END, usize::MAX);
    let delivered: Vec<_> = run.records.iter().filter(|r| r.delivered()).map(|r| r.body).collect();
    assert_eq!((delivered, run.records.len()), (vec![4], 5));
}
