//! Whether a link can keep the guarantees of service curves.

use narrows_core::service::Work;
use narrows_core::{Duration, Rate};

use crate::value::{Scheduler, ShapedBy, Tree};

/// A time in which the real-time curves of an HFSC tree add up to more than the link can send.
///
/// Curves of two pieces stay below the link's line if they do so at the end of each first piece, and in the long run.
pub(super) fn beyond(scheduler: &Scheduler, rate: Rate) -> Option<String> {
    if [Rate::UNLIMITED, Rate::DOWN].contains(&rate) {
        return None;
    }
    let classes = scheduler.named();
    let tree = Tree::of(classes);
    let curves: Vec<_> = tree
        .leaves()
        .filter_map(|at| match classes[at].shape? {
            ShapedBy::Hfsc(class) => Some(class.rt()?.pieces()),
            _ => None,
        })
        .collect();
    let sum = curves.iter().map(|curve| curve.m2.bits_per_second()).fold(0, u64::saturating_add);
    if sum > rate.bits_per_second() {
        return Some(format!(
            "the guarantees of `hfsc` are {} in total, above the link's {rate}: not all can be kept",
            Rate::from_bits_per_second(sum)
        ));
    }
    let by = |end: Duration| -> u128 {
        let work = curves.iter().map(|curve| {
            Work::done(curve.m1, end.min(curve.d))
                .0
                .saturating_add(Work::done(curve.m2, end.saturating_sub(curve.d)).0)
        });
        work.fold(0, u128::saturating_add)
    };
    let is_beyond = |end: &Duration| by(*end) > Work::done(rate, *end).0;
    let end = curves.iter().map(|curve| curve.d).find(is_beyond)?;
    Some(format!(
        "the guarantees of `hfsc` are {} bytes within {end}, more than the link sends at {rate}: not all can be kept",
        by(end) / 8_000_000_000
    ))
}
