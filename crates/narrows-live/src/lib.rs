//! Real time: applies a scenario to real packets between network namespaces.
//!
//! Packet threads drain packet sockets, hand packets to the engine with the kernel's receive timestamps, and send
//! what the engine releases; the report says how late they were. A [director](director::Director) does everything
//! else: the control socket, changes, reports, the program's exit. Each feed is read by a thread of its own. Not
//! included: any model of a network (the engine's task), unsafe code (in `narrows-io`), a second clock.
#![forbid(unsafe_code)]

pub mod agent;
pub mod attach;
pub mod block;
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
mod gateway;
pub mod group;
mod in_kernel;
pub mod inline;
mod inline_error;
pub mod load;
mod names;
pub mod nat_uplink;
pub mod neighbor_proxy;
pub mod packet_records;
pub mod probe;
pub mod recorder;
mod renumber;
pub mod route;
mod router;
pub mod run;
mod run_error;
pub mod run_name;
pub mod run_record;
mod seen;
pub mod series;
pub mod service_output;
pub mod services;
mod sniffer;
pub mod stay;
pub mod testbed;
pub mod tunnels;
pub mod underlay;
mod visitors;
