//! The meter: what can only be observed during a run.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use narrows_core::{Duration, Event, PortId, Time, Verdict};

use crate::figures::Spread;
use crate::watch::{LatenessBound, USUAL_BOUND, Watch};

/// The bounds for which a report gives the share of packets released later.
pub const LATENESS_BOUNDS: [Duration; 4] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
];

/// The upper ends of the steps of a lateness histogram: 1, 2, 5 and so on from a microsecond to ten seconds.
pub const HISTOGRAM_BOUNDS: [Duration; 22] = {
    let mut bounds = [Duration::ZERO; 22];
    let (mut step, mut decade) = (0, 1_000);
    while step < bounds.len() {
        let factor = match step % 3 {
            0 => 1,
            1 => 2,
            _ => 5,
        };
        bounds[step] = Duration::from_nanos(decade * factor);
        step += 1;
        if step % 3 == 0 {
            decade *= 10;
        }
    }
    bounds
};

/// Watches a run. Every polled event goes through [`Meter::verdict`]; a live run also reports how late it released
/// packets and what the system lost.
///
/// The first packet from one port to another allocates the meters of that pair, and so does the first lateness of each
/// kind. A histogram doubles when three quarters of it are in use: some kilobytes, 512 KiB at most. No other call
/// allocates.
#[derive(Debug)]
pub struct Meter {
    ports: Vec<PortMeter>,
    /// By arrival port and delivery port, in the order in which they were first seen.
    pairs: Vec<((PortId, PortId), Box<PairMeter>)>,
    /// The place of each in `pairs`.
    places: HashMap<(PortId, PortId), u32, BuildHasherDefault<PairHasher>>,
    /// The index in `pairs` of the last delivery: the next one is likely to have the same.
    recent: usize,
    /// The instant when the call that sent a packet returned, minus its scheduled release.
    pub(crate) sent: Option<Box<Spread>>,
    /// How late stragglers were handed in.
    pub(crate) stragglers: Option<Box<Spread>>,
    /// Packets with implausible receive timestamps.
    pub(crate) implausible_stamps: u64,
    /// The bounds on lateness requested for the run.
    pub(crate) bounds: Vec<LatenessBound>,
    /// Records when packets exceeded these bounds, each bound once, or the default bound.
    pub(crate) watches: Vec<Watch>,
}

/// What a meter saw at one port.
#[derive(Debug, Default)]
pub(crate) struct PortMeter {
    /// Packets delivered here.
    pub(crate) delivered: u64,
    /// Packets that arrived here and were dropped.
    pub(crate) dropped: u64,
    /// Actual minus scheduled release.
    pub(crate) lateness: Option<Box<LatenessMeter>>,
    /// The instant of hand-in minus the instant of arrival.
    pub(crate) input_lateness: Option<Box<Spread>>,
    pub(crate) ring_drops: u64,
    pub(crate) send_failures: u64,
}

/// Packets that arrived at one port and were delivered at another.
#[derive(Debug)]
pub(crate) struct PairMeter {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) first: Time,
    pub(crate) last: Time,
    pub(crate) delay: Spread,
    pub(crate) queueing: Spread,
}

#[derive(Debug)]
pub(crate) struct LatenessMeter {
    pub(crate) spread: Spread,
    pub(crate) later_than: [u64; LATENESS_BOUNDS.len()],
}

/// Hashes the numbers of two ports. Nobody gains by ports that collide.
#[derive(Debug, Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u16(byte.into()));
    }

    fn write_u16(&mut self, number: u16) {
        // 2⁶⁴ divided by the golden ratio: Knuth, The Art of Computer Programming, volume 3, 6.4.
        self.0 = (self.0.rotate_left(16) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

impl Meter {
    /// A meter for an engine with `ports` ports.
    pub fn new(ports: usize) -> Self {
        Self {
            ports: (0..ports).map(|_| PortMeter::default()).collect(),
            pairs: Vec::new(),
            places: HashMap::default(),
            recent: 0,
            sent: None,
            stragglers: None,
            implausible_stamps: 0,
            bounds: Vec::new(),
            watches: vec![Watch::new(USUAL_BOUND)],
        }
    }

    /// Requests these bounds on lateness. Call it before anything is released.
    pub fn certify(&mut self, bounds: impl IntoIterator<Item = LatenessBound>) {
        self.bounds = bounds.into_iter().collect();
        let mut watched: Vec<_> = self.bounds.iter().map(|bound| bound.at_most).collect();
        watched.sort();
        watched.dedup();
        if watched.is_empty() {
            watched.push(USUAL_BOUND);
        }
        self.watches = watched.into_iter().map(Watch::new).collect();
    }

    /// A meter to continue with: it has the same bounds and no measurements.
    pub fn successor(&self) -> Self {
        let watches = self.watches.iter().map(Watch::anew).collect();
        Self { bounds: self.bounds.clone(), watches, ..Self::new(self.ports.len()) }
    }

    /// The requested bounds on lateness, or the default bound, and how many packets were released later than each.
    pub fn late(&self) -> Vec<(Duration, u64)> {
        self.watches.iter().map(Watch::count).collect()
    }

    /// Clears all measurements but keeps the memory, so that continuing allocates no more than before.
    pub fn clear(&mut self) {
        for port in &mut self.ports {
            let PortMeter { delivered, dropped, lateness, input_lateness, ring_drops, send_failures } = port;
            [delivered, dropped, ring_drops, send_failures].into_iter().for_each(|count| *count = 0);
            for LatenessMeter { spread, later_than } in lateness.as_deref_mut().into_iter() {
                spread.clear();
                *later_than = Default::default();
            }
            input_lateness.as_deref_mut().into_iter().for_each(Spread::clear);
        }
        for (_, pair) in &mut self.pairs {
            (pair.packets, pair.bytes) = (0, 0);
            pair.delay.clear();
            pair.queueing.clear();
        }
        self.implausible_stamps = 0;
        self.sent.as_deref_mut().into_iter().for_each(Spread::clear);
        self.stragglers.as_deref_mut().into_iter().for_each(Spread::clear);
        self.watches.iter_mut().for_each(|watch| *watch = watch.anew());
    }

    /// Adds the measurements of a meter that watched the same engine at another time, with the same bounds.
    pub fn add(&mut self, other: &Self) {
        if let Some(last) = other.ports.len().checked_sub(1) {
            self.grow(last);
        }
        for (port, more) in self.ports.iter_mut().zip(&other.ports) {
            port.add(more);
        }
        for ((from, to), more) in other.pairs.iter().filter(|(_, more)| more.packets > 0) {
            self.pair(*from, *to, more.first).add(more);
        }
        self.implausible_stamps += other.implausible_stamps;
        add_spread(&mut self.sent, &other.sent);
        add_spread(&mut self.stragglers, &other.stragglers);
        for (watch, more) in self.watches.iter_mut().zip(&other.watches) {
            watch.add(more);
        }
    }

    /// Records an event that was polled.
    pub fn verdict<B>(&mut self, event: &Event<'_, B>) {
        let from = event.id.port();
        let Verdict::Delivered(to) = event.verdict else {
            self.port(from).dropped += 1;
            return;
        };
        self.port(to).delivered += 1;
        self.pair(from, to, event.at).count(
            event.at,
            event.length,
            event.at.since(event.arrival),
            event.queued,
        );
    }

    /// Records an event of a generated packet, which no host sent or receives: it counts at its ports only;
    /// [`SourceMeter`](crate::SourceMeter) reports its results.
    pub fn verdict_of_generated<B>(&mut self, event: &Event<'_, B>) {
        match event.verdict {
            Verdict::Delivered(to) => self.port(to).delivered += 1,
            Verdict::Dropped { .. } => self.port(event.id.port()).dropped += 1,
        }
    }

    /// A packet that was `scheduled` to leave by `port` was handed to the system `lateness` after that instant.
    pub fn released(&mut self, port: PortId, scheduled: Time, lateness: Duration) {
        let meter = self.port(port).lateness.get_or_insert_with(|| {
            Box::new(LatenessMeter { spread: Spread::new(), later_than: [0; LATENESS_BOUNDS.len()] })
        });
        meter.spread.record(lateness);
        for (count, bound) in meter.later_than.iter_mut().zip(LATENESS_BOUNDS) {
            *count += u64::from(lateness > bound);
        }
        for watch in &mut self.watches {
            watch.released(scheduled, lateness);
        }
    }

    /// The call that sent a packet returned `lateness` after its instant.
    pub fn sent(&mut self, lateness: Duration) {
        self.sent.get_or_insert_with(|| Box::new(Spread::new())).record(lateness);
    }

    /// A packet was handed to the engine `lateness` after it had arrived at `port`.
    pub fn input_lateness(&mut self, port: PortId, lateness: Duration) {
        self.port(port).input_lateness.get_or_insert_with(|| Box::new(Spread::new())).record(lateness);
    }

    /// A packet was handed in `late` after an instant that the engine had already passed, and was taken as of the
    /// engine's time.
    pub fn straggled(&mut self, late: Duration) {
        self.stragglers.get_or_insert_with(|| Box::new(Spread::new())).record(late);
    }

    /// A packet had an implausible receive timestamp: its arrival time is unknown, so the run certifies nothing.
    pub fn implausibly_stamped(&mut self) {
        self.implausible_stamps += 1;
    }

    /// The system lost `packets` more packets before they could be read at `port`.
    pub fn receive_ring_dropped(&mut self, port: PortId, packets: u64) {
        self.port(port).ring_drops += packets;
    }

    /// The system refused to send `packets` packets by `port`.
    pub fn send_failed(&mut self, port: PortId, packets: u64) {
        self.port(port).send_failures += packets;
    }

    fn port(&mut self, port: PortId) -> &mut PortMeter {
        let index = usize::from(port.index());
        self.grow(index);
        &mut self.ports[index]
    }

    fn grow(&mut self, index: usize) {
        if index >= self.ports.len() {
            self.ports.resize_with(index + 1, PortMeter::default);
        }
    }

    fn pair(&mut self, from: PortId, to: PortId, at: Time) -> &mut PairMeter {
        let key = (from, to);
        if self.pairs.get(self.recent).is_none_or(|(recent, _)| *recent != key) {
            let next = self.pairs.len();
            let place = *self.places.entry(key).or_insert(next as u32) as usize;
            if place == next {
                self.pairs.push((key, Box::new(PairMeter::new(at))));
            }
            self.recent = place;
        }
        &mut self.pairs[self.recent].1
    }

    pub(crate) fn ports(&self) -> &[PortMeter] {
        &self.ports
    }

    /// In order of ports.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (PortId, PortId, &PairMeter)> {
        let mut seen: Vec<_> = self.pairs.iter().filter(|(_, pair)| pair.packets > 0).collect();
        seen.sort_unstable_by_key(|(ports, _)| *ports);
        seen.into_iter().map(|((from, to), pair)| (*from, *to, &**pair))
    }
}

fn add_spread(sum: &mut Option<Box<Spread>>, more: &Option<Box<Spread>>) {
    if let Some(more) = more.as_deref().filter(|more| more.count() > 0) {
        sum.get_or_insert_with(|| Box::new(Spread::new())).add(more);
    }
}

impl PortMeter {
    fn add(&mut self, more: &Self) {
        self.delivered += more.delivered;
        self.dropped += more.dropped;
        self.ring_drops += more.ring_drops;
        self.send_failures += more.send_failures;
        add_spread(&mut self.input_lateness, &more.input_lateness);
        if let Some(more) = more.lateness.as_deref().filter(|more| more.spread.count() > 0) {
            let sum = self.lateness.get_or_insert_with(|| {
                Box::new(LatenessMeter { spread: Spread::new(), later_than: [0; LATENESS_BOUNDS.len()] })
            });
            sum.spread.add(&more.spread);
            sum.later_than.iter_mut().zip(more.later_than).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Packets that were never released: lost before they were read, or refused on sending.
    pub(crate) fn lost_by_the_system(&self) -> u64 {
        self.ring_drops + self.send_failures
    }
}

impl PairMeter {
    fn new(first: Time) -> Self {
        Self { packets: 0, bytes: 0, first, last: first, delay: Spread::new(), queueing: Spread::new() }
    }

    /// Adds later measurements.
    fn add(&mut self, later: &Self) {
        self.packets += later.packets;
        self.bytes += later.bytes;
        self.last = self.last.max(later.last);
        self.delay.add(&later.delay);
        self.queueing.add(&later.queueing);
    }

    fn count(&mut self, at: Time, length: u32, delay: Duration, queueing: Duration) {
        if self.packets == 0 {
            self.first = at;
        }
        self.packets += 1;
        self.bytes += u64::from(length);
        self.last = at;
        self.delay.record(delay);
        self.queueing.record(queueing);
    }
}
