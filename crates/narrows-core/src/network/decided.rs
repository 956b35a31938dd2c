//! Packets with a verdict, waiting to be polled.

use super::config::Verdict;
use crate::counters::DropReason;
use crate::id::{Element, PortId};
use crate::pool::PacketRef;
use crate::time::Time;

/// A packet with its verdict, waiting to be polled.
///
/// It is often read right after it was written. The verdict is one word, because a processor stalls when it
/// loads a word that was stored in pieces of other sizes (failed store forwarding).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub(crate) at: Time,
    verdict: u64,
    pub(crate) packet: PacketRef,
}

/// Above the port or the element, and the reason.
const DROPPED: u64 = 1 << 63;
/// No element has this number.
const NOWHERE: u32 = u32::MAX;

impl Decided {
    #[inline]
    pub(super) fn new(at: Time, packet: PacketRef, verdict: Verdict) -> Self {
        let verdict = match verdict {
            Verdict::Delivered(port) => u64::from(port.index()),
            Verdict::Dropped { at, reason } => {
                DROPPED | (reason as u64) << 32 | u64::from(at.map_or(NOWHERE, Element::number))
            }
        };
        Self { at, verdict, packet }
    }

    #[inline]
    pub(crate) fn verdict(&self) -> Verdict {
        let lower = self.verdict as u32;
        match self.verdict & DROPPED {
            0 => Verdict::Delivered(PortId::new(lower as u16)),
            _ => {
                let at = (lower != NOWHERE).then(|| Element::from_number(lower));
                Verdict::Dropped { at, reason: DropReason::ALL[(self.verdict >> 32) as u8 as usize] }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{LinkId, RouterId, RulesId, SwitchId};
    use crate::random::Seed;

    #[test]
    fn a_verdict_comes_out_as_it_went_in() {
        let mut pool = crate::queue::Stand::new(Seed(1));
        let packet = pool.insert(Time::ZERO, Default::default(), 1);
        let last = (1 << 30) - 2;
        let elements = [0, 1, last].into_iter().flat_map(|number| {
            let of = |element| Some(element);
            [
                of(Element::Link(LinkId(number))),
                of(Element::Rules(RulesId(number))),
                of(Element::Router(RouterId(number))),
                of(Element::Switch(SwitchId(number))),
            ]
        });
        let dropped = elements
            .chain([None])
            .flat_map(|at| DropReason::ALL.into_iter().map(move |reason| Verdict::Dropped { at, reason }));
        let delivered = [0, 1, u16::MAX - 1].map(|port| Verdict::Delivered(PortId::new(port)));
        for verdict in dropped.chain(delivered) {
            assert_eq!(Decided::new(Time::ZERO, packet, verdict).verdict(), verdict);
        }
    }
}
