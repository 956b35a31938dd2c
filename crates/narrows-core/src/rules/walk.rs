//! The walk of a packet through the rules.

use super::book::{Entry, position};
use super::calls::CallStack;
use super::facts::Facts;
use super::hot::Hot;
use super::index::Rules;
use super::nat::{Fate, Nat};
use super::passing::Passing;
use super::program::Program;
use super::ruleset::RuleSet;
use super::test::{self, Seen};
use super::{Action, Answer, Argument, NextHop, Parent, Place, Tag};
use crate::packet::Protocol;
use crate::time::Time;

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Pass.
    Pass,
    /// Drop.
    Deny,
    /// Drop, and tell the sender.
    Reject(Answer),
    /// A translator has changed the packet, or left it as it is: see [`Action::Nat`].
    Translated {
        /// Whether addresses or ports are others than before.
        changed: bool,
        /// Where the packet continues in the rules, if it does not pass.
        resume: Place,
    },
    /// Send through a pipe.
    Pipe {
        /// The pipe's number.
        number: u32,
        /// Where the packet continues in the rules if it returns.
        resume: Place,
    },
    /// Send through a queue.
    Queue {
        /// The queue's number.
        number: u32,
        /// Where the packet continues in the rules if it returns.
        resume: Place,
    },
}

/// What to do after a rule.
enum Step {
    /// Continue at this rule.
    On(usize),
    Done(Decision),
}

/// A rule whose action applies to a packet.
struct Acting {
    at: usize,
    /// The table value that it has found.
    argument: u32,
    /// Whether the packet goes against the flow that created its dynamic rule.
    is_back: bool,
}

/// State of a packet during a walk.
struct Path {
    now: Time,
    stack: CallStack,
    calls: u32,
    /// How often it has jumped backwards. A rule may then be tried again, with a new draw.
    back: u32,
    /// Whether its dynamic rule has been looked up.
    asked: bool,
}

impl RuleSet {
    /// A packet with more calls than this in one walk is denied, because calls may lead backwards and double each
    /// other.
    pub const MOST_CALLS: u32 = 1_024;

    /// Passes a packet through the rules, starting at a place, until one decides.
    #[inline]
    pub fn walk(&mut self, now: Time, packet: &mut Passing<'_>, from: Place) -> Decision {
        if let (Place { number: 0, .. }, Some(head), false) =
            (from, self.program.heads[usize::from(packet.incoming)], self.stale)
        {
            self.count(head as usize, packet, now);
            return self.decision(head as usize, 0, from.calls);
        }
        self.walk_from(now, packet, from)
    }

    /// Like [`Self::walk`], for a packet that must be inspected.
    #[inline(never)]
    fn walk_from(&mut self, now: Time, packet: &mut Passing<'_>, from: Place) -> Decision {
        if self.stale {
            self.refresh();
        }
        let facts = Facts::of(packet);
        let at = match from {
            Place { number: 0, .. } => 0,
            Place { number, order, .. } => {
                let behind = position(number, order);
                self.program.positions.partition_point(|&one| one <= behind)
            }
        };
        let last = self.find(at, packet, &facts);
        // Most packets match a single rule, which decides.
        let is_only = match *self.found {
            [] => true,
            [one] => one.rule() == last,
            _ => false,
        };
        if is_only
            && self.program.hot[last].is(Hot::PLAIN)
            && self.asking_from(at).is_none_or(|one| one > last)
        {
            self.count(last, packet, now);
            return self.decision(last, 0, from.calls);
        }
        self.walk_on(now, packet, &facts, from, (at, last))
    }

    /// Continues at rule `at`. The rules that may match have been found up to `last`, which decides if none before it
    /// does.
    fn walk_on(
        &mut self,
        now: Time,
        packet: &mut Passing<'_>,
        facts: &Facts,
        from: Place,
        (mut at, mut last): (usize, usize),
    ) -> Decision {
        let stack = self.calls.stack(from.calls);
        let mut path = Path { now, stack, calls: 0, back: 0, asked: false };
        // The first rule of the searched range, and the next found rule.
        let (mut first, mut nth) = (at, 0);
        loop {
            if at < first || at > last {
                (first, last, nth) = (at, self.find(at, packet, facts), 0);
            }
            while self.found.get(nth).is_some_and(|found| found.rule() < at) {
                nth += 1;
            }
            // After all found rules comes the last one, which is then the default rule.
            let (mut rule, mut is_sure) =
                self.found.get(nth).map_or((last, true), |one| (one.rule(), one.is_sure()));
            if !path.asked
                && let Some(asking) = self.asking_from(at)
                && asking < rule
            {
                (rule, is_sure) = (asking, false);
            }
            match self.attempt(rule, is_sure, packet, facts, &mut path) {
                Step::On(next) => {
                    if next <= rule {
                        path.back += 1;
                        nth = 0;
                    }
                    at = next;
                }
                Step::Done(decision) => return decision,
            }
        }
    }

    /// Finds the rules from `at` on that may match, up to one that decides. Returns that one.
    #[inline]
    fn find(&mut self, at: usize, packet: &Passing<'_>, facts: &Facts) -> usize {
        let Self { program: Program { rules, hot, index, .. }, tables, found, .. } = self;
        let seen = Seen { facts, key: packet.key, headers: packet.headers, labels: packet.labels, tables };
        let matches = |at: u32| test::hold(&rules[at as usize].terms, &seen, &mut 0);
        // There are fewer than 2^31 rules; the last one is the default rule.
        let between = (at as u32, rules.len() as u32 - 1);
        index.find(facts, Rules { rules, hot }, between, &matches, found) as usize
    }

    /// The first rule from `at` on at which a packet's dynamic rule is looked up, independent of the packet.
    fn asking_from(&self, at: usize) -> Option<usize> {
        let behind = self.program.asking.partition_point(|&one| (one as usize) < at);
        self.program.asking.get(behind).map(|&one| one as usize)
    }

    /// Tries one rule. `is_sure` says that its conditions are known to hold.
    fn attempt(
        &mut self,
        at: usize,
        is_sure: bool,
        packet: &mut Passing<'_>,
        facts: &Facts,
        path: &mut Path,
    ) -> Step {
        let next = Step::On(at + 1);
        let hot = &self.program.hot[at];
        if hot.is(Hot::CHANCE) && !self.has_luck(at, packet, path) {
            return next;
        }
        if hot.is(Hot::ASKS)
            && let Some(own) = self.ask(packet, path)
        {
            return self.act(own, packet, path);
        }
        let hot = &self.program.hot[at];
        let mut argument = 0;
        if !is_sure || hot.is(Hot::ARGUMENT) {
            let seen = Seen {
                facts,
                key: packet.key,
                headers: packet.headers,
                labels: packet.labels,
                tables: &self.tables,
            };
            if !test::hold(&self.program.rules[at].terms, &seen, &mut argument) {
                return next;
            }
        }
        if matches!(hot.action, Action::CheckState) {
            return match self.ask(packet, path) {
                Some(own) => self.act(own, packet, path),
                None => next,
            };
        }
        if hot.is(Hot::KEEPS) && !self.keep(at, argument, packet, path) {
            self.count(at, packet, path.now);
            return Step::Done(Decision::Deny);
        }
        if self.program.hot[at].is(Hot::DEFERS) {
            return next;
        }
        self.act(Acting { at, argument, is_back: false }, packet, path)
    }

    /// Whether a rule with a probability matches.
    fn has_luck(&self, at: usize, packet: &mut Passing<'_>, path: &Path) -> bool {
        let Entry { rule, stream, .. } = &self.program.rules[at];
        let (Some(stream), Some(probability)) = (stream, rule.probability) else { return true };
        let mut draw = (packet.draw)(stream);
        (0..path.back).for_each(|_| _ = draw.bits());
        draw.chance(probability)
    }

    /// Looks up the packet's dynamic rule. Done once per walk.
    fn ask(&mut self, packet: &Passing<'_>, path: &mut Path) -> Option<Acting> {
        if core::mem::replace(&mut path.asked, true) {
            return None;
        }
        let (Parent { rule, argument }, is_back) = self.states.lookup(path.now, packet.key, packet.length)?;
        let parent = self.program.parents.binary_search_by_key(&rule, |&(order, _)| order).ok()?;
        Some(Acting { at: self.program.parents[parent].1 as usize, argument, is_back })
    }

    /// Creates a dynamic rule for the packet, if possible.
    fn keep(&mut self, at: usize, argument: u32, packet: &Passing<'_>, path: &Path) -> bool {
        let Entry { rule, order, .. } = &self.program.rules[at];
        let parent = Parent { rule: *order, argument };
        rule.keep.is_none_or(|keep| self.states.install(path.now, packet.key, parent, keep).is_ok())
    }

    /// Applies a rule's action.
    fn act(&mut self, acting: Acting, packet: &mut Passing<'_>, path: &mut Path) -> Step {
        let Acting { at, argument, is_back } = acting;
        self.count(at, packet, path.now);
        if self.program.hot[at].is(Hot::TAGS) {
            match self.program.rules[at].rule.tag {
                Some(Tag::Add(tag)) if !packet.labels.tags.contains(&tag) => packet.labels.tags.push(tag),
                Some(Tag::Remove(tag)) => packet.labels.tags.retain(|&one| one != tag),
                _ => {}
            }
        }
        let next = Step::On(at + 1);
        match self.program.hot[at].action {
            Action::Allow | Action::Deny | Action::Reject(_) | Action::Pipe(_) | Action::Queue(_) => {
                let calls = self.calls.number(&path.stack);
                Step::Done(self.decision(at, argument, calls))
            }
            Action::Forward(to) => {
                if !is_back {
                    forward(packet, to, argument);
                }
                Step::Done(Decision::Pass)
            }
            Action::Nat(number) => Step::Done(self.translate(at, Some(number.or(argument)), packet, path)),
            Action::NatGlobal => Step::Done(self.translate(at, None, packet, path)),
            Action::Count | Action::CheckState => next,
            Action::SkipTo(to) => Step::On(self.target(at, to, argument).max(at + 1)),
            Action::Call(to) => {
                path.calls += 1;
                if path.calls > Self::MOST_CALLS {
                    self.exceeded.calls += 1;
                    return Step::Done(Decision::Deny);
                }
                if !path.stack.push(self.program.rules[at].rule.number) {
                    self.exceeded.depth += 1;
                    return next;
                }
                Step::On(self.target(at, to, argument))
            }
            Action::Return => match path.stack.pop() {
                Some(call) => Step::On(self.program.first_of(u32::from(call) + 1)),
                None => next,
            },
            Action::SetDscp(dscp) => {
                if packet.key.network != Protocol::Other {
                    // The lower six bits of the table's value.
                    packet.key.traffic_class = (dscp.or(argument) as u8) << 2 | packet.key.ecn();
                }
                next
            }
            Action::SetMark(mark) => {
                packet.labels.mark = mark.or(argument);
                next
            }
            Action::SetFib(fib) => {
                packet.labels.fib = u16::try_from(fib.or(argument)).unwrap_or(0);
                next
            }
        }
    }

    /// Translates a packet, by the translator with a number or by the one that knows it.
    fn translate(
        &mut self,
        at: usize,
        number: Option<u32>,
        packet: &mut Passing<'_>,
        path: &Path,
    ) -> Decision {
        let own = self.book.own_address();
        let ends = |packet: &Passing<'_>| {
            let key = packet.whole.as_deref().unwrap_or(packet.key);
            (key.source, key.destination, key.source_port, key.destination_port)
        };
        let (before, quoted) = (ends(packet), packet.quoted.as_deref().copied());
        let fate = match number {
            _ if packet.key.network == Protocol::Ipv6 => Fate::Denied,
            _ if packet.key.network == Protocol::Other => Fate::Ignored,
            Some(number) => match self.nats.get_mut(&number) {
                Some(nat) => nat.translate(path.now, packet, own),
                None => Fate::Denied,
            },
            None => {
                let known = |nat: &mut Nat| nat.translate_known(path.now, packet, own) == Fate::Translated;
                match self.nats.values_mut().any(known) {
                    true => Fate::Translated,
                    false => Fate::Ignored,
                }
            }
        };
        if fate == Fate::Denied {
            return Decision::Deny;
        }
        let changed = before != ends(packet) || quoted != packet.quoted.as_deref().copied();
        let position = self.program.hot[at].position;
        let calls = self.calls.number(&path.stack);
        Decision::Translated { changed, resume: place(position, calls) }
    }

    fn target(&self, at: usize, to: Argument, argument: u32) -> usize {
        match to {
            Argument::Number(_) => self.program.hot[at].target as usize,
            Argument::TableArgument => self.program.first_of(argument),
        }
    }

    /// The decision of a rule that decides. `calls` is the number of the call stack.
    #[inline]
    fn decision(&self, at: usize, argument: u32, calls: u16) -> Decision {
        let Hot { action, position, .. } = self.program.hot[at];
        let resume = place(position, calls);
        match action {
            Action::Deny => Decision::Deny,
            Action::Reject(answer) => Decision::Reject(answer),
            Action::Pipe(pipe) => Decision::Pipe { number: pipe.or(argument), resume },
            Action::Queue(queue) => Decision::Queue { number: queue.or(argument), resume },
            _ => Decision::Pass,
        }
    }

    #[inline]
    fn count(&mut self, at: usize, packet: &Passing<'_>, now: Time) {
        let hot = &mut self.program.hot[at];
        hot.packets += 1;
        hot.bytes += u64::from(packet.length);
        hot.last = now;
    }
}

/// Behind the rule at this position.
const fn place(position: u64, calls: u16) -> Place {
    Place { number: (position >> 32) as u16, order: position as u32, calls }
}

/// Notes where the next router sends a packet.
fn forward(packet: &mut Passing<'_>, to: NextHop, argument: u32) {
    let to = match to {
        NextHop::Address(to) => to,
        NextHop::TableArgument => core::net::Ipv4Addr::from_bits(argument).to_ipv6_mapped().octets(),
    };
    let is_v4 = core::net::Ipv6Addr::from(to).to_ipv4_mapped().is_some();
    let fits = match packet.key.network {
        Protocol::Ipv4 | Protocol::Ipv4DontFragment => is_v4,
        Protocol::Ipv6 => !is_v4,
        Protocol::Other => false,
    };
    if fits {
        packet.labels.next_hop = Some(to);
    }
}
