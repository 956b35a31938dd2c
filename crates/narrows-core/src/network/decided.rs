//! Packets with a verdict, waiting to be polled.

use super::config::Verdict;
use crate::counters::DropReason;
use crate::id::{Element, PortId};
use crate::pool::PacketRef;
use crate::rules::Answer;
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

/// Above the port or the element, the reason, and the answer.
const DROPPED: u64 = 1 << 63;
/// Where the answer begins: sixteen bits of its value, and its kind.
const ANSWER: u32 = 40;
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

    /// With what the sender of the dropped packet is told.
    pub(super) fn answered(mut self, answer: Option<Answer>) -> Self {
        let (kind, value) = match answer {
            None => return self,
            Some(Answer::Reset) => (1, 0),
            Some(Answer::Reset6) => (2, 0),
            Some(Answer::Unreachable(code)) => (3, code.into()),
            Some(Answer::Unreachable6(code)) => (4, code.into()),
            Some(Answer::FragmentationNeeded(mtu)) => (5, mtu),
        };
        self.verdict |= (kind << 16 | u64::from(value)) << ANSWER;
        self
    }

    /// What the sender of a dropped packet is told.
    #[inline]
    pub(crate) fn answer(&self) -> Option<Answer> {
        let answer = self.verdict >> ANSWER;
        if self.verdict & DROPPED == 0 || answer & 0x7_0000 == 0 {
            return None;
        }
        let value = answer as u16;
        Some(match answer >> 16 & 7 {
            1 => Answer::Reset,
            2 => Answer::Reset6,
            3 => Answer::Unreachable(value as u8),
            4 => Answer::Unreachable6(value as u8),
            _ => Answer::FragmentationNeeded(value),
        })
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
            let decided = Decided::new(Time::ZERO, packet, verdict);
            assert_eq!((decided.verdict(), decided.answer()), (verdict, None));
        }
        let at = Some(Element::Rules(RulesId(last)));
        let verdict = Verdict::Dropped { at, reason: DropReason::Denied };
        for answer in [
            Answer::Reset,
            Answer::Reset6,
            Answer::Unreachable(0),
            Answer::Unreachable(u8::MAX),
            Answer::Unreachable6(3),
            Answer::FragmentationNeeded(0),
            Answer::FragmentationNeeded(u16::MAX),
        ] {
            let decided = Decided::new(Time::ZERO, packet, verdict).answered(Some(answer));
            assert_eq!((decided.verdict(), decided.answer()), (verdict, Some(answer)));
        }
    }
}
