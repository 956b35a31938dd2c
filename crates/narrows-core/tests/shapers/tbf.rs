use narrows_core::queue::Wire as OnWire;
use narrows_core::sched::{Mode, Peak, Scheduler, ShapingError, ShapingFault, Tbf, TbfConfig};
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{History, Wire, mbit, seconds};

fn tbf(config: TbfConfig) -> Tbf {
    Tbf::new(config).expect("in range")
}

/// Without drift: the n-th packet of 997 bytes at 7 Mbit/s, after a burst of 3000 bytes, goes at the first nanosecond at
/// which 7·t bits make up n·997 bytes but for the burst, for as many as it takes for a rounding of each to show.
#[test]
fn departures_are_the_closed_form_to_the_nanosecond() {
    let config = TbfConfig { rate: mbit(7), burst: Bytes::new(3_000), ..TbfConfig::default() };
    let mut wire = Wire::new(tbf(config), 1, Rate::UNLIMITED);
    wire.saturate(seconds(100), &[0], 997);
    assert_eq!(wire.sent.len() as u64, (7_000_000 * 100 / 8 + 3_000 - 1) / 997);
    for (n, &(at, ..)) in (1u128..).zip(&wire.sent) {
        let missing = (n * 997).saturating_sub(3_000) * 8_000_000_000;
        assert_eq!(u128::from(at.nanos()), missing.div_ceil(7_000_000), "packet {n}");
    }
    let [state] = wire.states()[..] else { panic!("one class") };
    assert_eq!((state.mode, state.sent.packets), (Mode::CannotSend, wire.sent.len() as u64));
    assert_eq!(state.over_limit, wire.waits.len() as u64);
}

/// With a peak rate of 40 Mbit/s and an MTU of 1500 bytes the burst goes at that, and then the rate.
#[test]
fn a_peak_rate_spreads_the_burst() {
    let peak = Some(Peak { rate: mbit(40), mtu: Bytes::new(1_500) });
    let config = TbfConfig { rate: mbit(8), burst: Bytes::new(15_000), peak, mpu: Bytes::new(0) };
    let mut wire = Wire::new(tbf(config), 1, Rate::UNLIMITED);
    wire.saturate(seconds(1), &[0], 1_500);
    // The n-th goes when 40·t and 15,000 + 8·t bytes allow n of them.
    for (n, &(at, ..)) in (1u64..).zip(&wire.sent) {
        let at_peak = (n - 1) * 300_000;
        let at_rate = (n * 1_500).saturating_sub(15_000) * 1_000;
        assert_eq!(at.nanos(), at_peak.max(at_rate), "packet {n}");
    }
    assert!(wire.burst(&[0], mbit(40)) <= 12_000.0 + 1e-3);
    assert!(wire.burst(&[0], mbit(8)) <= 120_000.0 + 1e-3);
}

#[test]
fn a_packet_that_no_full_bucket_pays_for_is_given_up() {
    let config = TbfConfig { rate: mbit(1), burst: Bytes::new(1_000), ..TbfConfig::default() };
    let mut wire = Wire::new(tbf(config), 1, Rate::UNLIMITED);
    for length in [1_001, 1_000, 60_000, 1] {
        wire.arrive(0, length);
    }
    wire.run(seconds(1), |_| {});
    let lengths: Vec<u32> = wire.sent.iter().map(|&(.., length)| length).collect();
    assert_eq!((lengths, wire.given_up), (vec![1_000, 1], 2));
    // With a link header of 14 bytes the second one is too long, too.
    let mut framed = tbf(config);
    framed.set_wire(Time::ZERO, OnWire { rate: Rate::UNLIMITED, overhead: Overhead::FRAME });
    let mut wire = Wire::new(framed, 1, Rate::UNLIMITED);
    wire.arrive(0, 1_000);
    wire.arrive(0, 986);
    wire.run(seconds(1), |_| {});
    assert_eq!((wire.sent.len(), wire.given_up), (1, 1));
}

#[test]
fn a_packet_costs_its_mpu_at_least() {
    let config =
        TbfConfig { rate: mbit(8), burst: Bytes::new(1_000), mpu: Bytes::new(100), ..TbfConfig::default() };
    let mut wire = Wire::new(tbf(config), 1, Rate::UNLIMITED);
    wire.saturate(seconds(1), &[0], 40);
    assert_eq!(wire.sent.len(), 10_000 + 9);
}

#[test]
fn what_cannot_be_is_refused() {
    let fault = |config| Tbf::new(config).err().map(|ShapingError { class, fault }| (class, fault));
    let config = TbfConfig::default();
    assert_eq!(fault(config), None);
    let zero = Bytes::new(0);
    assert_eq!(fault(TbfConfig { rate: Rate::DOWN, ..config }), Some((None, ShapingFault::NoRate)));
    assert_eq!(fault(TbfConfig { burst: zero, ..config }), Some((None, ShapingFault::NoBurst)));
    let peak = |rate, mtu| TbfConfig { peak: Some(Peak { rate, mtu: Bytes::new(mtu) }), ..config };
    let not_above = ShapingFault::PeakNotAboveRate { rate: config.rate, peak: config.rate };
    assert_eq!(fault(peak(config.rate, 1_500)), Some((None, not_above)));
    assert_eq!(fault(peak(mbit(2), 0)), Some((None, ShapingFault::NoMtu)));
    let burst = Bytes::new(u64::MAX);
    let found = fault(TbfConfig { burst, ..config });
    assert!(matches!(found, Some((None, ShapingFault::BurstTooLong { .. }))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Each packet goes at the first nanosecond at which both buckets, by all that was paid so far, have what it costs.
    #[test]
    fn random_arrivals_leave_when_the_slow_model_says(
        packets in vec((0u64..3_000_000, 1u32..2_000), 1..60),
        (rate, burst, mtu) in (10_000u64..100_000_000, 2_000u64..8_000, proptest::option::of(2_000u64..3_000)),
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let faster = Rate::from_bits_per_second(rate.bits_per_second() * 5 / 2);
        let peak = mtu.map(|mtu| Peak { rate: faster, mtu: Bytes::new(mtu) });
        let config = TbfConfig { rate, burst: Bytes::new(burst), peak, mpu: Bytes::new(64) };
        let mut wire = Wire::new(tbf(config), 1, Rate::UNLIMITED);
        let mut buckets = vec![History::new(rate, burst)];
        buckets.extend(mtu.map(|mtu| History::new(faster, mtu)));
        let mut arrivals: Vec<(Time, u32)> = Vec::new();
        let mut at = Time::ZERO;
        for &(gap, length) in &packets {
            at = at + Duration::from_nanos(gap);
            arrivals.push((at, length));
            wire.run(at, |_| {});
            wire.arrive(0, length);
        }
        wire.run(seconds(1_000_000), |_| {});
        prop_assert_eq!(wire.sent.len(), packets.len());
        let mut free = Time::ZERO;
        for (&(arrived, length), &(sent, _, sent_length)) in arrivals.iter().zip(&wire.sent) {
            let cost = u64::from(length.max(64));
            let affords = |at| buckets.iter().all(|bucket| bucket.tokens(at) >= i128::from(cost) * 8_000_000_000);
            prop_assert_eq!(length, sent_length);
            prop_assert!(sent >= arrived.max(free) && affords(sent));
            let before = Time::from_nanos(sent.nanos().saturating_sub(1));
            prop_assert!(sent == arrived.max(free) || !affords(before), "not a moment late");
            buckets.iter_mut().for_each(|bucket| bucket.pay(sent, cost));
            free = sent;
        }
    }
}
