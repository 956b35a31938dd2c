//! The tins of CAKE as classes.

use narrows_core::Rate;
use narrows_core::sched::CakeConfig;

use super::cake::{Cake, tin_name};
use super::{Class, Scheduler};
use crate::value::condition::Match;

impl Scheduler {
    /// Whether it is CAKE with a rate of its own.
    pub(super) fn is_shaping_cake(&self) -> bool {
        self.own.get::<Cake>().is_some_and(|cake| cake.config.bandwidth != Rate::UNLIMITED)
    }

    /// The tins of CAKE, in the order of the engine's numbers.
    pub(super) fn tins(&self) -> Vec<Class> {
        let Some(Cake { config: CakeConfig { tins, .. }, .. }) = self.own.get::<Cake>() else {
            return Vec::new();
        };
        let class = |tin: usize| {
            let dscps: Vec<u8> = (0..64).filter(|&dscp| tins.tin(dscp) == tin).collect();
            // The tin of unknown code points is described as the rest.
            let usual = tins.tin(UNKNOWN) == tin;
            let matches = if usual { Vec::new() } else { vec![Match { dscps, ..Match::default() }] };
            Class { name: tin_name(*tins, tin), matches, ..Class::all() }
        };
        (0..tins.tins()).map(class).collect()
    }
}

/// A code point that nobody has assigned.
const UNKNOWN: u8 = 3;
