//! Calls: set up by a request and its response, then messages at regular intervals in both directions.
//!
//! Each side sends for the duration of the call once it knows that the call is set up: the server from the request
//! on, the client from the response on. With talk spurts, each side alternates independently between talking and
//! silence; both begin talking.
//!
//! Over UDP the request is retransmitted after 0.5 s, 1 s, 2 s and so on, doubled each time (RFC 3261, 17.1.1.2),
//! until the response arrives or the client's patience ends. Over TCP messages are parts of the stream: a lost one
//! delays those behind it. The call succeeds when all messages have arrived, and fails if the last one takes longer
//! than the patience.

use std::collections::VecDeque;

use narrows_core::{Duration, Time};
use narrows_scenario::{Call, Transfer};

use super::exchange::Writer;
use super::scene::{Draws, Kind, Outcome, Scene, Side, span};

/// RFC 3261's T1.
const ASKED_AGAIN: Duration = Duration::from_millis(500);

/// The message schedule of a side.
#[derive(Debug, Default)]
struct Talker {
    next: Option<Time>,
    /// The end of the spurt.
    talks_until: Time,
    until: Time,
    /// How many talk spurts and silences were drawn.
    drawn: u32,
    sent: u32,
}

impl Talker {
    fn start(&mut self, call: &Call, scene: &Scene<'_>, side: Side) {
        let Draws { duration, .. } = scene.draws;
        self.until = scene.now + span(duration, scene.serial, 0, call.duration);
        self.talks_until = match call.spurts {
            Some((talk, _)) => scene.now + self.draw(scene, side, talk),
            None => Time::NEVER,
        };
        let talks = !call.one_way || side == Side::Client;
        self.next = Some(scene.now).filter(|&at| talks && at < self.until);
    }

    /// Sends a message now and schedules the next.
    fn advance(&mut self, call: &Call, scene: &Scene<'_>, side: Side) {
        self.sent += 1;
        let mut next = scene.now + call.interval;
        if let Some((talk, silence)) = call.spurts {
            while next >= self.talks_until && self.talks_until < self.until {
                // The first message of a spurt is sent at its start.
                next = self.talks_until + self.draw(scene, side, silence);
                self.talks_until = next + self.draw(scene, side, talk);
            }
        }
        self.next = Some(next).filter(|&at| at < self.until);
    }

    fn draw(&mut self, scene: &Scene<'_>, side: Side, period: narrows_core::source::Period) -> Duration {
        self.drawn += 1;
        let stream = &scene.draws.spurts[side as usize];
        span(stream, scene.serial, self.drawn, period).max(Duration::from_nanos(1))
    }

    fn is_due(&self, now: Time) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    fn ends(&self, now: Time) -> bool {
        self.next.is_none() && self.until <= now
    }
}

/// A call in a TCP stream.
#[derive(Debug)]
pub(super) struct StreamCall {
    call: Call,
    patience: Option<Duration>,
    /// When the client received the response.
    set_up: Option<Time>,
    talkers: [Talker; 2],
    /// Bytes received by each side that do not complete a message yet.
    received: [u64; 2],
    /// Whether each side has read the initial line.
    greeted: [bool; 2],
    /// When messages in flight to each side were written.
    written: [VecDeque<Time>; 2],
    /// Both sides have written all their messages.
    all_said: bool,
}

impl StreamCall {
    pub(super) fn new(call: &Call, patience: Option<Duration>, writers: &mut [Writer; 2]) -> Self {
        writers[Side::Client as usize].backlog = Transfer::LINE.get();
        Self {
            call: call.clone(),
            patience,
            set_up: None,
            talkers: Default::default(),
            received: [0; 2],
            greeted: [false; 2],
            written: Default::default(),
            all_said: false,
        }
    }

    /// Bytes have arrived. A side that starts talking because of them must be woken at once.
    pub(super) fn read(&mut self, scene: &mut Scene<'_>, side: Side, bytes: u64, writer: &mut Writer) {
        let at = side as usize;
        self.received[at] += bytes;
        if !self.greeted[at] && self.received[at] >= Transfer::LINE.get() {
            self.received[at] -= Transfer::LINE.get();
            self.greeted[at] = true;
            match side {
                Side::Server => writer.backlog += Transfer::LINE.get(),
                Side::Client => self.set_up = Some(scene.now),
            }
            self.talkers[at].start(&self.call, scene, side);
        }
        let length = u64::from(self.call.payload);
        while self.greeted[at] && self.received[at] >= length {
            let Some(written) = self.written[at].pop_front() else { break };
            self.received[at] -= length;
            scene.meter.message(scene.now.since(written));
        }
    }

    pub(super) fn wakes(&self) -> Option<Time> {
        // After the end, only arrivals or the deadline matter.
        let end = self.ends().filter(|_| !self.all_said);
        self.talkers.iter().filter_map(|talker| talker.next).chain(end).min()
    }

    pub(super) fn wake(&mut self, scene: &mut Scene<'_>, writers: &mut [Writer; 2]) {
        for side in Side::BOTH {
            let talker = &mut self.talkers[side as usize];
            while talker.is_due(scene.now) {
                talker.advance(&self.call, scene, side);
                writers[side as usize].backlog += u64::from(self.call.payload);
                self.written[side.other() as usize].push_back(scene.now);
                scene.meter.messages_sent += 1;
            }
        }
        self.all_said = self.set_up.is_some() && self.talkers.iter().all(|talker| talker.ends(scene.now));
        if self.all_said {
            writers.iter_mut().for_each(|writer| writer.closes = true);
        }
    }

    /// When both sides stop talking, once the call is set up.
    fn ends(&self) -> Option<Time> {
        self.set_up.and_then(|_| self.talkers.iter().map(|talker| talker.until).max())
    }

    pub(super) fn set_up_at(&self) -> Option<Time> {
        self.set_up
    }

    pub(super) fn is_done(&self) -> bool {
        self.all_said && self.written.iter().all(VecDeque::is_empty)
    }

    /// When the client gives up.
    pub(super) fn deadline(&self, begun: Time) -> Option<Time> {
        let from = match self.set_up {
            None => begun,
            Some(_) => self.ends()?,
        };
        self.patience.map(|patience| from + patience)
    }
}

/// A call in datagrams.
#[derive(Debug)]
pub(super) struct DatagramCall {
    call: Call,
    begun: Time,
    asked: u32,
    /// When the request is retransmitted.
    again: Option<Time>,
    deadline: Option<Time>,
    set_up: Option<Time>,
    is_answered: bool,
    talkers: [Talker; 2],
    outcome: Option<Outcome>,
}

impl DatagramCall {
    pub(super) fn begin(call: &Call, patience: Option<Duration>, scene: &mut Scene<'_>) -> Self {
        let mut session = Self {
            call: call.clone(),
            begun: scene.now,
            asked: 0,
            again: None,
            deadline: patience.map(|patience| scene.now + patience),
            set_up: None,
            is_answered: false,
            talkers: Default::default(),
            outcome: None,
        };
        session.ask(scene);
        session
    }

    fn ask(&mut self, scene: &mut Scene<'_>) {
        scene.datagram(Side::Client, Kind::Request, self.asked, LINE);
        let wait = Duration::from_nanos(ASKED_AGAIN.nanos() << self.asked.min(20));
        self.asked += 1;
        self.again = Some(scene.now + wait);
    }

    pub(super) fn arrive(&mut self, scene: &mut Scene<'_>, kind: Kind) {
        match kind {
            Kind::Request => {
                scene.datagram(Side::Server, Kind::Answer, 0, LINE);
                if !std::mem::replace(&mut self.is_answered, true) {
                    self.talkers[Side::Server as usize].start(&self.call, scene, Side::Server);
                }
            }
            Kind::Answer if self.set_up.is_none() => {
                self.set_up = Some(scene.now);
                (self.again, self.deadline) = (None, None);
                self.talkers[Side::Client as usize].start(&self.call, scene, Side::Client);
            }
            Kind::Answer | Kind::Message => return,
        }
        self.talk(scene);
    }

    pub(super) fn wakes(&self) -> Option<Time> {
        let talkers = self.talkers.iter().filter_map(|talker| talker.next);
        let end = self.set_up.map(|_| self.talkers[Side::Client as usize].until);
        talkers.chain(self.again).chain(self.deadline).chain(end).min()
    }

    pub(super) fn wake(&mut self, scene: &mut Scene<'_>) {
        if self.deadline.is_some_and(|at| at <= scene.now) {
            self.outcome = Some(Outcome::TimedOut);
            return;
        }
        if self.again.is_some_and(|at| at <= scene.now) {
            self.ask(scene);
        }
        self.talk(scene);
    }

    fn talk(&mut self, scene: &mut Scene<'_>) {
        for side in Side::BOTH {
            let talker = &mut self.talkers[side as usize];
            while talker.is_due(scene.now) {
                let number = talker.sent;
                talker.advance(&self.call, scene, side);
                scene.datagram(side, Kind::Message, number, self.call.payload);
                scene.meter.messages_sent += 1;
            }
        }
        if let Some(set_up) = self.set_up
            && self.talkers.iter().all(|talker| talker.ends(scene.now))
        {
            self.outcome.get_or_insert(Outcome::Succeeded(set_up.since(self.begun)));
        }
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }
}

/// The length of the request that sets up a call, and of the response.
const LINE: u16 = Transfer::LINE.get() as u16;
