//! Patterns: what happens to which packet, or in which millisecond, laid down beforehand, so that it is the same in every
//! run. The idea is KauNet's (Garcia, Hurtig, Brunstrom: "KauNet: Design and Usage", Karlstad University Studies 2008:59);
//! the file format is ours.
//!
//! ```text
//! # The 11th to the 15th packet of every thousand, and the 400th.
//! pattern loss
//! per packet
//! length 1000
//! 11-15
//! 400
//! ```
//! `pattern` is `loss`, `bit-errors`, `delay` or `rate`; `per` is `packet`, `millisecond` or, for bit errors, `bit`.
//! Places count from 1. Of losses and bit errors the file lists the places that are hit, as numbers and ranges, in order.
//! Of delays and rates it lists changes, a place and what holds from there on, the first at place 1:
//!
//! ```text
//! pattern delay
//! per millisecond
//! length 60000
//! 1 20ms
//! 30001 35ms
//! ```
//! After its length a pattern begins anew. Bits are counted from the network header on through all packets; a packet or a
//! millisecond with a bit error has one flipped bit in that packet, or in each packet then, at a random place. A rate is
//! per millisecond: what it was when a packet before this one was sent is nothing that a wire can go by.

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

/// What happens where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    per: Per,
    length: u64,
    content: Content,
}

/// What a place of a pattern is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A packet, as they come by.
    Packet,
    /// A millisecond, from the start of the run on.
    Millisecond,
    /// A bit, through all packets that come by.
    Bit,
}

/// What a pattern is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Packets that are lost.
    Loss,
    /// Bits that are flipped.
    BitErrors,
    /// Propagation delays.
    Delay,
    /// How fast the wire takes bits.
    Rate,
}

/// What is where. Places count from 0 here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Loss(Vec<Range<u64>>),
    BitErrors(Vec<Range<u64>>),
    Delay(Vec<(u64, Duration)>),
    Rate(Vec<(u64, Rate)>),
}

/// The longest pattern. Milliseconds of a hundred years are below it.
pub const LONGEST: u64 = 10_000_000_000_000;

const CHECKED: &str = "a pattern is checked when it is made";

impl Pattern {
    /// What it is about.
    pub const fn about(&self) -> About {
        match self.content {
            Content::Loss(_) => About::Loss,
            Content::BitErrors(_) => About::BitErrors,
            Content::Delay(_) => About::Delay,
            Content::Rate(_) => About::Rate,
        }
    }

    /// What its places are.
    pub const fn per(&self) -> Per {
        self.per
    }

    /// How many places it has until it begins anew.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The places that are hit, from 0 on, in ascending ranges; nothing for delays and rates.
    pub fn hits(&self) -> Option<&[Range<u64>]> {
        match &self.content {
            Content::Loss(hits) | Content::BitErrors(hits) => Some(hits),
            Content::Delay(_) | Content::Rate(_) => None,
        }
    }

    /// Where delays change, from place 0 on; nothing if it is about something else.
    pub fn delay_changes(&self) -> Option<&[(u64, Duration)]> {
        match &self.content {
            Content::Delay(changes) => Some(changes),
            _ => None,
        }
    }

    /// In which milliseconds the rate changes, from 0 on; nothing if it is about something else.
    pub fn rate_changes(&self) -> Option<&[(u64, Rate)]> {
        match &self.content {
            Content::Rate(changes) => Some(changes),
            _ => None,
        }
    }

    /// The engine's selector of packets that are lost, or have a flipped bit; nothing where the pattern does not select
    /// packets.
    pub fn selector(&self) -> Option<selector::Pattern> {
        let pattern =
            selector::Pattern::new(self.per.of_packets()?, self.length, self.hits()?.iter().cloned());
        Some(pattern.expect(CHECKED))
    }

    /// The engine's pattern of flipped bits; nothing where the pattern does not count bits.
    pub fn bits(&self) -> Option<selector::BitPattern> {
        let hits = self.hits().filter(|_| self.per == Per::Bit)?;
        Some(selector::BitPattern::new(self.length, hits.iter().cloned()).expect(CHECKED))
    }

    /// The engine's model of delays; nothing if it is about something else.
    pub fn delays(&self) -> Option<DelayPattern> {
        let pattern = DelayPattern::new(self.per.of_packets()?, self.length, self.delay_changes()?);
        Some(pattern.expect(CHECKED))
    }

    /// The file.
    pub fn text(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("pattern {}\nper {}\nlength {}\n", self.about(), self.per, self.length);
        // A String takes all that is written to it.
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
    /// As it stands in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Millisecond => "millisecond",
            Self::Bit => "bit",
        }
    }

    /// For the engine; nothing for bits.
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

    /// As it stands in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::BitErrors => "bit-errors",
            Self::Delay => "delay",
            Self::Rate => "rate",
        }
    }

    /// What its places can be.
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
