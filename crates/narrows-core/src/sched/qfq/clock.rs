//! Virtual time of QFQ, GFQ and KPS, and the range of weights and lengths for which its arithmetic holds.

use crate::sched::{FlowConfig, Refused, Weight};

/// The maximum weight of a flow. Beyond that, the rounding of 1/w would show.
pub(in crate::sched) const MOST_WEIGHT: u32 = 1 << 24;
/// The maximum sum of weights: 65,536 flows of maximum weight.
pub(in crate::sched) const MOST_SUM: u64 = 1 << 40;
/// The longest packet, in bytes: σ is then at most 2⁶⁰ units. Longer packets are served, and charged as this length.
pub(in crate::sched) const MOST_LENGTH: u32 = 1 << 17;
/// A byte per weight in units, as a power of two.
pub(in crate::sched) const UNIT_SHIFT: u32 = 43;
/// The least σ as a power of two: a byte at the maximum weight.
pub(in crate::sched) const LEAST_SIGMA: u32 = UNIT_SHIFT - MOST_WEIGHT.ilog2();
/// Additional fraction bits of the virtual clock.
pub(in crate::sched) const CLOCK_SHIFT: u32 = 20;

/// Whether `a` comes after `b`. All instants in use lie within 2⁶³ units of each other.
#[inline]
pub(in crate::sched) const fn is_after(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

/// How far a byte moves the start of a flow: `2⁴³ / weight`, rounded up.
pub(in crate::sched) fn pace(weight: u32) -> u64 {
    (1_u64 << UNIT_SHIFT).div_ceil(weight.into())
}

/// log₂ of σ, the least power of two that is not below `longest` times the pace.
pub(in crate::sched) fn sigma(longest: u32, pace: u64) -> u32 {
    // longest ≤ 2^17, pace ≤ 2^43
    (u64::from(longest) * pace).next_power_of_two().ilog2()
}

/// Virtual time, the sum of weights by which it advances, and the longest packet.
#[derive(Debug)]
pub(in crate::sched) struct Clock {
    /// In multiples of 2⁻⁶³ bytes per weight. It begins after one wrap, so that earlier starts are positive.
    value: u128,
    /// `2⁶³ / sum`, rounded down: how far a byte moves the clock.
    pace: u64,
    /// The number of bytes that do not move the clock.
    held: u64,
    sum: u64,
    longest: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self { value: 1 << (64 + CLOCK_SHIFT), pace: 0, held: 0, sum: 0, longest: 0 }
    }
}

impl Clock {
    /// The present in units of 2⁻⁴³ bytes per weight, modulo 2⁶⁴.
    #[inline]
    pub(in crate::sched) const fn now(&self) -> u64 {
        self.present() as u64
    }

    /// Like [`Self::now`], without the modulus.
    #[inline]
    pub(in crate::sched) const fn present(&self) -> u128 {
        self.value >> CLOCK_SHIFT
    }

    /// How often the clock had wrapped at an instant close to the present.
    #[inline]
    pub(in crate::sched) const fn era(&self, instant: u64) -> u32 {
        let ahead = instant.wrapping_sub(self.now()) as i64;
        (self.present().wrapping_add_signed(ahead as i128) >> 64) as u32
    }

    /// The sum of weights.
    pub(in crate::sched) const fn sum(&self) -> u64 {
        self.sum
    }

    /// Sets the sum of weights.
    pub(in crate::sched) fn set_sum(&mut self, sum: u64) {
        self.sum = sum;
        // Nothing is sent while there is no flow.
        self.pace = (1 << (UNIT_SHIFT + CLOCK_SHIFT)) / sum.max(1);
    }

    /// The sum of weights with one weight removed and another added.
    ///
    /// # Errors
    /// If the added weight, or the sum, exceeds its limit.
    pub(in crate::sched) fn sum_with(&self, less: u32, more: Weight) -> Result<u64, Refused> {
        let found = self.sum - u64::from(less) + u64::from(more.get());
        if more.get() > MOST_WEIGHT {
            return Err(Refused::Weight { found: more.get().into(), most: MOST_WEIGHT.into() });
        }
        if found > MOST_SUM {
            return Err(Refused::Sum { found, most: MOST_SUM });
        }
        Ok(found)
    }

    /// Counts a flow that joins.
    ///
    /// # Errors
    /// If it exceeds a limit. Then nothing has changed.
    pub(in crate::sched) fn join(&mut self, flow: &FlowConfig) -> Result<(), Refused> {
        let sum = self.sum_with(0, flow.weight)?;
        if flow.longest > MOST_LENGTH {
            return Err(Refused::Longest { found: flow.longest.into(), most: MOST_LENGTH.into() });
        }
        self.set_sum(sum);
        self.lengthen(flow.longest);
        Ok(())
    }

    /// The longest packet of any flow so far.
    pub(in crate::sched) const fn longest(&self) -> u32 {
        self.longest
    }

    /// Raises the longest packet to this, if it is longer.
    pub(in crate::sched) fn lengthen(&mut self, longest: u32) {
        self.longest = self.longest.max(longest);
    }

    /// Advances the clock by this many bytes of service.
    #[inline]
    pub(in crate::sched) fn work(&mut self, length: u32) {
        let mut bytes = u64::from(length);
        if self.held > 0 {
            let held = self.held.min(bytes);
            self.held -= held;
            bytes -= held;
        }
        // bytes ≤ 2^17, pace ≤ 2^63
        self.value += u128::from(bytes) * u128::from(self.pace);
    }

    /// Jumps to an instant ahead.
    pub(in crate::sched) const fn jump(&mut self, to: u64) {
        let ahead = to.wrapping_sub(self.now());
        self.value = (self.present() + ahead as u128) << CLOCK_SHIFT;
        self.held = 0;
    }

    /// A flow's lead has been reduced by this many units of service, in bytes. If positive, the clock halts until the
    /// others have made up for that.
    pub(in crate::sched) const fn hold(&mut self, given: i128) {
        if given > 0 {
            self.held += (given as u128).div_ceil(1 << UNIT_SHIFT) as u64;
        }
    }

    /// Ends the halt. Nothing is backlogged that could make up for it.
    #[inline]
    pub(in crate::sched) const fn release(&mut self) {
        self.held = 0;
    }

    /// The number of bytes that will not move the clock.
    pub(in crate::sched) const fn held(&self) -> u64 {
        self.held
    }

    /// The most that a packet moves the clock.
    #[cfg(test)]
    pub(in crate::sched) const fn stride(&self) -> u64 {
        ((self.longest as u128 * self.pace as u128) >> CLOCK_SHIFT) as u64
    }
}
