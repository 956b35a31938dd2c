//! Classes behind a scheduler as a link's queue: bounds, counters, queue management, queues inside classes.

use std::collections::BTreeSet;

use narrows_core::aqm::{Aqm, Judgement, Waiting};
use narrows_core::classify::{Classifier, Condition};
use narrows_core::queue::{Bound, Context, Dequeue, DropAt, Queue, Stand};
use narrows_core::sched::{
    Class, Drr, Fair, Fifo, FlowConfig, Gfq, Hpd, Kps, Overload, Priority, Qfq, Refused, Scheduled,
    Scheduler, Store, Weight, Wf2q,
};
use narrows_core::{Bytes, DropReason, Duration, FlowKey, PacketRef, Seed, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::nested::TwoLanes;

/// Drops every `drops`th and marks every `marks`th packet that it judges.
#[derive(Debug)]
struct EveryNth {
    drops: u64,
    marks: u64,
    judged: u64,
}

impl EveryNth {
    fn judge(&mut self, packet: PacketRef, context: &Context<'_>) -> Judgement {
        self.judged += 1;
        if self.judged.is_multiple_of(self.drops) {
            Judgement::Drop
        } else if self.judged.is_multiple_of(self.marks) && context.pool.get(packet).key.ecn() > 0 {
            Judgement::Mark
        } else {
            Judgement::Pass
        }
    }
}

impl Aqm for EveryNth {
    fn arrive(&mut self, _: Time, packet: PacketRef, _: Waiting, context: &mut Context<'_>) -> Judgement {
        self.judge(packet, context)
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
        self.judge(packet, context)
    }
}

fn by_mark(classes: u32) -> Classifier {
    Classifier::Mark(classes)
}

fn class(bound: Bound, drop_at: DropAt, store: Store) -> Class {
    Class { flow: FlowConfig::default(), bound, drop_at, store }
}

fn plain(packets: u64) -> Class {
    class(Bound::Packets(packets), DropAt::Tail, Store::Plain)
}

const ENOUGH: Bound = Bound::Packets(1_000_000);

/// A queue and where its packets are.
struct Run {
    stand: Stand,
    queue: Box<dyn Queue>,
    now: Time,
    inside: BTreeSet<u32>,
    classes: u64,
    dropped: Vec<(u32, DropReason)>,
    noclass: u64,
    marked: u64,
}

impl Run {
    fn new(queue: Box<dyn Queue>, classes: u64) -> Self {
        Self {
            stand: Stand::new(Seed(1)),
            queue,
            now: Time::ZERO,
            inside: BTreeSet::new(),
            classes,
            dropped: Vec::new(),
            noclass: 0,
            marked: 0,
        }
    }

    fn enqueue(&mut self, class: u32, length: u32, traffic_class: u8) -> PacketRef {
        let key = FlowKey { mark: class, traffic_class, ..FlowKey::default() };
        let packet = self.stand.insert(self.now, key, length);
        self.inside.insert(packet.number());
        self.queue.enqueue(self.now, packet, &mut self.stand.context());
        self.settle();
        packet
    }

    fn dequeue(&mut self) -> Dequeue {
        let answer = self.queue.dequeue(self.now, &mut self.stand.context());
        if let Dequeue::Packet(packet) = answer {
            assert!(self.inside.remove(&packet.number()), "sent once");
        }
        self.settle();
        answer
    }

    fn send(&mut self) -> Option<u32> {
        match self.dequeue() {
            Dequeue::Packet(packet) => Some(packet.number()),
            _ => None,
        }
    }

    /// Notes what was dropped, and checks that everything adds up.
    fn settle(&mut self) {
        while let Some((packet, reason)) = self.stand.dropped() {
            assert!(self.inside.remove(&packet.number()), "dropped once");
            self.dropped.push((packet.number(), reason));
            self.noclass += u64::from(reason == DropReason::NoClass);
        }
        self.marked += self.stand.marked();
        let pool = self.stand.pool();
        let lengths =
            self.inside.iter().map(|&packet| u64::from(pool.get(PacketRef::from_number(packet)).length));
        let backlog = self.queue.backlog();
        assert_eq!((backlog.packets, backlog.bytes), (self.inside.len() as u64, lengths.sum()));

        let counters = self.queue.classes();
        assert_eq!(counters.len() as u64, self.classes);
        let mut waiting = 0;
        for (number, class) in (0..).zip(counters) {
            let inside = |&&packet: &&u32| pool.get(PacketRef::from_number(packet)).key.mark == number;
            let inside = self.inside.iter().filter(inside).count() as u64;
            assert_eq!(
                class.arrived.packets,
                class.sent.packets + class.dropped.packets + inside,
                "class {number}"
            );
            waiting += inside;
        }
        if self.classes > 0 {
            assert_eq!(waiting, self.inside.len() as u64);
            assert_eq!(counters.iter().map(|class| class.marked).sum::<u64>(), self.marked);
            let dropped = counters.iter().map(|class| class.dropped.packets).sum::<u64>();
            assert_eq!(dropped + self.noclass, self.dropped.len() as u64);
        }
    }

    /// Sends everything.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            match self.dequeue() {
                Dequeue::Packet(_) | Dequeue::Ended(..) => {}
                Dequeue::NotBefore(at) => {
                    assert!(at > self.now);
                    self.now = at;
                }
                Dequeue::Empty => {
                    assert!(self.inside.is_empty(), "nothing is forgotten");
                    return;
                }
            }
        }
        panic!("it never comes to an end");
    }
}

/// Five classes, each of another kind.
fn five<S: Scheduler + 'static>(scheduler: S, bound: Bound, overload: Overload) -> Box<dyn Queue> {
    let mut queue = Scheduled::new(scheduler, by_mark(5), bound, overload);
    let lanes =
        |period| TwoLanes::new(Bound::Packets(6), Duration::from_micros(3), Duration::from_nanos(period));
    let managed = EveryNth { drops: 5, marks: 3, judged: 0 };
    let stores = [
        class(Bound::Packets(4), DropAt::Tail, Store::Plain),
        class(Bound::Bytes(Bytes::new(4_000)), DropAt::Head, Store::Plain),
        class(Bound::Packets(8), DropAt::Head, Store::Managed(Box::new(managed))),
        class(Bound::Packets(0), DropAt::Tail, Store::Queue(Box::new(lanes(1)))),
        class(Bound::Packets(0), DropAt::Tail, Store::Queue(Box::new(lanes(700)))),
    ];
    for (class, weight) in stores.into_iter().zip(1..) {
        let flow = FlowConfig { weight: Weight::new(weight).expect("not 0"), band: weight, ..class.flow };
        queue.add_class(Class { flow, ..class }).expect("in range");
    }
    Box::new(queue)
}

fn queues(bound: Bound, overload: Overload) -> Vec<Box<dyn Queue>> {
    let quantum = Bytes::new(1500);
    vec![
        five(Fifo::default(), bound, overload),
        five(Priority::default(), bound, overload),
        five(Drr::new(quantum), bound, overload),
        five(Wf2q::default(), bound, overload),
        five(Qfq::default(), bound, overload),
        five(Gfq::default(), bound, overload),
        five(Kps::default(), bound, overload),
        five(Fair::new(quantum), bound, overload),
        five(Hpd::default(), bound, overload),
    ]
}

fn overload() -> impl Strategy<Value = Overload> {
    let drop_at = prop_oneof![Just(DropAt::Head), Just(DropAt::Tail)];
    let longest = (1u32..70, drop_at).prop_map(|(batch, drop_at)| Overload::Longest { batch, drop_at });
    prop_oneof![Just(Overload::Arriving), longest]
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (0u64..30).prop_map(Bound::Packets),
        (0u64..20_000).prop_map(|bytes| Bound::Bytes(Bytes::new(bytes)))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Arrivals, departures, drops, changes of weights and bounds, a hand-over to another queue: every packet is sent or
    /// dropped once, and each class's counters say so.
    #[test]
    fn nothing_is_lost_or_made_whatever_classes_are_of(
        (bound, overload) in (bound(), overload()),
        steps in vec((0u8..20, 0u32..7, 0u32..1_500, any::<u8>()), 1..150),
    ) {
        for queue in queues(bound, overload) {
            let mut run = Run::new(queue, 5);
            for &(what, class, number, traffic_class) in &steps {
                match what {
                    0..10 => {
 run.enqueue(class, number, traffic_class);
},
                    10..16 => {
 run.dequeue();
}
                    16 => {
                        let weight = Weight::new(number + 1).expect("not 0");
                        let _ = run.queue.set_weight(run.now, class as usize, weight);
                    }
                    17 => run.queue.set_bound(Bound::Packets(number.into())),
                    _ => run.now = run.now + Duration::from_nanos(number.into()),
                }
            }
            // What waits is handed over to another queue, in order of arrival, and all of it is taken.
            let waiting = run.queue.backlog();
            let (mut list, mut order) = (run.queue.take_all(run.stand.context().pool), Vec::new());
            let mut again = narrows_core::PacketList::default();
            let pool = run.stand.context().pool;
            while let Some(packet) = list.pop_front(pool) {
                order.push(pool.get(packet).entered);
                again.push_back(packet, pool);
            }
            prop_assert!(order.is_sorted());
            prop_assert_eq!(order.len() as u64, waiting.packets);
            let mut successor = five(Wf2q::default(), Bound::Packets(0), Overload::Arriving);
            successor.adopt(run.now, again, &mut run.stand.context());
            prop_assert_eq!(successor.backlog(), waiting, "no bound applies");
            run.queue = successor;
            (run.dropped, run.noclass, run.marked) = (Vec::new(), 0, 0);
            run.settle();
            run.drain();
        }
    }
}

#[test]
fn the_bound_of_a_class_drops_at_the_tail_or_at_the_head() {
    for (drop_at, dropped, sent) in [(DropAt::Tail, [2, 3], [0, 1]), (DropAt::Head, [0, 1], [2, 3])] {
        let mut queue =
            Scheduled::new(Drr::new(Bytes::new(1500)), Classifier::One, ENOUGH, Overload::Arriving);
        queue.add_class(class(Bound::Packets(2), drop_at, Store::Plain)).expect("any flow");
        let mut run = Run::new(Box::new(queue), 1);
        (0..4).for_each(|_| {
            run.enqueue(0, 100, 0);
        });
        assert_eq!(run.dropped, dropped.map(|packet| (packet, DropReason::QueueFull)));
        assert_eq!([run.send(), run.send(), run.send()], [Some(sent[0]), Some(sent[1]), None]);
    }
}

/// A class of one packet that drops at the head and gets a packet for each that is sent keeps its turn: it would never be
/// served if each drop sent it to the back.
#[test]
fn a_class_that_drops_at_the_head_keeps_its_turn() {
    fn served<S: Scheduler + 'static>(scheduler: S) -> usize {
        let mut queue = Scheduled::new(scheduler, by_mark(6), ENOUGH, Overload::Arriving);
        (0..5).for_each(|_| queue.add_class(plain(1_000)).expect("any flow"));
        queue.add_class(class(Bound::Packets(1), DropAt::Head, Store::Plain)).expect("any flow");
        let mut run = Run::new(Box::new(queue), 6);
        (0..5).for_each(|class| {
            (0..100).for_each(|_| {
                run.enqueue(class, 1000, 0);
            })
        });
        let mut served = 0;
        for _ in 0..60 {
            let fresh = run.enqueue(5, 1000, 0).number();
            served += usize::from(run.send() == Some(fresh));
        }
        served
    }
    // One of six packets is its own.
    assert_eq!(served(Drr::new(Bytes::new(1000))), 10);
    assert_eq!(served(Fair::round_robin(Bytes::new(1000))), 10);
    assert_eq!(served(Wf2q::default()), 10);
}

/// Other rules count from the next arrival on: what waits stays in its class, and so do the counters.
#[test]
fn other_rules_leave_what_waits_where_it_is() {
    let rules = |class| Classifier::Rules { rules: vec![(Condition::default(), class)], default: None };
    let mut queue = Scheduled::new(Priority::default(), rules(1), ENOUGH, Overload::Arriving);
    for band in 0..2 {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        queue.add_class(Class { flow, ..plain(10) }).expect("any flow");
    }
    let mut stand = Stand::new(Seed(1));
    let mut enqueue = |queue: &mut Scheduled<Priority>| {
        let packet = stand.insert(Time::ZERO, FlowKey::default(), 1000);
        queue.enqueue(Time::ZERO, packet, &mut stand.context());
        packet
    };
    let first = enqueue(&mut queue);
    queue.set_classifier(rules(0)).expect("there is a class 0");
    let second = enqueue(&mut queue);
    assert_eq!(queue.set_classifier(rules(2)), Err(Refused::NoClass));
    let third = enqueue(&mut queue);
    let arrived: Vec<u64> = queue.classes().iter().map(|class| class.arrived.packets).collect();
    assert_eq!(arrived, [2, 1]);
    for expected in [second, third, first] {
        let Dequeue::Packet(packet) = queue.dequeue(Time::ZERO, &mut stand.context()) else {
            panic!("one waits")
        };
        assert_eq!(packet.number(), expected.number());
    }
}

#[test]
fn overload_takes_from_the_flow_with_the_most_bytes() {
    let longest = |batch| {
        let overload = Overload::Longest { batch, drop_at: DropAt::Head };
        let mut queue = Scheduled::new(Fair::new(Bytes::new(1500)), by_mark(3), Bound::Packets(10), overload);
        (0..3).for_each(|_| queue.add_flow(FlowConfig::default(), Store::Plain).expect("any flow"));
        let mut run = Run::new(Box::new(queue), 0);
        // Two long packets outweigh eight short ones; so do one and a half.
        (0..8).for_each(|_| {
            run.enqueue(0, 100, 0);
        });
        (0..2).for_each(|_| {
            run.enqueue(1, 1500, 0);
        });
        run.enqueue(2, 50, 0);
        run.dropped.iter().map(|&(packet, _)| packet).collect::<Vec<_>>()
    };
    assert_eq!(longest(1), [8], "one of the long ones");
    assert_eq!(longest(64), [8], "half of two");

    let three_of_ten = |drop_at| {
        let overload = Overload::Longest { batch: 3, drop_at };
        let mut queue = Scheduled::new(Fifo::default(), by_mark(2), Bound::Packets(9), overload);
        (0..2).for_each(|_| queue.add_flow(FlowConfig::default(), Store::Plain).expect("any flow"));
        let mut run = Run::new(Box::new(queue), 0);
        (0..10).for_each(|_| {
            run.enqueue(1, 100, 0);
        });
        run.dropped.iter().map(|&(packet, _)| packet).collect::<Vec<_>>()
    };
    assert_eq!(
        three_of_ten(DropAt::Head),
        [0, 1, 2],
        "half of ten, but no more than three, and the oldest ones"
    );
    assert_eq!(three_of_ten(DropAt::Tail), [9, 8, 7], "the youngest ones");
}

#[test]
fn the_bound_of_the_whole_refuses_what_arrives() {
    let mut queue = Scheduled::new(Fifo::default(), by_mark(2), Bound::Packets(3), Overload::Arriving);
    (0..2).for_each(|_| queue.add_class(plain(100)).expect("any flow"));
    let mut run = Run::new(Box::new(queue), 2);
    (0..5).for_each(|n| {
        run.enqueue(n % 2, 100, 0);
    });
    assert_eq!(run.dropped, [(3, DropReason::QueueFull), (4, DropReason::QueueFull)]);
}

#[test]
fn a_packet_of_no_class_is_dropped_and_says_so() {
    let short = Condition { lengths: Some(0..=100), ..Condition::default() };
    let rules = Classifier::Rules { rules: vec![(short, 0)], default: None };
    let mut queue = Scheduled::new(Fifo::default(), rules, ENOUGH, Overload::Arriving);
    queue.add_class(plain(100)).expect("any flow");
    let mut run = Run::new(Box::new(queue), 1);
    (99..103).for_each(|length| {
        run.enqueue(0, length, 0);
    });
    assert_eq!(run.dropped, [(2, DropReason::NoClass), (3, DropReason::NoClass)]);
}

#[test]
fn a_packet_that_has_the_mark_already_is_not_counted_as_marked() {
    let mut queue = Scheduled::new(Fifo::default(), Classifier::One, ENOUGH, Overload::Arriving);
    let marks_all = EveryNth { drops: u64::MAX, marks: 1, judged: 0 };
    queue.add_class(class(ENOUGH, DropAt::Tail, Store::Managed(Box::new(marks_all)))).expect("any flow");
    let mut run = Run::new(Box::new(queue), 1);
    let ecn = [0, 1, 2, FlowKey::CONGESTION_EXPERIENCED];
    let packets = ecn.map(|ecn| run.enqueue(0, 100, ecn));
    run.drain();
    // Each that can be is judged so twice, when it comes and when it goes.
    assert_eq!((run.marked, run.queue.classes()[0].marked), (2, 2));
    let left = packets.map(|packet| run.stand.pool().get(packet).key.ecn());
    assert_eq!(left, [0, 3, 3, 3]);
}

/// What packets waited is counted per class, by scheduled instants.
#[test]
fn classes_count_how_long_packets_waited() {
    let mut queue = Scheduled::new(Priority::default(), by_mark(2), ENOUGH, Overload::Arriving);
    for band in [1, 0] {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        queue.add_class(Class { flow, ..plain(100) }).expect("in range");
    }
    let mut run = Run::new(Box::new(queue), 2);
    for class in [0, 0, 1] {
        run.enqueue(class, 100, 0);
    }
    for _ in 0..3 {
        run.now = run.now + Duration::from_millis(1);
        run.dequeue();
    }
    let waited: Vec<_> = run.queue.classes().iter().map(|class| (class.waited, class.longest_wait)).collect();
    let ms = Duration::from_millis;
    assert_eq!(waited, [(ms(5), ms(3)), (ms(1), ms(1))]);
}
