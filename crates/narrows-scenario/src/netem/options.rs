//! What the options of NetEm come to, as values.

use narrows_core::{Duration, Rate};

use crate::units::Share;

/// What may be held where no `limit` is given.
pub const DEFAULT_LIMIT: u64 = 1000;

/// The options of one `netem`, each as it was given or as tc fills it in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Netem {
    /// `limit`, in packets; nothing where it is not given ([`DEFAULT_LIMIT`]).
    pub limit: Option<u64>,
    /// `delay TIME`: the mean.
    pub delay: Duration,
    /// `delay … JITTER`: half the width of the uniform distribution, or the standard deviation of a named one.
    pub jitter: Duration,
    /// `delay … … CORRELATION`.
    pub delay_correlation: Share,
    /// `distribution`: that of the delay; uniform where none is named.
    pub distribution: Option<Shape>,
    /// `loss`.
    pub loss: Option<LossOption>,
    /// `ecn`: where a packet can be marked, a loss marks it.
    pub ecn: bool,
    /// `duplicate`.
    pub duplicate: Chance,
    /// `corrupt`: one bit of a packet.
    pub corrupt: Chance,
    /// `reorder`: packets that skip the delay. A `gap` without `reorder` is one of 100 %, as it was in older kernels.
    pub reorder: Chance,
    /// `gap`: of so many packets all but the last keep their delay.
    pub gap: Option<u32>,
    /// `rate`.
    pub rate: Option<RateOption>,
    /// `slot`.
    pub slot: Option<Slot>,
    /// `seed` of the random draws.
    pub seed: Option<u64>,
}

/// A probability and the correlation of the draws that decide it, as NetEm's `PERCENT [CORRELATION]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// How often.
    pub share: Share,
    /// Between a draw and the one before it.
    pub correlation: Share,
}

/// The models of `loss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossOption {
    /// `loss [random] PERCENT [CORRELATION]`
    Random(Chance),
    /// `loss state P13 [P31 [P32 [P23 [P14]]]]`: the Markov chain of 4 states of Salsano, Ludovici and Ordine.
    State {
        /// From good to lost in a burst.
        p13: Share,
        /// Back; 1 − `p13` where not given.
        p31: Share,
        /// From lost to received within a burst; 0 where not given.
        p32: Share,
        /// Back; 1 where not given.
        p23: Share,
        /// From good to a single loss; 0 where not given.
        p14: Share,
    },
    /// `loss gemodel P [R [1-H [1-K]]]`: Gilbert and Elliott's.
    GilbertElliott {
        /// From good to bad.
        p: Share,
        /// From bad to good; 1 − `p` where not given.
        r: Share,
        /// `1-H`, the loss in the bad state; 1 where not given.
        loss_bad: Share,
        /// `1-K`, the loss in the good state; 0 where not given.
        loss_good: Share,
    },
}

impl LossOption {
    /// Whether it never loses a packet, whatever its state.
    pub fn is_none(self) -> bool {
        match self {
            Self::Random(chance) => chance.share.is_zero(),
            Self::State { p13, p14, .. } => p13.is_zero() && p14.is_zero(),
            Self::GilbertElliott { p, loss_good, .. } => p.is_zero() && loss_good.is_zero(),
        }
    }
}

/// The shape of a distribution of delays: its mean and standard deviation are said elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// From mean − jitter to mean + jitter.
    Uniform,
    /// Normal.
    Normal,
    /// NetEm's table of a Pareto distribution of shape 3.
    Pareto,
    /// NetEm's table of a quarter normal and three quarters of that Pareto distribution.
    ParetoNormal,
    /// A table of one's own, by the name of its file.
    File(String),
}

impl Shape {
    /// The shapes that have a name.
    pub(crate) const NAMED: [(&str, Self); 4] = [
        ("uniform", Self::Uniform),
        ("normal", Self::Normal),
        ("pareto", Self::Pareto),
        ("paretonormal", Self::ParetoNormal),
    ];

    /// As tc is told: a name, or the name of a file.
    pub fn word(&self) -> &str {
        match self {
            Self::File(name) => name,
            named => Self::NAMED.iter().find(|(_, shape)| shape == named).map_or("", |(name, _)| name),
        }
    }
}

/// `rate RATE [PACKETOVERHEAD] [CELLSIZE] [CELLOVERHEAD]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateOption {
    /// Bits a second.
    pub rate: Rate,
    /// Bytes that each packet has more on the wire; perhaps fewer than none.
    pub packet_overhead: i32,
    /// Bytes of payload in a cell; none where packets are not cut into cells.
    pub cell_size: u32,
    /// Bytes that each cell has more on the wire; perhaps fewer than none.
    pub cell_overhead: i32,
}

/// `slot …`: packets leave together, when a slot opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// How long it takes until the next one opens.
    pub gap: SlotGap,
    /// The most packets of a slot; 0 is any number.
    pub packets: u32,
    /// The most bytes of a slot; 0 is any number.
    pub bytes: u32,
}

impl Slot {
    /// Whether there are slots at all: with a gap of zero there are none, whatever else is said of them.
    pub fn is_some(&self) -> bool {
        !matches!(self.gap, SlotGap::Between { high: Duration::ZERO, .. })
    }
}

/// The time from one slot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotGap {
    /// `slot MIN [MAX]`: uniform.
    Between {
        /// The least.
        low: Duration,
        /// The most.
        high: Duration,
    },
    /// `slot distribution SHAPE DELAY JITTER`
    Distribution {
        /// Its shape.
        shape: Shape,
        /// Its mean.
        delay: Duration,
        /// Its standard deviation, or half the width of a uniform one.
        jitter: Duration,
    },
}
