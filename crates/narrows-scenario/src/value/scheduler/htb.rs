//! Classes of a hierarchical token bucket:
//! `{ name = "voice", parent = "all", rate = "1mbit", ceil = "2mbit", priority = 0 }`.

use narrows_core::{Bytes, Rate};

use super::tree;
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// The parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// What it gets whenever it has packets.
    pub rate: Rate,
    /// What it gets at most, by borrowing; nothing for its rate.
    pub ceil: Option<Rate>,
    /// How much it may send at once by its rate; nothing for 10 ms of that.
    pub burst: Option<Bytes>,
    /// The same by its ceiling.
    pub cburst: Option<Bytes>,
    /// Who is served first of those that may send alike: 0 before 7.
    pub priority: u8,
    /// How much it sends in its turn among those of its priority; nothing for a tenth of what its rate is in a second.
    pub quantum: Option<Bytes>,
    /// What the shortest packet counts.
    pub mpu: Bytes,
}

pub(crate) const KEYS: &[&str] = &["rate", "ceil", "burst", "cburst", "priority", "quantum", "mpu"];

/// The longest packet that a burst must hold.
const PACKET: Bytes = Bytes::new(1500);
/// The least burst where none is given.
const LEAST_BURST: u64 = 1600;
/// tc's `r2q`: the quantum is so small a part of what the rate is in a second.
const RATE_TO_QUANTUM: u64 = 10;
/// The kernel's bounds of that.
const QUANTA: (u64, u64) = (1000, 200_000);

impl HtbClass {
    pub(crate) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        let class = Self {
            rate: table.required("rate", &node.span, tree::rate)?,
            ceil: table.optional("ceil", tree::rate)?,
            burst: table.optional("burst", tree::burst)?,
            cburst: table.optional("cburst", tree::burst)?,
            priority: table
                .optional("priority", |node| node.integer("a priority", 0..8))?
                .map_or(0, |priority| priority as u8),
            quantum: table.optional("quantum", quantum)?,
            mpu: table.optional("mpu", units::packet_size)?.unwrap_or_default(),
        };
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem,
        };
        if class.ceil() < class.rate {
            let problem =
                Problem::new(format!("`ceil` is {}, below `rate`, which is {}", class.ceil(), class.rate));
            return Err(at(
                "ceil",
                problem.help("a class gets its rate always, and no more than its ceiling"),
            ));
        }
        for (key, burst) in [("burst", class.burst), ("cburst", class.cburst)] {
            if let Some(burst) = burst.filter(|burst| *burst < PACKET) {
                return Err(at(key, tree::below_one_packet(burst, PACKET)));
            }
        }
        Ok(class)
    }

    /// The ceiling in force.
    pub fn ceil(&self) -> Rate {
        self.ceil.unwrap_or(self.rate)
    }

    /// The burst in force.
    pub fn burst(&self) -> Bytes {
        self.burst.unwrap_or(usual_burst(self.rate))
    }

    /// The burst of the ceiling in force.
    pub fn cburst(&self) -> Bytes {
        self.cburst.unwrap_or(usual_burst(self.ceil()))
    }

    /// The quantum in force.
    pub fn quantum(&self) -> Bytes {
        let usual = self.rate.bits_per_second() / 8 / RATE_TO_QUANTUM;
        self.quantum.unwrap_or(Bytes::new(usual.clamp(QUANTA.0, QUANTA.1)))
    }

    pub(crate) fn write(&self, table: &mut Inline) {
        table.quoted("rate", Some(self.rate));
        table.quoted("ceil", self.ceil);
        table.quoted("burst", self.burst);
        table.quoted("cburst", self.cburst);
        table.plain("priority", Some(self.priority).filter(|priority| *priority > 0));
        table.quoted("quantum", self.quantum);
        table.quoted("mpu", Some(self.mpu).filter(|mpu| mpu.get() > 0));
    }

    pub(crate) fn words(&self, is_leaf: bool) -> String {
        let mut words = format!(
            "rate {} (burst {}), ceiling {} (burst {})",
            self.rate,
            self.burst(),
            self.ceil(),
            self.cburst()
        );
        if is_leaf {
            words += &format!(", priority {}, quantum {}", self.priority, self.quantum());
        }
        words
    }
}

/// Ten milliseconds of a rate, and at least a packet.
fn usual_burst(rate: Rate) -> Bytes {
    Bytes::new((rate.bits_per_second() / 800).max(LEAST_BURST))
}

fn quantum(node: &Node) -> Result<Bytes, Problem> {
    match units::size(node)? {
        size if (256..=1 << 24).contains(&size.get()) => Ok(size),
        _ => Err(node.expected("a quantum from 256 bytes to 16 MiB")),
    }
}
