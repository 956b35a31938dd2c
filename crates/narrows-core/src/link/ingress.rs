//! Filters at the ingress of a link: an ordered list, of which each drops, passes, polices, gates or edits the packets
//! that have its conditions.
//!
//! Source: the filters of Linux's clsact qdisc (`sch_ingress.c`), which see a packet before any queueing discipline. The
//! first filter that decides counts; a packet about which no filter decides passes.
//!
//! ```text
//! drop { tcp, port 22 } · pass { from 10.0.0.0/8 } · police { any, 10 Mbit/s }
//! ```

use alloc::vec::Vec;

use super::edit::HeaderChange;
use super::policer::{Judgement, Policer};
use super::timed_gate::TimedGate;
use crate::classify::Condition;
use crate::counters::DropReason;
use crate::pool::PacketRef;
use crate::queue::Context;
use crate::service::Overhead;
use crate::time::Time;

/// A list of filters, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    filters: Vec<IngressFilter>,
}

/// A filter.
#[derive(Clone, Debug)]
pub enum IngressFilter {
    /// Drops packets that have one of these conditions, or all packets if there is none, as [`DropReason::Policed`].
    Drop(Vec<Condition>),
    /// Passes them: later filters do not see them.
    Pass(Vec<Condition>),
    /// Polices the packets that the policer is for.
    Police(Policer),
    /// Drops those that come to a closed gate, as [`DropReason::Policed`].
    Gate {
        /// The gate, with the packets that it is for.
        gate: TimedGate,
        /// Whether later filters see the others.
        goes_on: bool,
    },
    /// Changes headers.
    Edit {
        /// Of packets that have one of these conditions, or of all packets if there is none.
        only: Vec<Condition>,
        /// What to write.
        change: HeaderChange,
        /// Whether later filters see them, as changed.
        goes_on: bool,
    },
}

impl Ingress {
    /// These filters.
    pub const fn new(filters: Vec<IngressFilter>) -> Self {
        Self { filters }
    }

    /// Whether it looks at headers that are not in a flow key, or writes headers.
    pub(super) fn needs_headers(&self) -> bool {
        self.filters.iter().any(|filter| match filter {
            IngressFilter::Drop(only) | IngressFilter::Pass(only) => Condition::any_looks_at_headers(only),
            IngressFilter::Police(policer) => policer.looks_at_headers(),
            IngressFilter::Gate { gate, .. } => Condition::any_looks_at_headers(&gate.only),
            IngressFilter::Edit { .. } => true,
        })
    }

    /// Passes a packet that arrives at `now`, or drops it. Returns whether it goes on.
    pub(super) fn admit(
        &mut self,
        now: Time,
        packet: PacketRef,
        overhead: &Overhead,
        context: &mut Context<'_>,
    ) -> bool {
        for filter in &mut self.filters {
            let judgement = match filter {
                IngressFilter::Drop(only) if Condition::any_holds(only, packet, context.pool) => {
                    context.drop(packet, DropReason::Policed);
                    Judgement::Dropped
                }
                IngressFilter::Pass(only) if Condition::any_holds(only, packet, context.pool) => {
                    Judgement::Passed
                }
                IngressFilter::Gate { gate, goes_on }
                    if Condition::any_holds(&gate.only, packet, context.pool) =>
                {
                    if gate.passes(now, context.pool.get(packet).frame_length()) {
                        passed(*goes_on)
                    } else {
                        context.drop(packet, DropReason::Policed);
                        Judgement::Dropped
                    }
                }
                IngressFilter::Edit { only, change, goes_on }
                    if Condition::any_holds(only, packet, context.pool) =>
                {
                    change.apply(packet, context);
                    passed(*goes_on)
                }
                IngressFilter::Drop(_)
                | IngressFilter::Pass(_)
                | IngressFilter::Gate { .. }
                | IngressFilter::Edit { .. } => Judgement::Undecided,
                IngressFilter::Police(policer) => policer.judge(now, packet, overhead, context),
            };
            match judgement {
                Judgement::Dropped => return false,
                Judgement::Passed => return true,
                Judgement::Undecided => {}
            }
        }
        true
    }
}

const fn passed(goes_on: bool) -> Judgement {
    if goes_on { Judgement::Undecided } else { Judgement::Passed }
}
