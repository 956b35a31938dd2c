//! Patterns: predefined events per packet, bit or millisecond, identical in every run. The idea is KauNet's
//! (Garcia, Hurtig, Brunstrom: "KauNet: Design and Usage", Karlstad University Studies 2008:59); the file
//! format is our own.
//!
//! ```text
//! # The 11th to the 15th packet of every thousand, and the 400th.
//! pattern loss
//! per packet
//! length 1000
//! 11-15
//! 400
//! ```
//! `pattern` is `loss`, `bit-errors`, `delay` or `rate`; `per` is `packet`, `millisecond` or, for bit
//! errors, `bit`. Places count from 1. For losses and bit errors, the file lists the places that are hit,
//! as numbers and ranges in increasing order. For delays and rates, it lists changes: a place and the value
//! from there on, the first one at place 1:
//!
//! ```text
//! pattern delay
//! per millisecond
//! length 60000
//! 1 20ms
//! 30001 35ms
//! ```
//! A pattern repeats after its length. Bits are counted across all packets, from the network header on. A
//! packet with a bit error has one flipped bit at a random place; in a millisecond with a bit error, each
//! packet has one. Rates are per millisecond only: a wire's rate cannot depend on the packet sent.

mod info;
mod make;
mod read;

use std::fmt;
use std::ops::Range;

use narrows_core::model::{DelayPattern, selector};
use narrows_core::{Duration, Rate};

pub use info::{Hits, PatternInfo, Values};
pub use make::{CannotMake, Random};
pub(crate) use read::parse;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    per: Per,
    length: u64,
    content: Content,
}

/// The unit of a pattern's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A packet, in order of arrival.
    Packet,
    /// A millisecond, from the start of the run.
    Millisecond,
    /// A bit, across all packets in order of arrival.
    Bit,
}

/// The property that a pattern controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Packet loss.
    Loss,
    /// Bit errors.
    BitErrors,
    /// Propagation delays.
    Delay,
    /// Rate of the wire.
    Rate,
}

/// The events by place. Here, places count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Loss(Vec<Range<u64>>),
    BitErrors(Vec<Range<u64>>),
    Delay(Vec<(u64, Duration)>),
    Rate(Vec<(u64, Rate)>),
}

/// Maximum length. A hundred years have fewer milliseconds.
pub const LONGEST: u64 = 10_000_000_000_000;

const CHECKED: &str = "a pattern is checked when it is made";

impl Pattern {
    /// Delays per packet: changes by packet, from 0, in order; the first is at 0.
    pub(crate) const fn of_delays(length: u64, changes: Vec<(u64, Duration)>) -> Self {
        Self { per: Per::Packet, length, content: Content::Delay(changes) }
    }

    /// The property that it controls.
    pub const fn about(&self) -> About {
        match self.content {
            Content::Loss(_) => About::Loss,
            Content::BitErrors(_) => About::BitErrors,
            Content::Delay(_) => About::Delay,
            Content::Rate(_) => About::Rate,
        }
    }

    /// The unit of its places.
    pub const fn per(&self) -> Per {
        self.per
    }

    /// Number of places until it repeats.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The places that are hit, counted from 0, in ascending ranges; `None` for delays and rates.
    pub fn hits(&self) -> Option<&[Range<u64>]> {
        match &self.content {
            Content::Loss(hits) | Content::BitErrors(hits) => Some(hits),
            Content::Delay(_) | Content::Rate(_) => None,
        }
    }

    /// The delay changes, counted from place 0; `None` for other patterns.
    pub fn delay_changes(&self) -> Option<&[(u64, Duration)]> {
        match &self.content {
            Content::Delay(changes) => Some(changes),
            _ => None,
        }
    }

    /// The rate changes by millisecond, counted from 0; `None` for other patterns.
    pub fn rate_changes(&self) -> Option<&[(u64, Rate)]> {
        match &self.content {
            Content::Rate(changes) => Some(changes),
            _ => None,
        }
    }

    /// The engine's selector of packets that are lost, or have a flipped bit; `None` if the pattern does
    /// not select packets.
    pub fn selector(&self) -> Option<selector::Pattern> {
        let pattern =
            selector::Pattern::new(self.per.of_packets()?, self.length, self.hits()?.iter().cloned());
        Some(pattern.expect(CHECKED))
    }

    /// The engine's pattern of flipped bits; `None` if the pattern does not count bits.
    pub fn bits(&self) -> Option<selector::BitPattern> {
        let hits = self.hits().filter(|_| self.per == Per::Bit)?;
        Some(selector::BitPattern::new(self.length, hits.iter().cloned()).expect(CHECKED))
    }

    /// The engine's delay model; `None` for other patterns.
    pub fn delays(&self) -> Option<DelayPattern> {
        let pattern = DelayPattern::new(self.per.of_packets()?, self.length, self.delay_changes()?);
        Some(pattern.expect(CHECKED))
    }

    /// The contents of its file.
    pub fn text(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("pattern {}\nper {}\nlength {}\n", self.about(), self.per, self.length);
        // Writing to a String cannot fail.
        let _ = match &self.content {
            Content::Loss(hits) | Content::BitErrors(hits) => {
                hits.iter().try_for_each(|range| match (range.start + 1, range.end) {
                    (first, last) if first == last => writeln!(text, "{first}"),
                    (first, last) => writeln!(text, "{first}-{last}"),
                })
            }
            Content::Delay(changes) => {
                changes.iter().try_for_each(|(place, delay)| writeln!(text, "{} {delay}", place + 1))
            }
            Content::Rate(changes) => {
                changes.iter().try_for_each(|(place, rate)| writeln!(text, "{} {rate}", place + 1))
            }
        };
        text
    }
}

impl Per {
    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Millisecond => "millisecond",
            Self::Bit => "bit",
        }
    }

    /// The engine's type; `None` for bits.
    const fn of_packets(self) -> Option<selector::Per> {
        match self {
            Self::Packet => Some(selector::Per::Packet),
            Self::Millisecond => Some(selector::Per::MILLISECOND),
            Self::Bit => None,
        }
    }
}

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl About {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Loss, Self::BitErrors, Self::Delay, Self::Rate];

    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::BitErrors => "bit-errors",
            Self::Delay => "delay",
            Self::Rate => "rate",
        }
    }

    /// The units that its places can have.
    pub const fn places(self) -> &'static [Per] {
        match self {
            Self::Loss | Self::Delay => &[Per::Packet, Per::Millisecond],
            Self::BitErrors => &[Per::Packet, Per::Millisecond, Per::Bit],
            Self::Rate => &[Per::Millisecond],
        }
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
