//! The delays of one class in one run.

/// Delays, the shortest first, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    nanos: Vec<u64>,
    dropped: u64,
}

/// As many steps of a distribution are drawn as can be told apart.
const STEPS: usize = 160;

impl Delays {
    /// Of delays in nanoseconds, in any order, and the number of packets that were dropped.
    pub fn new(mut nanos: Vec<u64>, dropped: u64) -> Self {
        nanos.sort_unstable();
        Self { nanos, dropped }
    }

    /// How many packets came through.
    pub fn packets(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// How many did not.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Which part was lost; nothing without packets.
    pub fn loss(&self) -> Option<f64> {
        let all = self.packets() + self.dropped;
        (all > 0).then(|| self.dropped as f64 / all as f64)
    }

    /// The delay that a share `q` of the packets had at most, in seconds: the least such one. Nothing without packets.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = libm::ceil(q * self.nanos.len() as f64) as usize;
        self.nanos.get(rank.saturating_sub(1)).map(|&nanos| nanos as f64 / 1e9)
    }

    /// The mean, in seconds.
    pub fn mean(&self) -> Option<f64> {
        let sum: u128 = self.nanos.iter().map(|&nanos| u128::from(nanos)).sum();
        (!self.nanos.is_empty()).then(|| sum as f64 / self.nanos.len() as f64 / 1e9)
    }

    /// Which share had so much at most: delays in seconds, rising.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let count = self.nanos.len();
        let steps = count.min(STEPS);
        let mut points: Vec<(f64, f64)> = (1..=steps).map(|step| self.point(count * step / steps)).collect();
        if let Some(&least) = self.nanos.first() {
            points.insert(0, (least as f64 / 1e9, 0.0));
        }
        points
    }

    /// Which share had more, for an axis of powers of ten: so that the last one in a thousand shows as well as the first half.
    pub fn tail(&self) -> Vec<(f64, f64)> {
        let count = self.nanos.len();
        // From 1 to one over the number of packets, in equal ratios.
        let smallest = 1.0 / count.max(2) as f64;
        let mut ranks: Vec<usize> = (0..=STEPS)
            .map(|step| {
                let share = libm::pow(smallest, step as f64 / STEPS as f64);
                count - libm::floor(share * count as f64) as usize
            })
            .collect();
        ranks.dedup();
        let above = |rank: usize| {
            let (delay, below) = self.point(rank.max(1));
            (delay, 1.0 - below)
        };
        ranks.into_iter().filter(|&rank| rank < count).map(above).collect()
    }

    fn point(&self, rank: usize) -> (f64, f64) {
        (self.nanos[rank - 1] as f64 / 1e9, rank as f64 / self.nanos.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_from_both_ends() {
        let delays = Delays::new((1..=1000).rev().map(|milli| milli * 1_000_000).collect(), 250);
        assert_eq!(delays.quantile(0.5), Some(0.5));
        assert_eq!(delays.quantile(0.999), Some(0.999));
        assert_eq!((delays.quantile(0.0), delays.quantile(1.0)), (Some(0.001), Some(1.0)));
        assert_eq!((delays.mean(), delays.loss()), (Some(0.5005), Some(0.2)));
        for (delay, share) in delays.distribution() {
            assert!((share - delay).abs() < 0.002, "{share} within {delay} s");
        }
        let tail = delays.tail();
        assert!(tail.len() > 40 && tail.iter().all(|(delay, share)| (share - (1.0 - delay)).abs() < 1e-9));
        // The last step is one packet of a thousand.
        assert!(tail.last().is_some_and(|&(delay, _)| delay > 0.99));
    }

    #[test]
    fn no_packets_have_no_delays() {
        let none = Delays::default();
        assert_eq!((none.quantile(0.5), none.mean(), none.loss()), (None, None, None));
        assert!(none.distribution().is_empty() && none.tail().is_empty());
    }
}
