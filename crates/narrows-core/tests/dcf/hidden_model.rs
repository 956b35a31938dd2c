//! Hidden stations once more, plainly: every microsecond is walked through, in each every station looks at the list of
//! all transmissions so far, and nothing is known of the next event.

use std::collections::VecDeque;

use narrows_core::sched::DcfConfig;
use narrows_core::{Rate, Stream, Time};

use crate::air::{Done, What};
use crate::slow_model::Arrival;

/// The receiver, as a sender.
const RECEIVER: usize = usize::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Rts,
    Cts,
    Data,
    Ack,
}

/// In µs, from `start` to before `end`.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    by: usize,
    to: usize,
    start: u64,
    end: u64,
}

#[derive(Clone, Debug, Default)]
struct Station {
    rate: u64,
    queue: VecDeque<u32>,
    counter: Option<u64>,
    /// Microseconds left of the present slot.
    slot_left: u64,
    space_until: u64,
    nav: u64,
    retries: u32,
    /// It neither sends nor waits for an answer.
    contends: bool,
}

pub(crate) struct HiddenModel {
    config: DcfConfig,
    stream: Stream,
    draws: u64,
    hidden: Vec<(u32, u32)>,
    stations: Vec<Station>,
    frames: Vec<Frame>,
    /// The first of the frames that may still matter.
    recent: usize,
    answer: Option<Frame>,
    /// Who gives up its packet, and when.
    given_up: VecDeque<(u64, usize)>,
    pub(crate) done: Vec<Done>,
}

impl HiddenModel {
    pub(crate) fn new(config: DcfConfig, rates: &[Rate], hidden: &[(u32, u32)], stream: Stream) -> Self {
        let station = |rate: &Rate| Station {
            rate: rate.bits_per_second(),
            contends: true,
            slot_left: 20,
            ..Station::default()
        };
        Self {
            config,
            stream,
            draws: 0,
            hidden: hidden.to_vec(),
            stations: rates.iter().map(station).collect(),
            frames: Vec::new(),
            recent: 0,
            answer: None,
            given_up: VecDeque::new(),
            done: Vec::new(),
        }
    }

    /// Runs until nothing is left, or until this microsecond. With `refill`, each packet that leaves is followed by its
    /// like.
    pub(crate) fn run(&mut self, arrivals: &[Arrival], refill: bool, until: u64) {
        let mut arrivals = arrivals.iter().copied().peekable();
        for now in 0..until {
            self.end_frames(now, refill);
            self.give_up(now, refill);
            while let Some(arrival) = arrivals.next_if(|arrival| arrival.at == now * 1000) {
                self.arrive(now, arrival);
            }
            if arrivals.peek().is_none() && self.stations.iter().all(|station| station.queue.is_empty()) {
                return;
            }
            self.start_frames(now);
            self.count(now);
        }
    }

    fn hears(&self, station: usize, by: usize) -> bool {
        let pair = (station as u32, by as u32);
        station != by
            && (by == RECEIVER || !self.hidden.contains(&pair) && !self.hidden.contains(&(pair.1, pair.0)))
    }

    fn on_air(&self, station: usize, now: u64) -> bool {
        let recent = self.frames[self.recent..].iter();
        recent.filter(|frame| frame.start < now && now < frame.end).any(|frame| self.hears(station, frame.by))
    }

    /// Whether a frame has reached a station, or the receiver, alone.
    fn is_read(&self, at: usize, frame: Frame) -> bool {
        let others = self.frames[self.recent..].iter().filter(|other| other.by != frame.by);
        let overlaps = others.filter(|other| other.start < frame.end && frame.start < other.end);
        let mut spoils =
            overlaps.filter(|other| at == RECEIVER || at == other.by || self.hears(at, other.by));
        spoils.next().is_none()
    }

    fn micros(&self, rate: u64, bits: u64) -> u64 {
        self.config.preamble.nanos() / 1000 + (bits * 1_000_000).div_ceil(rate)
    }

    fn control(&self, station: usize, bits: u64) -> u64 {
        self.micros(self.stations[station].rate.min(self.config.basic_rate.bits_per_second()), bits)
    }

    fn data(&self, station: usize) -> u64 {
        let length = self.stations[station].queue.front().copied().unwrap_or_default();
        self.micros(self.stations[station].rate, u64::from(length + 36) * 8)
    }

    fn end_frames(&mut self, now: u64, refill: bool) {
        let ended: Vec<Frame> =
            self.frames[self.recent..].iter().copied().filter(|frame| frame.end == now).collect();
        for frame in ended {
            let sender = if frame.by == RECEIVER { frame.to } else { frame.by };
            let ack = 10 + self.control(sender, 112);
            let nav = now
                + match frame.kind {
                    Kind::Rts => 20 + self.control(sender, 112) + self.config.preamble.nanos() / 1000 + 40,
                    Kind::Cts => 10 + self.data(sender) + ack,
                    Kind::Data => ack,
                    Kind::Ack => 0,
                };
            for number in 0..self.stations.len() {
                if !self.hears(number, frame.by) {
                    continue;
                }
                let is_read = self.is_read(number, frame);
                let station = &mut self.stations[number];
                let own = frame.kind == Kind::Cts && frame.to == number;
                if is_read && !own {
                    station.nav = station.nav.max(nav);
                }
                station.space_until = (now + if is_read { 50 } else { 364 }).max(station.nav + 50);
            }
            let answer = |kind, by, to, length| {
                let start = now + 10;
                Some(Frame { kind, by, to, start, end: start + length })
            };
            match frame.kind {
                Kind::Rts | Kind::Data => {
                    let nav = self.stations[sender].nav;
                    self.stations[sender].space_until = (now + 364).max(nav + 50);
                    if !self.is_read(RECEIVER, frame) {
                        self.lose(now, sender);
                    } else if frame.kind == Kind::Rts {
                        self.answer = answer(Kind::Cts, RECEIVER, sender, self.control(sender, 112));
                    } else {
                        self.answer = answer(Kind::Ack, RECEIVER, sender, self.control(sender, 112));
                        let length = self.leave(sender, refill);
                        self.report(now, sender, What::Sends(length));
                    }
                }
                Kind::Cts => self.answer = answer(Kind::Data, sender, RECEIVER, self.data(sender)),
                Kind::Ack => self.stations[sender].contends = true,
            }
        }
        while self.frames.get(self.recent).is_some_and(|frame| frame.end + 20_000 < now) {
            self.recent += 1;
        }
    }

    fn report(&mut self, now: u64, station: usize, what: What) {
        self.done.push(Done { at: Time::from_nanos(now * 1000), station: station as u32, what });
    }

    fn lose(&mut self, now: u64, sender: usize) {
        self.stations[sender].retries += 1;
        if self.stations[sender].retries < u32::from(self.config.retry_limit) {
            self.stations[sender].contends = true;
            self.draw(sender);
        } else {
            self.given_up.push_back((now + 314, sender));
        }
    }

    fn give_up(&mut self, now: u64, refill: bool) {
        while let Some((_, number)) = self.given_up.pop_front_if(|(at, _)| *at == now) {
            self.leave(number, refill);
            self.report(now, number, What::GivesUp);
            self.stations[number].contends = true;
        }
    }

    fn leave(&mut self, number: usize, refill: bool) -> u32 {
        let station = &mut self.stations[number];
        let length = station.queue.pop_front().expect("it has sent it");
        station.queue.extend(refill.then_some(length));
        station.retries = 0;
        self.draw(number);
        length
    }

    fn draw(&mut self, number: usize) {
        let station = &mut self.stations[number];
        let mut window = u64::from(self.config.window_min);
        for _ in 0..station.retries {
            window = (2 * (window + 1) - 1).min(self.config.window_max.into());
        }
        station.counter = Some(self.stream.nth(self.draws).below(window + 1));
        station.slot_left = 20;
        self.draws += 1;
    }

    fn arrive(&mut self, now: u64, Arrival { station: number, length, .. }: Arrival) {
        let is_busy = self.on_air(number, now);
        let station = &mut self.stations[number];
        station.queue.push_back(length);
        if station.queue.len() > 1 || station.counter.is_some() || !station.contends {
            return;
        }
        if is_busy || now < station.nav {
            return self.draw(number);
        }
        station.counter = Some(0);
        station.slot_left = 20;
    }

    fn start_frames(&mut self, now: u64) {
        let mut starting = Vec::from_iter(self.answer.take_if(|answer| answer.start == now));
        for number in 0..self.stations.len() {
            let station = &self.stations[number];
            let is_over = station.contends && station.counter == Some(0) && station.space_until <= now;
            if !is_over || self.on_air(number, now) {
                continue;
            }
            if station.queue.is_empty() {
                self.stations[number].counter = None;
                continue;
            }
            let threshold = self.config.rts_threshold.unwrap_or(u32::MAX);
            let (kind, length) = match station.queue[0] + 36 > threshold {
                true => (Kind::Rts, self.control(number, 160)),
                false => (Kind::Data, self.data(number)),
            };
            self.stations[number].contends = false;
            starting.push(Frame { kind, by: number, to: RECEIVER, start: now, end: now + length });
        }
        for frame in &starting {
            if frame.by != RECEIVER {
                self.stations[frame.by].counter = None;
            }
        }
        self.frames.extend(starting);
    }

    /// The microsecond from `now` on counts for the backoffs of the stations whose medium is idle in it.
    fn count(&mut self, now: u64) {
        for number in 0..self.stations.len() {
            let busy = self.on_air(number, now + 1) || {
                // One that ends with this microsecond was on the air in it.
                let recent = self.frames[self.recent..].iter();
                recent.filter(|frame| frame.end == now + 1).any(|frame| self.hears(number, frame.by))
            };
            let station = &mut self.stations[number];
            let Some(counter) = station.counter.as_mut().filter(|counter| **counter > 0) else { continue };
            if busy || now < station.space_until || !station.contends {
                station.slot_left = 20;
            } else {
                station.slot_left -= 1;
                if station.slot_left == 0 {
                    station.slot_left = 20;
                    *counter -= 1;
                    if *counter == 0 && station.queue.is_empty() {
                        station.counter = None;
                    }
                }
            }
        }
    }
}
