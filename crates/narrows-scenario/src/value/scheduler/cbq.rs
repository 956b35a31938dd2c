//! Class based queueing: `{ type = "cbq", bandwidth = "10mbit", avpkt = "1000 bytes", classes = [{ name = "web",
//! parent = "all", rate = "3mbit", priority = 5, bounded = true }, …] }`.

use narrows_core::{Bytes, Duration, Rate};

use super::tree;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// The parameters of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbq {
    /// How fast the wire is, by which idle times are reckoned.
    pub bandwidth: Rate,
    /// The length of a usual packet.
    pub average_packet: Bytes,
}

/// The parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbqClass {
    /// What it may send.
    pub rate: Rate,
    /// Who is served first: 1 before 8; nothing for 8.
    pub priority: Option<u8>,
    /// How much a class of the mean weight sends in its turn; nothing for one and a half of its usual packets.
    pub allot: Option<Bytes>,
    /// The length of its usual packet; nothing for that of the whole.
    pub average_packet: Option<Bytes>,
    /// Its share in a turn relative to others of its priority; nothing for all alike.
    pub weight: Option<u32>,
    /// Whether it may not borrow.
    pub bounded: bool,
    /// Whether it does not lend.
    pub isolated: bool,
    /// Whether its rate is not watched.
    pub exempt: bool,
    /// How many packets it may send at once after it was idle; nothing for 20.
    pub maxburst: Option<u32>,
    /// How many packets it sends together once it has waited; nothing for 0, one by one.
    pub minburst: Option<u32>,
    /// How far below zero the average of its idle time may fall; nothing for any depth.
    pub minidle: Option<Duration>,
    /// The average forgets by 2 to the minus this at each packet; nothing for 5.
    pub ewma: Option<u8>,
    /// What the shortest packet counts.
    pub mpu: Bytes,
}

pub(crate) const KEYS: &[&str] = &["bandwidth", "avpkt"];
pub(crate) const CLASS_KEYS: &[&str] = &[
    "rate", "priority", "allot", "avpkt", "bounded", "isolated", "exempt", "maxburst", "minburst", "minidle",
    "ewma", "mpu",
];

/// As tc has it for the root.
const MAXBURST: u32 = 20;

impl Cbq {
    pub(crate) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        Ok(Self {
            bandwidth: table.required("bandwidth", &node.span, tree::rate)?,
            average_packet: table.required("avpkt", &node.span, units::packet_size)?,
        })
    }

    pub(crate) fn write(&self, table: &mut Inline) {
        table.quoted("bandwidth", Some(self.bandwidth));
        table.quoted("avpkt", Some(self.average_packet));
    }

    pub(crate) fn words(&self) -> String {
        format!("a wire of {}, packets of {} on average", self.bandwidth, self.average_packet)
    }
}

impl CbqClass {
    pub(crate) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        let yes = |key| table.optional(key, Node::boolean).map(Option::unwrap_or_default);
        let packets = |key| {
            let read = |node: &Node| match &node.value {
                Value::String(_) => units::packets(node).and_then(|packets| {
                    u32::try_from(packets).map_err(|_| node.expected("at most 4294967295 packets"))
                }),
                _ => node.integer("a number of packets", 1..1 << 20).map(|packets| packets as u32),
            };
            table.optional(key, read)
        };
        Ok(Self {
            rate: table.required("rate", &node.span, tree::rate)?,
            priority: table
                .optional("priority", |node| node.integer("a priority", 1..9))?
                .map(|priority| priority as u8),
            allot: table.optional("allot", tree::burst)?,
            average_packet: table.optional("avpkt", units::packet_size)?,
            weight: table
                .optional("weight", |node| node.integer("a weight", 1..1 << 32))?
                .map(|weight| weight as u32),
            bounded: yes("bounded")?,
            isolated: yes("isolated")?,
            exempt: yes("exempt")?,
            maxburst: packets("maxburst")?,
            minburst: packets("minburst")?,
            minidle: table.optional("minidle", units::time)?,
            ewma: table
                .optional("ewma", |node| node.integer("a logarithm to base 2", 0..32))?
                .map(|ewma| ewma as u8),
            mpu: table.optional("mpu", units::packet_size)?.unwrap_or_default(),
        })
    }

    /// The priority in force.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(narrows_core::sched::Cbq::LAST_PRIORITY)
    }

    /// The allotment in force, where a usual packet of the whole is this.
    pub fn allot(&self, usual: Bytes) -> Bytes {
        let half_more = self.average_packet(usual).get() * 3 / 2; // at most 98,302
        self.allot.unwrap_or(Bytes::new(half_more.max(1)))
    }

    /// The length of its usual packet in force, where that of the whole is this.
    pub fn average_packet(&self, usual: Bytes) -> Bytes {
        self.average_packet.unwrap_or(usual)
    }

    /// By how much the average forgets.
    pub fn ewma(&self) -> u8 {
        self.ewma.unwrap_or(narrows_core::sched::Cbq::EWMA)
    }

    /// How many packets it may send at once.
    pub fn maxburst(&self) -> u32 {
        self.maxburst.unwrap_or(MAXBURST)
    }

    /// How many packets it sends together once it has waited.
    pub fn minburst(&self) -> u32 {
        self.minburst.unwrap_or(0)
    }

    pub(crate) fn write(&self, table: &mut Inline) {
        table.quoted("rate", Some(self.rate));
        table.plain("priority", self.priority);
        table.quoted("allot", self.allot);
        table.quoted("avpkt", self.average_packet);
        table.plain("weight", self.weight);
        table.plain("bounded", self.bounded.then_some(true));
        table.plain("isolated", self.isolated.then_some(true));
        table.plain("exempt", self.exempt.then_some(true));
        table.plain("maxburst", self.maxburst);
        table.plain("minburst", self.minburst);
        table.quoted("minidle", self.minidle);
        table.plain("ewma", self.ewma);
        table.quoted("mpu", Some(self.mpu).filter(|mpu| mpu.get() > 0));
    }

    pub(crate) fn words(&self, is_leaf: bool) -> String {
        let mut words = format!("rate {}", self.rate);
        if is_leaf {
            words += &format!(", priority {}", self.priority());
            if let Some(allot) = self.allot {
                words += &format!(", allotment {allot}");
            }
            if let Some(weight) = self.weight {
                words += &format!(", weight {weight}");
            }
        }
        words += &format!(", at most {} packets at once", self.maxburst());
        for (is, what) in [
            (self.bounded, "bounded: it does not borrow"),
            (self.isolated, "isolated: it does not lend"),
            (self.exempt, "exempt: its rate is not watched"),
        ] {
            if is {
                words += &format!("; {what}");
            }
        }
        words
    }
}
