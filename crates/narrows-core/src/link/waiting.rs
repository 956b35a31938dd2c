//! The queue of a link: any queue, or the single queue of sch_netem, which has more state than the trait for
//! queues exposes.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

use super::netem::SingleQueue;
use crate::queue::Queue;

#[derive(Debug)]
pub(super) enum Waiting {
    Any(Box<dyn Queue>),
    Single(Box<SingleQueue>),
}

impl Deref for Waiting {
    type Target = dyn Queue;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Any(queue) => &**queue,
            Self::Single(queue) => &**queue,
        }
    }
}

impl DerefMut for Waiting {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Any(queue) => &mut **queue,
            Self::Single(queue) => &mut **queue,
        }
    }
}
