//! Decides when transactions begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::source::{Arrivals, Lengths, Pace, Period, Source, SourceConfig};
use narrows_core::{Duration, Seed, Stream, Time};
use narrows_scenario::{AppConfig, Demand};

use super::scene::span;

/// All clients of an application.
pub(super) struct Clients {
    demand: Begins,
    /// How many have begun or been refused: the number of the next transaction.
    serial: u32,
    left: Option<u64>,
    open: u32,
    most: u32,
    stop: Time,
}

enum Begins {
    /// Open loop: arrivals do not depend on earlier transactions.
    Open(Box<Source>),
    /// Closed loop: when each idle user begins the next transaction.
    Users { ready: BinaryHeap<Reverse<Time>>, think: Period, draws: Stream },
}

impl Clients {
    pub(super) fn new(config: &AppConfig, seed: Seed, name: &str) -> Self {
        let AppConfig { start, stop, .. } = *config;
        let demand = match config.demand {
            Demand::Open { poisson, pace } => {
                // Arrivals as for packets, each the mean size of a transaction.
                let size = config.mean_bytes().unwrap_or(1.0);
                let pace = match pace {
                    Pace::Bits(rate) => in_transactions(rate.bits_per_second() as f64, size),
                    pace => pace,
                };
                let arrivals = if poisson { Arrivals::Poisson(pace) } else { Arrivals::Constant(pace) };
                let lengths = Lengths::Fixed(1);
                let config = SourceConfig { arrivals, lengths, start, stop, packets: None };
                Begins::Open(Box::new(Source::new(seed, name, config)))
            }
            Demand::Users { users, think } => {
                let (phases, draws) = (Stream::new(seed, name, "phase"), Stream::new(seed, name, "think"));
                // One user begins at the start, the others within a second, so that they are not synchronised.
                let first = |user: u32| {
                    let phase = if user == 0 { 0 } else { phases.nth(user.into()).below(1_000_000_000) };
                    Reverse(start + Duration::from_nanos(phase))
                };
                Begins::Users { ready: (0..users).map(first).collect(), think, draws }
            }
        };
        Self { demand, serial: 0, left: config.transactions, open: 0, most: config.parallel, stop }
    }

    /// When the next transaction begins.
    pub(super) fn peek(&self) -> Option<Time> {
        let next = match &self.demand {
            Begins::Open(source) => source.peek(),
            Begins::Users { ready, .. } => ready.peek().map(|Reverse(at)| *at),
        };
        next.filter(|&at| at < self.stop && self.left != Some(0))
    }

    /// Begins a transaction and returns its number, unless too many are open.
    pub(super) fn begin(&mut self) -> Option<u32> {
        match &mut self.demand {
            Begins::Open(source) => drop(source.take()),
            Begins::Users { ready, .. } => drop(ready.pop()),
        }
        let serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.open >= self.most {
            return None;
        }
        self.open += 1;
        Some(serial)
    }

    /// A transaction has ended.
    pub(super) fn ended(&mut self, at: Time, serial: u32) {
        self.open -= 1;
        if let Begins::Users { ready, think, draws } = &mut self.demand {
            // Not at the same instant, or a network without delays would never get past it.
            let pause = span(draws, serial, 0, *think).max(Duration::from_nanos(1));
            ready.push(Reverse(at + pause));
        }
    }
}

/// Converts a rate in bits per second, with transactions of `bytes` each, into a number of transactions in a span.
fn in_transactions(bits_per_second: f64, bytes: f64) -> Pace {
    // Transactions are drawn as events in time, so a span in nanoseconds for a million of them is as precise as a
    // rate.
    let per = bytes * 8.0 / bits_per_second * 1e9;
    let count = if per < 1e12 { 1_000_000 } else { 1 };
    let nanos = (per * count as f64 + 0.5).clamp(1.0, 9e18) as u64;
    Pace::Packets { count, per: Duration::from_nanos(nanos) }
}
