//! A rule set as an element of the network: the links behind its pipe numbers, where passed packets go, and
//! its counters.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::Hop;
use super::names::Named;
use crate::counters::{DropReason, Tally};
use crate::pool::{PacketRef, Pool};
use crate::rules::{Answer, Decision, Passing, Place, RuleSet};
use crate::time::Time;

/// A packet that translators have left in the rules more often than this is denied: calls may lead backwards.
const MOST_TRANSLATIONS: u32 = 64;

/// The counters of a rule set: `arrived + returned = passed + piped + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulesCounters {
    /// Arrived, outgoing and incoming.
    pub arrived: [Tally; 2],
    /// Returned from a pipe.
    pub returned: Tally,
    /// Sent into a pipe.
    pub piped: Tally,
    /// Passed.
    pub passed: Tally,
    /// Dropped by a rule.
    pub denied: Tally,
    /// Translated: an address or a port was changed. They are in the other counts, too.
    pub translated: Tally,
    /// Dropped because a rule gave them the number of a pipe or queue that does not exist.
    pub no_pipe: Tally,
    /// Dropped because they reached the limit on visited links and rule sets.
    pub looped: Tally,
}

/// Why a packet is dropped, and what its sender is told.
pub(super) type Refusal = (DropReason, Option<Answer>);

/// Where packets for a pipe or queue number go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) link: Named,
    pub(super) mark: u32,
}

#[derive(Debug)]
pub(super) struct Classified {
    pub(super) name: String,
    pub(super) rules: RuleSet,
    pub(super) pipes: BTreeMap<u32, Pipe>,
    pub(super) queues: BTreeMap<u32, Pipe>,
    pub(super) one_pass: bool,
    pub(super) exits: [Hop; 2],
    pub(super) counters: RulesCounters,
    /// Whether a packet may visit again, so that its draws must be keyed by the visit.
    pub(super) revisited: bool,
}

impl Classified {
    /// Where an arriving packet goes.
    pub(super) fn classify(
        &mut self,
        now: Time,
        packet: PacketRef,
        incoming: bool,
        pool: &mut Pool,
        visit: u8,
    ) -> Result<Hop, Refusal> {
        self.counters.arrived[usize::from(incoming)].add(pool.get(packet).length);
        self.walk(now, packet, incoming, Place::default(), pool, visit)
    }

    /// Where a packet that left a pipe goes, if it does not re-enter the rules.
    #[inline]
    pub(super) fn past_rules(&mut self, length: u32, incoming: bool) -> Option<Hop> {
        if !self.one_pass {
            return None;
        }
        self.counters.returned.add(length);
        self.counters.passed.add(length);
        Some(self.exits[usize::from(incoming)])
    }

    /// Where a packet that left a pipe goes.
    pub(super) fn resume(
        &mut self,
        now: Time,
        packet: PacketRef,
        incoming: bool,
        pool: &mut Pool,
        visit: u8,
    ) -> Result<Hop, Refusal> {
        let length = pool.get(packet).length;
        if let Some(exit) = self.past_rules(length, incoming) {
            return Ok(exit);
        }
        self.counters.returned.add(length);
        let place = pool.carried(packet).rest().map_or(Place::default(), |rest| rest.place);
        self.walk(now, packet, incoming, place, pool, visit)
    }

    fn walk(
        &mut self,
        now: Time,
        packet: PacketRef,
        incoming: bool,
        from: Place,
        pool: &mut Pool,
        visit: u8,
    ) -> Result<Hop, Refusal> {
        let (state, carried, draws) = pool.for_rules(packet, visit);
        let length = state.length;
        // For a fragment, rules see fewer fields than the packet has.
        let mut seen = state.fragment().is_some().then(|| state.seen_key());
        let (mut from, mut translations) = (from, 0);
        let decision = loop {
            let link_header = state.link_header;
            let (key, whole) = match &mut seen {
                Some(seen) => (seen, Some(&mut state.key)),
                None => (&mut state.key, None),
            };
            let (headers, rest) = carried.parts();
            let mut passing = Passing {
                key,
                whole,
                quoted: rest.extra.quoted.as_deref_mut(),
                headers,
                length,
                link_header,
                incoming,
                labels: &mut rest.labels,
                draw: &mut |stream| draws.of(stream),
            };
            let decision = self.rules.walk(now, &mut passing, from);
            let Decision::Translated { changed, resume } = decision else { break decision };
            if changed {
                self.counters.translated.add(length);
                carried.note_new_ends();
            }
            translations += 1;
            if self.one_pass {
                break Decision::Pass;
            }
            if translations > MOST_TRANSLATIONS {
                break Decision::Deny;
            }
            from = resume;
        };
        if let Some(seen) = seen {
            state.key.traffic_class = seen.traffic_class;
        }
        let (pipe, place) = match decision {
            Decision::Pass => {
                self.counters.passed.add(length);
                return Ok(self.exits[usize::from(incoming)]);
            }
            Decision::Deny | Decision::Translated { .. } => {
                self.counters.denied.add(length);
                return Err((DropReason::Denied, None));
            }
            Decision::Reject(answer) => {
                self.counters.denied.add(length);
                return Err((DropReason::Denied, Some(answer).filter(|one| one.fits(state.key.network))));
            }
            Decision::Pipe { number, resume } => (self.pipes.get(&number), resume),
            Decision::Queue { number, resume } => (self.queues.get(&number), resume),
        };
        let Some(pipe) = pipe else {
            self.counters.no_pipe.add(length);
            return Err((DropReason::NoPipe, None));
        };
        self.counters.piped.add(length);
        state.key.mark = pipe.mark;
        carried.rest_mut().place = place;
        Ok(pipe.link.hop(u8::from(incoming)))
    }
}
