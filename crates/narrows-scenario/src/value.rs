//! The values that a direction of a link is made of: one module for each kind, with what the file says (a plain value
//! that can be compared and printed back) and what it becomes in the engine.

mod delay;
mod loss;
mod mtu;
mod overhead;
mod queue;
mod reorder;

pub use delay::Delay;
pub use loss::Loss;
pub use queue::Queue;
pub use reorder::Reorder;

pub(crate) use delay::{ORDERS, read as read_delay};
pub(crate) use mtu::{read as read_mtu, text as mtu_text};
pub(crate) use overhead::{read as read_overhead, text as overhead_text, words as overhead_words};
