//! What a run was asked for: what the engine does not know by itself.

use std::borrow::Cow;

use narrows_core::classify::FlowMask;
use narrows_core::{Duration, Seed, Time};
use serde::{Deserialize, Serialize};

/// A word that is one of a few: borrowed where a run says it, owned where a report was read.
pub type Word = Cow<'static, str>;

/// Which clock a run followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Real packets in real time.
    Live,
    /// Real packets in a guest kernel whose clock is virtual: nobody is late.
    ExactVirtual,
    /// Virtual time.
    Virtual,
    /// The input log of another run, once more.
    Replay,
}

impl Kind {
    /// Whether programs sent real packets.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::ExactVirtual)
    }
}

/// What a run was asked for.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// What runs: the name of the scenario file, or the flags.
    pub title: String,
    /// Which clock.
    pub kind: Kind,
    /// The seed of all draws.
    pub seed: Seed,
    /// From the first instant of the run to the instant of the report, on the engine's clock.
    pub span: (Time, Time),
    /// The directions to report on, in the order in which they are to be shown. Lanes of the engine that are not named
    /// here are left out.
    pub directions: Vec<DirectionInfo>,
    /// The links with rules.
    pub rules: Vec<RulesInfo>,
    /// The round trips that the configuration comes to, without queueing and transmission.
    pub round_trips: Vec<RoundTrip>,
    /// Sentences for the person who reads the report: what was cut short, clamped, left out.
    pub notes: Vec<String>,
}

/// What was asked for of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInfo {
    /// Its name.
    pub name: String,
    /// Its weight; nothing where the scheduler knows none.
    pub weight: Option<u32>,
    /// What belongs to it, in one line.
    pub matches: String,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionInfo {
    /// The engine's name of the link, such as `access.down`.
    pub link: String,
    /// The lane of that link: 0, but for a shared medium.
    pub lane: u8,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// What was asked for, in one line: `1.5mbit, 10ms, loss 1%, queue 13 packets`.
    pub asked: String,
    /// The rate asked for at the start, in bits a second; nothing for an unlimited link.
    pub rate_bps: Option<u64>,
    /// The mean one-way delay asked for at the start; nothing when it is unknown.
    pub delay: Option<Duration>,
    /// What counts as on the wire: `IP packet`, `Ethernet frame`, `ATM cells`.
    pub overhead: String,
    /// The rules that lead to it, if it is a pipe.
    pub rules: Option<String>,
    /// The classes of its scheduler, in the order of their numbers. Unlike the rest they, the mask and the queues are those
    /// at the end: [`RunInfo::update`].
    pub classes: Vec<ClassInfo>,
    /// The classes of a shaper, those with others below them included, each with how many are above it; at the end, too.
    pub tree: Vec<(String, usize)>,
    /// What tells the flows apart for each of which a link is made.
    pub mask: Option<FlowMask>,
    /// The queues of a pipe.
    pub queues: Vec<QueueInfo>,
}

/// A queue of a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its number.
    pub number: u32,
    /// Its weight; nothing where the scheduler knows none.
    pub weight: Option<u32>,
    /// What tells its flows apart.
    pub mask: Option<FlowMask>,
}

/// A link with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesInfo {
    /// The engine's name of the rules.
    pub name: String,
    /// The host where outgoing packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
}

/// The round trip between two hosts, as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// One host.
    pub from: String,
    /// The other.
    pub to: String,
    /// The delays of both ways, added up.
    pub round_trip_ns: u64,
}
