//! The distributed coordination function of IEEE 802.11b as a scheduler: stations contend for one medium.
//!
//! Source: IEEE 802.11-2007, 9.2 (DCF) and clause 18 (the 11 Mbit/s PHY). Each flow is a station that hears all others.
//!
//! - A station may send at once when the medium has been idle for DIFS. One that finds it busy draws a backoff, uniform
//!   in 0…CW slots (9.2.4). Slots count while the medium is idle, after DIFS, or after EIFS where a collision came before;
//!   a slot in which the medium becomes busy does not count (9.2.5.2).
//! - Stations whose backoff ends at one instant collide: the medium is busy for the longest of their frames. CW goes from
//!   CWmin to `2·(CW + 1) − 1`, at most CWmax, and each draws again; at the retry limit the packet is dropped
//!   ([`DropReason::RetryLimit`]).
//! - After a frame come SIFS and its acknowledgement; CW is CWmin again, and the station draws a backoff whether or not
//!   another packet waits ("post-backoff"). `EIFS = SIFS + ACK at 1 Mbit/s + DIFS`.
//! - Frames longer than a threshold are announced by RTS and CTS, if one is set; then it is the RTS that collides.
//!
//! How it meets the link. The wire's rate is that of the PSDU (1, 2, 5.5 or 11 Mbit/s, or any other), and its overhead
//! must be what the MAC adds, [`Dcf::OVERHEAD`]: a packet is handed over at the instant at which its PSDU starts, and the
//! link's transmitter takes `(length + 36)·8/rate` for it. The rest (PLCP preamble and header, RTS and CTS, rounding up to
//! whole microseconds, SIFS, ACK, DIFS, backoff, collisions) the DCF adds itself, by answering "not before". It must be
//! asked again when the transmission ends, as a link does: that instant is the end of the PSDU.
//!
//! Where it departs, or the standard leaves it open:
//! - Carrier sense takes no time, and signals do not travel: stations collide only if they start at the same instant.
//!   Propagation is the link's delay line's business, and does not count in the exchange. What starts at the very instant at
//!   which a packet comes cannot be heard yet: if that packet's station may send at once, it does, and they collide.
//! - The ACK timeout ends with the others' EIFS, so that all stations share one grid of slots. The standard's is about
//!   92 µs shorter with long preambles, and depends on the PHY.
//! - A packet that comes while the medium is idle, but not yet for DIFS, waits for the end of DIFS without a backoff.
//! - Retries are those of the packet: where queue management drops it, the next begins anew. Where that happens while the
//!   preamble is on the air, the next one goes in its place, or else the medium is idle from the preamble's end on.
//! - While the rate is zero the medium counts as busy.
//! - One that takes over from another queue while the wire is busy counts the medium as idle until that transmission ends:
//!   stations may begin their preambles, but no PSDU, meanwhile.
//! - For the length of collided frames, an overhead that counts link headers takes those to be Ethernet's 14 bytes.
//!
//! It is a model with state: the n-th backoff that any station draws is the n-th draw of its stream. Work for a packet and
//! for a collided frame is logarithmic in the number of stations that have packets; the others cost nothing.
//!
//! One station that always has packets sends one every `DIFS + 15.5·slot + preamble + PSDU + SIFS + ACK` on average: with
//! 1500 bytes at 11 Mbit/s 1928 µs, or 6.2 Mbit/s.

mod airtime;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::random::Stream;
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::Rate;

/// The parameters of a DCF. The default is 802.11b with long preambles and without RTS and CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcfConfig {
    /// The length of a backoff slot; not zero. 20 µs.
    pub slot: Duration,
    /// Between a frame and its answer. 10 µs.
    pub sifs: Duration,
    /// How long the medium is idle before slots count: SIFS and two slots. 50 µs.
    pub difs: Duration,
    /// PLCP preamble and header before each frame: 192 µs, or 96 µs for the short form. Not zero.
    pub preamble: Duration,
    /// The rate of ACK, RTS and CTS, but no more than that of the wire. 2 Mbit/s; not zero.
    pub basic_rate: Rate,
    /// The contention window of a first attempt: one less than a power of two, at most 65,535. 31.
    pub window_min: u32,
    /// The greatest contention window: one less than a power of two, `window_min` to 65,535. 1023.
    pub window_max: u32,
    /// How often a packet may collide: at that collision it is dropped. At least 1; 7 (dot11ShortRetryLimit). The limit
    /// for frames beyond the RTS threshold is another one in the standard, but counts only what fails after CTS.
    pub retry_limit: u8,
    /// Frames of more bytes than this, overhead included, are announced by RTS and CTS; nothing for none.
    pub rts_threshold: Option<u32>,
}

impl Default for DcfConfig {
    fn default() -> Self {
        Self {
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            preamble: Self::LONG_PREAMBLE,
            basic_rate: Rate::from_bits_per_second(2_000_000),
            window_min: 31,
            window_max: 1023,
            retry_limit: 7,
            rts_threshold: None,
        }
    }
}

impl DcfConfig {
    /// 144 bits of preamble and 48 of header at 1 Mbit/s.
    pub const LONG_PREAMBLE: Duration = Duration::from_micros(192);
    /// 72 bits of preamble at 1 Mbit/s and 48 of header at 2 Mbit/s.
    pub const SHORT_PREAMBLE: Duration = Duration::from_micros(96);
}

/// What a DCF has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcfCounters {
    /// Times that one station had the medium for itself.
    pub exchanges: u64,
    /// Times that several stations began at one instant.
    pub collisions: u64,
    /// Frames in those collisions.
    pub collided: u64,
}

/// Stations that contend for a medium by the rules of 802.11b.
#[derive(Debug)]
pub struct Dcf {
    config: DcfConfig,
    wire: Wire,
    stream: Stream,
    /// Backoffs drawn so far.
    draws: u64,
    counters: DcfCounters,
    medium: Medium,
    /// Backoff slots that had passed when the medium became busy last. A backoff ends when that many have passed as it
    /// says, and so nothing has to be done to freeze it.
    passed: u64,
    /// How often the medium has become busy.
    busy_periods: u64,
    /// The stations with packets that wait for the end of a backoff, by that end, or that start now.
    contending: BTreeSet<(u64, FlowId)>,
    /// When a packet came last that could be sent at once. Its backoff has ended, maybe long ago and amid a slot.
    joined: Time,
    /// The stations whose first packet has reached the retry limit, and when they give it up.
    given_up: VecDeque<(Time, FlowId)>,
}

/// What is on the air.
#[derive(Clone, Copy, Debug)]
enum Medium {
    /// Nothing from `busy_until` on; slots count from `slots_from` on, after DIFS or EIFS.
    Idle { busy_until: Time, slots_from: Time },
    /// What comes before a station's PSDU, which starts at `psdu`.
    Announced { flow: FlowId, psdu: Time },
    /// A PSDU. The link knows when it ends.
    Psdu { since: Time },
    /// The wire is down; `slots_from` as it was.
    Down { slots_from: Time },
}

/// What is kept of a station.
#[derive(Debug, Default)]
pub struct Station {
    /// The number of slots that will have passed when its backoff ends, or ended.
    expiry: u64,
    /// The busy period in which that began.
    begun: u64,
    /// How often its first packet has collided.
    retries: u8,
}

impl Dcf {
    /// What the MAC adds to a packet: a header of 24 bytes and the check sequence of 4 (7.2.2), and 8 of LLC and SNAP
    /// (RFC 1042).
    pub const OVERHEAD: Overhead = Overhead { extra: 36, ..Overhead::IP };

    /// An idle medium. Backoffs are draws of `stream`.
    pub fn new(config: DcfConfig, stream: Stream) -> Self {
        Self {
            config,
            wire: Wire { rate: Rate::UNLIMITED, overhead: Self::OVERHEAD },
            stream,
            draws: 0,
            counters: DcfCounters::default(),
            medium: Medium::Idle { busy_until: Time::ZERO, slots_from: Time::ZERO },
            passed: 0,
            busy_periods: 0,
            contending: BTreeSet::new(),
            joined: Time::ZERO,
            given_up: VecDeque::new(),
        }
    }

    /// What it has counted.
    pub const fn counters(&self) -> DcfCounters {
        self.counters
    }

    /// Handles the starts of frames before `now`. Who starts at an instant is known only when it is over: packets may still
    /// come.
    fn catch_up(&mut self, now: Time, flows: &mut Flows<Station>) {
        while let Some(at) = self.next_start()
            && at < now
        {
            self.become_busy(at);
            let mut starting = Vec::new();
            while let Some(&(expiry, flow)) = self.contending.first()
                && expiry <= self.passed
            {
                self.contending.pop_first();
                starting.push(flow);
            }
            match starting[..] {
                [winner] => self.announce(at, winner, flows),
                _ => self.collide(at, &starting, flows),
            }
        }
    }

    /// When stations start next, if the medium stays idle until then.
    fn next_start(&self) -> Option<Time> {
        let Medium::Idle { slots_from, .. } = self.medium else { return None };
        let (expiry, _) = self.contending.first()?;
        let slots = expiry.saturating_sub(self.passed).saturating_mul(self.config.slot.nanos());
        Some((slots_from + Duration::from_nanos(slots)).max(self.joined))
    }

    /// Slots that have passed.
    fn passed(&self, now: Time) -> u64 {
        match self.medium {
            Medium::Idle { slots_from, .. } => {
                self.passed + now.since(slots_from).nanos() / self.config.slot.nanos()
            }
            _ => self.passed,
        }
    }

    fn become_busy(&mut self, at: Time) {
        self.passed = self.passed(at);
        self.busy_periods += 1;
    }

    /// A single station begins to send.
    fn announce(&mut self, at: Time, flow: FlowId, flows: &Flows<Station>) {
        self.counters.exchanges += 1;
        let first = flows.first(flow).map_or(0, |first| first.length);
        self.medium = Medium::Announced { flow, psdu: at + self.before_psdu(first) };
    }

    fn collide(&mut self, at: Time, stations: &[FlowId], flows: &mut Flows<Station>) {
        self.counters.collisions += 1;
        self.counters.collided += stations.len() as u64;
        let first = |&flow: &FlowId| flows.first(flow).map_or(0, |first| first.length);
        let longest = stations.iter().map(|flow| self.collided(first(flow))).max();
        let busy_until = at + longest.unwrap_or_default();
        self.medium = Medium::Idle { busy_until, slots_from: busy_until + self.eifs() };
        for &flow in stations {
            flows[flow].retries += 1;
            if flows[flow].retries < self.config.retry_limit {
                self.back_off(flow, flows);
            } else {
                self.given_up.push_back((busy_until + self.ack_timeout(), flow));
            }
        }
    }

    /// A station draws a backoff while the medium is busy, and contends if it has a packet.
    fn back_off(&mut self, flow: FlowId, flows: &mut Flows<Station>) {
        let doubled = (u64::from(self.config.window_min) + 1) << flows[flow].retries.min(16);
        let window = doubled.min(u64::from(self.config.window_max) + 1);
        let slots = self.stream.nth(self.draws).below(window);
        self.draws += 1;
        self.wait(flow, self.passed + slots, flows);
    }

    /// A station's backoff, which begins in this busy period, ends when so many slots have passed.
    fn wait(&mut self, flow: FlowId, expiry: u64, flows: &mut Flows<Station>) {
        let waits = flows.packets(flow) > 0;
        let station = &mut flows[flow];
        (station.expiry, station.begun) = (expiry, self.busy_periods);
        if waits {
            self.contending.insert((expiry, flow));
        }
    }

    /// Whether a station's backoff has ended. One of no slots does at the end of DIFS.
    fn has_ended(&self, station: &Station, now: Time) -> bool {
        let passed = self.passed(now);
        let counting = matches!(self.medium, Medium::Idle { slots_from, .. } if slots_from <= now);
        station.expiry < passed || station.expiry == passed && (station.begun < self.busy_periods || counting)
    }

    /// The PSDU on the air ends: SIFS and ACK follow.
    fn finish(&mut self, now: Time) {
        if let Medium::Psdu { since } = self.medium {
            let end = since + airtime::whole_micros(now.since(since));
            let busy_until = end + self.config.sifs + self.ack();
            self.medium = Medium::Idle { busy_until, slots_from: busy_until + self.config.difs };
        }
    }
}

impl Scheduler for Dcf {
    type Flow = Station;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<Station, Refused> {
        Ok(Station::default())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<Station>) {}

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Station>) {
        self.catch_up(now, flows);
        if flows.packets(flow) > 1 {
            return;
        }
        if !self.has_ended(&flows[flow], now) {
            self.contending.insert((flows[flow].expiry, flow));
            return;
        }
        match self.medium {
            Medium::Idle { busy_until, .. } if busy_until <= now => {
                self.joined = now;
                self.wait(flow, self.passed(now), flows);
            }
            _ => self.back_off(flow, flows),
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<Station>) -> Selection {
        self.finish(now);
        self.catch_up(now, flows);
        if let Some(&(due, flow)) = self.given_up.front()
            && due <= now
        {
            return Selection::GiveUp(flow, DropReason::RetryLimit);
        }
        let next = match self.medium {
            Medium::Announced { flow, psdu } if psdu <= now => return Selection::Flow(flow),
            Medium::Announced { psdu, .. } => psdu,
            _ if flows.waiting() == 0 => return Selection::Empty,
            _ => self.next_start().map_or(Time::NEVER, |at| at + Duration::from_nanos(1)),
        };
        Selection::NotBefore(self.given_up.front().map_or(next, |&(due, _)| next.min(due)))
    }

    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<Station>) {
        self.medium = Medium::Psdu { since: now };
        flows[flow].retries = 0;
        self.back_off(flow, flows);
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<Station>) {
        flows[flow].retries = 0;
        if let Some(at) = self.given_up.iter().position(|&(_, given_up)| given_up == flow) {
            self.given_up.remove(at);
            return self.back_off(flow, flows);
        }
        if flows.packets(flow) > 0 {
            return;
        }
        match self.medium {
            Medium::Announced { flow: sending, psdu } if sending == flow => {
                self.medium = Medium::Idle { busy_until: psdu, slots_from: psdu + self.config.difs };
            }
            _ => {
                self.contending.remove(&(flows[flow].expiry, flow));
            }
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.wire = wire;
        match self.medium {
            Medium::Idle { slots_from, .. } if wire.rate == Rate::DOWN => {
                if slots_from <= now {
                    self.become_busy(now);
                }
                self.medium = Medium::Down { slots_from };
            }
            Medium::Down { slots_from } if wire.rate != Rate::DOWN => {
                let slots_from = slots_from.max(now + self.config.difs);
                self.medium = Medium::Idle { busy_until: now, slots_from };
            }
            _ => {}
        }
    }
}
