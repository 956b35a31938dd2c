//! The single queue of Linux's sch_netem, to the bit, for those who must match it.
//!
//! Source: `net/sched/sch_netem.c` of Linux 6.1 (stable, up to 6.1.192), on a device that is always ready. A packet that
//! arrives is decided on in this order, each decision with its own random numbers of 32 bits:
//!
//! ```text
//! duplicate? → lose? (the two cancel each other) → corrupt? → full? → the duplicate enters, by itself but for duplication
//!            → reorder? then it leaves at once, before those that came before it
//!            → otherwise t = now + delay, or behind a rate max(now + delay, last) + length/rate; packets leave by t
//! ```
//!
//! What the double queue ([`LinkConfig`](crate::LinkConfig) without this) does otherwise, and this does as the kernel:
//! - The limit is one for all packets inside, those in flight included; what is on the wire and what waits is one.
//! - Behind a rate the delay is not added to the time on the wire but hidden in it: see the formula. A packet waits for the
//!   one that leaves last, also when that is far ahead of it only by its delay.
//! - Correlation is `x' = (x·(2³² − ρ) + last·ρ)/2³²` on uniform numbers, with ρ one more than what was asked for: it
//!   draws x' to the middle, so that a rare loss with a correlation becomes much rarer than asked.
//! - Of the correlation of delays next to nothing is left, because a delay goes by the remainder of the random number by the
//!   jitter or the length of the table.
//! - A probability is a multiple of 1/(2³² − 1), compared with "not less"; `dist` tables are looked up with a remainder, and
//!   a jitter without a table is uniform on [−jitter, jitter), jitter at most 2³¹ − 1 ns.
//! - A delay that comes out negative is a packet that leaves at once, before others that are due.
//! - A duplicate is made before the original is corrupted, and after its mark.
//! - Where there is room for one more, a packet and its duplicate both get in.
//! - Slots are asked for when somebody looks, which is at every arrival and whenever a packet may leave.
//! - The length is that of the frame with its link header, but for corruption, which hits bytes from the network header on:
//!   the one departure (the kernel hits the linear part of its buffer, which for most TCP segments is the headers only).
//!
//! The kernel takes its random numbers from one generator. Here each decision has a stream of its own, keyed by the packet,
//! the number of a slot, or a correlation, so that switching one on shifts no other.
//!
//! tc, too, has a fault that matters to who compares: it hands a correlation of duplication to the kernel only beside a
//! correlation of something else (iproute2 6.1 to this day).

mod arithmetic;
mod around;
mod child;
mod config;
mod loss;
mod queue;

pub use arithmetic::{Crandom, packet_nanos, table_delay};
pub use around::NetemAround;
pub use child::NetemQueue;
pub use config::{Chance, Loss, Netem, NoTable, Rate, Share, SlotGap, Slots, Table};
pub(super) use queue::SingleQueue;
