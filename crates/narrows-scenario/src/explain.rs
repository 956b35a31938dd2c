//! What a scenario comes to: for `narrows check`, and as the "asked" part of reports.

mod about;
mod app;
mod delay;
mod events;
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

/// What a scenario comes to. It prints for people; its fields are for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The file, or the flags.
    pub scenario: String,
    /// The seed of every random draw.
    pub seed: u64,
    /// How long a run lasts, in nanoseconds, if that is said.
    pub duration_ns: Option<u64>,
    /// The hosts: name and place.
    pub hosts: Vec<String>,
    /// The links of the engine.
    pub links: Vec<LinkExplanation>,
    /// The routers: name, links and routes.
    pub routers: Vec<String>,
    /// The rules of links that have some.
    pub rules: Vec<RulesExplanation>,
    /// The paths between two hosts, each once.
    pub paths: Vec<PathExplanation>,
    /// How many more paths there are.
    pub paths_left_out: usize,
    /// The traffic that the scenario brings.
    pub traffic: Vec<String>,
    /// What changes when.
    pub timeline: Vec<String>,
    /// What may not be meant.
    pub warnings: Vec<String>,
}

/// What one link of the engine comes to: a direction of a link, or a shared medium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkExplanation {
    /// Its name in the engine.
    pub name: String,
    /// Where it comes from.
    pub from: String,
    /// Where it leads.
    pub to: String,
    /// Whether both directions share it.
    pub shared: bool,
    /// The rate, as it stands in a file.
    pub rate: String,
    /// Bits a second; nothing where it is unlimited, zero while it is down.
    pub rate_bps: Option<u64>,
    /// What counts as the length of a packet.
    pub overhead: String,
    /// The delay and its distribution.
    pub delay: String,
    /// Its mean, in nanoseconds.
    pub mean_delay_ns: Option<u64>,
    /// The distribution that it is drawn from, if it is.
    pub distribution: Option<DelayExplanation>,
    /// Of packets close together, the share that is held back behind the one before where order is kept and delays are
    /// drawn.
    pub held_back: Option<f64>,
    /// `keep` or `allow`.
    pub order: String,
    /// The options of NetEm's single queue, where that is all that the link does.
    pub exact_netem: Option<String>,
    /// The bound of the queue; with a scheduler of each class that says nothing else, or of all flows together.
    pub queue: String,
    /// The same in packets, where it is in packets.
    pub queue_packets: Option<u64>,
    /// The same in bytes, where it is in bytes.
    pub queue_bytes: Option<u64>,
    /// Where the bound comes from.
    pub queue_reason: String,
    /// `tail`, `head`, `longest flow`, or nothing where the queue says itself which packet goes.
    pub drop: Option<String>,
    /// What manages the queue, with the parameters in force.
    pub management: Option<String>,
    /// What shares the transmitter.
    pub scheduler: Option<SchedulerExplanation>,
    /// Of a pipe: what tells the flows apart that have a link each, and how many there may be.
    pub per_flow: Option<String>,
    /// Of a pipe with queues: the scheduler that they share it by.
    pub shared_by: Option<String>,
    /// Of a pipe: its queues.
    pub queues: Vec<QueueExplanation>,
    /// Losses in each place where there are any by chance.
    pub losses: Vec<LossExplanation>,
    /// Losses and other impairments and limits.
    pub impairments: Vec<String>,
    /// What it follows over time, if it does.
    pub trace: Option<TraceExplanation>,
    /// The feeds that another process is to fill.
    pub feeds: Vec<FeedExplanation>,
    /// What is expected of a small packet, 64 bytes.
    pub small: Expected,
    /// What is expected of a full packet, 1500 bytes or the MTU if that is less.
    pub full: Expected,
}

/// What is expected of packets of one length on one link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// How long it is on the wire, on average where a profile makes that vary; nothing while the link is down.
    pub transmission_ns: Option<u64>,
    /// Transmission and mean delay, without waiting.
    pub one_way_ns: Option<u64>,
    /// The longest time that one takes: behind a queue full of its like, with one more on the wire, and with the longest
    /// delay (of a normal delay, the one that one packet in a thousand exceeds). Nothing with a scheduler, where it is not
    /// the same for all, or with a trace of the rate.
    pub max_ns: Option<u64>,
    /// How many a second the link carries; nothing where it is unlimited, or where stations contend for it.
    pub packets_per_second: Option<f64>,
}

/// Bytes of a small IP packet.
pub(crate) const SMALL: u32 = 64;
/// Bytes of a full IP packet.
pub(crate) const FULL: u32 = 1500;
/// Bytes of an Ethernet header, which counts where the overhead says so.
const LINK_HEADER: u8 = 14;

impl Scenario {
    /// What the scenario comes to, with the links' present values.
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
    let one =
        |Lane { link: name, way, direction, .. }: Lane<'_>| explain(name, link.ends(way), shared, direction);
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
        held_back: delay::held_back(direction).map(|(share, _)| share),
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
            _ if has_flows => Some("longest flow".into()),
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
        feeds: direction.effective_delay().feeds().into_iter().map(inputs::feed).collect(),
        small: expected(direction, SMALL),
        full: expected(direction, full_bytes(direction)),
    }
}

/// The rate now, and over time the mean of a trace.
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

/// To a microsecond, where it is a millisecond or more.
fn rounded(time: Duration) -> Duration {
    match time.nanos() {
        nanos @ 0..1_000_000 => Duration::from_nanos(nanos),
        nanos => Duration::from_nanos(nanos.saturating_add(500) / 1000 * 1000),
    }
}

/// In percent, with as many digits as a person would want.
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
    // What contention leaves of the rate depends on who contends.
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
            // Those that wait, the packet itself among them, and the one on the wire.
            let queueing = one.nanos().saturating_mul(waiting.saturating_add(1));
            Some((Duration::from_nanos(queueing) + direction.longest_delay()?).nanos())
        }),
        packets_per_second: per_second,
    }
}

/// Transmission and mean delay.
fn one_way(direction: &Direction, bytes: u32) -> Option<Duration> {
    Some(mean_transmission(direction, bytes)? + direction.mean_delay()?)
}

/// How long a packet is on the wire on average; nothing while the link is down.
fn mean_transmission(direction: &Direction, bytes: u32) -> Option<Duration> {
    let air_time = direction.profile.as_ref().map(ProfileUse::mean);
    transmission(direction, bytes, air_time.unwrap_or_default())
}

/// How long a packet with this air time is on the wire, rounded up; nothing while the link is down.
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
