//! What sch_netem is told.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::time::Duration;

/// The options of sch_netem, in the kernel's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Netem {
    /// The most packets inside.
    pub limit: u32,
    /// `delay TIME`.
    pub delay: Duration,
    /// Of `delay`, the jitter: of a table its standard deviation, else half the width of a uniform distribution. The kernel
    /// takes no more than 2³¹ − 1 ns.
    pub jitter: Duration,
    /// Of `delay`, the correlation.
    pub delay_correlation: Share,
    /// `distribution`.
    pub table: Option<Table>,
    /// `loss`.
    pub loss: Loss,
    /// `ecn`: what would be lost is marked instead where it can be.
    pub ecn: bool,
    /// `duplicate`.
    pub duplication: Chance,
    /// `corrupt`.
    pub corruption: Chance,
    /// `reorder`; what it means without a `gap` tc has decided: a gap of 1.
    pub reorder: Chance,
    /// `gap`; with 0 nothing is reordered.
    pub gap: u32,
    /// `rate`.
    pub rate: Option<Rate>,
    /// `slot`.
    pub slots: Option<Slots>,
}

impl Default for Netem {
    /// tc's: a limit of 1000 packets, and nothing else.
    fn default() -> Self {
        Self {
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

/// A probability or correlation as tc hands it to the kernel: a multiple of 1/(2³² − 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// 0 %.
    pub const ZERO: Self = Self(0);
    /// 100 %.
    pub const ONE: Self = Self(u32::MAX);

    /// As tc works it out from a number of percent, in double precision: `rint(percent/100·(2³² − 1))`, with a half to
    /// even. Nothing when that is not between 0 and 100 %.
    pub fn from_percent(percent: f64) -> Option<Self> {
        let raw = libm::rint(percent / 100.0 * f64::from(u32::MAX));
        (0.0..=f64::from(u32::MAX)).contains(&raw).then_some(Self(raw as u32))
    }

    /// That many 1/(2³² − 1).
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// How many 1/(2³² − 1).
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// What is left to 100 %: tc's `1-H` is kept so.
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
    /// How often.
    pub share: Share,
    /// NetEm's ρ.
    pub correlation: Share,
}

impl Chance {
    /// What never happens.
    pub const NEVER: Self = Self { share: Share::ZERO, correlation: Share::ZERO };
}

/// What sch_netem loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// `loss random`.
    Random(Chance),
    /// `loss state`; which states these are stands at [`FourState`](crate::model::selector::FourState).
    States {
        /// From a gap into a burst.
        p13: Share,
        /// From a loss in a burst back into a gap.
        p31: Share,
        /// From a loss in a burst to a packet that gets through there.
        p32: Share,
        /// From a packet that gets through in a burst to the next loss there.
        p23: Share,
        /// From a gap to a single loss.
        p14: Share,
    },
    /// `loss gemodel`.
    GilbertElliott {
        /// From good to bad.
        p: Share,
        /// From bad to good.
        r: Share,
        /// h, the probability that a packet gets through in the bad state: the complement of tc's `1-H`.
        h: Share,
        /// 1 − k, the probability of loss in the good state.
        loss_in_good: Share,
    },
}

/// `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// In bytes; 0 is no rate.
    pub bytes_per_second: u64,
    /// Bytes added to each packet.
    pub packet_overhead: i32,
    /// Bytes of payload in a cell; 0 for no cells.
    pub cell_size: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
}

/// `slot`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// How long until the next.
    pub gap: SlotGap,
    /// The most packets in a slot; 0 for any number, and no more than 2³¹ − 1.
    pub packets: u32,
    /// The bytes after which a slot ends; 0 for any number, and no more than 2³¹ − 1.
    pub bytes: u32,
}

/// How long until the next slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotGap {
    /// Uniform between two.
    Between(Duration, Duration),
    /// `slot distribution`.
    Table {
        /// The table.
        table: Table,
        /// The mean.
        delay: Duration,
        /// The standard deviation, of which the kernel takes no more than 2³¹ − 1 ns.
        jitter: Duration,
    },
}

/// A distribution table, as in a `.dist` file: 8192 stands for one standard deviation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Arc<[i16]>);

impl Table {
    /// The most values that the kernel takes.
    pub const MOST: usize = 16_384;

    /// A table of these values.
    ///
    /// # Errors
    /// When there are none, or more than [`Table::MOST`].
    pub fn new(values: Vec<i16>) -> Result<Self, NoTable> {
        match values.len() {
            1..=Self::MOST => Ok(Self(values.into())),
            values => Err(NoTable { values }),
        }
    }

    /// Its values.
    pub fn values(&self) -> &[i16] {
        &self.0
    }
}

/// A table without values, or with more than the kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTable {
    /// How many.
    pub values: usize,
}

impl fmt::Display for NoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of {} values: NetEm takes 1 to {}", self.values, Table::MOST)
    }
}

impl core::error::Error for NoTable {}
