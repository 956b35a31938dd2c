//! Runs unmodified programs and Linux's own stack in exact virtual time.
//!
//! User-mode Linux with time travel is a kernel in a process whose clock stands still while anything computes and
//! jumps to the next timer when everything is idle. This crate builds and stores such a *guest kernel* (`kernel`),
//! boots it as the calling user with the host's files visible but protected (`machine`), and sets it up from inside
//! by its first process (`init`). Inside it runs narrows unchanged: this crate knows nothing of links, engines or
//! scenarios. Not included: any model of a network, any shell.
//!
//! ```text
//! caller ── Machine::run ── supervisor (namespaces of its own) ──┬── guest kernel ── init ── the program
//!                                                            ├── clock: a socket, `controller`
//!                                                            └── serial line: `channel`
//! ```
#![forbid(unsafe_code)]

pub mod channel;
mod controller;
mod init;
pub mod kernel;
mod limits;
pub mod machine;
mod plan;
mod supervisor;

pub use init::init;
pub use supervisor::keep;
