//! Propagation delays: `"10ms"`, a distribution such as `{ normal = { mean, sd }, correlation = "20ms" }`,
//! a pattern, a feed from another process, or classes of packets with a delay each.

mod cell;
mod classes;
mod correlation;
mod feed;

pub use cell::CellUse;
pub use classes::DelayClass;
pub use correlation::Correlation;
pub use feed::FeedUse;

use std::net::IpAddr;

use narrows_core::model::{self, Constant, Correlated, DelayModel, PerByte, Sampled};
use narrows_core::{Duration, Order};
use serde_json::{Value as Json, json};

use self::classes::CLASSES;
use self::correlation::CORRELATION;
use crate::keys::kind::{ByHand, Choice, Compound, Given, text};
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Choosing, Key, Keyed, Kind, Parameters, Row, row};
use crate::node::{Node, Table, Value};
use crate::pattern::About;
use crate::problem::Problem;
use crate::units;
use crate::value::condition::Surroundings;
use crate::value::distribution::{Distribution, Normal, Shape, Uniform};
use crate::value::pattern::{PatternOf, PatternUse};

/// Propagation delay of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// Source of the delays.
    pub source: DelaySource,
    /// Additional picoseconds per byte of the IP packet.
    pub per_byte: u64,
}

/// Source of delays.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DelaySource {
    /// A constant delay.
    Constant(Duration),
    /// Drawn from a distribution.
    Drawn {
        /// The distribution.
        distribution: Box<Distribution>,
        /// Correlation between packets; `None` if delays are independent.
        correlation: Option<Correlation>,
    },
    /// Delays as listed in a pattern file.
    Pattern(PatternUse),
    /// Replayed from a light and a heavy trace, as the workload demands.
    Cell(CellUse),
    /// Streamed by another process.
    Feed(FeedUse),
    /// By packet class: the delay of the first class that matches; zero if none does.
    Classes(Vec<DelayClass>),
}

/// Whether later packets may overtake.
pub(crate) const ORDER: Choice<Order> =
    Choice { what: "order", choices: &[("keep", Order::Keep), ("allow", Order::Allow)] };
const PATTERN: PatternOf = PatternOf(About::Delay);
const PER_BYTE: ByHand<u64> = ByHand {
    words: || "time for a byte, such as `\"8ns\"` or `\"0.8ns\"`, in whole picoseconds up to 1 ms".into(),
    schema: |_| {
        json!({
            "type": "string",
            "pattern": r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ps|ns|us|µs|μs|ms) *$",
        })
    },
    read: |node, _| units::picoseconds(node),
    write: |picoseconds| Some(text(units::picoseconds_text(*picoseconds))),
};

/// The keys of its table other than those of a distribution or a feed.
#[derive(Default)]
struct Beside {
    pattern: Option<PatternUse>,
    cell: Option<CellUse>,
    classes: Vec<DelayClass>,
    correlation: Option<Correlation>,
    per_byte: u64,
    order: Option<Order>,
}

impl Keyed for Beside {
    const ROWS: &'static [Row<Self>] = &[
        row!("pattern", pattern, Given(PATTERN), "Pattern of delays."),
        row!(
            "cell",
            cell,
            Given(cell::CELL),
            "[Cell replayed from two traces](traces.md#a-cell-under-two-loads): delay and capacity follow the workload."
        ),
        row!("classes", classes, CLASSES, "Delay by class: the first class that matches."),
        row!(
            "correlation",
            correlation,
            Given(CORRELATION),
            "Correlation of neighbouring packets; with a distribution."
        )
        .default("none"),
        row!(
            "per-byte",
            per_byte,
            PER_BYTE,
            "Additional delay per byte of the IP packet; with every kind of delay."
        ),
        row!("order", order, Given(ORDER), "Whether packets may be reordered.").default("that of the link"),
    ];
}

/// The keys that select a source of delays, in addition to the shapes of distributions.
const SOURCES: [&str; 4] = ["pattern", "cell", "feed", "classes"];
const CHOOSING: Choosing = Choosing {
    none: "the delay itself is missing",
    several: "more than one delay",
    help: "keep one; several in one are a `mixture`, or `classes` of packets",
};

/// A duration, or a table with one source of delays.
pub(crate) struct TimeOrDelay;
pub(crate) const DELAY: TimeOrDelay = TimeOrDelay;

impl Kind for TimeOrDelay {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        const DOC: &str = "One shape of a distribution, or one of `pattern`, `cell`, `feed` and `classes`.";
        let table = schema::define(definitions, "DelayModel", |definitions| {
            let mut table = schema::object(DOC, &self.keys(), definitions);
            // The name of a feed is required only for a feed.
            table["required"] = json!([]);
            table
        });
        json!({ "anyOf": [schema::time(definitions), table] })
    }

    fn words(&self) -> String {
        "time or table".into()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(self)
    }
}

/// The keys that modify a source of delays.
pub(crate) fn modifiers() -> Vec<&'static dyn Key> {
    let of_distribution = Distribution::ROWS.iter().map(|row| row as &dyn Key);
    of_distribution.chain(keys::named::<Beside>("per-byte").map(|row| row as &dyn Key)).collect()
}

/// The keys of a replayed cell.
pub(crate) fn cell_keys() -> Vec<&'static dyn Key> {
    cell::CELL.compound().map(Compound::keys).unwrap_or_default()
}

impl Compound for TimeOrDelay {
    fn keys(&self) -> Vec<&'static dyn Key> {
        [keys::keys::<Distribution>(), keys::keys::<FeedUse>(), keys::keys::<Beside>()].concat()
    }

    fn example(&self) -> &'static str {
        "{ normal = { mean = \"10ms\", sd = \"2ms\" } }"
    }

    fn table(&self, value: Value) -> Option<Table> {
        match value {
            Value::Table(table) => Some(table),
            time => Some(Table::default().and("constant", time)),
        }
    }
}

/// Reads a delay, and the packet order if it is given with it.
pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<(Delay, Option<Order>), Problem> {
    let Value::Table(table) = &node.value else {
        return Ok((Delay::constant(units::time(node)?), None));
    };
    keys::only(table, &DELAY.keys())?;
    let names = [keys::choices::<Distribution>(), SOURCES.into()].concat();
    let (key, _) = keys::chosen(table, &node.span, &names, &CHOOSING)?;
    let of_source = |key: &str| keys::named::<FeedUse>(key).is_some();
    let of_distribution = |key: &str| keys::named::<Distribution>(key).is_some() || key == "correlation";
    let (is_feed, is_drawn) = (key.name == "feed", !SOURCES.contains(&key.name.as_str()));
    for (other, _) in table.iter() {
        let goes_with = match other.name.as_str() {
            name if of_source(name) && !is_feed => "`feed`",
            name if of_distribution(name) && !is_drawn => "a distribution",
            _ => continue,
        };
        return Err(Problem::new(format!("`{}` cannot be used with `{}`", other.name, key.name))
            .at(&other.span)
            .help(format!("it goes with {goes_with}")));
    }
    let Beside { pattern, cell, classes, correlation, per_byte, order } = keys::read(node, table, around)?;
    let source = match (pattern.map(DelaySource::Pattern).or(cell.map(DelaySource::Cell)), key.name.as_str())
    {
        (Some(source), _) => source,
        (None, "feed") => DelaySource::Feed(keys::read(node, table, around)?),
        (None, "classes") => DelaySource::Classes(classes),
        (None, _) => {
            let distribution: Box<Distribution> = Box::new(keys::read(node, table, around)?);
            match (&distribution.shape, correlation) {
                (Shape::Constant(delay), None) if distribution.is_plain() => DelaySource::Constant(*delay),
                (Shape::Constant(_), Some(_)) => {
                    let key = table.key("correlation").map_or(&node.span, |key| &key.span);
                    return Err(Problem::new("a constant delay has no correlation").at(key));
                }
                _ => DelaySource::Drawn { distribution, correlation },
            }
        }
    };
    Ok((Delay { source, per_byte }, order))
}

impl Delay {
    /// A constant delay.
    pub const fn constant(delay: Duration) -> Self {
        Self { source: DelaySource::Constant(delay), per_byte: 0 }
    }

    /// Maximum mean and standard deviation of a distribution, 104 days.
    pub(crate) const LONGEST_DRAWN: Duration = Duration::from_nanos(1 << 53);

    /// Independent draws from a normal distribution, negative values set to zero. Both parameters are at
    /// most [`Self::LONGEST_DRAWN`].
    pub(crate) fn normal(mean: Duration, sd: Duration) -> Self {
        let [mean, sd] = [mean, sd].map(|time| time.min(Self::LONGEST_DRAWN));
        let distribution =
            Distribution::of(Shape::Normal(Normal { mean, sd })).expect("the numbers are in range");
        let distribution = Box::new(distribution);
        Self { source: DelaySource::Drawn { distribution, correlation: None }, per_byte: 0 }
    }

    /// The engine's delay model. `addresses` looks up the addresses of a host.
    pub(crate) fn build(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Box<dyn DelayModel> {
        let model: Box<dyn DelayModel> = match &self.source {
            DelaySource::Constant(delay) => Box::new(Constant(*delay)),
            DelaySource::Drawn { distribution, correlation } => drawn(distribution, *correlation),
            DelaySource::Pattern(pattern) => pattern.delays(),
            DelaySource::Cell(cell) => Box::new(cell.build()),
            DelaySource::Feed(feed) => feed.build(),
            DelaySource::Classes(all) => classes::build(all, addresses),
        };
        match self.per_byte {
            0 => model,
            picoseconds => Box::new(PerByte::new(model, picoseconds)),
        }
    }

    /// The mean, if known, without the delay per byte.
    pub fn mean(&self) -> Option<Duration> {
        match &self.source {
            DelaySource::Constant(delay) => Some(*delay),
            // The mean before negative values are set to zero, as in earlier versions.
            DelaySource::Drawn { distribution, .. } => match distribution.shape {
                Shape::Normal(Normal { mean, .. }) if distribution.is_plain() => Some(mean),
                _ => distribution.mean(),
            },
            DelaySource::Pattern(pattern) => pattern.delays().mean(),
            DelaySource::Cell(cell) => Some(cell.mean()),
            DelaySource::Feed(_) => None,
            DelaySource::Classes(all) => classes::mean(all),
        }
    }

    /// The largest delay, or the p99.9 of a distribution (except a plain uniform one); `None` if unknown.
    /// Without the delay per byte.
    pub fn longest(&self) -> Option<Duration> {
        match &self.source {
            DelaySource::Constant(delay) => Some(*delay),
            DelaySource::Drawn { distribution, .. } => Some(match distribution.shape {
                Shape::Uniform(Uniform { high, .. }) if distribution.is_plain() => high,
                // At most 3.09 hundred years in nanoseconds; 2⁶⁴ holds 584.
                Shape::Normal(Normal { mean, sd }) if distribution.is_plain() => {
                    mean + Duration::from_nanos((sd.nanos() as f64 * 3.09) as u64)
                }
                _ => distribution.quantile(0.999),
            }),
            DelaySource::Pattern(pattern) => pattern.longest_delay(),
            DelaySource::Cell(_) | DelaySource::Feed(_) => None,
            DelaySource::Classes(all) => all
                .iter()
                .map(|class| class.delay.longest())
                .try_fold(Duration::ZERO, |most, delay| Some(most.max(delay?))),
        }
    }

    /// The distribution and the correlation, if delays are drawn.
    pub fn distribution(&self) -> Option<(&Distribution, Option<Correlation>)> {
        match &self.source {
            DelaySource::Drawn { distribution, correlation } => Some((distribution, *correlation)),
            _ => None,
        }
    }

    /// The feeds that it uses, including those of its classes.
    pub fn feeds(&self) -> Vec<&FeedUse> {
        match &self.source {
            DelaySource::Feed(feed) => vec![feed],
            DelaySource::Classes(all) => all.iter().flat_map(|class| class.delay.feeds()).collect(),
            _ => Vec::new(),
        }
    }

    /// As written in a file.
    pub(crate) fn value(&self) -> Value {
        let mut table = Table::default();
        let mut beside = Beside { per_byte: self.per_byte, ..Beside::default() };
        match &self.source {
            DelaySource::Constant(delay) if self.per_byte == 0 => return text(delay),
            DelaySource::Constant(delay) => table.put("constant", text(delay)),
            DelaySource::Drawn { distribution, correlation } => {
                distribution.write(&mut table);
                beside.correlation = *correlation;
            }
            DelaySource::Pattern(pattern) => beside.pattern = Some(pattern.clone()),
            DelaySource::Cell(cell) => beside.cell = Some(cell.clone()),
            DelaySource::Feed(feed) => feed.write(&mut table),
            DelaySource::Classes(all) => beside.classes = all.clone(),
        }
        beside.write(&mut table);
        Value::Table(table)
    }
}

/// The engine's model for random delays. Plain distributions use the cheapest models.
fn drawn(distribution: &Distribution, correlation: Option<Correlation>) -> Box<dyn DelayModel> {
    let law = || distribution.engine().clone();
    match (correlation, &distribution.shape) {
        (Some(Correlation::PerPacket(share)), _) => Box::new(
            Correlated::per_packet(law(), share.as_f64())
                .expect("the correlation was checked when it was read"),
        ),
        (Some(Correlation::InTime(length)), _) => {
            Box::new(Correlated::in_time(law(), length).expect("the length was checked when it was read"))
        }
        (None, &Shape::Uniform(Uniform { low, high })) if distribution.is_plain() => {
            Box::new(model::Uniform::new(low, high).expect("the ends were checked when it was read"))
        }
        (None, &Shape::Normal(Normal { mean, sd })) if distribution.is_plain() => {
            Box::new(model::Normal { mean, sd })
        }
        (None, _) => Box::new(Sampled::new(law())),
    }
}

/// For display.
impl std::fmt::Display for Delay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            DelaySource::Constant(delay) => write!(f, "{delay}")?,
            DelaySource::Drawn { distribution, correlation } => {
                write!(f, "{distribution}")?;
                match correlation {
                    None => {}
                    Some(Correlation::PerPacket(share)) => {
                        write!(f, ", correlated {share} from packet to packet")?
                    }
                    Some(Correlation::InTime(length)) => write!(f, ", smooth in time over {length}")?,
                }
            }
            DelaySource::Pattern(pattern) => write!(f, "by {pattern}")?,
            DelaySource::Cell(cell) => write!(f, "{cell}")?,
            DelaySource::Feed(feed) => write!(f, "{feed}")?,
            DelaySource::Classes(all) => write!(f, "{}", classes::words(all))?,
        }
        match self.per_byte {
            0 => Ok(()),
            picoseconds => write!(f, ", and {} a byte", units::picoseconds_text(picoseconds)),
        }
    }
}
