//! The sender: packets in flight, loss detection, retransmission time-out.

use std::collections::VecDeque;

use narrows_core::{Duration, Time};
use narrows_scenario::AimdConfig;

use crate::aimd::window::Window;

/// RFC 6298, 2.1, 2.4 and 2.5.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Linux's default (tcp_retries2).
const MOST_TIMEOUTS: u32 = 15;

#[derive(Debug)]
pub(super) struct Sender {
    window: Window,
    /// The send times of transmissions from number `first` on; `None` for those known to have arrived or to be lost.
    sent: VecDeque<Option<Time>>,
    first: u64,
    under_way: usize,
    /// Packets still to be sent, if the flow is finite.
    left: Option<u64>,
    /// The three highest numbers that have arrived, in descending order: everything sent before the third is lost.
    latest: [Option<u64>; 3],
    round_trip: Option<RoundTrip>,
    timeout: Duration,
    timeouts: u32,
    /// Initially the start of the flow, then the retransmission time-out.
    wakes: Option<Time>,
    stop: Time,
}

/// The estimate of RFC 6298, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: u64,
    variation: u64,
}

impl Sender {
    pub(super) fn new(config: &AimdConfig) -> Self {
        let packets = config.size.map(|size| size.get().div_ceil(config.length.max(1).into()));
        Self {
            window: Window::new(config.window, config.marks),
            sent: VecDeque::new(),
            first: 0,
            under_way: 0,
            left: packets,
            latest: [None; 3],
            round_trip: None,
            timeout: FIRST_TIMEOUT,
            timeouts: 0,
            wakes: (packets != Some(0)).then_some(config.start),
            stop: config.stop,
        }
    }

    /// When to call [`Sender::wake`]; after that there is something to send.
    pub(super) fn wakes(&self) -> Option<Time> {
        self.wakes.filter(|&at| at < self.stop)
    }

    /// The flow starts, or the time-out has expired: everything in flight counts as lost (RFC 6298, 5.4 to 5.6).
    pub(super) fn wake(&mut self) {
        self.wakes = None;
        if self.under_way == 0 {
            return;
        }
        self.window.timed_out(self.under_way, self.next(), self.timeouts > 0);
        self.put_back(self.under_way as u64);
        self.first = self.next();
        self.sent.clear();
        self.under_way = 0;
        self.timeouts += 1;
        self.timeout = (self.timeout + self.timeout).min(LONGEST_TIMEOUT);
    }

    /// Sends the next packet, if the window allows: returns its transmission number.
    pub(super) fn send(&mut self, now: Time) -> Option<u64> {
        if now >= self.stop || self.left == Some(0) || !self.window.has_room(self.under_way) {
            return None;
        }
        let number = self.next();
        self.sent.push_back(Some(now));
        self.under_way += 1;
        self.left = self.left.map(|left| left - 1);
        if self.wakes.is_none() && self.timeouts < MOST_TIMEOUTS {
            self.wakes = Some(now + self.timeout);
        }
        Some(number)
    }

    /// Processes an acknowledgement: the transmissions that have arrived, and which of them were marked.
    pub(super) fn learn(&mut self, now: Time, arrived: impl Iterator<Item = (u64, bool)>) {
        let mut last = None;
        for (number, marked) in arrived {
            // Transmissions given up earlier are no longer in the list.
            let place = number.checked_sub(self.first).and_then(|at| self.sent.get_mut(at as usize));
            let Some(sent) = place.and_then(Option::take) else { continue };
            last = Some(sent);
            self.under_way -= 1;
            self.window.acknowledged(number, marked, self.next());
            self.note(number);
        }
        let Some(sent) = last else { return };
        self.measure(now.since(sent));
        self.lose();
        self.timeouts = 0;
        self.wakes = (self.under_way > 0).then(|| now + self.timeout);
    }

    fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    fn put_back(&mut self, packets: u64) {
        self.left = self.left.map(|left| left + packets);
    }

    /// Keeps the three highest numbers.
    fn note(&mut self, number: u64) {
        let mut number = Some(number);
        for kept in &mut self.latest {
            if number > *kept {
                std::mem::swap(kept, &mut number);
            }
        }
    }

    /// Detects losses: three packets sent later have arrived.
    fn lose(&mut self) {
        let late = self.latest[2].unwrap_or(0);
        while let Some(sent) = self.sent.front()
            && (sent.is_none() || self.first < late)
        {
            if sent.is_some() {
                self.under_way -= 1;
                self.put_back(1);
                self.window.lost(self.first, self.next());
            }
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// RFC 6298, 2.2 to 2.5, with a clock granularity of zero.
    fn measure(&mut self, sample: Duration) {
        let sample = sample.nanos();
        let RoundTrip { smoothed, variation } = match self.round_trip {
            None => RoundTrip { smoothed: sample, variation: sample / 2 },
            Some(RoundTrip { smoothed, variation }) => RoundTrip {
                variation: (3 * variation + smoothed.abs_diff(sample)) / 4,
                smoothed: (7 * smoothed + sample) / 8,
            },
        };
        self.round_trip = Some(RoundTrip { smoothed, variation });
        let timeout = Duration::from_nanos(smoothed.saturating_add(4 * variation));
        self.timeout = timeout.clamp(LEAST_TIMEOUT, LONGEST_TIMEOUT);
    }
}
