//! Unmodified programs and Linux's own stack in exact virtual time.
//!
//! User-mode Linux with time travel is a kernel in a process whose clock stands still while anything computes and jumps
//! to the next timer when all is idle. Here such a *guest kernel* is built and kept (`kernel`), booted as the calling
//! user with the host's files visible but protected (`machine`), and set up from within by its first process (`init`).
//! What runs inside is narrows as it is: a guest knows nothing of links, engines or scenarios. What is absent: any model of
//! a network, any shell.
//!
//! ```text
//! caller ── Machine::run ── supervisor (namespaces of its own) ──┬── guest kernel ── init ── the program
//!                                                            ├── clock: a socket, `controller`
//!                                                            └── serial line: `channel`
//! ```
#![forbid(unsafe_code)]

mod channel;
mod controller;
mod init;
pub mod kernel;
mod limits;
pub mod machine;
mod plan;
mod supervisor;

pub use init::init;
pub use supervisor::keep;
