//! The options of sch_netem.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::time::Duration;

/// The options of sch_netem, in the kernel's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Netem {
    /// Whose sch_netem this is.
    pub generation: Generation,
    /// Maximum number of packets inside; which ones count depends on the generation.
    pub limit: u32,
    /// `delay TIME`.
    pub delay: Duration,
    /// The jitter of `delay`: with a table the standard deviation, otherwise half the width of a uniform
    /// distribution. The kernel limits it to 2³¹ − 1 ns.
    pub jitter: Duration,
    /// The correlation of `delay`.
    pub delay_correlation: Share,
    /// `distribution`.
    pub table: Option<Table>,
    /// `loss`.
    pub loss: Loss,
    /// `ecn`: mark ECN-capable packets instead of losing them.
    pub ecn: bool,
    /// `duplicate`.
    pub duplication: Chance,
    /// `corrupt`.
    pub corruption: Chance,
    /// `reorder`. A `reorder` without `gap` has a gap of 1, as tc sets it.
    pub reorder: Chance,
    /// `gap`; 0 disables reordering.
    pub gap: u32,
    /// `rate`.
    pub rate: Option<Rate>,
    /// `slot`.
    pub slots: Option<Slots>,
}

impl Default for Netem {
    /// tc's default: a limit of 1000 packets, and nothing else.
    fn default() -> Self {
        Self {
            generation: Generation::default(),
            limit: 1000,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: Share::ZERO,
            table: None,
            loss: Loss::Random(Chance::NEVER),
            ecn: false,
            duplication: Chance::NEVER,
            corruption: Chance::NEVER,
            reorder: Chance::NEVER,
            gap: 0,
            rate: None,
            slots: None,
        }
    }
}

/// Which sch_netem, named by the release of Linux that changed its decisions. Stable kernels got the changes within weeks, so that a
/// late 6.1 is as 7.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// 5.10 and up to 6.10.
    Linux5_10,
    /// A packet and its duplicate enter together, if there is room for one; before, the duplicate came first and took room.
    Linux6_11,
    /// The limit counts neither reordered packets nor, as before, those in an inner discipline.
    Linux6_13,
    /// Mended: the limit counts all packets, no draw of the four-state model goes unanswered, wide slots do not overflow.
    #[default]
    Linux7_1,
}

impl Generation {
    /// That of a release, if its sch_netem is known: from 5.10 to 7.3.
    pub const fn of_linux(major: u32, minor: u32) -> Option<Self> {
        Some(match (major, minor) {
            (5, 10..=19) | (6, 0..=10) => Self::Linux5_10,
            (6, 11..=12) => Self::Linux6_11,
            (6, 13..=19) | (7, 0) => Self::Linux6_13,
            (7, 1..=3) => Self::Linux7_1,
            _ => return None,
        })
    }
}

/// A probability or correlation as tc passes it to the kernel: a multiple of 1/(2³² − 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// 0 %.
    pub const ZERO: Self = Self(0);
    /// 100 %.
    pub const ONE: Self = Self(u32::MAX);

    /// As tc computes it from a percentage, in double precision: `rint(percent/100·(2³² − 1))`, rounding half
    /// to even. `None` if that is not between 0 and 100 %.
    pub fn from_percent(percent: f64) -> Option<Self> {
        let raw = libm::rint(percent / 100.0 * f64::from(u32::MAX));
        (0.0..=f64::from(u32::MAX)).contains(&raw).then_some(Self(raw as u32))
    }

    /// `raw` units of 1/(2³² − 1).
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The number of units of 1/(2³² − 1).
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// The difference to 100 %: tc's `1-H` is stored this way.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self(u32::MAX - self.0)
    }

    /// As a number between 0 and 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

/// A probability with NetEm's correlation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// The probability.
    pub share: Share,
    /// NetEm's ρ.
    pub correlation: Share,
}

impl Chance {
    /// Never.
    pub const NEVER: Self = Self { share: Share::ZERO, correlation: Share::ZERO };
}

/// A loss model of sch_netem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// `loss random`.
    Random(Chance),
    /// `loss state`; for the states see [`FourState`](crate::model::selector::FourState).
    States {
        /// From a gap into a burst.
        p13: Share,
        /// From a loss in a burst back into a gap.
        p31: Share,
        /// From a loss in a burst to a received packet in the burst.
        p32: Share,
        /// From a received packet in a burst to the next loss in the burst.
        p23: Share,
        /// From a gap to an isolated loss.
        p14: Share,
    },
    /// `loss gemodel`.
    GilbertElliott {
        /// From good to bad.
        p: Share,
        /// From bad to good.
        r: Share,
        /// h, the probability that a packet is received in the bad state: the complement of tc's `1-H`.
        h: Share,
        /// 1 − k, the probability of loss in the good state.
        loss_in_good: Share,
    },
}

/// `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// In bytes; 0 for no rate.
    pub bytes_per_second: u64,
    /// Bytes added to each packet.
    pub packet_overhead: i32,
    /// Payload bytes per cell; 0 for no cells.
    pub cell_size: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
}

/// `slot`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// The gap until the next slot.
    pub gap: SlotGap,
    /// Maximum packets per slot; 0 for no limit, otherwise at most 2³¹ − 1.
    pub packets: u32,
    /// Maximum bytes per slot; 0 for no limit, otherwise at most 2³¹ − 1.
    pub bytes: u32,
}

/// The gap until the next slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotGap {
    /// Uniform between a minimum and a maximum.
    Between(Duration, Duration),
    /// `slot distribution`.
    Table {
        /// The table.
        table: Table,
        /// The mean.
        delay: Duration,
        /// The standard deviation, which the kernel limits to 2³¹ − 1 ns.
        jitter: Duration,
    },
}

/// A distribution table, as in a `.dist` file: 8192 stands for one standard deviation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Arc<[i16]>);

impl Table {
    /// The maximum number of values that the kernel accepts.
    pub const MOST: usize = 16_384;

    /// A table of these values.
    ///
    /// # Errors
    /// If there are none, or more than [`Table::MOST`].
    pub fn new(values: Vec<i16>) -> Result<Self, NoTable> {
        match values.len() {
            1..=Self::MOST => Ok(Self(values.into())),
            values => Err(NoTable { values }),
        }
    }

    /// The values.
    pub fn values(&self) -> &[i16] {
        &self.0
    }
}

/// A table without values, or with more than the kernel accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTable {
    /// The number of values.
    pub values: usize,
}

impl fmt::Display for NoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of {} values: NetEm takes 1 to {}", self.values, Table::MOST)
    }
}

impl core::error::Error for NoTable {}
