//! The interface between narrows and a module, version 1: the functions that a module exports.
//!
//! Instants are nanoseconds since the start of the run. Flows are numbered from 0; the number of a flow that has left
//! is reused. `next` is the length of the flow's new first packet, 0 if the flow is empty; `packets` is the flow's
//! backlog in packets.
//!
//! | function | required | called when |
//! |---|---|---|
//! | `abi_version() -> i32` | yes | the module is loaded; returns 1 |
//! | `parameter_NAME(value: i64) -> i32` | | the scenario sets the parameter NAME, before all other calls; 0 accepts the value |
//! | `join(flow: i32, weight: i32, longest: i32, band: i32) -> i32` | | a flow joins, with an empty queue; 0 accepts it |
//! | `leave(flow: i32)` | | a flow leaves, with an empty queue |
//! | `set_weight(now: i64, flow: i32, weight: i32) -> i32` | | a flow's weight changes; 0 accepts it |
//! | `set_rate(now: i64, bits_per_second: i64)` | | the transmitter's rate changes; −1 is unlimited |
//! | `enqueue(now: i64, flow: i32, length: i32, packets: i32)` | yes | a packet has been enqueued at the end of the flow |
//! | `select(now: i64) -> i64` | yes | the transmitter is free |
//! | `sent(now: i64, flow: i32, length: i32, next: i32, packets: i32)` | yes | a packet of the selected flow has been dequeued |
//! | `dropped(now: i64, flow: i32, next: i32, packets: i32)` | yes | the flow's first packets were dropped |
//!
//! `select` returns the number of a flow; −1 if no packet waits; or −1 − t if nothing may be sent before instant t.

/// The version of the interface.
pub const ABI: i32 = 1;

/// The prefix of functions that set a parameter.
pub const PARAMETER: &str = "parameter_";

/// The return value of `select` if no packet waits. Values below it mean "not before this instant".
pub const EMPTY: i64 = -1;

/// The default fuel of a call: about this many instructions.
pub const FUEL: u64 = 100_000;
/// The maximum fuel that can be configured.
pub const MOST_FUEL: u64 = 1_000_000_000;
/// The maximum memory of a module, in bytes.
pub const MOST_MEMORY: usize = 16 << 20;
/// The maximum size of a module, in bytes.
pub const LONGEST_MODULE: usize = 4 << 20;
/// How often in a row a module may defer packets again at the very instant that it named itself.
pub const PUT_OFFS: u32 = 1000;
