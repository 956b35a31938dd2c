//! What each type of toxic does to the pieces of a stream.
//!
//! Source: the behaviour of Toxiproxy 2.12 (`docs/toxi.md` lists the departures).

mod bandwidth;
mod latency;
mod limit_data;
mod link;
mod reset_peer;
mod slicer;
mod slow_close;
mod timeout;

pub(crate) use bandwidth::Bandwidth;
pub(crate) use latency::Latency;
pub(crate) use limit_data::LimitData;
pub(crate) use link::{Link, LinkSettings};
pub(crate) use reset_peer::ResetPeer;
pub(crate) use slicer::Slicer;
pub(crate) use slow_close::SlowClose;
pub(crate) use timeout::Timeout;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use narrows_core::{Duration, Seed, Time};

use crate::piece::{End, Input, Item, Step};

/// A stage that missed its times, because its destination took nothing or the process had no CPU, catches up with
/// at most this much.
const MOST_CAUGHT_UP: Duration = Duration::from_millis(100);

/// The values of the attributes.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// In the order of the type's attributes; the others are 0.
    Numbers([i64; 3]),
    Link(Arc<LinkSettings>),
}

/// A toxic on one stream of one connection.
pub(crate) trait Toxic: Debug + Send {
    /// Takes pieces out of `input` and says what it does next.
    fn step(&mut self, now: Time, input: &mut Input) -> Step;

    /// How many pieces may wait before it.
    fn room(&self) -> usize {
        1
    }

    /// Bytes that it took out of its input and has not handed on.
    fn held(&self) -> usize {
        0
    }

    /// Takes over new settings, and returns whether it could. If not, it is replaced.
    fn adopt(&mut self, values: &Values, now: Time) -> bool {
        let (_, _) = (values, now);
        false
    }

    /// What it was about to hand on, because it is replaced now.
    fn release(&mut self, now: Time) -> Vec<Item> {
        let _ = now;
        Vec::new()
    }

    /// What is left of it when it is removed.
    fn remove(&mut self, now: Time) -> Removed {
        Removed { items: self.release(now), end: None }
    }
}

/// What remains of a removed toxic.
#[derive(Debug)]
pub(crate) struct Removed {
    /// What it held.
    pub(crate) items: Vec<Item>,
    /// Whether the stream ends by the removal.
    pub(crate) end: Option<End>,
}

/// The connection that a toxic belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) seed: Seed,
    pub(crate) proxy: Arc<str>,
    /// The number of the connection or UDP session, from 0, in order of arrival at the proxy.
    pub(crate) connection: u64,
    /// Sender and receiver of the datagrams of a UDP session, on this stream.
    pub(crate) datagrams: Option<[SocketAddr; 2]>,
}

impl Around {
    /// The name of a toxic in the keys of random draws: adding another one changes no draw of this one.
    pub(crate) fn element(&self, toxic: &str) -> String {
        format!("{}/{toxic}", self.proxy)
    }
}

/// An unaffected connection: everything passes.
#[derive(Debug)]
pub(crate) struct Noop;

impl Toxic for Noop {
    fn step(&mut self, _now: Time, input: &mut Input) -> Step {
        match input.pop() {
            Some(Item::Piece(piece)) => Step::Pass(piece),
            Some(Item::End(at, end)) => Step::End(at, end),
            None => Step::Wait(None),
        }
    }

    fn adopt(&mut self, _values: &Values, _now: Time) -> bool {
        true
    }
}

/// Milliseconds of the API.
fn milliseconds(value: i64) -> Duration {
    Duration::from_nanos(u64::try_from(value).unwrap_or(0).saturating_mul(1_000_000))
}

/// The later of two times.
fn later(one: Time, other: Time) -> Time {
    one.max(other)
}
