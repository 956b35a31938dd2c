//! The loss models of sch_netem, on its random numbers.

use super::arithmetic::Crandom;
use super::config::{Chance, Generation, Loss};

/// A loss model and its state.
#[derive(Debug)]
pub(super) struct Losses {
    model: Loss,
    /// Whether a draw that equals a bound is above it. Before, it was neither below nor above.
    answers_ties: bool,
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
    pub(super) fn new(model: Loss, last: u32, generation: Generation) -> Self {
        let correlation = match model {
            Loss::Random(Chance { correlation, .. }) => correlation,
            _ => Chance::NEVER.correlation,
        };
        let answers_ties = generation >= Generation::Linux7_1;
        Self { model, answers_ties, crandom: Crandom::new(correlation, last), state: State::ThroughGap }
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
                let (in_gap, in_burst) = (p13.wrapping_add(p14), p31.wrapping_add(p32));
                let reaches = |bound| bound < random || self.answers_ties;
                let lost;
                (self.state, lost) = match self.state {
                    State::ThroughGap if random < p14 => (State::LostGap, true),
                    State::ThroughGap if reaches(p14) && random < in_gap => (State::LostBurst, true),
                    State::ThroughBurst if random < p23 => (State::LostBurst, true),
                    State::LostBurst if random < p32 => (State::ThroughBurst, false),
                    State::LostBurst if reaches(p32) && random < in_burst => (State::ThroughGap, false),
                    State::LostBurst => (State::LostBurst, reaches(in_burst)),
                    State::LostGap => (State::ThroughGap, false),
                    stays => (stays, false),
                };
                lost
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

#[cfg(test)]
mod tests {
    use super::super::config::Share;
    use super::*;

    /// Whether packets are lost that draw these numbers.
    fn fates(generation: Generation, draws: &[u32]) -> alloc::vec::Vec<bool> {
        let [p13, p31, p32, p23, p14] = [100, 200, 300, 400, 50].map(Share::from_raw);
        let mut losses = Losses::new(Loss::States { p13, p31, p32, p23, p14 }, 0, generation);
        draws.iter().map(|draw| losses.loses(|| *draw)).collect()
    }

    /// In the gap p14 = 50 and p13 + p14 = 150 are bounds, in the burst p32 = 300 and p31 + p32 = 500.
    #[test]
    fn a_draw_at_a_bound_changed_nothing_before_7_1() {
        let old = |draws: &[u32]| fates(Generation::Linux6_13, draws);
        let new = |draws: &[u32]| fates(Generation::Linux7_1, draws);
        assert_eq!((old(&[50]), new(&[50])), (alloc::vec![false], alloc::vec![true]));
        assert_eq!(
            (old(&[150, 149]), new(&[150, 149])),
            (alloc::vec![false, true], alloc::vec![false, true])
        );
        // In the burst after 149: a tie loses nothing, but the burst goes on.
        assert_eq!(old(&[149, 500, 600]), [true, false, true]);
        assert_eq!(new(&[149, 500, 600]), [true, true, true]);
        assert_eq!(old(&[149, 300, 600]), [true, false, true]);
        // 150 is no bound in the burst.
        assert_eq!(old(&[149, 501]), [true, true]);
        assert_eq!(new(&[149, 300, 600]), [true, false, false]);
    }
}
