//! Certificates: bounds on lateness requested for a run, whether they were met, and when not.
//!
//! Lateness is release lateness: the instant at which a packet was handed to the system, minus the instant at which
//! the engine scheduled it. A packet that the system lost before it could be read, or refused to send, was never
//! released: it counts as later than any bound. So `p99=50us` allows one packet in a hundred to be late or lost, and
//! `max` allows none.
//!
//! Both instants depend on the packets' receive timestamps. A run with an implausible receive timestamp keeps no
//! bound.

use narrows_core::Duration;
use serde::{Deserialize, Serialize};

use crate::figures::{Spread, share};
use crate::totals::Totals;
use crate::watch::{LatenessBound, Quantile, ViolationInterval, Watch};

/// The result for a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The quantile that must be within the bound.
    pub quantile: Quantile,
    /// The bound.
    pub bound_ns: u64,
    /// The measured lateness at that quantile; `None` without packets, and where so many packets were lost that it is
    /// unbounded.
    pub measured_ns: Option<u64>,
    /// Packets that were released later than the bound, or lost by the system.
    pub later_packets: u64,
    /// Their share of all packets that were released or lost by the system.
    pub later_share: f64,
    /// Packets with implausible receive timestamps: if there is one, the lateness is unknown.
    pub implausible_stamp_packets: u64,
    /// Whether the bound is met. True without packets; false with an implausible timestamp.
    #[serde(alias = "kept")]
    pub met: bool,
}

/// When packets were later than a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessViolation {
    /// The bound: a requested one, or 1 ms if none was requested.
    pub bound_ns: u64,
    /// Packets that were released later.
    pub packets: u64,
    /// Their share of the packets released.
    pub share: f64,
    /// The intervals, in order of time, at most 16: if there were more, neighbouring ones are merged.
    pub intervals: Vec<ViolationInterval>,
}

/// When a run exceeded its bounds. Empty in virtual time, and for bounds that were never exceeded.
pub(crate) fn violations(totals: &Totals) -> Vec<LatenessViolation> {
    let released = totals.lateness.as_ref().map_or(0, Spread::count);
    totals.watches.iter().filter(|watch| watch.packets > 0).map(|watch| of_watch(watch, released)).collect()
}

fn of_watch(watch: &Watch, released: u64) -> LatenessViolation {
    LatenessViolation {
        bound_ns: watch.bound.nanos(),
        packets: watch.packets,
        share: share(watch.packets, released),
        intervals: watch.intervals.clone(),
    }
}

/// The results for the requested bounds.
pub(crate) fn certificates(totals: &Totals) -> Vec<Certificate> {
    totals.bounds.iter().map(|bound| certificate(*bound, totals)).collect()
}

fn certificate(bound: LatenessBound, totals: &Totals) -> Certificate {
    let LatenessBound { quantile, at_most } = bound;
    let (all, lost) = (totals.lateness.as_ref(), totals.lost);
    let watch = totals.watches.iter().find(|watch| watch.bound == at_most);
    let released = all.map_or(0, Spread::count);
    let sum = released + lost;
    let later = watch.map_or(0, |watch| watch.packets) + lost;
    // How many packets may be later: what the quantile leaves, rounded down.
    let spare = u128::from(sum) * u128::from(1000 - quantile.thousandths()) / 1000;
    // The smallest value that enough packets do not exceed; lost packets have none.
    let needed = u128::from(sum) - spare;
    let is_within = u128::from(later) <= spare;
    let measured = all.filter(|_| needed <= u128::from(released)).map(|all| {
        let exact = needed == u128::from(released);
        let measured = if exact { all.greatest() } else { all.quantile(needed as f64 / released as f64) };
        // The histogram has a relative error of half a part in a thousand; the count of later packets is exact.
        if is_within { measured.min(at_most) } else { measured.max(at_most + Duration::from_nanos(1)) }
    });
    Certificate {
        quantile,
        bound_ns: at_most.nanos(),
        measured_ns: measured.map(Duration::nanos),
        later_packets: later,
        later_share: share(later, sum),
        implausible_stamp_packets: totals.implausible_stamps,
        met: is_within && totals.implausible_stamps == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;
    use crate::watch::MOST_INTERVALS;
    use narrows_core::{NetworkConfig, PortConfig, Seed, Target, Time};

    fn port() -> narrows_core::PortId {
        let mut config = NetworkConfig::new(Seed(1));
        config.ports.push(PortConfig { name: "a".into(), entry: Target::Port("a".into()) });
        narrows_core::Engine::<()>::new(config).unwrap().port("a").unwrap()
    }

    fn meter(bounds: &[(Quantile, u64)], lateness: impl IntoIterator<Item = u64>) -> Meter {
        let mut meter = Meter::new(1);
        meter.certify(
            bounds.iter().map(|&(quantile, micros)| LatenessBound {
                quantile,
                at_most: Duration::from_micros(micros),
            }),
        );
        for (number, micros) in lateness.into_iter().enumerate() {
            let scheduled = Time::from_nanos(number as u64 * 1_000_000);
            meter.released(port(), scheduled, Duration::from_micros(micros));
        }
        meter
    }

    fn kept(meter: &Meter) -> Vec<bool> {
        certificates(&Totals::of(meter)).iter().map(|certificate| certificate.met).collect()
    }

    #[test]
    fn a_bound_holds_up_to_the_last_packet_that_may_break_it() {
        use Quantile::{Max, Median, P90, P99, P999};
        let bounds = [(Median, 10), (P90, 10), (P99, 10), (P999, 10), (Max, 10)];
        let late = |late: usize| meter(&bounds, (0..1000).map(|n| if n < late { 11 } else { 10 }));
        assert_eq!(kept(&late(0)), [true; 5]);
        assert_eq!(kept(&late(1)), [true, true, true, true, false]);
        assert_eq!(kept(&late(2)), [true, true, true, false, false]);
        assert_eq!(kept(&late(10)), [true, true, true, false, false]);
        assert_eq!(kept(&late(11)), [true, true, false, false, false]);
        assert_eq!(kept(&late(101)), [true, false, false, false, false]);
        assert_eq!(kept(&late(501)), [false; 5]);
        let measured: Vec<_> = certificates(&Totals::of(&late(11))).iter().map(|c| c.measured_ns).collect();
        assert_eq!(measured, [10_000, 10_000, 11_000, 11_000, 11_000].map(Some));
        assert_eq!(kept(&meter(&bounds, [])), [true; 5], "no packet was late");
        assert_eq!(certificates(&Totals::of(&meter(&bounds, [])))[0].measured_ns, None);
    }

    #[test]
    fn what_the_system_lost_is_later_than_any_bound() {
        let bounds = [(Quantile::P99, 1_000_000), (Quantile::Max, 1_000_000)];
        let mut meter = meter(&bounds, (0..99).map(|_| 5));
        meter.receive_ring_dropped(port(), 1);
        assert_eq!(kept(&meter), [true, false]);
        let [p99, max] = &certificates(&Totals::of(&meter))[..] else { panic!("two bounds") };
        assert_eq!((p99.measured_ns, p99.later_packets, p99.later_share), (Some(5_000), 1, 0.01));
        assert_eq!(max.measured_ns, None, "there is no greatest");
        meter.send_failed(port(), 1);
        assert_eq!(kept(&meter), [false, false]);
    }

    #[test]
    fn meters_of_one_time_after_the_other_add_up_to_one_of_the_whole() {
        let bounds = [(Quantile::P99, 20), (Quantile::Max, 90)];
        let lateness = |n: u64| if n % 10 == 3 { 100 + n } else { n % 17 };
        let mut whole = meter(&bounds, []);
        let mut parts = [meter(&bounds, []), meter(&bounds, []).successor(), meter(&bounds, []).successor()];
        for n in 0..300u64 {
            let scheduled = Time::from_nanos(n * 1_000_000);
            for meter in [&mut whole, &mut parts[(n / 100) as usize]] {
                meter.released(port(), scheduled, Duration::from_micros(lateness(n)));
                meter.input_lateness(port(), Duration::from_micros(n));
                meter.sent(Duration::from_micros(2 * n));
                meter.receive_ring_dropped(port(), n % 3);
            }
        }
        let mut sum = meter(&bounds, []);
        // One that was in use before is as good as a new one.
        let mut used = meter(&bounds, [500; 50]);
        used.clear();
        used.add(&parts[1]);
        [&parts[0], &used, &parts[2]].into_iter().for_each(|part| sum.add(part));
        let all = |meter: &Meter| {
            let totals = Totals::of(meter);
            let spreads = [&totals.lateness, &totals.input_lateness, &totals.sent]
                .map(|spread| crate::figures::quantiles(spread.as_ref().unwrap()));
            (spreads, certificates(&totals), violations(&totals), totals.later_than, totals.lost)
        };
        assert_eq!(all(&sum), all(&whole));
    }

    #[test]
    fn one_implausible_stamp_breaks_every_bound() {
        let bounds = [(Quantile::Median, 1_000_000), (Quantile::Max, 1_000_000)];
        let mut meter = meter(&bounds, (0..1000).map(|_| 5));
        assert_eq!(kept(&meter), [true, true]);
        meter.implausibly_stamped();
        assert_eq!(kept(&meter), [false, false]);
        let mut all = Totals::of(&Meter::new(1));
        all.add(&Totals::of(&meter));
        assert_eq!(all.implausible_stamps, 1, "of another thread");
        let [median, max] = &certificates(&Totals::of(&meter))[..] else { panic!("two bounds") };
        assert_eq!((median.measured_ns, median.later_packets), (Some(5_000), 0));
        let sentence = "max at most 1 s, VIOLATED: 5.000 µs; 1 packet had impossible receive timestamps";
        assert_eq!(max.sentence(), sentence);
    }

    #[test]
    fn late_packets_within_ten_milliseconds_are_one_interval() {
        // One packet a millisecond: late are number 3 to 5, 20, and 40 for 15 ms, which reaches to number 60.
        let lateness = |n| match n {
            3..=5 => 200,
            20 => 300,
            40 => 15_000,
            60 => 101,
            _ => 100,
        };
        let meter = meter(&[(Quantile::Max, 100)], (0..100).map(lateness));
        let [violation] = &violations(&Totals::of(&meter))[..] else { panic!("one bound") };
        assert_eq!((violation.packets, violation.share), (6, 0.06));
        let seen: Vec<_> = violation.intervals.iter().map(|i| (i.start_ns, i.end_ns, i.packets)).collect();
        assert_eq!(
            seen,
            [(3_000_000, 5_200_000, 3), (20_000_000, 20_300_000, 1), (40_000_000, 60_101_000, 2)]
        );
        assert_eq!(violation.intervals[2].max_ns, 15_000_000);
    }

    #[test]
    fn of_many_intervals_the_nearest_are_joined_and_no_packet_is_forgotten() {
        // One late packet every 20 ms, but for two that are 12 ms apart.
        let mut watch = Watch::new(Duration::from_micros(1));
        for n in 0..100 {
            let at = n * 20_000_000 - if n == 7 { 8_000_000 } else { 0 };
            watch.released(Time::from_nanos(at), Duration::from_micros(2 + n));
            if n == 16 {
                let joined = watch.intervals.iter().position(|i| i.packets == 2).unwrap();
                assert_eq!(watch.intervals[joined].start_ns, 6 * 20_000_000);
            }
        }
        assert_eq!(watch.intervals.len(), MOST_INTERVALS);
        assert_eq!(watch.intervals.iter().map(|i| i.packets).sum::<u64>(), 100);
        assert!(watch.intervals.windows(2).all(|pair| pair[0].end_ns < pair[1].start_ns));
    }

    #[test]
    fn a_run_that_was_asked_for_nothing_watches_for_a_millisecond() {
        let meter = meter(&[], [999, 1000, 1001]);
        assert!(certificates(&Totals::of(&meter)).is_empty());
        let violation = violations(&Totals::of(&meter));
        assert_eq!((violation.len(), violation[0].bound_ns, violation[0].packets), (1, 1_000_000, 1));
    }

    #[test]
    fn two_watches_add_up_to_one_that_saw_it_all() {
        let bound = Duration::from_micros(1);
        let (mut whole, mut one, mut other) = (Watch::new(bound), Watch::new(bound), Watch::new(bound));
        // Bursts of three, 3 ms apart, that the two see in turns; between bursts it is long enough.
        for n in 0..30u64 {
            let at = Time::from_nanos(n / 3 * 40_000_000 + n % 3 * 3_000_000);
            let late = Duration::from_micros(2 + n * 7 % 11);
            whole.released(at, late);
            if n % 2 == 0 { one.released(at, late) } else { other.released(at, late) }
        }
        one.add(&other);
        assert_eq!((one.packets, &one.intervals), (whole.packets, &whole.intervals));
        for n in 0..40u64 {
            other.released(Time::from_nanos(2_000_000_000 + n * 50_000_000), Duration::from_micros(2));
        }
        whole.add(&other);
        assert_eq!(whole.intervals.len(), MOST_INTERVALS);
        assert_eq!(whole.intervals.iter().map(|i| i.packets).sum::<u64>(), whole.packets);
    }
}
