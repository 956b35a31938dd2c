//! Schedulers that are loaded at run time: WebAssembly modules that do what a
//! [`Scheduler`](narrows_core::sched::Scheduler) does.
//!
//! A module is read and compiled once ([`Module::new`]) and has a memory of its own in each queue that it serves
//! ([`Module::scheduler`]). It imports nothing: no clock, no file, no randomness. Floating point is refused, since bits of
//! a result that is no number differ between machines. So the same calls have the same answers on any host. Each call
//! has so much fuel, which bounds the instructions it takes, and the memory is bounded.
//!
//! The interface is version [`ABI`]: the names and types of functions in [`abi`]. `docs/writing-a-scheduler.md` explains
//! them.
//!
//! What a module answers is checked. One that traps, runs out of fuel or chooses a flow that has no packet has failed: its
//! packets go in order of arrival from then on, none is lost, and the report says what happened and when. Nobody waits
//! for it, because packets are on their way.

pub mod abi;
mod module;
mod scheduler;

pub use abi::ABI;
pub use module::{LoadError, Module, Parameters};
pub use scheduler::Loaded;
