//! The server with real sockets: its API, and what its proxies do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod common;
mod proxies;
