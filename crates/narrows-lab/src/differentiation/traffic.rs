//! Random arrivals, singly or in bursts.

use narrows_core::{Stream, Time};

use super::{DifferentiationOptions, NANOS_PER_BYTE};

/// The arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Single packets, as a Poisson process.
    Poisson,
    /// Bursts at random instants; the packets of a burst belong to one class and arrive together. The mean burst size
    /// is eight packets, geometrically distributed.
    Bursts,
}

impl Traffic {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Poisson, Self::Bursts];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Bursts => "bursts",
        }
    }

    /// The mean number of packets in a burst.
    const fn burst(self) -> u64 {
        match self {
            Self::Poisson => 1,
            Self::Bursts => 8,
        }
    }
}

/// An arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) class: u32,
    pub(super) length: u32,
}

/// Packet lengths, each with its percentage of the packets.
const LENGTHS: [(u32, u64); 3] = [(40, 40), (550, 50), (1500, 10)];
const MEAN_LENGTH: f64 = 0.4 * 40.0 + 0.5 * 550.0 + 0.1 * 1500.0;

/// All packets of a run, in order of arrival.
pub(super) fn arrivals(
    traffic: Traffic,
    classes: u32,
    load: f64,
    options: &DifferentiationOptions,
) -> Vec<Arrival> {
    // The same draws for every load and every δ: only the gaps are scaled.
    let stream = Stream::new(options.seed, "differentiation", traffic.name());
    let gap = traffic.burst() as f64 * MEAN_LENGTH * NANOS_PER_BYTE as f64 / (load / 100.0);
    let mut at = 0.0;
    let mut class = 0;
    let mut goes_on = false;
    let one = |number| {
        let mut draw = stream.nth(number);
        if !goes_on {
            at -= libm::log(1.0 - draw.uniform()) * gap;
            class = draw.below(classes.into()) as u32; // at most 32
        }
        goes_on = draw.below(traffic.burst()) > 0;
        let mut place = draw.below(100);
        let length = LENGTHS.iter().find(|(_, share)| {
            let is_it = place < *share;
            place = place.saturating_sub(*share);
            is_it
        });
        Arrival {
            at: Time::from_nanos(at as u64), // below 2⁵³ in any run that ends
            class,
            length: length.map_or(LENGTHS[0].0, |(length, _)| *length),
        }
    };
    (0..options.packets).map(one).collect()
}
