//! Filters at the ingress of a link: an ordered list, of which each drops, passes or polices the packets that have its
//! conditions.
//!
//! Source: the filters of Linux's clsact qdisc (`sch_ingress.c`), which see a packet before any queueing discipline. The
//! first filter that decides counts; a packet about which no filter decides passes.
//!
//! ```text
//! drop { tcp, port 22 } · pass { from 10.0.0.0/8 } · police { any, 10 Mbit/s }
//! ```

use alloc::vec::Vec;

use super::policer::{Judgement, Policer};
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
}

impl Ingress {
    /// These filters.
    pub const fn new(filters: Vec<IngressFilter>) -> Self {
        Self { filters }
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
                IngressFilter::Drop(only) if Condition::any_holds(only, context.pool.get(packet)) => {
                    context.drop(packet, DropReason::Policed);
                    Judgement::Dropped
                }
                IngressFilter::Pass(only) if Condition::any_holds(only, context.pool.get(packet)) => {
                    Judgement::Passed
                }
                IngressFilter::Drop(_) | IngressFilter::Pass(_) => Judgement::Undecided,
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
