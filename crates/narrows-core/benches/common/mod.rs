//! The runs that the benches measure: a steady stream through one link, and the heap that it is compared with.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hint::black_box;

use narrows_core::model::selector::GilbertElliott;
use narrows_core::model::{Constant, Fed, FeedConfig, Independent, Normal};
use narrows_core::netem::{self, Chance, Netem, Share};
use narrows_core::service::{ConstantRate, Opportunities, RateSteps};
use narrows_core::steps::{After, Steps};
use narrows_core::{
    Bytes, Duration, Engine, FlowKey, LinkConfig, LinkId, Loss, NetworkConfig, Order, Packet, PortConfig,
    PortId, Probability, Protocol, Rate, Seed, SlotGap, Slots, Target, Time,
};

/// Packets of 1,000 bytes come every 10 µs; at 1 Gbit/s each is on the wire for 8 µs.
pub(crate) const GAP: Duration = Duration::from_micros(10);
const RATE: Rate = Rate::from_bits_per_second(1_000_000_000);
const LENGTH: u32 = 1_000;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Case {
    /// Push and pop of the standard library's heap with as many entries as there are packets in flight: random keys.
    HeapRandom,
    /// The same with keys that only grow, as those of a constant delay do.
    HeapGrowing,
    /// A rate and a constant delay.
    Constant,
    /// A rate, a normal delay with reordering, and loss.
    Jitter,
    /// A rate and a normal delay, order kept.
    Normal,
    /// The same with losses of Gilbert and Elliott.
    GilbertElliott,
    /// The same with slots of ten packets.
    Slots,
    /// NetEm's single queue with a delay that is uniform, and loss.
    Netem,
    /// A rate and delays from outside, order kept; values are handed in 64 at a time.
    Fed,
    /// As the normal delay with order kept, at a rate that a trace gives, every 100 µs another.
    Trace,
    /// The same with opportunities to send, one every 9 µs.
    Opportunities,
    /// Neither rate nor delay.
    Unlimited,
}

/// A run that goes on packet by packet.
pub(crate) enum Run {
    Heap(Heap),
    Wire(Box<Wire>),
}

impl Run {
    /// Warmed up: as many packets are in flight as are asked for.
    pub(crate) fn new(case: Case, in_flight: u64) -> Self {
        match case {
            Case::HeapRandom => Self::Heap(Heap::new(in_flight, u64::MAX)).warm(in_flight),
            Case::HeapGrowing => Self::Heap(Heap::new(in_flight, 0)).warm(in_flight),
            _ => Self::among(1, case, in_flight),
        }
    }

    /// The same in a network of so many links, of which one is in use.
    pub(crate) fn among(links: usize, case: Case, in_flight: u64) -> Self {
        Self::Wire(Box::new(Wire::new(case, in_flight, links))).warm(in_flight)
    }

    fn warm(mut self, in_flight: u64) -> Self {
        self.packets(2 * in_flight + 1_000);
        self
    }

    pub(crate) fn packets(&mut self, count: u64) {
        match self {
            Self::Heap(heap) => (0..count).for_each(|_| heap.push_and_pop()),
            Self::Wire(wire) => (0..count).for_each(|_| wire.packet()),
        }
    }
}

/// 24 bytes, ordered so that the least key is the greatest.
struct Entry {
    key: u64,
    _rest: [u64; 2],
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

/// The baseline. Like packets on their way, entries come at even steps and go after a delay around `entries` steps,
/// spread evenly between nothing and twice as much where `spread` has all bits.
pub(crate) struct Heap {
    heap: BinaryHeap<Entry>,
    entries: u64,
    spread: u64,
    now: u64,
    random: u64,
}

impl Heap {
    fn new(entries: u64, spread: u64) -> Self {
        let mut heap =
            Self { heap: BinaryHeap::new(), entries, spread, now: 0, random: 0x9e37_79b9_7f4a_7c15 };
        (0..entries).for_each(|_| heap.push());
        heap
    }

    fn push(&mut self) {
        // Xorshift (Marsaglia 2003): a few instructions, so that the heap is what is measured.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let step = GAP.nanos();
        let random = (u128::from(self.random & self.spread) * u128::from(2 * self.entries * step)) >> 64;
        self.now += step;
        self.heap.push(Entry { key: self.now + random as u64, _rest: [self.now; 2] });
    }

    fn push_and_pop(&mut self) {
        self.push();
        black_box(self.heap.pop());
    }
}

fn percent(percent: u64) -> Probability {
    Probability::from_ratio(percent, 100).expect("a percentage")
}

fn netem(delay: Duration) -> Netem {
    let chance = Chance { share: Share::from_percent(1.0).expect("a percentage"), ..Chance::NEVER };
    let jitter = Duration::from_nanos(delay.nanos() / 5);
    Netem { limit: u32::MAX, delay, jitter, loss: netem::Loss::Random(chance), ..Netem::default() }
}

/// A port, a link in use, a port.
pub(crate) struct Wire {
    pub(crate) engine: Engine<u32>,
    port: PortId,
    packet: Packet<u32>,
    at: Time,
    /// The link in use, values for its feed where it has one, and how many of them are left.
    link: LinkId,
    values: Vec<i64>,
    left: usize,
}

/// A tenth more and a fifth less than the rate, in turn.
fn rates() -> RateSteps {
    let point = |(number, tenths): (u64, u64)| {
        let at = Time::from_nanos(number * 100_000);
        (at, Rate::from_bits_per_second(RATE.bits_per_second() / 10 * tenths))
    };
    let points: Vec<_> = (0..).zip([11, 8, 11, 9, 11, 12, 8, 11]).map(point).collect();
    let after = After::Loop(Duration::from_micros(100 * points.len() as u64));
    RateSteps::new(Steps::new(points, after).expect("they are in order"))
}

fn opportunities() -> Opportunities {
    let instants: Vec<_> = (1..=1_000).map(|number| Time::from_nanos(number * 9_000)).collect();
    let after = After::Loop(Duration::from_micros(9 * instants.len() as u64));
    Opportunities::new(instants, Bytes::new(LENGTH.into()), after).expect("they are in order")
}

impl Wire {
    /// With `links − 1` idle links around it.
    pub(crate) fn new(case: Case, in_flight: u64, links: usize) -> Self {
        let mut config = NetworkConfig::new(Seed(1));
        let out = || Target::Port("out".into());
        let delay = Duration::from_nanos(in_flight * GAP.nanos());
        for number in 0..links {
            let mut link = LinkConfig::new(format!("link {number}"), out());
            if !matches!(case, Case::Unlimited) {
                link.service = Box::new(ConstantRate(RATE));
                link.delay = Box::new(Constant(delay));
            }
            if matches!(case, Case::Jitter) {
                link.delay = Box::new(Normal { mean: delay, sd: Duration::from_nanos(delay.nanos() / 5) });
                link.settings.order = Order::Allow;
                link.wire_loss = Some(Loss::of(Independent(percent(1))));
            }
            let normal = || Normal { mean: delay, sd: Duration::from_nanos(delay.nanos() / 5) };
            match case {
                Case::Normal | Case::GilbertElliott | Case::Slots | Case::Trace | Case::Opportunities => {
                    link.delay = Box::new(normal())
                }
                Case::Fed => link.delay = Box::new(Fed::new(FeedConfig::new("feed"))),
                Case::Netem => link.netem = Some(Box::new(netem(delay))),
                _ => {}
            }
            if matches!(case, Case::GilbertElliott) {
                let [p, r, bad, good] = [1, 25, 80, 0].map(percent);
                link.wire_loss = Some(Loss::of(GilbertElliott::new(p, r, bad, good)));
            }
            match case {
                Case::Trace => link.service = Box::new(rates()),
                Case::Opportunities => link.service = Box::new(opportunities()),
                _ => {}
            }
            if matches!(case, Case::Slots) {
                let gap = SlotGap::Between(Duration::ZERO, Duration::from_micros(100));
                link.slots = Some(Slots { gap, packets: 10, bytes: Bytes::new(0) });
            }
            config.links.push(link);
        }
        let entry = Target::Link { name: format!("link {}", links / 2), lane: 0 };
        config.ports =
            vec![PortConfig { name: "in".into(), entry }, PortConfig { name: "out".into(), entry: out() }];
        let engine = Engine::new(config).expect("names are unique and lead somewhere");
        let port = engine.port("in").expect("it was just configured");
        let link = engine.link(&format!("link {}", links / 2)).expect("it was just configured");
        // About as much spread as the normal delay has, in no order.
        let spread = |number: u64| {
            (delay.nanos() - delay.nanos() / 3 + delay.nanos() / 96 * (number * 37 % 64)) as i64
        };
        let values = if matches!(case, Case::Fed) { (0..64).map(spread).collect() } else { Vec::new() };
        let key = FlowKey { network: Protocol::Ipv4, transport: 17, ..FlowKey::default() };
        let packet = Packet {
            length: LENGTH,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key,
            body: 7,
        };
        Self { engine, port, packet, at: Time::ZERO, link, values, left: 0 }
    }

    /// What is due by the time of the next packet leaves, and the packet comes.
    pub(crate) fn packet(&mut self) {
        self.at = self.at + GAP;
        while let Some(event) = &self.engine.poll(self.at) {
            black_box(event);
        }
        if self.left == 0 && !self.values.is_empty() {
            self.left = self.engine.feed(self.at, self.link, "feed", black_box(&self.values));
        }
        self.left = self.left.saturating_sub(1);
        self.engine.hand_in(self.at, self.port, black_box(&self.packet).clone());
    }
}
