//! The loss models of sch_netem, on its random numbers.

use super::arithmetic::Crandom;
use super::config::{Chance, Loss};

/// A loss model and its state.
#[derive(Debug)]
pub(super) struct Losses {
    model: Loss,
    crandom: Crandom,
    state: State,
}

/// The kernel's names: good and bad are the states of Gilbert and Elliott, the others those of the four-state
/// model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Also "good".
    ThroughGap,
    ThroughBurst,
    LostGap,
    LostBurst,
    Bad,
}

impl Losses {
    /// `last` is the initial value for the correlation.
    pub(super) fn new(model: Loss, last: u32) -> Self {
        let correlation = match model {
            Loss::Random(Chance { correlation, .. }) => correlation,
            _ => Chance::NEVER.correlation,
        };
        Self { model, crandom: Crandom::new(correlation, last), state: State::ThroughGap }
    }

    /// `loss_event`.
    pub(super) fn loses(&mut self, mut random: impl FnMut() -> u32) -> bool {
        match self.model {
            Loss::Random(Chance { share, .. }) => {
                share.raw() > 0 && share.raw() >= self.crandom.next(random())
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(|share| share.raw());
                let random = random();
                // Sums above 100 % wrap around, as in the kernel.
                self.state = match self.state {
                    State::ThroughGap if random < p14 => State::LostGap,
                    State::ThroughGap if random < p13.wrapping_add(p14) => State::LostBurst,
                    State::ThroughBurst if random < p23 => State::LostBurst,
                    State::LostBurst if random < p32 => State::ThroughBurst,
                    State::LostBurst if random < p31.wrapping_add(p32) => State::ThroughGap,
                    State::LostGap => State::ThroughGap,
                    stays => stays,
                };
                matches!(self.state, State::LostGap | State::LostBurst)
            }
            Loss::GilbertElliott { p, r, h, loss_in_good } => {
                let (moves, decides) = (random(), random());
                if self.state == State::Bad {
                    if moves < r.raw() {
                        self.state = State::ThroughGap;
                    }
                    decides > h.raw()
                } else {
                    if moves < p.raw() {
                        self.state = State::Bad;
                    }
                    decides < loss_in_good.raw()
                }
            }
        }
    }
}
