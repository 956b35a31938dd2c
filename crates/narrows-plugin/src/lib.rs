//! Schedulers loaded at run time: WebAssembly modules that implement the interface of a
//! [`Scheduler`](narrows_core::sched::Scheduler).
//!
//! A module is parsed and compiled once ([`Module::new`]) and gets separate memory for each queue that it serves
//! ([`Module::scheduler`]). It imports nothing: no clock, no files, no randomness. Floating point is rejected because
//! the bits of a NaN result differ between machines. So the same calls give the same answers on any host. Each call
//! has a fuel limit, which bounds the number of instructions; memory is bounded, too.
//!
//! The interface is version [`ABI`]: [`abi`] defines the names and types of its functions, and
//! `docs/writing-a-scheduler.md` explains them.
//!
//! A module's answers are checked. A module that traps, runs out of fuel or selects a flow without packets has
//! failed: from then on its packets are served in order of arrival, none is lost, and the report says what happened
//! and when. The failure does not stop the run, because packets are in flight.

pub mod abi;
mod module;
mod scheduler;

pub use abi::ABI;
pub use module::{LoadError, Module, Parameters};
pub use scheduler::Loaded;
