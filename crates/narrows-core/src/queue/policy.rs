//! Queue management of one FIFO: the seam, whose policies are in [`aqm`](crate::aqm).

use core::fmt;

use super::{Backlog, Context, Wire};
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketRef, PacketState};
use crate::time::Time;

/// A queue management policy, for one FIFO.
pub trait Aqm: fmt::Debug + Send {
    /// Judges a packet that arrives at `now`, before the queue's bound does; it is not among what waits.
    fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement;

    /// Judges the packet that would go to the transmitter at `now`; it is still among what waits. When it is dropped,
    /// the next one is judged at once, if there is one.
    fn depart(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement;

    /// What the queue feeds is now this. In a class of a scheduler, what all its classes share.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}
}

/// What waits in a queue before a call changes that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How much.
    pub backlog: Backlog,
    /// When the first of it, the one to be sent next, began to wait.
    pub oldest: Option<Time>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It goes on.
    Pass,
    /// It goes on with "congestion experienced". Only for packets that can be marked.
    Mark,
    /// It is dropped.
    Drop,
}

impl Judgement {
    /// Tells the sender of congestion: by a mark where `ecn` is in use and the packet can be marked, or else by a drop.
    pub const fn congestion(ecn: bool, packet: &PacketState) -> Self {
        if ecn && packet.key.ecn() != FlowKey::NOT_ECN_CAPABLE { Self::Mark } else { Self::Drop }
    }

    /// Marks or drops the packet as judged; whether it goes on.
    pub(crate) fn carry_out(self, packet: PacketRef, context: &mut Context<'_>) -> bool {
        match self {
            Self::Pass => true,
            Self::Mark => {
                let marked = context.mark(packet);
                debug_assert!(marked, "only what can be marked is judged so");
                true
            }
            Self::Drop => {
                context.drop(packet, DropReason::QueueManagement);
                false
            }
        }
    }
}
