//! The kernel's own queueing disciplines as oracles of narrows', packet by packet, in exact virtual time.
//!
//! A [`Case`](case::Case) says what the discipline is, in tc's words and in ours, and which datagrams are sent at which
//! instants. [`guest`] runs inside a guest kernel, where time stands still while anything computes: it sends them through
//! the kernel's discipline on a cable, and through `narrows run` on the same cables, and notes when each was sent and when
//! it came. [`model`] hands the very instants at which they were sent to the engine in virtual time. [`compare`] holds the
//! three beside one another, and [`table`] prints what came of it.
//!
//! This crate is for tests: the program knows nothing of it.
#![forbid(unsafe_code)]

pub mod case;
pub mod cases;
pub mod codel;
pub mod compare;
pub mod corpus;
pub mod folder;
pub mod guest;
pub mod model;
pub mod receiver;
pub mod segment;
pub mod sender;
pub mod statistics;
pub mod table;
pub mod trace;
pub mod traffic;
