//! Applications: clients and servers that perform transactions with each other over TCP or UDP, through the network.
//!
//! An [`App`] is a responsive source. [`demand`] decides when transactions begin. Each transaction is a session: over
//! TCP a connection with a dialogue on it ([`connection`], [`exchange`], [`call`]), over UDP a [`query`] or a
//! [`call`]. A session acts when one of its packets arrives and when its timer expires; what it sends enters the
//! network at that instant.
//!
//! The n-th transaction of a source has the same sizes and pauses whatever happens to the others and whatever the
//! network is like: draws are keyed by the source's name, n, and their purpose.

mod call;
mod connection;
mod demand;
mod exchange;
mod query;
mod scene;
mod session;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use narrows_core::{FlowKey, Packet, PortId, Seed, Stream, Time};
use narrows_report::AppMeter;
use narrows_scenario::{AppConfig, Dialogue};

use crate::apps::call::DatagramCall;
use crate::apps::connection::Connection;
use crate::apps::demand::Clients;
use crate::apps::query::QuerySession;
use crate::apps::scene::{Draws, Outcome, Scene, Side};
use crate::apps::session::Session;
use crate::body::{Arrived, Delivery, Frame, reversed};
use crate::tcp::{Buffers, Host};

/// A traffic source: its clients, its servers, and the sessions between them.
pub(crate) struct App {
    config: AppConfig,
    /// The key of the client's first flow.
    key: FlowKey,
    ports: [PortId; 2],
    /// The client's and the server's TCP hosts, if they use TCP.
    hosts: Option<Box<[Host; 2]>>,
    draws: Draws,
    clients: Clients,
    /// Sessions in progress, and connections that an end has not finished with. Never iterated.
    sessions: HashMap<u32, Entry>,
    /// Timers of sessions; an entry that differs from its session's own is out of date.
    wakes: BinaryHeap<Reverse<(Time, u32)>>,
    /// Packets that enter the network next.
    out: VecDeque<Departure>,
    meter: AppMeter,
}

struct Entry {
    session: Session,
    /// The valid timer entry.
    wakes: Option<Time>,
    is_open: bool,
    /// The flow key of what the server answers with, if the network translates.
    answers: Option<FlowKey>,
}

/// A packet that enters the network.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) at: Time,
    pub(crate) port: PortId,
    pub(crate) number: u64,
    pub(crate) packet: Packet<Option<Box<Frame>>>,
}

impl App {
    /// Clients at one port and servers at another. `key` is the flow key of the first client's packets. With
    /// `keeps_payload`, frames of TCP segments are whole.
    pub(crate) fn new(
        config: AppConfig,
        key: FlowKey,
        (from, to): (PortId, PortId),
        seed: Seed,
        name: &str,
        keeps_payload: bool,
    ) -> Self {
        let draws = Draws::new(seed, name);
        let hosts = config.tcp.map(|tcp| {
            let numbers = Stream::new(seed, name, "sequence");
            let back = reversed(&key);
            Box::new([
                Host::new(tcp, &key, (from, to), numbers.nth(0).bits(), keeps_payload),
                Host::new(tcp, &back, (to, from), numbers.nth(1).bits(), keeps_payload),
            ])
        });
        let clients = Clients::new(&config, seed, name);
        let (sessions, wakes, out, meter) = Default::default();
        Self { config, key, ports: [from, to], hosts, draws, clients, sessions, wakes, out, meter }
    }

    /// When something happens next: a packet enters the network, or a session's timer expires. An arrival may move
    /// this in either direction.
    pub(crate) fn peek(&self) -> Option<Time> {
        if let Some(departure) = self.out.front() {
            return Some(departure.at);
        }
        let wakes = self.wakes.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        let next = wakes.min(self.clients.peek().unwrap_or(Time::NEVER));
        (next < Time::NEVER).then_some(next)
    }

    /// Does what [`App::peek`] announced. A session whose timer expired may send only now, or nothing.
    pub(crate) fn take(&mut self, buffers: &mut Buffers) -> Option<Departure> {
        if self.out.is_empty() {
            let at = self.peek()?;
            if self.clients.peek() == Some(at) {
                self.begin(at, buffers);
            } else if let Some(Reverse((_, serial))) = self.wakes.pop() {
                self.wake(at, serial, buffers);
            }
        }
        self.out.pop_front()
    }

    /// A packet has arrived at one of the ends.
    pub(crate) fn arrive(&mut self, arrived: Arrived, buffers: &mut Buffers) {
        let Arrived { delivery: Delivery { at, sent, port, length, seen, .. }, number, frame, .. } = arrived;
        let side = if port == self.ports[Side::Server as usize] { Side::Server } else { Side::Client };
        let (serial, message) = ((number >> 32) as u32, number as u32);
        if self.hosts.is_none() {
            scene::datagram_arrived(&mut self.meter, side, message, length, self.key.network, at.since(sent));
        }
        let Some(mut entry) = self.sessions.remove(&serial) else { return };
        if side == Side::Server {
            entry.answers = seen.map(|seen| reversed(&seen));
        }
        let before = self.out.len();
        let mut scene = self.scene(at, serial, buffers);
        entry.session.arrive(&mut scene, side, message, frame.as_deref());
        self.readdress(before, entry.answers);
        self.keep(at, serial, entry, buffers);
    }

    /// Its counters.
    pub(crate) fn meter(&self) -> &AppMeter {
        &self.meter
    }

    fn begin(&mut self, at: Time, buffers: &mut Buffers) {
        let Some(serial) = self.clients.begin() else {
            self.meter.refused += 1;
            return;
        };
        self.meter.begun += 1;
        let config = self.config.clone();
        let mut scene = self.scene(at, serial, buffers);
        let session = match &config.dialogue {
            Dialogue::Query(query) => Session::Query(QuerySession::begin(query, &mut scene)),
            Dialogue::Call(call) if config.tcp.is_none() => {
                Session::Call(Box::new(DatagramCall::begin(call, config.patience, &mut scene)))
            }
            _ => Session::Tcp(Box::new(Connection::begin(&config, &mut scene))),
        };
        self.keep(at, serial, Entry { session, wakes: None, is_open: true, answers: None }, buffers);
    }

    fn wake(&mut self, at: Time, serial: u32, buffers: &mut Buffers) {
        let Some(mut entry) = self.sessions.remove(&serial) else { return };
        if entry.wakes == Some(at) {
            entry.wakes = None;
            if entry.session.wakes().is_some_and(|due| due <= at) {
                let before = self.out.len();
                let mut scene = self.scene(at, serial, buffers);
                entry.session.wake(&mut scene);
                self.readdress(before, entry.answers);
            }
        }
        self.keep(at, serial, entry, buffers);
    }

    /// Gives datagrams that a server has just sent the ends of a flow that the network translates. Segments of TCP have
    /// them already.
    fn readdress(&mut self, before: usize, answers: Option<FlowKey>) {
        let Some(ends) = answers.filter(|_| self.hosts.is_none()) else { return };
        let server = self.ports[Side::Server as usize];
        for departure in self.out.range_mut(before..).filter(|departure| departure.port == server) {
            let traffic_class = departure.packet.key.traffic_class;
            departure.packet.key = FlowKey { traffic_class, ..ends };
        }
    }

    /// Stores a session that has processed an event, unless it is over.
    fn keep(&mut self, at: Time, serial: u32, mut entry: Entry, buffers: &mut Buffers) {
        if let (true, Some(outcome)) = (entry.is_open, entry.session.outcome()) {
            entry.is_open = false;
            self.clients.ended(at, serial);
            match outcome {
                Outcome::Succeeded(after) => self.meter.succeeded(after),
                Outcome::Reset => self.meter.failed_reset += 1,
                Outcome::TimedOut => self.meter.failed_timeout += 1,
            }
        }
        if entry.session.is_over() {
            return entry.session.release(buffers);
        }
        if let Some(due) = entry.session.wakes()
            && entry.wakes.is_none_or(|entry| due < entry)
        {
            let due = due.max(at);
            entry.wakes = Some(due);
            self.wakes.push(Reverse((due, serial)));
        }
        self.sessions.insert(serial, entry);
    }

    fn scene<'a>(&'a mut self, now: Time, serial: u32, buffers: &'a mut Buffers) -> Scene<'a> {
        let ports = u32::from(u16::MAX - self.key.source_port) + 1;
        let port = self.key.source_port + (serial % ports.min(16_384)) as u16;
        Scene {
            now,
            serial,
            client: (port, self.key.destination_port),
            key: self.key,
            ports: self.ports,
            hosts: self.hosts.as_deref_mut(),
            buffers,
            draws: &self.draws,
            meter: &mut self.meter,
            out: &mut self.out,
        }
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).field("key", &self.key).finish_non_exhaustive()
    }
}
