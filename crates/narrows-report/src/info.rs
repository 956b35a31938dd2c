//! The configuration of a run: what the engine does not know by itself.

use std::borrow::Cow;

use narrows_core::classify::FlowMask;
use narrows_core::{Duration, Seed, Time};
use serde::{Deserialize, Serialize};

/// One of a few words: borrowed when written by a run, owned when read from a report.
pub type Word = Cow<'static, str>;

/// Which clock a run followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Real packets in real time.
    Live,
    /// Real packets in a guest kernel with a virtual clock: nothing is ever late.
    ExactVirtual,
    /// Virtual time.
    Virtual,
    /// The replay of another run's input log.
    Replay,
}

impl Kind {
    /// Whether programs send real packets.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::ExactVirtual)
    }
}

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// The name of the scenario file, or the flags.
    pub title: String,
    /// Which clock.
    pub kind: Kind,
    /// The seed of all random draws.
    pub seed: Seed,
    /// From the first instant of the run to the instant of the report, on the engine's clock.
    pub span: (Time, Time),
    /// The directions to report on, in display order. Lanes of the engine that are not listed here are left out.
    pub directions: Vec<DirectionInfo>,
    /// The links with rules.
    pub rules: Vec<RulesInfo>,
    /// The round-trip times that follow from the configuration, without queueing and transmission.
    pub round_trips: Vec<RoundTrip>,
    /// Notes for the reader of the report: what was truncated, clamped or left out.
    pub notes: Vec<String>,
}

/// The configuration of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInfo {
    /// Its name.
    pub name: String,
    /// Its weight; `None` if the scheduler has no weights.
    pub weight: Option<u32>,
    /// The packets that belong to it, in one line.
    pub matches: String,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionInfo {
    /// The engine's name of the link, such as `access.down`.
    pub link: String,
    /// The lane of that link: 0, except for a shared medium.
    pub lane: u8,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// The configured settings, in one line: `1.5mbit, 10ms, loss 1%, queue 13 packets`.
    pub asked: String,
    /// The configured rate at the start, in bits per second; `None` for an unlimited link.
    pub rate_bps: Option<u64>,
    /// The configured mean one-way delay at the start; `None` if unknown.
    pub delay: Option<Duration>,
    /// What is counted on the wire: `IP packet`, `Ethernet frame`, `ATM cells`.
    pub overhead: String,
    /// The rules that lead to it, if it is a pipe.
    pub rules: Option<String>,
    /// The classes of its scheduler, in order of their numbers. Unlike the other fields, the classes, the mask and
    /// the queues are those at the end: [`RunInfo::update`].
    pub classes: Vec<ClassInfo>,
    /// The classes of a shaper, inner classes included, each with its depth; these, too, are those at the end.
    pub tree: Vec<(String, usize)>,
    /// The mask whose flows each get a link.
    pub mask: Option<FlowMask>,
    /// The queues of a pipe.
    pub queues: Vec<QueueInfo>,
}

/// A queue of a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its number.
    pub number: u32,
    /// Its weight; `None` if the scheduler has no weights.
    pub weight: Option<u32>,
    /// The mask that separates its flows.
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
