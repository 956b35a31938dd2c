//! The state of a shaper's classes, inner classes included.

use narrows_core::sched::{ClassState, Mode, ShapedState};
use narrows_core::{LinkView, Time};
use serde::{Deserialize, Serialize};

use crate::info::DirectionInfo;

/// A class of a shaper, inner or leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapedClassReport {
    /// Its name.
    pub name: String,
    /// Its depth: the number of classes above it.
    pub depth: usize,
    /// `may send` at its own rate, `may borrow` from a class above it, or `cannot send`.
    pub mode: String,
    /// Packets that it, or the classes below it, sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets sent within its own rate; for an inner class, those that it lent. With `hfsc`, by the real-time
    /// criterion.
    pub lent_packets: u64,
    /// Packets sent with rate borrowed from a class above it. With `hfsc`, by link sharing.
    pub borrowed_packets: u64,
    /// How often it had packets and was not allowed to send.
    pub over_limit: u64,
    /// The tokens left in its bucket, in nanoseconds at its rate; negative if overdrawn. With `cbq`, its average idle
    /// time.
    pub tokens_ns: i64,
    /// The tokens left for its ceiling or peak rate.
    pub ceil_tokens_ns: i64,
}

/// The classes of a link, in the order of the scenario; empty without a shaper.
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
