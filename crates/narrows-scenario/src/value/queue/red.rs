//! `{ type = "red", min = "5 packets", max = "15 packets", probability = 0.1, weight = 0.002 }` (Floyd and Jacobson 1993).

use narrows_core::Bytes;
use narrows_core::aqm::{self, Aqm, RedConfig, Thresholds};
use narrows_core::queue::Bound;

use super::{Maker, on_off};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units::{self, Number, Share};
use crate::value::inline::Inline;

/// What is given of RED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Red {
    /// The average above which packets are dropped at random, in packets or bytes; a third of `max`, or 5 packets.
    pub min: Option<Bound>,
    /// The average above which every packet is, or with `gentle` more and more of them are; three times `min`.
    pub max: Option<Bound>,
    /// That of a drop when the average is at `max`; 10 %.
    pub probability: Option<Share>,
    /// How much an arrival counts in the average; 0.002.
    pub weight: Option<Number>,
    /// The packet whose sending is the unit of idle time; 512 bytes.
    pub typical_packet: Option<Bytes>,
    /// With thresholds in bytes: the packet that is dropped with the full probability; 1500 bytes.
    pub longest_packet: Option<Bytes>,
    /// Whether packets are marked that can be; yes.
    pub ecn: Option<bool>,
    /// Whether the probability rises gradually from `max` to twice that; no.
    pub gentle: Option<bool>,
}

/// `gentle` is the last.
pub(crate) const KEYS: &[&str] =
    &["min", "max", "probability", "weight", "typical-packet", "longest-packet", "ecn", "gentle"];

impl Red {
    /// Reads its keys from a table that may have others. `node` is pointed at when they do not go together.
    pub(crate) fn read(node: &Node, table: &Table, gentle: bool) -> Result<Self, Problem> {
        let red = Self {
            min: table.optional("min", units::bound)?,
            max: table.optional("max", units::bound)?,
            probability: table.optional("probability", Share::read)?,
            weight: table.optional("weight", |node| Number::within(node, 1e-9..=1.0))?,
            typical_packet: table.optional("typical-packet", units::packet_size)?,
            longest_packet: table.optional("longest-packet", units::packet_size)?,
            ecn: table.optional("ecn", Node::boolean)?,
            gentle: if gentle { Some(true) } else { table.optional("gentle", Node::boolean)? },
        };
        let place = |key: &str| table.get(key).map_or(&node.span, |value| &value.span);
        if red.probability.is_some_and(Share::is_zero) {
            return Err(Problem::new("a probability of zero drops nothing between the thresholds")
                .at(place("probability"))
                .help("write one above 0%, such as 10%"));
        }
        if let (Some(min), Some(max)) = (red.min, red.max)
            && core::mem::discriminant(&min) != core::mem::discriminant(&max)
        {
            return Err(Problem::new(format!(
                "`min` is {min} and `max` is {max}: one counts packets, one bytes"
            ))
            .at(place("max"))
            .also(place("min"), "`min`")
            .help("write both alike: the queue is measured in one of the two"));
        }
        let (min, max) = red.thresholds();
        if number(min) >= number(max) {
            return Err(Problem::new(format!("`min` is {min}, which is not below `max`, which is {max}"))
                .at(place("min"))
                .also(place("max"), "`max`")
                .help("between the two averages packets are dropped at random; usual is a `max` of three times `min`"));
        }
        Ok(red)
    }

    /// `min` and `max` in force.
    pub(crate) fn thresholds(self) -> (Bound, Bound) {
        let times = |bound, by: u64| match bound {
            Bound::Packets(packets) => Bound::Packets(packets * by),
            Bound::Bytes(bytes) => Bound::Bytes(Bytes::new(bytes.get() * by)),
        };
        let third = |bound| match bound {
            Bound::Packets(packets) => Bound::Packets(packets.div_ceil(3)),
            Bound::Bytes(bytes) => Bound::Bytes(Bytes::new(bytes.get().div_ceil(3))),
        };
        match (self.min, self.max) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, times(min, 3)),
            (None, Some(max)) => (third(max), max),
            (None, None) => match RedConfig::default().thresholds {
                Thresholds::Packets { min, max } => (Bound::Packets(min), Bound::Packets(max)),
                Thresholds::Bytes { min, max } => (Bound::Bytes(min), Bound::Bytes(max)),
            },
        }
    }

    /// With all values in force.
    pub(crate) fn config(self) -> RedConfig {
        let default = RedConfig::default();
        let (min, max) = self.thresholds();
        RedConfig {
            thresholds: match min {
                Bound::Packets(min) => Thresholds::Packets { min, max: number(max) },
                Bound::Bytes(min) => Thresholds::Bytes { min, max: Bytes::new(number(max)) },
            },
            probability: self.probability.map_or(default.probability, Share::probability),
            weight: self.weight.map_or(default.weight, Number::as_f64),
            gentle: self.gentle.unwrap_or(default.gentle),
            ecn: self.ecn.unwrap_or(default.ecn),
            typical_packet: self.typical_packet.unwrap_or(default.typical_packet),
            longest_packet: self.longest_packet.unwrap_or(default.longest_packet),
        }
    }

    pub(super) fn maker(self) -> Maker {
        let policy = aqm::Red::new(self.config());
        Box::new(move || Box::new(policy.clone()) as Box<dyn Aqm>)
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("min", self.min);
        table.quoted("max", self.max);
        table.quoted("probability", self.probability);
        table.plain("weight", self.weight);
        table.quoted("typical-packet", self.typical_packet);
        table.quoted("longest-packet", self.longest_packet);
        table.plain("ecn", self.ecn);
        table.plain("gentle", self.gentle);
    }

    pub(crate) fn words(self) -> String {
        let ((min, max), RedConfig { probability, weight, gentle, ecn, .. }) =
            (self.thresholds(), self.config());
        let above = if gentle { "gentle above" } else { "all above" };
        format!(
            "RED, up to {probability} of the packets at averages from {min} to {max}, {above}, weight {weight}, ECN {}",
            on_off(ecn)
        )
    }
}

/// A threshold, in packets or bytes.
pub(crate) const fn number(bound: Bound) -> u64 {
    match bound {
        Bound::Packets(packets) => packets,
        Bound::Bytes(bytes) => bytes.get(),
    }
}
