//! Each toxic on a clock that is an argument: no test waits, and none depends on the speed of the machine.

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::toxic::Kind;

const MS: u64 = 1_000_000;

fn ms(time: u64) -> Time {
    Time::from_nanos(time * MS)
}

fn around(connection: u64) -> Around {
    let datagrams = None;
    Around { seed: narrows_core::Seed(1), proxy: "p".into(), connection, datagrams }
}

fn udp() -> Around {
    let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    Around { datagrams: Some([address(1), address(2)]), ..around(0) }
}

/// A toxic of the upstream with these attributes.
fn toxic(id: u64, kind: &str, attributes: Value) -> ToxicInUse {
    let kind = Kind::named(kind).unwrap();
    let way = crate::stream::Way::Upstream;
    let values = kind.read(Some(&attributes), None, way).unwrap();
    let (name, stream) = (format!("{}-{id}", kind.name), way.name().into());
    ToxicInUse { id, change: 0, kind, name, way, stream, toxicity: 1.0, values }
}

/// The toxic with other attributes, as an update leaves it.
fn changed(toxic: &ToxicInUse, attributes: Value) -> ToxicInUse {
    let values = toxic.kind.read(Some(&attributes), Some(&toxic.values), toxic.way).unwrap();
    ToxicInUse { change: toxic.change + 1, values, ..toxic.clone() }
}

fn all(toxics: &[&ToxicInUse]) -> Vec<Arc<ToxicInUse>> {
    toxics.iter().map(|toxic| Arc::new((*toxic).clone())).collect()
}

fn chain(toxics: &[&ToxicInUse]) -> Chain {
    Chain::new(&all(toxics), Time::ZERO, around(0))
}

fn piece(at: u64, data: &[u8]) -> Item {
    Item::Piece(Piece { at: ms(at), data: Bytes::copy_from_slice(data) })
}

/// What leaves by `until` when the chain is polled exactly when it says: times in milliseconds and bytes.
fn drain(chain: &mut Chain, mut now: Time, until: Time) -> Vec<(f64, String)> {
    let mut left = Vec::new();
    loop {
        let mut wake = chain.advance(now);
        while let Some(out) = chain.take() {
            let text = match out {
                Out::Piece(piece) => String::from_utf8_lossy(&piece.data).into_owned(),
                Out::End(end) => format!("{end:?}"),
            };
            left.push((now.nanos() as f64 / MS as f64, text));
            wake = chain.advance(now);
        }
        match wake {
            Some(wake) if wake <= until => now = wake.max(now),
            _ => return left,
        }
    }
}

fn drain_all(chain: &mut Chain) -> Vec<(f64, String)> {
    drain(chain, Time::ZERO, ms(1_000_000))
}

/// Expected times and texts.
fn left(all: &[(f64, &str)]) -> Vec<(f64, String)> {
    all.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
}

#[test]
fn without_toxics_everything_passes_at_once() {
    let mut chain = chain(&[]);
    assert!(chain.has_room());
    chain.push(piece(0, b"a"));
    assert!(!chain.has_room(), "what is not taken yet fills it");
    assert_eq!(drain_all(&mut chain), left(&[(0.0, "a")]));
    chain.push(Item::End(ms(0), End::Half));
    assert_eq!(drain_all(&mut chain), left(&[(0.0, "Half")]));
    assert!(!chain.has_room(), "the source has ended");
}

#[test]
fn latency_counts_from_the_arrival_and_its_end_follows_at_once() {
    let mut chain = chain(&[&toxic(1, "latency", json!({ "latency": 100 }))]);
    chain.push(piece(0, b"a"));
    chain.push(piece(30, b"b"));
    chain.push(Item::End(ms(31), End::Half));
    assert_eq!(drain_all(&mut chain), left(&[(100.0, "a"), (130.0, "b"), (130.0, "Half")]));
}

#[test]
fn two_latencies_add_up_however_late_the_first_is_polled() {
    let toxics =
        [&toxic(1, "latency", json!({ "latency": 50 })), &toxic(2, "latency", json!({ "latency": 70 }))];
    let mut chain = chain(&toxics);
    chain.push(piece(0, b"a"));
    assert_eq!(chain.advance(ms(90)), Some(ms(120)), "not 90 + 70");
    assert_eq!(drain(&mut chain, ms(90), ms(500)), left(&[(120.0, "a")]));
}

#[test]
fn jitter_stays_within_its_bounds_keeps_order_and_repeats() {
    let jittery = toxic(1, "latency", json!({ "latency": 100, "jitter": 40 }));
    let run = |connection| {
        let mut chain = Chain::new(&all(&[&jittery]), Time::ZERO, around(connection));
        (0..500).for_each(|number| chain.push(piece(number * 1000, b"x")));
        drain(&mut chain, Time::ZERO, ms(1_000_000)).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    let times = run(0);
    let delays: Vec<f64> =
        times.iter().zip(0..).map(|(at, number)| at - f64::from(number) * 1000.0).collect();
    assert!(delays.iter().all(|delay| (60.0..140.0).contains(delay)));
    let mean = delays.iter().sum::<f64>() / 500.0;
    // 4 standard errors of a uniform distribution of width 80: 4 · 80 / √12 / √500.
    assert!((mean - 99.5).abs() < 4.2, "{mean}");
    assert_eq!(times, run(0), "same seed, same draws");
    assert_ne!(times, run(1));
}

#[test]
fn jitter_never_reorders() {
    let mut chain = chain(&[&toxic(1, "latency", json!({ "latency": 50, "jitter": 50 }))]);
    (0..100).for_each(|number| chain.push(piece(number, &[b'a' + (number % 26) as u8])));
    let texts: String = drain_all(&mut chain).into_iter().map(|(_, text)| text).collect();
    let expected: String = (0..100).map(|number| char::from(b'a' + (number % 26) as u8)).collect();
    assert_eq!(texts, expected);
}

#[test]
fn bandwidth_is_exact_over_time_and_sends_parts_each_tenth_of_a_second() {
    let mut chain = chain(&[&toxic(1, "bandwidth", json!({ "rate": 1 }))]);
    chain.push(piece(0, &[b'x'; 250]));
    let times: Vec<_> = drain_all(&mut chain).into_iter().map(|(at, text)| (at, text.len())).collect();
    assert_eq!(times, [(100.0, 100), (200.0, 100), (250.0, 50)]);
    // A third of a byte per …: the remainders are carried.
    let mut chain = Chain::new(&all(&[&toxic(1, "bandwidth", json!({ "rate": 3 }))]), Time::ZERO, around(0));
    let mut last = 0.0;
    for _ in 0..3000 {
        chain.push(piece(0, b"x"));
        last = drain(&mut chain, Time::from_nanos((last * MS as f64) as u64), ms(2000))[0].0;
    }
    assert_eq!(last, 1000.0);
}

#[test]
fn bandwidth_of_zero_lets_nothing_pass_but_the_end_of_an_idle_connection() {
    let slow = toxic(1, "bandwidth", json!({}));
    let mut idle = chain(&[&slow]);
    idle.push(Item::End(ms(5), End::Half));
    assert_eq!(drain(&mut idle, ms(5), ms(100)), left(&[(5.0, "Half")]));
    let mut busy = chain(&[&slow]);
    while busy.has_room() {
        busy.push(piece(0, b"a"));
        assert_eq!(drain_all(&mut busy), []);
    }
    assert_eq!(busy.held(), 64, "the source is read no further");
}

#[test]
fn a_blocked_destination_is_not_caught_up_with_at_full_speed() {
    let mut chain = chain(&[&toxic(1, "bandwidth", json!({ "rate": 1 }))]);
    chain.push(piece(0, &[b'x'; 100]));
    assert_eq!(chain.advance(ms(60_000)), None, "it lies in the outlet");
    chain.push(piece(0, &[b'y'; 5000]));
    assert_eq!(chain.take().map(|out| matches!(out, Out::Piece(_))), Some(true));
    // A minute late, it goes on from now and not from a minute ago.
    let times: Vec<f64> = drain(&mut chain, ms(60_000), ms(60_250)).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [60_100.0, 60_200.0]);
}

#[test]
fn slow_close_delays_the_end_alone() {
    let mut chain = chain(&[&toxic(1, "slow_close", json!({ "delay": 300 }))]);
    chain.push(piece(0, b"a"));
    assert_eq!(drain(&mut chain, ms(0), ms(10)), left(&[(0.0, "a")]));
    chain.push(Item::End(ms(20), End::Half));
    assert_eq!(drain(&mut chain, ms(20), ms(1000)), left(&[(320.0, "Half")]));
}

#[test]
fn timeout_drops_data_and_closes_after_the_last() {
    let mut chain = chain(&[&toxic(1, "timeout", json!({ "timeout": 100 }))]);
    chain.push(piece(60, b"a"));
    assert_eq!(drain(&mut chain, ms(60), ms(1000)), left(&[(160.0, "Close")]));
    let mut quiet = Chain::new(&all(&[&toxic(1, "timeout", json!({ "timeout": 100 }))]), ms(7), around(0));
    assert_eq!(drain(&mut quiet, ms(7), ms(1000)), left(&[(107.0, "Close")]));
    // Polled late, it closes all the same before data that came too late.
    let mut late = Chain::new(&all(&[&toxic(1, "timeout", json!({ "timeout": 100 }))]), ms(0), around(0));
    late.push(piece(150, b"a"));
    assert_eq!(drain(&mut late, ms(150), ms(1000)), left(&[(150.0, "Close")]));
}

#[test]
fn timeout_of_zero_closes_only_when_it_is_removed() {
    let mut chain = chain(&[&toxic(1, "timeout", json!({ "timeout": 0 }))]);
    for at in 0..100 {
        chain.push(piece(at, b"a"));
        assert_eq!(drain(&mut chain, ms(at), ms(1_000_000)), []);
    }
    chain.adopt(&[], ms(200));
    assert_eq!(drain(&mut chain, ms(200), ms(300)), left(&[(200.0, "Close")]));
}

#[test]
fn reset_peer_resets_after_the_first_data() {
    let mut chain = chain(&[&toxic(1, "reset_peer", json!({ "timeout": 80 }))]);
    assert_eq!(chain.advance(ms(1000)), None, "nothing without data");
    chain.push(piece(1000, b"a"));
    assert_eq!(drain(&mut chain, ms(1000), ms(5000)), left(&[(1080.0, "Reset")]));
}

#[test]
fn slicer_cuts_within_its_bounds_and_spaces_the_slices() {
    let mut chain =
        chain(&[&toxic(1, "slicer", json!({ "average_size": 100, "size_variation": 20, "delay": 500 }))]);
    let data: Vec<u8> = (0..4000u32).map(|number| b'a' + (number % 26) as u8).collect();
    chain.push(piece(0, &data));
    let slices = drain_all(&mut chain);
    let joined: String = slices.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(joined.as_bytes(), data);
    assert!(slices.iter().all(|(_, text)| (1..=120).contains(&text.len())));
    assert!((34..120).contains(&slices.len()), "{}", slices.len());
    let times: Vec<f64> = slices.iter().map(|(at, _)| *at).collect();
    let expected: Vec<f64> = (0..slices.len()).map(|number| number as f64 * 0.5).collect();
    assert_eq!(times, expected);
}

#[test]
fn slicer_survives_what_stops_toxiproxy() {
    for attributes in [
        json!({}),
        json!({ "average_size": 1, "size_variation": 1_000_000 }),
        json!({ "average_size": 1, "size_variation": 1 }),
        json!({ "average_size": i64::MAX, "size_variation": i64::MAX, "delay": i64::MAX }),
    ] {
        let mut chain = chain(&[&toxic(1, "slicer", attributes)]);
        chain.push(piece(0, &[b'x'; 1000]));
        let bytes: usize = drain_all(&mut chain).iter().map(|(_, text)| text.len()).sum();
        assert_eq!(bytes, 1000);
    }
}

#[test]
fn limit_data_passes_so_many_bytes_and_closes() {
    let limited = toxic(1, "limit_data", json!({ "bytes": 10 }));
    let mut chain = chain(&[&limited]);
    chain.push(piece(0, b"123456"));
    assert_eq!(drain_all(&mut chain), left(&[(0.0, "123456")]));
    chain.push(piece(5, b"7890abc"));
    assert_eq!(drain(&mut chain, ms(5), ms(100)), left(&[(5.0, "7890"), (5.0, "Close")]));
    assert!(!chain.has_room());
}

#[test]
fn limit_data_counts_across_changes() {
    let limited = toxic(1, "limit_data", json!({ "bytes": 10 }));
    let mut chain = chain(&[&limited]);
    chain.push(piece(0, b"123456"));
    drain_all(&mut chain);
    chain.adopt(&all(&[&changed(&limited, json!({ "bytes": 8 }))]), ms(1));
    chain.push(piece(5, b"7890"));
    assert_eq!(drain(&mut chain, ms(5), ms(100)), left(&[(5.0, "78"), (5.0, "Close")]));
}

#[test]
fn the_end_passes_every_later_toxic() {
    let toxics = [
        &toxic(1, "limit_data", json!({ "bytes": 3 })),
        &toxic(2, "latency", json!({ "latency": 100 })),
        &toxic(3, "slow_close", json!({ "delay": 50 })),
    ];
    let mut chain = chain(&toxics);
    chain.push(piece(0, b"abcdef"));
    assert_eq!(drain_all(&mut chain), left(&[(100.0, "abc"), (150.0, "Close")]));
}

#[test]
fn a_removed_toxic_lets_go_of_what_it_held_in_order() {
    let slow = toxic(1, "latency", json!({ "latency": 1000 }));
    let mut chain = chain(&[&slow]);
    chain.push(piece(0, b"a"));
    chain.push(piece(10, b"b"));
    assert_eq!(drain(&mut chain, ms(10), ms(20)), []);
    assert_eq!(chain.held(), 2);
    chain.adopt(&[], ms(20));
    assert_eq!(drain(&mut chain, ms(20), ms(20)), left(&[(20.0, "a"), (20.0, "b")]));
    assert_eq!(chain.held(), 0);
    let mut sending = Chain::new(&all(&[&toxic(2, "bandwidth", json!({ "rate": 1 }))]), ms(0), around(0));
    sending.push(piece(0, &[b'x'; 1000]));
    assert_eq!(drain(&mut sending, ms(0), ms(150)).len(), 1);
    sending.adopt(&[], ms(150));
    assert_eq!(drain(&mut sending, ms(150), ms(150))[0].1.len(), 900);
}

#[test]
fn a_changed_latency_applies_to_what_waits() {
    let slow = toxic(1, "latency", json!({ "latency": 1000 }));
    let mut chain = chain(&[&slow]);
    chain.push(piece(0, b"a"));
    assert_eq!(drain(&mut chain, ms(0), ms(50)), []);
    chain.adopt(&all(&[&changed(&slow, json!({ "latency": 200 }))]), ms(50));
    assert_eq!(drain(&mut chain, ms(50), ms(5000)), left(&[(200.0, "a")]));
}

#[test]
fn an_added_toxic_leaves_the_earlier_ones_alone() {
    let first = toxic(1, "latency", json!({ "latency": 100 }));
    let mut chain = chain(&[&first]);
    chain.push(piece(0, b"a"));
    assert_eq!(drain(&mut chain, ms(0), ms(50)), []);
    chain.adopt(&all(&[&first, &toxic(2, "latency", json!({ "latency": 30 }))]), ms(50));
    assert_eq!(drain(&mut chain, ms(50), ms(5000)), left(&[(130.0, "a")]));
}

#[test]
fn toxicity_is_decided_for_each_connection_and_more_includes_less() {
    let affected = |toxicity: f32, seed: u64| -> Vec<u64> {
        let some = ToxicInUse { toxicity, ..toxic(1, "latency", json!({ "latency": 9 })) };
        let is_slow = |connection: &u64| {
            let around = Around { seed: narrows_core::Seed(seed), ..around(*connection) };
            let mut chain = Chain::new(&all(&[&some]), Time::ZERO, around);
            chain.push(piece(0, b"a"));
            drain_all(&mut chain)[0].0 > 0.0
        };
        (0..1000).filter(is_slow).collect()
    };
    assert!(affected(0.0, 1).is_empty());
    assert_eq!(affected(1.0, 1).len(), 1000);
    let (few, many) = (affected(0.2, 1), affected(0.5, 1));
    // 4 standard deviations: 4 · √(1000 · 0.2 · 0.8) = 51.
    assert!((149..251).contains(&few.len()), "{}", few.len());
    assert!(few.iter().all(|connection| many.contains(connection)));
    assert_eq!(few, affected(0.2, 1));
    assert_ne!(few, affected(0.2, 2));
}

#[test]
fn what_waits_is_bounded() {
    let mut chain = chain(&[&toxic(1, "latency", json!({ "latency": 1_000_000 }))]);
    let mut pieces = 0;
    while chain.has_room() {
        chain.push(piece(0, &[0; 1000]));
        chain.advance(Time::ZERO);
        pieces += 1;
    }
    assert_eq!((pieces, chain.held()), (1024, 1_024_000));
    let mut datagrams = Chain::new(&all(&[&toxic(1, "bandwidth", json!({ "rate": 0 }))]), Time::ZERO, udp());
    for _ in 0..3000 {
        datagrams.push_datagram(Piece { at: Time::ZERO, data: Bytes::from_static(b"12345") });
    }
    assert_eq!(datagrams.held(), 5 * 1024);
}

#[test]
fn a_late_poll_moves_nothing_in_any_pattern() {
    let toxics = [
        &toxic(1, "latency", json!({ "latency": 40, "jitter": 30 })),
        &toxic(2, "bandwidth", json!({ "rate": 20 })),
        &toxic(3, "latency", json!({ "latency": 25 })),
    ];
    let exact = {
        let mut chain = chain(&toxics);
        (0..20).for_each(|number| chain.push(piece(number * 5, &[b'x'; 300])));
        drain_all(&mut chain).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(exact.len(), 20);
    for step in [1, 3, 7] {
        let mut chain = chain(&toxics);
        (0..20).for_each(|number| chain.push(piece(number * 5, &[b'x'; 300])));
        let mut late = Vec::new();
        for now in (0..2000).step_by(step).map(ms) {
            chain.advance(now);
            while let Some(Out::Piece(piece)) = chain.take() {
                late.push(piece.at.nanos() as f64 / MS as f64);
                chain.advance(now);
            }
        }
        assert_eq!(late, exact, "polled every {step} ms");
    }
}

#[test]
fn datagrams_are_never_cut() {
    let around = udp();
    let mut slow =
        Chain::new(&all(&[&toxic(1, "bandwidth", json!({ "rate": 1 }))]), Time::ZERO, around.clone());
    slow.push(piece(0, &[b'x'; 500]));
    assert_eq!(
        drain_all(&mut slow).iter().map(|(at, text)| (*at, text.len())).collect::<Vec<_>>(),
        [(500.0, 500)]
    );
    let mut few = Chain::new(&all(&[&toxic(1, "limit_data", json!({ "bytes": 7 }))]), Time::ZERO, around);
    few.push(piece(0, b"12345"));
    assert_eq!(drain_all(&mut few), left(&[(0.0, "12345")]));
    few.push(piece(0, b"678"));
    assert_eq!(drain_all(&mut few), left(&[(0.0, "Close")]));
}

mod link;
