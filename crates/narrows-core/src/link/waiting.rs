//! The queue of a link: any queue, a plain FIFO, or the single queue of sch_netem, which has more state than the trait
//! for queues exposes.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

use super::netem::SingleQueue;
use crate::pool::PacketRef;
use crate::queue::{Context, Dequeue, Fifo, Queue};
use crate::time::Time;

#[derive(Debug)]
pub(super) enum Waiting {
    Any(Box<dyn Queue>),
    /// Most links have this one. Stored in the link itself, its calls are not virtual and become part of the link's.
    Fifo(Fifo),
    Single(Box<SingleQueue>),
}

impl From<Box<dyn Queue>> for Waiting {
    fn from(mut queue: Box<dyn Queue>) -> Self {
        queue.take_fifo().map_or(Self::Any(queue), Self::Fifo)
    }
}

impl Waiting {
    /// Whether it is a FIFO in which nothing waits.
    #[inline(always)]
    pub(super) const fn is_empty_fifo(&self) -> bool {
        matches!(self, Self::Fifo(fifo) if fifo.is_empty())
    }

    #[inline(always)]
    pub(super) fn pass(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> Dequeue {
        match self {
            Self::Fifo(fifo) => fifo.pass(now, packet, context),
            Self::Any(queue) => queue.pass(now, packet, context),
            Self::Single(queue) => queue.pass(now, packet, context),
        }
    }

    #[inline(always)]
    pub(super) fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        match self {
            Self::Fifo(fifo) => fifo.dequeue(now, context),
            Self::Any(queue) => queue.dequeue(now, context),
            Self::Single(queue) => queue.dequeue(now, context),
        }
    }
}

impl Deref for Waiting {
    type Target = dyn Queue;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Any(queue) => &**queue,
            Self::Fifo(fifo) => fifo,
            Self::Single(queue) => &**queue,
        }
    }
}

impl DerefMut for Waiting {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Any(queue) => &mut **queue,
            Self::Fifo(fifo) => fifo,
            Self::Single(queue) => &mut **queue,
        }
    }
}
