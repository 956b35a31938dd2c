//! Queue management of one FIFO: the trait. The policies are in [`aqm`](crate::aqm).

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

use super::{Backlog, Context, Wire};
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketRef, PacketState};
use crate::time::Time;

/// A queue management policy for one FIFO.
pub trait Aqm: fmt::Debug + Send {
    /// Judges a packet that arrives at `now`, before the queue's bound does. The packet is not counted in `waiting`.
    fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement;

    /// Judges the packet at the head of the queue at `now`, before it goes to the transmitter. The packet is still
    /// counted in `waiting`. If it is dropped, the next one is judged immediately.
    fn depart(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement;

    /// Its parameters, for those who decide the same elsewhere. `None`: there is nobody.
    fn settings(&self) -> Option<AqmSettings> {
        None
    }

    /// Sets the transmitter's rate and overhead. In a class of a scheduler, this is the transmitter that all classes
    /// share.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}
}

/// The parameters of a policy, of a type that those know who know the policy.
pub type AqmSettings = Arc<dyn Any + Send + Sync>;

/// The state of a queue before a call changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The backlog.
    pub backlog: Backlog,
    /// When the packet at the head, the next to be sent, began to wait.
    pub oldest: Option<Time>,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Let it pass.
    Pass,
    /// Let it pass, marked with "congestion experienced". Only for ECN-capable packets.
    Mark,
    /// Drop it.
    Drop,
}

impl Judgement {
    /// Signals congestion: mark the packet if `ecn` is on and the packet is ECN-capable, otherwise drop it.
    pub const fn congestion(ecn: bool, packet: &PacketState) -> Self {
        if ecn && packet.key.ecn() != FlowKey::NOT_ECN_CAPABLE { Self::Mark } else { Self::Drop }
    }

    /// Marks or drops the packet as judged. Returns whether it passes.
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
