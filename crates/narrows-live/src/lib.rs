//! Real time: a scenario on real packets between network namespaces.
//!
//! Packet threads drain packet sockets, hand packets to the engine with the instants at which the kernel took them
//! in, and send what the engine releases; how late they were goes into the report. A [director](director::Director) does
//! everything else: the control socket, changes, reports, the program's end. A thread of its own reads each feed. What is absent: any model of a network
//! (that is the engine's), any unsafe code (that is `narrows-io`'s), any second clock.
#![forbid(unsafe_code)]

pub mod attach;
pub mod bridge;
pub mod cabling;
pub mod capture;
pub mod clock;
pub mod container;
pub mod control;
mod data;
pub mod director;
mod dns;
mod entrance;
pub mod exec;
pub mod feeds;
pub mod inline;
mod inline_error;
pub mod load;
mod names;
pub mod nat_uplink;
pub mod neighbor_proxy;
pub mod probe;
pub mod recorder;
mod renumber;
mod router;
pub mod run;
mod run_error;
pub mod run_name;
pub mod run_record;
pub mod series;
pub mod service_output;
pub mod services;
pub mod stay;
pub mod testbed;
mod visitors;
