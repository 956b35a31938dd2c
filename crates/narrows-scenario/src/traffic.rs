//! Traffic that the scenario itself brings: generated packets without payload data, replayed captures, or
//! applications with transactions between hosts.

mod app;
mod key;
mod protocol;
mod quantity;
mod read;
mod rows;

use std::path::PathBuf;

use narrows_core::source::{Arrivals, Lengths, Pace, Period, SourceConfig};
use narrows_core::{Bytes, FlowKey, Time};

pub(crate) use app::tables as app_tables;
pub use app::{
    AppConfig, AppKind, Call, Congestion, Demand, Dialogue, Exchanges, Query, TcpConfig, Transfer,
};
pub(crate) use read::{Places, read};
pub(crate) use rows::{TRAFFIC, table, tables};

/// Packets from one port to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Name, unique among the traffic; part of the key of its random draws.
    pub name: String,
    /// Port where its packets enter.
    pub from: String,
    /// Port where its packets leave.
    pub to: String,
    /// Source of the packets.
    pub source: TrafficSource,
    /// Virtual time only: live runs skip it.
    pub sim_only: bool,
}

/// Source of packets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrafficSource {
    /// Generated without feedback.
    Generated {
        /// Timing and length of packets.
        config: SourceConfig,
        /// Flow key of the packets.
        key: FlowKey,
    },
    /// Sent by a sender that responds to congestion, and acknowledged by the receiver.
    Aimd {
        /// Sender configuration.
        config: AimdConfig,
        /// Flow key; acknowledgements have source and destination swapped. Its ECN field is that of the
        /// packets sent.
        key: FlowKey,
    },
    /// Transactions of an application between a client, where traffic enters, and a server.
    App {
        /// Application configuration.
        config: Box<AppConfig>,
        /// Key of the client's first flow; each further transaction uses the next source port. The
        /// transport is TCP or UDP.
        key: FlowKey,
    },
    /// Replayed from a capture with the recorded gaps.
    Capture {
        /// The capture file, relative to the folder of the scenario's file.
        file: PathBuf,
        /// Instant of its first packet.
        start: Time,
    },
}

/// A sender whose window grows by one packet per round trip and shrinks on congestion (AIMD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AimdConfig {
    /// Packet length from the network header on.
    pub length: u32,
    /// Number of bytes to transfer in such packets; the last packet may exceed it. `None`: no limit.
    pub size: Option<Bytes>,
    /// Instant of its first packets.
    pub start: Time,
    /// No packet is sent at or after this instant, except acknowledgements.
    pub stop: Time,
    /// Initial window in packets; at least 1.
    pub window: u32,
    /// Response to ECN marks.
    pub marks: Marks,
}

/// How a sender responds to the ECN mark "congestion experienced".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Not ECN-capable: its packets cannot be marked.
    #[default]
    None,
    /// A mark counts as a loss: the window is halved (RFC 3168).
    Classic,
    /// The window is reduced by half of the share of marked packets (RFC 8257, RFC 9331).
    Scalable,
}

impl Marks {
    /// ECN field of the sender's packets.
    pub const fn ecn(self) -> u8 {
        match self {
            Self::None => FlowKey::NOT_ECN_CAPABLE,
            Self::Classic => 2, // ECT(0)
            Self::Scalable => FlowKey::ECT_1,
        }
    }
}

/// Long-run offered load in bits of IP packets per second.
pub(crate) fn offered(config: &SourceConfig) -> f64 {
    let mean_length = match &config.lengths {
        Lengths::Fixed(length) => f64::from(*length),
        Lengths::Mix(mix) => {
            let total: u64 = mix.iter().map(|(_, weight)| weight).sum();
            let sum: f64 = mix.iter().map(|(length, weight)| f64::from(*length) * *weight as f64).sum();
            sum / total.max(1) as f64
        }
    };
    let at = |pace| match pace {
        Pace::Bits(rate) => rate.bits_per_second() as f64,
        Pace::Packets { count, per } => count as f64 * mean_length * 8.0 / per.seconds(),
    };
    match config.arrivals {
        Arrivals::Constant(pace) | Arrivals::Poisson(pace) => at(pace),
        Arrivals::OnOff { pace, on, off } => {
            let mean = |period| match period {
                Period::Fixed(mean) | Period::Exponential(mean) | Period::Pareto { mean, .. } => {
                    mean.seconds()
                }
            };
            at(pace) * mean(on) / (mean(on) + mean(off))
        }
    }
}
