use super::*;
use crate::classify::Identity;
use crate::packet::{FlowKey, Protocol};
use crate::queue::Stand;
use crate::random::Seed;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
/// TOS bytes of the bands 0, 1 and 2.
const TOS: [u8; 3] = [0x10, 0x00, 0x08];

/// The queue, driven by itself. 65,536 buckets keep its flows apart.
struct Bench {
    queue: PacedFq,
    stand: Stand,
}

impl Bench {
    fn new(config: PacedFqConfig) -> Self {
        let hash = FlowHash::new(Seed(3), "wire", 65_536, Identity::FiveTuple);
        Self { queue: PacedFq::new(config, hash), stand: Stand::new(Seed(1)) }
    }

    /// One whose flows have this maximum rate.
    fn paced(bits_per_second: u64, config: PacedFqConfig) -> Self {
        Self::new(PacedFqConfig { max_rate: Some(Rate::from_bits_per_second(bits_per_second)), ..config })
    }

    /// Returns whether it was accepted.
    fn enqueue(&mut self, now: u64, flow: u16, length: u32, tos: u8) -> bool {
        let network = Protocol::Ipv4;
        let key = FlowKey { source_port: flow, traffic_class: tos, network, ..FlowKey::default() };
        let packet = self.stand.insert(Time::from_nanos(now), key, length);
        self.queue.enqueue(Time::from_nanos(now), packet, &mut self.stand.context());
        match self.stand.dropped() {
            Some((packet, reason)) => {
                assert_eq!(reason, DropReason::QueueFull);
                self.stand.remove(packet);
                false
            }
            None => true,
        }
    }

    /// The flow that sends, or the instant to come again at.
    fn dequeue(&mut self, now: u64) -> Result<u16, Option<u64>> {
        let answer = self.queue.dequeue(Time::from_nanos(now), &mut self.stand.context());
        match answer {
            Dequeue::Packet(packet) => {
                let flow = self.stand.pool().get(packet).key.source_port;
                self.stand.remove(packet);
                Ok(flow)
            }
            Dequeue::NotBefore(at) => {
                let again = self.queue.dequeue(Time::from_nanos(now), &mut self.stand.context());
                assert_eq!(again, answer);
                Err(Some(at.nanos()))
            }
            Dequeue::Ended(..) => panic!("the link transmits"),
            Dequeue::Empty => Err(None),
        }
    }

    /// What flow 0 sends at an instant, and what is said then.
    fn sent(&mut self, now: u64) -> (usize, Option<u64>) {
        let mut sent = 0;
        loop {
            match self.dequeue(now) {
                Ok(_) => sent += 1,
                Err(next) => return (sent, next),
            }
        }
    }
}

/// A byte per microsecond: three packets at first, then two every 2 ms, late or not.
#[test]
fn a_flow_is_paced_by_its_quanta() {
    let (quantum, initial_quantum) = (Bytes::new(2000), Bytes::new(3000));
    let mut bench =
        Bench::paced(8_000_000, PacedFqConfig { quantum, initial_quantum, ..PacedFqConfig::default() });
    (0..12).for_each(|_| assert!(bench.enqueue(0, 0, 1000, 0)));
    assert_eq!(bench.sent(0), (3, Some(2 * MILLISECOND)));
    assert_eq!(bench.sent(MILLISECOND), (0, Some(2 * MILLISECOND)));
    assert_eq!(bench.sent(2 * MILLISECOND), (2, Some(4 * MILLISECOND)));
    // Half a millisecond late is made up for; of 3 ms, half a span.
    assert_eq!(bench.sent(4_500 * MICROSECOND), (2, Some(6 * MILLISECOND)));
    assert_eq!(bench.sent(9 * MILLISECOND), (2, Some(10 * MILLISECOND)));
    assert_eq!(bench.sent(10 * MILLISECOND), (2, Some(12 * MILLISECOND)));
    assert_eq!(bench.sent(12 * MILLISECOND), (1, None));
}

/// Ten bytes per millisecond, whatever the quanta; a span is a second at most.
#[test]
fn at_low_rates_each_packet_is_paced() {
    let mut bench = Bench::paced(80_000, PacedFqConfig::default());
    (0..4).for_each(|_| assert!(bench.enqueue(0, 0, 100, 0)));
    assert_eq!(bench.sent(0), (1, Some(10 * MILLISECOND)));
    assert_eq!(bench.sent(13 * MILLISECOND), (1, Some(20 * MILLISECOND)));
    assert_eq!(bench.sent(20 * MILLISECOND), (1, Some(30 * MILLISECOND)));
    let mut slowest = Bench::paced(1, PacedFqConfig::default());
    (0..2).for_each(|_| assert!(slowest.enqueue(0, 0, 1500, 0)));
    assert_eq!(slowest.sent(0), (1, Some(1000 * MILLISECOND)));
}

/// Lengths and quanta are those on the wire: two frames of 1514 bytes.
#[test]
fn frames_count_where_the_link_counts_them() {
    let initial_quantum = Bytes::new(3028);
    let mut bench = Bench::paced(8_000_000, PacedFqConfig { initial_quantum, ..PacedFqConfig::default() });
    bench.queue.set_wire(Time::ZERO, Wire { rate: Rate::UNLIMITED, overhead: Overhead::FRAME });
    (0..5).for_each(|_| assert!(bench.enqueue(0, 0, 1500, 0)));
    assert_eq!(bench.sent(0), (2, Some(3028 * MICROSECOND)));
    assert_eq!(bench.sent(3028 * MICROSECOND), (2, Some(6056 * MICROSECOND)));
}

/// Away for more than 40 ms, a flow has a quantum again. For less, it has what it had, here 500 bytes.
#[test]
fn a_flow_that_returns_has_a_quantum() {
    for (away, order) in [(41, [0, 0]), (39, [0, 2])] {
        let (quantum, initial_quantum) = (Bytes::new(2000), Bytes::new(1500));
        let config = PacedFqConfig { quantum, initial_quantum, ..PacedFqConfig::default() };
        let mut bench = Bench::paced(8_000_000, config);
        bench.enqueue(0, 0, 1000, 0);
        assert_eq!(bench.sent(0), (1, None));
        // The round of another flow makes the first one leave the lists.
        (0..3).for_each(|_| assert!(bench.enqueue(0, 1, 1000, 0)));
        assert_eq!(bench.sent(0), (2, Some(2 * MILLISECOND)));
        assert_eq!(bench.sent(2 * MILLISECOND), (1, None));
        for flow in [0, 0, 2] {
            bench.enqueue(away * MILLISECOND, flow, 1000, 0);
        }
        assert_eq!([(); 2].map(|()| bench.dequeue(away * MILLISECOND)), order.map(Ok));
    }
}

/// While no flow has a packet, up to eight go first, in order of arrival.
#[test]
fn packets_that_find_no_flow_waiting_go_first() {
    let mut bench = Bench::new(PacedFqConfig::default());
    for flow in [0, 0, 1, 0, 2, 0, 1, 0, 5, 4, 4] {
        bench.enqueue(0, flow, 100, TOS[2]);
    }
    let order: alloc::vec::Vec<u16> = core::iter::from_fn(|| bench.dequeue(0).ok()).collect();
    assert_eq!(order, [0, 0, 1, 0, 2, 0, 1, 0, 5, 4, 4]);
    // With a maximum rate there is none of this.
    let mut bench = Bench::paced(1_000_000_000, PacedFqConfig::default());
    for flow in [0, 0, 1] {
        bench.enqueue(0, flow, 15_140, 0);
    }
    assert_eq!((bench.dequeue(0), bench.dequeue(0)), (Ok(0), Ok(1)));
}

#[test]
fn flows_and_bands_have_limits() {
    let config = PacedFqConfig { flow_limit: 5, bound: Bound::Packets(8), ..PacedFqConfig::default() };
    let mut bench = Bench::new(config);
    let accepted =
        |bench: &mut Bench, flow, tos| (0..20).filter(|_| bench.enqueue(0, flow, 100, tos)).count();
    // Eight go first and count in neither.
    assert_eq!(accepted(&mut bench, 0, TOS[1]), 8 + 5);
    assert_eq!(accepted(&mut bench, 1, TOS[1]), 3);
    assert_eq!(accepted(&mut bench, 2, TOS[0]), 5);
    assert_eq!(bench.queue.backlog(), Backlog { packets: 21, bytes: 2100 });
}

/// 9 to 3 to 1 of the bytes; each band is off by less than its weight, a flow's initial quantum and a packet.
#[test]
fn bands_share_by_their_weights() {
    let config = PacedFqConfig { flow_limit: 4000, ..PacedFqConfig::default() };
    let mut bench = Bench::new(config);
    for number in 0..4000 * 3 {
        bench.enqueue(0, number % 3, 1000, TOS[usize::from(number % 3)]);
    }
    let mut counts = [0u32; 3];
    for _ in 0..13 * 4 * 65 {
        counts[usize::from(bench.dequeue(0).expect("all wait"))] += 1;
    }
    for (count, weight) in counts.into_iter().zip([9, 3, 1]) {
        let share = 4 * 65 * weight;
        assert!(count.abs_diff(share) <= 66 * weight + 17, "{counts:?}");
    }
}

/// From when a packet could have been sent: here when its flow's span is over, 2 ms after the packets came.
#[test]
fn what_comes_late_is_marked() {
    let config = PacedFqConfig {
        ce_threshold: Some(Duration::from_millis(1)),
        quantum: Bytes::new(2000),
        initial_quantum: Bytes::new(2000),
        ..PacedFqConfig::default()
    };
    let mut bench = Bench::paced(8_000_000, config);
    (0..6).for_each(|_| assert!(bench.enqueue(0, 0, 1000, FlowKey::ECT_1)));
    assert_eq!(bench.sent(0), (2, Some(2 * MILLISECOND)));
    assert_eq!((bench.sent(3 * MILLISECOND).0, bench.stand.marked()), (2, 0));
    assert_eq!((bench.sent(5_001 * MICROSECOND).0, bench.stand.marked()), (2, 2));
}

/// As they came, and the queue starts again.
#[test]
fn all_are_taken_and_adopted_in_order() {
    let mut bench = Bench::paced(8_000_000, PacedFqConfig::default());
    for number in 0..30 {
        bench.enqueue(u64::from(number), number % 4, 1000, TOS[usize::from(number % 3)]);
    }
    (0..5).for_each(|_| assert!(bench.dequeue(50).is_ok()));
    let all = bench.queue.take_all(bench.stand.context().pool);
    assert_eq!((all.len(), bench.queue.backlog()), (25, Backlog::default()));
    bench.queue.adopt(Time::from_nanos(100), all, &mut bench.stand.context());
    assert_eq!(bench.queue.backlog(), Backlog { packets: 25, bytes: 25_000 });
    let sent = (0..25).filter(|_| bench.dequeue(100).is_ok()).count();
    assert_eq!((sent, bench.dequeue(100)), (25, Err(None)));
}
