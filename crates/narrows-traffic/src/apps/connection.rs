//! A transaction on a TCP connection, and the remains of the connection after the transaction.
//!
//! - The client opens the connection. When its patience ends, it gives up and resets the connection.
//! - A client fails if its connection is reset, or if nothing arrives on it for a quarter of an hour.
//! - A side that has written everything closes its direction; the other side closes when it sees that and has written
//!   everything as well.
//! - The connection is removed when both ends have finished with it, which includes TIME-WAIT. A minute after the end
//!   of the transaction, an end that has not finished resets it, as Linux does with connections that have waited that
//!   long for the peer's FIN (tcp_fin_timeout): the peer may be gone, and smoltcp does not retransmit a FIN that got
//!   three duplicate acknowledgements.

use narrows_core::{Duration, Time};
use narrows_scenario::{AppConfig, Dialogue};
use smoltcp::socket::tcp::State;

use super::call::StreamCall;
use super::exchange::{Exchange, Writer};
use super::scene::{Outcome, Scene, Side};
use crate::body::Frame;
use crate::tcp::{Buffers, End};

/// How long an end keeps a connection after the end of the transaction.
const LINGER: Duration = Duration::from_secs(60);

pub(super) struct Connection {
    ends: [End; 2],
    writers: [Writer; 2],
    dialogue: Talk,
    begun: Time,
    /// When the client gives up, if the transaction has not ended by then.
    deadline: Option<Time>,
    outcome: Option<Outcome>,
    /// When remaining ends are given up.
    leaves: Option<Time>,
}

enum Talk {
    Exchange(Exchange),
    Call(StreamCall),
}

impl Connection {
    /// The client opens the connection.
    pub(super) fn begin(config: &AppConfig, scene: &mut Scene<'_>) -> Self {
        let mut writers = [Writer::default(); 2];
        let mut dialogue = match &config.dialogue {
            Dialogue::Exchanges(exchanges) => Talk::Exchange(Exchange::new(exchanges)),
            Dialogue::Transfer(transfer) => Talk::Exchange(Exchange::transfer(transfer, config.stop)),
            Dialogue::Call(call) => Talk::Call(StreamCall::new(call, config.patience, &mut writers)),
            Dialogue::Query(_) => unreachable!("questions are asked in datagrams"),
        };
        if let Talk::Exchange(exchange) = &mut dialogue {
            exchange.ask(scene, &mut writers);
        }
        let (from, to) = scene.client;
        let (hosts, buffers) = scene.hosts_and_buffers();
        let [client, server] = hosts;
        let ends = [client.connect(from, (server.address, to), buffers), server.listen(to, buffers)];
        let deadline = config.patience.map(|patience| scene.now + patience);
        let begun = scene.now;
        let mut connection = Self { ends, writers, dialogue, begun, deadline, outcome: None, leaves: None };
        connection.step(scene, Side::Client);
        connection
    }

    /// A segment has arrived.
    pub(super) fn arrive(&mut self, scene: &mut Scene<'_>, side: Side, frame: &Frame) {
        let now = scene.now;
        let (host, out) = scene.host(side);
        host.receive(now, &mut self.ends[side as usize], frame, out);
        self.step(scene, side);
        self.judge(scene);
    }

    pub(super) fn wakes(&self) -> Option<Time> {
        let open = self.outcome.is_none();
        let talk = match &self.dialogue {
            Talk::Exchange(exchange) => exchange.wakes(),
            Talk::Call(call) => call.wakes(),
        };
        let ends = self.ends.iter().filter_map(|end| end.wakes);
        ends.chain(talk.filter(|_| open)).chain(self.deadline().filter(|_| open)).chain(self.leaves).min()
    }

    pub(super) fn wake(&mut self, scene: &mut Scene<'_>) {
        if self.outcome.is_none() {
            match &mut self.dialogue {
                Talk::Exchange(exchange) => exchange.wake(scene, &mut self.writers),
                Talk::Call(call) => call.wake(scene, &mut self.writers),
            }
            if self.deadline().is_some_and(|at| at <= scene.now) && !self.is_done() {
                self.ends[Side::Client as usize].abort();
                self.outcome = Some(Outcome::TimedOut);
            }
        }
        if self.leaves.take_if(|at| *at <= scene.now).is_some() {
            self.ends.iter_mut().filter(|end| !end.is_over()).for_each(|end| end.abort());
        }
        Side::BOTH.into_iter().for_each(|side| self.step(scene, side));
        self.judge(scene);
    }

    /// Reads what has arrived, writes as much as there is room for, and sends segments.
    fn step(&mut self, scene: &mut Scene<'_>, side: Side) {
        let end = &mut self.ends[side as usize];
        let bytes = end.read();
        if bytes > 0 {
            match side {
                Side::Server => scene.meter.up_bytes += bytes,
                Side::Client => scene.meter.down_bytes += bytes,
            }
            if self.outcome.is_none() {
                match &mut self.dialogue {
                    Talk::Exchange(exchange) => exchange.read(scene, side, bytes, &mut self.writers),
                    Talk::Call(call) => call.read(scene, side, bytes, &mut self.writers[side as usize]),
                }
            }
        }
        let writer = &mut self.writers[side as usize];
        writer.backlog -= end.write(writer.backlog);
        let is_last = writer.closes || end.state() == State::CloseWait;
        if is_last && writer.backlog == 0 {
            end.close();
        }
        let now = scene.now;
        let (host, out) = scene.host(side);
        host.send(now, end, out);
    }

    /// Checks whether the transaction has ended.
    fn judge(&mut self, scene: &mut Scene<'_>) {
        if self.outcome.is_none() {
            if self.is_done() {
                let after = match &self.dialogue {
                    Talk::Exchange(_) => scene.now.since(self.begun),
                    Talk::Call(call) => call.set_up_at().unwrap_or(scene.now).since(self.begun),
                };
                self.outcome = Some(Outcome::Succeeded(after));
                self.writers[Side::Client as usize].closes = true;
                self.step(scene, Side::Client);
            } else if self.ends[Side::Client as usize].state() == State::Closed {
                let client = &self.ends[Side::Client as usize];
                self.outcome = Some(if client.was_reset { Outcome::Reset } else { Outcome::TimedOut });
            }
        }
        if self.outcome.is_some() && self.leaves.is_none() && !self.is_over() {
            self.leaves = Some(scene.now + LINGER);
        }
    }

    fn is_done(&self) -> bool {
        match &self.dialogue {
            Talk::Exchange(exchange) => exchange.is_done(),
            Talk::Call(call) => call.is_done(),
        }
    }

    fn deadline(&self) -> Option<Time> {
        match &self.dialogue {
            Talk::Exchange(_) => self.deadline,
            Talk::Call(call) => call.deadline(self.begun),
        }
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Gives its memory to connections to come.
    pub(super) fn release(self, buffers: &mut Buffers) {
        self.ends.into_iter().for_each(|end| end.release(buffers));
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() && self.ends.iter().all(End::is_over)
    }
}
