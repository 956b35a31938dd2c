//! Alternative best effort beside a single first-in first-out queue of the same packets on the same link: what blue and
//! green packets are promised, over millions of packets.

mod drive;
mod promises;
mod queue;
