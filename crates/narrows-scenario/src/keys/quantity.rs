//! Values with units: times, rates, sizes, packets, probabilities.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Probability, Rate};
use serde_json::Value as Json;

use super::kind::text;
use super::schema::{self, Definitions};
use super::{Form, Kind};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::units::{self, Share};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// A span of time, both ends included.
pub(crate) struct Time {
    low: Duration,
    high: Duration,
}

impl Time {
    const LONGEST: Duration = Duration::from_nanos(units::LONGEST_NANOS);
    pub(crate) const ANY: Self = Self::between(Duration::ZERO, Self::LONGEST);
    pub(crate) const POSITIVE: Self = Self::between(NANOSECOND, Self::LONGEST);

    pub(crate) const fn at_least(low: Duration) -> Self {
        Self::between(low, Self::LONGEST)
    }

    pub(crate) const fn between(low: Duration, high: Duration) -> Self {
        Self { low, high }
    }
}

impl Kind for Time {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::time(definitions)
    }

    fn words(&self) -> String {
        match (self.low, self.high) {
            (Duration::ZERO, Self::LONGEST) => "time".into(),
            (NANOSECOND, Self::LONGEST) => "time above zero".into(),
            (low, Self::LONGEST) => format!("time, {low} or more"),
            (Duration::ZERO, high) => format!("time, up to {high}"),
            (low, high) => format!("time, {low} to {high}"),
        }
    }
}

impl Form<Duration> for Time {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Duration, Problem> {
        match (self.low, self.high) {
            (NANOSECOND, Self::LONGEST) => units::positive_time(node),
            (low, Self::LONGEST) => match units::time(node)? {
                time if time < low => Err(node.expected(&format!("a time of {low} or more"))),
                time => Ok(time),
            },
            (low, high) => units::time_between(node, low, high),
        }
    }

    fn write(&self, value: &Duration) -> Option<Value> {
        Some(text(value))
    }
}

/// The length of an IP packet.
pub(crate) struct PacketSize;

impl Kind for PacketSize {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::size(definitions)
    }

    fn words(&self) -> String {
        "size, 1 to 65535 bytes".into()
    }
}

impl Form<Bytes> for PacketSize {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Bytes, Problem> {
        units::packet_size(node)
    }

    fn write(&self, value: &Bytes) -> Option<Value> {
        Some(text(value))
    }
}

/// A number of bytes, both ends included. `expected` says so in words.
pub(crate) struct Size {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) expected: &'static str,
}

impl Kind for Size {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::size(definitions)
    }

    fn words(&self) -> String {
        self.expected.split_once(" from ").map_or("size".into(), |(_, range)| format!("size, {range}"))
    }
}

impl Form<Bytes> for Size {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Bytes, Problem> {
        match units::size(node)? {
            size if (self.low..=self.high).contains(&size.get()) => Ok(size),
            _ => Err(node.expected(self.expected)),
        }
    }

    fn write(&self, value: &Bytes) -> Option<Value> {
        Some(text(value))
    }
}

/// A rate above zero that has a limit.
pub(crate) struct FiniteRate;

impl Kind for FiniteRate {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::rate(definitions)
    }

    fn words(&self) -> String {
        "rate".into()
    }
}

impl Form<Rate> for FiniteRate {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Rate, Problem> {
        match units::rate(node)? {
            Rate::UNLIMITED | Rate::DOWN => Err(node.expected("a rate, such as \"1mbit\"")),
            rate => Ok(rate),
        }
    }

    fn write(&self, value: &Rate) -> Option<Value> {
        Some(text(value))
    }
}

/// A probability, which the engine has as it was written but for its last bit.
pub(crate) struct Percentage;

impl Kind for Percentage {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::share(definitions)
    }

    fn words(&self) -> String {
        "probability".into()
    }
}

impl Form<Probability> for Percentage {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Probability, Problem> {
        Share::read(node).map(Share::probability)
    }

    fn write(&self, value: &Probability) -> Option<Value> {
        Some(text(Share::shortest(*value)))
    }
}

/// A number of packets or bytes.
pub(crate) struct PacketsOrBytes;

impl Kind for PacketsOrBytes {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::bound(definitions)
    }

    fn words(&self) -> String {
        "packets or size".into()
    }
}

impl Form<Bound> for PacketsOrBytes {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Bound, Problem> {
        units::bound(node)
    }

    fn write(&self, value: &Bound) -> Option<Value> {
        Some(text(value))
    }
}

/// A number of packets that may be zero.
pub(crate) struct PacketsOrNone;

impl Kind for PacketsOrNone {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::packets(definitions)
    }

    fn words(&self) -> String {
        "packets, `\"0 packets\"` too".into()
    }
}

impl Form<u64> for PacketsOrNone {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<u64, Problem> {
        match node.text("").is_ok_and(|text| text.trim() == "0 packets") {
            true => Ok(0),
            false => units::packets(node),
        }
    }

    fn write(&self, value: &u64) -> Option<Value> {
        Some(text(Bound::Packets(*value)))
    }
}

/// A number of packets above zero.
pub(crate) struct Packets;

impl Kind for Packets {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::packets(definitions)
    }

    fn words(&self) -> String {
        "packets".into()
    }
}

impl Form<u64> for Packets {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<u64, Problem> {
        units::packets(node)
    }

    fn write(&self, value: &u64) -> Option<Value> {
        Some(text(Bound::Packets(*value)))
    }
}

/// A rate, or none, or no limit.
pub(crate) struct AnyRate;

impl Kind for AnyRate {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        schema::rate(definitions)
    }

    fn words(&self) -> String {
        "rate".into()
    }
}

impl Form<Rate> for AnyRate {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Rate, Problem> {
        units::rate(node)
    }

    fn write(&self, value: &Rate) -> Option<Value> {
        Some(text(value))
    }
}
