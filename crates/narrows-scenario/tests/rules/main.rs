//! Links with rules: from the file to the engine, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod batch;
mod bed;
mod changes;
mod commands;
mod examples;
mod file;
mod headers;
mod late_polls;
