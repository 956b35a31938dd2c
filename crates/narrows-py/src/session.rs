//! A network in virtual time that Python drives: packets in, time on, what became of them out. For senders that are written in
//! Python, such as environments of reinforcement learning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::sync::Mutex;

use narrows_core::{Duration, Engine, FlowKey, Headers, Packet, PortId, Protocol, Seed, Time, Verdict};
use narrows_scenario as inner;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{NarrowsError, ScenarioError, bad_scenario, other};

/// Packets of one call; more are a mistake, and would take all memory.
const MOST: u64 = 10_000_000;
/// UDP.
const TRANSPORT: u8 = 17;

/// A network in virtual time, and where it has come to.
#[pyclass(module = "narrows._narrows")]
pub(crate) struct Session {
    scenario: inner::Scenario,
    /// Never waited for: one call at a time has the whole of it. Engines may go to other threads, and are not shared.
    engine: Mutex<Engine<u32>>,
    ports: Vec<(String, PortId, Option<IpAddr>)>,
    now: Time,
    trains: Trains,
}

/// Packets that are sent later: an engine goes on to the instant of the packets that it gets, so it gets those of several
/// senders in the order of time.
#[derive(Default)]
struct Trains {
    /// By the instant of their next packet, then in the order in which they were asked for.
    all: BinaryHeap<Reverse<Train>>,
    asked: u64,
}

/// Packets of one call of `send`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Train {
    next: Time,
    asked: u64,
    left: u64,
    gap: Duration,
    port: PortId,
    length: u32,
    key: FlowKey,
    tag: u32,
}

impl Trains {
    fn next(&self) -> Option<Time> {
        self.all.peek().map(|Reverse(train)| train.next)
    }

    /// Sends the next packet.
    fn send(&mut self, engine: &mut Engine<u32>) {
        let Some(Reverse(mut train)) = self.all.pop() else { return };
        let packet = Packet {
            length: train.length,
            link_header: 0,
            network_header: if train.key.network == Protocol::Ipv4 { 20 } else { 0 },
            key: train.key,
            headers: Headers::default(),
            body: train.tag,
        };
        engine.hand_in(train.next, train.port, packet);
        train.next = train.next + train.gap;
        train.left -= 1;
        if train.left > 0 {
            self.all.push(Reverse(train));
        }
    }
}

/// What became of packets in an interval, over all of one tag.
#[pyclass(frozen, get_all, module = "narrows._narrows")]
#[derive(Clone, Default)]
pub(crate) struct Interval {
    /// Packets that were delivered.
    delivered: u64,
    /// Their bytes.
    delivered_bytes: u64,
    /// Packets that were dropped.
    dropped: u64,
    /// Delivered packets that are marked with "congestion experienced".
    marked: u64,
    /// The mean delay of those that were delivered, in seconds; None of none.
    delay_mean: Option<f64>,
    /// The least.
    delay_min: Option<f64>,
    /// The greatest.
    delay_max: Option<f64>,
    /// By how much the delay grew in a second of sending, by least squares; 0 for fewer than two packets.
    delay_slope: f64,
    /// When the last of them was delivered, in seconds.
    last: Option<f64>,
}

/// What least squares need.
#[derive(Clone, Default)]
struct Sums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn instant(at: f64) -> PyResult<Time> {
    if !(0.0..=3e9).contains(&at) {
        return Err(PyValueError::new_err(format!("{at} s is no instant: from 0 on")));
    }
    // Below 2^62.
    Ok(Time::ZERO + Duration::from_nanos((at * 1e9).round() as u64))
}

#[pymethods]
impl Session {
    #[new]
    fn new(scenario: &crate::scenario::Scenario, seed: Option<u64>) -> PyResult<Self> {
        let mut scenario = scenario.inner().clone();
        scenario.seed = seed.unwrap_or(scenario.seed);
        let mut network = scenario.network();
        network.seed = Seed(scenario.seed);
        let engine = Engine::new(network).map_err(other)?;
        let mut ports = Vec::new();
        for port in scenario.ports() {
            let Some(id) = engine.port(&port.name) else { continue };
            ports.push((port.name.clone(), id, port.addresses.first().map(|address| address.ip)));
        }
        Ok(Self { scenario, engine: Mutex::new(engine), ports, now: Time::ZERO, trains: Trains::default() })
    }

    /// The instant that it has come to, in seconds.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.now.nanos())
    }

    /// Packets that are inside.
    #[getter]
    fn inside(&mut self) -> PyResult<u64> {
        Ok(self.engine()?.inside())
    }

    /// Sends `count` packets of `length` bytes from a host or port to another, the first at `start`, so many seconds apart: when
    /// the session comes to these instants. `tag`
    /// tells them apart from others in [`Session::advance`].
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn send(
        &mut self,
        source: &str,
        destination: &str,
        start: f64,
        gap: f64,
        count: u64,
        length: u32,
        tag: u32,
    ) -> PyResult<()> {
        let (port, from) = self.port(source)?;
        let (_, to) = self.port(destination)?;
        let (start, gap) = (instant(start)?, instant(gap)?.since(Time::ZERO));
        if start < self.now {
            let words = format!("{} s is past: it is {} s", seconds(start.nanos()), self.now());
            return Err(PyValueError::new_err(words));
        }
        if count > MOST || !(20..=65_535).contains(&length) {
            return Err(PyValueError::new_err("at most 10 million packets at once, of 20 to 65,535 bytes"));
        }
        if count > 0 {
            let (asked, key) = (self.trains.asked, key(from, to, tag));
            self.trains.asked += 1;
            self.trains.all.push(Reverse(Train {
                next: start,
                asked,
                left: count,
                gap,
                port,
                length,
                key,
                tag,
            }));
        }
        let now = self.now;
        let (engine, trains) = self.inner()?;
        while trains.next().is_some_and(|next| next <= now) {
            trains.send(engine);
        }
        Ok(())
    }

    /// Goes on to an instant, and says what became of the packets of these tags on the way.
    fn advance(&mut self, py: Python<'_>, until: f64, tags: Vec<u32>) -> PyResult<Vec<Interval>> {
        let until = instant(until)?;
        if until < self.now {
            return Err(PyValueError::new_err(format!(
                "{} s is past: it is {} s",
                seconds(until.nanos()),
                self.now()
            )));
        }
        let (engine, trains) = self.inner()?;
        let intervals = py.detach(|| {
            while trains.next().is_some_and(|next| next <= until) {
                trains.send(engine);
            }
            let mut found = vec![(Interval::default(), Sums::default()); tags.len()];
            while let Some(event) = engine.poll(until) {
                let tag = *event.body.get();
                let Some(at) = tags.iter().position(|known| *known == tag) else { continue };
                let (interval, sums) = &mut found[at];
                let Verdict::Delivered(_) = event.verdict else {
                    interval.dropped += 1;
                    continue;
                };
                let delay = seconds(event.at.since(event.arrival).nanos());
                let sent = seconds(event.arrival.since(Time::ZERO).nanos());
                interval.delivered += 1;
                interval.delivered_bytes += u64::from(event.length);
                interval.marked += u64::from(event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED);
                interval.delay_min = Some(interval.delay_min.map_or(delay, |least| least.min(delay)));
                interval.delay_max = Some(interval.delay_max.map_or(delay, |most| most.max(delay)));
                interval.last = Some(seconds(event.at.nanos()));
                sums.add(sent, delay);
            }
            let finished = found.into_iter().map(|(interval, sums)| Interval {
                delay_mean: (sums.n > 0.0).then(|| sums.y / sums.n),
                delay_slope: sums.slope(),
                ..interval
            });
            finished.collect()
        });
        self.now = until;
        Ok(intervals)
    }

    /// Goes on until a packet of this tag is delivered or dropped for the last time, or to an instant at the latest: when that
    /// was, in seconds, and whether none is left.
    fn finish(&mut self, py: Python<'_>, tag: u32, count: u64, latest: f64) -> PyResult<(f64, bool)> {
        let latest = instant(latest)?;
        let mut now = self.now;
        let (engine, trains) = self.inner()?;
        let (now, is_whole) = py.detach(|| {
            let mut left = count;
            while left > 0 {
                let (sends, happens) = (trains.next(), engine.next_event());
                let Some(next) = sends.into_iter().chain(happens).min().filter(|next| *next <= latest) else {
                    return (now.max(latest), false);
                };
                if sends == Some(next) {
                    trains.send(engine);
                    continue;
                }
                while let Some(event) = engine.poll(next) {
                    now = event.at;
                    left -= u64::from(*event.body.get() == tag && left > 0);
                }
            }
            (now, true)
        });
        self.now = now;
        Ok((self.now(), is_whole))
    }

    /// Changes keys from now on, as `narrows set` does.
    fn set(&mut self, assignments: Vec<String>) -> PyResult<()> {
        let changes = self.scenario.assign_all(&assignments).map_err(bad_scenario)?;
        let now = self.now;
        let engine = self.engine()?;
        for (link, change) in changes {
            let Some(link) = engine.link(&link) else {
                return Err(NarrowsError::new_err(format!("there is no link `{link}`")));
            };
            engine.change(now, link, change);
        }
        Ok(())
    }
}

impl Session {
    fn engine(&mut self) -> PyResult<&mut Engine<u32>> {
        self.inner().map(|(engine, _)| engine)
    }

    fn inner(&mut self) -> PyResult<(&mut Engine<u32>, &mut Trains)> {
        let engine =
            self.engine.get_mut().map_err(|_| NarrowsError::new_err("this session has failed before"))?;
        Ok((engine, &mut self.trains))
    }

    /// A port by its name, or by that of a host that has one.
    fn port(&self, name: &str) -> PyResult<(PortId, Option<IpAddr>)> {
        let is_meant = |port: &str| port == name || port.split('.').next() == Some(name);
        match &self.ports.iter().filter(|(port, ..)| is_meant(port)).collect::<Vec<_>>()[..] {
            [(_, id, address)] => Ok((*id, *address)),
            [] => {
                let names: Vec<&str> = self.ports.iter().map(|(port, ..)| port.as_str()).collect();
                Err(ScenarioError::new_err(format!(
                    "there is no host or port `{name}`: {}",
                    names.join(", ")
                )))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|(port, ..)| port.as_str()).collect();
                Err(ScenarioError::new_err(format!("`{name}` has several ports: {}", names.join(", "))))
            }
        }
    }
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> f64 {
        let spread = self.n * self.xx - self.x * self.x;
        if self.n < 2.0 || spread <= 1e-12 { 0.0 } else { (self.n * self.xy - self.x * self.y) / spread }
    }
}

/// Of a flow over UDP, whose ports tell tags apart.
fn key(from: Option<IpAddr>, to: Option<IpAddr>, tag: u32) -> FlowKey {
    let bits = |address: Option<IpAddr>| match address {
        Some(IpAddr::V4(four)) => four.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(six)) => six.octets(),
        None => [0; 16],
    };
    let network = match from {
        Some(IpAddr::V4(_)) => Protocol::Ipv4,
        Some(IpAddr::V6(_)) => Protocol::Ipv6,
        None => Protocol::Other,
    };
    FlowKey {
        source: bits(from),
        destination: bits(to),
        network,
        transport: TRANSPORT,
        // Sixteen bits of it.
        source_port: 49_152 + (tag % 16_384) as u16,
        destination_port: 9,
        ..FlowKey::default()
    }
}
