//! Queues and their management.

#![expect(dead_code, reason = "the types are there for their schema alone")]

use schemars::JsonSchema;

use super::{Bound, Share, Size, Time};

/// Where packets wait for the transmitter.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Queue {
    /// How much may wait; the packet that arrives at a full queue is dropped.
    Bound(Bound),
    /// A queue of this type with all its defaults.
    Named(QueueType),
    /// First in, first out.
    Parts(QueueParts),
    /// Random early detection.
    Red(RedQueue),
    /// The same, gentle above the upper threshold.
    Gred(GredQueue),
    /// Controlled delay (RFC 8289).
    Codel(CodelQueue),
    /// PIE (RFC 8033).
    Pie(PieQueue),
    /// DualPI2 (RFC 9332).
    DualPi2(DualPi2Queue),
}

/// A type of queue.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum QueueType {
    /// First in, first out.
    Fifo,
    /// Random early detection.
    Red,
    /// The same, gentle above the upper threshold.
    Gred,
    /// Controlled delay.
    Codel,
    /// Proportional integral controller, enhanced.
    Pie,
    /// Two coupled queues, one for low latency.
    DualPi2,
}

names! {
    /// First in, first out.
    FifoType { Fifo }
    /// Random early detection.
    RedType { Red }
    /// The same, gentle.
    GredType { Gred }
    /// Controlled delay.
    CodelType { Codel }
    /// Proportional integral controller, enhanced.
    PieType { Pie }
    /// Two coupled queues.
    DualPi2Type { DualPi2 }
}

/// The parts of a queue.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct QueueParts {
    /// First in, first out.
    #[schemars(rename = "type")]
    kind: Option<FifoType>,
    /// How much may wait.
    bound: Option<Bound>,
    /// Which packet goes when it is full.
    drop: Option<Drop>,
}

/// Which packet goes when a queue is full.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Drop {
    /// The one that arrives.
    Tail,
    /// Those that have waited longest.
    Head,
}

/// Random early detection (Floyd and Jacobson 1993).
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RedQueue {
    /// Random early detection.
    #[schemars(rename = "type")]
    kind: RedType,
    /// How much may wait.
    bound: Option<Bound>,
    /// Which packet goes when it is full.
    drop: Option<Drop>,
    /// The average above which packets are dropped at random.
    min: Option<Bound>,
    /// The average above which all are, or with `gentle` more and more of them.
    max: Option<Bound>,
    /// That of a drop when the average is at `max`; 10 %.
    probability: Option<Share>,
    /// How much an arrival counts in the average; 0.002.
    weight: Option<f64>,
    /// The packet whose sending is the unit of idle time; 512 bytes.
    typical_packet: Option<Size>,
    /// With thresholds in bytes: the packet that is dropped with the full probability; 1500 bytes.
    longest_packet: Option<Size>,
    /// Whether packets are marked that can be; yes.
    ecn: Option<bool>,
    /// Whether the probability rises gradually from `max` to twice that; no.
    gentle: Option<bool>,
}

/// Random early detection, gentle.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct GredQueue {
    /// The probability rises gradually from `max` to twice that.
    #[schemars(rename = "type")]
    kind: GredType,
    /// How much may wait.
    bound: Option<Bound>,
    /// Which packet goes when it is full.
    drop: Option<Drop>,
    /// The average above which packets are dropped at random.
    min: Option<Bound>,
    /// The average above which more and more of them are.
    max: Option<Bound>,
    /// That of a drop when the average is at `max`; 10 %.
    probability: Option<Share>,
    /// How much an arrival counts in the average; 0.002.
    weight: Option<f64>,
    /// The packet whose sending is the unit of idle time; 512 bytes.
    typical_packet: Option<Size>,
    /// With thresholds in bytes: the packet that is dropped with the full probability; 1500 bytes.
    longest_packet: Option<Size>,
    /// Whether packets are marked that can be; yes.
    ecn: Option<bool>,
}

/// Controlled delay.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CodelQueue {
    /// Controlled delay.
    #[schemars(rename = "type")]
    kind: CodelType,
    /// How much may wait.
    bound: Option<Bound>,
    /// Which packet goes when it is full.
    drop: Option<Drop>,
    /// The sojourn that is good enough as a standing queue; 5 ms.
    target: Option<Time>,
    /// For how long sojourns must have been above it; 100 ms.
    interval: Option<Time>,
    /// The longest packet: with no more left waiting there is no standing queue; 1500 bytes.
    longest: Option<Size>,
    /// Whether packets are marked that can be; yes.
    ecn: Option<bool>,
}

/// PIE.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PieQueue {
    /// Proportional integral controller, enhanced.
    #[schemars(rename = "type")]
    kind: PieType,
    /// How much may wait.
    bound: Option<Bound>,
    /// Which packet goes when it is full.
    drop: Option<Drop>,
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
    /// The mean packet: while no more than two wait none is dropped; 1024 bytes.
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

/// DualPI2.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DualPi2Queue {
    /// Two coupled queues.
    #[schemars(rename = "type")]
    kind: DualPi2Type,
    /// How much may wait in both.
    bound: Option<Bound>,
    /// The delay to hold in the classic half; 15 ms.
    target: Option<Time>,
    /// How often the probability moves; 16 ms.
    update: Option<Time>,
    /// The gain of the deviation from the target, in hertz; 0.16.
    alpha: Option<f64>,
    /// The gain of its change, in hertz; 3.2.
    beta: Option<f64>,
    /// How much stronger the low-latency half is marked; 2.
    coupling: Option<f64>,
    /// From which sojourn on packets of the low-latency half are marked in any case.
    step: Option<Time>,
    /// The same, with a probability that rises evenly.
    ramp: Option<Ramp>,
    /// How many packets must still wait there for that; 1 packet.
    least: Option<Bound>,
    /// How the halves share the link, by bytes.
    weights: Option<HalfWeights>,
    /// Instead: the packet that has waited longer, with this much more for low latency.
    shift: Option<Time>,
}

/// None is marked up to `from`, every one from `to` on.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Ramp {
    /// Up to here none.
    from: Time,
    /// From here on every one.
    to: Time,
}

/// The shares of the two halves.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct HalfWeights {
    /// Of low latency.
    low: u16,
    /// Of the others.
    classic: u16,
}
