//! Any Markov chain whose states lose packets with probabilities of their own: the slow model. Shares by iteration, lengths
//! of runs by going through them packet by packet.

/// A chain of `N` states.
pub(crate) struct Chain<const N: usize> {
    /// From row to column.
    pub(crate) moves: [[f64; N]; N],
    /// The probability of loss in each state.
    pub(crate) loses: [f64; N],
}

impl<const N: usize> Chain<N> {
    fn step(&self, shares: [f64; N]) -> [f64; N] {
        std::array::from_fn(|to| (0..N).map(|from| shares[from] * self.moves[from][to]).sum())
    }

    /// The share of each state in the long run, counted from the first.
    pub(crate) fn shares(&self) -> [f64; N] {
        let mut shares = std::array::from_fn(|state| if state == 0 { 1.0 } else { 0.0 });
        for _ in 0..20_000 {
            let next = self.step(shares);
            // Half a step at a time, so that no chain goes round in circles.
            shares = std::array::from_fn(|state| (shares[state] + next[state]) / 2.0);
        }
        shares
    }

    fn fate(&self, state: usize, lost: bool) -> f64 {
        if lost { self.loses[state] } else { 1.0 - self.loses[state] }
    }

    /// The share lost.
    pub(crate) fn rate(&self) -> f64 {
        let shares = self.shares();
        (0..N).map(|state| shares[state] * self.loses[state]).sum()
    }

    /// The probability of each length of a run of lost (or not lost) packets, up to `most`.
    pub(crate) fn runs(&self, lost: bool, most: usize) -> Vec<f64> {
        // The states in which the packet after one of the other fate finds the chain, if it begins a run.
        let shares = self.shares();
        let other = self.step(std::array::from_fn(|state| shares[state] * self.fate(state, !lost)));
        let mut on: [f64; N] = std::array::from_fn(|state| other[state] * self.fate(state, lost));
        let begins: f64 = on.iter().sum();
        let mut lengths = Vec::new();
        for _ in 0..most {
            let next = self.step(on);
            lengths.push((0..N).map(|state| next[state] * self.fate(state, !lost)).sum::<f64>() / begins);
            on = std::array::from_fn(|state| next[state] * self.fate(state, lost));
        }
        lengths
    }
}
