//! Unresponsive loads: packets that come evenly, whatever becomes of those before them. Nothing is random in them but
//! what the policies draw.

use narrows_core::aqm::{Aqm, Codel, CodelConfig, DualPi2, DualPi2Config, Pie, PieConfig, Red, RedConfig};
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::{Duration, FlowKey, Time};

use crate::drive::{Arrival, MEGABIT, Record, even, mean_millis, merge, run, seconds};

/// 12 Mbit/s for a link of 10: 1000 packets a second, of which 833⅓ can go.
fn overload(until: u64) -> Vec<Arrival> {
    even(1, FlowKey::NOT_ECN_CAPABLE, 1500, Duration::from_millis(1), Time::ZERO, seconds(until))
}

/// What became of the overload from the tenth second on, in which every policy has long settled.
fn settled(policy: Box<dyn Aqm>, until: u64) -> Vec<Record> {
    let queue = Box::new(Fifo::managed(Bound::Packets(1_000), DropAt::Tail, policy));
    let records = run(queue, 10 * MEGABIT, &overload(until));
    records.into_iter().filter(|r| r.at >= seconds(10) && r.at < seconds(until)).collect()
}

fn drop_share(records: &[Record]) -> f64 {
    records.iter().filter(|record| !record.sent()).count() as f64 / records.len() as f64
}

fn mean_wait(records: &[Record]) -> f64 {
    mean_millis(records.iter().filter(|record| record.sent()).map(|record| record.waited))
}

/// The mean sojourn in milliseconds that CoDel's control law gives for a fluid of 1000 packets a second, of which 833⅓
/// can go: what waits grows by the difference, less √count/interval drops a second while it drops. As drops are at the
/// head, all that came during the sojourn of the packet at the head still waits: the sojourn is 1 ms for each.
fn fluid_sojourn_of_codel() -> f64 {
    let (step, surplus, interval, target) = (1e-4, 1_000.0 - 10e6 / 12e3, 0.1, 5.0);
    let (mut waiting, mut count, mut count_at_start) = (0.0, 0.0_f64, 0.0);
    let (mut dropping, mut above) = (false, 0.0);
    let (mut sum, mut steps) = (0.0, 0);
    for index in 0..1_000_000 {
        waiting += surplus * step;
        if dropping {
            let dropped = count.sqrt() / interval * step;
            waiting -= dropped;
            count += dropped;
        }
        above = if waiting >= target { above + step } else { 0.0 };
        if !dropping && above >= interval {
            let drops: f64 = count - count_at_start;
            (count, dropping) = (drops.max(1.0), true);
            count_at_start = count;
        }
        dropping &= above > 0.0;
        if index >= 100_000 {
            (sum, steps) = (sum + waiting, steps + 1);
        }
    }
    sum / f64::from(steps)
}

/// By design: CoDel drops at a rate that creeps up to what is needed and stays there too long, then has forgotten it. The
/// sojourn swings between a few and 130 ms, around 80 ms and not 5.
#[test]
fn unresponsive_overload_is_not_held_at_the_target() {
    let config = CodelConfig::default();
    let records = settled(Box::new(Codel::new(config)), 110);
    let (mean, fluid) = (mean_wait(&records), fluid_sojourn_of_codel());
    assert!((fluid - 80.0).abs() < 8.0, "the control law gives {fluid} ms");
    // A fluid drops fractions of packets, and knows no packet on the wire.
    assert!((mean / fluid - 1.0).abs() < 0.05, "{mean} ms, where the control law gives {fluid} ms");
    assert!((drop_share(&records) - 1.0 / 6.0).abs() < 0.002, "{}", drop_share(&records));
}

/// PIE does hold its target: its controller integrates the deviation. The delay of a packet that is sent swings with the
/// random drops, by some 6 ms, and hangs together over a few updates of 15 ms: in 100 seconds there are more than 1000
/// spans apart enough to count, so the standard error of the mean is below 0.2 ms.
#[test]
fn pie_holds_its_target_against_an_unresponsive_overload() {
    let records = settled(Box::new(Pie::new(PieConfig::default())), 110);
    let mean = mean_wait(&records);
    assert!((mean - 15.0).abs() < 0.8, "{mean} ms");
    assert!((drop_share(&records) - 1.0 / 6.0).abs() < 0.002, "{}", drop_share(&records));
}

/// RED settles where it drops a sixth. The distances from drop to drop are even over 1 … 1/p_b, 6 on average where p_b is
/// 1/11: for a probability of 0.1 at 15 packets and 0 at 5 that is an average of 14.1 packets, of 1.2 ms each.
#[test]
fn red_settles_where_its_curve_drops_the_surplus() {
    let records = settled(Box::new(Red::new(RedConfig::default())), 110);
    let expected = (5.0 + 10.0 / 1.1) * 1.2;
    let mean = mean_wait(&records);
    assert!((mean / expected - 1.0).abs() < 0.03, "{mean} ms, not {expected} ms");
    assert!((drop_share(&records) - 1.0 / 6.0).abs() < 0.002, "{}", drop_share(&records));
}

/// C is offered the whole link and more, L a few percent. What C must lose is known, c; so p′ = √c, and of L's packets
/// 2·√c are marked. C's delay is the target, L's never more than one packet of C that is on the wire.
#[test]
fn dualpi2_couples_marks_to_drops_and_keeps_low_latency_low() {
    // The gaps in microseconds of C's packets of 1500 bytes and L's of 1000: 10 + 0.4 Mbit/s, and 9.23 + 1.6 Mbit/s.
    for (classic, low) in [(1_200, 20_000), (1_300, 5_000)] {
        let flow = |number, ecn, length, gap| {
            even(number, ecn, length, Duration::from_micros(gap), Time::ZERO, seconds(60))
        };
        let load =
            merge([flow(1, FlowKey::NOT_ECN_CAPABLE, 1500, classic), flow(2, FlowKey::ECT_1, 1000, low)]);
        let queue = Box::new(DualPi2::new(DualPi2Config::default(), Bound::Packets(10_000)));
        let records = run(queue, 10 * MEGABIT, &load);
        let of = |flow| {
            let late =
                |record: &&Record| record.flow == flow && record.at >= seconds(20) && record.at < seconds(60);
            records.iter().filter(late).copied().collect::<Vec<_>>()
        };
        let (classics, lows) = (of(1), of(2));

        let offered = 12_000.0 / classic as f64;
        let surplus = 1.0 - (10.0 - 8_000.0 / low as f64) / offered;
        let drops = drop_share(&classics);
        assert!((drops - surplus).abs() < 0.001, "{drops}, not {surplus}");
        assert_eq!(drop_share(&lows), 0.0);
        let marked = lows.iter().filter(|r| r.ecn == FlowKey::CONGESTION_EXPERIENCED).count() as f64;
        let marks = marked / lows.len() as f64;
        // Nothing is drawn: what is off is one mark, and the wandering of p′.
        assert!((marks - 2.0 * surplus.sqrt()).abs() < 0.005, "{marks}, not twice √{surplus}");

        let target = mean_wait(&classics);
        assert!((target - 15.0).abs() < 0.6, "{target} ms");
        let longest = lows.iter().map(|record| record.waited).max().expect("there are some");
        assert!(longest <= Duration::from_micros(1_200), "{longest}");
    }
}
