//! Schedulers, their classes, and what a class matches.

#![expect(dead_code, reason = "the types are there for their schema alone")]

mod hpd;
mod shaper;

use schemars::JsonSchema;

use super::queue::Queue;
use super::{Bound, Rate, Share, Size, Time};

/// What shares the transmitter among classes or flows.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Scheduler {
    /// With all its defaults, or `none`.
    Named(SchedulerName),
    /// In the order of arrival, or strict priority.
    Classes(ClassScheduler),
    /// Three bands by the TOS byte.
    PfifoFast(PfifoFastScheduler),
    /// Deficit round robin.
    Drr(DrrScheduler),
    /// Fair queueing by weights.
    Weights(WeightScheduler),
    /// Stochastic fairness queueing.
    Sfq(SfqScheduler),
    /// FQ-CoDel.
    FqCodel(FqCodelScheduler),
    /// FQ-PIE.
    FqPie(FqPieScheduler),
    /// Stations of 802.11b.
    Dcf(DcfScheduler),
    /// Delays in proportion.
    Hpd(hpd::HpdScheduler),
    /// A token bucket.
    Tbf(shaper::TbfScheduler),
    /// A tree of token buckets.
    Htb(shaper::HtbScheduler),
    /// A tree of classes that are kept to their rates by their idle times.
    Cbq(shaper::CbqScheduler),
}

/// A scheduler that has defaults for everything, or none.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(super) enum SchedulerName {
    /// None.
    None,
    /// In the order of arrival.
    Fifo,
    /// Strict priority, of the queues of a pipe.
    Prio,
    /// Three bands by the TOS byte.
    PfifoFast,
    /// Deficit round robin, of flows.
    Drr,
    /// Worst-case fair weighted fair queueing, of flows.
    #[schemars(rename = "wf2q+")]
    Wf2q,
    /// Quick fair queueing, of flows.
    Qfq,
    /// Grouped fair queueing, of flows.
    Gfq,
    /// Stochastic fairness queueing.
    Sfq,
    /// FQ-CoDel.
    FqCodel,
    /// FQ-PIE.
    FqPie,
    /// 802.11b, of those who send.
    Dcf,
    /// Delays in proportion, of classes.
    Hpd,
}

names! {
    /// What has classes alone.
    ClassesType { Fifo, Prio }
    /// Three bands by the TOS byte.
    PfifoFastType { #[schemars(rename = "pfifo_fast")] PfifoFast }
    /// Deficit round robin.
    DrrType { Drr }
    /// By weights.
    WeightsType { #[schemars(rename = "wf2q+")] Wf2q, Qfq, Gfq }
    /// Stochastic fairness queueing.
    SfqType { Sfq }
    /// FQ-CoDel.
    FqCodelType { #[schemars(rename = "fq_codel")] FqCodel }
    /// FQ-PIE.
    FqPieType { #[schemars(rename = "fq_pie")] FqPie }
    /// 802.11b.
    DcfType { Dcf }
}

/// What serves classes alone.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ClassScheduler {
    /// `fifo`: in the order of arrival; `prio`: strict priority, the first class first.
    #[schemars(rename = "type")]
    kind: ClassesType,
    /// How much may wait in all; nothing but the bounds of classes if it is not given.
    bound: Option<Bound>,
    /// The classes, in the order in which their conditions are tried.
    #[schemars(length(min = 1))]
    classes: Option<Vec<Class>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
}

/// Three bands by the TOS byte.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PfifoFastScheduler {
    /// As Linux has it.
    #[schemars(rename = "type")]
    kind: PfifoFastType,
    /// How much may wait in all.
    bound: Option<Bound>,
}

/// Deficit round robin, of classes or flows.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DrrScheduler {
    /// Deficit round robin.
    #[schemars(rename = "type")]
    kind: DrrType,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// The classes, in the order in which their conditions are tried.
    #[schemars(length(min = 1))]
    classes: Option<Vec<Class>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
    /// Into how many flows packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a flow.
    by: Option<Identity>,
    /// What a flow of weight 1 sends in its turn; 1500 bytes.
    quantum: Option<Size>,
}

/// Fair queueing by weights, of classes or flows.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WeightScheduler {
    /// Which one.
    #[schemars(rename = "type")]
    kind: WeightsType,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// The classes, in the order in which their conditions are tried.
    #[schemars(length(min = 1))]
    classes: Option<Vec<Class>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
    /// Into how many flows packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a flow.
    by: Option<Identity>,
}

/// Stochastic fairness queueing.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SfqScheduler {
    /// Stochastic fairness queueing.
    #[schemars(rename = "type")]
    kind: SfqType,
    /// How much may wait in all; the queue's bound, or 127 packets.
    bound: Option<Bound>,
    /// Into how many flows packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a flow.
    by: Option<Identity>,
    /// What a flow sends in its turn; 1514 bytes.
    quantum: Option<Size>,
}

/// Fair queueing with CoDel (RFC 8290).
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FqCodelScheduler {
    /// FQ-CoDel.
    #[schemars(rename = "type")]
    kind: FqCodelType,
    /// How much may wait in all; the queue's bound, or 10240 packets.
    bound: Option<Bound>,
    /// Into how many flows packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a flow.
    by: Option<Identity>,
    /// What a flow sends in its turn; 1514 bytes.
    quantum: Option<Size>,
    /// The sojourn that is good enough as a standing queue; 5 ms.
    target: Option<Time>,
    /// For how long sojourns must have been above it; 100 ms.
    interval: Option<Time>,
    /// The longest packet; 1500 bytes.
    longest: Option<Size>,
    /// Whether packets are marked that can be; yes.
    ecn: Option<bool>,
}

/// Fair queueing with PIE.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FqPieScheduler {
    /// FQ-PIE.
    #[schemars(rename = "type")]
    kind: FqPieType,
    /// How much may wait in all; the queue's bound, or 10240 packets.
    bound: Option<Bound>,
    /// Into how many flows packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a flow.
    by: Option<Identity>,
    /// What a flow sends in its turn; 1514 bytes.
    quantum: Option<Size>,
    /// The delay to hold; 15 ms.
    target: Option<Time>,
    /// How often the probability moves; 15 ms.
    update: Option<Time>,
    /// The gain of the deviation from the target, in hertz; 0.125.
    alpha: Option<f64>,
    /// The gain of its change, in hertz; 1.25.
    beta: Option<f64>,
    /// For how long the beginning of a burst is let pass; 150 ms.
    burst: Option<Time>,
    /// The mean packet; 1024 bytes.
    mean_packet: Option<Size>,
    /// Whether packets are marked that can be; yes.
    ecn: Option<bool>,
    /// At this probability and above they are dropped even so; 10 %.
    mark_below: Option<Share>,
    /// Whether drops come at even distances; no.
    derandomize: Option<bool>,
    /// Whether the probability, from 10 % on, rises by no more than 2 % at an update; no.
    cap_drop: Option<bool>,
    /// Above this delay it rises by 2 % more at each update; never.
    steep_above: Option<Time>,
}

/// Stations of 802.11b that contend for the medium; classes are stations, or those who send are.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DcfScheduler {
    /// The distributed coordination function.
    #[schemars(rename = "type")]
    kind: DcfType,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// The stations, in the order in which their conditions are tried.
    #[schemars(length(min = 1))]
    classes: Option<Vec<Class>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
    /// Into how many stations packets are hashed; 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// What makes a station; the source address.
    by: Option<Identity>,
    /// The form of the PLCP preamble; long.
    preamble: Option<Preamble>,
    /// The rate of acknowledgements; 2 Mbit/s.
    basic_rate: Option<Rate>,
    /// The contention window of a first attempt, one less than a power of two; 31.
    window_min: Option<u32>,
    /// The greatest contention window; 1023.
    window_max: Option<u32>,
    /// How often a packet may collide; 7.
    #[schemars(range(min = 1, max = 255))]
    retry_limit: Option<u32>,
    /// Longer frames are announced by RTS and CTS; `none`.
    rts_threshold: Option<String>,
}

/// Sends packets to a class.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Filter {
    /// What a packet must be like.
    #[schemars(rename = "match")]
    matches: OneOrMore<Match>,
    /// The name of the class.
    class: String,
}

/// A form of the PLCP preamble.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Preamble {
    /// 192 µs with its header.
    Long,
    /// 96 µs.
    Short,
}

/// What becomes of packets of no class.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum DefaultClass {
    /// `drop`: they are dropped. With `filters` also the name of a class, which takes them.
    Name(String),
}

/// What makes a flow.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Identity {
    /// Addresses, ports and protocol.
    #[schemars(rename = "5-tuple")]
    FiveTuple,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// Both addresses.
    Addresses,
}

/// Packets that share a queue behind a scheduler.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Class {
    /// Unique in its scheduler.
    name: String,
    /// Its share relative to the others; 1.
    #[schemars(range(min = 1))]
    weight: Option<u32>,
    /// What belongs to it; without, what no class before it takes.
    #[schemars(rename = "match")]
    matches: Option<OneOrMore<Match>>,
    /// Where its packets wait; like the link's queue if it is not given.
    queue: Option<Queue>,
    /// The longest packet that is expected.
    longest: Option<Size>,
    /// Another scheduler in place of a queue.
    scheduler: Option<Box<Scheduler>>,
    /// NetEm's single queue in place of a queue, in its words.
    netem: Option<String>,
}

/// One, or a list of which one must hold.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum OneOrMore<T> {
    /// One.
    One(T),
    /// Any of several.
    More(#[schemars(length(min = 1))] Vec<T>),
}

/// What a packet must be like: all of this.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Match {
    /// IP protocol: a name such as `udp`, or a number.
    protocol: Option<OneOrMore<NameOrNumber>>,
    /// Where it comes from: a host of the scenario, an address or a network.
    source: Option<OneOrMore<String>>,
    /// Where it goes: a host of the scenario, an address or a network.
    destination: Option<OneOrMore<String>>,
    /// The source port: a number, or a range such as `6000-6100`.
    source_port: Option<OneOrMore<Port>>,
    /// The destination port.
    destination_port: Option<OneOrMore<Port>>,
    /// The one port or the other.
    port: Option<OneOrMore<Port>>,
    /// Differentiated services code point: a name such as `ef`, or a number.
    dscp: Option<OneOrMore<NameOrNumber>>,
    /// Bytes of the IP packet: `..300 bytes`, `301 bytes..` or `100..200 bytes`.
    length: Option<String>,
    /// On a shared medium: which way it goes.
    from: Option<Way>,
}

/// A name or a number.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum NameOrNumber {
    /// By number.
    Number(u8),
    /// By name.
    Name(String),
}

/// A port or a range of ports.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Port {
    /// One.
    Number(u16),
    /// From one to another, both included.
    Range(#[schemars(regex(pattern = r"^ *[0-9]+ *(- *[0-9]+ *)?$"))] String),
}

/// Which way along a link.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Way {
    /// From the first to the second.
    Up,
    /// From the second to the first.
    Down,
}
