//! The published arithmetic of the delay-bounded hybrid proportional delay scheduler (O.-P. Lamminen, 2007, section 4.4
//! and appendix A), with each of its faults switchable. It is for the lab, which asks what the faults do; the product's
//! scheduler is [`Hpd`](narrows_core::sched::Hpd).
//!
//! The listing does this. Each class is a FIFO and keeps the arrival instants of its packets. When the transmitter is free
//! the classes that have packets are looked at from the last to the first. The first one met whose head has waited for
//! longer than its limit goes at once. Else each class gets
//!
//! ```text
//! tentative = γ·w + (1024 − γ)·d̄            w: the head's wait, d̄: the class's average delay so far
//! h         = (g·tentative + (1024 − g)·w)/δ
//! ```
//!
//! and the last one looked at with the greatest h goes. Its tentative average then is its average; with EWMA-r that of its
//! first departures is a mean of sums.
//!
//! # The faults
//! | switch | what the listing does | what the equations say |
//! |---|---|---|
//! | [`Average::NeverDivided`] | the tentative average is 1024 times too large, and is kept so: it grows with every departure until it wraps in 64 bits | is divided by 1024 |
//! | [`Average::Kept1024`] | (not printed; what may have run) the average is kept times 1024, and the head's wait beside it is not | one unit for both |
//! | `remainder` | `do_div` is taken for its quotient, but gives the remainder, and puts the quotient in the place of the sum | the mean is the quotient, the sum stays |
//! | `idle_of_whole` | a class begins to be idle when the whole scheduler gets empty by its departure | when the class gets empty |
//! | `tentative` | classes are compared by averages that have the head's wait in them already | by those of departed packets |
//! | [`Steps`] | two different pairs of loops look for EWMA-pe's n, by the tentative average | n grows with the proportional error |
//! | `bound_forgets` | a class served for its limit adds no delay to its sum, and EWMA-pe has n = 1 | each departure counts |
//! | [`Word::Bits32`] | (the kernel's, on the processor that ran it) `do_div` divides the low 32 bits only, and products of 32-bit values have 32 bits | numbers are what they are |
//!
//! The last one is no fault of the listing. Linux 2.4 for PowerPC with 32 bits, which the thesis's router had, defines
//! `do_div` through `unsigned long`, and so drops the upper half of what is divided; 2.5 mended that.
//!
//! # The clock
//! The listing says `PSCHED_GET_TIME`, and Linux 2.4 has three sources for that. One, a counter of the processor, it has not
//! on PowerPC. With `gettimeofday` a tick is a microsecond ([`Clock::Microseconds`]); the waits of 120, 13 and 68 that the
//! thesis prints can only be of that kind. But the kernel comes with jiffies, 2¹³ ticks at once every 10 ms
//! ([`Clock::Jiffies`]), and the file in which that is chosen is not among those that the thesis says it changed. (Its remark
//! that the kernel counts nanoseconds goes with neither.) With `gettimeofday` a difference of three seconds and more reads
//! two seconds; no queue here gets to that, and the idle times that do are beyond any cycle in both readings.

mod arithmetic;

use std::collections::VecDeque;

use narrows_core::sched::{ClassState, DelayState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use narrows_core::{Duration, Time};

use arithmetic::Arithmetic;

/// A class, as the listing's parameters have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedClass {
    /// The delay differentiation parameter δ, at least 1.
    pub ddp: u32,
    /// How much the newest delay counts, in 1024ths.
    pub gamma: u32,
    /// How much the average counts beside the head's wait, in 1024ths.
    pub g: u32,
    /// The longest wait; none for zero.
    pub limit: Duration,
    /// How the average is made.
    pub estimator: PublishedEstimator,
}

/// How an average is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedEstimator {
    /// EWMA.
    Ewma,
    /// EWMA with restart.
    Restart {
        /// After so many departures the mean gives way to EWMA.
        threshold: u32,
        /// A class that was idle for longer begins anew.
        cycle: Duration,
    },
    /// EWMA by proportional error.
    ProportionalError {
        /// So many steps of an eighth.
        steps: u32,
    },
}

/// What becomes of the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Average {
    /// As the equations have it, with 20 bits behind the point.
    #[default]
    Sound,
    /// As printed.
    NeverDivided,
    /// Times 1024, beside a wait that is not.
    Kept1024,
}

/// How EWMA-pe looks for n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// n is the least number of eighths that the error stays within, and one more than there are steps beyond the last.
    #[default]
    Equations,
    /// As the text prints it (equation 4.2).
    Text,
    /// As the appendix prints it.
    Appendix,
}

/// What the waits are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds, as the product does.
    Nanoseconds,
    /// Microseconds: Linux 2.4 with `gettimeofday`.
    #[default]
    Microseconds,
    /// 8192 ticks every 10 ms: Linux 2.4 as it comes, at a hundred jiffies a second. Limits and cycles are taken for ticks.
    Jiffies,
}

/// How wide the machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Word {
    /// 64 bits, or a `do_div` that works.
    #[default]
    Bits64,
    /// 32 bits with that kernel's `do_div`.
    Bits32,
}

/// Which faults are in. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What becomes of the average.
    pub average: Average,
    /// The remainder is taken for the quotient.
    pub remainder: bool,
    /// Idleness is the whole scheduler's.
    pub idle_of_whole: bool,
    /// Classes are compared by tentative averages.
    pub tentative: bool,
    /// How EWMA-pe looks for n.
    pub steps: Steps,
    /// A departure for the limit is not counted.
    pub bound_forgets: bool,
    /// How wide the machine is.
    pub word: Word,
}

impl Faults {
    /// The listing of the appendix, on a machine where `do_div` works.
    pub const PRINTED: Self = Self {
        average: Average::NeverDivided,
        remainder: true,
        idle_of_whole: true,
        tentative: true,
        steps: Steps::Appendix,
        bound_forgets: true,
        word: Word::Bits64,
    };

    /// The same on the thesis's processor and kernel.
    pub const PRINTED_32: Self = Self { word: Word::Bits32, ..Self::PRINTED };
}

/// The scheduler. Its classes are the flows, in the order in which they were given.
#[derive(Clone, Debug)]
pub struct Published {
    arithmetic: Arithmetic,
    faults: Faults,
    classes: Vec<PublishedClass>,
    states: Vec<State>,
    joined: usize,
    /// What the last `select` found, for the `sent` that follows.
    chosen: Option<Chosen>,
}

/// What the listing keeps of a class.
#[derive(Clone, Debug, Default)]
struct State {
    /// When its packets came, in ticks, the first one first.
    arrivals: VecDeque<u64>,
    average: u64,
    sum: u64,
    samples: u32,
    idle: u64,
    over_limit: u64,
}

/// A class that is to send, and what is kept when it has.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    class: usize,
    /// Its average from then on, but for EWMA-r's first departures.
    average: u64,
    /// What those add to the sum.
    noted: u64,
    for_limit: bool,
}

impl Published {
    /// A scheduler of these classes.
    pub fn new(classes: Vec<PublishedClass>, faults: Faults, clock: Clock) -> Self {
        let states = classes.iter().map(|_| State::default()).collect();
        let arithmetic = Arithmetic::new(faults, clock);
        Self { arithmetic, faults, classes, states, joined: 0, chosen: None }
    }

    /// The averages as they are kept, class by class: what the thesis's statistics print.
    pub fn kept(&self) -> impl Iterator<Item = u64> + '_ {
        self.states.iter().map(|state| state.average)
    }

    /// The walk of the listing: from the last class to the first.
    fn choose(&self, now: u64) -> Option<Chosen> {
        let mut best: Option<(u128, Chosen)> = None;
        let mut noted = 0;
        for (number, (class, state)) in self.classes.iter().zip(&self.states).enumerate().rev() {
            let Some(&arrival) = state.arrivals.front() else { continue };
            let wait = now - arrival;
            if class.limit > Duration::ZERO && wait > self.arithmetic.ticks(class.limit) {
                let (average, noted) = if self.faults.bound_forgets {
                    (self.arithmetic.ewma(class, state.average, wait), noted)
                } else {
                    (self.arithmetic.estimate(class, state.average, wait), wait)
                };
                return Some(Chosen { class: number, average, noted, for_limit: true });
            }
            let average = self.arithmetic.estimate(class, state.average, wait);
            let compared = if self.faults.tentative { average } else { state.average };
            let hybrid = self.arithmetic.hybrid(class, compared, wait);
            if best.is_none_or(|(most, _)| hybrid >= most) {
                if let PublishedEstimator::Restart { .. } = class.estimator {
                    noted = wait;
                }
                best = Some((hybrid, Chosen { class: number, average, noted, for_limit: false }));
            }
        }
        best.map(|(_, chosen)| chosen)
    }

    fn count_departure(&mut self, now: u64, chosen: Chosen, all_empty: bool) {
        let Chosen { class, average, noted, for_limit } = chosen;
        let state = &mut self.states[class];
        state.over_limit += u64::from(for_limit);
        state.average = average;
        if let PublishedEstimator::Restart { threshold, .. } = self.classes[class].estimator {
            if state.samples < threshold {
                state.samples += 1;
                state.sum = state.sum.wrapping_add(noted);
                let (mean, sum) = self.arithmetic.mean(state.sum, state.samples);
                (state.average, state.sum) = (mean, sum);
            }
            let idle = if self.faults.idle_of_whole { all_empty } else { state.arrivals.is_empty() };
            if idle {
                state.idle = now;
            }
        }
    }
}

impl Scheduler for Published {
    type Flow = ();

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        if self.joined == self.classes.len() {
            return Err(Refused::Flows { most: self.classes.len() as u64 });
        }
        self.joined += 1;
        Ok(())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn enqueue(&mut self, now: Time, flow: FlowId, _flows: &mut Flows<()>) {
        let now = self.arithmetic.instant(now);
        let class = flow.number() as usize;
        let state = &mut self.states[class];
        if let PublishedEstimator::Restart { cycle, .. } = self.classes[class].estimator
            && state.arrivals.is_empty()
            && now.saturating_sub(state.idle) > self.arithmetic.ticks(cycle)
        {
            (state.average, state.sum, state.samples) = (0, 0, 0);
        }
        state.arrivals.push_back(now);
        self.chosen = None;
    }

    fn select(&mut self, now: Time, _flows: &mut Flows<()>) -> Selection {
        self.chosen = self.choose(self.arithmetic.instant(now));
        match self.chosen {
            Some(chosen) => Selection::Flow(FlowId::new(chosen.class as u32)),
            None => Selection::Empty,
        }
    }

    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<()>) {
        let chosen = self.chosen.take().expect("a packet that is sent was selected");
        let arrivals = &mut self.states[flow.number() as usize].arrivals;
        while arrivals.len() > flows.packets(flow) as usize {
            arrivals.pop_front();
        }
        self.count_departure(self.arithmetic.instant(now), chosen, flows.waiting() == 0);
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<()>) {
        let arrivals = &mut self.states[flow.number() as usize].arrivals;
        while arrivals.len() > flows.packets(flow) as usize {
            arrivals.pop_front();
        }
        self.chosen = None;
    }

    fn states(&self, now: Time, _flows: &Flows<()>) -> Vec<ClassState> {
        let now = self.arithmetic.instant(now);
        let tell = |state: &State| {
            let hold = state.arrivals.front().map_or(0, |arrival| now - arrival);
            ClassState::Delay(DelayState {
                hold: self.arithmetic.duration(hold),
                average: self.arithmetic.shown(state.average),
                over_limit: state.over_limit,
            })
        };
        self.states.iter().map(tell).collect()
    }
}

#[cfg(test)]
mod tests;
