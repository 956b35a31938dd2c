//! The single queue of Linux's sch_netem, bit-exact, for comparisons with the kernel.
//!
//! Source: `net/sched/sch_netem.c` of Linux 7.3, 7.2.12, 6.12.117 and 6.1.192, which decide alike, on a device that is always ready; for
//! the [generations](Generation) before, of 5.10.13, of 6.12 before and after the fix of December 2024, and of 6.18 of early 2026.
//! Decisions on an arriving packet are made in this order, each with its own 32-bit random numbers:
//!
//! ```text
//! duplicate? → lose? (the two cancel each other) → corrupt? → full? → the duplicate enters, by itself but for duplication
//!            → reorder? then it leaves at once, before those that came before it
//!            → otherwise t = now + delay, or behind a rate max(now + delay, last) + length/rate; packets leave by t
//! ```
//!
//! Differences from the double queue ([`LinkConfig`](crate::LinkConfig) without this); here all is as in the
//! kernel:
//! - One limit applies to all packets inside, including those in flight. Transmission and waiting are not
//!   separate.
//! - With a rate, the delay is not added to the transmission time but overlaps with it: see the formula. A
//!   packet waits for the packet that leaves last, even if that one is far ahead only because of its delay.
//! - Correlation is `x' = (x·(2³² − ρ) + last·ρ)/2³²` on uniform numbers, with ρ one more than requested. It
//!   pulls x' to the middle, so a rare loss with a correlation becomes much rarer than requested.
//! - A correlation of delays has almost no effect, because the delay depends on the random number modulo the
//!   jitter or the length of the table.
//! - A probability is a multiple of 1/(2³² − 1), and an event happens if its probability is `>=` the random
//!   number; `dist` tables are indexed with a remainder; a jitter without a table is uniform on [−jitter,
//!   jitter), with jitter at most 2³¹ − 1 ns.
//! - A packet whose delay comes out negative leaves at once, before others that are due.
//! - A duplicate is made after the original may have been marked, and before it is corrupted.
//! - If there is room for one more packet, a packet and its duplicate both enter (since 6.11).
//! - Slots are scheduled when the queue is polled: at every arrival and whenever a packet may leave.
//! - Lengths are those of the frame with its link header, except for corruption, which hits bytes from the
//!   network header on. This is the one departure: the kernel hits any byte of the frame, and before 7.3 only
//!   the linear part of its buffer, which for most TCP segments is only the headers.
//!
//! The kernel takes its random numbers from one generator. Here each decision has a stream of its own, keyed
//! by the packet, the number of a slot, or a correlation, so enabling one changes no other.
//!
//! For comparisons, note a bug in tc: it passes a correlation of duplication to the kernel only together with
//! a correlation of something else (iproute2 6.1 to this day).

mod arithmetic;
mod around;
mod child;
mod config;
mod loss;
mod queue;

pub use arithmetic::{Crandom, packet_nanos, table_delay};
pub use around::NetemAround;
pub use child::NetemQueue;
pub use config::{Chance, Generation, Loss, Netem, NoTable, Rate, Share, SlotGap, Slots, Table};
pub(super) use queue::SingleQueue;
