//! The DCF once more, plainly: every slot is walked through, and in each every station counts down.

use std::collections::VecDeque;

use narrows_core::sched::DcfConfig;
use narrows_core::{Rate, Stream, Time};

use crate::air::{Done, What};

/// A packet that comes to a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    pub(crate) station: usize,
    pub(crate) length: u32,
}

#[derive(Clone, Debug, Default)]
struct Station {
    queue: VecDeque<u32>,
    /// Slots to go; nothing where no backoff is pending.
    counter: Option<u64>,
    retries: u32,
}

pub(crate) struct SlowModel {
    config: DcfConfig,
    rate: u64,
    stream: Stream,
    draws: u64,
    stations: Vec<Station>,
    busy_until: u64,
    slots_from: u64,
    /// Packets sent after so many retries.
    pub(crate) sent_after: Vec<u64>,
    pub(crate) done: Vec<Done>,
}

const MICRO: u64 = 1_000;

impl SlowModel {
    pub(crate) fn new(config: DcfConfig, rate: Rate, stream: Stream, stations: usize) -> Self {
        Self {
            config,
            rate: rate.bits_per_second(),
            stream,
            draws: 0,
            stations: vec![Station::default(); stations],
            busy_until: 0,
            slots_from: 0,
            sent_after: vec![0; 256],
            done: Vec::new(),
        }
    }

    /// Runs until nothing is left, or so much is done. With `refill`, each packet that leaves is followed by its like.
    pub(crate) fn run(&mut self, arrivals: &[Arrival], refill: bool, most: usize) {
        let mut arrivals = arrivals.iter().copied().peekable();
        let mut slot = 0;
        while self.done.len() < most {
            let counting = self.stations.iter().any(|station| station.counter.is_some());
            let boundary = self.slots_from + slot * self.config.slot.nanos();
            let next = arrivals.peek().map(|arrival| arrival.at);
            let (now, mut sending) = if counting && next.is_none_or(|at| boundary <= at) {
                slot += 1;
                (boundary, self.count_down(slot > 1))
            } else if let Some(arrival) = arrivals.next() {
                (arrival.at, Vec::from_iter(self.arrive(arrival).then_some(arrival.station)))
            } else {
                return;
            };
            if sending.is_empty() {
                continue;
            }
            while let Some(arrival) = arrivals.next_if(|arrival| arrival.at == now) {
                // It cannot hear the others yet.
                sending.extend(self.arrive(arrival).then_some(arrival.station));
            }
            sending.sort();
            self.send(now, &sending, &mut arrivals, refill);
            slot = 0;
        }
    }

    /// A slot has passed, or DIFS has: who sends.
    fn count_down(&mut self, by_one: bool) -> Vec<usize> {
        let mut sending = Vec::new();
        for (number, station) in self.stations.iter_mut().enumerate() {
            if by_one && let Some(counter) = &mut station.counter {
                *counter -= 1;
            }
            if station.counter == Some(0) {
                station.counter = None;
                if !station.queue.is_empty() {
                    sending.push(number);
                }
            }
        }
        sending
    }

    /// Whether it is sent at once.
    fn arrive(&mut self, Arrival { at, station, length }: Arrival) -> bool {
        self.stations[station].queue.push_back(length);
        let idle = self.stations[station].queue.len() == 1 && self.stations[station].counter.is_none();
        match () {
            () if !idle => false,
            () if at < self.busy_until => {
                self.back_off(station);
                false
            }
            () if at < self.slots_from => {
                self.stations[station].counter = Some(0);
                false
            }
            () => true,
        }
    }

    fn back_off(&mut self, station: usize) {
        let mut window = u64::from(self.config.window_min);
        for _ in 0..self.stations[station].retries {
            window = (2 * (window + 1) - 1).min(self.config.window_max.into());
        }
        self.stations[station].counter = Some(self.stream.nth(self.draws).below(window + 1));
        self.draws += 1;
    }

    fn send(
        &mut self,
        at: u64,
        sending: &[usize],
        arrivals: &mut std::iter::Peekable<impl Iterator<Item = Arrival>>,
        refill: bool,
    ) {
        let preamble = self.config.preamble.nanos();
        let lowest = 304 * MICRO;
        let micros_for = |bits: u64, rate: u64| (bits * 1_000_000).div_ceil(rate) * MICRO;
        let psdu_bits = |length: u32| u64::from(length + 36) * 8;
        self.busy_until = u64::MAX; // while this goes on
        if let &[winner] = sending {
            let psdu = at + preamble;
            while arrivals.peek().is_some_and(|arrival| arrival.at < psdu) {
                let arrival = arrivals.next().expect("it was peeked at");
                assert!(!self.arrive(arrival));
            }
            let length = self.stations[winner].queue.pop_front().expect("it sends what waits");
            self.done.push(done(psdu, winner, What::Sends(length)));
            let station = &mut self.stations[winner];
            self.sent_after[station.retries as usize] += 1;
            station.retries = 0;
            station.queue.extend(refill.then_some(length));
            self.back_off(winner);
            let ack = preamble + micros_for(112, self.rate.min(self.config.basic_rate.bits_per_second()));
            let end = psdu + micros_for(psdu_bits(length), self.rate);
            self.busy_until = end + self.config.sifs.nanos() + ack;
            self.slots_from = self.busy_until + self.config.difs.nanos();
            return;
        }
        let longest =
            sending.iter().map(|&station| self.stations[station].queue[0]).max().expect("several collide");
        self.busy_until = at + preamble + micros_for(psdu_bits(longest), self.rate);
        let timeout = self.busy_until + self.config.sifs.nanos() + lowest;
        self.slots_from = timeout + self.config.difs.nanos();
        let mut given_up = Vec::new();
        for &station in sending {
            self.stations[station].retries += 1;
            match self.stations[station].retries < u32::from(self.config.retry_limit) {
                true => self.back_off(station),
                false => given_up.push(station),
            }
        }
        while !given_up.is_empty() && arrivals.peek().is_some_and(|arrival| arrival.at < timeout) {
            let arrival = arrivals.next().expect("it was peeked at");
            assert!(!self.arrive(arrival));
        }
        for station in given_up {
            let length = self.stations[station].queue.pop_front().expect("it sends what waits");
            self.done.push(done(timeout, station, What::GivesUp));
            self.stations[station].retries = 0;
            self.stations[station].queue.extend(refill.then_some(length));
            self.back_off(station);
        }
    }
}

fn done(at: u64, station: usize, what: What) -> Done {
    Done { at: Time::from_nanos(at), station: station as u32, what }
}

/// That it does what it should, where that can be followed by hand: two stations without backoff take turns at colliding.
#[test]
fn the_slow_model_collides() {
    let config = DcfConfig { window_min: 0, window_max: 0, retry_limit: 2, ..DcfConfig::default() };
    let mut model = SlowModel::new(config, crate::air::ELEVEN, crate::air::stream(1), 2);
    let arrivals = [(0, 0), (1, 0), (2, 1)].map(|(at, station)| Arrival { at, station, length: 1500 });
    model.run(&arrivals, false, usize::MAX);
    let given_up = Time::from_nanos((192 + 1118 + 258 + 50 + 2 * 1310 + 364 + 314) * MICRO);
    assert_eq!(model.done[1..], [0, 1].map(|station| Done { at: given_up, station, what: What::GivesUp }));
}
