//! Modules as schedulers: right ones, wrong ones, and those that the examples are built into.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod examples;
mod failing;
mod loading;
mod support;
