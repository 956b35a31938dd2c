//! When packets arrive, and where their hop limit ends.

use narrows_core::Element;

use super::{LENGTH, Run};

/// Three routers in a row; the second link is two in series, the other way round, the third a shared medium.
const ROW: &str = r#"
[hosts.a]
[hosts.b]
[routers.r1]
[routers.r2]
[routers.r3]
[junctions.j]
[links.one]
between = ["a", "r1"]
rate = "8mbit"
delay = "1ms"
[links.two]
between = ["j", "r1"]
rate = "3mbit"
delay = "777ns"
[links.three]
between = ["j", "r2"]
rate = "7mbit"
[links.four]
between = ["r2", "r3"]
shared = true
rate = "11mbit"
delay = "123456ns"
[links.five]
between = ["b", "r3"]
up = { rate = "5mbit", delay = "2ms" }
down = { rate = "13mbit", delay = "3ms" }
"#;

/// How long a packet is on a wire of so many bits a second, rounded up to a nanosecond.
const fn wire(rate: u64) -> u64 {
    (LENGTH as u64 * 8 * 1_000_000_000).div_ceil(rate)
}

#[test]
fn the_time_of_a_packet_is_the_sum_over_its_hops_to_the_nanosecond() {
    let mut run = Run::new(ROW);
    let common =
        wire(8_000_000) + 1_000_000 + wire(3_000_000) + 777 + wire(7_000_000) + wire(11_000_000) + 123_456;
    let there = run.travel("a.one", "b.five");
    assert_eq!(
        (there.nanos, there.place.as_str(), there.hops),
        (common + wire(13_000_000) + 3_000_000, "b.five", 3)
    );
    let back = run.travel("b.five", "a.one");
    assert_eq!(
        (back.nanos, back.place.as_str(), back.hops),
        (common + wire(5_000_000) + 2_000_000, "a.one", 3)
    );
}

#[test]
fn a_hop_limit_of_n_ends_at_the_nth_router() {
    let mut run = Run::new(ROW);
    let to = run.address("b.five");
    let first = wire(8_000_000) + 1_000_000;
    let second = first + wire(3_000_000) + 777 + wire(7_000_000);
    let third = second + wire(11_000_000) + 123_456;
    for (limit, instant, router) in [(1, first, "r1"), (2, second, "r2"), (3, third, "r3")] {
        let at = run.engine.now().nanos();
        run.send(at, "a.one", to, 1, limit);
        let all = run.poll(at + 1_000_000_000);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].nanos - at, all[0].place.as_str()), (instant, &*format!("{router}: hop limit")));
    }
    let at = run.engine.now().nanos();
    run.send(at, "a.one", to, 1, 4);
    assert_eq!(run.poll(at + 1_000_000_000)[0].place, "b.five");
    let counters = run.engine.router_counters(run.engine.router("r2").unwrap());
    assert_eq!((counters.arrived.packets, counters.hop_limit.packets, counters.forwarded.packets), (3, 1, 2));
}

#[test]
fn what_is_for_a_router_leaves_at_its_own_port_and_what_it_sends_enters_there() {
    let mut run = Run::new(ROW);
    // Also by the address at the far end of it.
    for end in ["r2.three", "r2.four"] {
        let outcome = run.travel("a.one", end);
        assert_eq!((outcome.place.as_str(), outcome.hops), ("r2", 1));
    }
    // The hop limit does not count for the router that it is for.
    let (at, to) = (run.engine.now().nanos(), run.address("r1.one"));
    run.send(at, "a.one", to, 1, 1);
    assert_eq!(run.poll(at + 1_000_000_000)[0].place, "r1");
    let from = run.travel("r2", "a.one");
    assert_eq!(from.place, "a.one");
    let arrived = run.engine.router_counters(run.engine.router("r2").unwrap());
    assert_eq!(arrived.local.packets, 2);
}

#[test]
fn what_nobody_has_gets_no_farther_than_the_nearest_router() {
    let mut run = Run::new(ROW);
    for (address, place) in [
        ("198.51.100.1", "r1: no route"),
        ("2001:db8::1", "r1: no route"),
        // In a network between two routers, at neither of them: it does not go to and fro.
        ("10.213.2.77", "r1: no route"),
        ("10.213.3.77", "r2: no route"),
        // In the network of a host there may be more than the host.
        ("10.213.1.77", "b.five"),
    ] {
        let at = run.engine.now().nanos();
        run.send(at, "a.one", address.parse().unwrap(), 1, 64);
        assert_eq!(run.poll(at + 1_000_000_000)[0].place, place, "{address}");
    }
}

/// `b` is behind `r2`, which sends packets for it back.
const CIRCLE: &str = r#"
[hosts.a]
[hosts.b]
[routers.r1]
[routers.r2]
routes = [{ to = "b", via = "middle" }]
[links.first]
between = ["a", "r1"]
[links.middle]
between = ["r1", "r2"]
delay = "1ms"
[links.last]
between = ["r2", "b"]
"#;

#[test]
fn a_circle_ends_with_the_hop_limit_and_is_counted() {
    for limit in [1, 2, 3, 64, 255] {
        let mut run = Run::new(CIRCLE);
        let (b, a) = (run.address("b.last"), run.address("a.first"));
        for number in 0..10 {
            run.send(number, "a.first", b, 7, limit);
        }
        run.send(10, "b.last", a, 7, 64);
        let all = run.poll(10_000_000_000);
        let router = if limit % 2 == 1 { "r1" } else { "r2" };
        let lost: Vec<_> = all.iter().filter(|outcome| outcome.place != "a.first").collect();
        assert_eq!((lost.len(), all.len()), (10, 11));
        for (number, outcome) in lost.iter().enumerate() {
            assert_eq!(outcome.place, format!("{router}: hop limit"));
            assert_eq!(outcome.nanos, number as u64 + (u64::from(limit) - 1) * 1_000_000);
        }
        assert_eq!(run.engine.inside(), 0);
        let (mut arrived, mut forwarded, mut dropped) = (0, 0, 0);
        for router in run.engine.routers() {
            let counters = run.engine.router_counters(router);
            arrived += counters.arrived.packets;
            forwarded += counters.forwarded.packets;
            dropped += counters.hop_limit.packets;
        }
        // Ten packets at each step of theirs, and one back by two routers.
        assert_eq!(
            (arrived, forwarded, dropped),
            (10 * u64::from(limit) + 2, 10 * (u64::from(limit) - 1) + 2, 10)
        );
    }
}

#[test]
fn polling_late_changes_nothing() {
    let text = format!(
        "{}\n[links.other]\nbetween = [\"r1\", \"r3\"]\nrate = \"2mbit\"\ncost = 3\nloss = \"10%\"\n\
         delay = {{ uniform = {{ low = \"0ms\", high = \"9ms\" }}, order = \"allow\" }}\nqueue = \"5 packets\"\n",
        ROW.replace("[routers.r1]", "[routers.r1]\nmultipath = \"packet\"")
            .replace("[routers.r3]", "[routers.r3]\nmultipath = \"flow\"")
    );
    let events = |gap: u64| {
        let mut run = Run::new(&text);
        let (a, b) = (run.address("a.one"), run.address("b.five"));
        let mut all = Vec::new();
        for number in 0..2000u64 {
            let at = number * 700_001;
            let (from, to) = if number % 3 == 0 { ("b.five", a) } else { ("a.one", b) };
            run.send(at, from, to, (number % 11) as u16, 1 + (number % 7) as u8);
            if gap > 0 && number % gap == 0 {
                all.extend(run.poll(at));
            }
        }
        all.extend(run.poll(100_000_000_000));
        let drops: Vec<u64> =
            run.engine.routers().map(|router| run.engine.router_counters(router).hop_limit.packets).collect();
        (all, drops)
    };
    let (prompt, drops) = events(1);
    assert_eq!(prompt.len(), 2000);
    assert!(drops.iter().all(|drops| *drops > 100), "{drops:?}");
    assert!(prompt.iter().any(|outcome| outcome.place == "other.up: wire loss"));
    for gap in [0, 2, 37] {
        assert_eq!(events(gap), (prompt.clone(), drops.clone()));
    }
}

#[test]
fn elements_have_names_that_drops_are_told_by() {
    let run = Run::new(CIRCLE);
    let router = run.engine.router("r2").unwrap();
    assert_eq!(run.engine.element_name(Element::Router(router)), "r2");
}
