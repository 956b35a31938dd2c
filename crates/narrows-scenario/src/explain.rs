//! The effective settings of a scenario: output of `narrows check`, and the "asked" part of reports.

mod about;
mod app;
mod delay;
mod events;
mod guarantees;
mod inputs;
mod paths;
mod print;
mod rules;
mod sharing;
mod table;
mod warnings;

pub use delay::DelayExplanation;
pub use inputs::{FeedExplanation, LossExplanation, TraceExplanation};
pub use paths::{PathExplanation, WayExplanation};
pub use rules::{QueueExplanation, RuleExplanation, RulesExplanation};
pub use sharing::{ClassExplanation, SchedulerExplanation};

use narrows_core::queue::Bound;
use narrows_core::service::Overhead;
use narrows_core::{AirTime, Duration, Order, Rate};
use serde::Serialize;

use crate::direction::Direction;
use crate::host::Place;
use crate::link::{Lane, Link, Medium};
use crate::scenario::Scenario;
use crate::value::{self, ExactNetem, ProfileUse, Scheduler, TraceUse};

/// The effective settings of a scenario. `Display` prints them for people; the fields are for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The file name, or the flags.
    pub scenario: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Duration of a run in nanoseconds, if given.
    pub duration_ns: Option<u64>,
    /// Hosts: name and network namespace.
    pub hosts: Vec<String>,
    /// The engine's links.
    pub links: Vec<LinkExplanation>,
    /// Routers: name, links and routes.
    pub routers: Vec<String>,
    /// Switches: name, and links with their VLANs.
    pub switches: Vec<String>,
    /// Links with rules.
    pub rules: Vec<RulesExplanation>,
    /// Paths between pairs of hosts, each once.
    pub paths: Vec<PathExplanation>,
    /// Number of further paths that are not listed.
    pub paths_left_out: usize,
    /// Traffic of the scenario.
    pub traffic: Vec<String>,
    /// Scheduled changes.
    pub timeline: Vec<String>,
    /// Settings that are valid but probably unintended.
    pub warnings: Vec<String>,
}

/// The effective settings of one engine link: a direction of a link, or a shared medium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkExplanation {
    /// The engine's name for the link.
    pub name: String,
    /// Source end.
    pub from: String,
    /// Destination end.
    pub to: String,
    /// Whether both directions share it.
    pub shared: bool,
    /// Rate as written in a file.
    pub rate: String,
    /// Rate in bits per second; `None` if unlimited, zero while the link is down.
    pub rate_bps: Option<u64>,
    /// Framing overhead: what counts as the length of a packet.
    pub overhead: String,
    /// Delay and its distribution.
    pub delay: String,
    /// Mean delay in nanoseconds.
    pub mean_delay_ns: Option<u64>,
    /// Distribution of random delays, if any.
    pub distribution: Option<DelayExplanation>,
    /// Share of closely spaced packets that are delayed to keep order, for random delays with kept order.
    pub delayed_to_keep_order: Option<f64>,
    /// `keep` or `allow`.
    pub order: String,
    /// Options of NetEm's single queue, if that is the whole link.
    pub exact_netem: Option<String>,
    /// Bound of the queue; with a scheduler, the bound of each class that has none of its own, or of all
    /// flows together.
    pub queue: String,
    /// The bound in packets, if it counts packets.
    pub queue_packets: Option<u64>,
    /// The bound in bytes, if it counts bytes.
    pub queue_bytes: Option<u64>,
    /// Origin of the bound.
    pub queue_reason: String,
    /// `tail`, `head`, `longest flow`, `heavy flows`, or `None` if the queue decides itself which packet to drop.
    pub drop: Option<String>,
    /// AQM of the queue, with its effective parameters.
    pub management: Option<String>,
    /// Scheduler of the transmitter.
    pub scheduler: Option<SchedulerExplanation>,
    /// For a pipe with a mask: what distinguishes the flows that get a link each, and their maximum number.
    pub per_flow: Option<String>,
    /// For a pipe with queues: the scheduler that shares it.
    pub shared_by: Option<String>,
    /// For a pipe: its queues.
    pub queues: Vec<QueueExplanation>,
    /// Random loss by place.
    pub losses: Vec<LossExplanation>,
    /// Loss, other impairments and limits.
    pub impairments: Vec<String>,
    /// Trace that it follows, if any.
    pub trace: Option<TraceExplanation>,
    /// Feeds that another process must fill.
    pub feeds: Vec<FeedExplanation>,
    /// Expected values for small packets of 64 bytes.
    pub small: Expected,
    /// Expected values for full packets: 1500 bytes, or the MTU if smaller.
    pub full: Expected,
}

/// Expected values for packets of one length on one link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Length of the IP packet in bytes.
    pub bytes: u32,
    /// Transmission time (the mean if a profile makes it vary); `None` while the link is down.
    pub transmission_ns: Option<u64>,
    /// Transmission time plus mean delay, without queueing.
    pub one_way_ns: Option<u64>,
    /// Maximum time of a packet: behind a queue full of equal packets, with another one on the wire, and
    /// with the maximum delay (for a normal distribution, its p99.9). `None` with a scheduler, where it
    /// differs between packets, or with a rate trace.
    pub max_ns: Option<u64>,
    /// Capacity in packets per second; `None` if unlimited, or if stations contend for the link.
    pub packets_per_second: Option<f64>,
}

/// Length of a small IP packet in bytes.
pub(crate) const SMALL: u32 = 64;
/// Length of a full IP packet in bytes.
pub(crate) const FULL: u32 = 1500;
/// Length of an Ethernet header in bytes, which counts if the overhead includes it.
const LINK_HEADER: u8 = 14;

impl Scenario {
    /// The effective settings, with the current values of the links.
    pub fn explain(&self) -> Explanation {
        let (paths, paths_left_out) = self.paths();
        let warnings = warnings::all(self, &paths);
        Explanation {
            scenario: self.file.clone(),
            seed: self.seed,
            duration_ns: self.duration.map(Duration::nanos),
            hosts: self.hosts.iter().map(|host| format!("{}: {}", host.name, place(&host.place))).collect(),
            links: self.links.iter().flat_map(links).collect(),
            rules: self.links.iter().filter_map(rules::of).collect(),
            routers: self.routers.iter().map(|router| self.router_words(router)).collect(),
            switches: (0..self.switches.len()).map(|switch| self.switch_words(switch)).collect(),
            paths,
            paths_left_out,
            traffic: self.traffic.iter().map(events::traffic).collect(),
            timeline: self.timeline.iter().map(events::entry).collect(),
            warnings,
        }
    }
}

fn place(place: &Place) -> String {
    match place {
        Place::New => "a new network namespace".into(),
        Place::Namespace(name) => format!("the existing network namespace {name}"),
        Place::Process(pid) => format!("the network namespace of process {pid}"),
    }
}

fn links(link: &Link) -> Vec<LinkExplanation> {
    let shared = !matches!(link.medium, Medium::Duplex { .. });
    let lanes = link.lanes().into_iter().filter(|lane| lane.lane == 0);
    let one = |Lane { link: name, way, direction, .. }: Lane<'_>| {
        let mut explained = explain(name, link.ends(way), shared, direction);
        if !link.stations.is_empty() {
            explained.from = link.stations.join(", ");
        }
        explained
    };
    let mut all: Vec<LinkExplanation> = lanes.map(one).collect();
    if let Some(rules) = link.rules() {
        rules::of_pipes(rules, &mut all);
    }
    all
}

fn explain(name: String, [from, to]: [&str; 2], shared: bool, direction: &Direction) -> LinkExplanation {
    let (bound, queue_reason) = sharing::bound(direction);
    let rate = present_rate(direction);
    let scheduler = direction.scheduler.as_ref();
    let has_flows = scheduler.is_some_and(Scheduler::has_flows);
    let is_fq = scheduler.is_some_and(|scheduler| scheduler.kind == value::SchedulerKind::Fq);
    let is_hhf = scheduler.is_some_and(|scheduler| scheduler.kind == value::SchedulerKind::Hhf);
    let is_cake = scheduler.is_some_and(|scheduler| scheduler.kind == value::SchedulerKind::Cake);
    LinkExplanation {
        name,
        from: from.into(),
        to: to.into(),
        shared,
        rate: rate_words(direction),
        rate_bps: (rate != Rate::UNLIMITED).then(|| rate.bits_per_second()),
        overhead: value::overhead_words(counted(direction)),
        delay: delay_words(direction),
        mean_delay_ns: direction.mean_delay().map(Duration::nanos),
        distribution: DelayExplanation::of(direction),
        delayed_to_keep_order: delay::delayed_to_keep_order(direction).map(|(share, _)| share),
        order: match (&direction.exact_netem, direction.settings.order) {
            (Some(netem), _) if netem.overtakes() => "allow".into(),
            (_, Order::Keep) => "keep".into(),
            (_, Order::Allow) => "allow".into(),
        },
        exact_netem: direction.exact_netem.as_ref().map(ExactNetem::to_string),
        queue: bound.to_string(),
        queue_packets: match bound {
            Bound::Packets(packets) => Some(packets),
            Bound::Bytes(_) => None,
        },
        queue_bytes: match bound {
            Bound::Packets(_) => None,
            Bound::Bytes(bytes) => Some(bytes.get()),
        },
        queue_reason,
        drop: match direction.queue.has_place_to_drop() {
            _ if has_flows && !is_fq || is_cake => Some("longest flow".into()),
            _ if is_fq => Some("tail".into()),
            _ if is_hhf => Some("heavy flows".into()),
            true => Some(sharing::drop_word(direction.queue.drop).into()),
            false => None,
        },
        management: direction.queue.policy.words().filter(|_| scheduler.is_none()),
        scheduler: scheduler.map(|scheduler| sharing::scheduler(direction, scheduler)),
        per_flow: None,
        shared_by: None,
        queues: Vec::new(),
        losses: inputs::losses(direction),
        impairments: events::impairments(direction),
        trace: direction.trace.as_ref().map(inputs::trace),
        feeds: direction.feeds().into_iter().map(inputs::feed).collect(),
        small: expected(direction, SMALL),
        full: expected(direction, full_bytes(direction)),
    }
}

/// The current rate; with a trace, its mean.
fn present_rate(direction: &Direction) -> Rate {
    if direction.outage { Rate::DOWN } else { direction.mean_rate() }
}

fn rate_words(direction: &Direction) -> String {
    let rate = match &direction.trace {
        Some(trace) if trace.has_rate() => match trace.mean_rate() {
            Some(Rate::DOWN) => format!("by the trace {}, down all the time", trace.file.name),
            Some(mean) => format!("by the trace {}, {mean} on average", trace.file.name),
            None => format!("by the trace {}, without a limit at times", trace.file.name),
        },
        _ if direction.has_rate_of_profile() => format!("{}, by the profile", direction.mean_rate()),
        _ => direction.mean_rate().to_string(),
    };
    if direction.outage { format!("down (an outage; else {rate})") } else { rate }
}

fn delay_words(direction: &Direction) -> String {
    match (&direction.exact_netem, &direction.trace) {
        (Some(netem), _) => format!("NetEm's single queue: {netem}"),
        (None, Some(trace)) if direction.follows_delay_trace() => {
            let mean =
                trace.mean_delay().map_or(String::new(), |mean| format!(", {} on average", rounded(mean)));
            format!("by the trace {}{mean}", trace.file.name)
        }
        _ if !direction.says_delay() => "none".into(),
        _ => direction.effective_delay().to_string(),
    }
}

/// What counts as the length of a packet.
fn counted(direction: &Direction) -> Overhead {
    direction.single_netem().map_or(direction.effective_overhead(), ExactNetem::overhead)
}

/// Rounds times of a millisecond or more to microseconds.
fn rounded(time: Duration) -> Duration {
    match time.nanos() {
        nanos @ 0..1_000_000 => Duration::from_nanos(nanos),
        nanos => Duration::from_nanos(nanos.saturating_add(500) / 1000 * 1000),
    }
}

/// In percent, with a readable number of digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.2} %") }
}

fn expected(direction: &Direction, bytes: u32) -> Expected {
    let air_time = direction.profile.as_ref().map(|used| used.profile.air_time());
    let longest = transmission(direction, bytes, air_time.map(AirTime::longest).unwrap_or_default());
    let transmission = mean_transmission(direction, bytes);
    let waits_in_line =
        direction.scheduler.is_none() && !direction.trace.as_ref().is_some_and(TraceUse::has_rate);
    let rate = present_rate(direction);
    let contends = direction.scheduler.as_ref().is_some_and(|scheduler| scheduler.kind.is_medium_access());
    // The capacity left by contention depends on the contending stations.
    let has_limit = rate != Rate::UNLIMITED || air_time.is_some_and(|air| air.longest() > Duration::ZERO);
    let per_second = (has_limit && !contends).then(|| {
        let bits = counted(direction).bits(bytes, LINK_HEADER).max(1);
        match (direction.profile.as_ref().map(|used| used.profile.mean_seconds()), rate) {
            (None, _) | (_, Rate::DOWN) => rate.bits_per_second() as f64 / bits as f64,
            (Some(extra), Rate::UNLIMITED) => 1.0 / extra,
            (Some(extra), rate) => 1.0 / (extra + bits as f64 / rate.bits_per_second() as f64),
        }
    });
    Expected {
        bytes,
        transmission_ns: transmission.map(Duration::nanos),
        one_way_ns: one_way(direction, bytes).map(Duration::nanos),
        max_ns: longest.filter(|_| waits_in_line).and_then(|one| {
            let waiting = match direction.bound() {
                Bound::Packets(packets) => packets,
                Bound::Bytes(room) => room.get() / u64::from(bytes),
            };
            // The packets in the queue, including this one, and the one on the wire.
            let queueing = one.nanos().saturating_mul(waiting.saturating_add(1));
            Some((Duration::from_nanos(queueing) + direction.longest_delay()?).nanos())
        }),
        packets_per_second: per_second,
    }
}

/// Transmission time plus mean delay.
fn one_way(direction: &Direction, bytes: u32) -> Option<Duration> {
    Some(mean_transmission(direction, bytes)? + direction.mean_delay()?)
}

/// Mean transmission time; `None` while the link is down.
fn mean_transmission(direction: &Direction, bytes: u32) -> Option<Duration> {
    let air_time = direction.profile.as_ref().map(ProfileUse::mean);
    transmission(direction, bytes, air_time.unwrap_or_default())
}

/// Transmission time with this air time, rounded up; `None` while the link is down.
fn transmission(direction: &Direction, bytes: u32, air_time: Duration) -> Option<Duration> {
    let bits_e9 = u128::from(counted(direction).bits(bytes, LINK_HEADER)) * 1_000_000_000;
    match present_rate(direction) {
        Rate::UNLIMITED => Some(air_time),
        Rate::DOWN => None,
        rate => {
            let nanos = bits_e9.div_ceil(u128::from(rate.bits_per_second()));
            Some(air_time + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
        }
    }
}

fn full_bytes(direction: &Direction) -> u32 {
    direction.settings.mtu.map_or(FULL, |mtu| mtu.bytes.min(FULL))
}
