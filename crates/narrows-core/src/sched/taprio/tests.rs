use super::*;
use crate::PacketRef;
use crate::sched::{Served, Server};

fn ns(number: u64) -> Duration {
    Duration::from_nanos(number)
}

fn at(number: u64) -> Time {
    Time::ZERO + ns(number)
}

fn entry(lasts: u64, open: u64) -> TaprioEntry {
    TaprioEntry { lasts: ns(lasts), open }
}

#[test]
fn a_packet_begins_where_it_ends_before_its_gate_closes() {
    // 0 to 300: band 0. 300 to 500: none. 500 to 1000: bands 1 and 2, which are open until 1000.
    let entries = [entry(300, 1), entry(200, 0), entry(500, 6)];
    let gates = Taprio::new(at(100), &entries, None).unwrap();
    let begins = |now, band, takes| gates.begins(at(now), band, takes).map(|at| at.nanos());
    assert_eq!(begins(50, 3, 10), Some(50), "before the schedule, all are open");
    assert_eq!(begins(100, 0, 300), Some(100));
    assert_eq!(begins(101, 0, 300), Some(1100), "it would reach beyond by one");
    assert_eq!(begins(399, 0, 1), Some(399));
    assert_eq!(begins(400, 0, 0), Some(1100), "closed at this instant");
    assert_eq!(begins(400, 1, 500), Some(600));
    assert_eq!(begins(1_000_000_601, 2, 499), Some(1_000_000_601), "a million cycles later");
    assert_eq!(begins(100, 0, 301), None);
    assert_eq!(begins(100, 3, 0), None, "it is never open");
    // Entries in a row are one window, also across the cycle; an open gate never closes.
    let entries = [entry(10, 3), entry(10, 2), entry(10, 3)];
    let gates = Taprio::new(at(0), &entries, None).unwrap();
    assert_eq!(gates.begins(at(25), 0, 15), Some(at(25)));
    assert_eq!(gates.begins(at(26), 0, 15), Some(at(50)));
    assert_eq!(gates.begins(at(26), 1, 1_000), Some(at(26)));
    assert!(Taprio::new(at(0), &[], None).is_none());
    assert!(Taprio::new(at(0), &[entry(0, 1)], None).is_none());
    assert!(Taprio::new(at(0), &[entry(1, 1)], Some(ns(0))).is_none());
}

/// Against the definition: at every nanosecond of the transmission the gate is open.
#[test]
fn the_first_instant_is_that_of_the_definition() {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..3_000 {
        let count = 1 + random(5);
        let entries: Vec<_> = (0..count).map(|_| entry(1 + random(7), random(4))).collect();
        let sum: u64 = entries.iter().map(|entry| entry.lasts.nanos()).sum();
        let cycle = (random(2) == 0).then(|| 1 + random(2 * sum));
        let start = random(30);
        let gates = Taprio::new(at(start), &entries, cycle.map(ns)).unwrap();
        let cycle = cycle.unwrap_or(sum);
        let is_open = |instant: u64, band: u32| {
            let phase = (instant - start) % cycle;
            let mut end = 0;
            let found = entries.iter().find(|entry| {
                end += entry.lasts.nanos();
                phase < end
            });
            found.unwrap_or(entries.last().unwrap()).open >> band & 1 == 1
        };
        for _ in 0..20 {
            let (now, band, takes) = (start + random(60), random(2) as u32, random(12));
            let fits = |begin: &u64| (*begin..begin + takes.max(1)).all(|instant| is_open(instant, band));
            let expected = (now..now + 2 * cycle).find(fits);
            assert_eq!(
                gates.begins(at(now), band, takes),
                expected.map(at),
                "{entries:?} {cycle} {now} {takes}"
            );
        }
    }
}

#[test]
fn priorities_count_among_open_gates_and_what_never_fits_is_dropped() {
    // 1000 bytes take 800 ns at 10 Gbit/s.
    let entries = [entry(1_000, 0b01), entry(2_000, 0b10)];
    let mut server = Server::new(Taprio::new(Time::ZERO, &entries, None).unwrap());
    server.set_wire(
        Time::ZERO,
        Wire { rate: Rate::from_bits_per_second(10_000_000_000), overhead: Overhead::IP },
    );
    let [high, low] = [0, 1].map(|band| server.join(FlowConfig { band, ..FlowConfig::default() }).unwrap());
    let mut number = 0..;
    let mut send = |server: &mut Server<Taprio>, now, flow, length| {
        let packet = PacketRef::from_number(number.next().unwrap());
        server.enqueue(at(now), flow, packet, length);
    };
    for _ in 0..2 {
        send(&mut server, 0, low, 1_000);
    }
    assert!(matches!(server.dequeue(at(0)), Served::NotBefore(then) if then == at(1_000)));
    send(&mut server, 100, high, 1_000);
    assert!(matches!(server.dequeue(at(100)), Served::Packet(flow, _) if flow == high));
    send(&mut server, 900, high, 1_000);
    assert!(matches!(server.dequeue(at(900)), Served::NotBefore(then) if then == at(1_000)));
    assert!(matches!(server.dequeue(at(1_000)), Served::Packet(flow, _) if flow == low));
    assert!(matches!(server.dequeue(at(1_800)), Served::Packet(flow, _) if flow == low));
    assert!(matches!(server.dequeue(at(2_600)), Served::NotBefore(then) if then == at(3_000)));
    assert!(matches!(server.dequeue(at(3_000)), Served::Packet(flow, _) if flow == high));
    // 1300 bytes take longer than the gate of the first band is open; what waits behind them goes on.
    send(&mut server, 3_800, high, 1_300);
    send(&mut server, 3_800, high, 100);
    assert!(matches!(
        server.dequeue(at(3_800)),
        Served::GivenUp(flow, _, DropReason::BlackHole) if flow == high
    ));
    assert!(matches!(server.dequeue(at(3_800)), Served::Packet(flow, _) if flow == high));
    assert!(matches!(server.dequeue(at(3_880)), Served::Empty));
}
