//! Class-based queueing (CBQ): `{ type = "cbq", bandwidth = "10mbit", avpkt = "1000 bytes", classes = [{
//! name = "web", parent = "all", rate = "3mbit", priority = 5, bounded = true }, …] }`.

use narrows_core::sched;
use narrows_core::{Bytes, Duration, Rate};

use serde_json::json;

use super::bucket::BURST;
use super::own::OwnParameters;
use crate::keys::kind::{Boolean, ByHand, Given, Integer};
use crate::keys::quantity::{FINITE_RATE, PACKET_SIZE, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::Value;
use crate::problem::Problem;
use crate::units;

/// Parameters of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbq {
    /// Wire rate, used to compute idle times.
    pub bandwidth: Rate,
    /// Average packet length.
    pub average_packet: Bytes,
}

/// Parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbqClass {
    /// Allotted rate.
    pub rate: Rate,
    /// Priority: 1 is served before 8.
    pub priority: u8,
    /// Bytes that a class of average weight sends per round; `None` for one and a half average packets.
    pub allot: Option<Bytes>,
    /// Average packet length of the class; `None` for that of the scheduler.
    pub average_packet: Option<Bytes>,
    /// Weight per round relative to other classes of its priority; `None` for equal weights.
    pub weight: Option<u32>,
    /// Whether the class may not borrow.
    pub bounded: bool,
    /// Whether the class does not lend.
    pub isolated: bool,
    /// Whether its rate is not measured.
    pub exempt: bool,
    /// Maximum burst in packets after an idle period.
    pub maxburst: u32,
    /// Number of packets sent together after waiting; `None` for 0, one at a time.
    pub minburst: Option<u32>,
    /// Lower limit of its average idle time, below zero; `None` for no limit.
    pub minidle: Option<Duration>,
    /// The weight of each packet in the average is 2 to the minus this.
    pub ewma: u8,
    /// Minimum packet length that is charged.
    pub mpu: Bytes,
}

/// tc's default for the root.
const MAXBURST: u32 = 20;

impl Default for Cbq {
    /// Has no bandwidth, which is required.
    fn default() -> Self {
        Self { bandwidth: Rate::UNLIMITED, average_packet: Bytes::new(0) }
    }
}

impl Keyed for Cbq {
    const ROWS: &'static [Row<Self>] = &[
        row!("bandwidth", bandwidth, FINITE_RATE, "Link rate used to compute idle times.").required(),
        row!("avpkt", average_packet, PACKET_SIZE, "Average packet length.").required(),
    ];
}

impl OwnParameters for Cbq {
    fn effective(&self) -> String {
        format!(", a wire of {}, packets of {} on average", self.bandwidth, self.average_packet)
    }

    fn missing(&self) -> Option<Problem> {
        (self.bandwidth == Rate::UNLIMITED)
            .then(|| Problem::new("`cbq` has no bandwidth").help("write all of it, with its classes"))
    }
}

impl Default for CbqClass {
    /// Has no rate, which is required.
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            priority: sched::Cbq::LAST_PRIORITY,
            allot: None,
            average_packet: None,
            weight: None,
            bounded: false,
            isolated: false,
            exempt: false,
            maxburst: MAXBURST,
            minburst: None,
            minidle: None,
            ewma: sched::Cbq::EWMA,
            mpu: Bytes::new(0),
        }
    }
}

const PACKETS: ByHand<u32> = ByHand {
    words: || "packets, or a whole number".into(),
    schema: |_| json!({ "type": ["integer", "string"] }),
    read: |node, _| match &node.value {
        Value::String(_) => units::packets(node).and_then(|packets| {
            u32::try_from(packets).map_err(|_| node.expected("at most 4294967295 packets"))
        }),
        _ => node.integer("a number of packets", 1..1 << 20).map(|packets| packets as u32),
    },
    write: |packets| Some(Value::Integer(packets.to_string())),
};

impl Keyed for CbqClass {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, FINITE_RATE, "Rate of the class.").required(),
        row!(
            "priority",
            priority,
            Integer { what: "a priority", low: 1, high: 8 },
            "Priority: 1 goes before 8."
        ),
        row!("allot", allot, Given(BURST), "Bytes per turn.").default("one and a half of `avpkt`"),
        row!("avpkt", average_packet, Given(PACKET_SIZE), "Average packet length of the class.")
            .default("that of `cbq`"),
        row!(
            "weight",
            weight,
            Given(Integer { what: "a weight", low: 1, high: u32::MAX as i64 }),
            "Weight relative to classes of the same priority."
        )
        .default("its rate in bytes a second"),
        row!("bounded", bounded, Boolean, "Never borrow."),
        row!("isolated", isolated, Boolean, "Never lend."),
        row!("exempt", exempt, Boolean, "Exempt from rate limiting."),
        row!("maxburst", maxburst, PACKETS, "Maximum burst after idle time, in packets."),
        row!("minburst", minburst, Given(PACKETS), "Packets sent together after being overlimit.")
            .default("one by one"),
        row!(
            "minidle",
            minidle,
            Given(Time::ANY),
            "Lower limit of the average idle time, as an amount below zero."
        )
        .default("any depth"),
        row!(
            "ewma",
            ewma,
            Integer { what: "a logarithm to base 2", low: 0, high: 31 },
            "Averaging constant: the weight of a new sample is 2 to the minus this."
        ),
        row!("mpu", mpu, PACKET_SIZE, "Minimum length a packet counts."),
    ];
}

impl CbqClass {
    /// The effective allotment, where `usual` is the scheduler's average packet length.
    pub fn allot(&self, usual: Bytes) -> Bytes {
        let half_more = self.average_packet(usual).get() * 3 / 2; // at most 98,302
        self.allot.unwrap_or(Bytes::new(half_more.max(1)))
    }

    /// The effective average packet length, where `usual` is the scheduler's.
    pub fn average_packet(&self, usual: Bytes) -> Bytes {
        self.average_packet.unwrap_or(usual)
    }

    /// The effective number of packets sent together after waiting.
    pub fn minburst(&self) -> u32 {
        self.minburst.unwrap_or(0)
    }

    pub(crate) fn effective(&self, is_leaf: bool) -> String {
        let mut words = format!("rate {}", self.rate);
        if is_leaf {
            words += &format!(", priority {}", self.priority);
            if let Some(allot) = self.allot {
                words += &format!(", allotment {allot}");
            }
            if let Some(weight) = self.weight {
                words += &format!(", weight {weight}");
            }
        }
        words += &format!(", at most {} packets at once", self.maxburst);
        for (is, what) in [
            (self.bounded, "bounded: it does not borrow"),
            (self.isolated, "isolated: it does not lend"),
            (self.exempt, "exempt: its rate is not limited"),
        ] {
            if is {
                words += &format!("; {what}");
            }
        }
        words
    }
}
