//! The network: links, rule sets, routers and switches between ports.

mod build;
mod classified;
mod config;
mod cycles;
mod decided;
mod divided;
mod exits;
mod names;
mod parts;
mod router;
mod switch;
mod view;

pub use classified::RulesCounters;
pub use config::{
    BuildError, NetworkConfig, PipeConfig, PortConfig, Route, RouterConfig, RulesChange, RulesConfig, Spread,
    SwitchConfig, SwitchPort, Verdict, VlanSet,
};
pub use divided::{Crossing, Regions};
pub use parts::Parts;
pub use router::RouterCounters;
pub use switch::SwitchCounters;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use crate::agenda::Agenda;
use crate::classify::Flow;
use crate::counters::{DropReason, Tally};
use crate::id::{Element, LinkId, PortId, RouterId, RulesId, SwitchId};
use crate::known::Known;
use crate::link::instances::{Found, Made};
use crate::link::{Change, Link, Question, Target};
use crate::packet::{Packet, PacketId};
use crate::pool::{PacketRef, Pool};
use crate::queue::Drops;
use crate::random::Seed;
use crate::rules::{Lpm, PreparedRules, RuleChange};
use crate::time::{Duration, Time};
use classified::{Classified, Pipe};
use decided::Decided;
use divided::Divided;
use exits::Exits;
use names::Named;
use router::Router;
use switch::{Out, Switch};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Hop {
    Port(PortId),
    Link {
        link: u32,
        lane: u8,
    },
    /// To the instance of a link for the packet's flow.
    Instance {
        made: u32,
        lane: u8,
    },
    Rules {
        rules: u32,
        incoming: bool,
    },
    FromPipe {
        rules: u32,
        incoming: bool,
    },
    Router(u32),
    /// To a router, for packets that the router itself sends.
    OfRouter(u32),
    /// Into a port of a switch.
    Switch {
        switch: u32,
        port: u16,
    },
}

/// Arrivals and deliveries at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Handed in here.
    pub arrived: Tally,
    /// Delivered here.
    pub delivered: Tally,
    /// Refused at entry because the network had reached its memory limit.
    pub refused: Tally,
}

#[derive(Debug)]
struct Port {
    name: String,
    entry: Hop,
    arrivals: u64,
    counters: PortCounters,
}

/// What kind of element follows the configured ones.
#[derive(Clone, Copy, Debug)]
enum Later {
    /// A link instance, created on first use: the number of its [`Made`], and its place there.
    Made { made: u32, place: u32 },
    /// A link that was added.
    Added(LinkId),
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) pool: Pool,
    seed: Seed,
    /// The configured links by name, then instances and added links in order of creation.
    links: Vec<Link>,
    exits: Exits,
    /// The number of configured links. Their link numbers are also their element numbers.
    configured: u32,
    /// The elements after the configured ones.
    later: Vec<Later>,
    /// The elements of added links, by their link numbers.
    added: Vec<u32>,
    /// Places in `added`, by name.
    added_names: BTreeMap<String, u32>,
    /// The links that have instances.
    made: Vec<Made>,
    rules: Vec<Classified>,
    routers: Vec<Router>,
    /// The groups of prefixes that routers have routes to.
    destinations: Lpm<Known>,
    switches: Vec<Switch>,
    /// Scratch space of [`Network::switch_packet`].
    outs: Vec<Out>,
    /// The elements where packets may wait for answers, sorted.
    asking: Vec<u32>,
    ports: Vec<Port>,
    agenda: Agenda,
    decided: VecDeque<Decided>,
    visits: u8,
    now: Time,
    /// Drops and other events from links in the current call.
    drops: Drops,
    /// Whether [`Network::find_cycles`] must run before the next packet moves.
    has_new_ways: bool,
    /// In a network that is divided among engines.
    divided: Option<Box<Divided>>,
}

impl Network {
    fn named(&self, link: LinkId) -> Named {
        let element = self.element(link) as u32;
        Named { element, lanes: self.links[element as usize].counters().len(), made: self.made_of(element) }
    }

    /// The link that an element counts as.
    fn link_of(&self, element: u32) -> LinkId {
        let Some(later) = element.checked_sub(self.configured) else { return LinkId(element) };
        match self.later[later as usize] {
            Later::Added(link) => link,
            // An instance's configured link is itself never an instance.
            Later::Made { made, .. } => self.link_of(self.made[made as usize].of),
        }
    }

    /// The number of the [`Made`] that creates instances of this element.
    fn made_of(&self, element: u32) -> Option<u32> {
        // They are sorted by element.
        self.made.binary_search_by_key(&element, |made| made.of).ok().map(|made| made as u32)
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        match self.decided.front() {
            Some(decided) => Some(decided.at),
            None => self.agenda.first().map(|(at, _)| at),
        }
    }

    pub(crate) fn next_delivery(&self) -> Option<Time> {
        /// With more elements than this, the search would take longer than an event.
        const FEW: usize = 16;
        let elements = self.agenda.elements();
        if !self.decided.is_empty() || elements.len() > FEW {
            return self.next_event();
        }
        elements.map(|element| self.links[element as usize].next_exit()).min()
    }

    pub(crate) fn least_transit(&self) -> Duration {
        let crosses_links = |port: &Port| matches!(port.entry, Hop::Link { .. } | Hop::Instance { .. });
        if !self.ports.iter().all(crosses_links) {
            return Duration::ZERO;
        }
        self.links.iter().map(Link::least_transit).min().unwrap_or(Duration::ZERO)
    }

    /// Handles all events up to and including `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if self.agenda.first().is_some_and(|(at, _)| at <= now) {
            self.advance_by_steps(now);
        }
        self.now = self.now.max(now);
    }

    #[inline(never)]
    fn advance_by_steps(&mut self, now: Time) {
        while let Some((at, element)) = self.agenda.first()
            && at <= now
        {
            self.step(at, element);
        }
    }

    /// Handles events up to and including `now` until there is a verdict to poll. Returns whether there is
    /// one.
    #[inline]
    pub(crate) fn decide_next(&mut self, now: Time) -> bool {
        if !self.decided.is_empty() {
            return true;
        }
        if self.agenda.first().is_some_and(|(at, _)| at <= now) {
            return self.decide_by_steps(now);
        }
        self.now = self.now.max(now);
        false
    }

    /// As [`Network::decide_next`], once an event is due: often several steps come before a verdict.
    #[inline(never)]
    fn decide_by_steps(&mut self, now: Time) -> bool {
        while let Some((at, element)) = self.agenda.first()
            && at <= now
        {
            self.step(at, element);
            if !self.decided.is_empty() {
                return true;
            }
        }
        self.now = self.now.max(now);
        false
    }

    /// Handles one event of an element.
    #[inline(always)]
    fn step(&mut self, at: Time, element: u32) {
        self.now = at;
        if self.has_new_ways {
            self.settle_ways();
        }
        let link = &mut self.links[element as usize];
        let left = link.step(at, &mut self.pool, &mut self.drops);
        let next = link.next_event();
        self.agenda.set_first(element, next);
        self.settle_rest(element);
        if self.divided.is_some() {
            self.end_turn(element);
        }
        // At most one packet leaves per step, so forwarding goes one level deep: to a port, or into a link,
        // whose own packets leave in later steps.
        if let Some((packet, lane)) = left {
            debug_assert!(!self.leads_away(element), "what is in flight there is another engine's");
            if self.pool.keeps_passed() {
                self.pool.pass(packet, at);
            }
            self.forward(packet, self.exits.at(element, lane));
        }
    }

    fn element(&self, link: LinkId) -> usize {
        match link.0.checked_sub(self.configured) {
            None => link.0 as usize,
            Some(added) => self.added[added as usize] as usize,
        }
    }

    #[inline]
    pub(crate) fn arrive<B>(&mut self, port: PortId, packet: &Packet<B>) -> (PacketId, PacketRef) {
        if self.has_new_ways {
            self.settle_ways();
        }
        let from = &mut self.ports[usize::from(port.index())];
        let id = PacketId::new(port, from.arrivals);
        from.arrivals += 1;
        from.counters.arrived.add(packet.length);
        let entry = from.entry;
        let packet = self.pool.insert(id, self.now, packet);
        if self.pool.over_memory_cap() {
            let length = self.decide(packet, Verdict::Dropped { at: None, reason: DropReason::Memory });
            self.ports[usize::from(port.index())].counters.refused.add(length);
        } else {
            self.forward(packet, entry);
        }
        (id, packet)
    }

    pub(crate) fn change(&mut self, link: LinkId, change: Change) {
        self.begin_turns();
        let Named { element, made, .. } = self.named(link);
        let Change::Template(template) = change else { return self.change_element(element, change) };
        for change in template.changes() {
            self.change_element(element, change);
        }
        let Some(made) = made else { return };
        // In order of the flows, so that the order of creation does not matter.
        for (_, element) in self.made[made as usize].present(self.now) {
            for change in template.changes() {
                self.change_element(element, change);
            }
        }
        self.made[made as usize].template = template;
    }

    fn change_element(&mut self, element: u32, change: Change) {
        self.links[element as usize].change(self.now, change, &mut self.pool, &mut self.drops);
        if self.links[element as usize].asks()
            && let Err(place) = self.asking.binary_search(&element)
        {
            self.asking.insert(place, element);
        }
        self.settle(element, self.links[element as usize].next_event());
    }

    pub(crate) fn feed(&mut self, link: LinkId, feed: &str, values: &[i64]) -> usize {
        let element = self.element(link);
        let taken = self.links[element].feed(self.now, feed, values, &mut self.pool, &mut self.drops);
        self.settle(element as u32, self.links[element].next_event());
        taken
    }

    pub(crate) fn take_questions(&mut self, to: &mut Vec<Question>) {
        for &element in &self.asking {
            let link = self.link_of(element);
            self.links[element as usize].take_questions(link, to);
        }
    }

    pub(crate) fn change_rules(&mut self, rules: RulesId, change: RulesChange) -> Result<(), BuildError> {
        let found = match &change {
            RulesChange::Pipe(_, Some(pipe)) | RulesChange::Queue(_, Some(pipe)) => {
                let link = self.link_id(&pipe.link).map(|link| self.named(link));
                Some(find_pipe(&self.rules[rules.0 as usize].name, pipe, link)?)
            }
            _ => None,
        };
        let may_return = matches!(change, RulesChange::OnePass(false));
        if matches!(change, RulesChange::Rules(RuleChange::Nat { .. })) {
            self.pool.keep_quoted();
        }
        let set = &mut self.rules[rules.0 as usize];
        match change {
            RulesChange::Rules(change) => {
                let changed = set.rules.change(self.now, change);
                return changed.map_err(|error| BuildError::Rules(set.name.clone(), error));
            }
            RulesChange::Pipe(number, _) => match found {
                Some(pipe) => drop(set.pipes.insert(number, pipe)),
                None => drop(set.pipes.remove(&number)),
            },
            RulesChange::Queue(number, _) => match found {
                Some(pipe) => drop(set.queues.insert(number, pipe)),
                None => drop(set.queues.remove(&number)),
            },
            RulesChange::OnePass(one_pass) => set.one_pass = one_pass,
        }
        self.has_new_ways |= found.is_some() || may_return;
        Ok(())
    }

    pub(crate) fn replace_rules(&mut self, rules: RulesId, with: PreparedRules) -> PreparedRules {
        self.rules[rules.0 as usize].rules.replace(with)
    }

    /// Runs once after a batch of changes that may let packets return to where they have been; such changes
    /// come in great numbers.
    #[cold]
    #[inline(never)]
    fn settle_ways(&mut self) {
        self.has_new_ways = false;
        self.find_cycles();
    }

    /// Forwards a packet to its next hop.
    #[inline(always)]
    fn forward(&mut self, packet: PacketRef, hop: Hop) {
        let past_rules = match hop {
            Hop::FromPipe { rules, incoming } => {
                let length = self.pool.get(packet).length;
                self.rules[rules as usize].past_rules(length, incoming)
            }
            _ => None,
        };
        match past_rules.unwrap_or(hop) {
            Hop::Port(port) => {
                let length = self.decide(packet, Verdict::Delivered(port));
                self.ports[usize::from(port.index())].counters.delivered.add(length);
            }
            Hop::Link { link, lane } => self.visit(packet, link, lane),
            hop => self.forward_by(packet, hop),
        }
    }

    /// As [`Network::forward`], through rule sets, routers, switches or link instances.
    #[inline(never)]
    fn forward_by(&mut self, packet: PacketRef, mut hop: Hop) {
        // This loop ends: routers decrement the hop limit, and rule sets count as visits.
        loop {
            let (at, next) = match hop {
                Hop::Port(_) | Hop::Link { .. } => return self.forward(packet, hop),
                Hop::Switch { switch, port } => return self.switch_packet(packet, switch, port),
                Hop::Instance { made, lane } => {
                    let link = self.instance(packet, made);
                    return self.visit(packet, link, lane);
                }
                Hop::Rules { rules, incoming } => {
                    let at = Element::Rules(RulesId(rules));
                    if !self.count_visit(packet) {
                        let (set, length) = (&mut self.rules[rules as usize], self.pool.get(packet).length);
                        set.counters.arrived[usize::from(incoming)].add(length);
                        set.counters.looped.add(length);
                        (at, Err((DropReason::Loop, None)))
                    } else {
                        let visit = self.visit_of(packet, at, self.rules[rules as usize].revisited, true);
                        let set = &mut self.rules[rules as usize];
                        (at, set.classify(self.now, packet, incoming, &mut self.pool, visit))
                    }
                }
                Hop::FromPipe { rules, incoming } => {
                    let at = Element::Rules(RulesId(rules));
                    let visit = self.visit_of(packet, at, self.rules[rules as usize].revisited, false);
                    let set = &mut self.rules[rules as usize];
                    (at, set.resume(self.now, packet, incoming, &mut self.pool, visit))
                }
                Hop::Router(router) | Hop::OfRouter(router) => {
                    let at = Element::Router(RouterId(router));
                    let visit = self.visit_of(packet, at, self.routers[router as usize].revisited, true);
                    let is_own = matches!(hop, Hop::OfRouter(_));
                    let Self { routers, destinations, pool, .. } = self;
                    let next = routers[router as usize].route(destinations, packet, is_own, pool, visit);
                    (at, next.map_err(|reason| (reason, None)))
                }
            };
            match next {
                Ok(next) => hop = next,
                Err((reason, answer)) => {
                    let decided = Decided::new(self.now, packet, Verdict::Dropped { at: Some(at), reason });
                    self.decided.push_back(decided.answered(answer));
                    self.pool.leave(packet);
                    return;
                }
            }
        }
    }

    /// Sends a packet that came to a switch out of one port, or copies of it out of several.
    fn switch_packet(&mut self, packet: PacketRef, number: u32, from: u16) {
        let at = Element::Switch(SwitchId(number));
        let length = self.pool.get(packet).length;
        let has_left = self.count_visit(packet);
        let switch = &mut self.switches[number as usize];
        switch.counters.arrived.add(length);
        if !has_left {
            switch.counters.looped.add(length);
            self.decide(packet, Verdict::Dropped { at: Some(at), reason: DropReason::Loop });
            return;
        }
        let mut outs = core::mem::take(&mut self.outs);
        switch.direct(self.now, from, &self.pool.carried(packet).headers, length, &mut outs);
        let Some((&first, others)) = outs.split_first() else {
            switch.counters.filtered.add(length);
            self.outs = outs;
            self.decide(packet, Verdict::Dropped { at: Some(at), reason: DropReason::Filtered });
            return;
        };
        let visit = self.visit_of(packet, at, self.switches[number as usize].revisited, true);
        // All copies are made before the first packet goes on, which may end it.
        let copies = self.copy(packet, number, visit, others.len());
        self.send_out(packet, number, first);
        for (copy, &out) in copies.into_iter().zip(others) {
            if self.pool.over_memory_cap() {
                self.switches[number as usize].counters.refused.add(length);
                self.decide(copy, Verdict::Dropped { at: Some(at), reason: DropReason::Memory });
            } else {
                self.send_out(copy, number, out);
            }
        }
        outs.clear();
        self.outs = outs;
    }

    /// Makes copies of a packet at a switch: fewer if it has had the most that a packet can have.
    fn copy(&mut self, packet: PacketRef, number: u32, visit: u8, count: usize) -> Vec<PacketRef> {
        let switch = &mut self.switches[number as usize];
        let mut copies = Vec::with_capacity(count);
        for nth in (0..).take(count) {
            let Some(copy) = self.pool.duplicate(packet, &switch.copies, visit, nth) else { break };
            switch.counters.copied.add(self.pool.get(copy).length);
            copies.push(copy);
        }
        copies
    }

    fn send_out(&mut self, packet: PacketRef, number: u32, out: Out) {
        self.pool.set_vlan(packet, out.tag);
        self.switches[number as usize].counters.forwarded.add(self.pool.get(packet).length);
        self.forward(packet, out.exit);
    }

    /// Counts a visit against the packet's budget. Returns whether one was left.
    fn count_visit(&mut self, packet: PacketRef) -> bool {
        self.pool.get_mut(packet).count_visit(self.visits)
    }

    /// How many visits of a packet to an element came before this one, if it may visit more than once.
    fn visit_of(&mut self, packet: PacketRef, element: Element, revisited: bool, is_new: bool) -> u8 {
        if !revisited {
            return 0;
        }
        if is_new {
            self.pool.count_visit(packet, element.number());
        }
        self.pool.earlier_visits(packet, element.number())
    }

    /// The instance for a packet's flow, created now if there is none.
    fn instance(&mut self, packet: PacketRef, number: u32) -> u32 {
        let made = &mut self.made[number as usize];
        let of = made.of;
        match made.find(self.now, packet, &self.pool, &self.links) {
            Found::Element(element) => element,
            Found::Overflow => of,
            Found::New(flow) => self.make(number, flow),
        }
    }

    /// Creates the instance for a flow.
    #[cold]
    #[inline(never)]
    fn make(&mut self, number: u32, flow: Flow) -> u32 {
        let made = &mut self.made[number as usize];
        let of = made.of;
        let configured = &self.links[of as usize];
        let config = made.config(&configured.name, configured.counters().len(), &flow);
        let link = Link::new(config, self.seed, configured.cyclic(), self.now);
        let (next, place) = (self.links.len() as u32, made.elements().len() as u32);
        let Some(element) = made.insert(flow, next) else { return of };
        if element == next {
            self.later.push(Later::Made { made: number, place });
            let exits = self.exits.of(of).to_vec();
            self.put(link, &exits);
        } else {
            self.links[element as usize] = link;
        }
        element
    }

    fn visit(&mut self, packet: PacketRef, link: u32, lane: u8) {
        if self.pool.keeps_passed() {
            self.pool.enter(packet, self.link_of(link), self.now);
        }
        let element = &mut self.links[link as usize];
        element.arrive(self.now, packet, lane, self.visits, &mut self.pool, &mut self.drops);
        let next = element.next_event();
        self.settle(link, next);
    }

    /// Call this after each call to a link, with its next event: puts that on the agenda and handles the link's drops.
    #[inline(always)]
    fn settle(&mut self, link: u32, next: Time) {
        self.agenda.set(link, next);
        self.settle_rest(link);
        if self.divided.is_some() {
            self.set_aside(link);
        }
    }

    /// As [`Network::settle`], but for the agenda.
    #[inline(always)]
    fn settle_rest(&mut self, link: u32) {
        if !self.drops.packets.is_empty() || !self.drops.noted.is_empty() {
            self.settle_drops(link);
        }
        if link >= self.configured {
            self.settle_made(link);
        }
    }

    /// A link instance may be idle now.
    fn settle_made(&mut self, link: u32) {
        let later = self.later[(link - self.configured) as usize];
        if let Later::Made { made, place } = later
            && self.links[link as usize].is_idle()
        {
            self.made[made as usize].idle(place, self.now);
        }
    }

    fn settle_drops(&mut self, link: u32) {
        while let Some((lane, what)) = self.drops.noted.pop_front() {
            self.links[link as usize].count(lane, what);
        }
        while let Some((packet, reason)) = self.drops.packets.pop_front() {
            self.links[link as usize].count_drop(packet, reason, &self.pool);
            if self.pool.keeps_passed() {
                self.pool.pass(packet, self.now);
            }
            let at = Some(Element::Link(self.link_of(link)));
            self.decide(packet, Verdict::Dropped { at, reason });
        }
    }

    /// Gives a packet its verdict. Returns its length.
    #[inline(always)]
    fn decide(&mut self, packet: PacketRef, verdict: Verdict) -> u32 {
        self.decided.push_back(Decided::new(self.now, packet, verdict));
        self.pool.leave(packet)
    }

    /// Takes the oldest verdict. Its packet stays in the pool until it is removed.
    #[inline]
    pub(crate) fn take_decided(&mut self) -> Option<Decided> {
        self.decided.pop_front()
    }

    /// Packets without a verdict.
    pub(crate) fn inside(&self) -> u64 {
        self.pool.len()
    }
}

/// Resolves a pipe of the rule set `rules`, given the link with the pipe's name.
fn find_pipe(rules: &str, pipe: &PipeConfig, link: Option<Named>) -> Result<Pipe, BuildError> {
    match link {
        Some(link) if link.lanes < 2 => Err(BuildError::TooMany("lanes")),
        Some(link) => Ok(Pipe { link, mark: pipe.mark }),
        None => {
            let target = Target::Link { name: pipe.link.clone(), lane: 0 };
            Err(BuildError::NoSuchTarget { from: rules.into(), target })
        }
    }
}
