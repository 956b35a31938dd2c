//! The sender alone: its window, its losses, its time-outs.

use narrows_core::model::{Independent, Selector};
use narrows_core::{Bytes, Draw, PacketState, Probability};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// One of so many transmissions is lost, evenly.
#[derive(Debug)]
struct Every {
    nth: u64,
    seen: u64,
}

impl Selector for Every {
    fn selects(&mut self, _: Time, _: &PacketState, _: &mut Draw) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.nth)
    }

    fn mean(&self) -> f64 {
        1.0 / self.nth as f64
    }
}

/// Packets delivered a second after the first `skip` seconds.
fn pace(run: &Run, skip: u64, seconds: u64) -> f64 {
    run.arrived().filter(|seen| seen.at > skip * 1_000_000_000).count() as f64 / (seconds - skip) as f64
}

/// With nothing on its way that takes time, all it ever sends would be sent at one instant.
#[test]
fn a_run_that_stands_still_is_an_error() {
    for round_trip in [Duration::ZERO, Duration::from_nanos(2)] {
        let setup = Setup { round_trip, ..Setup::default() };
        let (mut drive, _) = prepare(setup, &[flow()], Vec::new(), Vec::new());
        drive.rush(10_000);
        let found = drive.run(Some(Time::ZERO + Duration::from_secs(1)));
        assert!(matches!(found, Err(SimError::Rush { .. })), "{found:?}");
    }
    // As many in longer than a moment are none.
    let setup = Setup { rate: Rate::from_bits_per_second(1_000_000_000), ..Setup::default() };
    let (mut drive, _) = prepare(setup, &[flow()], Vec::new(), Vec::new());
    drive.rush(10_000);
    drive.run(Some(Time::ZERO + Duration::from_secs(1))).expect("a gigabit has 83 packets a millisecond");
}

/// Without a limit the window doubles each round trip: 10, 20, 40, … packets, all at one instant.
#[test]
fn slow_start_doubles_the_window() {
    let run = run(Setup::default(), &[flow()], Some(1));
    for (round, packets) in [10, 20, 40, 80, 160, 320, 640, 1280].into_iter().enumerate() {
        let at = 50_000_000 + round as u64 * 100_000_000;
        assert_eq!(run.arrived().filter(|seen| seen.at == at).count(), packets, "round trip {round}");
    }
}

/// When every n-th packet is lost, the window goes from h to 2h, h + 1 round trips with 3/2·(h² + h) packets, and one more
/// with h packets after each loss, before it grows again: n = 3/2·h² + 5/2·h packets in h + 2 round trips. For large n that
/// is the well-known √(3/(2p)) packets a round trip, p = 1/n (Mathis, Semke, Mahdavi, Ott, 1997).
#[test]
fn the_window_is_a_saw() {
    for (nth, seconds, saw) in [(600, 150, 0.01), (2400, 200, 0.01)] {
        let setup = Setup { loss: Some(Loss::of(Every { nth, seen: 0 })), ..Setup::default() };
        let run = run(setup, &[flow()], Some(seconds));
        let found = pace(&run, 50, seconds) * 0.1;
        let n = nth as f64;
        let half = ((6.25 + 6.0 * n).sqrt() - 2.5) / 3.0;
        let exact = n / (half + 2.0);
        assert!((found / exact - 1.0).abs() < saw, "{nth}: {found} {exact}");
        let mathis = (1.5 * n).sqrt();
        assert!((found / mathis - 1.0).abs() < 1.2 / half, "{nth}: {found} {mathis}");
    }
}

/// Three that were sent later have arrived: it is sent again one round trip after, and only once.
#[test]
fn one_lost_packet_is_sent_again_at_the_third_later_acknowledgement() {
    let setup = Setup { loss: Some(Loss::of(Every { nth: 1000, seen: 998 })), ..Setup::default() };
    // The second packet is lost; the first and the third to the tenth arrive at one instant.
    let config = AimdConfig { size: Some(Bytes::new(10 * u64::from(LENGTH))), ..flow() };
    let run = run(setup, &[config], None);
    let arrivals: Vec<_> = run.arrived().map(|seen| seen.arrival / 1_000_000).collect();
    assert_eq!(arrivals, [0, 0, 0, 0, 0, 0, 0, 0, 0, 100]);
    assert_eq!((run.dropped(), run.end.at.nanos(), run.end.stuck), (1, 200_000_000, false));
}

/// Nothing gets through: the time-outs of RFC 6298, 1 s and then twofold up to 60 s, each with one packet, until the sender
/// gives up after 15.
#[test]
fn time_outs_grow_twofold_and_end() {
    let config = AimdConfig { size: Some(Bytes::new(3 * u64::from(LENGTH))), ..flow() };
    let queue = Box::new(Fifo::new(Bound::Packets(0), DropAt::Tail));
    let run = run(Setup { queue, ..Setup::default() }, &[config], None);
    let sent: Vec<u64> = run.seen.iter().map(|seen| seen.arrival / SECOND).collect();
    let mut expected = vec![0, 0, 0, 1, 3, 7, 15, 31, 63];
    expected.extend((2..11).map(|n| 3 + n * 60));
    assert_eq!(sent, expected);
    assert_eq!((run.end.at.nanos(), run.end.stuck), (603 * SECOND, false));
}

/// The wire is down for 10 s, and everything waits there: the flow goes on when it is up again, although what was sent in
/// the meantime, at 1, 3 and 7 s, was needless.
#[test]
fn an_outage_ends() {
    let config = AimdConfig { size: Some(Bytes::new(20 * u64::from(LENGTH))), ..flow() };
    let setup = Setup { rate: Rate::DOWN, ..Setup::default() };
    let up = vec![(Time::from_nanos(10 * SECOND), Rate::UNLIMITED)];
    let run = run_with(setup, &[config], Vec::new(), up, None);
    let arrivals: Vec<u64> = run.arrived().map(|seen| seen.arrival / 1_000_000).collect();
    let mut expected = vec![0; 10];
    expected.extend([1_000, 3_000, 7_000]);
    // 19 are left: slow start once more, from 1 packet to 5, half of what was under way at the first time-out.
    expected.extend(
        [2, 4, 5, 6, 2]
            .into_iter()
            .enumerate()
            .flat_map(|(round, packets)| std::iter::repeat_n(10_100 + 100 * round as u64, packets)),
    );
    assert_eq!(arrivals, expected);
    assert!(!run.end.stuck && run.drive.network.engine.inside() == 0);
}

/// Each acknowledgement says everything, so that most of them may be lost and no packet is sent twice.
#[test]
fn lost_acknowledgements_do_no_harm() {
    let config = AimdConfig { size: Some(Bytes::new(2000 * u64::from(LENGTH))), ..flow() };
    let half = Probability::from_ratio(1, 2).expect("a half is a probability");
    let rate = TEN_MEGABIT;
    let run = run(
        Setup { rate, loss_back: Some(Loss::of(Independent(half))), ..Setup::default() },
        &[config],
        None,
    );
    assert_eq!((run.arrived().count(), run.dropped()), (2000, 0));
    let lost = run.seen.iter().filter(|seen| seen.acknowledges && !seen.delivered).count();
    assert!((900..1100).contains(&lost), "{lost}"); // ten standard deviations are 224
}

/// What is lost is sent again until all has got there, and the run ends then; another run is alike.
#[test]
fn all_of_a_size_gets_there() {
    let size = Some(Bytes::new(500 * u64::from(LENGTH) - 1));
    let tenth = Probability::from_ratio(1, 10).expect("a tenth is a probability");
    let run = || {
        let loss = || Some(Loss::of(Independent(tenth)));
        let setup = Setup { rate: TEN_MEGABIT, loss: loss(), loss_back: loss(), ..Setup::default() };
        let start = Time::from_nanos(SECOND);
        run(
            setup,
            &[flow(), AimdConfig { size, start, ..flow() }].map(|config| AimdConfig { size, ..config }),
            None,
        )
    };
    let once = run();
    for flow in 0..2 {
        let arrived = once.arrived().filter(|seen| seen.flow == flow).count();
        // A time-out may send again what has arrived and whose acknowledgement is lost.
        assert!((500..520).contains(&arrived), "{arrived}");
    }
    assert!(once.arrived().filter(|seen| seen.flow == 1).all(|seen| seen.arrival >= SECOND));
    assert!(once.dropped() > 60);
    assert_eq!(once.seen, run().seen);
}

/// No packet comes at the stop or later, but the acknowledgements of those that came before.
#[test]
fn a_flow_stops() {
    let stop = Time::from_nanos(2 * SECOND);
    let run = run(Setup { rate: TEN_MEGABIT, ..Setup::default() }, &[AimdConfig { stop, ..flow() }], None);
    assert!(run.seen.iter().all(|seen| seen.acknowledges || seen.arrival < stop.nanos()));
    assert_eq!(run.arrived().count(), run.seen.iter().filter(|seen| seen.acknowledges).count());
    assert!(!run.end.stuck);
}
