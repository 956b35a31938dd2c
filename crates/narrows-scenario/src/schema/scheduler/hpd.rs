//! Hybrid proportional delay.

use schemars::JsonSchema;

use super::{DefaultClass, Filter, Match, OneOrMore, Scheduler};
use crate::schema::queue::Queue;
use crate::schema::{Bound, Time};

/// Hybrid proportional delay, of classes.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(in crate::schema) struct HpdScheduler {
    /// Delays in proportion, with limits.
    #[schemars(rename = "type")]
    kind: HpdType,
    /// How much may wait in all; nothing but the bounds of classes if it is not given.
    bound: Option<Bound>,
    /// The classes, in the order in which their conditions are tried.
    #[schemars(length(min = 1, max = 32))]
    classes: Option<Vec<HpdClass>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
    /// Who goes first among several classes whose limit is at stake; `reference`.
    bound_order: Option<BoundOrder>,
    /// When a limit is at stake; `about-to-violate`.
    bound_reading: Option<BoundReading>,
}

/// Who goes first among classes whose limit is at stake.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum BoundOrder {
    /// The last class.
    Reference,
    /// The one whose limit is reached first.
    EarliestDeadline,
}

/// When a limit is at stake.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum BoundReading {
    /// When one packet more would miss it.
    AboutToViolate,
    /// When it has been missed.
    HasViolated,
}

/// Packets that share a queue and have a part in the delays.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct HpdClass {
    /// Unique in its scheduler.
    name: String,
    /// What belongs to it; without, what no class before it takes.
    #[schemars(rename = "match")]
    matches: Option<OneOrMore<Match>>,
    /// Where its packets wait; like the link's queue if it is not given.
    queue: Option<Queue>,
    /// Delays are in proportion to it; 1.
    #[schemars(range(min = 1))]
    ddp: Option<u32>,
    /// The weight of the newest delay in the average, in 1024ths, or `auto`; `auto`.
    gamma: Option<Gamma>,
    /// The weight of the average against the wait of the first packet, in 1024ths; 512.
    #[schemars(range(max = 1024))]
    g: Option<u32>,
    /// No packet is to wait longer; `none`.
    limit: Option<Limit>,
    /// How the average delay is estimated; `ewma`.
    estimator: Option<Estimator>,
    /// Another scheduler in place of a queue.
    scheduler: Option<Box<Scheduler>>,
    /// NetEm's single queue in place of a queue, in its words.
    netem: Option<String>,
}

/// The weight of the newest delay in an average.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Gamma {
    /// In 1024ths.
    Fixed(#[schemars(range(max = 1024))] u32),
    /// By the backlog.
    Auto(Auto),
}

names! {
    /// Delays in proportion.
    HpdType { Hpd }
    /// By the backlog.
    Auto { Auto }
    /// None.
    NoLimit { None }
    /// The exact mean first.
    EwmaRType { #[schemars(rename = "ewma-r")] EwmaR }
    /// By the proportional error.
    EwmaPeType { #[schemars(rename = "ewma-pe")] EwmaPe }
    /// Plain.
    EwmaType { Ewma }
}

/// The longest wait.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Limit {
    /// Such a time.
    Time(Time),
    /// Any.
    None(NoLimit),
}

/// How an average delay is estimated.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Estimator {
    /// By name, with its defaults.
    Named(EstimatorName),
    /// An exponentially weighted moving average.
    Ewma(Ewma),
    /// With restart.
    EwmaR(EwmaR),
    /// By the proportional error.
    EwmaPe(EwmaPe),
}

/// An estimator of delays.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum EstimatorName {
    /// An exponentially weighted moving average.
    Ewma,
    /// With restart.
    EwmaR,
    /// By the proportional error.
    EwmaPe,
}

/// An exponentially weighted moving average.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Ewma {
    /// Plain.
    #[schemars(rename = "type")]
    kind: EwmaType,
}

/// The exact mean of the first packets, the moving average from there on, and anew after an idle time.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct EwmaR {
    /// With restart.
    #[schemars(rename = "type")]
    kind: EwmaRType,
    /// How many packets the exact mean is of; 25.
    threshold: Option<u32>,
    /// The idle time; 2 ms.
    cycle: Option<Time>,
}

/// The newest delay weighs more where it is far from the average.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct EwmaPe {
    /// By the proportional error.
    #[schemars(rename = "type")]
    kind: EwmaPeType,
    /// Up to how many times as much; 7, or 8 with steps of 12.5 %.
    #[schemars(range(min = 1, max = 255))]
    steps: Option<u32>,
    /// How far each step is; 10 %.
    width: Option<ErrorWidth>,
}

/// A step of the proportional error.
#[derive(JsonSchema)]
enum ErrorWidth {
    /// As published with the estimator.
    #[schemars(rename = "10%")]
    Tenth,
    /// As in the published implementation.
    #[schemars(rename = "12.5%")]
    Eighth,
}
