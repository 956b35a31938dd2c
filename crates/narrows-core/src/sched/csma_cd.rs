//! Half-duplex Ethernet as a scheduler: stations contend for one medium by CSMA/CD.
//!
//! Source: IEEE 802.3-2002, clause 4 (4.2.3.2, 4.2.8 and the parameters of 4.4.2). Each flow is a station with its
//! own queue. Times are counted in bits at the wire's rate, so 10 and 100 Mbit/s follow the same rules.
//!
//! - A station with a frame sends as soon as the medium has been idle for the gap of 96 bits. If the medium is busy,
//!   the station waits until it is idle, then for the gap, and then sends with probability 1.
//! - A signal reaches the other stations after `propagation`. A station that starts before it has heard another one
//!   collides with it. All stations that collide finish their preambles (64 bits), jam for 32 bits and stop.
//! - After its n-th collision in a row, a frame waits for r slots of 512 bits from the end of the jam, r uniform in 0
//!   … 2^min(n, backoff limit) − 1, whatever happens on the medium meanwhile (truncated binary exponential backoff).
//!   At the attempt limit it is dropped ([`DropReason::Collisions`]).
//! - The attempt counter restarts with the next frame. So the winner of a contention meets, with its next frame, a
//!   loser that draws from a larger window, and is more likely to win again: the capture effect (K. K. Ramakrishnan
//!   and H. Yang, "The Ethernet capture effect: analysis and solution", IEEE LCN 1994). After m collisions of the
//!   loser's frame, the first of the winner's, the winner is first with probability `1 − 3/2^(m+1)`.
//!
//! # Use on a link
//! The wire's overhead must be what the MAC adds, [`CsmaCd::OVERHEAD`], without preamble and gap. A packet is handed
//! over at the end of its preamble, and the link's transmitter accounts for the rest. The scheduler adds preamble,
//! gap, jam and backoff by answering [`Selection::NotBefore`]. [`Scheduler::select`] must be called at the end of the
//! transmission, as a link does.
//!
//! # Differences from the standard
//! - All stations have the same distance from each other, as at a hub, and see the end of a frame or jam at the same
//!   instant. So stations that waited for it start together.
//! - `propagation` is at most the preamble, so that a frame is safe from collisions when its destination address
//!   begins. That is 6.4 µs at 10 Mbit/s, more than a hub and its cables take, and a quarter of what the standard
//!   allows a whole collision domain.
//! - The gap is not divided into two parts: whatever happens during it, a waiting station starts at its end.
//! - Attempts are counted per packet: if queue management drops it, the next packet starts again. If that happens
//!   during the preamble, the next packet is sent in its place; if there is none, the medium is idle from the end of
//!   the preamble.
//! - While the rate is zero the medium counts as busy. At an unlimited rate all times are zero.
//!
//! The model has state: the n-th backoff of any station is the n-th draw of its stream. The work for a packet and for
//! a collided frame is logarithmic in the number of backlogged stations.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::random::Stream;
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::{ConstantRate, Overhead, ServiceCurve, Work};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// Preamble and start frame delimiter, in bits.
const PREAMBLE: u32 = 64;
/// The jam after the preamble of a frame that collides.
const JAM: u32 = 32;
/// The gap between frames.
const GAP: u32 = 96;
/// The stations that start at an instant are known this much later.
const INSTANT: Duration = Duration::from_nanos(1);

/// The parameters of CSMA/CD. The default is Ethernet at 10 or 100 Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsmaCdConfig {
    /// Propagation delay between any two stations, in bits; at most [`CsmaCdConfig::MOST_PROPAGATION`]. Default: 20,
    /// a hub and two cables of 100 m at 10 Mbit/s.
    pub propagation: u32,
    /// Backoff slot, in bits; not zero. Default: 512.
    pub slot: u32,
    /// The window does not grow after this many collisions; at most 32. Default: 10.
    pub backoff_limit: u8,
    /// Drop the frame at this many collisions; at least 1. Default: 16.
    pub attempt_limit: u8,
}

impl CsmaCdConfig {
    /// Every station hears a signal before its preamble ends.
    pub const MOST_PROPAGATION: u32 = PREAMBLE;
}

impl Default for CsmaCdConfig {
    fn default() -> Self {
        Self { propagation: 20, slot: 512, backoff_limit: 10, attempt_limit: 16 }
    }
}

/// Counters of CSMA/CD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsmaCdCounters {
    /// Frames sent without a collision.
    pub frames: u64,
    /// Collisions.
    pub collisions: u64,
    /// Frames in those collisions.
    pub collided: u64,
}

/// Stations that contend for a wire by CSMA/CD.
#[derive(Debug)]
pub struct CsmaCd {
    config: CsmaCdConfig,
    rate: Rate,
    stream: Stream,
    /// Backoffs drawn so far.
    draws: u64,
    counters: CsmaCdCounters,
    medium: Medium,
    /// The stations that want to send, by the instant from which they would.
    contending: BTreeSet<(Time, FlowId)>,
    /// The stations whose first packet has reached the attempt limit, and when they give it up.
    given_up: VecDeque<(Time, FlowId)>,
}

/// The state of the wire.
#[derive(Clone, Copy, Debug)]
enum Medium {
    /// Idle, or a jam or gap that ends at `free`. Waiting stations start then.
    Idle { free: Time },
    /// The preamble of a station's frame, until `frame`.
    Preamble { flow: FlowId, frame: Time },
    /// A frame. The link knows when it ends.
    Frame,
    /// The wire is down. `free` is as it was before.
    Down { free: Time },
}

/// Per-flow state: a station.
#[derive(Debug, Default)]
pub struct EthernetStation {
    /// The instant from which it would send its first packet.
    ready: Time,
    /// The number of collisions of that packet.
    attempts: u8,
}

impl CsmaCd {
    /// What the MAC adds to a packet, counted from the link header on: the frame check sequence, and padding to 64
    /// bytes. The scheduler adds preamble and gap.
    pub const OVERHEAD: Overhead = Overhead { link_header: true, extra: 4, minimum: 64, cells: None };

    /// An idle medium. Backoffs are drawn from `stream`.
    pub fn new(config: CsmaCdConfig, stream: Stream) -> Self {
        Self {
            config,
            rate: Rate::UNLIMITED,
            stream,
            draws: 0,
            counters: CsmaCdCounters::default(),
            medium: Medium::Idle { free: Time::ZERO },
            contending: BTreeSet::new(),
            given_up: VecDeque::new(),
        }
    }

    /// The counters.
    pub const fn counters(&self) -> CsmaCdCounters {
        self.counters
    }

    /// Transmission time of this many bits.
    fn bits(&self, bits: u64) -> Duration {
        let finish = ConstantRate(self.rate).finish(Time::ZERO, Work::bits(bits));
        finish.map_or(Duration::ZERO, |finish| finish.at.since(Time::ZERO))
    }

    fn of(&self, bits: u32) -> Duration {
        self.bits(bits.into())
    }

    /// When a station starts next, if the medium stays idle until then.
    fn next_start(&self) -> Option<Time> {
        let Medium::Idle { free } = self.medium else { return None };
        self.contending.first().map(|&(ready, _)| ready.max(free))
    }

    /// When all stations that start together with one at `at` are known: packets may arrive at stations that have not
    /// heard it yet.
    fn known(&self, at: Time) -> Time {
        at + self.of(self.config.propagation).max(INSTANT)
    }

    /// Handles the starts whose participants are known by `now`.
    fn catch_up(&mut self, now: Time, flows: &mut Flows<EthernetStation>) {
        while let Some(at) = self.next_start()
            && self.known(at) <= now
        {
            let until = self.known(at);
            let mut starting = Vec::new();
            // Waiting stations start with the first; the others when they are ready.
            let mut last = at;
            while let Some(&(ready, flow)) = self.contending.first()
                && ready < until
            {
                self.contending.pop_first();
                starting.push(flow);
                last = last.max(ready);
                // At an unlimited rate nothing lasts long enough for a collision.
                if self.rate == Rate::UNLIMITED {
                    break;
                }
            }
            match starting[..] {
                [winner] => {
                    self.counters.frames += 1;
                    self.medium = Medium::Preamble { flow: winner, frame: at + self.of(PREAMBLE) };
                }
                _ => self.collide(last, &starting, flows),
            }
        }
    }

    /// A collision of these stations, the last of which starts at `last`. Its jam is the last to end, because the
    /// first station hears the second before the preamble of the last is over.
    fn collide(&mut self, last: Time, stations: &[FlowId], flows: &mut Flows<EthernetStation>) {
        self.counters.collisions += 1;
        self.counters.collided += stations.len() as u64;
        let end = last + self.of(PREAMBLE + JAM);
        self.medium = Medium::Idle { free: end + self.of(GAP) };
        for &flow in stations {
            let station = &mut flows[flow];
            station.attempts += 1;
            if station.attempts >= self.config.attempt_limit {
                self.given_up.push_back((end, flow));
                continue;
            }
            let window = 1 << station.attempts.min(self.config.backoff_limit).min(32);
            let slots = self.stream.nth(self.draws).below(window);
            self.draws += 1;
            // At most 2^32 slots of 2^32 bits.
            let ready = end + self.bits(slots * u64::from(self.config.slot));
            self.contend(flow, ready, flows);
        }
    }

    /// A station wants to send from `ready` on.
    fn contend(&mut self, flow: FlowId, ready: Time, flows: &mut Flows<EthernetStation>) {
        flows[flow].ready = ready;
        self.contending.insert((ready, flow));
    }
}

impl Scheduler for CsmaCd {
    type Flow = EthernetStation;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<EthernetStation, Refused> {
        Ok(EthernetStation::default())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<EthernetStation>) {}

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<EthernetStation>) {
        self.catch_up(now, flows);
        if flows.packets(flow) == 1 {
            self.contend(flow, now, flows);
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<EthernetStation>) -> Selection {
        if matches!(self.medium, Medium::Frame) {
            self.medium = Medium::Idle { free: now + self.of(GAP) };
        }
        self.catch_up(now, flows);
        if let Some(&(due, flow)) = self.given_up.front()
            && due <= now
        {
            return Selection::GiveUp(flow, DropReason::Collisions);
        }
        let next = match self.medium {
            Medium::Preamble { flow, frame } if frame <= now => return Selection::Flow(flow),
            Medium::Preamble { frame, .. } => frame,
            _ if flows.waiting() == 0 => return Selection::Empty,
            _ => self.next_start().map_or(Time::NEVER, |at| self.known(at)),
        };
        Selection::NotBefore(self.given_up.front().map_or(next, |&(due, _)| next.min(due)))
    }

    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<EthernetStation>) {
        self.medium = Medium::Frame;
        flows[flow].attempts = 0;
        if flows.packets(flow) > 0 {
            self.contend(flow, now, flows);
        }
    }

    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<EthernetStation>) {
        flows[flow].attempts = 0;
        let has_more = flows.packets(flow) > 0;
        if let Some(at) = self.given_up.iter().position(|&(_, given_up)| given_up == flow) {
            self.given_up.remove(at);
            if has_more {
                self.contend(flow, now, flows);
            }
            return;
        }
        if has_more {
            return;
        }
        match self.medium {
            Medium::Preamble { flow: sending, frame } if sending == flow => {
                self.medium = Medium::Idle { free: frame + self.of(GAP) };
            }
            _ => {
                self.contending.remove(&(flows[flow].ready, flow));
            }
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.rate = wire.rate;
        match self.medium {
            Medium::Idle { free } if wire.rate == Rate::DOWN => self.medium = Medium::Down { free },
            Medium::Down { free } if wire.rate != Rate::DOWN => {
                self.medium = Medium::Idle { free: free.max(now + self.of(GAP)) };
            }
            _ => {}
        }
    }
}
