//! Delay-bounded hybrid proportional delay scheduling as it was published, and judged again: what the program `dbhpd` runs.

#![forbid(unsafe_code)]

pub mod chain;
pub mod delays;
pub mod figure_4_10;
pub mod mixes;
pub mod open_loop;
pub mod page;
mod parallel;
pub mod published;
pub mod scenarios;
pub mod setup;
pub mod tail;
