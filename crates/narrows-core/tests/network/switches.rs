//! Switches.

use std::collections::BTreeMap;

use narrows_core::*;
use proptest::prelude::*;

use crate::common::*;

const fn station(number: u8) -> LinkAddress {
    [2, 0, 0, 0, 0, number]
}

const BROADCAST: LinkAddress = [0xff; 6];

/// The end of a host at a switch.
struct End {
    untagged: Option<u16>,
    tagged: VlanSet,
}

fn untagged(vlan: u16) -> End {
    End { untagged: Some(vlan), tagged: VlanSet::None }
}

fn lane(name: String) -> Target {
    Target::Link { name, lane: 0 }
}

/// Hosts `h0`, `h1`, … at one switch, by links of 1 ms.
fn star(ends: Vec<End>, change: impl FnOnce(&mut NetworkConfig)) -> Engine<()> {
    let mut config = NetworkConfig::new(Seed(1));
    let mut switch = SwitchConfig {
        name: "lan".into(),
        ageing: Duration::from_secs(300),
        room: 1000,
        ..SwitchConfig::default()
    };
    for (number, End { untagged, tagged }) in (0..).zip(ends) {
        let host = format!("h{number}");
        let into = Target::Switch { name: "lan".into(), port: number };
        for (name, to) in [(format!("{host}.up"), into), (format!("{host}.down"), Target::Port(host.clone()))]
        {
            let mut link = LinkConfig::new(name, to);
            delay(&mut link, 1_000_000);
            config.links.push(link);
        }
        switch.ports.push(SwitchPort { exit: lane(format!("{host}.down")), untagged, tagged });
        config.ports.push(port(&host, lane(format!("{host}.up"))));
    }
    config.switches.push(switch);
    change(&mut config);
    Engine::new(config).expect("the network is whole")
}

fn frame(from: u8, to: LinkAddress) -> Packet<()> {
    let mut packet = Packet { link_header: 14, ..packet(key(from, 0), 100) };
    (packet.headers.link_source, packet.headers.link_destination) = (station(from), to);
    packet
}

/// Sends a frame from a host at an instant; returns the hosts that get it, by the numbers of the copies.
fn send(engine: &mut Engine<()>, at: u64, from: u8, frame: Packet<()>) -> Vec<(u16, String)> {
    let port = engine.port(&format!("h{from}")).expect("it is there");
    engine.hand_in(Time::from_nanos(at), port, frame);
    let mut got = Vec::new();
    while let Some(next) = engine.next_event() {
        while let Some(event) = engine.poll(next) {
            let Verdict::Delivered(to) = event.verdict else { continue };
            got.push((event.copy, event.id.number(), to));
        }
    }
    got.into_iter().map(|(copy, _, to)| (copy, engine.port_name(to).to_owned())).collect()
}

fn names(got: Vec<(u16, String)>) -> Vec<String> {
    got.into_iter().map(|(_, name)| name).collect()
}

fn counters(engine: &Engine<()>) -> SwitchCounters {
    engine.switch_counters(engine.switch("lan").expect("it is there"))
}

#[test]
fn what_is_unknown_is_flooded_until_its_station_has_sent() {
    let mut engine = star((0..3).map(|_| untagged(1)).collect(), |_| {});
    let copies = send(&mut engine, 0, 0, frame(0, station(1)));
    assert_eq!(copies, [(0, "h1".to_owned()), (1, "h2".to_owned())], "the packet itself to the first port");
    assert_eq!(names(send(&mut engine, 10, 1, frame(1, station(0)))), ["h0"], "h0 has sent");
    assert_eq!(names(send(&mut engine, 20, 0, frame(0, station(1)))), ["h1"], "and now h1 has");
    assert_eq!(names(send(&mut engine, 30, 0, frame(0, BROADCAST))), ["h1", "h2"]);
    let SwitchCounters { arrived, copied, forwarded, flooded, filtered, .. } = counters(&engine);
    let all = [arrived, copied, forwarded, flooded, filtered].map(|tally| tally.packets);
    assert_eq!(all, [4, 2, 6, 2, 0]);
    assert_eq!(engine.known_addresses(engine.switch("lan").expect("it is there")), 2);
}

#[test]
fn a_destination_behind_the_port_that_the_frame_came_by_is_filtered() {
    let mut engine = star((0..2).map(|_| untagged(1)).collect(), |_| {});
    send(&mut engine, 0, 0, frame(7, BROADCAST));
    assert!(names(send(&mut engine, 10, 0, frame(8, station(7)))).is_empty());
    assert_eq!(counters(&engine).filtered.packets, 1);
}

#[test]
fn a_station_that_moves_is_found_at_its_new_port_and_a_silent_one_is_forgotten() {
    let ageing = Duration::from_secs(10);
    let mut engine = star((0..3).map(|_| untagged(1)).collect(), |config| config.switches[0].ageing = ageing);
    send(&mut engine, 0, 1, frame(9, BROADCAST));
    assert_eq!(names(send(&mut engine, 10_000_000, 0, frame(0, station(9)))), ["h1"]);
    send(&mut engine, 20_000_000, 2, frame(9, BROADCAST));
    assert_eq!(names(send(&mut engine, 30_000_000, 0, frame(0, station(9)))), ["h2"]);
    // The frame reaches the switch a millisecond later, just as old as is allowed, then older.
    let seen = 21_000_000 + 10_000_000_000;
    assert_eq!(names(send(&mut engine, seen - 1_000_000, 0, frame(0, station(9)))), ["h2"]);
    assert_eq!(names(send(&mut engine, seen + 1, 0, frame(0, station(9)))), ["h1", "h2"]);
}

#[test]
fn a_full_table_floods_and_says_so_and_makes_room_when_entries_are_old() {
    let mut engine = star((0..3).map(|_| untagged(1)).collect(), |config| {
        let switch = &mut config.switches[0];
        (switch.room, switch.ageing) = (1, Duration::from_secs(1));
        switch.known = vec![(1, station(2), 2)];
    });
    send(&mut engine, 0, 0, frame(0, BROADCAST));
    send(&mut engine, 0, 1, frame(1, BROADCAST));
    assert_eq!(counters(&engine).not_learned, 1);
    assert_eq!(names(send(&mut engine, 5_000_000, 2, frame(2, station(1)))), ["h0", "h1"]);
    send(&mut engine, 3_000_000_000, 1, frame(1, BROADCAST));
    assert_eq!(names(send(&mut engine, 3_010_000_000, 2, frame(2, station(1)))), ["h1"]);
    // What was known from the start takes no room and is not forgotten.
    assert_eq!(names(send(&mut engine, 9_000_000_000, 0, frame(0, station(2)))), ["h2"]);
}

#[test]
fn vlans_are_kept_apart_and_tags_are_put_on_and_taken_off() {
    let trunk = || End { untagged: None, tagged: VlanSet::of([10, 20]) };
    let mut engine = star(vec![untagged(10), untagged(20), trunk(), untagged(10)], |_| {});
    assert_eq!(names(send(&mut engine, 0, 0, frame(0, BROADCAST))), ["h2", "h3"]);
    assert_eq!(names(send(&mut engine, 0, 1, frame(1, BROADCAST))), ["h2"]);
    let tagged = |vlan| {
        let mut frame = Packet { link_header: 18, ..frame(2, BROADCAST) };
        frame.headers.vlan = vlan;
        frame
    };
    assert_eq!(names(send(&mut engine, 0, 2, tagged(20))), ["h1"]);
    assert!(names(send(&mut engine, 0, 2, tagged(30))).is_empty(), "not a VLAN of the port");
    assert!(
        names(send(&mut engine, 0, 2, frame(2, BROADCAST))).is_empty(),
        "the trunk takes none without a tag"
    );
    assert_eq!(counters(&engine).filtered.packets, 2);

    // The same address in two VLANs is two stations.
    send(&mut engine, 0, 0, frame(9, BROADCAST));
    send(&mut engine, 0, 1, frame(9, BROADCAST));
    let mut to_nine = tagged(20);
    to_nine.headers.link_destination = station(9);
    assert_eq!(names(send(&mut engine, 0, 2, to_nine)), ["h1"]);

    // What leaves says how its link header differs from that in the body.
    let edits = |engine: &mut Engine<()>, from: &str, frame| {
        engine.hand_in(engine.now(), engine.port(from).expect("it is there"), frame);
        let mut edits = BTreeMap::new();
        while let Some(next) = engine.next_event() {
            while let Some(event) = engine.poll(next) {
                if let Verdict::Delivered(to) = event.verdict {
                    edits.insert(to, (event.link_header, event.header_edit.as_deref().copied()));
                }
            }
        }
        let named = edits.into_iter().map(|(to, edit)| (engine.port_name(to).to_owned(), edit));
        named.collect::<BTreeMap<_, _>>()
    };
    let edit = |link_header, vlan| Some(edited(None, link_header, vlan));
    let got = edits(&mut engine, "h0", frame(0, BROADCAST));
    assert_eq!(got["h2"], (18, edit(14, 10)));
    assert_eq!(got["h3"], (14, None));
    assert_eq!(edits(&mut engine, "h2", tagged(20))["h1"], (14, edit(18, 0)));
}

#[test]
fn a_link_between_switches_carries_frames_once() {
    let mut config = NetworkConfig::new(Seed(1));
    let plain = |exit| SwitchPort { exit, untagged: Some(1), tagged: VlanSet::All };
    let into = |name: &str, port| Target::Switch { name: name.into(), port };
    for (name, to) in [("east", into("b", 0)), ("west", into("a", 0))] {
        let mut link = LinkConfig::new(name, to);
        delay(&mut link, 1_000_000);
        config.links.push(link);
    }
    for (name, trunk, host) in [("a", "east", "x"), ("b", "west", "y")] {
        let ports = vec![plain(lane(trunk.into())), plain(Target::Port(host.into()))];
        let (ageing, room) = (Duration::from_secs(300), 1000);
        config.switches.push(SwitchConfig { name: name.into(), ports, ageing, room, known: Vec::new() });
        config.ports.push(port(host, into(name, 1)));
    }
    let mut engine = Engine::new(config).expect("the network is whole");
    let x = engine.port("x").expect("it is there");
    engine.hand_in(Time::ZERO, x, frame(0, BROADCAST));
    let y = engine.port("y").expect("it is there");
    assert_eq!(drain(&mut engine), [(1_000_000, 0, Verdict::Delivered(y))]);
    assert_eq!(engine.parts().count(), 1);
}

#[test]
fn a_ring_of_switches_ends_its_frames_by_their_visits() {
    let mut config = NetworkConfig::new(Seed(1));
    let next = |name: &str| Target::Switch { name: name.into(), port: 0 };
    for (name, to) in [("a", "b"), ("b", "a")] {
        let plain = |exit| SwitchPort { exit, untagged: Some(1), tagged: VlanSet::None };
        let (ageing, room) = (Duration::from_secs(300), 1000);
        let ports = vec![plain(Target::Port("x".into())), plain(next(to)), plain(Target::Port("x".into()))];
        config.switches.push(SwitchConfig { name: name.into(), ports, ageing, room, known: Vec::new() });
    }
    config.ports.push(port("x", next("a")));
    let mut engine = Engine::new(config).expect("the network is whole");
    engine.hand_in(Time::ZERO, engine.port("x").expect("it is there"), frame(0, BROADCAST));
    let ends = drain(&mut engine);
    let looped =
        ends.iter().filter(|(.., end)| matches!(end, Verdict::Dropped { reason: DropReason::Loop, .. }));
    assert_eq!(looped.count(), 1);
    assert_eq!(ends.len(), 65, "a copy left at each of 64 visits");
}

#[test]
fn a_router_on_a_switch_takes_what_is_addressed_to_it_and_addresses_what_it_sends() {
    let mut config = NetworkConfig::new(Seed(1));
    let (own, host) = (station(100), station(1));
    let into = |port| Target::Switch { name: "lan".into(), port };
    let plain = |exit| SwitchPort { exit, untagged: Some(1), tagged: VlanSet::None };
    config.switches.push(SwitchConfig {
        name: "lan".into(),
        ports: vec![plain(Target::Router("r".into())), plain(Target::Port("h".into()))],
        known: vec![(1, own, 0), (1, host, 1)],
        ageing: Duration::from_secs(300),
        room: 1000,
    });
    let route = Route {
        ways: vec![(into(0), sched::Weight::ONE)],
        link_addresses: vec![[host, own]],
        ..Route::default()
    };
    let routes = vec![(classify::Prefix::new(address(2, 0), 120), route)];
    config.routers.push(RouterConfig {
        name: "r".into(),
        routes,
        link_addresses: vec![own],
        ..RouterConfig::default()
    });
    config.ports.extend([port("h", into(1)), port("far", Target::Router("r".into()))]);
    let mut engine = Engine::new(config).expect("the network is whole");
    let [far, h] = ["far", "h"].map(|name| engine.port(name).expect("it is there"));
    let mut from_far = frame(5, LinkAddress::default());
    from_far.headers.hop_limit = 9;
    engine.hand_in(Time::ZERO, far, from_far);
    let event = engine.poll(Time::ZERO).expect("it goes through at once");
    let addresses = Some([host, own]);
    assert_eq!(event.verdict, Verdict::Delivered(h));
    assert_eq!(event.header_edit.as_deref(), Some(&edited(addresses, 14, 0)));
    engine.hand_in(Time::ZERO, h, frame(1, BROADCAST));
    let r = engine.router("r").expect("it is there");
    let filtered = Verdict::Dropped { at: Some(Element::Router(r)), reason: DropReason::Filtered };
    assert_eq!(drain(&mut engine), [(0, 0, filtered)]);
}

proptest! {
    /// Whatever comes, and with little memory: in + copied = out + dropped, at the switch and in the network.
    #[test]
    fn no_frame_is_lost_or_made_unseen(
        inputs in prop::collection::vec((0u8..4, 0u8..6, 0u16..3, 0u64..5_000_000), 1..200),
        memory in 500u64..20_000,
    ) {
        let ends = || vec![untagged(1), untagged(1), untagged(2), End { untagged: Some(1), tagged: VlanSet::All }];
        let mut engine = star(ends(), |config| {
            config.switches[0].room = 3;
            config.memory = Bytes::new(memory);
        });
        let mut now = 0;
        for (from, to, vlan, gap) in inputs {
            now += gap;
            let to = if to == 5 { BROADCAST } else { station(to) };
            let mut frame = frame(from, to);
            if vlan > 0 {
                (frame.headers.vlan, frame.link_header) = (vlan, 18);
            }
            engine.hand_in(Time::from_nanos(now), engine.port(&format!("h{from}")).expect("it is there"), frame);
        }
        drain(&mut engine);
        let all = counters(&engine);
        prop_assert_eq!(
            all.arrived.packets + all.copied.packets,
            all.forwarded.packets + all.filtered.packets + all.looped.packets + all.refused.packets
        );
        let ports = engine.ports().map(|port| engine.port_counters(port));
        let (came, left) = ports.fold((0, 0), |(came, left), port| {
            (came + port.arrived.packets, left + port.delivered.packets + port.refused.packets)
        });
        prop_assert_eq!(came + all.copied.packets, left + all.filtered.packets + all.looped.packets + all.refused.packets);
        prop_assert_eq!(engine.inside(), 0);
    }
}

/// What switches and routers write.
fn edited(addresses: Option<[narrows_core::LinkAddress; 2]>, link_header: u8, vlan: u16) -> HeaderEdit {
    HeaderEdit {
        addresses,
        link_header,
        vlan,
        ether_type: None,
        hop_limit: None,
        has_new_ends: false,
        quoted: None,
    }
}
