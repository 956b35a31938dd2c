use narrows_core::queue::Wire as OnWire;
use narrows_core::sched::{Cbs, CbsConfig, FlowConfig, Mode, Scheduler, Served, Server, ShapingFault};
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Duration, PacketRef, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{Wire, mbit, seconds};

fn cbs(config: CbsConfig) -> Cbs {
    Cbs::new(config).expect("in range")
}

/// Annex L's example of slopes: 20 Mbit/s of a port of a gigabit.
const STREAM: CbsConfig = CbsConfig {
    idle_slope: Rate::from_bits_per_second(20_000_000),
    send_slope: Some(Rate::from_bits_per_second(980_000_000)),
    high: Bytes::new(30),
    low: Some(Bytes::new(1_470)),
};

/// Without drift: what waits leaves at the idle slope, the n-th packet of 997 bytes at the first nanosecond after n times its
/// bits, for any rate of the port.
#[test]
fn packets_that_wait_are_as_far_apart_as_the_idle_slope_says() {
    let config = CbsConfig { idle_slope: mbit(7), ..CbsConfig::default() };
    for port in [Rate::UNLIMITED, mbit(10), mbit(1_000)] {
        let mut shaper = cbs(config);
        shaper.set_wire(Time::ZERO, OnWire { rate: port, overhead: Overhead::IP });
        let mut wire = Wire::new(shaper, 1, port);
        wire.saturate(seconds(10), &[0], 997);
        assert_eq!(wire.sent.len(), (7_000_000 * 10 / 8) / 997 + 1);
        for (n, &(at, ..)) in (0u128..).zip(&wire.sent) {
            let exact = (n * 997 * 8_000_000_000).div_ceil(7_000_000);
            // Each packet's cost is rounded to a billionth of a bit, and each wait to a nanosecond.
            assert!(u128::from(at.nanos()).abs_diff(exact) <= 1, "packet {n} at {at}, not {exact}");
        }
        let [state] = wire.states()[..] else { panic!("one class") };
        assert_eq!((state.mode, state.sent.packets), (Mode::CannotSend, wire.sent.len() as u64));
    }
}

/// A packet of 1500 bytes takes 12 µs and costs 1470 of credit, which come back in 588 µs, but not more than that in idle
/// time.
#[test]
fn idle_time_earns_no_credit_above_zero() {
    let mut wire = Wire::new(cbs(STREAM), 1, Rate::UNLIMITED);
    wire.arrive(0, 1_500);
    wire.run(seconds(1), |_| {});
    wire.arrive(0, 1_500);
    wire.arrive(0, 1_500);
    wire.run(seconds(2), |_| {});
    let [_, second, third] = wire.sent[..] else { panic!("three packets") };
    assert_eq!((second.0, third.0.since(second.0)), (seconds(1), Duration::from_micros(600)));
}

/// A packet that waits for the transmitter earns up to 30: the next one comes 12 µs sooner after it.
#[test]
fn waiting_for_the_port_earns_credit_above_zero() {
    let mut server = Server::new(cbs(STREAM));
    let flow = server.join(FlowConfig::default()).expect("it has one flow");
    for number in 0..3 {
        server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1_500);
    }
    assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(..)));
    let busy = Time::from_nanos(2_000_000);
    assert!(matches!(server.dequeue(busy), Served::Packet(..)));
    let Served::NotBefore(next) = server.dequeue(busy) else { panic!("it waits") };
    // But for what is earned in the nanosecond in which the credit reaches its maximum.
    let apart = next.since(busy).nanos();
    assert!((587_999..=588_000).contains(&apart), "{apart} ns");
}

/// The credit does not fall below the minimum, however long the packet.
#[test]
fn the_least_credit_bounds_the_wait() {
    let config = CbsConfig { low: Some(Bytes::new(100)), send_slope: None, high: Bytes::new(0), ..STREAM };
    let mut wire = Wire::new(cbs(config), 1, Rate::UNLIMITED);
    wire.saturate(seconds(1), &[0], 9_000);
    // 100 bytes at 20 Mbit/s.
    assert_eq!(wire.sent.len(), 25_000);
}

#[test]
fn what_cannot_be_is_refused() {
    let fault = |config| Cbs::new(config).err().map(|error| error.fault);
    assert_eq!(fault(STREAM), None);
    for rate in [Rate::DOWN, Rate::UNLIMITED] {
        assert_eq!(fault(CbsConfig { idle_slope: rate, ..STREAM }), Some(ShapingFault::NoRate));
    }
    let most = Bytes::new(1 << 63);
    assert_eq!(fault(CbsConfig { high: most, low: Some(most), ..STREAM }), None);
    let found = Bytes::new(u64::MAX);
    for config in [CbsConfig { high: found, ..STREAM }, CbsConfig { low: Some(found), ..STREAM }] {
        assert_eq!(fault(config), Some(ShapingFault::BurstTooLong { found, most }));
    }
}

/// Linux's sch_cbs without offload, in fractions of a byte instead of whole ones, on a port that does not block.
struct Slow {
    credit: f64,
    last: f64,
}

impl Slow {
    /// No packet waits until then.
    fn idle(&mut self, until: f64) {
        if self.credit > 0.0 || self.credit + (until - self.last) * 20e6 / 8.0 > 0.0 {
            self.credit = 0.0;
        }
    }

    /// When a packet leaves that is the first to wait from `at` on.
    fn send(&mut self, at: f64, bytes: f64) -> f64 {
        let (idle, send, port) = (20e6 / 8.0, 980e6 / 8.0, 1e9 / 8.0);
        let mut now = at.max(self.last);
        if self.credit < 0.0 {
            let credit = (self.credit + (now - self.last) * idle).min(30.0);
            if credit < 0.0 {
                now += -credit / idle;
            }
            self.credit = credit.max(0.0);
        }
        self.credit = (self.credit - bytes * send / port).max(-1_470.0);
        self.last = now + bytes / port;
        now
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn random_arrivals_leave_when_the_slow_model_says(packets in vec((0u64..3_000_000, 1u32..2_000), 1..60)) {
        let mut wire = Wire::new(cbs(STREAM), 1, Rate::UNLIMITED);
        let mut slow = Slow { credit: 0.0, last: 0.0 };
        let mut expected: Vec<f64> = Vec::new();
        let mut at = Time::ZERO;
        for &(gap, length) in &packets {
            at = at + Duration::from_nanos(gap);
            wire.run(at, |_| {});
            let arrived = at.nanos() as f64 / 1e9;
            let before = expected.last().copied().unwrap_or(0.0);
            if arrived >= before {
                slow.idle(arrived);
            }
            wire.arrive(0, length);
            expected.push(slow.send(arrived.max(before), length.into()));
        }
        wire.run(seconds(1_000_000), |_| {});
        prop_assert_eq!(wire.sent.len(), packets.len());
        for (&(sent, ..), expected) in wire.sent.iter().zip(expected) {
            let sent = sent.nanos() as f64 / 1e9;
            prop_assert!((sent - expected).abs() < 2e-9 * packets.len() as f64, "{} is not {}", sent, expected);
        }
    }
}
