//! How much memory flows take beside their packets, as the allocator sees it.

use narrows_core::queue::{Dequeue, Queue, Stand};
use narrows_core::sched::{Drr, FlowSet, FlowSets, Qfq, Scheduler, Wf2q};
use narrows_core::{Bytes, Duration, Seed, Time};

use crate::counting::live;
use crate::stand::{SOURCES, key, set, weight};

/// Bytes for each flow, when each of them has sent a packet.
fn bytes<S: Scheduler>(scheduler: S, flows: u32) -> f64 {
    let mut stand = Stand::new(Seed(1));
    let packet = stand.insert(Time::ZERO, key(0, 0), 1_000);
    let before = live();
    let mut queue = FlowSets::new(scheduler, Duration::from_secs(1), Seed(1), "link");
    queue.add_set(FlowSet { most: u32::MAX, ..set(SOURCES, weight(1)) }).expect("one is taken");
    for source in 0..flows {
        stand.renew(packet, Time::ZERO, key(0, source), 1_000);
        queue.enqueue(Time::ZERO, packet, &mut stand.context());
        assert_eq!(queue.dequeue(Time::ZERO, &mut stand.context()), Dequeue::Packet(packet));
    }
    assert_eq!(queue.flow_sets()[0].made, flows.into());
    (live() - before) as f64 / f64::from(flows)
}

#[test]
fn a_flow_takes_at_most_288_bytes() {
    for flows in [1_000, 10_000, 70_000, 100_000] {
        let each = [
            ("wf2q+", bytes(Wf2q::default(), flows)),
            ("qfq", bytes(Qfq::default(), flows)),
            ("drr", bytes(Drr::new(Bytes::new(1500)), flows)),
        ];
        println!("{flows} flows: {each:.1?}");
        assert!(each.iter().all(|&(_, bytes)| bytes <= 288.0), "{flows}: {each:?}");
    }
}

/// Flows that come and go for ever take no more than those that there are at a time.
#[test]
fn what_goes_leaves_nothing_behind() {
    let mut stand = Stand::new(Seed(1));
    let packet = stand.insert(Time::ZERO, key(0, 0), 1_000);
    let mut queue = FlowSets::new(Wf2q::default(), Duration::from_micros(100), Seed(1), "link");
    queue.add_set(set(SOURCES, weight(1))).unwrap();
    let mut high = 0;
    for n in 0..200_000 {
        // 100 at a time.
        let now = Time::from_nanos(u64::from(n) * 1_000);
        stand.renew(packet, now, key(0, n), 1_000);
        queue.enqueue(now, packet, &mut stand.context());
        assert_eq!(queue.dequeue(now, &mut stand.context()), Dequeue::Packet(packet));
        if n == 1_000 {
            high = live();
            assert_eq!(queue.masked_flows(now).len(), 100);
        }
    }
    assert_eq!(live(), high);
}

/// On a wire that is never idle, flows that send once and never again all have more than their share of the sum of weights,
/// the more so the more of them are there. No more than half of all stay for that.
#[test]
fn flows_that_send_once_do_not_pile_up() {
    let (term, waiting) = (200, 5);
    let mut stand = Stand::new(Seed(1));
    let mut queue = FlowSets::new(Wf2q::default(), Duration::from_micros(term), Seed(1), "link");
    queue.add_set(set(SOURCES, weight(1))).expect("they are taken");
    let (mut free, mut most) = (Vec::new(), 0);
    for n in 0..20_000_u32 {
        let now = Time::from_nanos(u64::from(n) * 1_000);
        let packet = free.pop().unwrap_or_else(|| stand.insert(now, key(0, n), 40));
        stand.renew(packet, now, key(0, n), 40 + n.wrapping_mul(2_654_435_761) % 1_460);
        queue.enqueue(now, packet, &mut stand.context());
        if queue.backlog().packets > waiting {
            match queue.dequeue(now, &mut stand.context()) {
                Dequeue::Packet(packet) => free.push(packet),
                other => panic!("{other:?}"),
            }
        }
        let counts = queue.flow_sets()[0];
        most = most.max(counts.made - counts.expired);
    }
    println!("{most} flows at most");
    assert!(most > term + 2 * waiting, "{most}: some stay");
    assert!(most <= 2 * (term + 2 * waiting), "{most}");
}
