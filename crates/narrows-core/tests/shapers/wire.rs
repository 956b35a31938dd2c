//! A scheduler by itself, in front of a wire with a rate or without one.

use narrows_core::sched::{ClassState, FlowConfig, FlowId, Scheduler, Served, Server, ShapedState};
use narrows_core::{Duration, PacketRef, Rate, Time};

/// A packet that has been sent: when, by which flow, its bytes.
pub(crate) type Sent = (Time, usize, u32);

/// The places of the classes that are nobody's parents; `parents` has the parent of each.
pub(crate) fn leaves(parents: impl Iterator<Item = Option<usize>> + Clone) -> Vec<usize> {
    let is_parent = |place: usize| parents.clone().any(|parent| parent == Some(place));
    (0..parents.clone().count()).filter(|&place| !is_parent(place)).collect()
}

pub(crate) struct Wire<S: Scheduler> {
    pub(crate) server: Server<S>,
    pub(crate) now: Time,
    rate: Rate,
    pub(crate) sent: Vec<Sent>,
    pub(crate) given_up: u64,
    /// Answers "not before", and when they were given.
    pub(crate) waits: Vec<(Time, Time)>,
    packets: u32,
}

impl<S: Scheduler> Wire<S> {
    pub(crate) fn new(scheduler: S, flows: usize, rate: Rate) -> Self {
        let mut server = Server::new(scheduler);
        for _ in 0..flows {
            server.join(FlowConfig::default()).expect("there are as many");
        }
        let (now, sent, waits) = (Time::ZERO, Vec::new(), Vec::new());
        Self { server, now, rate, sent, given_up: 0, waits, packets: 0 }
    }

    pub(crate) fn arrive(&mut self, flow: usize, length: u32) {
        let packet = PacketRef::from_number(self.packets);
        self.packets += 1;
        self.server.enqueue(self.now, FlowId::new(flow as u32), packet, length);
    }

    pub(crate) fn waiting(&self, flow: usize) -> u32 {
        self.server.flows().packets(FlowId::new(flow as u32))
    }

    /// Runs until then. `feed` is called before each packet, and sees how much waits.
    pub(crate) fn run(&mut self, until: Time, mut feed: impl FnMut(&mut Self)) {
        while self.now < until {
            feed(self);
            self.step(until);
        }
    }

    /// Asks once, and goes on to the instant at which to ask again, or until then.
    pub(crate) fn step(&mut self, until: Time) {
        match self.server.dequeue(self.now) {
            Served::Packet(flow, waits) => {
                self.sent.push((self.now, flow.number() as usize, waits.length));
                self.now = self.now + self.time_of(waits.length);
            }
            Served::GivenUp(..) => self.given_up += 1,
            Served::NotBefore(at) => {
                assert!(at > self.now, "{at} is not after {}", self.now);
                self.waits.push((self.now, at));
                self.now = at.min(until);
            }
            Served::Empty => self.now = until,
        }
    }

    /// The same with so many packets of each of these flows, of one length, waiting all the time.
    pub(crate) fn saturate(&mut self, until: Time, flows: &[usize], length: u32) {
        self.run(until, |wire| {
            for &flow in flows {
                while wire.waiting(flow) < 4 {
                    wire.arrive(flow, length);
                }
            }
        });
    }

    fn time_of(&self, length: u32) -> Duration {
        match self.rate {
            Rate::UNLIMITED => Duration::ZERO,
            rate => {
                Duration::from_nanos((u64::from(length) * 8_000_000_000).div_ceil(rate.bits_per_second()))
            }
        }
    }

    /// Bits a second of a flow from one instant to another.
    pub(crate) fn rate_of(&self, flow: usize, from: Time, to: Time) -> f64 {
        let sent = self.sent.iter().filter(|&&(at, by, _)| by == flow && at >= from && at < to);
        sent.map(|&(.., length)| f64::from(length) * 8.0).sum::<f64>() / to.since(from).seconds()
    }

    pub(crate) fn states(&self) -> Vec<ShapedState> {
        let states = self.server.scheduler().states(self.now, self.server.flows());
        let shaped = |state| match state {
            ClassState::Shaped(shaped) => shaped,
            other => panic!("a shaper's class: {other:?}"),
        };
        states.into_iter().map(shaped).collect()
    }

    /// The most bits beyond what a rate makes of any span, over all spans between packets of these flows: the burst.
    pub(crate) fn burst(&self, flows: &[usize], rate: Rate) -> f64 {
        let rate = rate.bits_per_second() as f64;
        // A bucket that empties at the rate: its greatest level.
        let (mut level, mut most, mut last) = (0.0f64, 0.0f64, Time::ZERO);
        for &(at, flow, length) in &self.sent {
            if flows.contains(&flow) {
                level = (level - rate * at.since(last).seconds()).max(0.0) + f64::from(length) * 8.0;
                (most, last) = (most.max(level), at);
            }
        }
        most
    }
}

pub(crate) const fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

pub(crate) const fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// Within a share of what is expected.
#[track_caller]
pub(crate) fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// A bucket by its closed form, over all that was ever paid from it: `min over k of burst − paid since k + rate·(t − t_k)`,
/// and the burst. In billionths of a bit.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) rate: Rate,
    pub(crate) burst: u64,
    paid: Vec<(Time, i128)>,
}

impl History {
    pub(crate) fn new(rate: Rate, burst: u64) -> Self {
        Self { rate, burst, paid: Vec::new() }
    }

    pub(crate) fn pay(&mut self, at: Time, bytes: u64) {
        self.paid.push((at, i128::from(bytes) * 8_000_000_000));
    }

    pub(crate) fn tokens(&self, at: Time) -> i128 {
        let burst = i128::from(self.burst) * 8_000_000_000;
        let (mut least, mut since) = (burst, 0);
        for &(paid_at, bits) in self.paid.iter().rev() {
            since += bits;
            let earned = i128::from(self.rate.bits_per_second()) * i128::from(at.since(paid_at).nanos());
            least = least.min(burst - since + earned);
        }
        least
    }
}
