//! A transaction on a connection of TCP, and what is left of the connection when the transaction is through.
//!
//! - The client opens the connection, and gives up when its patience is at an end: then it resets the connection.
//! - A client whose connection is reset, or on which nothing has come for a quarter of an hour, has failed.
//! - Who has written all that there is to write closes its side; the other side closes when it sees that and has written
//!   all as well.
//! - The connection is forgotten when both ends are through with it, be it in TIME-WAIT. A minute after the transaction has
//!   ended, an end that is not resets it, as Linux does with what has waited so long for the other end's leave
//!   (tcp_fin_timeout): its peer may have gone, and smoltcp does not send a FIN again for which there were three duplicate
//!   acknowledgements.

use narrows_core::{Duration, Time};
use narrows_scenario::{AppConfig, Dialogue};
use smoltcp::socket::tcp::State;

use super::call::StreamCall;
use super::exchange::{Exchange, Writer};
use super::scene::{Outcome, Scene, Side};
use crate::tcp::{End, Segment};

/// How long an end keeps a connection when the transaction has ended.
const LINGER: Duration = Duration::from_secs(60);

pub(super) struct Connection {
    ends: [End; 2],
    writers: [Writer; 2],
    dialogue: Talk,
    begun: Time,
    /// When the client gives up, if the transaction has not ended by then.
    deadline: Option<Time>,
    outcome: Option<Outcome>,
    /// When ends that are left are given up.
    leaves: Option<Time>,
}

enum Talk {
    Exchange(Exchange),
    Call(StreamCall),
}

impl Connection {
    /// The client opens it.
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
        let [client, server] = scene.hosts();
        let ends = [client.connect(from, (server.address, to)), server.listen(to)];
        let deadline = config.patience.map(|patience| scene.now + patience);
        let begun = scene.now;
        let mut connection = Self { ends, writers, dialogue, begun, deadline, outcome: None, leaves: None };
        connection.step(scene, Side::Client);
        connection
    }

    /// A segment has arrived.
    pub(super) fn arrive(&mut self, scene: &mut Scene<'_>, side: Side, frame: Vec<u8>) {
        let mut sent = Vec::new();
        let now = scene.now;
        scene.hosts()[side as usize].receive(now, &mut self.ends[side as usize], frame, &mut sent);
        scene.segments(side, sent.into_iter());
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
                self.ends[Side::Client as usize].socket().abort();
                self.outcome = Some(Outcome::TimedOut);
            }
        }
        if self.leaves.take_if(|at| *at <= scene.now).is_some() {
            self.ends.iter_mut().filter(|end| !end.is_over()).for_each(|end| end.socket().abort());
        }
        Side::BOTH.into_iter().for_each(|side| self.step(scene, side));
        self.judge(scene);
    }

    /// Reads what has come, writes what there is room for, and lets segments leave.
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
            end.socket().close();
        }
        let mut sent: Vec<Segment> = Vec::new();
        let now = scene.now;
        scene.hosts()[side as usize].send(now, end, &mut sent);
        scene.segments(side, sent.into_iter());
    }

    /// Whether the transaction has ended by now.
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

    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() && self.ends.iter().all(End::is_over)
    }
}
