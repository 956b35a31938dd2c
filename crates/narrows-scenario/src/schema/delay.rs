//! Delays, distributions and slots.

#![expect(dead_code, reason = "the types are there for their schema alone")]

use schemars::JsonSchema;

use super::from_rows::Match;
use super::{Order, Share, Size, Time};

/// A propagation delay.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Delay {
    /// Always the same.
    Constant(Time),
    /// Drawn from a distribution, by pattern, fed by another process, or by class.
    Model(Box<DelayModel>),
}

/// One shape of a distribution, or one of `pattern`, `feed` and `classes`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DelayModel {
    #[schemars(flatten)]
    distribution: Distribution,
    /// How alike neighbours are: in time (`20ms`), or the rank correlation from packet to packet (`25%`).
    correlation: Option<Correlation>,
    /// By a pattern of delays.
    pattern: Option<PatternFile>,
    /// Streamed in by another process, under this name.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    feed: Option<String>,
    /// What becomes of a packet for which there is no value; `zero` if it is not given.
    on_empty: Option<OnEmpty>,
    /// The same.
    #[schemars(rename = "on_empty")]
    on_empty_too: Option<OnEmpty>,
    /// How far ahead the values may run: 4096 of them if it is not given.
    lead: Option<Lead>,
    /// Ask for each packet, and wait this long for the answer.
    ask: Option<Time>,
    /// By what a packet is: the first that takes it.
    #[schemars(length(min = 1, max = 1000))]
    classes: Option<Vec<DelayClass>>,
    /// More for each byte of the IP packet, such as `8ns`.
    #[schemars(regex(pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ps|ns|us|µs|μs|ms) *$"))]
    per_byte: Option<String>,
    /// Whether packets may overtake one another.
    order: Option<Order>,
}

/// Packets of one kind, and their delay.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct DelayClass {
    /// Which packets; all that no class before takes if it is not given.
    r#match: Option<ShortMatch>,
    /// Their delay, without an order.
    delay: Delay,
}

/// Which packets.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum ShortMatch {
    /// Of this protocol.
    Protocol(String),
    /// With all of these.
    Table(Box<Match>),
}

/// How alike the delays of neighbours are.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Correlation {
    /// Smooth in time, over this long.
    InTime(Time),
    /// Spearman's, of one packet and the next.
    PerPacket(Share),
}

/// What becomes of a packet for which there is no value.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(super) enum OnEmpty {
    /// It is not delayed.
    Zero,
    /// It gets the last delay.
    Last,
    /// The last values come again.
    Repeat,
    /// It is lost.
    Drop,
}

/// A number of values, or a time.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Lead {
    /// `4096 values`, or `100ms`.
    Text(
        #[schemars(regex(
            pattern = r"^ *([0-9_]+ *(values?)?|\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h)) *$"
        ))]
        String,
    ),
    /// The number alone.
    Number(#[schemars(range(min = 1, max = 1_048_576))] u32),
}

/// A distribution of times: one shape, and what changes it.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(super) struct Distribution {
    /// Always the same.
    constant: Option<Time>,
    /// Every time from `low` to `high` is equally likely.
    uniform: Option<UniformDelay>,
    /// Normal.
    normal: Option<NormalDelay>,
    /// Log-normal, by `mean` and `sd`, or by `median` and `sigma`.
    log_normal: Option<LogNormalDelay>,
    /// Exponential.
    exponential: Option<ExponentialDelay>,
    /// Gamma, by `mean` and `sd`, or by `shape` and `scale`.
    gamma: Option<GammaDelay>,
    /// Weibull.
    weibull: Option<WeibullDelay>,
    /// Pareto, of the first kind.
    pareto: Option<ParetoDelay>,
    /// NetEm's: (normal + 3 · Pareto)/4, with this mean and standard deviation.
    pareto_normal: Option<NormalDelay>,
    /// A table of deviates, as NetEm's `.dist` files are.
    table: Option<TableDelay>,
    /// As measured.
    samples: Option<SampleDelay>,
    /// Uniform within each of several bins.
    histogram: Option<HistogramDelay>,
    /// Linear between points of the cumulative distribution.
    cdf: Option<CdfDelay>,
    /// One of several, by weight.
    #[schemars(length(min = 1, max = 1000))]
    mixture: Option<Vec<MixturePart>>,
    /// Added to what the shape gives; may be negative.
    #[schemars(regex(pattern = r"^ *[+-]?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h) *$"))]
    shift: Option<String>,
    /// Nothing is less; the rest keeps its shape.
    minimum: Option<Time>,
    /// Nothing is more; the rest keeps its shape.
    maximum: Option<Time>,
    /// What becomes of what is left below zero; `clamp` if it is not given.
    below_zero: Option<BelowZero>,
}

/// What becomes of what is below zero.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(super) enum BelowZero {
    /// It becomes zero.
    Clamp,
    /// It never happens.
    Truncate,
}

/// Both included.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct UniformDelay {
    /// The least.
    low: Time,
    /// The most.
    high: Time,
}

/// Before what is below zero becomes zero.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct NormalDelay {
    /// The mean.
    mean: Time,
    /// The standard deviation.
    sd: Time,
}

/// One pair or the other.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LogNormalDelay {
    /// The mean.
    mean: Option<Time>,
    /// The standard deviation.
    sd: Option<Time>,
    /// The median.
    median: Option<Time>,
    /// The standard deviation of the natural logarithm, 0 to 20.
    sigma: Option<Number>,
}

/// One parameter.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ExponentialDelay {
    /// The mean, and the standard deviation.
    mean: Time,
}

/// One pair or the other.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct GammaDelay {
    /// The mean.
    mean: Option<Time>,
    /// The standard deviation.
    sd: Option<Time>,
    /// k, 0.01 to 10⁹.
    shape: Option<Number>,
    /// θ; the mean is k·θ.
    scale: Option<Time>,
}

/// P(X > x) = exp(−(x/scale)^shape).
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct WeibullDelay {
    /// k, 0.05 to 1000.
    shape: Number,
    /// λ.
    scale: Time,
}

/// P(X > x) = (minimum/x)^shape.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ParetoDelay {
    /// α, 0.05 to 1000; the mean is infinite up to 1, the standard deviation up to 2.
    shape: Number,
    /// The least.
    minimum: Time,
}

/// mean + sd · entry/8192, each entry equally likely: one of `file` and `name`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct TableDelay {
    /// A `.dist` file.
    file: Option<String>,
    /// A table that is made from its formula.
    name: Option<TableName>,
    /// Where an entry of zero lies.
    mean: Time,
    /// What an entry of 8192 adds.
    sd: Time,
}

/// A table that is made from its formula.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum TableName {
    /// The inverse of the normal distribution.
    Normal,
    /// NetEm's, a = 3.
    Pareto,
    /// (normal + 3 · pareto)/4.
    ParetoNormal,
}

/// One of `file` and `values`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SampleDelay {
    /// A number a line, or a column of a CSV file.
    file: Option<String>,
    /// The unit of numbers in the file that stand without one.
    unit: Option<TimeUnit>,
    /// The name of the column, or its number from 1.
    column: Option<NameOrNumber>,
    /// The samples themselves.
    #[schemars(length(min = 1, max = 100_000))]
    values: Option<Vec<Time>>,
}

/// One of `file` and `bins`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct HistogramDelay {
    /// `lower bound,count,unit` a row; the last ends the last bin.
    file: Option<String>,
    /// The unit of numbers in the file that stand without one.
    unit: Option<TimeUnit>,
    /// From, to, weight of each.
    #[schemars(length(min = 1, max = 100_000), inner(length(min = 3, max = 3)))]
    bins: Option<Vec<Vec<TextOrNumber>>>,
}

/// One of `file` and `points`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CdfDelay {
    /// `delay,probability` a row.
    file: Option<String>,
    /// The unit of numbers in the file that stand without one.
    unit: Option<TimeUnit>,
    /// A delay, and the probability that one is no longer; both rising, to 1.
    #[schemars(length(min = 1, max = 100_000), inner(length(min = 2, max = 2)))]
    points: Option<Vec<Vec<TextOrNumber>>>,
}

/// A distribution and its weight.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct MixturePart {
    /// Above zero, compared with the others.
    weight: Number,
    #[schemars(flatten)]
    distribution: Distribution,
}

/// A unit of times.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum TimeUnit {
    /// 10⁻⁹ s.
    Ns,
    /// 10⁻⁶ s.
    Us,
    /// 10⁻³ s.
    Ms,
    /// 1 s.
    S,
}

/// A plain number, in quotes or not.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Number {
    /// As it is.
    Number(#[schemars(range(min = 0, max = 1_000_000_000))] f64),
    /// The same.
    Text(#[schemars(regex(pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *$"))] String),
}

/// A part of a point: a time, or a number.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum TextOrNumber {
    /// With its unit.
    Text(String),
    /// Without.
    Number(#[schemars(range(min = 0, max = 1_000_000_000))] f64),
}

/// The name of a column, or its number.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum NameOrNumber {
    /// Its name.
    Name(String),
    /// Its number, from 1.
    Number(#[schemars(range(min = 1, max = 1_000_000))] u32),
}

/// A pattern file.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum PatternFile {
    /// Its name.
    Name(String),
    /// The same.
    Parts(PatternParts),
}

/// A pattern file.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PatternParts {
    /// Its name.
    file: String,
}

/// When packets may leave the delay line.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Slots {
    /// `none`: whenever they are due.
    None(#[schemars(regex(pattern = r"^ *none *$"))] String),
    /// In slots only.
    Parts(SlotParts),
}

/// Slots, and how much leaves in one.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SlotParts {
    /// From when a slot is asked for to when it opens.
    gap: SlotGap,
    /// The most packets in one; without a limit if it is not given.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    packets: Option<u32>,
    /// The most bytes in one; without a limit if it is not given.
    bytes: Option<SlotBytes>,
}

/// How long a slot is waited for.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum SlotGap {
    /// Always the same.
    Fixed(Time),
    /// Drawn for each slot.
    Drawn(Box<GapModel>),
}

/// A distribution of gaps.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct GapModel {
    #[schemars(flatten)]
    distribution: Distribution,
}

/// A number of bytes, with or without the unit.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum SlotBytes {
    /// Without.
    Number(#[schemars(range(min = 1, max = 4_294_967_295u32))] u32),
    /// With.
    Text(Size),
}
