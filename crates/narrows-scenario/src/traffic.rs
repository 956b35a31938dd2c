//! Traffic that the scenario itself brings: generated packets without a body, a capture that is played, or applications
//! with transactions between hosts.

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
pub(crate) use read::read;
pub(crate) use rows::{TRAFFIC, table, tables};

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
    /// Whether it is for virtual time alone: live runs leave it out.
    pub sim_only: bool,
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
    /// Sent by a sender that responds to congestion, and acknowledged by the other end.
    Aimd {
        /// How it sends.
        config: AimdConfig,
        /// What tells its flow apart; acknowledgements have the two ends exchanged. Its ECN field is what packets are
        /// sent with.
        key: FlowKey,
    },
    /// Transactions of an application between a client, where traffic enters, and a server.
    App {
        /// What it does.
        config: Box<AppConfig>,
        /// What tells the client's first flow apart; each transaction has the next source port. Its transport is TCP or
        /// UDP.
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

/// A sender whose window grows by a packet a round trip and is reduced when there is congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AimdConfig {
    /// The length of its packets from the network header on.
    pub length: u32,
    /// How many bytes of such packets are to get across, if there is an end; the last packet may go beyond.
    pub size: Option<Bytes>,
    /// When its first packets come.
    pub start: Time,
    /// No packet comes at or after this instant, but for acknowledgements.
    pub stop: Time,
    /// How many packets it sends at once in the beginning; at least 1.
    pub window: u32,
    /// What it makes of marks.
    pub marks: Marks,
}

/// What a sender makes of the mark "congestion experienced".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Its packets cannot be marked.
    #[default]
    None,
    /// A mark is as good as a loss: the window is halved (RFC 3168).
    Classic,
    /// The window is reduced by half of the share of packets that are marked (RFC 8257, RFC 9331).
    Scalable,
}

impl Marks {
    /// The ECN field of a sender's packets.
    pub const fn ecn(self) -> u8 {
        match self {
            Self::None => FlowKey::NOT_ECN_CAPABLE,
            Self::Classic => 2, // ECT(0)
            Self::Scalable => FlowKey::ECT_1,
        }
    }
}

/// How many bits of IP packets a second come in the long run.
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
