//! The distributed coordination function (DCF) of IEEE 802.11b as a scheduler: stations contend for one medium.
//!
//! Source: IEEE 802.11-2007, 9.2 (DCF) and clause 18 (the 11 Mbit/s PHY). Each flow is a station that hears all
//! others; [`HiddenDcf`] is for stations that do not.
//!
//! - A station may send immediately when the medium has been idle for DIFS. If the medium is busy, the station draws
//!   a backoff, uniform in 0…CW slots (9.2.4). Slots count while the medium is idle, after DIFS, or after EIFS
//!   following a collision. A slot in which the medium becomes busy does not count (9.2.5.2).
//! - Stations whose backoffs end at the same instant collide: the medium is busy for the longest of their frames. CW
//!   grows from CWmin to `2·(CW + 1) − 1`, at most CWmax, and each station draws again. At the retry limit the packet
//!   is dropped ([`DropReason::RetryLimit`]).
//! - A frame is followed by SIFS and its acknowledgement. CW is then CWmin again, and the station draws a backoff
//!   whether or not another packet waits ("post-backoff"). `EIFS = SIFS + ACK at 1 Mbit/s + DIFS`.
//! - If an RTS threshold is set, longer frames are announced by RTS and CTS. Then the RTS collides.
//!
//! # Use on a link
//! The wire's rate is that of the PSDU (1, 2, 5.5 or 11 Mbit/s, or any other). Its overhead must be what the MAC
//! adds, [`Dcf::OVERHEAD`]. A packet is handed over at the instant at which its PSDU starts, and the link's
//! transmitter takes `(length + 36)·8/rate` for it. The DCF adds the rest (PLCP preamble and header, RTS and CTS,
//! rounding up to whole microseconds, SIFS, ACK, DIFS, backoff, collisions) by answering [`Selection::NotBefore`].
//! [`Scheduler::select`] must be called at the end of the transmission, which is the end of the PSDU, as a link does.
//!
//! A station may have a rate of its own ([`ClassSettings::StationRate`]), at most the wire's. Its ACK, RTS and CTS frames
//! are not faster than that. The link's transmitter takes no part in its PSDUs: they are reported at their end, by
//! [`Selection::Ended`].
//!
//! # Differences from the standard, and open points
//! - Carrier sense takes no time, and signals have no propagation delay: stations collide only if they start at the
//!   same instant. The link's delay line models propagation, which does not count in the exchange. A transmission
//!   that starts at the very instant at which a packet arrives cannot be heard yet: if that packet's station may send
//!   immediately, it does, and they collide.
//! - The ACK timeout ends with the other stations' EIFS, so that all stations share one grid of slots. The standard's
//!   timeout is about 92 µs shorter with long preambles, and depends on the PHY.
//! - A packet that arrives while the medium is idle, but not yet for DIFS, waits until the end of DIFS without a
//!   backoff.
//! - Retries are counted per packet: if queue management drops it, the next packet starts again. If that happens
//!   while the preamble is on the air, the next packet is sent in its place; if there is none, the medium is idle
//!   from the end of the preamble. For a station with a rate of its own, this holds until the end of its PSDU.
//! - While the rate is zero the medium counts as busy. A PSDU of a station with a rate of its own is completed.
//! - If the DCF takes over from another queue while the wire is busy, the medium counts as idle until that
//!   transmission ends: stations may begin their preambles, but no PSDU, meanwhile.
//! - For the length of collided frames, an overhead that counts link headers assumes Ethernet's 14 bytes.
//!
//! The model has state: the n-th backoff of any station is the n-th draw of its stream. The work for a packet and for
//! a collided frame is logarithmic in the number of backlogged stations; idle stations cost nothing.
//!
//! A single backlogged station sends a packet every `DIFS + 15.5·slot + preamble + PSDU + SIFS + ACK` on average:
//! with 1500 bytes at 11 Mbit/s, 1928 µs or 6.2 Mbit/s.

mod airtime;
mod hidden;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::random::Stream;
use crate::sched::{ClassSettings, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::Rate;
use airtime::Phy;

pub use hidden::{HiddenDcf, HiddenStation};

/// The parameters of a DCF. The default is 802.11b with long preambles and without RTS and CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcfConfig {
    /// Backoff slot; not zero. Default: 20 µs.
    pub slot: Duration,
    /// Time between a frame and its response. Default: 10 µs.
    pub sifs: Duration,
    /// Idle time before slots count: SIFS and two slots. Default: 50 µs.
    pub difs: Duration,
    /// PLCP preamble and header of each frame; not zero. Default: 192 µs (long). The short form is 96 µs.
    pub preamble: Duration,
    /// Rate of ACK, RTS and CTS, limited to the wire's rate; not zero. Default: 2 Mbit/s.
    pub basic_rate: Rate,
    /// Contention window of a first attempt: one less than a power of two, at most 65,535. Default: 31.
    pub window_min: u32,
    /// Maximum contention window: one less than a power of two, from `window_min` to 65,535. Default: 1023.
    pub window_max: u32,
    /// Drop the packet at this many collisions; at least 1. Default: 7 (dot11ShortRetryLimit). The standard has
    /// another limit for frames above the RTS threshold, but it counts only failures after CTS.
    pub retry_limit: u8,
    /// Frames of more bytes than this, overhead included, are announced by RTS and CTS. Default: none.
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

    /// The number of backoffs to draw from after this many collisions: CW + 1.
    fn window(&self, retries: u8) -> u64 {
        let doubled = (u64::from(self.window_min) + 1) << retries.min(16);
        doubled.min(u64::from(self.window_max) + 1)
    }
}

/// Counters of a DCF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcfCounters {
    /// Transmissions of a single station, without a collision.
    pub exchanges: u64,
    /// Collisions: several stations that started at the same instant.
    pub collisions: u64,
    /// Frames in those collisions.
    pub collided: u64,
}

/// Stations that contend for a medium by the rules of 802.11b.
#[derive(Debug)]
pub struct Dcf {
    phy: Phy,
    stream: Stream,
    /// Backoffs drawn so far.
    draws: u64,
    counters: DcfCounters,
    medium: Medium,
    /// Backoff slots that had passed when the medium last became busy. A backoff ends at a given number of passed
    /// slots, so freezing it needs no work.
    passed: u64,
    /// How often the medium has become busy.
    busy_periods: u64,
    /// The stations with packets that wait for the end of a backoff, by that end, or that start now.
    contending: BTreeSet<(u64, FlowId)>,
    /// The last arrival of a packet that could be sent immediately. Its backoff has ended, possibly long ago and
    /// within a slot.
    joined: Time,
    /// The stations whose first packet has reached the retry limit, and when they give it up.
    given_up: VecDeque<(Time, FlowId)>,
}

/// The state of the medium.
#[derive(Clone, Copy, Debug)]
enum Medium {
    /// Idle from `busy_until` on. Slots count from `slots_from` on, after DIFS or EIFS.
    Idle { busy_until: Time, slots_from: Time },
    /// The transmission before a station's PSDU, which starts at `psdu`. If the station has a rate of its own, also the
    /// PSDU until `end`.
    Announced { flow: FlowId, psdu: Time, end: Option<Time> },
    /// A PSDU at the wire's rate. The link knows when it ends.
    Psdu { since: Time },
    /// The wire is down. `slots_from` is as it was before.
    Down { slots_from: Time },
}

/// Per-flow state: a station.
#[derive(Debug, Default)]
pub struct Station {
    /// The number of slots that will have passed when its backoff ends, or that had passed when it ended.
    expiry: u64,
    /// The busy period in which the backoff began.
    begun: u64,
    /// The number of collisions of its first packet.
    retries: u8,
    /// The rate of its PSDUs, if not the wire's.
    rate: Option<Rate>,
}

impl Dcf {
    /// What the MAC adds to a packet: a header of 24 bytes and the frame check sequence of 4 (7.2.2), and 8 bytes of
    /// LLC and SNAP (RFC 1042).
    pub const OVERHEAD: Overhead = Overhead { extra: 36, ..Overhead::IP };

    /// An idle medium. Backoffs are drawn from `stream`.
    pub fn new(config: DcfConfig, stream: Stream) -> Self {
        Self {
            phy: Phy { config, wire: Wire { rate: Rate::UNLIMITED, overhead: Self::OVERHEAD } },
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

    /// The counters.
    pub const fn counters(&self) -> DcfCounters {
        self.counters
    }

    /// Handles the starts of frames before `now`. The stations that start at an instant are known only when it is
    /// over, because packets may still arrive.
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
        let slots = expiry.saturating_sub(self.passed).saturating_mul(self.phy.config.slot.nanos());
        Some((slots_from + Duration::from_nanos(slots)).max(self.joined))
    }

    /// The number of slots that have passed.
    fn passed(&self, now: Time) -> u64 {
        match self.medium {
            Medium::Idle { slots_from, .. } => {
                self.passed + now.since(slots_from).nanos() / self.phy.config.slot.nanos()
            }
            _ => self.passed,
        }
    }

    fn become_busy(&mut self, at: Time) {
        self.passed = self.passed(at);
        self.busy_periods += 1;
    }

    /// A single station starts to send.
    fn announce(&mut self, at: Time, flow: FlowId, flows: &Flows<Station>) {
        self.counters.exchanges += 1;
        let first = flows.first(flow).map_or(0, |first| first.length);
        let own = flows[flow].rate;
        let rate = self.phy.rate(own);
        let psdu = at + self.phy.before_psdu(first, rate);
        let end = own.map(|_| psdu + self.phy.psdu(first, rate));
        self.medium = Medium::Announced { flow, psdu, end };
    }

    fn collide(&mut self, at: Time, stations: &[FlowId], flows: &mut Flows<Station>) {
        self.counters.collisions += 1;
        self.counters.collided += stations.len() as u64;
        let sends = |&flow: &FlowId| {
            let first = flows.first(flow).map_or(0, |first| first.length);
            self.phy.collided(first, self.phy.rate(flows[flow].rate))
        };
        let longest = stations.iter().map(sends).max();
        let busy_until = at + longest.unwrap_or_default();
        self.medium = Medium::Idle { busy_until, slots_from: busy_until + self.phy.eifs() };
        for &flow in stations {
            flows[flow].retries += 1;
            if flows[flow].retries < self.phy.config.retry_limit {
                self.back_off(flow, flows);
            } else {
                self.given_up.push_back((busy_until + self.phy.ack_timeout(), flow));
            }
        }
    }

    /// A station draws a backoff while the medium is busy, and contends if it has a packet.
    fn back_off(&mut self, flow: FlowId, flows: &mut Flows<Station>) {
        let window = self.phy.config.window(flows[flow].retries);
        let slots = self.stream.nth(self.draws).below(window);
        self.draws += 1;
        self.wait(flow, self.passed + slots, flows);
    }

    /// A station's backoff, which begins in this busy period, ends when this many slots have passed.
    fn wait(&mut self, flow: FlowId, expiry: u64, flows: &mut Flows<Station>) {
        let waits = flows.packets(flow) > 0;
        let station = &mut flows[flow];
        (station.expiry, station.begun) = (expiry, self.busy_periods);
        if waits {
            self.contending.insert((expiry, flow));
        }
    }

    /// Whether a station's backoff has ended. A backoff of zero slots ends at the end of DIFS.
    fn has_ended(&self, station: &Station, now: Time) -> bool {
        let passed = self.passed(now);
        let counting = matches!(self.medium, Medium::Idle { slots_from, .. } if slots_from <= now);
        station.expiry < passed || station.expiry == passed && (station.begun < self.busy_periods || counting)
    }

    /// The PSDU that the link transmits ends.
    fn finish(&mut self, now: Time) {
        if let Medium::Psdu { since } = self.medium {
            let end = since + airtime::whole_micros(now.since(since));
            self.acknowledge(end, self.phy.wire.rate);
        }
    }

    /// A PSDU of this rate ends. SIFS and ACK follow.
    fn acknowledge(&mut self, end: Time, rate: Rate) {
        self.idle_from(end + self.phy.config.sifs + self.phy.ack(rate));
    }

    /// The medium is idle from this instant on, if the wire is up.
    fn idle_from(&mut self, busy_until: Time) {
        let slots_from = busy_until + self.phy.config.difs;
        self.medium = match self.phy.wire.rate {
            Rate::DOWN => Medium::Down { slots_from },
            _ => Medium::Idle { busy_until, slots_from },
        };
    }
}

impl Scheduler for Dcf {
    type Flow = Station;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<Station, Refused> {
        Ok(Station::default())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<Station>) {}

    fn set_class(
        &mut self,
        _now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<Station>,
    ) -> Result<(), Refused> {
        let ClassSettings::StationRate(rate) = settings else { return Err(Refused::NoSettings) };
        flows[flow].rate = rate;
        Ok(())
    }

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
            Medium::Announced { flow, psdu, end: None } if psdu <= now => return Selection::Flow(flow),
            Medium::Announced { flow, psdu, end: Some(end) } if end <= now => {
                return Selection::Ended(flow, psdu);
            }
            Medium::Announced { psdu, end, .. } => end.unwrap_or(psdu),
            _ if flows.waiting() == 0 => return Selection::Empty,
            _ => self.next_start().map_or(Time::NEVER, |at| at + Duration::from_nanos(1)),
        };
        Selection::NotBefore(self.given_up.front().map_or(next, |&(due, _)| next.min(due)))
    }

    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<Station>) {
        match self.medium {
            Medium::Announced { end: Some(end), .. } => {
                self.acknowledge(end, self.phy.rate(flows[flow].rate))
            }
            _ => self.medium = Medium::Psdu { since: now },
        }
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
            Medium::Announced { flow: sending, psdu, end } if sending == flow => {
                self.idle_from(end.unwrap_or(psdu));
            }
            _ => {
                self.contending.remove(&(flows[flow].expiry, flow));
            }
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.phy.wire = wire;
        match self.medium {
            Medium::Idle { slots_from, .. } if wire.rate == Rate::DOWN => {
                if slots_from <= now {
                    self.become_busy(now);
                }
                self.medium = Medium::Down { slots_from };
            }
            Medium::Down { slots_from } if wire.rate != Rate::DOWN => {
                let slots_from = slots_from.max(now + self.phy.config.difs);
                self.medium = Medium::Idle { busy_until: now, slots_from };
            }
            _ => {}
        }
    }
}
