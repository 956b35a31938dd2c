//! Propagation delays: `"10ms"`, a distribution such as `{ normal = { mean, sd }, correlation = "20ms" }`, a pattern, a
//! feed by another process, or classes of packets with a delay each.

mod classes;
mod feed;

pub use classes::DelayClass;
pub use feed::FeedUse;

use std::net::IpAddr;

use narrows_core::model::{Constant, Correlated, DelayModel, Normal, PerByte, Sampled, Uniform};
use narrows_core::{Duration, Order};

use crate::node::{Node, Table, Value};
use crate::pattern::About;
use crate::problem::Problem;
use crate::units::{self, Share};
use crate::value::chance;
use crate::value::condition::Surroundings;
use crate::value::distribution::{Distribution, MODIFIERS, SHAPES, Shape};
use crate::value::inline::Inline;
use crate::value::pattern::PatternUse;

/// How long packets propagate.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// Where delays come from.
    pub source: DelaySource,
    /// Picoseconds more for each byte of the IP packet.
    pub per_byte: u64,
}

/// Where delays come from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DelaySource {
    /// Always the same.
    Constant(Duration),
    /// Drawn from a distribution.
    Drawn {
        /// The distribution.
        distribution: Box<Distribution>,
        /// How alike neighbours are; nothing where they are independent.
        correlation: Option<Correlation>,
    },
    /// As written in a file.
    Pattern(PatternUse),
    /// Streamed in by another process.
    Feed(FeedUse),
    /// By what a packet is: the first class that takes it, or else none.
    Classes(Vec<DelayClass>),
}

/// How alike the delays of neighbours are; either way the distribution of each stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation {
    /// The rank correlation (Spearman's) of one packet and the next, whenever that comes.
    PerPacket(Share),
    /// Smooth in time, over about this long.
    InTime(Duration),
}

/// The words for the order of packets.
pub(crate) const ORDERS: &[(&str, Order)] = &[("keep", Order::Keep), ("allow", Order::Allow)];

/// The keys that say where delays come from, beside the shapes of distributions.
const SOURCES: &[&str] = &["pattern", "feed", "classes"];
/// The keys that belong to a feed.
const OF_FEEDS: &[&str] = &["on-empty", "on_empty", "lead", "ask"];

const HELP: &str = "write \"10ms\", { uniform = { low = \"5ms\", high = \"15ms\" } } or { normal = { mean = \"10ms\", sd = \"2ms\" } }";

/// Reads a delay, and the order where it stands beside it.
pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<(Delay, Option<Order>), Problem> {
    let Value::Table(table) = &node.value else {
        return Ok((Delay::constant(units::time(node)?), None));
    };
    table.only(&Delay::keys())?;
    let order = table.optional("order", |node| node.choice("order", ORDERS))?;
    Ok((Delay::read_table(node, table, around)?, order))
}

impl Delay {
    /// The keys of its table.
    pub(crate) fn keys() -> Vec<&'static str> {
        [SHAPES, SOURCES, OF_FEEDS, MODIFIERS, &["correlation", "per-byte", "order"]].concat()
    }

    /// Always the same.
    pub const fn constant(delay: Duration) -> Self {
        Self { source: DelaySource::Constant(delay), per_byte: 0 }
    }

    /// The longest mean and standard deviation of a distribution, 104 days.
    pub(crate) const LONGEST_DRAWN: Duration = Duration::from_nanos(1 << 53);

    /// Independent draws from a normal distribution, cut off at zero. Either number is [`Self::LONGEST_DRAWN`] at most.
    pub(crate) fn normal(mean: Duration, sd: Duration) -> Self {
        let [mean, sd] = [mean, sd].map(|time| time.min(Self::LONGEST_DRAWN));
        let distribution = Distribution::normal(mean, sd).expect("the numbers are in range");
        let distribution = Box::new(distribution);
        Self { source: DelaySource::Drawn { distribution, correlation: None }, per_byte: 0 }
    }

    fn read_table(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<Self, Problem> {
        let per_byte = table.optional("per-byte", units::picoseconds)?.unwrap_or(0);
        let is_source = |name: &str| SOURCES.contains(&name);
        let named: Vec<_> = table
            .iter()
            .map(|(key, _)| key)
            .filter(|key| is_source(&key.name) || SHAPES.contains(&key.name.as_str()))
            .collect();
        match named[..] {
            [_] => {}
            [] => return Err(Problem::new("the delay itself is missing").at(&node.span).help(HELP)),
            [first, second, ..] => {
                return Err(Problem::new("more than one delay")
                    .at(&second.span)
                    .also(&first.span, "the first")
                    .help("keep one; several in one are a `mixture`, or `classes` of packets"));
            }
        }
        let name = named[0].name.as_str();
        let goes_with = |keys: &[&str], what: &str| match keys.iter().find_map(|key| table.key(key)) {
            Some(key) => Err(Problem::new(format!("`{}` does not go with `{name}`", key.name))
                .at(&key.span)
                .help(format!("it goes with {what}"))),
            None => Ok(()),
        };
        if name != "feed" {
            goes_with(OF_FEEDS, "`feed`")?;
        }
        if !is_source(name) {
            let source = Self::read_drawn(node, table, around)?;
            return Ok(Self { source, per_byte });
        }
        goes_with(&[MODIFIERS, &["correlation"]].concat(), "a distribution")?;
        let source = match name {
            "pattern" => {
                let pattern = table
                    .required("pattern", &node.span, |node| PatternUse::read(node, About::Delay, around))?;
                DelaySource::Pattern(pattern)
            }
            "feed" => DelaySource::Feed(FeedUse::read(node, table)?),
            _ => DelaySource::Classes(
                table.required("classes", &node.span, |node| classes::read(node, around))?,
            ),
        };
        Ok(Self { source, per_byte })
    }

    fn read_drawn(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<DelaySource, Problem> {
        let distribution = Box::new(Distribution::read(node, table, around.files)?);
        let correlation = table.optional("correlation", Correlation::read)?;
        match (&distribution.shape, correlation) {
            (Shape::Constant(delay), None) if distribution.is_plain() => Ok(DelaySource::Constant(*delay)),
            (Shape::Constant(_), Some(_)) => {
                let key = table.key("correlation").map_or(&node.span, |key| &key.span);
                Err(Problem::new("a delay that is always the same has no correlation").at(key))
            }
            _ => Ok(DelaySource::Drawn { distribution, correlation }),
        }
    }

    /// The engine's model. `addresses` are those of a host.
    pub(crate) fn build(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Box<dyn DelayModel> {
        let model: Box<dyn DelayModel> = match &self.source {
            DelaySource::Constant(delay) => Box::new(Constant(*delay)),
            DelaySource::Drawn { distribution, correlation } => drawn(distribution, *correlation),
            DelaySource::Pattern(pattern) => pattern.delays(),
            DelaySource::Feed(feed) => feed.build(),
            DelaySource::Classes(all) => classes::build(all, addresses),
        };
        match self.per_byte {
            0 => model,
            picoseconds => Box::new(PerByte::new(model, picoseconds)),
        }
    }

    /// The mean, where it is known; without what bytes add.
    pub fn mean(&self) -> Option<Duration> {
        match &self.source {
            DelaySource::Constant(delay) => Some(*delay),
            // As it has always been said: before what is below zero becomes zero.
            DelaySource::Drawn { distribution, .. } => match distribution.shape {
                Shape::Normal { mean, .. } if distribution.is_plain() => Some(mean),
                _ => distribution.mean(),
            },
            DelaySource::Pattern(pattern) => pattern.delays().mean(),
            DelaySource::Feed(_) => None,
            DelaySource::Classes(all) => classes::mean(all),
        }
    }

    /// The longest delay, or that which one packet in a thousand exceeds, where it is known; without what bytes add.
    pub fn longest(&self) -> Option<Duration> {
        match &self.source {
            DelaySource::Constant(delay) => Some(*delay),
            DelaySource::Drawn { distribution, .. } => Some(match distribution.shape {
                Shape::Uniform { high, .. } if distribution.is_plain() => high,
                // At most 3.09 hundred years' worth of nanoseconds: 2⁶⁴ holds 584.
                Shape::Normal { mean, sd } if distribution.is_plain() => {
                    mean + Duration::from_nanos((sd.nanos() as f64 * 3.09) as u64)
                }
                _ => distribution.quantile(0.999),
            }),
            DelaySource::Pattern(pattern) => pattern.longest_delay(),
            DelaySource::Feed(_) => None,
            DelaySource::Classes(all) => all
                .iter()
                .map(|class| class.delay.longest())
                .try_fold(Duration::ZERO, |most, delay| Some(most.max(delay?))),
        }
    }

    /// The distribution that delays are drawn from, if they are.
    pub fn distribution(&self) -> Option<(&Distribution, Option<Correlation>)> {
        match &self.source {
            DelaySource::Drawn { distribution, correlation } => Some((distribution, *correlation)),
            _ => None,
        }
    }

    /// The feeds that it is from, with those of its classes.
    pub fn feeds(&self) -> Vec<&FeedUse> {
        match &self.source {
            DelaySource::Feed(feed) => vec![feed],
            DelaySource::Classes(all) => all.iter().flat_map(|class| class.delay.feeds()).collect(),
            _ => Vec::new(),
        }
    }

    /// As it stands in a file.
    pub(crate) fn text(&self) -> String {
        match (&self.source, self.per_byte) {
            (DelaySource::Constant(delay), 0) => format!("\"{delay}\""),
            _ => self.table_text(),
        }
    }

    /// The same as a table, always.
    pub(crate) fn table_text(&self) -> String {
        let mut table = Inline::default();
        self.write(&mut table);
        table.finish()
    }

    fn write(&self, table: &mut Inline) {
        match &self.source {
            DelaySource::Constant(delay) => table.quoted("constant", Some(delay)),
            DelaySource::Drawn { distribution, correlation } => {
                distribution.write(table);
                table.quoted("correlation", *correlation);
            }
            DelaySource::Pattern(pattern) => table.plain("pattern", Some(pattern.text())),
            DelaySource::Feed(feed) => feed.write(table),
            DelaySource::Classes(all) => table.plain("classes", Some(classes::text(all))),
        }
        table.quoted("per-byte", (self.per_byte > 0).then(|| units::picoseconds_text(self.per_byte)));
    }
}

/// The engine's model of draws. The plain ones have models of their own, which cost least.
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
        (None, &Shape::Uniform { low, high }) if distribution.is_plain() => {
            Box::new(Uniform::new(low, high).expect("the ends were checked when it was read"))
        }
        (None, &Shape::Normal { mean, sd }) if distribution.is_plain() => Box::new(Normal { mean, sd }),
        (None, _) => Box::new(Sampled::new(law())),
    }
}

impl Correlation {
    /// Reads `"20ms"` (in time) or `"25%"` (from packet to packet).
    fn read(node: &Node) -> Result<Self, Problem> {
        const HELP: &str = "write a time, such as \"20ms\", over which delays change, or the rank correlation of one packet and the next, such as \"25%\"";
        let is_share = match &node.value {
            Value::String(text) => text.trim().ends_with('%'),
            Value::Float(_) | Value::Integer(_) => true,
            _ => false,
        };
        if is_share {
            return chance::correlation(node).map(Self::PerPacket).map_err(|p| p.help(HELP));
        }
        units::positive_time(node).map(Self::InTime).map_err(|p| p.help(HELP))
    }
}

/// As it stands in a file.
impl std::fmt::Display for Correlation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PerPacket(share) => share.fmt(f),
            Self::InTime(length) => length.fmt(f),
        }
    }
}

/// For people.
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
            DelaySource::Feed(feed) => write!(f, "{feed}")?,
            DelaySource::Classes(all) => write!(f, "{}", classes::words(all))?,
        }
        match self.per_byte {
            0 => Ok(()),
            picoseconds => write!(f, ", and {} a byte", units::picoseconds_text(picoseconds)),
        }
    }
}
