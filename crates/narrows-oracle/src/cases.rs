//! The cases.

mod acks;
mod cake;
mod defaults;
mod dualpi2;
mod explanations;
mod fair;
mod filters;
mod hfsc;
mod managed;
mod netem;
mod parts;
mod schedulers;
mod shapers;
mod unresponsive;
mod words;

use crate::case::Case;

/// All of them.
pub fn all() -> Vec<Case> {
    [
        netem::cases(),
        shapers::cases(),
        hfsc::cases(),
        managed::cases(),
        schedulers::cases(),
        fair::cases(),
        dualpi2::cases(),
        unresponsive::cases(),
        cake::cases(),
        defaults::cases(),
        words::cases(),
        filters::cases(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model;
    use crate::traffic::{LONGEST, SHORTEST};

    #[test]
    fn names_tell_cases_apart() {
        let names: BTreeSet<&str> = all().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), all().len());
    }

    /// Every configuration is understood, and the engine gives back no more than it was given, but for NetEm's copies.
    #[test]
    fn cases_run_in_virtual_time() {
        for case in all() {
            assert!(case.traffic.is_sorted_by_key(|datagram| datagram.at), "{}", case.name);
            assert!(case.traffic.iter().all(|datagram| (SHORTEST..=LONGEST).contains(&datagram.length)));
            let sent: Vec<u64> = case.traffic.iter().map(|datagram| 5_000_000_000 + datagram.at).collect();
            let trace = model::run(&case, &sent).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert!(!trace.came.is_empty(), "{}", case.name);
            assert!(trace.came.iter().all(|came| came.at >= sent[came.number as usize]), "{}", case.name);
        }
    }
}
