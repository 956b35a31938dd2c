//! The report: its fields are what a program reads.
//!
//! Names carry their units: `_ns` nanoseconds, `_bps` bits a second, `_bytes`, `_packets`, `_share` a part of one.
//! Instants count from the start of the run's clock. Lengths count from the network header on unless `wire` is in the
//! name. A field may be added without notice; any other change raises [`SCHEMA`].
//!
//! Rates are measured over the time in which traffic flowed, not over the whole run, which for a program under test
//! includes its start and its pauses at the end:
//! - what was offered: from the first arrival to the last; what was delivered: from the first departure to the last.
//!   Between n packets lie n − 1 gaps, so the bits are counted at (n − 1)/n (with packets of one length: all but one).
//!   Nothing is said about fewer than two packets.
//! - on the wire: all bits sent, with the overhead, from the start of the first transmission to the end of the last.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::app::ApplicationReport;
use crate::capture::CaptureReport;
use crate::certify::{Certificate, LatenessViolation};
use crate::class::ClassReport;
use crate::feed::FeedReport;
use crate::figures::Quantiles;
use crate::flows::FlowsReport;
use crate::generated::SourceReport;
use crate::host::HostReport;
use crate::info::{Kind, RoundTrip, Word};
use crate::probe::ProbeReport;
use crate::router::RouterReport;
use crate::rules::RulesReport;
use crate::shaped::ShapedClassReport;
use crate::trains::TrainsReport;

/// The version of the fields.
pub const SCHEMA: u32 = 2;

/// What a run says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    #[serde(deserialize_with = "known")]
    pub schema: u32,
    /// What ran.
    pub title: String,
    /// Which clock it followed.
    pub kind: Kind,
    /// The seed of all draws.
    pub seed: u64,
    /// The first instant of the run.
    pub start_ns: u64,
    /// The instant of the report.
    pub end_ns: u64,
    /// The round trips that the configuration comes to.
    pub round_trips: Vec<RoundTrip>,
    /// Each direction of each link.
    pub directions: Vec<Direction>,
    /// The rules of each link that has some, in the order of their names.
    pub rules: Vec<RulesReport>,
    /// Each router, in the order of their names.
    pub routers: Vec<RouterReport>,
    /// Each pair of ports between which packets were delivered, in the order of their names.
    pub pairs: Vec<Pair>,
    /// Each feed of each link.
    pub feeds: Vec<FeedReport>,
    /// What probes between the hosts met, in a live run that sent some.
    pub probes: Vec<ProbeReport>,
    /// Each source of the scenario's own traffic, in the order of its file.
    #[serde(default)]
    pub generated: Vec<SourceReport>,
    /// Each application of the traffic, in the order of their names.
    pub applications: Vec<ApplicationReport>,
    /// Each port, in the order of their names.
    pub ports: Vec<PortReport>,
    /// How late packets were released at all ports, that is handed to the system; nothing in virtual time.
    pub lateness: Option<Lateness>,
    /// The same until the call that sent a packet had returned, which includes what the receiving host did at once.
    pub sent_lateness: Option<Quantiles>,
    /// How long after their arrival packets were handed to the engine, at all ports; nothing in virtual time.
    pub input_lateness: Option<Quantiles>,
    /// By how much stragglers were taken later than they had come; nothing where there were none.
    pub straggler_lateness: Option<Quantiles>,
    /// What became of each bound on lateness that was asked for.
    pub certificates: Vec<Certificate>,
    /// When packets were later than these bounds, or than 1 ms where none was asked for.
    #[serde(alias = "untrue")]
    pub lateness_violations: Vec<LatenessViolation>,
    /// What became of the capture of a live run; nothing without one.
    pub capture: Option<CaptureReport>,
    /// What the host did meanwhile; nothing in virtual time.
    pub host: Option<HostReport>,
    /// What became of trains of segments; nothing in virtual time, and where each packet came and left by itself.
    pub trains: Option<TrainsReport>,
    /// What went wrong around the engine.
    pub losses: Losses,
    /// Whether every packet is accounted for.
    pub conservation: Conservation,
    /// Sentences for a person.
    pub notes: Vec<String>,
}

fn known<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        // Of the first, some fields had other names, which are read yet.
        1 | SCHEMA => Ok(SCHEMA),
        other => Err(D::Error::custom(format!("a report of schema {other}, expected schema 1 or {SCHEMA}"))),
    }
}

/// One direction of a link, or one lane of a shared medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// The engine's name of the link.
    pub link: String,
    /// The lane: 0, but for a shared medium.
    pub lane: u8,
    /// The rules that lead to it, if it is a pipe of some.
    pub rules: Option<String>,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// What was asked for, in one line.
    pub asked: String,
    /// The rate asked for; nothing for an unlimited link.
    pub asked_rate_bps: Option<u64>,
    /// The mean one-way delay asked for.
    pub asked_delay_ns: Option<u64>,
    /// What counts as on the wire.
    pub overhead: String,
    /// What arrived at the link.
    pub offered: Throughput,
    /// What left it.
    pub delivered: Throughput,
    /// Packets dropped for any reason.
    pub dropped_packets: u64,
    /// Of the packets that arrived or that the link made.
    pub dropped_share: f64,
    /// Each reason for which packets were dropped.
    pub drops: Vec<Drop>,
    /// Packets that the link made: duplicates, and all but one piece of each packet that it cut.
    pub duplicated_packets: u64,
    /// Packets with a flipped bit.
    pub corrupted_packets: u64,
    /// Packets marked with "congestion experienced" by the queue.
    pub marked_packets: u64,
    /// Packets sent past the delay.
    pub reordered_packets: u64,
    /// Packets delayed until those before them had left, because order is kept: they leave at the same instant as another.
    #[serde(alias = "held_back_packets")]
    pub delayed_to_keep_order_packets: u64,
    /// Packets cut into pieces.
    pub fragmented_packets: u64,
    /// Of the duplicated packets, those that are pieces.
    pub pieces_packets: u64,
    /// Bits sent, with the overhead.
    pub wire_bits: u64,
    /// Bits sent by the time in which they flowed; nothing when that was no time.
    pub wire_bps: Option<u64>,
    /// The part of the time in which traffic flowed for which the wire was held; nothing when that was no time, for
    /// an unlimited link, and for one that makes links for flows, which are several wires.
    pub utilisation_share: Option<f64>,
    /// The mean time that packets waited in the queue before they were sent.
    pub queueing_mean_ns: Option<u64>,
    /// Packets still inside.
    pub inside_packets: u64,
    /// Of these, those that wait to be sent; of a shared medium, whose lanes share one queue, at lane 0.
    #[serde(default)]
    pub waiting_packets: u64,
    /// Their bytes from the network header on.
    #[serde(default)]
    pub waiting_bytes: u64,
    /// Of these, those that propagate, or wait for a delay or a slot; at lane 0.
    #[serde(default)]
    pub flying_packets: u64,
    /// Each class of the scheduler, where there is one that has classes; of a shared medium, whose lanes share one
    /// scheduler, at lane 0.
    pub classes: Vec<ClassReport>,
    /// Where each class of a shaper stands, those with others below them included; at lane 0.
    pub shaped: Vec<ShapedClassReport>,
    /// What a scheduler that was loaded did that none may do, if it did. Its packets go in order of arrival since.
    #[serde(default)]
    pub scheduler_failure: Option<String>,
    /// Whether each flow has a link of its own, which a mask makes: the figures are those of all of them together.
    pub per_flow: bool,
    /// The links that a mask made of it, both lanes together, at lane 0.
    pub flows: Option<FlowsReport>,
}

/// Packets, and how fast they went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throughput {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
    /// Bits a second from the network header on; nothing for fewer than two packets, or all at one instant.
    pub rate_bps: Option<u64>,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drop {
    /// Why.
    pub reason: Word,
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
    /// Of the packets that arrived or that the link made.
    pub share: f64,
}

/// Packets that came in at one port and were delivered at another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Where they came in.
    pub from_port: String,
    /// Where they left.
    pub to_port: String,
    /// How many, and how fast.
    pub delivered: Throughput,
    /// The one-way delay as scheduled: departure minus arrival.
    pub delay: Quantiles,
    /// The part of it that was spent waiting in queues.
    pub queueing: Quantiles,
}

/// How late packets were released: actual minus scheduled instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The distribution.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// What share of packets was later than some bounds, see [`crate::LATENESS_BOUNDS`].
    pub later_than: Vec<Share>,
    /// How many packets were how late: steps from the first to the last that has any. Their ends are those of
    /// [`crate::HISTOGRAM_BOUNDS`], right to half a part in a thousand.
    pub histogram: Vec<Step>,
}

/// A step of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its upper end, included; nothing for what is beyond all bounds.
    pub up_to_ns: Option<u64>,
    /// Packets between the end of the step before and this one's.
    pub packets: u64,
}

/// A share of packets beyond a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The bound.
    pub bound_ns: u64,
    /// The share of packets beyond it.
    pub share: f64,
}

/// What a port counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Packets that came in here.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that were delivered here.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets refused here because the network held as much as it may.
    pub refused_packets: u64,
    /// Packets that the system lost before they could be read here.
    pub receive_ring_dropped_packets: u64,
    /// Packets that the system refused to send here.
    pub send_failed_packets: u64,
    /// How late packets were released here; nothing in virtual time.
    pub lateness: Option<Lateness>,
    /// How long after their arrival packets were handed to the engine; nothing in virtual time.
    pub input_lateness: Option<Quantiles>,
}

/// What went wrong around the engine, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Packets and changes that came with an instant that had passed.
    pub straggler_inputs: u64,
    /// Packets with impossible receive timestamps: they counted as arriving when they were read.
    pub implausible_stamp_packets: u64,
    /// Packets that the system lost before they could be read.
    pub receive_ring_dropped_packets: u64,
    /// Packets that the system refused to send.
    pub send_failed_packets: u64,
    /// Packets refused because the network held as much as it may.
    pub refused_packets: u64,
}

/// In + duplicated = delivered + dropped + inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Packets handed in at all ports.
    pub in_packets: u64,
    /// Packets that links made.
    pub duplicated_packets: u64,
    /// Packets delivered at all ports.
    pub delivered_packets: u64,
    /// Packets dropped by links or refused at ports.
    pub dropped_packets: u64,
    /// Packets without a verdict.
    pub inside_packets: u64,
    /// What does not add up, in sentences; empty when all does.
    pub violations: Vec<String>,
}
