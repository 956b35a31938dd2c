//! What belongs to a set or a flow: queue management, losses, bounds, weights, bands; and queues that replace others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_core::aqm::{Aqm, Judgement, Waiting};
use narrows_core::classify::FlowMask;
use narrows_core::model::Independent;
use narrows_core::queue::{Bound, Context, DropAt, Fifo, Queue, Stand, Wire};
use narrows_core::sched::{
    Drr, FlowConfig, FlowSet, FlowSets, PolicyPerFlow, Priority, Qfq, Refused, Weight, Wf2q,
};
use narrows_core::service::Overhead;
use narrows_core::{Bytes, DropReason, FlowKey, Loss, PacketRef, Probability, Rate, Seed, Time};

use crate::stand::{IDLE, Run, SOURCES, key, ms, queue, set, source, weight};

/// Drops every third packet that comes, and notes the rate that it is told.
#[derive(Debug)]
struct EveryThird {
    judged: u64,
    rates: Arc<AtomicU64>,
}

impl Aqm for EveryThird {
    fn arrive(&mut self, _: Time, _: PacketRef, _: Waiting, _: &mut Context<'_>) -> Judgement {
        self.judged += 1;
        if self.judged.is_multiple_of(3) { Judgement::Drop } else { Judgement::Pass }
    }

    fn depart(
        &mut self,
        now: Time,
        packet: PacketRef,
        waiting: Waiting,
        context: &mut Context<'_>,
    ) -> Judgement {
        let entered = context.pool.get(packet).entered;
        assert_eq!(waiting.oldest, Some(entered), "it is the first of what waits");
        assert!(waiting.backlog.packets > 0 && entered <= now);
        // Congestion is told by a mark where that can be.
        match context.pool.get(packet).key.ecn() {
            0 => Judgement::Pass,
            _ => Judgement::Mark,
        }
    }

    fn set_wire(&mut self, _: Time, wire: Wire) {
        self.rates.fetch_add(wire.rate.bits_per_second(), Ordering::Relaxed);
    }
}

fn wire(rate: u64) -> Wire {
    Wire { rate: Rate::from_bits_per_second(rate), overhead: Overhead::IP }
}

#[test]
fn each_flow_has_its_own_policy_as_long_as_it_is_there() {
    let rates = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&rates);
    let policy = PolicyPerFlow::new(move || Box::new(EveryThird { judged: 0, rates: Arc::clone(&told) }));
    let mut run = Run::new(queue(
        Drr::new(Bytes::new(1500)),
        vec![FlowSet { policy: Some(policy), ..set(SOURCES, weight(1)) }],
    ));
    let dropped = |run: &mut Run, sources: &[u32]| {
        let before = run.dropped.len();
        let sent: Vec<_> = sources.iter().map(|&source| run.enqueue(key(0, source), 100)).collect();
        while run.send().is_some() {}
        let places = run.dropped[before..].iter().map(|&(packet, reason)| {
            assert_eq!(reason, DropReason::QueueManagement);
            sent.iter().position(|&one| one == packet).unwrap()
        });
        places.collect::<Vec<_>>()
    };
    assert_eq!(dropped(&mut run, &[1, 2, 1, 2, 1, 1, 2, 2]), [4, 6]);
    // So far the first has judged four, the second as many.
    run.now = ms(99);
    assert_eq!(dropped(&mut run, &[1, 1]), [1]);
    // The second has been idle for 100 ms, the first for 1 ms.
    run.now = ms(100);
    assert_eq!(dropped(&mut run, &[1, 1, 1, 2, 2, 2]), [2, 5]);

    // Those that there are are told of another wire, and so is one that is made later.
    run.queue.set_wire(run.now, wire(100));
    assert_eq!(rates.load(Ordering::Relaxed), 200);
    run.enqueue(key(0, 3), 100);
    assert_eq!(rates.load(Ordering::Relaxed), 300);
    assert_eq!(run.queue.classes()[0].marked, 0);
    run.enqueue(FlowKey { traffic_class: 2, ..key(0, 3) }, 100);
    while run.send().is_some() {}
    assert_eq!(run.queue.classes()[0].marked, 1);
}

#[test]
fn losses_are_of_the_set_and_keyed_by_its_number() {
    let lossy = |number| FlowSet {
        loss: Some(Loss::of(Independent(Probability::from_ratio(1, 5).expect("a probability")))),
        ..FlowSet::new(number, SOURCES, FlowConfig::default())
    };
    let lost = |sets: Vec<FlowSet>, place| {
        let mut run = Run::new(queue(Wf2q::default(), sets));
        for n in 0..4_000 {
            run.enqueue(key(place, n % 5), 100);
            run.send();
        }
        assert!(run.dropped.iter().all(|&(_, reason)| reason == DropReason::IngressLoss));
        let counted = run.queue.classes()[place as usize].dropped.packets;
        assert_eq!(counted as usize, run.dropped.len());
        run.dropped.into_iter().map(|(packet, _)| packet.number()).collect::<Vec<_>>()
    };
    let alone = lost(vec![lossy(8)], 0);
    // Five standard deviations.
    let sd = (4_000.0_f64 * 0.2 * 0.8).sqrt();
    assert!((alone.len() as f64 - 800.0).abs() < 5.0 * sd, "{}", alone.len());
    // Another set before it changes no draw of it; another number does.
    assert_eq!(lost(vec![lossy(2), lossy(8)], 1), alone);
    assert_ne!(lost(vec![lossy(9)], 0), alone);
}

#[test]
fn bounds_are_of_each_flow_and_of_the_whole() {
    for (drop_at, left) in [(DropAt::Tail, [0, 1, 2]), (DropAt::Head, [7, 8, 9])] {
        let of = FlowSet { bound: Bound::Packets(3), drop_at, ..set(SOURCES, weight(1)) };
        let mut run = Run::new(queue(Wf2q::default(), vec![of]));
        let packets: Vec<_> = (0..10).map(|_| run.enqueue(key(0, 1), 100)).collect();
        let other = run.enqueue(key(0, 2), 100);
        assert_eq!(run.dropped.len(), 7);
        let mut sent: Vec<_> = core::iter::from_fn(|| run.send()).map(|(packet, _)| packet).collect();
        sent.retain(|&packet| packet != other);
        assert_eq!(sent, left.map(|n| packets[n]));
    }
    let mut whole = queue(Wf2q::default(), vec![set(SOURCES, weight(1))]);
    whole.set_bound(Bound::Packets(4));
    assert_eq!(whole.bound(), Bound::Packets(4));
    let mut run = Run::new(whole);
    for source in 0..6 {
        run.enqueue(key(0, source), 100);
    }
    assert_eq!(run.dropped.len(), 2);
    // Flows made for packets that were dropped are idle from the start.
    run.now = ms(99);
    assert_eq!(run.queue.masked_flows(run.now).len(), 6);
    run.now = ms(100);
    assert_eq!(run.queue.masked_flows(run.now).len(), 4);
}

#[test]
fn a_lower_band_goes_first() {
    let band = |band| FlowConfig { band, ..FlowConfig::default() };
    let mut run = Run::new(queue(Priority::default(), vec![set(SOURCES, band(3)), set(SOURCES, band(1))]));
    for source in 0..5 {
        run.enqueue(key(0, source), 100);
        run.enqueue(key(1, source), 100);
    }
    let order: Vec<_> = core::iter::from_fn(|| run.send()).map(|(_, key)| (key.mark, source(&key))).collect();
    let expected: Vec<_> =
        [1, 0].into_iter().flat_map(|set| (0..5).map(move |source| (set, source))).collect();
    assert_eq!(order, expected);
}

/// Those beyond the most share one flow, whose share is that of one.
#[test]
fn flows_beyond_the_most_share_one() {
    let mut run = Run::new(queue(Wf2q::default(), vec![FlowSet { most: 3, ..set(SOURCES, weight(1)) }]));
    for _ in 0..100 {
        for source in 0..13 {
            run.enqueue(key(0, source), 100);
        }
    }
    let flows = run.queue.masked_flows(run.now);
    assert_eq!(flows.len(), 4);
    let shared: Vec<_> = flows.iter().filter(|flow| flow.flow.is_none()).collect();
    assert_eq!(shared[0].arrived.packets, 1_000);
    let counts = run.queue.flow_sets()[0];
    assert_eq!((counts.made, counts.overflowed, counts.expired), (4, 1_000, 0));
    let mut sent = [0; 13];
    for _ in 0..100 {
        let (_, key) = run.send().unwrap();
        sent[source(&key) as usize] += 1;
    }
    assert_eq!(sent[..3], [25; 3]);
    assert_eq!(sent[3..].iter().sum::<u64>(), 25);
    while run.send().is_some() {}

    // When those that there were are expired, others have their own.
    run.now = ms(100);
    for source in 10..13 {
        run.enqueue(key(0, source), 100);
    }
    let sources: Vec<_> =
        run.queue.masked_flows(run.now).iter().map(|flow| flow.flow.unwrap().source & 0xff).collect();
    assert_eq!(sources, [10, 11, 12]);
    assert_eq!(run.queue.flow_sets()[0].overflowed, 1_000);
}

#[test]
fn a_weight_is_for_all_flows_of_a_set_now_and_later() {
    let mut run =
        Run::new(queue(Wf2q::default(), vec![set(SOURCES, weight(1)), set(FlowMask::NONE, weight(1))]));
    run.enqueue(key(0, 1), 100);
    run.queue.set_weight(run.now, 0, Weight::new(4).expect("not 0")).unwrap();
    for _ in 0..200 {
        run.enqueue(key(0, 1), 100);
        run.enqueue(key(0, 2), 100);
        run.enqueue(key(1, 3), 100);
    }
    let mut sent = [0_i32; 4];
    for _ in 0..180 {
        sent[source(&run.send().unwrap().1) as usize] += 1;
    }
    for (source, expected) in [(1, 80), (2, 80), (3, 20)] {
        assert!((sent[source] - expected).abs() <= 2, "{sent:?}");
    }
    assert_eq!(run.queue.set_weight(run.now, 2, Weight::ONE), Err(Refused::NoClass));
}

#[test]
fn what_a_scheduler_refuses_changes_nothing() {
    let mut sets = queue(Wf2q::default(), vec![]);
    let found = u64::from(Wf2q::MOST_WEIGHT) + 1;
    let most = u64::from(Wf2q::MOST_WEIGHT);
    let refused = sets.add_set(set(SOURCES, weight(Wf2q::MOST_WEIGHT + 1)));
    assert_eq!(refused, Err(Refused::Weight { found, most }));
    // The next one gets the place.
    sets.add_set(set(SOURCES, weight(2))).unwrap();
    let mut run = Run::new(sets);
    run.enqueue(key(0, 1), 100);
    assert_eq!((run.queue.flow_sets().len(), run.dropped.len()), (1, 0));
    let bands = queue(Priority::default(), vec![])
        .add_set(set(FlowMask::NONE, FlowConfig { band: Priority::BANDS, ..FlowConfig::default() }));
    assert!(matches!(bands, Err(Refused::Band { .. })));
}

/// 65,536 flows of the greatest weight have the greatest sum.
#[test]
fn a_sum_of_weights_beyond_the_greatest() {
    let flows = 1 << 16;
    let greatest = Qfq::MOST_WEIGHT;
    let config = FlowConfig { weight: greatest, ..FlowConfig::default() };
    let mut queue = FlowSets::new(Qfq::default(), IDLE, Seed(1), "link");
    queue.add_set(FlowSet { most: u32::MAX, ..set(SOURCES, weight(1)) }).unwrap();
    queue.add_set(set(SOURCES, config)).unwrap();
    let mut stand = Stand::new(Seed(1));
    let enqueue = |queue: &mut FlowSets<Qfq>, stand: &mut Stand, set, source| {
        let packet = stand.insert(Time::ZERO, key(set, source), 100);
        queue.enqueue(Time::ZERO, packet, &mut stand.context());
        stand.dropped().map(|(_, reason)| reason)
    };
    for source in 0..flows + 1 {
        assert_eq!(enqueue(&mut queue, &mut stand, 0, source), None);
    }
    // The last but one is one too many beside the last, so that all have their weight of before.
    let found = Qfq::MOST_SUM + 1;
    assert_eq!(queue.set_weight(Time::ZERO, 0, greatest), Err(Refused::Sum { found, most: Qfq::MOST_SUM }));
    // Beside 65,537 flows of weight 1 there is room for 65,535 of the greatest; the next one would share, but for that
    // there is no room either.
    for source in 0..flows - 1 {
        assert_eq!(enqueue(&mut queue, &mut stand, 1, source), None);
    }
    assert_eq!(enqueue(&mut queue, &mut stand, 1, flows), Some(DropReason::NoClass));
    let counts = queue.flow_sets()[1];
    assert_eq!((counts.made, counts.overflowed), (u64::from(flows) - 1, 1));
    let counters = queue.classes()[1];
    assert_eq!((counters.arrived.packets, counters.dropped.packets), (u64::from(flows), 1));
}

/// A queue in place of another takes over what waits, in order, without regard to bounds.
#[test]
fn queues_replace_each_other() {
    let mut stand = Stand::new(Seed(1));
    let mut plain = Fifo::new(Bound::Packets(100), DropAt::Tail);
    let mut packets = Vec::new();
    for n in 0..20 {
        let now = ms(n / 3);
        let packet = stand.insert(now, key((n % 3) as u32, (n % 4) as u32), 100);
        plain.enqueue(now, packet, &mut stand.context());
        packets.push(packet);
    }
    let narrow = |mask| FlowSet { bound: Bound::Packets(1), ..set(mask, weight(1)) };
    let mut sets = queue(Wf2q::default(), vec![narrow(SOURCES), narrow(FlowMask::NONE)]);
    let waiting = plain.take_all(stand.context().pool);
    sets.adopt(ms(10), waiting, &mut stand.context());
    // Those of the third set have no flow.
    let mut dropped = Vec::new();
    while let Some((packet, reason)) = stand.dropped() {
        assert_eq!(reason, DropReason::NoClass);
        dropped.push(packet);
    }
    let third = |&(n, _): &(usize, &PacketRef)| n % 3 == 2;
    let expected: Vec<_> = packets.iter().enumerate().filter(third).map(|(_, &packet)| packet).collect();
    assert_eq!(dropped, expected);
    assert_eq!((sets.masked_flows(ms(10)).len(), sets.backlog().packets), (5, 14));

    let mut back = sets.take_all(stand.context().pool);
    assert_eq!(sets.backlog().packets, 0);
    let mut order = Vec::new();
    while let Some(packet) = back.pop_front(stand.context().pool) {
        order.push(packet);
    }
    let entered: Vec<_> = order.iter().map(|&packet| stand.pool().get(packet).entered).collect();
    assert!(entered.is_sorted());
    order.sort_by_key(|packet| packet.number());
    let kept = packets.iter().enumerate().filter(|one| !third(one)).map(|(_, &packet)| packet);
    assert_eq!(order, kept.collect::<Vec<_>>());
}

/// A flow that has had more than its share stays past its term while others wait, until they have made up for it.
#[test]
fn who_owes_stays() {
    let sets = || vec![set(SOURCES, weight(1)), set(FlowMask::NONE, weight(1_000))];
    let mut run = Run::new(queue(Wf2q::default(), sets()));
    for _ in 0..2_000 {
        run.enqueue(key(1, 0), 1_000);
    }
    run.enqueue(key(0, 1), 1_000);
    // The light one goes as the second, and so has had what is due to it beside 1,000 packets of the other.
    let sent: Vec<_> = (0..4).map(|_| run.send().unwrap().1.mark).collect();
    assert_eq!(sent, [1, 0, 1, 1]);
    let light = |run: &Run| {
        let flows = run.queue.masked_flows(run.now);
        flows.iter().find(|flow| flow.set == 0).map(|flow| flow.idle_since.unwrap())
    };
    run.now = ms(150);
    assert_eq!(light(&run), Some(ms(0)));
    run.enqueue(key(1, 0), 1_000);
    assert_eq!(light(&run), Some(ms(150)), "another term");
    (0..990).for_each(|_| assert_eq!(run.send().unwrap().1.mark, 1));
    run.now = ms(249);
    run.enqueue(key(1, 0), 1_000);
    assert_eq!(light(&run), Some(ms(150)));
    run.now = ms(250);
    run.enqueue(key(1, 0), 1_000);
    assert_eq!(light(&run), Some(ms(250)));
    (0..20).for_each(|_| assert_eq!(run.send().unwrap().1.mark, 1));
    run.now = ms(350);
    assert_eq!(light(&run), None);
    assert_eq!(run.queue.flow_sets()[0].expired, 0, "nothing has come since");
    run.enqueue(key(1, 0), 1_000);
    assert_eq!(run.queue.flow_sets()[0].expired, 1);

    // When nothing waits, nobody is owed anything.
    let mut run = Run::new(queue(Wf2q::default(), sets()));
    run.enqueue(key(1, 0), 1_000);
    run.enqueue(key(0, 1), 1_000);
    while run.send().is_some() {}
    run.now = ms(99);
    assert_eq!(light(&run), Some(ms(0)));
    run.now = ms(100);
    assert_eq!(light(&run), None);
    // That those who wait now came later changes nothing.
    run.enqueue(key(0, 2), 1_000);
    run.enqueue(key(1, 0), 1_000);
    let there = run.queue.masked_flows(run.now);
    assert!(there.iter().all(|flow| flow.flow.is_none_or(|flow| flow.source & 0xff != 1)), "{there:?}");
}
