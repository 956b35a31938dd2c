//! Values with units: times, rates, sizes, packets, probabilities.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Probability, Rate};
use serde_json::Value as Json;

use super::kind::{ByHand, text};
use super::schema::{self, Definitions};
use super::{Form, Kind};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::units::{self, Number, Share};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// A duration in an inclusive range.
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

/// A number of bytes in an inclusive range. `expected` describes it in errors.
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

/// A probability, kept as written except for the last bit of the engine's type.
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

/// The probability as the exact decimal that was written.
impl Form<Share> for Percentage {
    fn read(&self, node: &Node, _: Surroundings<'_>) -> Result<Share, Problem> {
        Share::read(node)
    }

    fn write(&self, value: &Share) -> Option<Value> {
        Some(text(value))
    }
}

/// The least length that a packet counts as; zero for its own.
pub(crate) const LEAST_SIZE: ByHand<Bytes> = ByHand {
    words: || "size, 0 to 65535 bytes".into(),
    schema: schema::size,
    read: |node, _| match units::size(node)? {
        size if size.get() < 65_536 => Ok(size),
        _ => Err(node.expected("a length from 0 to 65535 bytes")),
    },
    write: |size| Some(text(size)),
};

/// The length of an IP packet.
pub(crate) const PACKET_SIZE: ByHand<Bytes> = ByHand {
    words: || "size, 1 to 65535 bytes".into(),
    schema: schema::size,
    read: |node, _| units::packet_size(node),
    write: |size| Some(text(size)),
};

/// A rate: finite, zero or unlimited.
pub(crate) const ANY_RATE: ByHand<Rate> = ByHand {
    words: || "rate".into(),
    schema: schema::rate,
    read: |node, _| units::rate(node),
    write: |rate| Some(text(rate)),
};

/// A finite rate above zero.
pub(crate) const FINITE_RATE: ByHand<Rate> = ByHand { read: |node, _| units::finite_rate(node), ..ANY_RATE };

/// A number of packets or bytes.
pub(crate) const PACKETS_OR_BYTES: ByHand<Bound> = ByHand {
    words: || "packets or size".into(),
    schema: schema::bound,
    read: |node, _| units::bound(node),
    write: |bound| Some(text(bound)),
};

/// A number of packets above zero.
pub(crate) const PACKETS: ByHand<u64> = ByHand {
    words: || "packets".into(),
    schema: schema::packets,
    read: |node, _| units::packets(node),
    write: |packets| Some(text(Bound::Packets(*packets))),
};

/// A number of packets, zero included.
pub(crate) const PACKETS_OR_NONE: ByHand<u64> = ByHand {
    words: || "packets, `\"0 packets\"` too".into(),
    read: |node, _| match node.text("").is_ok_and(|text| text.trim() == "0 packets") {
        true => Ok(0),
        false => units::packets(node),
    },
    ..PACKETS
};

/// A probability that is one of a group, where a bare 1 can only mean always.
pub(crate) const ONE_OF_PERCENTAGES: ByHand<Share> = ByHand {
    words: || "probability".into(),
    schema: schema::share,
    read: |node, _| Share::read_of_several(node),
    write: |share| Some(text(share)),
};

/// A plain number from 0 to a billion.
pub(crate) const PLAIN_NUMBER: ByHand<Number> = ByHand {
    words: || "number".into(),
    schema: schema::number,
    read: |node, _| Number::read(node),
    write: |number| Some(Value::Float(number.to_string())),
};
