//! The engine of narrows. A caller hands packets in at ports, each with its arrival time; the engine returns
//! deliveries and drops, each with the time at which it happened.
//!
//! The engine reads no clock, file or socket, starts no thread and has no hidden source of randomness. Time
//! is an argument, and every random draw is keyed by the decision it is for. The same input log gives the
//! same events on every machine. [`Engine`] describes the call sequence: hand packets in, ask for the next
//! event, poll until nothing is due.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agenda;
mod bits;
mod class;
mod counters;
mod engine;
mod id;
mod known;
mod labels;
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
pub use id::{Element, LinkId, PortId, RouterId, RulesId, SwitchId};
pub use link::{
    AirTime, AirTimeError, BitErrors, Change, Corruption, DelayQueue, Exceed, FeedView, GateEntry,
    HeaderChange, Ingress, IngressFilter, Instance, InstanceCounts, Instances, LinkConfig, LinkSettings,
    LinkTemplate, LinkView, Loss, Mtu, MtuPolicy, NetemAround, NetemQueue, Order, Policer, PolicerConfig,
    PolicerCounts, Question, Reorder, SlotGap, Slots, Target, TimedGate, netem,
};
pub use network::{
    BuildError, Crossing, NetworkConfig, Parts, PipeConfig, PortConfig, PortCounters, Regions, Route,
    RouterConfig, RouterCounters, RulesChange, RulesConfig, RulesCounters, Spread, SwitchConfig,
    SwitchCounters, SwitchPort, Verdict, VlanSet,
};
pub use packet::{FlowKey, Fragment, Headers, LinkAddress, Packet, PacketId, Protocol, Quoted, TcpOptions};
pub use pool::{HeaderEdit, PacketList, PacketRef, PacketState, Passed, Pool};
pub use random::{Draw, Seed, Stream, port_origin};
pub use time::{Duration, Time};
pub use units::{Bytes, Probability, Rate};

/// The examples of the crate's page at a registry.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
