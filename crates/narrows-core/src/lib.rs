//! The pure engine of narrows: packets go in at a port with the instant at which they arrived, and come out as
//! deliveries and drops with the instant at which they happened.
//!
//! Nothing here reads a clock, a file or a socket, starts a thread, or keeps a secret source of randomness: time is
//! an argument, and every random draw is keyed by what it decides. The same input log gives the same events on every
//! machine. See [`Engine`] for the grammar: hand in, ask for the next event, poll until nothing is due.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agenda;
mod bits;
mod class;
mod counters;
mod engine;
mod id;
mod link;
mod network;
mod packet;
mod place;
mod pool;
mod random;
mod time;
mod units;

pub mod aqm;
pub mod classify;
pub mod model;
pub mod queue;
pub mod rules;
pub mod sched;
pub mod service;
pub mod source;
pub mod steps;

pub use counters::{Counters, DropReason, Tally};
pub use engine::{Body, Engine, Event};
pub use id::{Element, LinkId, PortId, RouterId, RulesId};
pub use link::{
    AirTime, AirTimeError, BitErrors, Change, Corruption, Exceed, FeedView, Instance, InstanceCounts,
    Instances, LinkConfig, LinkSettings, LinkTemplate, LinkView, Loss, Mtu, MtuPolicy, NetemAround,
    NetemQueue, Order, Policer, PolicerConfig, PolicerCounts, Question, Reorder, SlotGap, Slots, Target,
    netem,
};
pub use network::{
    BuildError, NetworkConfig, Parts, PipeConfig, PortConfig, PortCounters, Route, RouterConfig,
    RouterCounters, RulesChange, RulesConfig, RulesCounters, Spread, Verdict,
};
pub use packet::{FlowKey, Fragment, Headers, Packet, PacketId, Protocol};
pub use pool::{PacketList, PacketRef, PacketState, Pool};
pub use random::{Draw, Seed, Stream};
pub use time::{Duration, Time};
pub use units::{Bytes, Probability, Rate};
