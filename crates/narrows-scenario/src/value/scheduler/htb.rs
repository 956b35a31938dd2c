//! Classes of a hierarchical token bucket (HTB): `{ name = "voice", parent = "all", rate = "1mbit", ceil =
//! "2mbit", priority = 0 }`.

use std::ops::Range;

use narrows_core::service::Overhead;
use narrows_core::{Bytes, Rate};

use super::bucket::{BURST, below_one_packet};
use crate::keys::kind::{Given, Integer};
use crate::keys::quantity::{FINITE_RATE, LEAST_SIZE, Size};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::value::overhead::OVERHEAD;

/// Parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Guaranteed rate.
    pub rate: Rate,
    /// Maximum rate including borrowing; `None` for the guaranteed rate.
    pub ceil: Option<Rate>,
    /// Burst at the guaranteed rate; `None` for 10 ms of it.
    pub burst: Option<Bytes>,
    /// Burst at the ceiling; `None` for 10 ms of it.
    pub cburst: Option<Bytes>,
    /// Priority among classes that may send at the same level: 0 is served before 7.
    pub priority: u8,
    /// Bytes sent per round among classes of its priority; `None` for a tenth of the bytes of one second at
    /// its rate.
    pub quantum: Option<Bytes>,
    /// Minimum packet length that is charged.
    pub mpu: Bytes,
    /// Framing overhead charged per packet; `None` uses the link's.
    pub overhead: Option<Overhead>,
}

/// Longest packet that a burst must hold.
const PACKET: Bytes = Bytes::new(1500);
/// Minimum default burst.
const LEAST_BURST: u64 = 1600;
/// tc's `r2q`: the default quantum is the bytes of one second at the rate, divided by this.
const RATE_TO_QUANTUM: u64 = 10;
/// The kernel's limits of the default quantum.
const QUANTA: (u64, u64) = (1000, 200_000);

impl Default for HtbClass {
    /// Has no rate, which is required.
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            ceil: None,
            burst: None,
            cburst: None,
            priority: 0,
            quantum: None,
            mpu: Bytes::new(0),
            overhead: None,
        }
    }
}

const QUANTUM: Size = Size { low: 256, high: 1 << 24, expected: "a quantum from 256 bytes to 16 MiB" };

impl Keyed for HtbClass {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, FINITE_RATE, "Guaranteed rate.").required(),
        row!(
            "ceil",
            ceil,
            Given(FINITE_RATE),
            "Maximum rate, by borrowing; below `rate`, it limits the class to less."
        )
        .default("`rate`"),
        row!("burst", burst, Given(BURST), "Burst at the guaranteed rate, at least 1500 bytes.")
            .default("10 ms of `rate`, at least 1600 bytes"),
        row!("cburst", cburst, Given(BURST), "Burst at the maximum rate, at least 1500 bytes.")
            .default("10 ms of `ceil`, at least 1600 bytes"),
        row!(
            "priority",
            priority,
            Integer { what: "a priority", low: 0, high: 7 },
            "Priority among classes that may send: 0 goes before 7."
        ),
        row!("quantum", quantum, Given(QUANTUM), "Bytes per turn among classes of the same priority.")
            .default("a tenth of what `rate` is in a second, 1000 to 200,000 bytes"),
        row!("mpu", mpu, LEAST_SIZE, "Minimum length a packet counts."),
        row!("overhead", overhead, Given(OVERHEAD), "[Length of a packet](#overhead) in this class.")
            .default("the link's"),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let class = self;
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem,
        };
        for (key, burst) in [("burst", class.burst), ("cburst", class.cburst)] {
            if let Some(burst) = burst.filter(|burst| *burst < PACKET) {
                return Err(at(key, below_one_packet(burst, PACKET)));
            }
        }
        Ok(())
    }
}

impl HtbClass {
    /// The effective ceiling.
    pub fn ceil(&self) -> Rate {
        self.ceil.unwrap_or(self.rate)
    }

    /// The effective burst.
    pub fn burst(&self) -> Bytes {
        self.burst.unwrap_or(usual_burst(self.rate))
    }

    /// The effective burst at the ceiling.
    pub fn cburst(&self) -> Bytes {
        self.cburst.unwrap_or(usual_burst(self.ceil()))
    }

    /// The effective quantum.
    pub fn quantum(&self) -> Bytes {
        let usual = self.rate.bits_per_second() / 8 / RATE_TO_QUANTUM;
        self.quantum.unwrap_or(Bytes::new(usual.clamp(QUANTA.0, QUANTA.1)))
    }

    pub(crate) fn effective(&self, is_leaf: bool) -> String {
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

/// The default burst: ten milliseconds at the rate, and at least one packet.
fn usual_burst(rate: Rate) -> Bytes {
    Bytes::new((rate.bits_per_second() / 800).max(LEAST_BURST))
}
