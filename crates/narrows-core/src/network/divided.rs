//! A network divided among several engines, each of which carries packets in one share of it.
//!
//! All engines have the whole network. They are divided at links with a constant delay: up to its delay line such a
//! link is in one engine, and what is in flight is in another, where it arrives. A packet that begins to cross at t is
//! needed there only at t and the delay, so two engines may differ by as much in time. Draws are keyed by the packet
//! and the element, so every packet gets the verdict that a single engine gives it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Network, Parts};
use crate::id::{Element, LinkId, PortId};
use crate::pool::{PacketRef, Travelling};
use crate::time::{Duration, Time};

/// A packet in flight between two engines of one divided network.
#[derive(Debug)]
pub struct Crossing<B> {
    pub(crate) element: u32,
    pub(crate) packet: Travelling,
    pub(crate) body: B,
}

impl<B> Crossing<B> {
    /// The link.
    pub const fn link(&self) -> LinkId {
        // Only configured links divide a network.
        LinkId(self.element)
    }

    /// When it leaves the link.
    pub const fn due(&self) -> Time {
        self.packet.due()
    }
}

/// The regions of a network: elements between which packets take no time, or less than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    parts: Parts,
    /// By link: where its packets arrive.
    beyond: Vec<usize>,
}

impl Regions {
    /// The number of regions.
    pub const fn count(&self) -> usize {
        self.parts.count()
    }

    /// The region of a port.
    pub fn of_port(&self, port: PortId) -> usize {
        self.parts.of_port(port)
    }

    /// The region of an element. Of a link between two regions: the one where packets enter it.
    pub fn of_element(&self, element: Element) -> usize {
        self.parts.of_element(element)
    }

    /// The region where packets leave a link.
    pub fn beyond(&self, link: LinkId) -> usize {
        self.beyond[link.index() as usize]
    }
}

/// What an engine of a divided network has given to the others.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// By element: whether what is in flight there is another engine's.
    leads_away: Vec<bool>,
    /// The element after the greatest that has had its turn at an instant, and the instant: see [`Network::turn`].
    turn: (Time, u32),
    /// What has begun to cross since the others last took it.
    pub(super) leaving: Vec<(u32, PacketRef)>,
    /// Packets that came from other engines, and that went there.
    pub(super) came: u64,
    pub(super) went: u64,
}

impl Network {
    /// Whether parts of this network can be in different engines: no element counts or numbers what is created anywhere.
    pub(crate) fn is_divisible(&self) -> bool {
        self.made.is_empty() && self.switches.is_empty() && !self.links.iter().any(|link| link.makes_copies())
    }

    /// The delay of a link at which the network can be divided.
    pub(crate) fn crossing_delay(&self, link: LinkId) -> Option<Duration> {
        let element = self.element(link);
        if element >= self.configured as usize || self.exits.of(element as u32).len() != 1 {
            return None;
        }
        self.links[element].crossing_delay()
    }

    pub(crate) fn regions(&self, least: Duration, together: &[(PortId, PortId)]) -> Regions {
        // A pipe belongs to its rules, at both ends.
        let mut is_pipe = alloc::vec![false; self.links.len()];
        for set in &self.rules {
            set.pipes
                .values()
                .chain(set.queues.values())
                .for_each(|pipe| is_pipe[pipe.link.element as usize] = true);
        }
        let divides = |place: usize| {
            place < self.links.len()
                && !is_pipe[place]
                && self.crossing_delay(LinkId(place as u32)).is_some_and(|delay| delay >= least)
        };
        let mut groups = self.groups(divides);
        let port = |port: PortId| self.first_port() + usize::from(port.index());
        together.iter().for_each(|&(one, other)| groups.join(port(one), port(other)));
        let mut numbers = BTreeMap::new();
        let mut region = |place: usize| {
            let next = numbers.len();
            *numbers.entry(groups.first(place)).or_insert(next)
        };
        let mut parts = self.by_place(&mut region);
        let beyond = |link: usize| match (divides(link), self.exits.of(link as u32)) {
            (true, [to]) => region(self.place(to)),
            _ => parts.links[link],
        };
        let beyond = (0..parts.links.len()).map(beyond).collect();
        parts.count = numbers.len();
        Regions { parts, beyond }
    }

    /// From now on, what is in flight on these links is another engine's. Each has a [`Network::crossing_delay`].
    pub(crate) fn lead_away(&mut self, links: impl IntoIterator<Item = LinkId>) {
        let mut divided = self.divided.take().unwrap_or_default();
        divided.leads_away.resize(self.links.len(), false);
        links.into_iter().for_each(|link| divided.leads_away[self.element(link)] = true);
        self.divided = Some(divided);
    }

    pub(super) fn leads_away(&self, element: u32) -> bool {
        let all = self.divided.as_ref().map(|divided| &divided.leads_away);
        all.and_then(|all| all.get(element as usize)).is_some_and(|&away| away)
    }

    /// An element has had its turn at this instant.
    #[inline(never)]
    pub(super) fn end_turn(&mut self, element: u32) {
        if let Some(divided) = &mut self.divided {
            let (at, before) = divided.turn;
            divided.turn = (self.now, if at == self.now { before.max(element + 1) } else { element + 1 });
        }
        self.set_aside(element);
    }

    /// What follows from a change begins anew with the first element.
    pub(super) fn begin_turns(&mut self) {
        if let Some(divided) = &mut self.divided {
            divided.turn = (self.now, 0);
        }
    }

    /// Sets aside what has just entered the delay line of a link that leads away.
    pub(super) fn set_aside(&mut self, element: u32) {
        if !self.leads_away(element) {
            return;
        }
        let Some(divided) = &mut self.divided else { return };
        let link = &mut self.links[element as usize];
        let before = divided.leaving.len();
        while let Some(packet) = link.take_from_line(&mut self.pool) {
            divided.leaving.push((element, packet));
        }
        if divided.leaving.len() > before {
            self.agenda.set(element, link.next_event());
        }
    }

    /// Takes the packets that have begun to cross, in order for each link; `None` in place of one of which there are copies
    /// here.
    pub(crate) fn take_leaving(&mut self, mut each: impl FnMut(u32, PacketRef, Option<Travelling>)) {
        let Some(divided) = &mut self.divided else { return };
        for (element, packet) in divided.leaving.drain(..) {
            divided.went += 1;
            each(element, packet, self.pool.move_out(packet));
        }
    }

    /// Takes over a packet in flight.
    pub(crate) fn take_over(&mut self, element: u32, packet: Travelling) -> PacketRef {
        let packet = self.pool.move_in(packet);
        let link = &mut self.links[element as usize];
        link.put_in_line_again(packet, &mut self.pool);
        let next = link.next_event();
        self.agenda.set(element, next);
        self.divided.get_or_insert_default().came += 1;
        packet
    }

    /// Takes what is in flight on a link in this engine, for the engine that has the rest of the link.
    pub(crate) fn take_in_flight(
        &mut self,
        link: LinkId,
        each: impl FnMut(u32, PacketRef, Option<Travelling>),
    ) {
        let element = self.element(link) as u32;
        let Some(divided) = &mut self.divided else { return };
        let link = &mut self.links[element as usize];
        while let Some(packet) = link.take_from_line(&mut self.pool) {
            divided.leaving.push((element, packet));
        }
        self.agenda.set(element, link.next_event());
        self.take_leaving(each);
    }

    /// Adds what the counters of another engine say about the same link.
    pub(crate) fn add_counters(&mut self, link: LinkId, other: &mut Self) {
        let element = self.element(link);
        self.links[element].take_counters(&mut other.links[element]);
    }

    /// The place of the latest event in the order of events at its instant since the latest change: the greatest element that has
    /// had its turn, because one that comes later, whatever its number, comes after that. Where a link is in two engines, its
    /// packets leave before it does anything else.
    pub(crate) fn turn(&self) -> u32 {
        let Some(divided) = &self.divided else { return 0 };
        match divided.turn {
            (at, turn @ 1..) if at == self.now => turn << 1 | u32::from(self.leads_away(turn - 1)),
            _ => 0,
        }
    }

    /// Whether a link may make copies of packets, or cut them to fragments.
    pub(crate) fn makes_copies(&self, link: LinkId) -> bool {
        self.links[self.element(link)].makes_copies()
    }

    /// Packets that came from other engines, and that went there.
    pub(crate) fn crossed(&self) -> (u64, u64) {
        self.divided.as_ref().map_or((0, 0), |divided| (divided.came, divided.went))
    }
}
