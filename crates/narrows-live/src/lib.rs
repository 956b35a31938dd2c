//! Real time: a scenario on real packets between network namespaces.
//!
//! One plain thread drains packet sockets, hands packets to the engine with the instants at which the kernel took them
//! in, and sends what the engine releases; how late it was goes into the report. A thread of
//! its own reads each feed. What is absent: any model of a network
//! (that is the engine's), any unsafe code (that is `narrows-io`'s), any second clock.
#![forbid(unsafe_code)]

pub mod attach;
pub mod bridge;
pub mod cabling;
pub mod capture;
pub mod clock;
pub mod container;
pub mod control;
pub mod feeds;
pub mod local;
pub mod outside;
pub mod packet_loop;
pub mod probe;
pub mod recorder;
mod router;
pub mod run;
pub mod stage;
pub mod standing;
