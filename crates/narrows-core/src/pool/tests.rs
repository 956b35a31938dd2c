use super::*;
use crate::id::PortId;
use crate::random::Seed;

fn packet(length: u32) -> Packet<()> {
    Packet {
        length,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: FlowKey::default(),
        body: (),
    }
}

fn put(pool: &mut Pool, number: u64) -> PacketRef {
    let id = PacketId::new(PortId::new(1), number);
    pool.insert(id, Time::ZERO, &packet(100))
}

fn take(pool: &mut Pool, packet: PacketRef) -> Removed<'_> {
    pool.leave(packet);
    pool.remove(packet)
}

#[test]
fn a_packet_takes_104_bytes() {
    assert_eq!(size_of::<PacketState>(), 104);
}

#[test]
fn what_is_kept_beside_it_takes_a_line() {
    assert_eq!(size_of::<Carried>(), 64);
}

#[test]
fn a_body_outlives_its_first_packet_until_the_last_copy_leaves() {
    let mut pool = Pool::new(Bytes::new(1 << 20));
    let maker = Stream::new(Seed(1), "l", "duplication");
    let first = put(&mut pool, 0);
    let copy = pool.duplicate(first, &maker, 0, 0).unwrap();
    let again = pool.duplicate(copy, &maker, 0, 0).unwrap();
    assert_eq!((pool.get(copy).copy, pool.get(again).copy), (1, 2));
    let body_slot = take(&mut pool, first).body_slot;
    let other = put(&mut pool, 1);
    assert_ne!(Pool::slot(other), body_slot, "the slot with the body is not given away");
    for (packet, last) in [(copy, false), (again, true)] {
        let removed = take(&mut pool, packet);
        assert_eq!((removed.body_slot, removed.last), (body_slot, last));
    }
    take(&mut pool, other);
    assert_eq!((pool.len(), pool.bytes()), (0, 0));
}

#[test]
fn slots_and_flips_are_reused() {
    let mut pool = Pool::new(Bytes::new(1 << 20));
    for round in 0..10_000 {
        let packet = put(&mut pool, round);
        pool.flip(packet, 7);
        assert_eq!(pool.flips(packet), [7]);
        take(&mut pool, packet);
    }
    assert_eq!((pool.slots(), pool.flips.len()), (CHUNK, 1));
}

#[test]
fn lists_keep_order_and_count_bytes() {
    let mut pool = Pool::new(Bytes::new(1 << 20));
    let mut list = PacketList::default();
    let packets: Vec<_> = (0..5).map(|n| put(&mut pool, n)).collect();
    for &p in &packets {
        list.push_back(p, &mut pool);
    }
    assert_eq!((list.len(), list.bytes()), (5, 500));
    for &p in &packets {
        assert_eq!(list.pop_front(&mut pool), Some(p));
    }
    assert_eq!((list.pop_front(&mut pool), list.bytes()), (None, 0));
}
