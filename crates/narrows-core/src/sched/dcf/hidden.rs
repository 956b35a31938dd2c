//! The DCF with hidden stations: stations that do not hear each other, and one receiver that hears all.
//!
//! Source: IEEE 802.11-2007, 9.2: carrier sense (9.2.1), EIFS (9.2.3.4), RTS/CTS and the network allocation vector,
//! NAV (9.2.5.4). Backoff, windows, retries and frame times are those of [`Dcf`](super::Dcf).
//!
//! - A cell has one receiver, the access point. It hears all stations, and all stations hear it. Every frame is
//!   addressed to it, except its own (the CTS and ACK frames). The queue of the access point, for the downlink, is a
//!   station that hears all others.
//! - A station's medium is busy while it sends, while it hears a frame, and until the end of its NAV. Each station has
//!   an idle time and slots of its own.
//! - A frame is received if no other frame overlaps it at the receiver, not even the receiver's own. A frame is lost
//!   if one of another station starts during it, and that one is lost, too. So between stations that do not hear each
//!   other the vulnerable period is the time of both frames, plus the SIFS in which the acknowledgement cannot be heard
//!   yet.
//! - A data frame sets the NAV of the stations that hear it until the end of its ACK. CTS, which all stations hear,
//!   sets it until the end of the exchange. RTS sets it for 2 SIFS, CTS, a preamble and 2 slots, after which the
//!   standard lets a station reset its NAV if it hears nothing.
//! - If the last frame that a station has heard was overlapped by another one at that station, or by its own frame,
//!   its slots count after EIFS; otherwise after DIFS.
//!
//! # Use on a link
//! Transmissions overlap in time, so the link's transmitter takes no part: the scheduler answers
//! [`Selection::Ended`] at the end of each PSDU that the receiver gets. A station's PSDU takes the time that the
//! station's rate gives, at most the wire's, in whole microseconds.
//!
//! # Differences from the standard, and open points
//! - Those of [`Dcf`](super::Dcf) about carrier sense, propagation, the ACK timeout, and packets that arrive during
//!   DIFS.
//! - No capture: frames that overlap are all lost, whatever their signal strengths. That also holds for a downlink
//!   frame and an uplink frame that start together.
//! - Responses to downlink frames come from the receiver, too, and not from the station that the packet is for. All
//!   stations have set their NAV by the frame itself, so this makes no difference to them.
//! - One counter counts all failures of a packet, before and after CTS. The standard has two.
//! - If queue management drops a packet whose frame is on the air, the frame ends as it would have. Queue management
//!   judges a packet at the end of its PSDU. If it drops it then, the next packet goes in its place.
//! - While the rate is zero no station starts a transmission, and those on the air are completed. Slots that counted
//!   in the idle period in which it became zero count again.
//!
//! The work for a frame is proportional to the number of stations, idle ones included.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::random::Stream;
use crate::sched::dcf::airtime::Phy;
use crate::sched::{
    ClassSettings, Dcf, DcfConfig, DcfCounters, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection,
};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// Stations that contend for a radio channel, and of which some do not hear each other.
#[derive(Debug)]
pub struct HiddenDcf {
    phy: Phy,
    stream: Stream,
    /// Backoffs drawn so far.
    draws: u64,
    counters: DcfCounters,
    /// Whether a frame was lost since the receiver last heard nothing.
    lossy: bool,
    /// Whether a station does not hear another one, by their numbers. Stations beyond it hear all, and are heard.
    hidden: Vec<Vec<bool>>,
    /// The frames on the air, in the order in which they began.
    on_air: Vec<Frame>,
    /// The number of frames so far.
    frames: u64,
    /// What starts after SIFS.
    response: Option<(Time, Response)>,
    /// Packets that have been received and still wait in their queues, with the starts of their PSDUs.
    received: VecDeque<(FlowId, Time)>,
    /// The stations whose first packet has reached the retry limit, and when they give it up.
    given_up: VecDeque<(Time, FlowId)>,
    /// No slot counts before this time: the wire was down, or is down if it never comes.
    up_since: Time,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u64,
    content: Content,
    began: Time,
    until: Time,
    /// Whether it has not overlapped with another one at the receiver.
    intact: bool,
}

/// Frames of a station, or of the receiver to a station. `length` is that of the packet.
#[derive(Clone, Copy, Debug)]
enum Content {
    Rts { from: FlowId, length: u32 },
    Cts { to: FlowId, length: u32 },
    Data { from: FlowId, length: u32 },
    Ack { to: FlowId },
}

/// A frame that follows another one after SIFS, whatever is on the air.
type Response = Content;

impl Content {
    /// The station that sends it; `None` for the receiver.
    const fn sender(self) -> Option<FlowId> {
        match self {
            Self::Rts { from, .. } | Self::Data { from, .. } => Some(from),
            Self::Cts { .. } | Self::Ack { .. } => None,
        }
    }
}

/// Per-flow state: a station.
#[derive(Debug)]
pub struct HiddenStation {
    /// The rate of its PSDUs, if not the wire's.
    rate: Option<Rate>,
    /// The number of failures of its first packet.
    retries: u8,
    activity: Activity,
    /// Whether it has a packet to contend with.
    backlogged: bool,
    /// Whether its frame on the air carries a packet that has been dropped meanwhile.
    void: bool,
    /// The slots left of its backoff when it last heard something; `None` if no backoff is pending.
    backoff: Option<u64>,
    /// When its slots count from; never while its medium is busy.
    slots_from: Time,
    /// The end of its NAV.
    nav: Time,
    /// The number of frames of others that it hears.
    heard: u32,
    /// The frame that it hears, if nothing has overlapped it so far.
    receiving: Option<u64>,
}

/// What a station does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// It contends, if it has a packet.
    Contends,
    /// Its frame is on the air.
    Sends,
    /// Its exchange goes on, or it waits to give up its packet.
    Waits,
}

impl Default for HiddenStation {
    fn default() -> Self {
        Self {
            rate: None,
            retries: 0,
            activity: Activity::Contends,
            backlogged: false,
            void: false,
            backoff: None,
            slots_from: Time::ZERO,
            nav: Time::ZERO,
            heard: 0,
            receiving: None,
        }
    }
}

impl HiddenStation {
    /// Whether a packet that arrives has to wait for a backoff.
    fn is_busy(&self, now: Time) -> bool {
        self.activity != Activity::Contends || self.heard > 0 || now < self.nav
    }

    /// When it starts to send if its medium stays idle.
    fn start(&self, slot: Duration, up_since: Time) -> Time {
        match self.backoff {
            Some(slots) if self.backlogged && self.activity == Activity::Contends => {
                let backoff = Duration::from_nanos(slots.saturating_mul(slot.nanos()));
                self.slots_from.max(up_since) + backoff
            }
            _ => Time::NEVER,
        }
    }

    /// Its slots count from `slots_from` on, but not before its NAV and DIFS are over, if nothing is on the air for it.
    fn becomes_idle(&mut self, slots_from: Time, difs: Duration) {
        if self.heard == 0 && self.activity != Activity::Sends {
            self.slots_from = slots_from.max(self.nav + difs);
        }
    }

    /// Takes the slots that have passed off its backoff.
    fn count_down(&mut self, now: Time, slot: Duration, up_since: Time) {
        let from = self.slots_from.max(up_since);
        if let Some(slots) = self.backoff
            && from <= now
        {
            let passed = now.since(from).nanos() / slot.nanos();
            self.backoff = slots.checked_sub(passed).filter(|&left| left > 0);
            self.slots_from = from + Duration::from_nanos(passed * slot.nanos());
        }
    }
}

impl HiddenDcf {
    /// An idle cell in which the stations of each pair, given by the numbers of their flows, do not hear each other.
    /// Backoffs are drawn from `stream`.
    pub fn new(config: DcfConfig, stream: Stream, pairs: &[(u32, u32)]) -> Self {
        let stations =
            pairs.iter().map(|&(one, other)| one.max(other) as usize + 1).max().unwrap_or_default();
        let mut hidden = vec![vec![false; stations]; stations];
        for (one, other) in pairs.iter().map(|&(one, other)| (one as usize, other as usize)) {
            hidden[one][other] = true;
            hidden[other][one] = true;
        }
        Self {
            phy: Phy { config, wire: Wire { rate: Rate::UNLIMITED, overhead: Dcf::OVERHEAD } },
            stream,
            draws: 0,
            counters: DcfCounters::default(),
            lossy: false,
            hidden,
            on_air: Vec::new(),
            frames: 0,
            response: None,
            received: VecDeque::new(),
            given_up: VecDeque::new(),
            up_since: Time::ZERO,
        }
    }

    /// The counters. An exchange is a packet that was received. A collision is a time during which the receiver heard
    /// something without a pause, and in which frames were lost.
    pub const fn counters(&self) -> DcfCounters {
        self.counters
    }

    /// Whether a station hears what another one, or the receiver, sends.
    fn hears(&self, station: FlowId, sender: Option<FlowId>) -> bool {
        let Some(sender) = sender else { return true };
        let row = self.hidden.get(station.number() as usize);
        let is_hidden = row.and_then(|row| row.get(sender.number() as usize)).copied().unwrap_or_default();
        station != sender && !is_hidden
    }

    /// Handles what ends by `now` and what starts before it. What starts at an instant is known only when it is over,
    /// because packets may still arrive.
    fn catch_up(&mut self, now: Time, flows: &mut Flows<HiddenStation>) {
        loop {
            let (end, start) = (self.next_end(), self.next_start(flows));
            if end <= now && end <= start {
                self.end_frame(end, flows);
            } else if start < now {
                self.start_frames(start, flows);
            } else {
                return;
            }
        }
    }

    fn next_end(&self) -> Time {
        self.on_air.iter().map(|frame| frame.until).min().unwrap_or(Time::NEVER)
    }

    fn station_start(&self, station: FlowId, flows: &Flows<HiddenStation>) -> Time {
        flows[station].start(self.phy.config.slot, self.up_since)
    }

    fn next_start(&self, flows: &Flows<HiddenStation>) -> Time {
        let stations = flows.ids().map(|station| self.station_start(station, flows)).min();
        let response = self.response.map_or(Time::NEVER, |(at, _)| at);
        response.min(stations.unwrap_or(Time::NEVER))
    }

    /// Frames start at the same instant: their senders have not heard each other.
    fn start_frames(&mut self, at: Time, flows: &mut Flows<HiddenStation>) {
        let mut contents: Vec<Content> =
            self.response.take_if(|(due, _)| *due == at).map(|(_, response)| response).into_iter().collect();
        for from in flows.ids().filter(|&station| self.station_start(station, flows) == at) {
            let length = flows.first(from).map_or(0, |first| first.length);
            contents.push(match self.phy.is_announced_by_rts(length) {
                true => Content::Rts { from, length },
                false => Content::Data { from, length },
            });
        }
        for &content in &contents {
            if let Some(sender) = content.sender() {
                let station = &mut flows[sender];
                (station.activity, station.backoff) = (Activity::Sends, None);
                (station.slots_from, station.receiving) = (Time::NEVER, None);
            }
        }
        for content in contents {
            self.start_frame(at, content, flows);
        }
    }

    fn start_frame(&mut self, at: Time, content: Content, flows: &mut Flows<HiddenStation>) {
        let number = self.frames;
        self.frames += 1;
        let intact = self.on_air.is_empty();
        self.on_air.iter_mut().for_each(|frame| frame.intact = false);
        let until = at + self.air_time(content, flows);
        self.on_air.push(Frame { number, content, began: at, until, intact });

        let (slot, up_since) = (self.phy.config.slot, self.up_since);
        for (_, station) in flows.states_mut().filter(|&(id, _)| self.hears(id, content.sender())) {
            station.count_down(at, slot, up_since);
            station.slots_from = Time::NEVER;
            let alone = station.heard == 0 && station.activity != Activity::Sends;
            station.receiving = alone.then_some(number);
            station.heard += 1;
        }
    }

    fn air_time(&self, content: Content, flows: &Flows<HiddenStation>) -> Duration {
        let rate = |station: FlowId| self.phy.rate(flows[station].rate);
        match content {
            Content::Rts { from, .. } => self.phy.rts(rate(from)),
            Content::Cts { to, .. } => self.phy.cts(rate(to)),
            Content::Data { from, length } => self.phy.data(length, rate(from)),
            Content::Ack { to } => self.phy.ack(rate(to)),
        }
    }

    /// The first frame to end does so.
    fn end_frame(&mut self, at: Time, flows: &mut Flows<HiddenStation>) {
        let Some(index) = self.on_air.iter().position(|frame| frame.until == at) else { return };
        let frame = self.on_air.remove(index);
        let nav = at + self.reserved(frame.content, flows);
        let (difs, eifs) = (self.phy.config.difs, self.phy.eifs());
        let sender = frame.content.sender();
        if let Some(sender) = sender {
            flows[sender].activity = Activity::Waits;
            flows[sender].becomes_idle(at + eifs, difs);
        }
        for (_, station) in flows.states_mut().filter(|&(id, _)| self.hears(id, sender)) {
            station.heard -= 1;
            let is_read = station.receiving.take_if(|number| *number == frame.number).is_some();
            if is_read {
                station.nav = station.nav.max(nav);
            }
            station.becomes_idle(at + if is_read { difs } else { eifs }, difs);
        }
        self.respond(at, frame, flows);
        if self.on_air.is_empty() && self.lossy {
            self.lossy = false;
            self.counters.collisions += 1;
        }
    }

    /// For how long the stations that read a frame defer after it.
    fn reserved(&self, content: Content, flows: &Flows<HiddenStation>) -> Duration {
        let DcfConfig { sifs, slot, preamble, .. } = self.phy.config;
        let rate = |station: FlowId| self.phy.rate(flows[station].rate);
        match content {
            Content::Rts { from, .. } => sifs + sifs + self.phy.cts(rate(from)) + preamble + slot + slot,
            Content::Cts { to, length } => {
                sifs + self.phy.data(length, rate(to)) + sifs + self.phy.ack(rate(to))
            }
            Content::Data { from, .. } => sifs + self.phy.ack(rate(from)),
            Content::Ack { .. } => Duration::ZERO,
        }
    }

    /// What follows the end of a frame.
    fn respond(&mut self, at: Time, frame: Frame, flows: &mut Flows<HiddenStation>) {
        let after_sifs = at + self.phy.config.sifs;
        match frame.content {
            Content::Rts { from, .. } | Content::Data { from, .. } if !frame.intact => {
                self.fail(at, from, flows)
            }
            Content::Rts { from, length } => {
                self.response = Some((after_sifs, Content::Cts { to: from, length }));
            }
            Content::Cts { to, length } => {
                // The CTS is for the station itself.
                flows[to].nav = at;
                self.response = Some((after_sifs, Content::Data { from: to, length }));
            }
            Content::Data { from, .. } => {
                self.counters.exchanges += 1;
                self.response = Some((after_sifs, Content::Ack { to: from }));
                if core::mem::take(&mut flows[from].void) {
                    return self.back_off(at, from, flows);
                }
                self.received.push_back((from, frame.began + self.phy.config.preamble));
            }
            Content::Ack { to } => flows[to].activity = Activity::Contends,
        }
    }

    /// A station's frame is lost.
    fn fail(&mut self, at: Time, from: FlowId, flows: &mut Flows<HiddenStation>) {
        self.counters.collided += 1;
        self.lossy = true;
        let station = &mut flows[from];
        if !core::mem::take(&mut station.void) {
            station.retries += 1;
        }
        if station.retries < self.phy.config.retry_limit {
            station.activity = Activity::Contends;
            self.back_off(at, from, flows);
        } else {
            self.given_up.push_back((at + self.phy.ack_timeout(), from));
        }
    }

    /// A station draws a backoff.
    fn back_off(&mut self, now: Time, flow: FlowId, flows: &mut Flows<HiddenStation>) {
        let backlogged = flows.packets(flow) > 0;
        let station = &mut flows[flow];
        station.backlogged = backlogged;
        let window = self.phy.config.window(station.retries);
        station.backoff = Some(self.stream.nth(self.draws).below(window));
        station.slots_from = station.slots_from.max(now);
        self.draws += 1;
    }
}

impl Scheduler for HiddenDcf {
    type Flow = HiddenStation;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<HiddenStation, Refused> {
        Ok(HiddenStation::default())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<HiddenStation>) {}

    fn set_class(
        &mut self,
        now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<HiddenStation>,
    ) -> Result<(), Refused> {
        let ClassSettings::StationRate(rate) = settings else { return Err(Refused::NoSettings) };
        self.catch_up(now, flows);
        flows[flow].rate = rate;
        Ok(())
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<HiddenStation>) {
        self.catch_up(now, flows);
        if flows.packets(flow) > 1 {
            return;
        }
        let (slot, up_since) = (self.phy.config.slot, self.up_since);
        let station = &mut flows[flow];
        station.count_down(now, slot, up_since);
        station.backlogged = true;
        if station.backoff.is_some() || station.activity != Activity::Contends {
            return;
        }
        if station.is_busy(now) || up_since == Time::NEVER {
            return self.back_off(now, flow, flows);
        }
        station.backoff = Some(0);
        station.slots_from = station.slots_from.max(now);
    }

    fn select(&mut self, now: Time, flows: &mut Flows<HiddenStation>) -> Selection {
        self.catch_up(now, flows);
        if let Some(&(due, flow)) = self.given_up.front()
            && due <= now
        {
            return Selection::GiveUp(flow, DropReason::RetryLimit);
        }
        if let Some(&(flow, began)) = self.received.front() {
            return Selection::Ended(flow, began);
        }
        if flows.waiting() == 0 {
            return Selection::Empty;
        }
        let next = self.next_end().min(self.next_start(flows) + Duration::from_nanos(1));
        Selection::NotBefore(self.given_up.front().map_or(next, |&(due, _)| next.min(due)))
    }

    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<HiddenStation>) {
        self.received.retain(|&(received, _)| received != flow);
        flows[flow].retries = 0;
        self.back_off(now, flow, flows);
    }

    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<HiddenStation>) {
        let backlogged = flows.packets(flow) > 0;
        let station = &mut flows[flow];
        (station.retries, station.backlogged) = (0, backlogged);
        if let Some(index) = self.given_up.iter().position(|&(_, given_up)| given_up == flow) {
            self.given_up.remove(index);
            station.activity = Activity::Contends;
            return self.back_off(now, flow, flows);
        }
        if self.received.iter().any(|&(received, _)| received == flow) {
            self.received.retain(|&(received, _)| received != flow);
            return self.back_off(now, flow, flows);
        }
        // Not after the reception, while only the ACK is still to come.
        station.void = station.activity != Activity::Contends && station.backoff.is_none();
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        if wire.rate == Rate::DOWN {
            self.up_since = Time::NEVER;
            // What is on the air is completed at the rate of before.
            self.phy.wire.overhead = wire.overhead;
            return;
        }
        if self.up_since == Time::NEVER {
            self.up_since = now + self.phy.config.difs;
        }
        self.phy.wire = wire;
    }
}
