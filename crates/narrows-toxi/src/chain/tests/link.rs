//! The type `link`: datagrams cross a link of the engine.

use super::*;

fn link(attributes: Value) -> ToxicInUse {
    toxic(1, "link", attributes)
}

fn session(connection: u64, toxics: &[&ToxicInUse]) -> Chain {
    Chain::new(&all(toxics), Time::ZERO, Around { connection, ..udp() })
}

#[test]
fn it_delays_and_serialises_with_headers() {
    let mut chain = session(0, &[&link(json!({ "rate": "1mbit", "delay": "20ms" }))]);
    chain.push(piece(0, &[b'a'; 972]));
    chain.push(piece(0, &[b'b'; 972]));
    let times: Vec<f64> = drain_all(&mut chain).into_iter().map(|(at, _)| at).collect();
    // 972 bytes and 28 of headers: 8000 bits each, 8 ms at 1 Mbit/s.
    assert_eq!(times, [28.0, 36.0]);
}

#[test]
fn it_loses_and_duplicates_at_the_given_rates_and_repeats() {
    let run = |seed: u64| {
        let lossy = link(json!({ "loss": "20%", "duplicate": "10%" }));
        let around = Around { seed: narrows_core::Seed(seed), ..udp() };
        let mut chain = Chain::new(&all(&[&lossy]), Time::ZERO, around);
        let mut arrived = Vec::new();
        for number in 0..2000u64 {
            chain.push(piece(number, &number.to_be_bytes()));
            arrived.extend(drain(&mut chain, ms(number), ms(number)));
        }
        arrived
    };
    let arrived = run(1);
    // 2000 · 0.8 · 1.1 = 1760; 4 standard deviations: 4 · √(2000 · 0.16 + 1600 · 0.09) = 86.
    assert!((1674..1847).contains(&arrived.len()), "{}", arrived.len());
    assert_eq!(arrived, run(1));
    assert_ne!(arrived, run(2));
}

#[test]
fn sessions_have_draws_and_queues_of_their_own() {
    let lossy = link(json!({ "loss": "50%" }));
    let fate = |connection| {
        let mut chain = session(connection, &[&lossy]);
        (0..200).for_each(|_| chain.push(piece(0, b"x")));
        chain.push(piece(0, b"end"));
        drain_all(&mut chain).len()
    };
    let fates: std::collections::BTreeSet<usize> = (0..20).map(fate).collect();
    assert!(fates.len() > 3, "{fates:?}");
}

#[test]
fn a_change_keeps_what_is_inside() {
    let slow = link(json!({ "delay": "500ms" }));
    let mut chain = session(0, &[&slow]);
    chain.push(piece(0, b"a"));
    assert_eq!(drain(&mut chain, ms(0), ms(100)), []);
    chain.adopt(&all(&[&changed(&slow, json!({ "delay": "10ms", "order": "allow" }))]), ms(100));
    chain.push(piece(100, b"b"));
    assert_eq!(drain(&mut chain, ms(100), ms(1000)), left(&[(110.0, "b"), (500.0, "a")]));
}

#[test]
fn a_session_that_starts_late_has_the_same_link() {
    let slow = link(json!({ "preset": "3g" }));
    let times = |start: u64| -> Vec<f64> {
        let mut chain = Chain::new(&all(&[&slow]), ms(start), udp());
        (0..20).for_each(|number| chain.push(piece(start + number * 10, &[b'x'; 400])));
        let arrived = drain(&mut chain, ms(start), ms(start + 1_000_000));
        arrived.into_iter().map(|(at, _)| at - start as f64).collect()
    };
    let first = times(0);
    assert!(first.len() > 10, "{first:?}");
    // Whole days, so that the differences are exact in a float.
    let late = times(30 * 86_400_000);
    assert_eq!(late.len(), first.len());
    assert!(late.iter().zip(&first).all(|(one, other)| (one - other).abs() < 1e-3));
}

#[test]
fn an_outage_ends_by_a_change() {
    let down = link(json!({ "outage": true }));
    let mut chain = session(0, &[&down]);
    chain.push(piece(0, b"a"));
    assert_eq!(drain(&mut chain, ms(0), ms(900)), []);
    chain.adopt(&all(&[&changed(&down, json!({ "outage": false }))]), ms(900));
    assert_eq!(drain(&mut chain, ms(900), ms(1000)), left(&[(900.0, "a")]));
}

#[test]
fn removed_it_lets_go_of_what_is_inside() {
    let mut chain = session(0, &[&link(json!({ "delay": "10s", "rate": "1mbit" }))]);
    chain.push(piece(0, b"a"));
    chain.push(piece(0, b"b"));
    assert_eq!(drain(&mut chain, ms(0), ms(100)), []);
    chain.adopt(&[], ms(100));
    assert_eq!(drain(&mut chain, ms(100), ms(100)), left(&[(100.0, "a"), (100.0, "b")]));
    assert_eq!(chain.held(), 0);
}

#[test]
fn a_full_queue_drops_and_memory_is_given_back() {
    let mut chain = session(0, &[&link(json!({ "rate": "8kbit", "queue": "3 packets" }))]);
    (0..100).for_each(|_| chain.push(piece(0, &[b'x'; 972])));
    let arrived = drain_all(&mut chain);
    assert_eq!(arrived.len(), 4, "one in transmission and three that wait");
    assert_eq!(chain.held(), 0);
}

#[test]
fn the_presets_work() {
    let mut chain = session(0, &[&link(json!({ "preset": "3g" }))]);
    chain.push(piece(0, b"a"));
    let arrived = drain_all(&mut chain);
    assert!(arrived.is_empty() || arrived[0].0 > 10.0, "{arrived:?}");
}

#[test]
fn errors_name_the_key_what_was_found_and_what_is_allowed() {
    let kind = Kind::named("link").unwrap();
    let refuse = |attributes: Value| {
        let way = crate::stream::Way::Downstream;
        kind.read(Some(&attributes), None, way).map(drop).unwrap_err().text
    };
    for (attributes, words) in [
        (json!({ "raet": "1mbit" }), &["unknown key `raet`", "did you mean `rate`?", "allowed: `rate`"][..]),
        (json!({ "delay": "10" }), &["`10` has no unit", "links.link.down.delay"]),
        (json!({ "loss": "150%" }), &["150%", "from 0% to 100%"]),
        (json!({ "delay": null }), &["delay", "found null"]),
        (json!({ "between": ["a", "b"] }), &["unknown key `between`"]),
        (json!({ "trace": "/etc/passwd" }), &["trace"]),
        (json!({ "\"]\n[hosts.evil": 1 }), &["unknown key"]),
        (json!(["delay"]), &["attributes", "expected an object"]),
    ] {
        let text = refuse(attributes.clone());
        for word in words {
            assert!(text.contains(word), "{attributes}: {text}");
        }
        assert!(!text.contains("root:"), "{text}");
    }
}
