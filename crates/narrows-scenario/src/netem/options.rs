//! NetEm options as values.

use narrows_core::{Duration, Rate};

use super::release::Linux;
use crate::units::Share;

/// Default `limit` in packets.
pub const DEFAULT_LIMIT: u64 = 1000;

/// The options of one `netem`, as given or with tc's defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Netem {
    /// `limit`, in packets; `None` for [`DEFAULT_LIMIT`].
    pub limit: Option<u64>,
    /// `delay TIME`: the mean.
    pub delay: Duration,
    /// `delay … JITTER`: half the width of the uniform distribution, or the standard deviation of another
    /// one.
    pub jitter: Duration,
    /// `delay … … CORRELATION`.
    pub delay_correlation: Share,
    /// `distribution` of the delay; uniform if not given.
    pub distribution: Option<Shape>,
    /// `loss`.
    pub loss: Option<LossOption>,
    /// `ecn`: mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// `duplicate`.
    pub duplicate: Chance,
    /// `corrupt`: flip one bit of a packet.
    pub corrupt: Chance,
    /// `reorder`: packets that skip the delay. A `gap` without `reorder` implies 100 %, as in older
    /// kernels.
    pub reorder: Chance,
    /// `gap`: of this many packets, all but the last keep their delay.
    pub gap: Option<u32>,
    /// `rate`.
    pub rate: Option<RateOption>,
    /// `slot`.
    pub slot: Option<Slot>,
    /// `seed` of the random draws.
    pub seed: Option<u64>,
    /// `kernel`, in exact mode: the release whose sch_netem it is; the newest if not given.
    pub kernel: Option<Linux>,
}

/// A probability and the correlation of its draws: NetEm's `PERCENT [CORRELATION]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Probability.
    pub share: Share,
    /// Correlation of each draw with the previous one.
    pub correlation: Share,
}

/// Models of `loss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossOption {
    /// `loss [random] PERCENT [CORRELATION]`
    Random(Chance),
    /// `loss state P13 [P31 [P32 [P23 [P14]]]]`: the four-state Markov chain of Salsano, Ludovici and
    /// Ordine.
    State {
        /// From good to burst loss.
        p13: Share,
        /// From burst loss to good. Default: 1 − `p13`.
        p31: Share,
        /// From burst loss to reception in the burst. Default: 0.
        p32: Share,
        /// From reception in the burst to burst loss. Default: 1.
        p23: Share,
        /// From good to an isolated loss. Default: 0.
        p14: Share,
    },
    /// `loss gemodel P [R [1-H [1-K]]]`: the Gilbert-Elliott model.
    GilbertElliott {
        /// From good to bad.
        p: Share,
        /// From bad to good. Default: 1 − `p`.
        r: Share,
        /// `1-H`, the loss probability in the bad state. Default: 1.
        loss_bad: Share,
        /// `1-K`, the loss probability in the good state. Default: 0.
        loss_good: Share,
    },
}

impl LossOption {
    /// Whether it never loses a packet in any state.
    pub fn is_none(self) -> bool {
        match self {
            Self::Random(chance) => chance.share.is_zero(),
            Self::State { p13, p14, .. } => p13.is_zero() && p14.is_zero(),
            Self::GilbertElliott { p, loss_good, .. } => p.is_zero() && loss_good.is_zero(),
        }
    }
}

impl Netem {
    /// The names of the files of tables.
    pub(crate) fn tables(&mut self) -> impl Iterator<Item = &mut String> {
        let of_slots = match self.slot.as_mut().map(|slot| &mut slot.gap) {
            Some(SlotGap::Distribution { shape, .. }) => Some(shape),
            _ => None,
        };
        self.distribution.iter_mut().chain(of_slots).filter_map(|shape| match shape {
            Shape::File(name) => Some(name),
            _ => None,
        })
    }
}

/// Shape of a delay distribution; its mean and standard deviation are separate options.
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
    /// A custom table, by its file name.
    File(String),
}

impl Shape {
    /// The shapes with a name.
    pub(crate) const NAMED: [(&str, Self); 4] = [
        ("uniform", Self::Uniform),
        ("normal", Self::Normal),
        ("pareto", Self::Pareto),
        ("paretonormal", Self::ParetoNormal),
    ];

    /// The word for tc: a name, or a file name.
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
    /// Rate in bits per second.
    pub rate: Rate,
    /// Additional bytes per packet on the wire; may be negative.
    pub packet_overhead: i32,
    /// Payload bytes per cell; 0 if packets are not segmented into cells.
    pub cell_size: u32,
    /// Additional bytes per cell on the wire; may be negative.
    pub cell_overhead: i32,
}

/// `slot …`: packets leave together, when a slot starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Time to the next slot.
    pub gap: SlotGap,
    /// Maximum number of packets per slot; 0 for no limit.
    pub packets: u32,
    /// Maximum number of bytes per slot; 0 for no limit.
    pub bytes: u32,
}

impl Slot {
    /// Whether there are slots: a zero gap disables them, whatever the other settings.
    pub fn is_some(&self) -> bool {
        !matches!(self.gap, SlotGap::Between { high: Duration::ZERO, .. })
    }
}

/// Time from one slot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotGap {
    /// `slot MIN [MAX]`: uniform.
    Between {
        /// Minimum.
        low: Duration,
        /// Maximum.
        high: Duration,
    },
    /// `slot distribution SHAPE DELAY JITTER`
    Distribution {
        /// Shape.
        shape: Shape,
        /// Mean.
        delay: Duration,
        /// Standard deviation, or half the width of a uniform distribution.
        jitter: Duration,
    },
}
