//! The fair queueing schedulers in a link.

use narrows_core::aqm::{Codel, CodelConfig};
use narrows_core::classify::{FlowHash, Identity};
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{FqCodelConfig, FqPieConfig, SfqConfig, fq_codel, fq_pie, sfq};
use narrows_core::{DropReason, Duration, Seed, Time, Verdict};

use crate::drive::{Arrival, MEGABIT, Record, even, mean_millis, merge, run, seconds};

const BULK: u16 = 1;
const SPARSE: u16 = 2;

/// Many more classes than flows, so that the flows of these tests do not share one.
fn flows() -> FlowHash {
    FlowHash::new(Seed(1), "wire", 1024, Identity::FiveTuple)
}

/// Two unresponsive flows of 6 Mbit/s each over a link of 10, and one of 200 bytes every 20 ms.
fn bulk_and_sparse() -> Vec<Arrival> {
    merge([
        even(BULK, 0, 1500, Duration::from_millis(2), Time::ZERO, seconds(20)),
        even(BULK + 10, 0, 1500, Duration::from_millis(2), Time::from_nanos(1_000_000), seconds(20)),
        even(SPARSE, 0, 200, Duration::from_micros(20_017), Time::ZERO, seconds(20)),
    ])
}

fn of(records: &[Record], flow: u16) -> Vec<Record> {
    records.iter().filter(|record| record.flow == flow).copied().collect()
}

fn longest_wait(records: &[Record]) -> Duration {
    records.iter().map(|record| record.waited).max().expect("there are packets")
}

/// A sparse flow is always new, and alone so: it waits for the packet on the wire and no other.
#[test]
fn a_sparse_flow_waits_for_the_packet_on_the_wire() {
    let fair = fq_codel(FqCodelConfig::default(), flows()).expect("flows without weights are taken");
    let records = run(Box::new(fair), 10 * MEGABIT, &bulk_and_sparse());
    let sparse = of(&records, SPARSE);
    assert!(sparse.iter().all(Record::sent));
    assert!(longest_wait(&sparse) <= Duration::from_micros(1_200), "{}", longest_wait(&sparse));

    // The same load in one queue with CoDel.
    let policy = Box::new(Codel::new(CodelConfig::default()));
    let single = Fifo::managed(Bound::Packets(10_240), DropAt::Tail, policy);
    let records = run(Box::new(single), 10 * MEGABIT, &bulk_and_sparse());
    let mean = mean_millis(of(&records, SPARSE).iter().filter(|r| r.sent()).map(|r| r.waited));
    assert!(mean > 50.0, "{mean} ms");
}

/// SFQ's round robin lets a flow that begins wait for one packet of each other flow at most, and the one on the wire.
#[test]
fn sfq_serves_in_turn() {
    let config = SfqConfig::default();
    let fair = sfq(config, flows()).expect("flows without weights are taken");
    let records = run(Box::new(fair), 10 * MEGABIT, &bulk_and_sparse());
    let sparse = of(&records, SPARSE);
    assert!(sparse.iter().all(Record::sent), "the longest flow is another one");
    // A turn of 1514 bytes is a packet of 1500 and sometimes one more.
    assert!(longest_wait(&sparse) <= Duration::from_micros(5 * 1_200), "{}", longest_wait(&sparse));
    assert!(longest_wait(&sparse) > Duration::from_micros(1_200));
    let shares = [BULK, BULK + 10].map(|flow| of(&records, flow).iter().filter(|r| r.sent()).count());
    assert!(shares[0].abs_diff(shares[1]) <= 127, "{shares:?}");
}

/// PIE in each flow, which is served at half the link's rate: the delay of each is at the target.
#[test]
fn fq_pie_holds_the_target_in_each_flow() {
    let fair = fq_pie(FqPieConfig::default(), flows()).expect("flows without weights are taken");
    let records = run(Box::new(fair), 10 * MEGABIT, &bulk_and_sparse());
    let settled = |flow| {
        let late = of(&records, flow).into_iter().filter(|r| r.at > seconds(5) && r.at < seconds(20));
        late.filter(Record::sent).collect::<Vec<_>>()
    };
    for flow in [BULK, BULK + 10] {
        let records = settled(flow);
        // 10 Mbit/s less the sparse flow's 0.08, halved, over 15 seconds.
        let expected = (10e6 - 1_600.0 / 0.020_017) / 2.0 * 15.0 / 12_000.0;
        assert!((records.len() as f64 / expected - 1.0).abs() < 0.01, "{} {expected}", records.len());
        let mean = mean_millis(records.iter().map(|record| record.waited));
        assert!((mean - 15.0).abs() < 3.0, "{mean} ms");
    }
    assert!(longest_wait(&of(&records, SPARSE)) <= Duration::from_micros(1_200));
}

/// A wire that takes ten seconds for a packet, so nothing leaves while packets come.
fn dropped_when_full(queue: Box<dyn Queue>, arrivals: &[Arrival]) -> Vec<usize> {
    let full = |record: &Record| match record.verdict {
        Verdict::Dropped { reason, .. } => reason == DropReason::QueueFull && record.at < seconds(5),
        Verdict::Delivered(_) => false,
    };
    let records = run(queue, 1_200, arrivals);
    records.iter().filter(|record| full(record)).map(|record| record.number).collect()
}

fn burst(flow: u16, packets: u64, length: u32) -> Vec<Arrival> {
    let stop = Time::ZERO + Duration::from_millis(packets);
    even(flow, 0, length, Duration::from_millis(1), Time::ZERO, stop)
}

/// RFC 8290, section 4.1.3: the arriving packet is let in, then the flow with the most bytes loses half its packets from
/// the head, but no more than 64.
#[test]
fn what_is_too_much_goes_from_the_head_of_the_longest_flow() {
    // Packet 0 goes on the wire at once; then 100 of it wait, and 20 short ones of another flow come.
    let short: Vec<_> = burst(SPARSE, 20, 100).into_iter().map(|a| Arrival { at: seconds(1), ..a }).collect();
    let load = |bulk| [burst(BULK, bulk, 1500), short.clone()].concat();
    let full = |bound, batch, bulk| {
        let config = FqCodelConfig { bound: Bound::Packets(bound), batch, ..FqCodelConfig::default() };
        let queue = fq_codel(config, flows()).expect("flows without weights are taken");
        dropped_when_full(Box::new(queue), &load(bulk))
    };
    assert_eq!(full(100, 64, 101), (1..=50).collect::<Vec<_>>());
    assert_eq!(full(200, 64, 201), (1..=64).collect::<Vec<_>>());
    assert_eq!(full(100, 3, 101), (1..=21).collect::<Vec<_>>());
}

/// McKenney 1990: the longest queue loses its last packet; or, with Linux's `headdrop`, its first.
#[test]
fn a_full_sfq_takes_from_the_tail_of_the_longest_flow() {
    let short = burst(SPARSE, 20, 100).into_iter().map(|a| Arrival { at: seconds(1), ..a });
    let load: Vec<_> = burst(BULK, 101, 1500).into_iter().chain(short).collect();
    let full = |drop_at| {
        let config = SfqConfig { bound: Bound::Packets(100), drop_at, ..SfqConfig::default() };
        dropped_when_full(Box::new(sfq(config, flows()).expect("flows without weights are taken")), &load)
    };
    assert_eq!(full(DropAt::Tail), (81..=100).rev().collect::<Vec<_>>());
    assert_eq!(full(DropAt::Head), (1..=20).collect::<Vec<_>>());
    assert_eq!(SfqConfig::default().drop_at, DropAt::Tail);
}
