//! The weight of the newest delay.

use alloc::vec::Vec;

use crate::class::Gamma;

/// Weights are in units of 1/2³².
pub(super) const WHOLE: u64 = 1 << 32;

/// Weights are looked up for backlogs below this.
const LOOKED_UP: u32 = 512;

/// The weights by backlog, computed on first use.
#[derive(Debug, Default)]
pub(super) struct Gammas {
    classes: u32,
    by_backlog: Vec<u64>,
}

impl Gammas {
    /// Sets the number of classes.
    pub(super) fn set_classes(&mut self, classes: u32) {
        if self.classes != classes {
            self.classes = classes;
            self.by_backlog.clear();
        }
    }

    /// The weight with this many packets in the class, the departing one included.
    #[inline]
    pub(super) fn weight(&mut self, gamma: Gamma, packets: u32) -> u64 {
        match gamma {
            Gamma::Fixed(parts) => u64::from(parts.get()) << 22,
            Gamma::OfBacklog => match self.by_backlog.get(packets as usize) {
                Some(&known) => known,
                None => self.work_out(packets),
            },
        }
    }

    #[cold]
    fn work_out(&mut self, packets: u32) -> u64 {
        let classes = self.classes;
        let weight = |packets| weight_by_backlog(classes, packets);
        if self.by_backlog.is_empty() {
            self.by_backlog = (0..LOOKED_UP).map(weight).collect();
        }
        weight(packets)
    }
}

/// The weight γ of the newest delay, in units of 2⁻³², with [`Gamma::OfBacklog`], this many classes, and this many packets
/// in the class that sends, the departing one included.
pub fn weight_by_backlog(classes: u32, packets: u32) -> u64 {
    (of_backlog(packets) / u64::from(classes.max(1))).min(WHOLE)
}

/// The weight for one class. From two packets on, at most 2³²·1.03. For one packet it would be unbounded; the value
/// is enough for a division by 32 classes.
fn of_backlog(packets: u32) -> u64 {
    if packets < 2 {
        return WHOLE << 5;
    }
    let q = f64::from(packets);
    libm::round(WHOLE as f64 / (libm::sqrt(q) * libm::log(q))) as u64
}

#[cfg(test)]
mod tests {
    use core::f64::consts::LN_2;

    use super::*;
    use crate::class::Per1024;

    #[test]
    fn the_weight_by_the_backlog_is_that_of_the_formula_and_at_most_one() {
        let mut gammas = Gammas::default();
        for classes in [1u32, 2, 3, 32] {
            gammas.set_classes(classes);
            for packets in [0, 1] {
                assert_eq!(gammas.weight(Gamma::OfBacklog, packets), WHOLE);
            }
            for packets in [2, 3, 10, 511, 512, 100_000, u32::MAX] {
                let q = f64::from(packets);
                let formula =
                    (1.0 / (f64::from(classes) * libm::pow(q, 0.5) * libm::log2(q) * LN_2)).min(1.0);
                let found = gammas.weight(Gamma::OfBacklog, packets) as f64 / WHOLE as f64;
                assert!((found - formula).abs() < 1e-9, "{packets} of {classes}: {found}, {formula}");
            }
        }
        // By hand: 1 / (3·√9·ln 9) = 1 / 19.775.
        gammas.set_classes(3);
        let nine = gammas.weight(Gamma::OfBacklog, 9) as f64 / WHOLE as f64;
        assert!((nine - 0.050_568).abs() < 1e-5, "{nine}");
    }

    #[test]
    fn a_fixed_weight_is_exact() {
        let weight =
            |parts| Gammas::default().weight(Gamma::Fixed(Per1024::new(parts).expect("at most 1024")), 7);
        assert_eq!([0, 1, 512, 1024].map(weight), [0, WHOLE / 1024, WHOLE / 2, WHOLE]);
    }
}
