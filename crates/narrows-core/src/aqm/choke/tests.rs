use super::*;
use crate::aqm::Thresholds;
use crate::queue::Stand;
use crate::random::Seed;
use crate::service::Overhead;
use crate::units::{Probability, Rate};
use alloc::vec::Vec;

const WIRE: Wire = Wire { rate: Rate::from_bits_per_second(8_000_000), overhead: Overhead::IP };

/// The queue with all that it needs; a packet is sent each millisecond.
struct Bench {
    queue: Choke,
    stand: Stand,
    now: Time,
}

impl Bench {
    fn new(config: ChokeConfig, bound: u64) -> Self {
        let mut queue = Choke::new(config, Bound::Packets(bound));
        queue.set_wire(Time::ZERO, WIRE);
        Self { queue, stand: Stand::new(Seed(5)), now: Time::ZERO }
    }

    /// A packet of the flow with this source port arrives. Returns how many are dropped.
    fn arrive(&mut self, source_port: u16) -> usize {
        let key = FlowKey { source_port, ..FlowKey::default() };
        let packet = self.stand.insert(self.now, key, 1000);
        self.queue.enqueue(self.now, packet, &mut self.stand.context());
        self.drops()
    }

    fn drops(&mut self) -> usize {
        let mut drops = 0;
        while let Some((packet, _)) = self.stand.dropped() {
            self.stand.remove(packet);
            drops += 1;
        }
        drops
    }

    /// The source port of the packet that is sent next.
    fn send(&mut self) -> Option<u16> {
        self.now = self.now + crate::time::Duration::from_millis(1);
        let Dequeue::Packet(packet) = self.queue.dequeue(self.now, &mut self.stand.context()) else {
            return None;
        };
        let port = self.stand.pool().get(packet).key.source_port;
        self.stand.remove(packet);
        Some(port)
    }

    fn count(&self, port: u16) -> usize {
        let of = |packet: &&PacketRef| self.stand.pool().get(**packet).key.source_port == port;
        self.queue.packets.iter().filter(of).count()
    }
}

/// RED drops next to nothing, and the average is the backlog that an arrival finds.
fn alone(min: u64) -> ChokeConfig {
    let thresholds = Thresholds::Packets { min, max: 1_000_000 };
    let probability = Probability::from_ratio(1, 1_000_000_000).expect("a probability");
    ChokeConfig {
        red: RedConfig { thresholds, probability, weight: 1.0, ..RedConfig::default() },
        candidates: 1,
    }
}

#[test]
fn below_min_nothing_is_compared() {
    let mut bench = Bench::new(alone(10), 1000);
    for _ in 0..11 {
        assert_eq!(bench.arrive(1), 0);
    }
    // The twelfth finds eleven: it is compared, and every candidate is alike.
    assert_eq!(bench.queue.average(), 10.0);
    assert_eq!(bench.arrive(1), 2);
    assert_eq!((bench.queue.average(), bench.queue.backlog().packets), (11.0, 10));
    // Of another flow, it is let in.
    assert_eq!(bench.arrive(2), 0);
    assert_eq!(bench.arrive(2), 0);
}

#[test]
fn candidates_are_dropped_with_the_arriving_packet() {
    let mut bench = Bench::new(ChokeConfig { candidates: 5, ..alone(1) }, 1000);
    bench.arrive(1);
    for port in [2, 1, 1, 1, 1, 1, 1, 1] {
        bench.arrive(port);
    }
    // At worst all but one are gone, and the queue is never left with less than it had from others.
    assert_eq!(bench.count(2), 1);
    let bytes = bench.queue.backlog().packets * 1000;
    assert_eq!(bench.queue.backlog().bytes, bytes);
    let mut alike = Bench::new(ChokeConfig { candidates: 5, ..alone(10) }, 1000);
    (0..11).for_each(|_| _ = alike.arrive(1));
    assert_eq!(alike.arrive(1), 6);
}

/// A flow that has h of the queue is hit with probability h: counts of 20,000 arrivals each, within 4.5 standard errors.
#[test]
fn the_chance_of_a_match_is_the_share_of_the_queue() {
    for (own, others) in [(10, 90), (50, 50), (80, 20)] {
        let mut hits = 0;
        let mut bench = Bench::new(alone(1000), 2000);
        for n in 0..others {
            bench.arrive(1000 + n);
        }
        (0..own).for_each(|_| _ = bench.arrive(1));
        const ARRIVALS: u32 = 20_000;
        let stream = crate::random::Stream::new(Seed(9), "choke", "test");
        for n in 0..ARRIVALS {
            let key = FlowKey { source_port: 1, ..FlowKey::default() };
            let packet = bench.stand.insert(bench.now, key, 1000);
            let mut draw = stream.nth(n.into());
            let hit = bench.queue.drop_alike(bench.now, packet, &mut draw, &mut bench.stand.context());
            bench.stand.remove(packet);
            hits += u32::from(hit);
            // As before.
            if hit {
                bench.drops();
                let again = bench.stand.insert(bench.now, key, 1000);
                bench.queue.packets.push_back(again);
                bench.queue.bytes += 1000;
            }
        }
        let h = f64::from(own) / f64::from(own + u32::from(others));
        let (expected, error) = (h * f64::from(ARRIVALS), libm::sqrt(h * (1.0 - h) * f64::from(ARRIVALS)));
        assert!((f64::from(hits) - expected).abs() < 4.5 * error, "{h}: {hits}, not {expected} ± {error}");
    }
}

/// The share of the link that a flow gets whose rate is `x` times the link's, by Tang, Wang and Low: see above.
fn share(x: f64) -> f64 {
    let excess =
        |h: f64| (1.0 - x * (1.0 - 2.0 * h)) * libm::log((1.0 - h) / (1.0 - 2.0 * h)) - x * (1.0 - h);
    // It rises from −x at 0 to infinity at one half.
    let (mut low, mut high) = (f64::max(0.0, 0.5 - 0.5 / x), 0.5);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    x * (1.0 - 2.0 * low)
}

/// The others take what is left: whenever a packet has been sent, the queue is filled up with packets of new flows.
#[test]
fn a_flow_that_does_not_respond_gets_what_the_model_says() {
    const SENT: u32 = 60_000;
    let e = core::f64::consts::E;
    // The most that a flow can get, and the rate at which it does.
    let (most, at) = (1.0 / (e + 1.0), (2.0 * e - 1.0) / (e + 1.0));
    assert!((share(at) - most).abs() < 1e-6, "{}", share(at));
    assert!((share(1e-3) - 1e-3).abs() < 1e-5 && share(20.0) < 0.01, "{}", share(20.0));
    for x in [0.1, 0.5, at, 2.0, 4.0] {
        let mut bench = Bench::new(alone(1), 400);
        let mut filled = 0u16;
        let (mut own, mut owed) = (0, 0.0);
        for n in 0..SENT + 4000 {
            owed += x;
            while owed >= 1.0 {
                owed -= 1.0;
                bench.arrive(1);
            }
            while bench.queue.backlog().packets < 300 {
                filled = filled.wrapping_add(1).max(2);
                bench.arrive(filled);
            }
            let sent = bench.send();
            own += u32::from(n >= 4000 && sent == Some(1));
        }
        let (own, expected) = (f64::from(own) / f64::from(SENT), share(x));
        // The model is a fluid; a queue of 300 packets is near it.
        assert!((own - expected).abs() < 0.03 * expected + 0.001, "{x}: {own}, not {expected}");
    }
}

/// With a flow for each packet, nothing but RED is left: the same fates by the same draws.
#[test]
fn without_a_match_it_is_red() {
    use crate::aqm::Red;
    use crate::queue::{DropAt, Fifo};
    let red = RedConfig { weight: 0.1, ..RedConfig::default() };
    let mut fates: [Vec<u64>; 2] = Default::default();
    let queues: [alloc::boxed::Box<dyn Queue>; 2] = [
        alloc::boxed::Box::new(Choke::new(ChokeConfig { red, candidates: 1 }, Bound::Packets(40))),
        alloc::boxed::Box::new(Fifo::managed(
            Bound::Packets(40),
            DropAt::Tail,
            alloc::boxed::Box::new(Red::new(red)),
        )),
    ];
    for (mut queue, fates) in queues.into_iter().zip(&mut fates) {
        let mut stand = Stand::new(Seed(1));
        queue.set_wire(Time::ZERO, WIRE);
        for n in 0..20_000u32 {
            let now = Time::from_nanos(u64::from(n) * 950_000);
            let key = FlowKey { source_port: n as u16, ..FlowKey::default() };
            let packet = stand.insert(now, key, 1000);
            queue.enqueue(now, packet, &mut stand.context());
            while let Some((dropped, _)) = stand.dropped() {
                fates.push(stand.pool().get(dropped).id.number());
            }
            // Idle for a while, now and then.
            if n % 19 > 0 && n % 3000 < 2900 || n % 3000 > 2990 {
                let sent = queue.dequeue(now, &mut stand.context());
                if let Dequeue::Packet(packet) = sent {
                    stand.remove(packet);
                }
            }
        }
    }
    assert!(fates[0].len() > 200, "{}", fates[0].len());
    assert_eq!(fates[0], fates[1]);
}
