//! The report: its fields are the interface for programs.
//!
//! Names carry their units: `_ns` nanoseconds, `_bps` bits per second, `_bytes`, `_packets`, `_share` a fraction of
//! one. Instants count from the start of the run's clock. Lengths count from the network header on unless `wire` is
//! in the name. A field may be added without notice; any other change raises [`SCHEMA`].
//!
//! Rates are measured over the time in which traffic flowed. The whole run would be wrong: for a program under test
//! it includes its start and its pauses at the end:
//! - offered rate: from the first arrival to the last; delivered rate: from the first departure to the last. Between
//!   n packets lie n − 1 gaps, so the bits are multiplied by (n − 1)/n (with packets of one length: all but one
//!   packet). With fewer than two packets there is no rate.
//! - wire rate: all bits sent, including overhead, from the start of the first transmission to the end of the last.

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
use crate::switch::SwitchReport;
use crate::trains::TrainsReport;

/// The version of the report's fields.
pub const SCHEMA: u32 = 3;

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    #[serde(deserialize_with = "known")]
    pub schema: u32,
    /// The name of the run: the scenario file or the flags.
    pub title: String,
    /// Which clock it followed.
    pub kind: Kind,
    /// The seed of all random draws.
    pub seed: u64,
    /// The first instant of the run.
    pub start_ns: u64,
    /// The instant of the report.
    pub end_ns: u64,
    /// The round-trip times that follow from the configuration.
    pub round_trips: Vec<RoundTrip>,
    /// Each direction of each link.
    pub directions: Vec<Direction>,
    /// The rules of each link that has any, in order of their names.
    pub rules: Vec<RulesReport>,
    /// Each router, in the order of their names.
    pub routers: Vec<RouterReport>,
    /// Each switch, in the order of their names.
    #[serde(default)]
    pub switches: Vec<SwitchReport>,
    /// Each pair of ports between which packets were delivered, in the order of their names.
    pub pairs: Vec<Pair>,
    /// Each feed of each link.
    pub feeds: Vec<FeedReport>,
    /// The results of probes between the hosts, in a live run that sent some.
    pub probes: Vec<ProbeReport>,
    /// Each source of the scenario's own traffic, in the order of its file.
    #[serde(default)]
    pub generated: Vec<SourceReport>,
    /// Each application of the traffic, in the order of their names.
    pub applications: Vec<ApplicationReport>,
    /// Each port, in the order of their names.
    pub ports: Vec<PortReport>,
    /// How late packets were released (handed to the system), over all ports; `None` in virtual time.
    pub lateness: Option<Lateness>,
    /// How late the calls that sent packets returned. This includes what the receiving host did within the call.
    pub sent_lateness: Option<Quantiles>,
    /// How long after their arrival packets were handed to the engine, over all ports; `None` in virtual time.
    pub input_lateness: Option<Quantiles>,
    /// How long after their arrival stragglers were taken; `None` if there were none.
    pub straggler_lateness: Option<Quantiles>,
    /// The result for each requested bound on lateness.
    pub certificates: Vec<Certificate>,
    /// When packets were later than these bounds, or than 1 ms if none was requested.
    #[serde(alias = "untrue")]
    pub lateness_violations: Vec<LatenessViolation>,
    /// The capture of a live run; `None` without one.
    pub capture: Option<CaptureReport>,
    /// The state of the host during the run; `None` in virtual time.
    pub host: Option<HostReport>,
    /// Trains of segments; `None` in virtual time, and if every packet arrived and left singly.
    pub trains: Option<TrainsReport>,
    /// Losses and other failures outside the engine.
    pub losses: Losses,
    /// Whether every packet is accounted for.
    pub conservation: Conservation,
    /// Notes for people.
    pub notes: Vec<String>,
    /// Those of them about files that could not be written.
    #[serde(skip)]
    pub unwritten: Vec<String>,
}

fn known<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        // Fields that had other names in older versions have aliases.
        1..=SCHEMA => Ok(SCHEMA),
        other => Err(D::Error::custom(format!("a report of schema {other}, expected schema 1 to {SCHEMA}"))),
    }
}

/// One direction of a link, or one lane of a shared medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// The engine's name of the link.
    pub link: String,
    /// The lane: 0, except for a shared medium.
    pub lane: u8,
    /// The rules that lead to it, if it is a pipe.
    pub rules: Option<String>,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// The configured settings, in one line.
    pub asked: String,
    /// The configured rate; `None` for an unlimited link.
    pub asked_rate_bps: Option<u64>,
    /// The configured mean one-way delay.
    pub asked_delay_ns: Option<u64>,
    /// What is counted on the wire.
    pub overhead: String,
    /// Offered load: what arrived at the link.
    pub offered: Throughput,
    /// What left it.
    pub delivered: Throughput,
    /// Packets dropped for any reason.
    pub dropped_packets: u64,
    /// As a share of the packets that arrived or that the link created.
    pub dropped_share: f64,
    /// Drops by reason.
    pub drops: Vec<Drop>,
    /// Packets that the link created: duplicates, and all but one fragment of each packet that it fragmented.
    pub duplicated_packets: u64,
    /// Packets with a flipped bit.
    pub corrupted_packets: u64,
    /// Packets marked with "congestion experienced" by the queue.
    pub marked_packets: u64,
    /// Packets sent past the delay.
    pub reordered_packets: u64,
    /// Packets delayed to keep order: they leave at the same instant as the packet before them.
    #[serde(alias = "held_back_packets")]
    pub delayed_to_keep_order_packets: u64,
    /// Packets that were fragmented.
    pub fragmented_packets: u64,
    /// Of the duplicated packets, those that are fragments.
    #[serde(alias = "pieces_packets")]
    pub fragment_packets: u64,
    /// Bits sent, including overhead.
    pub wire_bits: u64,
    /// Bits sent divided by the time in which they flowed; `None` if that time is zero.
    pub wire_bps: Option<u64>,
    /// How long the wire was busy, as a share of the time in which traffic flowed; `None` if that time is zero, for
    /// an unlimited link, and for a link that creates links for flows, which are several wires.
    pub utilisation_share: Option<f64>,
    /// The mean queueing delay of packets sent.
    pub queueing_mean_ns: Option<u64>,
    /// Packets still inside.
    pub inside_packets: u64,
    /// Of these, packets waiting to be sent; for a shared medium, whose lanes share one queue, at lane 0.
    #[serde(default)]
    #[serde(alias = "waiting_packets")]
    pub backlog_packets: u64,
    /// Their bytes from the network header on.
    #[serde(default)]
    #[serde(alias = "waiting_bytes")]
    pub backlog_bytes: u64,
    /// Of these, packets in flight: propagating, or waiting for a delay or a slot; at lane 0.
    #[serde(default)]
    #[serde(alias = "flying_packets")]
    pub in_flight_packets: u64,
    /// Each class of the scheduler, if it has classes; for a shared medium, whose lanes share one scheduler, at lane
    /// 0.
    pub classes: Vec<ClassReport>,
    /// The state of each class of a shaper, inner classes included; at lane 0.
    pub shaped: Vec<ShapedClassReport>,
    /// The error of a loaded scheduler that violated the interface. Since then its packets are served in order of
    /// arrival.
    #[serde(default)]
    pub scheduler_failure: Option<String>,
    /// Whether a mask gives each flow its own link: the figures are then the totals of all of them.
    pub per_flow: bool,
    /// The links that a mask created from it, both lanes together, at lane 0.
    pub flows: Option<FlowsReport>,
}

/// A number of packets, and their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throughput {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
    /// Bits per second, from the network header on; `None` for fewer than two packets, or if all came at one instant.
    pub rate_bps: Option<u64>,
}

/// Packets dropped for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drop {
    /// The reason.
    pub reason: Word,
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
    /// As a share of the packets that arrived or that the link created.
    pub share: f64,
}

/// Packets that arrived at one port and were delivered at another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The port where they arrived.
    pub from_port: String,
    /// The port where they left.
    pub to_port: String,
    /// Their number and rate.
    pub delivered: Throughput,
    /// The one-way delay as scheduled: departure minus arrival.
    pub delay: Quantiles,
    /// The queueing delay within it.
    pub queueing: Quantiles,
}

/// Release lateness: actual minus scheduled instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The distribution.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// The share of packets that were later than each of [`crate::LATENESS_BOUNDS`].
    pub later_than: Vec<Share>,
    /// The histogram: steps from the first to the last that has packets. The steps end at
    /// [`crate::HISTOGRAM_BOUNDS`], with a relative error of half a part in a thousand.
    pub histogram: Vec<Step>,
}

/// A step of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its upper end, inclusive; `None` for the step beyond all bounds.
    pub up_to_ns: Option<u64>,
    /// Packets above the previous step's end, up to this one's.
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

/// The counters of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Packets that arrived here.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets delivered here.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets refused here because the network was full.
    pub refused_packets: u64,
    /// Packets that the system lost before they could be read here.
    pub receive_ring_dropped_packets: u64,
    /// Packets that the system refused to send here.
    pub send_failed_packets: u64,
    /// How late packets were released here; `None` in virtual time.
    pub lateness: Option<Lateness>,
    /// How long after their arrival packets were handed to the engine; `None` in virtual time.
    pub input_lateness: Option<Quantiles>,
}

/// Losses and other failures outside the engine, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Packets and changes handed in after their instant had passed.
    pub straggler_inputs: u64,
    /// Packets with implausible receive timestamps: their arrival time is the time when they were read.
    pub implausible_stamp_packets: u64,
    /// Packets that the system lost before they could be read.
    pub receive_ring_dropped_packets: u64,
    /// Packets that the system refused to send.
    pub send_failed_packets: u64,
    /// Packets refused because the network was full.
    pub refused_packets: u64,
}

/// Packet conservation: in + duplicated = delivered + dropped + inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Packets handed in at all ports.
    pub in_packets: u64,
    /// Packets that links created.
    pub duplicated_packets: u64,
    /// Packets delivered at all ports.
    pub delivered_packets: u64,
    /// Packets dropped by links or refused at ports.
    pub dropped_packets: u64,
    /// Packets without a verdict yet.
    pub inside_packets: u64,
    /// Violations of conservation, as sentences; empty if there are none.
    pub violations: Vec<String>,
}
