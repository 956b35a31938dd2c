//! Links joined into a network of ports.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::agenda::Agenda;
use crate::counters::{DropReason, Tally};
use crate::link::{Change, Link, LinkConfig, LinkView, Question};
use crate::packet::{Packet, PacketId};
use crate::pool::{PacketRef, Pool};
use crate::queue::Drops;
use crate::random::{self, Seed};
use crate::time::Time;
use crate::units::Bytes;

/// Where packets enter and leave the network. Ports are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u16);

impl PortId {
    pub(crate) const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Its number among the ports.
    pub const fn index(self) -> u16 {
        self.0
    }
}

/// A link. Links are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Its number among the links.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Where a packet goes next, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out of the network.
    Port(String),
    /// Into one lane of a link.
    Link {
        /// The link's name.
        name: String,
        /// 0 for a link of one direction.
        lane: u8,
    },
}

/// Links and ports, and what holds for all of them.
#[derive(Debug)]
pub struct NetworkConfig {
    /// The seed of every random draw.
    pub seed: Seed,
    /// The ports.
    pub ports: Vec<PortConfig>,
    /// The links.
    pub links: Vec<LinkConfig>,
    /// The most bytes that the network holds, frames with 128 bytes each for the engine's own records. What comes in
    /// or is copied beyond is dropped with [`DropReason::Memory`].
    pub memory: Bytes,
    /// The most elements that a packet visits before it is dropped with [`DropReason::Loop`].
    pub visits: u8,
}

impl NetworkConfig {
    /// One gibibyte, and 64 visits.
    pub fn new(seed: Seed) -> Self {
        Self { seed, ports: Vec::new(), links: Vec::new(), memory: Bytes::new(1 << 30), visits: 64 }
    }
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Unique among the ports. Part of the key of random draws.
    pub name: String,
    /// Where packets go that enter here.
    pub entry: Target,
}

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Two links or two ports have this name.
    NameTaken(String),
    /// `from` sends packets to a port, link or lane that does not exist.
    NoSuchTarget {
        /// The port or link.
        from: String,
        /// What it names.
        target: Target,
    },
    /// The names of these two ports happen to have the same hash, and so would share random draws.
    NamesCollide(String, String),
    /// More ports (65,535), links (2³² − 2) or lanes of a link (255) than can be numbered, or a link without any lane.
    TooMany(&'static str),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(f, "two elements are called `{name}`"),
            Self::NoSuchTarget { from, target } => match target {
                Target::Port(port) => write!(f, "`{from}` leads to port `{port}`, which does not exist"),
                Target::Link { name, lane } => {
                    write!(f, "`{from}` leads to lane {lane} of link `{name}`, which does not exist")
                }
            },
            Self::NamesCollide(a, b) => {
                write!(f, "ports `{a}` and `{b}` would share random draws: rename one of them")
            }
            Self::TooMany(what) => write!(f, "a wrong number of {what}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It left by this port.
    Delivered(PortId),
    /// It was dropped.
    Dropped {
        /// Where; nothing when the network as a whole refused it.
        link: Option<LinkId>,
        /// Why.
        reason: DropReason,
    },
}

#[derive(Clone, Copy, Debug)]
enum Hop {
    Port(PortId),
    Link { link: u32, lane: u8 },
}

/// The arrivals and deliveries of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Handed in here.
    pub arrived: Tally,
    /// Delivered here.
    pub delivered: Tally,
    /// Refused at the entrance, because the network held as much as it may.
    pub refused: Tally,
}

#[derive(Debug)]
struct Port {
    name: String,
    entry: Hop,
    arrivals: u64,
    counters: PortCounters,
}

/// A packet that has its verdict and waits to be polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub(crate) at: Time,
    pub(crate) packet: PacketRef,
    pub(crate) verdict: Verdict,
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) pool: Pool,
    links: Vec<Link>,
    exits: Vec<Vec<Hop>>,
    /// Those where packets may wait for answers, in order.
    asking: Vec<u32>,
    ports: Vec<Port>,
    agenda: Agenda,
    decided: VecDeque<Decided>,
    visits: u8,
    now: Time,
    /// What links dropped in the call that is being handled.
    drops: Drops,
}

impl Network {
    pub(crate) fn new(mut config: NetworkConfig) -> Result<Self, BuildError> {
        config.links.sort_by(|a, b| a.name.cmp(&b.name));
        config.ports.sort_by(|a, b| a.name.cmp(&b.name));
        let names = Names::new(&config)?;
        let mut exits = Vec::with_capacity(config.links.len());
        for link in &config.links {
            let hops = link.lanes.iter().map(|target| names.hop(&link.name, target));
            exits.push(hops.collect::<Result<Vec<_>, _>>()?);
        }
        let mut ports = Vec::with_capacity(config.ports.len());
        for port in &config.ports {
            let (name, entry) = (port.name.clone(), names.hop(&port.name, &port.entry)?);
            ports.push(Port { name, entry, arrivals: 0, counters: PortCounters::default() });
        }
        let mut pool = Pool::new(config.memory);
        pool.origins = origins(&ports)?;
        let cyclic = cyclic(&exits);
        let seed = config.seed;
        let links: Vec<_> = config
            .links
            .into_iter()
            .zip(cyclic)
            .zip(0..)
            .map(|((link, cyclic), number)| Link::new(link, seed, cyclic.then_some(number)))
            .collect();
        let asking = (0..).zip(&links).filter(|(_, link)| link.asks()).map(|(number, _)| number).collect();
        Ok(Self {
            pool,
            asking,
            agenda: Agenda::new(links.len()),
            links,
            exits,
            ports,
            decided: VecDeque::new(),
            visits: config.visits,
            now: Time::ZERO,
            drops: Drops::default(),
        })
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

    /// Handles all events up to and including `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some((at, element)) = self.agenda.first()
            && at <= now
        {
            self.step(at, element);
        }
        self.now = self.now.max(now);
    }

    /// Handles events up to and including `now` until there is a verdict to be polled; returns whether there is.
    #[inline]
    pub(crate) fn decide_next(&mut self, now: Time) -> bool {
        while self.decided.is_empty() {
            match self.agenda.first() {
                Some((at, element)) if at <= now => self.step(at, element),
                _ => {
                    self.now = self.now.max(now);
                    return false;
                }
            }
        }
        true
    }

    /// Handles one event of an element.
    fn step(&mut self, at: Time, element: u32) {
        self.now = at;
        let link = &mut self.links[element as usize];
        let left = link.step(at, &mut self.pool, &mut self.drops);
        self.settle(element);
        // At most one packet leaves in a step, so forwarding it goes one level deep: to a port, or to the entrance
        // of a link, whose own packets leave by later steps.
        if let Some((packet, lane)) = left {
            self.forward(packet, self.exits[element as usize][usize::from(lane)]);
        }
    }

    #[inline]
    pub(crate) fn arrive<B>(&mut self, port: PortId, packet: &Packet<B>) -> (PacketId, PacketRef) {
        let from = &mut self.ports[usize::from(port.index())];
        let id = PacketId::new(port, from.arrivals);
        from.arrivals += 1;
        from.counters.arrived.add(packet.length);
        let entry = from.entry;
        let packet = self.pool.insert(id, self.now, packet);
        if self.pool.is_beyond_memory() {
            let length = self.decide(packet, Verdict::Dropped { link: None, reason: DropReason::Memory });
            self.ports[usize::from(port.index())].counters.refused.add(length);
        } else {
            self.forward(packet, entry);
        }
        (id, packet)
    }

    pub(crate) fn change(&mut self, link: LinkId, change: Change) {
        self.links[link.0 as usize].change(self.now, change, &mut self.pool, &mut self.drops);
        if self.links[link.0 as usize].asks()
            && let Err(place) = self.asking.binary_search(&link.0)
        {
            self.asking.insert(place, link.0);
        }
        self.settle(link.0);
    }

    pub(crate) fn feed(&mut self, link: LinkId, feed: &str, values: &[i64]) -> usize {
        let element = &mut self.links[link.0 as usize];
        let taken = element.feed(self.now, feed, values, &mut self.pool, &mut self.drops);
        self.settle(link.0);
        taken
    }

    pub(crate) fn take_questions(&mut self, to: &mut Vec<Question>) {
        for &link in &self.asking {
            self.links[link as usize].take_questions(LinkId(link), to);
        }
    }

    /// Brings a packet to where it goes next.
    #[inline]
    fn forward(&mut self, packet: PacketRef, hop: Hop) {
        match hop {
            Hop::Port(port) => {
                let length = self.decide(packet, Verdict::Delivered(port));
                self.ports[usize::from(port.index())].counters.delivered.add(length);
            }
            Hop::Link { link, lane } => self.visit(packet, link, lane),
        }
    }

    fn visit(&mut self, packet: PacketRef, link: u32, lane: u8) {
        let state = self.pool.get_mut(packet);
        let too_many = state.visits >= self.visits;
        state.visits = state.visits.saturating_add(1);
        let element = &mut self.links[link as usize];
        if too_many {
            element.refuse(self.now, packet, lane, &mut self.pool, &mut self.drops);
        } else {
            element.arrive(self.now, packet, lane, &mut self.pool, &mut self.drops);
        }
        self.settle(link);
    }

    /// After a call to a link: its next event, and its drops.
    #[inline(always)]
    fn settle(&mut self, link: u32) {
        self.agenda.set(link, self.links[link as usize].next_event());
        if !self.drops.packets.is_empty() || !self.drops.noted.is_empty() {
            self.settle_drops(link);
        }
    }

    fn settle_drops(&mut self, link: u32) {
        while let Some((lane, what)) = self.drops.noted.pop_front() {
            self.links[link as usize].count(lane, what);
        }
        while let Some((packet, reason)) = self.drops.packets.pop_front() {
            self.links[link as usize].count_drop(packet, reason, &self.pool);
            self.decide(packet, Verdict::Dropped { link: Some(LinkId(link)), reason });
        }
    }

    /// Gives a packet its verdict; returns its length.
    #[inline]
    fn decide(&mut self, packet: PacketRef, verdict: Verdict) -> u32 {
        self.decided.push_back(Decided { at: self.now, packet, verdict });
        self.pool.leave(packet)
    }

    /// Takes the oldest verdict; its packet stays in the pool until it is removed.
    #[inline]
    pub(crate) fn take_decided(&mut self) -> Option<Decided> {
        self.decided.pop_front()
    }

    /// Packets that have no verdict yet.
    pub(crate) fn inside(&self) -> u64 {
        self.pool.len()
    }

    pub(crate) fn link_id(&self, name: &str) -> Option<LinkId> {
        self.links.binary_search_by(|l| l.name.as_str().cmp(name)).ok().map(|at| LinkId(at as u32))
    }

    pub(crate) fn port_id(&self, name: &str) -> Option<PortId> {
        self.ports.binary_search_by(|p| p.name.as_str().cmp(name)).ok().map(|at| PortId(at as u16))
    }

    pub(crate) fn link(&self, link: LinkId) -> LinkView<'_> {
        self.links[link.0 as usize].view()
    }

    pub(crate) fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    pub(crate) fn ports(&self) -> impl ExactSizeIterator<Item = PortId> + use<> {
        (0..self.ports.len() as u16).map(PortId)
    }

    pub(crate) fn port(&self, port: PortId) -> (&str, PortCounters) {
        let port = &self.ports[usize::from(port.index())];
        (&port.name, port.counters)
    }
}

/// The numbers behind names, and how many lanes each link has.
struct Names<'a> {
    ports: BTreeMap<&'a str, PortId>,
    links: BTreeMap<&'a str, (u32, usize)>,
}

impl<'a> Names<'a> {
    fn new(config: &'a NetworkConfig) -> Result<Self, BuildError> {
        if config.ports.len() > usize::from(u16::MAX) {
            return Err(BuildError::TooMany("ports"));
        }
        if config.links.len() >= u32::MAX as usize {
            return Err(BuildError::TooMany("links"));
        }
        if config.links.iter().any(|link| !(1..=usize::from(u8::MAX)).contains(&link.lanes.len())) {
            return Err(BuildError::TooMany("lanes"));
        }
        let mut names = Self { ports: BTreeMap::new(), links: BTreeMap::new() };
        for (index, port) in config.ports.iter().enumerate() {
            if names.ports.insert(&port.name, PortId(index as u16)).is_some() {
                return Err(BuildError::NameTaken(port.name.clone()));
            }
        }
        for (index, link) in config.links.iter().enumerate() {
            if names.links.insert(&link.name, (index as u32, link.lanes.len())).is_some() {
                return Err(BuildError::NameTaken(link.name.clone()));
            }
        }
        Ok(names)
    }

    fn hop(&self, from: &str, target: &Target) -> Result<Hop, BuildError> {
        let hop = match target {
            Target::Port(name) => self.ports.get(name.as_str()).map(|&port| Hop::Port(port)),
            Target::Link { name, lane } => match self.links.get(name.as_str()) {
                Some(&(link, lanes)) if usize::from(*lane) < lanes => Some(Hop::Link { link, lane: *lane }),
                _ => None,
            },
        };
        hop.ok_or_else(|| BuildError::NoSuchTarget { from: from.into(), target: target.clone() })
    }
}

/// What stands for each port in the keys of draws.
fn origins(ports: &[Port]) -> Result<Vec<u32>, BuildError> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::with_capacity(ports.len());
    for port in ports {
        let origin = random::origin(&port.name);
        if let Some(other) = seen.insert(origin, &port.name) {
            return Err(BuildError::NamesCollide(other.clone(), port.name.clone()));
        }
        all.push(origin);
    }
    Ok(all)
}

/// Which links a packet can come back to: those on a cycle of exits. A link is on one unless it can be taken away by
/// peeling off, again and again, links that no remaining link leads to or that lead to no remaining link. (What lies
/// between two cycles stays too, which only means that its draws are keyed by the visit.)
fn cyclic(exits: &[Vec<Hop>]) -> Vec<bool> {
    let next = |link: usize| {
        exits[link].iter().filter_map(|hop| match hop {
            Hop::Link { link, .. } => Some(*link as usize),
            Hop::Port(_) => None,
        })
    };
    let mut entrances = vec![0usize; exits.len()];
    (0..exits.len()).flat_map(next).for_each(|to| entrances[to] += 1);
    let mut loose: Vec<usize> = (0..exits.len()).filter(|&link| entrances[link] == 0).collect();
    let mut cyclic = vec![true; exits.len()];
    while let Some(link) = loose.pop() {
        cyclic[link] = false;
        for to in next(link) {
            entrances[to] -= 1;
            if entrances[to] == 0 {
                loose.push(to);
            }
        }
    }
    cyclic
}
