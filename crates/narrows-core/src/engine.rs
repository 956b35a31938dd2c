//! The engine: packets in, events out.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::{Element, LinkId, PortId, RouterId, RulesId, SwitchId};
use crate::link::{Change, LinkConfig, LinkView, Question};
use crate::network::{
    BuildError, Crossing, Network, NetworkConfig, Parts, PortCounters, Regions, RouterCounters, RulesChange,
    RulesCounters, SwitchCounters, Verdict,
};
use crate::packet::{FlowKey, Fragment, Packet, PacketId, Quoted, TcpOptions};
use crate::pool::{HeaderEdit, Passed, Pool};
use crate::rules::{Answer, PreparedRules, RuleSet};
use crate::time::{Duration, Time};

/// The engine of an emulated network.
///
/// Hand in packets and changes in time order, each with its time. [`Engine::poll`] then returns every
/// delivery and every drop with its scheduled time. When, how often and how late you poll does not change any
/// event: before an input at t, the engine handles all events up to t. An input earlier than [`Engine::now`]
/// is treated as if it came at `now`, and counted in [`Engine::stragglers`].
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
    /// The body of a packet, at the index of the packet's pool slot.
    bodies: Vec<Option<B>>,
    stragglers: u64,
}

/// A packet left the network.
// This field order leaves no padding before the key. With padding, the compiler copies both through the stack
// in pieces that break store forwarding, and a poll takes a fifth longer.
#[derive(Debug)]
#[repr(C)]
pub struct Event<'a, B> {
    /// The scheduled time of the event.
    pub at: Time,
    /// When the packet was handed in.
    pub arrival: Time,
    /// Total queueing time.
    pub queued: Duration,
    /// The packet's id.
    pub id: PacketId,
    /// Delivered or dropped, where and why.
    pub verdict: Verdict,
    /// Length in bytes from the network header on; for a fragment, the fragment's own length.
    pub length: u32,
    /// The current flow key. If its traffic class differs from the one in the body, the caller must rewrite
    /// the header.
    pub key: FlowKey,
    /// 0 for the packet that was handed in; duplicates and fragments have other numbers.
    pub copy: u16,
    /// Routers passed: the caller must decrement the hop limit by this number.
    pub hops: u8,
    /// Bytes of link header before the network header.
    pub link_header: u8,
    /// What the sender is told, if a rule rejected the packet: the caller may make that answer.
    pub answer: Option<Answer>,
    /// How the link header differs from that in the body; the caller must rewrite it. Boxed because few packets
    /// have it, and events are moved often.
    pub header_edit: Option<Box<HeaderEdit>>,
    /// For a fragment, which piece of the original packet it is.
    pub fragment: Option<Fragment>,
    /// Offsets of the bits to flip, counted from the network header of the delivered packet.
    pub flips: Vec<u32>,
    /// The links that the packet has passed, in order, with the one that dropped it; empty unless
    /// [`Engine::keep_passed`] asked for them.
    pub passed: &'a [Passed],
    /// The body.
    pub body: Body<'a, B>,
}

/// The body of a packet that leaves. Each body that was handed in is returned as [`Body::Last`] exactly once.
#[derive(Debug)]
pub enum Body<'a, B> {
    /// No packet inside the network uses the body any more; the caller owns it again.
    Last(B),
    /// A copy of the packet is still inside the network.
    Shared(&'a B),
}

impl<B> Body<'_, B> {
    /// A reference to the body in either case.
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
    /// If a name is used twice or a target does not exist: see [`BuildError`].
    pub fn new(config: NetworkConfig) -> Result<Self, BuildError> {
        Ok(Self { network: Network::new(config)?, bodies: Vec::new(), stragglers: 0 })
    }

    /// Keeps, or no longer keeps, the links that packets pass and when, for [`Event::passed`]: of packets that reach
    /// a link from now on. It costs memory for each packet inside, and changes no verdict.
    pub fn keep_passed(&mut self, keeps: bool) {
        self.network.pool.keep_passed(keeps);
    }

    /// Hands in a packet that arrives at `port` at time `at`. May move [`Engine::next_event`] earlier or
    /// later.
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

    /// Whether a queue compares the options of TCP segments. They are then to be told by [`Engine::set_tcp_options`], and
    /// change verdicts.
    pub const fn looks_at_tcp_options(&self) -> bool {
        self.network.pool.keeps_tcp_options()
    }

    /// The packet that is handed in next is a TCP segment with these options.
    pub fn set_tcp_options(&mut self, options: TcpOptions) {
        self.network.pool.set_next_tcp_options(options);
    }

    /// Whether a translator looks at the packets that ICMP errors quote. They are then to be told by
    /// [`Engine::set_quoted`], and change verdicts.
    pub const fn looks_at_quoted(&self) -> bool {
        self.network.pool.keeps_quoted()
    }

    /// The packet that is handed in next is an ICMP error that quotes this packet.
    pub fn set_quoted(&mut self, quoted: Quoted) {
        self.network.pool.set_next_quoted(quoted);
    }

    /// Grows with the pool: by an eighth instead of doubling, to stay within the memory allowed per packet.
    #[cold]
    fn make_room(&mut self) {
        let slots = self.network.pool.slots();
        if slots > self.bodies.capacity() {
            let more = (slots - self.bodies.len()).max(self.bodies.len() / 8);
            self.bodies.reserve_exact(more);
        }
        self.bodies.resize_with(slots, || None);
    }

    /// Changes a link at time `at`. May move [`Engine::next_event`] earlier or later.
    pub fn change(&mut self, at: Time, link: LinkId, change: Change) {
        self.catch_up(at);
        self.network.change(link, change);
    }

    /// Hands values to a feed of a link at time `at`; decisions up to `at` use only values handed in earlier.
    /// Returns how many values were taken, counted from the first. The others did not fit
    /// ([`FeedView::room`](crate::FeedView::room)), or the feed does not exist. May move
    /// [`Engine::next_event`] earlier or later.
    pub fn feed(&mut self, at: Time, link: LinkId, feed: &str, values: &[i64]) -> usize {
        self.catch_up(at);
        self.network.feed(link, feed, values)
    }

    /// Adds a link at time `at`, for rules that will send packets to it. It gets the next link number.
    ///
    /// # Errors
    /// If its name is taken or the target of a lane does not exist. The network is then unchanged.
    pub fn add_link(&mut self, at: Time, config: LinkConfig) -> Result<LinkId, BuildError> {
        self.catch_up(at);
        self.network.add_link(config)
    }

    /// Changes a rule set at time `at`.
    ///
    /// # Errors
    /// If a rule is invalid or the target of a pipe does not exist. The network is then unchanged.
    pub fn change_rules(&mut self, at: Time, rules: RulesId, change: RulesChange) -> Result<(), BuildError> {
        self.catch_up(at);
        self.network.change_rules(rules, change)
    }

    /// Replaces the rules of a rule set at time `at`: see [`RuleSet::replace`]. Returns the old rules,
    /// because freeing them may take longer than replacing them.
    pub fn replace_rules(&mut self, at: Time, rules: RulesId, with: PreparedRules) -> PreparedRules {
        self.catch_up(at);
        self.network.replace_rules(rules, with)
    }

    /// Appends the questions that packets have asked since the last call to `to`, in order within each feed.
    /// Whether and when you call this changes no event.
    pub fn take_questions(&mut self, to: &mut Vec<Question>) {
        self.network.take_questions(to);
    }

    /// The earliest time at which there may be something to poll: some internal step or event is due then.
    /// `None` if nothing is scheduled.
    pub fn next_event(&self) -> Option<Time> {
        self.network.next_event()
    }

    /// A time before which nothing is delivered, unless something is handed in or changed earlier: the next
    /// event, or later. A driver that sleeps until then, instead of waking for each event inside the network,
    /// delays no delivery. Polling late changes no event, but drops in the meantime are reported only then.
    #[inline]
    pub fn next_delivery(&self) -> Option<Time> {
        self.network.next_delivery()
    }

    /// How long every packet handed in from now on stays inside at least, unless something is changed: none is delivered
    /// sooner, and none is dropped for a reason that its sender is told of. Zero where it is not known. A driver that reads
    /// packets late by less than this delays no delivery.
    pub fn least_transit(&self) -> Duration {
        self.network.least_transit()
    }

    /// Returns the next event due at or before `now`, in order. Call it until it returns `None`: only then
    /// has the engine handled everything up to `now`. Polling early is harmless and polling late changes no
    /// event.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Event<'_, B>> {
        if self.network.decide_next(now) { self.report() } else { None }
    }

    fn report(&mut self) -> Option<Event<'_, B>> {
        let decided = self.network.take_decided()?;
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
            answer: decided.answer(),
            id: state.id,
            copy: state.copy,
            hops: removed.hops,
            arrival: state.arrival,
            queued: state.queued,
            length: state.length,
            link_header: state.link_header,
            header_edit: removed.header_edit,
            key: state.key,
            fragment: state.fragment(),
            flips: removed.flips,
            passed: removed.passed,
            body,
        })
    }

    /// The engine's current time: the latest time of an input, of an event, or of a poll that returned
    /// `None`.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// Inputs handed in with a time that had already passed.
    pub fn stragglers(&self) -> u64 {
        self.stragglers
    }

    /// Packets inside the network: those without a verdict.
    pub fn inside(&self) -> u64 {
        self.network.inside()
    }

    /// The link with this name.
    pub fn link(&self, name: &str) -> Option<LinkId> {
        self.network.link_id(name)
    }

    /// The port with this name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.network.port_id(name)
    }

    /// All links: the configured ones by name, then added ones in the order they were added.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<B> {
        self.network.links()
    }

    /// All ports, by name.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = PortId> + use<B> {
        self.network.ports()
    }

    /// The rule set with this name.
    pub fn rules_of(&self, name: &str) -> Option<RulesId> {
        self.network.rules_id(name)
    }

    /// The router with this name.
    pub fn router(&self, name: &str) -> Option<RouterId> {
        self.network.router_id(name)
    }

    /// All rule sets, by name.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RulesId> + use<B> {
        self.network.rules()
    }

    /// All routers, by name.
    pub fn routers(&self) -> impl ExactSizeIterator<Item = RouterId> + use<B> {
        self.network.routers()
    }

    /// The switch with this name.
    pub fn switch(&self, name: &str) -> Option<SwitchId> {
        self.network.switch_id(name)
    }

    /// All switches, by name.
    pub fn switches(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<B> {
        self.network.switches()
    }

    /// The independent components of the network as it is now. They stay independent until a rule set in one
    /// gets a pipe whose link is in another.
    pub fn parts(&self) -> Parts {
        self.network.parts()
    }

    /// Whether several engines can carry this network together, each a share of it: see [`Engine::lead_away`]. Not with
    /// instances of links, switches, or links that duplicate or fragment packets.
    pub fn is_divisible(&self) -> bool {
        self.network.is_divisible()
    }

    /// The delay of a link at which the network can be divided: it has one direction and a constant delay, and does nothing
    /// else to packets in flight.
    pub fn crossing_delay(&self, link: LinkId) -> Option<Duration> {
        self.network.crossing_delay(link)
    }

    /// Whether a link may make copies of packets, or cut them to fragments.
    pub fn makes_copies(&self, link: LinkId) -> bool {
        self.network.makes_copies(link)
    }

    /// The regions of the network as it is now, between which packets take at least `least` on a link: what different
    /// engines may carry. Each two ports in `together` are in one. `None` if it is not [divisible](Engine::is_divisible).
    pub fn regions(&self, least: Duration, together: &[(PortId, PortId)]) -> Option<Regions> {
        self.is_divisible().then(|| self.network.regions(least, together))
    }

    /// From now on, other engines of the same network have what is in flight on these links, which have a
    /// [`Engine::crossing_delay`]. Call it in each of the engines, also for no link.
    ///
    /// Each engine is handed only what arrives at its own ports. Take what has begun to cross
    /// ([`Engine::take_crossing`]) and hand it to the engine where the link's packets arrive ([`Engine::take_over`])
    /// before that engine is polled beyond the instant when it began to cross and the link's delay.
    ///
    /// Changes are made in all engines. Events of different engines are then in the order of a single engine if they are
    /// sorted by time and, at one instant, by [`Engine::turn`], with what follows from a change or an input at that instant
    /// behind all that does not.
    pub fn lead_away(&mut self, links: impl IntoIterator<Item = LinkId>) {
        self.network.lead_away(links);
    }

    /// Takes the packets that have begun to cross to other engines, in order for each link. Returns false if one of them
    /// stays because there are copies of it: a network that [is divisible](Engine::is_divisible) has some only after a queue
    /// has made them.
    pub fn take_crossing(&mut self, mut each: impl FnMut(Crossing<B>)) -> bool {
        let mut all_left = true;
        let Self { network, bodies, .. } = self;
        network.take_leaving(|element, packet, left| {
            match left.and_then(|left| Some((left, bodies[Pool::slot(packet)].take()?))) {
                Some((packet, body)) => each(Crossing { element, packet, body }),
                None => all_left = false,
            }
        });
        all_left
    }

    /// Takes over a packet from another engine of the same network. It is not refused, whatever memory the packets inside take.
    pub fn take_over(&mut self, crossing: Crossing<B>) {
        let Crossing { element, packet, body } = crossing;
        let packet = self.network.take_over(element, packet);
        let slot = Pool::slot(packet);
        if slot >= self.bodies.len() {
            self.make_room();
        }
        self.bodies[slot] = Some(body);
    }

    /// Takes over from another engine what it has of a link that leads away from this one: packets in flight and counters.
    pub fn reunite(&mut self, link: LinkId, other: &mut Self) {
        let Self { network, bodies, .. } = other;
        let mut in_flight = Vec::new();
        network.take_in_flight(link, |element, packet, left| {
            if let (Some(packet), Some(body)) = (left, bodies[Pool::slot(packet)].take()) {
                in_flight.push(Crossing { element, packet, body });
            }
        });
        for crossing in in_flight {
            self.take_over(crossing);
        }
        self.network.add_counters(link, &mut other.network);
    }

    /// The memory that the packets inside take, as the limit counts it. Several engines that carry a network together refuse no
    /// packet that a single one would take, and take none that it would refuse, as long as all of them together stay within
    /// the limit.
    pub const fn memory_used(&self) -> u64 {
        self.network.pool.memory_used()
    }

    /// The memory that a packet will take.
    pub fn memory_of(packet: &Packet<B>) -> u64 {
        Pool::memory_of(packet)
    }

    /// The place of the latest event in the order of events at its instant, since the latest [`Engine::change`]. 0 in an
    /// engine that carries a network alone.
    pub fn turn(&self) -> u32 {
        self.network.turn()
    }

    /// How many packets have come from other engines ([`Engine::take_over`]), and how many went there.
    pub fn crossed(&self) -> (u64, u64) {
        self.network.crossed()
    }

    /// A rule set, for inspection.
    pub fn rule_set(&self, rules: RulesId) -> &RuleSet {
        self.network.rule_set(rules).1
    }

    /// The counters of a rule set.
    pub fn rules_counters(&self, rules: RulesId) -> RulesCounters {
        self.network.rule_set(rules).2
    }

    /// The counters of a router.
    pub fn router_counters(&self, router: RouterId) -> RouterCounters {
        self.network.router(router).1
    }

    /// The counters of a switch.
    pub fn switch_counters(&self, switch: SwitchId) -> SwitchCounters {
        self.network.switch(switch).1
    }

    /// How many link addresses a switch knows now.
    pub fn known_addresses(&self, switch: SwitchId) -> usize {
        self.network.switch(switch).2
    }

    /// The name of an element.
    pub fn element_name(&self, element: Element) -> &str {
        match element {
            Element::Link(link) => self.network.link(link).name(),
            Element::Rules(rules) => self.network.rule_set(rules).0,
            Element::Router(router) => self.network.router(router).0,
            Element::Switch(switch) => self.network.switch(switch).0,
        }
    }

    /// A link, for inspection.
    pub fn view(&self, link: LinkId) -> LinkView<'_> {
        self.network.link(link)
    }

    /// The name of a port.
    pub fn port_name(&self, port: PortId) -> &str {
        self.network.port(port).0
    }

    /// The counters of a port.
    pub fn port_counters(&self, port: PortId) -> PortCounters {
        self.network.port(port).1
    }

    fn catch_up(&mut self, at: Time) {
        if at < self.network.now() {
            self.stragglers += 1;
        }
        // A straggler, too, comes after everything up to now.
        self.network.advance(at.max(self.network.now()));
    }
}
