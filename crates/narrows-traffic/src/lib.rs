//! Traffic sources: what a scenario itself sends through its network, in virtual time and beside real programs.
//!
//! [`Sources`] merges all sources in order of time: generated packets, captures, senders that respond to congestion,
//! and applications on TCP hosts or UDP. The driver of an engine asks for the instant of the next packet
//! ([`Sources::peek`]), hands the packet in at that instant ([`Sources::take`]), and reports what arrived
//! ([`Sources::arrive`]). A source has no clock: if it is asked late, it sends the same packets, as of the instants
//! at which they were due.

#![forbid(unsafe_code)]

mod aimd;
mod apps;
mod body;
mod capture;
mod error;
mod sources;
mod stations;
mod tcp;

pub use body::{Arrived, Body, Delivery, Frame};
pub use error::SourceError;
pub use sources::{Origin, SourceOptions, Sources, application_infos};
pub use tcp::ethernet_header;
