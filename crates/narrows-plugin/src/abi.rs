//! The interface between narrows and a module: what it exports, version 1.
//!
//! Instants are nanoseconds since the start of the run. Flows are numbers from 0 on, given out again when a flow has left.
//! `next` is the length of the packet that is now the first of the flow, 0 where none waits; `packets` is how many wait.
//!
//! | function | required | called when |
//! |---|---|---|
//! | `abi_version() -> i32` | yes | the module is loaded; answers 1 |
//! | `parameter_NAME(value: i64) -> i32` | | the scenario gives the parameter NAME, before anything else; 0 accepts the value |
//! | `join(flow: i32, weight: i32, longest: i32, band: i32) -> i32` | | a flow is there, with nothing waiting; 0 accepts it |
//! | `leave(flow: i32)` | | a flow is gone, with nothing waiting |
//! | `set_weight(now: i64, flow: i32, weight: i32) -> i32` | | a flow has another weight; 0 accepts it |
//! | `set_rate(now: i64, bits_per_second: i64)` | | the transmitter is this fast from now on; −1 is without limit |
//! | `enqueue(now: i64, flow: i32, length: i32, packets: i32)` | yes | a packet has joined the end of the flow |
//! | `select(now: i64) -> i64` | yes | the transmitter is free |
//! | `sent(now: i64, flow: i32, length: i32, next: i32, packets: i32)` | yes | a packet of the chosen flow has gone |
//! | `dropped(now: i64, flow: i32, next: i32, packets: i32)` | yes | the first packets of the flow were dropped |
//!
//! `select` answers the number of a flow; or −1, nothing waits; or −1 − t, nothing may go before instant t.

/// The version of the interface.
pub const ABI: i32 = 1;

/// What begins the name of a function that takes a parameter.
pub const PARAMETER: &str = "parameter_";

/// The answer of `select` when nothing waits. What is below means: not before.
pub const EMPTY: i64 = -1;

/// The fuel of a call, unless something else is asked for: about so many instructions.
pub const FUEL: u64 = 100_000;
/// The most that can be asked for.
pub const MOST_FUEL: u64 = 1_000_000_000;
/// The most memory of a module, in bytes.
pub const MOST_MEMORY: usize = 16 << 20;
/// The longest module, in bytes.
pub const LONGEST_MODULE: usize = 4 << 20;
/// How often a module may put packets off in a row when the instant has come that it named itself.
pub const PUT_OFFS: u32 = 1000;
