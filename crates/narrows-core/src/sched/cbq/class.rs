//! One class: its idle time, its limit, its position in the tree.

use alloc::vec::Vec;

use super::parameters::Packets;
use super::{Cbq, CbqClass, PRIORITIES};
use crate::sched::shaping::{ShapingError, ShapingFault};
use crate::sched::{Mode, ShapedState};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// A span or an instant in 2⁻³² nanoseconds. Instants are below 2⁹⁶ and spans below 2¹¹⁰, so sums do not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span(pub(super) i128);

impl Span {
    pub(super) const NEVER: Self = Self(i128::MAX);
    const LONGEST: i128 = 1 << 110;

    /// An instant.
    pub(super) fn of(now: Time) -> Self {
        Self(i128::from(now.nanos()) << 32)
    }

    fn nanos(nanos: f64) -> Self {
        Self((nanos * 4_294_967_296.0) as i128)
    }

    fn exactly(span: Duration) -> Self {
        Self(i128::from(span.nanos()) << 32)
    }

    /// Transmission time of a bit at this rate in bits per second. For rate 0, when nothing is left of a rate, half a
    /// minute: such a class does not lend.
    pub(super) fn of_bit(rate: u64) -> Self {
        match rate {
            u64::MAX => Self::default(),
            0 => Self(1 << 67),
            rate => Self(((1_000_000_000u128 << 32) / u128::from(rate)) as i128),
        }
    }

    /// The first whole nanosecond that is not before it.
    pub(super) fn time(self) -> Time {
        let nanos = (self.0.saturating_add(0xffff_ffff) >> 32).clamp(0, u64::MAX.into());
        Time::from_nanos(nanos as u64)
    }
}

#[derive(Debug)]
pub(super) struct Class {
    /// The parent. `None` for the link.
    pub(super) parent: Option<u32>,
    /// Whether the parent may lend to it.
    pub(super) borrows: bool,
    pub(super) exempt: bool,
    /// Whether its packets are charged to its ancestors.
    shares: bool,
    /// Whether it has a limit. Only the link may have none.
    limited: bool,
    /// 0 for a leaf, otherwise one more than the maximum of its children.
    pub(super) level: u32,
    /// From 0.
    pub(super) priority: usize,
    /// Bits per turn, and what is left of the present turn.
    pub(super) quantum: i64,
    pub(super) deficit: i64,
    pub(super) mpu: Bytes,
    /// Transmission time of a bit at the class's rate.
    bit: Span,
    ewma: u8,
    /// The average and its bounds, divided by W, as in Linux.
    average: Span,
    most: Span,
    least: Option<Span>,
    sleep: Span,
    /// When its last packet ended.
    ended: Option<Span>,
    /// The instant from which it is under its limit. `None` if it is now.
    under_from: Option<Span>,
    /// Whether it sleeps.
    asleep: bool,
    state: ShapedState,
}

impl Class {
    fn new(config: &CbqClass, place: usize, bandwidth: Rate) -> Result<Self, ShapingFault> {
        let zero = Bytes::new(0);
        if config.rate == Rate::DOWN {
            return Err(ShapingFault::NoRate);
        }
        if !(1..=Cbq::LAST_PRIORITY).contains(&config.priority) {
            let (least, most) = (1, Cbq::LAST_PRIORITY);
            return Err(ShapingFault::Priority { found: config.priority, least, most });
        }
        if config.allot == zero {
            return Err(ShapingFault::NoQuantum);
        }
        if config.average_packet == zero {
            return Err(ShapingFault::NoAveragePacket);
        }
        if config.weight == Some(0) {
            return Err(ShapingFault::NoWeight);
        }
        if config.ewma > Cbq::MOST_EWMA {
            return Err(ShapingFault::TimeConstant { found: config.ewma, most: Cbq::MOST_EWMA });
        }
        if config.bounded && config.exempt {
            return Err(ShapingFault::BoundedAndExempt);
        }
        if let Some(parent) = config.parent
            && parent >= place
        {
            return Err(ShapingFault::Parent { found: parent });
        }
        let &CbqClass { rate, average_packet: average, ewma, .. } = config;
        let packets = Packets { bandwidth, rate, average, ewma };
        let most = Span::nanos(packets.maxidle(config.maxburst));
        Ok(Self {
            parent: config.parent.map(|parent| parent as u32),
            borrows: !config.bounded && !config.isolated,
            exempt: config.exempt,
            shares: !config.isolated,
            limited: true,
            level: 0,
            priority: usize::from(config.priority) - 1,
            quantum: 0,
            deficit: 0,
            mpu: config.mpu,
            bit: Span::default(),
            ewma,
            average: most,
            most,
            least: config.minidle.map(|least| Span(-Span::exactly(least).0)),
            sleep: Span::nanos(packets.offtime(config.minburst)),
            ended: None,
            under_from: None,
            asleep: false,
            state: ShapedState::default(),
        })
    }

    pub(super) fn is_under_limit(&self, now: Span) -> bool {
        !self.limited || self.under_from.is_none_or(|from| from <= now)
    }

    /// The instant from which it is under its limit. In the past if it is now.
    pub(super) fn under_limit_from(&self) -> Span {
        match self.under_from {
            Some(from) if self.limited => from,
            _ => Span::default(),
        }
    }

    /// The part of its debt due to the average: (1 − W)·(−average)/W.
    fn owed(&self) -> i128 {
        let below = -self.average.0;
        below - (below >> self.ewma)
    }

    /// The class has a packet to send, is over its limit, and cannot borrow. It waits from now on: longer than
    /// necessary by `offtime`, so that it has a burst then, but not for the average's part, because the average
    /// cannot recover while it sleeps.
    pub(super) fn sleep(&mut self, now: Span) {
        let Some(from) = self.under_from else { return };
        if self.asleep {
            return;
        }
        let mut delay = from.0 - now.0 + self.sleep.0;
        if self.average.0 < 0 {
            delay -= self.owed();
        }
        if let Some(least) = self.least {
            self.average = self.average.max(least);
        }
        self.under_from = Some(Span(now.0 + delay.max(1 << 32)));
        self.asleep = true;
        self.state.over_limit += 1;
    }

    /// Updates the average for a packet of this many bits that ends at `end` and started `on_wire` earlier.
    fn update(&mut self, end: Span, on_wire: i128, bits: i64) {
        let earned = (i128::from(bits) * self.bit.0).min(Span::LONGEST);
        let average = match self.ended {
            None => self.most.0,
            Some(ended) => self.average.0 + end.0 - ended.0 - earned - (self.average.0 >> self.ewma),
        };
        self.average = Span(average.clamp(-Span::LONGEST, self.most.0));
        self.under_from = None;
        if average <= 0 {
            if let Some(least) = self.least {
                self.average = self.average.max(least);
            }
            self.under_from = Some(Span(end.0 + self.owed() + earned - on_wire));
        }
        self.ended = self.ended.max(Some(end));
        self.asleep = false;
    }

    /// Its state. `lender` is the class that lends to it, possibly itself.
    pub(super) fn state(&self, place: u32, lender: Option<u32>) -> ShapedState {
        let mode = match lender {
            Some(lender) if lender == place => Mode::MaySend,
            Some(_) => Mode::MayBorrow,
            None => Mode::CannotSend,
        };
        let nanos = self.average.0 >> self.ewma >> 32;
        let tokens = nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        ShapedState { mode, tokens, ..self.state }
    }
}

/// The classes, followed by the link.
pub(super) fn tree(
    bandwidth: Rate,
    average_packet: Bytes,
    configs: &[CbqClass],
) -> Result<Vec<Class>, ShapingError> {
    let link = CbqClass { rate: bandwidth, average_packet, bounded: true, ..CbqClass::default() };
    let link = Class::new(&link, 0, bandwidth).map_err(ShapingFault::of_all)?;
    let mut classes: Vec<Class> = Vec::with_capacity(configs.len() + 1);
    for (place, config) in configs.iter().enumerate() {
        let mut class = Class::new(config, place, bandwidth).map_err(|fault| fault.of(place))?;
        class.parent = class.parent.or(Some(configs.len() as u32));
        classes.push(class);
    }
    classes.push(Class { limited: false, ..link });
    // Children come after their parents, so in reverse order each class knows all its descendants.
    let mut rates: Vec<u64> = configs.iter().map(|config| config.rate.bits_per_second()).collect();
    rates.push(bandwidth.bits_per_second());
    for place in (0..configs.len()).rev() {
        raise(&mut classes, place);
    }
    for place in 0..configs.len() {
        if configs[place].isolated {
            set_apart(&mut classes, &mut rates, place, configs);
        }
    }
    for (class, rate) in classes.iter_mut().zip(rates) {
        class.bit = Span::of_bit(rate);
    }
    set_quanta(&mut classes, configs);
    Ok(classes)
}

/// Raises the parent's level above that of a class.
fn raise(classes: &mut [Class], place: usize) {
    let (level, parent) = (classes[place].level, classes[place].parent);
    if let Some(parent) = parent {
        let parent = &mut classes[parent as usize];
        parent.level = parent.level.max(level + 1);
    }
}

/// Subtracts the rate of an isolated class from all ancestors that it would be charged to.
fn set_apart(classes: &mut [Class], rates: &mut [u64], place: usize, configs: &[CbqClass]) {
    let own = configs[place].rate.bits_per_second();
    let mut above = classes[place].parent;
    while let Some(parent) = above {
        let class = &mut classes[parent as usize];
        rates[parent as usize] = rates[parent as usize].saturating_sub(own);
        class.limited = true;
        above = class.parent.filter(|_| class.shares);
    }
}

/// quantum = allot · weight / mean weight, for each priority.
fn set_quanta(classes: &mut [Class], configs: &[CbqClass]) {
    let weight = |config: &CbqClass| {
        u128::from(config.weight.unwrap_or_else(|| (config.rate.bits_per_second() / 8).max(1)))
    };
    let leaves: Vec<usize> = (0..configs.len()).filter(|&place| classes[place].level == 0).collect();
    for priority in 0..PRIORITIES {
        let here = || leaves.iter().filter(|&&place| usize::from(configs[place].priority) == priority + 1);
        // At most 2¹⁶ of 2⁶⁴.
        let sum: u128 = here().map(|&place| weight(&configs[place])).sum();
        let count = here().count() as u128;
        for &place in here() {
            // Below 2³⁰ · 2⁶⁴ · 2¹⁶.
            let allot = u128::from(configs[place].allot.get().min(1 << 30));
            let bytes = (allot * weight(&configs[place]) * count / sum).max(1);
            let class = &mut classes[place];
            class.quantum = (bytes * 8) as i64; // below 2⁴⁹: no weight is above the sum
            class.deficit = class.quantum;
        }
    }
}

/// A packet that is sent.
pub(super) struct Charge {
    pub(super) leaf: u32,
    pub(super) lender: u32,
    pub(super) bits: i64,
    /// Transmission time of a bit on the wire.
    pub(super) bit: Span,
    pub(super) length: u32,
}

/// Charges a packet to its class and its ancestors, up to an isolated class.
pub(super) fn charge(classes: &mut [Class], now: Span, charge: Charge) {
    let Charge { leaf, lender, bits, bit, length } = charge;
    let on_wire = (i128::from(bits) * bit.0).min(Span::LONGEST);
    let end = Span(now.0 + on_wire);
    let (mut next, mut counts, mut borrows) = (Some(leaf), true, true);
    while let Some(place) = next {
        let class = &mut classes[place as usize];
        class.state.sent.add(length);
        if place == lender {
            class.state.lent += 1;
            borrows = false;
        } else if borrows {
            class.state.borrowed += 1;
        }
        if counts {
            class.update(end, on_wire, bits);
            counts = class.shares;
        }
        next = class.parent;
    }
}
