//! Traffic that the scenario itself brings: generated packets without a body, or a capture that is played.

mod read;

use std::path::PathBuf;

use narrows_core::source::SourceConfig;
use narrows_core::{FlowKey, Time};

pub(crate) use read::read;

/// Packets from one port to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Unique among the traffic; part of the key of its random draws.
    pub name: String,
    /// The port where it enters.
    pub from: String,
    /// The port where it gets.
    pub to: String,
    /// Where the packets come from.
    pub source: TrafficSource,
}

/// Where packets come from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrafficSource {
    /// Made up.
    Generated {
        /// When packets come, and how long they are.
        config: SourceConfig,
        /// What tells their flow apart.
        key: FlowKey,
    },
    /// Played from a capture, with its gaps.
    Capture {
        /// The file, relative to the folder of the scenario's file.
        file: PathBuf,
        /// The instant of its first packet.
        start: Time,
    },
}
