//! Where the classes of a shaper stand, those with others below them included.

use narrows_core::sched::{ClassState, Mode, ShapedState};
use narrows_core::{LinkView, Time};
use serde::{Deserialize, Serialize};

use crate::info::DirectionInfo;

/// A class of a shaper, with others below it or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapedClassReport {
    /// Its name.
    pub name: String,
    /// How many classes are above it.
    pub depth: usize,
    /// `may send` by its own rate, `may borrow` of a class above it, or `cannot send`.
    pub mode: String,
    /// Packets that it, or the classes below it, sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets within its own rate; of a class with others below it those that it lent.
    pub lent_packets: u64,
    /// Packets by what a class above it lent.
    pub borrowed_packets: u64,
    /// How often it wanted to send and might not.
    pub over_limit: u64,
    /// What is left of its burst, in nanoseconds of its rate; below zero it owes. With `cbq` the average of its idle time.
    pub tokens_ns: i64,
    /// The same of its ceiling or peak rate.
    pub ceil_tokens_ns: i64,
}

/// Those of a link, in the order of the scenario; none without a shaper.
pub(crate) fn classes(asked: &DirectionInfo, view: &LinkView<'_>, now: Time) -> Vec<ShapedClassReport> {
    if asked.tree.is_empty() || view.instance_counts().is_some() {
        return Vec::new();
    }
    let one = |((name, depth), state): (&(String, usize), ClassState)| match state {
        ClassState::Shaped(state) => Some(of(name, *depth, state)),
        _ => None,
    };
    asked.tree.iter().zip(view.class_states(now)).filter_map(one).collect()
}

fn of(name: &str, depth: usize, state: ShapedState) -> ShapedClassReport {
    let mode = match state.mode {
        Mode::MaySend => "may send",
        Mode::MayBorrow => "may borrow",
        Mode::CannotSend => "cannot send",
    };
    ShapedClassReport {
        name: name.into(),
        depth,
        mode: mode.into(),
        sent_packets: state.sent.packets,
        sent_bytes: state.sent.bytes,
        lent_packets: state.lent,
        borrowed_packets: state.borrowed,
        over_limit: state.over_limit,
        tokens_ns: state.tokens,
        ceil_tokens_ns: state.ceil_tokens,
    }
}
