//! The engine: packets in, events out.

use alloc::vec::Vec;

use crate::id::{Element, LinkId, PortId, RouterId, RulesId};
use crate::link::{Change, LinkConfig, LinkView, Question};
use crate::network::{
    BuildError, Network, NetworkConfig, Parts, PortCounters, RouterCounters, RulesChange, RulesCounters,
    Verdict,
};
use crate::packet::{FlowKey, Fragment, Packet, PacketId};
use crate::pool::Pool;
use crate::rules::{PreparedRules, RuleSet};
use crate::time::{Duration, Time};

/// The engine of an emulated network.
///
/// Packets and changes are handed in with their instants, in order; [`Engine::poll`] gives every delivery and every
/// drop with the instant at which it was scheduled. When, how often and how late it is polled changes no event: before
/// an input at t, all events up to t are handled. An input that is earlier than what has been handled already is taken
/// as if it came now, and counted ([`Engine::stragglers`]).
///
/// ```
/// use narrows_core::*;
///
/// let mut link = LinkConfig::new("wire", Target::Port("b".into()));
/// link.service = Box::new(service::ConstantRate(Rate::from_bits_per_second(1_000_000)));
/// link.delay = Box::new(model::Constant(Duration::from_millis(50)));
/// let entry = Target::Link { name: "wire".into(), lane: 0 };
/// let mut config = NetworkConfig::new(Seed(1));
/// config.links.push(link);
/// config.ports.push(PortConfig { name: "a".into(), entry });
/// config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
///
/// let mut engine = Engine::new(config)?;
/// let a = engine.port("a").expect("it was just configured");
/// let packet = Packet { length: 1000, link_header: 14, network_header: 20, headers: Default::default(), key: FlowKey::default(), body: "hello" };
/// engine.hand_in(Time::ZERO, a, packet);
/// let due = engine.next_event().expect("a packet is inside");
/// engine.poll(due); // the end of the transmission: nothing leaves yet
/// let event = engine.poll(Time::from_nanos(58_000_000)).expect("it has arrived");
/// assert_eq!(event.at, Time::from_nanos(58_000_000)); // 1000 bytes at 1 Mbit/s, and 50 ms
/// assert!(matches!(event.body, Body::Last("hello")));
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug)]
pub struct Engine<B> {
    network: Network,
    /// The body of a packet lies at the index of its slot in the pool.
    bodies: Vec<Option<B>>,
    stragglers: u64,
}

/// A packet left the network.
// In this order there is no padding before the key. Where there is, the compiler copies both by way of the stack, in
// pieces that the processor cannot forward, and a poll takes a fifth longer.
#[derive(Debug)]
#[repr(C)]
pub struct Event<'a, B> {
    /// The instant at which it was scheduled to.
    pub at: Time,
    /// When it was handed in.
    pub arrival: Time,
    /// How long it waited in queues.
    pub queued: Duration,
    /// Which packet.
    pub id: PacketId,
    /// How it left.
    pub verdict: Verdict,
    /// Its length from the network header on; of a fragment, its own.
    pub length: u32,
    /// Its key as it is now: where the traffic class differs from what the body says, the header is to be changed.
    pub key: FlowKey,
    /// 0 for the packet that came in; duplicates and fragments have other numbers.
    pub copy: u16,
    /// How many routers it has passed: by so much its hop limit is to be lowered.
    pub hops: u8,
    /// Bytes of link header before the network header.
    pub link_header: u8,
    /// Which piece of the packet that came in this is, if it was cut.
    pub fragment: Option<Fragment>,
    /// Bits to flip, counted from the network header of what is delivered.
    pub flips: Vec<u32>,
    /// The body.
    pub body: Body<'a, B>,
}

/// The body of a packet that leaves. Each body that was handed in comes back as [`Body::Last`] exactly once.
#[derive(Debug)]
pub enum Body<'a, B> {
    /// No packet inside uses it any more.
    Last(B),
    /// A copy of the packet is still inside.
    Shared(&'a B),
}

impl<B> Body<'_, B> {
    /// The body, wherever it is.
    pub fn get(&self) -> &B {
        match self {
            Self::Last(body) => body,
            Self::Shared(body) => body,
        }
    }
}

impl<B> Engine<B> {
    /// Builds the network.
    ///
    /// # Errors
    /// When names are taken twice or lead nowhere: see [`BuildError`].
    pub fn new(config: NetworkConfig) -> Result<Self, BuildError> {
        Ok(Self { network: Network::new(config)?, bodies: Vec::new(), stragglers: 0 })
    }

    /// A packet arrives at `port` at the instant `at`. May move [`Engine::next_event`] either way.
    pub fn hand_in(&mut self, at: Time, port: PortId, packet: Packet<B>) -> PacketId {
        self.catch_up(at);
        let (id, inside) = self.network.arrive(port, &packet);
        let slot = Pool::slot(inside);
        if slot >= self.bodies.len() {
            self.make_room();
        }
        self.bodies[slot] = Some(packet.body);
        id
    }

    /// Grows with the pool; by an eighth rather than doubling, to keep to the memory that a packet may take.
    #[cold]
    fn make_room(&mut self) {
        let slots = self.network.pool.slots();
        if slots > self.bodies.capacity() {
            let more = (slots - self.bodies.len()).max(self.bodies.len() / 8);
            self.bodies.reserve_exact(more);
        }
        self.bodies.resize_with(slots, || None);
    }

    /// Changes a link at the instant `at`. May move [`Engine::next_event`] either way.
    pub fn change(&mut self, at: Time, link: LinkId, change: Change) {
        self.catch_up(at);
        self.network.change(link, change);
    }

    /// Hands values to a feed of a link at the instant `at`: those that are used up to then are the earlier ones. Returns
    /// how many of them were taken, from the first on; the others did not fit ([`FeedView::room`](crate::FeedView::room)),
    /// or there is no such feed. May move [`Engine::next_event`] either way.
    pub fn feed(&mut self, at: Time, link: LinkId, feed: &str, values: &[i64]) -> usize {
        self.catch_up(at);
        self.network.feed(link, feed, values)
    }

    /// Adds a link at the instant `at`, for rules that will send packets there; it gets the next number.
    ///
    /// # Errors
    /// When its name is taken or a lane leads nowhere; then nothing has changed.
    pub fn add_link(&mut self, at: Time, config: LinkConfig) -> Result<LinkId, BuildError> {
        self.catch_up(at);
        self.network.add_link(config)
    }

    /// Changes a set of rules at the instant `at`.
    ///
    /// # Errors
    /// When a rule is wrong or a pipe leads nowhere; then nothing has changed.
    pub fn change_rules(&mut self, at: Time, rules: RulesId, change: RulesChange) -> Result<(), BuildError> {
        self.catch_up(at);
        self.network.change_rules(rules, change)
    }

    /// Puts other rules in the place of a set's at the instant `at`: see [`RuleSet::replace`]. Gives back those that were
    /// there, as it may take longer to drop them.
    pub fn replace_rules(&mut self, at: Time, rules: RulesId, with: PreparedRules) -> PreparedRules {
        self.catch_up(at);
        self.network.replace_rules(rules, with)
    }

    /// Hands out the questions that packets have asked since this was called last, those of each feed in their order.
    /// Whether and when they are taken changes no event.
    pub fn take_questions(&mut self, to: &mut Vec<Question>) {
        self.network.take_questions(to);
    }

    /// When there will be something to poll for, at the earliest: some internal step or event is due then. Nothing when
    /// the network is at rest.
    pub fn next_event(&self) -> Option<Time> {
        self.network.next_event()
    }

    /// An instant before which nothing is delivered, unless something is handed in or changed before it: the next event, or
    /// a later one. A driver that sleeps until it, in place of waking at each event inside the network, is late for no
    /// delivery, and polling late changes nothing; but what is dropped meanwhile is told then.
    #[inline]
    pub fn next_delivery(&self) -> Option<Time> {
        self.network.next_delivery()
    }

    /// Returns the next event that is due up to and including `now`, in order. Call it until it returns nothing: only
    /// then has everything up to `now` been handled. Polling early is harmless and polling late changes nothing.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Event<'_, B>> {
        if self.network.decide_next(now) { self.report() } else { None }
    }

    fn report(&mut self) -> Option<Event<'_, B>> {
        let decided = self.network.take_decided()?;
        let hops = self.network.pool.hops(decided.packet);
        let removed = self.network.pool.remove(decided.packet);
        let kept = &mut self.bodies[removed.body_slot];
        let in_use = "a slot in use has a body until its last use";
        let body = match removed.last {
            true => Body::Last(kept.take().expect(in_use)),
            false => Body::Shared(kept.as_ref().expect(in_use)),
        };
        let state = removed.state;
        Some(Event {
            at: decided.at,
            verdict: decided.verdict(),
            id: state.id,
            copy: state.copy,
            hops,
            arrival: state.arrival,
            queued: state.queued,
            length: state.length,
            link_header: state.link_header,
            key: state.key,
            fragment: state.fragment(),
            flips: removed.flips,
            body,
        })
    }

    /// How far the engine has come: the latest instant of an input, of an event, or of a poll after which nothing was due.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// Inputs that came with an instant that had passed already.
    pub fn stragglers(&self) -> u64 {
        self.stragglers
    }

    /// Packets inside: those that have no verdict yet.
    pub fn inside(&self) -> u64 {
        self.network.inside()
    }

    /// The link of that name.
    pub fn link(&self, name: &str) -> Option<LinkId> {
        self.network.link_id(name)
    }

    /// The port of that name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.network.port_id(name)
    }

    /// All links, in the order of their names.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<B> {
        self.network.links()
    }

    /// All ports, in the order of their names.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = PortId> + use<B> {
        self.network.ports()
    }

    /// The set of rules of that name.
    pub fn rules_of(&self, name: &str) -> Option<RulesId> {
        self.network.rules_id(name)
    }

    /// The router of that name.
    pub fn router(&self, name: &str) -> Option<RouterId> {
        self.network.router_id(name)
    }

    /// All sets of rules, in the order of their names.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RulesId> + use<B> {
        self.network.rules()
    }

    /// All routers, in the order of their names.
    pub fn routers(&self) -> impl ExactSizeIterator<Item = RouterId> + use<B> {
        self.network.routers()
    }

    /// The independent parts of the network as it is now: they stay independent until rules in one get a pipe that is a link
    /// of another.
    pub fn parts(&self) -> Parts {
        self.network.parts()
    }

    /// A set of rules, to look at.
    pub fn rule_set(&self, rules: RulesId) -> &RuleSet {
        self.network.rule_set(rules).1
    }

    /// What a set of rules has counted.
    pub fn rules_counters(&self, rules: RulesId) -> RulesCounters {
        self.network.rule_set(rules).2
    }

    /// What a router has counted.
    pub fn router_counters(&self, router: RouterId) -> RouterCounters {
        self.network.router(router).1
    }

    /// The name of an element.
    pub fn element_name(&self, element: Element) -> &str {
        match element {
            Element::Link(link) => self.network.link(link).name(),
            Element::Rules(rules) => self.network.rule_set(rules).0,
            Element::Router(router) => self.network.router(router).0,
        }
    }

    /// A link, to look at.
    pub fn view(&self, link: LinkId) -> LinkView<'_> {
        self.network.link(link)
    }

    /// The name of a port.
    pub fn port_name(&self, port: PortId) -> &str {
        self.network.port(port).0
    }

    /// What a port has counted.
    pub fn port_counters(&self, port: PortId) -> PortCounters {
        self.network.port(port).1
    }

    fn catch_up(&mut self, at: Time) {
        if at < self.network.now() {
            self.stragglers += 1;
        }
        // A straggler comes after everything up to now too.
        self.network.advance(at.max(self.network.now()));
    }
}
