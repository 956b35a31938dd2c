//! Exact instants, worked by hand from the standard's timings.

use narrows_core::sched::{Dcf, DcfConfig, FlowConfig, FlowId, Refused, Served, Server, Weight};
use narrows_core::{Duration, PacketRef, Rate, Time};

use crate::air::{Air, ELEVEN, What, micros, stream};

/// The backoffs of a stream, in their order, as the standard has them: uniform in 0…window.
fn backoffs(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut drawn = 0;
    move |window| {
        drawn += 1;
        stream(seed).nth(drawn - 1).below(window + 1)
    }
}

#[test]
fn one_station_with_packets_sends_in_exact_cycles() {
    // The time of an exchange, in µs, with long preambles at 11 Mbit/s and ACKs at 2 Mbit/s:
    // preamble 192, PSDU ceil(8·(length + 36)/11), SIFS 10, ACK 192 + 56, DIFS 50; with short ones 96 in place of 192.
    let short = DcfConfig { preamble: DcfConfig::SHORT_PREAMBLE, ..DcfConfig::default() };
    for (config, length, exchange) in [
        (DcfConfig::default(), 1500, 192 + 1118 + 10 + 192 + 56 + 50),
        (DcfConfig::default(), 64, 192 + 73 + 10 + 192 + 56 + 50),
        (short, 1500, 96 + 1118 + 10 + 96 + 56 + 50),
    ] {
        let mut air = Air::saturated(config, 1, length, 7);
        air.run_until_done(20_000);
        let mut backoff = backoffs(7);
        // The medium has always been idle: the first goes at once.
        let mut psdu = config.preamble.nanos() / 1000;
        for done in &air.done {
            assert_eq!((done.at, done.what), (micros(psdu), What::Sends(length)));
            psdu += exchange + 20 * backoff(31);
        }
        // And so the throughput is the closed form's, up to the draws: a standard deviation of a backoff is
        // √((32² − 1)/12) = 9.23 slots, and so the mean of 20,000 has a standard error of 0.065 slots or 1.3 µs.
        let mean = (psdu - config.preamble.nanos() / 1000) as f64 / 20_000.0;
        let closed_form = exchange as f64 + 15.5 * 20.0;
        assert!((mean - closed_form).abs() < 4.0 * 1.3, "{mean} {closed_form}");
    }
}

#[test]
fn rates_of_the_data_and_the_answers() {
    // The second PSDU of a station: after 192 + PSDU + 10 + ACK + 50 + backoff + 192 µs. At 1 Mbit/s the answer cannot
    // be faster than the data.
    for (rate, psdu, ack) in [
        (1_000_000, 8 * 1036, 112),
        (2_000_000, 4 * 1036, 56),
        (5_500_000, 1507, 56), // 1506.9
        (11_000_000, 754, 56), // 753.5
    ] {
        let mut air = Air::new(DcfConfig::default(), Rate::from_bits_per_second(rate), 1, 3);
        (0..2).for_each(|_| air.arrive(Time::ZERO, 0, 1000));
        air.run_until(Time::from_nanos(u64::MAX / 2));
        let backoff = 20 * backoffs(3)(31);
        let instants: Vec<_> = air.done.iter().map(|done| done.at).collect();
        assert_eq!(instants, [192, 192 + psdu + 10 + 192 + ack + 50 + backoff + 192].map(micros));
    }
}

#[test]
fn access_is_immediate_when_the_medium_has_been_idle_and_the_backoff_after_the_last_frame_is_over() {
    let mut air = Air::new(DcfConfig::default(), ELEVEN, 2, 5);
    let mut backoff = backoffs(5);
    air.arrive(micros(1000), 0, 1500); // PSDU 1192 to 2310, ACK until 2568, slots from 2618
    let own = backoff(31);
    air.run_until(micros(2610));
    // Within DIFS: no backoff, but the rest of DIFS.
    air.arrive(micros(2610), 1, 1500);
    air.run_until(micros(5000));
    assert_eq!(air.done[1].at, micros(2618 + 192));
    let other = backoff(31);
    // The other's exchange froze the first station's backoff; it ends 618 later than that of the exchange.
    let slots_from = 2618 + 192 + 1118 + 258 + 50;
    let (own, other) = (slots_from + 20 * own, slots_from + 20 * other);
    assert!(own > slots_from && other > slots_from, "a seed that shows it");
    // A packet that comes while its station's backoff runs waits for its end.
    air.arrive(micros(slots_from + 1), 0, 64);
    air.run_until(micros(own + 192));
    assert_eq!(air.done[2].at, micros(own + 192));
    // One that comes long after goes at once.
    air.run_until(micros(100_000));
    air.arrive(micros(100_003), 1, 64);
    air.run_until(micros(200_000));
    assert_eq!(air.done[3].at, micros(100_003 + 192));
}

#[test]
fn a_busy_medium_makes_newcomers_back_off_and_freezes_them() {
    let mut air = Air::new(DcfConfig::default(), ELEVEN, 3, 11);
    let mut backoff = backoffs(11);
    air.arrive(Time::ZERO, 0, 1500);
    air.arrive(micros(10), 1, 1500);
    air.arrive(micros(20), 2, 1500);
    let (one, two) = (backoff(31), backoff(31));
    assert_ne!(one, two, "a seed without a collision");
    air.run_until(micros(50_000));
    let slots_from = 192 + 1118 + 258 + 50;
    let first = slots_from + 20 * one.min(two) + 192;
    let second = first + 1118 + 258 + 50 + 20 * (one.max(two) - one.min(two)) + 192;
    let instants: Vec<_> = air.done.iter().map(|done| done.at).collect();
    assert_eq!(instants, [192, first, second].map(micros));
}

/// Who starts at an instant is known when it is over.
fn just_after(instant: u64) -> Time {
    micros(instant) + Duration::from_nanos(1)
}

/// Frames that start at one instant collide, whether their packets have come then or waited for it.
#[test]
fn packets_that_come_at_one_instant_collide() {
    let config = DcfConfig { window_min: 0, window_max: 0, retry_limit: 1, ..DcfConfig::default() };
    // A collision of 192 + 1118, which is known after 314 more.
    let given_up = |instant: u64| (micros(instant + 192 + 1118 + 314), What::GivesUp);
    let done = |air: &mut Air| {
        air.run_until(micros(50_000));
        air.done.iter().map(|done| (done.at, done.what)).collect::<Vec<_>>()
    };
    // On an idle medium, also amid a slot.
    for instant in [0, 1003] {
        let mut air = Air::new(config, ELEVEN, 3, 1);
        for (station, length) in [(0, 64), (2, 1500), (1, 500)] {
            air.arrive(micros(instant), station, length);
        }
        assert_eq!(done(&mut air), [given_up(instant); 3]);
        let counters = air.server.scheduler().counters();
        assert_eq!((counters.exchanges, counters.collisions, counters.collided), (0, 1, 3));
    }
    // A nanosecond later the medium is busy: that one backs off.
    let mut air = Air::new(config, ELEVEN, 2, 1);
    air.arrive(Time::ZERO, 0, 1500);
    air.arrive(Time::from_nanos(1), 1, 1500);
    let slots_from = 192 + 1118 + 258 + 50;
    let sent = |instant| (micros(instant), What::Sends(1500));
    assert_eq!(done(&mut air), [sent(192), sent(slots_from + 192)]);
    // At the end of DIFS, which is that of the other's backoff.
    let mut air = Air::new(config, ELEVEN, 2, 1);
    (0..2).for_each(|_| air.arrive(Time::ZERO, 0, 1500));
    air.arrive(micros(slots_from), 1, 1500);
    assert_eq!(done(&mut air), [sent(192), given_up(slots_from), given_up(slots_from)]);
}

/// Two stations whose window has one slot always collide: the retry limit, EIFS, and the longest frame, by hand.
#[test]
fn collisions_last_as_long_as_the_longest_frame_and_end_at_the_retry_limit() {
    let config = DcfConfig { window_min: 0, window_max: 0, retry_limit: 3, ..DcfConfig::default() };
    let mut air = Air::new(config, ELEVEN, 3, 1);
    air.arrive(Time::ZERO, 0, 64);
    air.arrive(micros(1), 1, 1500);
    air.arrive(micros(2), 2, 500);
    air.run_until(micros(50_000));
    // The first exchange: 192 + 73 + 258 + 50 = 573. Then three collisions of 192 + 1118, with EIFS 10 + 304 + 50 in
    // between; the stations know 314 after the third.
    let given_up = 573 + 3 * 1310 + 2 * 364 + 314;
    let expected = [(192, 0, What::Sends(64)), (given_up, 1, What::GivesUp), (given_up, 2, What::GivesUp)];
    let found: Vec<_> = air.done.iter().map(|done| (done.at, done.station, done.what)).collect();
    assert_eq!(found, expected.map(|(at, station, what)| (micros(at), station, what)));
    let counters = air.server.scheduler().counters();
    assert_eq!((counters.exchanges, counters.collisions, counters.collided), (1, 3, 6));
}

#[test]
fn the_window_of_a_second_attempt_has_64_slots() {
    // Three stations: one sends, and two that came meanwhile draw the same backoff. A seed whose draws after that
    // collision are beyond the first window shows that the second is wider.
    let draws = |seed| {
        let mut backoff = backoffs(seed);
        let (one, two, _first_again) = (backoff(31), backoff(31), backoff(31));
        (one, two, backoff(63), backoff(63))
    };
    let (seed, (one, _, again, other)) = (0..)
        .map(|seed| (seed, draws(seed)))
        .find(|&(_, (one, two, again, other))| one == two && again > 31 && other > again)
        .unwrap();
    let mut air = Air::new(DcfConfig::default(), ELEVEN, 3, seed);
    air.arrive(Time::ZERO, 0, 1500);
    air.arrive(micros(1), 1, 1500);
    air.arrive(micros(2), 2, 1500);
    air.run_until(micros(50_000));
    let collision = 192 + 1118 + 258 + 50 + 20 * one;
    let slots_from = collision + 192 + 1118 + 364;
    let (first, second) = (slots_from + 20 * again + 192, 1118 + 258 + 50 + 20 * (other - again) + 192);
    let instants: Vec<_> = air.done[1..].iter().map(|done| done.at).collect();
    assert_eq!(instants, [first, first + second].map(micros));
}

#[test]
fn rts_and_cts_come_before_long_frames_and_make_their_collisions_short() {
    let config = DcfConfig {
        rts_threshold: Some(500),
        window_min: 0,
        window_max: 0,
        retry_limit: 1,
        ..DcfConfig::default()
    };
    let mut air = Air::new(config, ELEVEN, 3, 1);
    air.arrive(Time::ZERO, 0, 465); // 501 bytes: RTS 192 + 80, SIFS, CTS 192 + 56, SIFS, preamble
    let psdu = 272 + 10 + 248 + 10 + 192;
    air.arrive(micros(1), 1, 1500);
    air.arrive(micros(2), 2, 1500);
    air.run_until(micros(50_000));
    assert_eq!(air.done[0].at, micros(psdu));
    // 365 µs for 501 bytes; then two RTS collide.
    let given_up = psdu + 365 + 258 + 50 + 272 + 314;
    assert_eq!(air.done[1].at, micros(given_up));
    let mut air = Air::new(config, ELEVEN, 1, 1);
    air.arrive(Time::ZERO, 0, 464);
    air.run_until(micros(1000));
    assert_eq!(air.done[0].at, micros(192), "500 bytes go without");
}

#[test]
fn weights_are_unknown_and_stations_come_and_go() {
    let mut server = Server::new(Dcf::new(DcfConfig::default(), stream(1)));
    let station = server.join(FlowConfig::default()).unwrap();
    let refused = server.set_weight(Time::ZERO, station, Weight::ONE);
    assert_eq!(refused, Err(Refused::NoWeights));
    server.enqueue(Time::ZERO, station, PacketRef::from_number(1), 100);
    assert!(!server.leave(station), "something waits");
    assert_eq!(server.dequeue(Time::ZERO), Served::NotBefore(just_after(0)));
    assert_eq!(server.dequeue(just_after(0)), Served::NotBefore(micros(192)));
    assert!(matches!(server.dequeue(micros(192)), Served::Packet(..)));
    assert!(server.leave(station));
    // Another station takes the number; nothing of the backoff of the first is left.
    let other = server.join(FlowConfig::default()).unwrap();
    assert_eq!(other, station);
    assert_eq!(server.dequeue(micros(300)), Served::Empty);
    server.enqueue(micros(5_000), other, PacketRef::from_number(2), 100);
    assert_eq!(server.dequeue(just_after(5_000)), Served::NotBefore(micros(5_192)));
}

#[test]
fn heads_that_are_dropped_take_their_station_out_of_the_contention() {
    let mut server = Server::new(Dcf::new(DcfConfig::default(), stream(1)));
    let stations: Vec<FlowId> = (0..2).map(|_| server.join(FlowConfig::default()).unwrap()).collect();
    let packet = PacketRef::from_number;
    // While the preamble is on the air: the next packet goes in place of the first.
    server.enqueue(Time::ZERO, stations[0], packet(1), 100);
    server.enqueue(Time::ZERO, stations[0], packet(2), 100);
    assert_eq!(server.drop_first(micros(100), stations[0]).unwrap().packet, packet(1));
    let Served::Packet(_, sent) = server.dequeue(micros(192)) else { panic!("its PSDU starts") };
    assert_eq!(sent.packet, packet(2));
    // While it backs off: it leaves the contention.
    server.enqueue(micros(200), stations[1], packet(3), 100);
    assert!(matches!(server.dequeue(micros(291)), Served::NotBefore(_)));
    server.drop_first(micros(292), stations[1]);
    assert_eq!(server.dequeue(micros(293)), Served::Empty);
    // While its preamble is on the air and nothing else waits: the medium is idle after that.
    server.enqueue(micros(10_000), stations[1], packet(4), 100);
    assert_eq!(server.dequeue(just_after(10_000)), Served::NotBefore(micros(10_192)));
    server.drop_first(micros(10_010), stations[1]);
    assert_eq!(server.dequeue(micros(10_020)), Served::Empty);
    server.enqueue(micros(10_200), stations[0], packet(5), 100);
    assert_eq!(server.dequeue(micros(10_200)), Served::NotBefore(just_after(10_192 + 50)), "within DIFS");
    assert_eq!(server.dequeue(just_after(10_242)), Served::NotBefore(micros(10_242 + 192)));
}
