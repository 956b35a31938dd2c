//! Classes whose own queues have nothing to send for a while hold up nobody.

use narrows_core::classify::Classifier;
use narrows_core::netem::{Chance, Netem, Share};
use narrows_core::queue::{Bound, Dequeue, DropAt, Queue, Stand};
use narrows_core::sched::{
    Class, Drr, Fair, Fifo, FlowConfig, Gfq, Htb, HtbClass, Kps, Overload, Priority, Qfq, Scheduled,
    Scheduler, Store, Tbf, TbfConfig, Wf2q,
};
use narrows_core::{Bytes, DropReason, Duration, FlowKey, NetemQueue, PacketRef, Rate, Seed, Time};

const ENOUGH: Bound = Bound::Packets(1_000_000);

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// 1000 bytes a millisecond, two at once at first.
fn tbf() -> Box<dyn Queue> {
    let config = TbfConfig {
        rate: Rate::from_bits_per_second(8_000_000),
        burst: Bytes::new(2_000),
        ..TbfConfig::default()
    };
    let tbf = Tbf::new(config).expect("in range");
    let mut queue = Scheduled::new(tbf, Classifier::One, Bound::Packets(50), Overload::Arriving);
    queue.add_class(plain(ENOUGH)).expect("one flow");
    Box::new(queue)
}

fn plain(bound: Bound) -> Class {
    Class { flow: FlowConfig::default(), bound, drop_at: DropAt::Tail, store: Store::Plain }
}

fn nested(queue: Box<dyn Queue>) -> Class {
    Class { store: Store::Queue(queue), ..plain(ENOUGH) }
}

/// Two classes by mark: a shaped one, which goes first where there are bands, and a plain one.
fn two<S: Scheduler + 'static>(scheduler: S, bound: Bound, overload: Overload) -> Box<dyn Queue> {
    let mut queue = Scheduled::new(scheduler, Classifier::Mark(2), bound, overload);
    queue.add_class(nested(tbf())).expect("any flow");
    let flow = FlowConfig { band: 1, ..FlowConfig::default() };
    queue.add_class(Class { flow, ..plain(ENOUGH) }).expect("any flow");
    Box::new(queue)
}

fn schedulers(bound: Bound, overload: Overload) -> [(&'static str, Box<dyn Queue>); 9] {
    let quantum = Bytes::new(1500);
    let leaf = HtbClass { rate: Rate::UNLIMITED, ceil: Rate::UNLIMITED, ..HtbClass::default() };
    [
        ("fifo", two(Fifo::default(), bound, overload)),
        ("prio", two(Priority::default(), bound, overload)),
        ("drr", two(Drr::new(quantum), bound, overload)),
        ("fair", two(Fair::new(quantum), bound, overload)),
        ("wf2q+", two(Wf2q::default(), bound, overload)),
        ("qfq", two(Qfq::default(), bound, overload)),
        ("gfq", two(Gfq::default(), bound, overload)),
        ("kps", two(Kps::default(), bound, overload)),
        ("htb", two(Htb::new(vec![leaf; 2]).expect("in range"), bound, overload)),
    ]
}

fn arrive(queue: &mut dyn Queue, stand: &mut Stand, now: Time, class: u32) -> PacketRef {
    let packet = stand.insert(now, FlowKey { mark: class, ..FlowKey::default() }, 1000);
    queue.enqueue(now, packet, &mut stand.context());
    packet
}

fn dequeue(queue: &mut dyn Queue, stand: &mut Stand, now: Time) -> Option<u32> {
    match queue.dequeue(now, &mut stand.context()) {
        Dequeue::Packet(packet) | Dequeue::Ended(packet, _) => Some(stand.pool().get(packet).key.mark),
        Dequeue::NotBefore(at) => {
            assert!(at > now);
            None
        }
        Dequeue::Empty => None,
    }
}

/// Both have plenty; the wire takes a packet every 100 µs. The shaped class sends its rate and its burst, the other one has
/// all the rest, and the wire is never idle.
#[test]
fn a_class_that_waits_leaves_the_wire_to_the_others() {
    for (name, mut queue) in schedulers(ENOUGH, Overload::Arriving) {
        let mut stand = Stand::new(Seed(1));
        (0..20).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 0);
        });
        (0..200).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 1);
        });
        let mut sent = [0, 0];
        for slot in 0..150 {
            let now = Time::ZERO + Duration::from_micros(100 * slot);
            let class = dequeue(&mut *queue, &mut stand, now).expect("the wire is never idle");
            sent[class as usize] += 1;
            let waiting = queue.backlog();
            assert_eq!(waiting.packets, 220 - sent[0] - sent[1], "those put aside count");
            assert_eq!(waiting.bytes, waiting.packets * 1000);
        }
        // 14.9 ms: a burst of two and 14 earned; a fair share of the others may delay one. In a line of all packets it stands
        // at the end each time that it comes back.
        let expected = if name == "fifo" { 2..=2 } else { 15..=16 };
        assert!(expected.contains(&sent[0]), "{name}: {sent:?}");
        let classes = queue.classes();
        assert_eq!(classes.iter().map(|class| class.sent.packets).collect::<Vec<_>>(), sent);
        assert_eq!(classes[0].arrived.packets, 20);
    }
}

#[test]
fn when_all_wait_the_first_instant_is_named_and_an_arrival_asks_again() {
    for (name, mut queue) in schedulers(ENOUGH, Overload::Arriving) {
        let mut stand = Stand::new(Seed(1));
        (0..4).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 0);
        });
        assert_eq!([(); 2].map(|()| dequeue(&mut *queue, &mut stand, Time::ZERO)), [Some(0); 2]);
        let wait = |queue: &mut dyn Queue, stand: &mut Stand, now| queue.dequeue(now, &mut stand.context());
        for now in [0, 500_000, 999_999] {
            let now = Time::from_nanos(now);
            assert_eq!(wait(&mut *queue, &mut stand, now), Dequeue::NotBefore(ms(1)), "{name}");
            assert_eq!(queue.backlog().packets, 2);
        }
        let own = arrive(&mut *queue, &mut stand, Time::from_nanos(999_999), 0);
        assert_eq!(stand.dropped(), None, "{own:?}");
        assert_eq!(wait(&mut *queue, &mut stand, Time::from_nanos(999_999)), Dequeue::NotBefore(ms(1)));
        arrive(&mut *queue, &mut stand, Time::from_nanos(999_999), 1);
        assert_eq!(dequeue(&mut *queue, &mut stand, Time::from_nanos(999_999)), Some(1), "{name}");
        assert_eq!(dequeue(&mut *queue, &mut stand, ms(1)), Some(0), "{name}");
        assert_eq!(dequeue(&mut *queue, &mut stand, ms(1)), None);
        // What is handed over is all that waits.
        let mut all = queue.take_all(stand.context().pool);
        assert_eq!(std::iter::from_fn(|| all.pop_front(stand.context().pool)).count(), 2, "{name}");
        assert_eq!(queue.backlog().packets, 0);
    }
}

/// A bucket over bands: which packet goes first is theirs to say, so one that is longer than the bucket must not be waited
/// for, or others would be given up in its place.
#[test]
fn only_what_is_too_long_for_a_bucket_is_dropped_for_it() {
    for moved in [false, true] {
        let mut bands = Scheduled::new(Priority::default(), Classifier::Mark(2), ENOUGH, Overload::Arriving);
        bands.add_class(plain(ENOUGH)).expect("any flow");
        let flow = FlowConfig { band: 1, ..FlowConfig::default() };
        bands.add_class(Class { flow, ..plain(ENOUGH) }).expect("any flow");
        let config = TbfConfig { burst: Bytes::new(2_000), ..TbfConfig::default() };
        let tbf = Tbf::new(config).expect("in range");
        let mut queue = Scheduled::new(tbf, Classifier::One, ENOUGH, Overload::Arriving);
        queue.add_class(nested(Box::new(bands))).expect("one flow");
        let mut stand = Stand::new(Seed(1));
        let mut other = Scheduled::new(Fifo::default(), Classifier::One, ENOUGH, Overload::Arriving);
        other.add_class(plain(ENOUGH)).expect("any flow");
        let first: &mut dyn Queue = if moved { &mut other } else { &mut queue };
        let long = stand.insert(Time::ZERO, FlowKey { mark: 1, ..FlowKey::default() }, 2_001);
        first.enqueue(Time::ZERO, long, &mut stand.context());
        (0..2).for_each(|_| {
            arrive(first, &mut stand, Time::ZERO, 0);
        });
        if moved {
            let all = other.take_all(stand.context().pool);
            queue.adopt(Time::ZERO, all, &mut stand.context());
        }
        let sent = [(); 3].map(|()| dequeue(&mut queue, &mut stand, Time::ZERO));
        assert_eq!(sent, [Some(0), Some(0), None]);
        assert_eq!(stand.dropped(), Some((long, DropReason::BlackHole)));
        assert_eq!((stand.dropped(), queue.backlog().packets), (None, 0));
        let [class] = queue.classes() else { panic!("one class") };
        assert_eq!((class.arrived.packets, class.sent.packets, class.dropped.packets), (3, 2, 1));
    }
}

/// What waits in a class that is put aside counts when the longest is looked for, but is not dropped.
#[test]
fn overload_spares_others_when_the_longest_is_put_aside() {
    let overload = Overload::Longest { batch: 1, drop_at: DropAt::Head };
    for (name, mut queue) in schedulers(Bound::Packets(8), overload) {
        let mut stand = Stand::new(Seed(1));
        (0..8).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 0);
        });
        while dequeue(&mut *queue, &mut stand, Time::ZERO).is_some() {}
        (0..3).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 1);
        });
        assert_eq!(
            (queue.backlog().packets, stand.dropped()),
            (9, None),
            "{name}: six shaped ones spare three"
        );
        (0..4).for_each(|_| {
            arrive(&mut *queue, &mut stand, Time::ZERO, 1);
        });
        assert!(
            matches!(stand.dropped(), Some((_, DropReason::QueueFull))),
            "{name}: seven is more than six"
        );
    }
}

fn netem(netem: Netem, name: &str) -> Box<dyn Queue> {
    Box::new(NetemQueue::new(netem, Seed(3), name))
}

/// PRIO over netem, as tc has it: each packet of the class is delayed by itself, and nobody waits for it.
#[test]
fn a_netem_child_delays_its_class_only() {
    let delay = Netem { delay: Duration::from_millis(10), ..Netem::default() };
    let mut queue = Scheduled::new(Priority::default(), Classifier::Mark(2), ENOUGH, Overload::Arriving);
    queue.add_class(nested(netem(delay, "child"))).expect("any flow");
    queue
        .add_class(Class { flow: FlowConfig { band: 1, ..FlowConfig::default() }, ..plain(ENOUGH) })
        .expect("any flow");
    let mut stand = Stand::new(Seed(1));
    for at in 0..5 {
        arrive(&mut queue, &mut stand, ms(at), 0);
        arrive(&mut queue, &mut stand, ms(at), 1);
        assert_eq!(dequeue(&mut queue, &mut stand, ms(at)), Some(1));
        assert_eq!(queue.dequeue(ms(at), &mut stand.context()), Dequeue::NotBefore(ms(10)));
    }
    for at in 10..15 {
        assert_eq!(dequeue(&mut queue, &mut stand, ms(at)), Some(0));
    }
    assert_eq!(queue.classes()[0].longest_wait, Duration::from_millis(10));
}

/// Half of all packets are duplicated, a fifth is lost, the limit is small; the class's counters and its backlog have it all.
#[test]
fn duplicates_of_a_netem_child_are_counted() {
    let share = |percent| Share::from_percent(percent).expect("a share");
    let child = Netem {
        delay: Duration::from_millis(3),
        duplication: Chance { share: share(50.0), ..Chance::NEVER },
        loss: narrows_core::netem::Loss::Random(Chance { share: share(20.0), ..Chance::NEVER }),
        corruption: Chance { share: share(10.0), ..Chance::NEVER },
        limit: 6,
        ..Netem::default()
    };
    let build = |tree: bool| {
        let inner: Box<dyn Queue> = if tree {
            let mut inner =
                Scheduled::new(Drr::new(Bytes::new(1500)), Classifier::One, ENOUGH, Overload::Arriving);
            inner.add_class(nested(netem(child.clone(), "twice inside"))).expect("any flow");
            Box::new(inner)
        } else {
            netem(child.clone(), "inside")
        };
        let mut queue = Scheduled::new(Priority::default(), Classifier::Mark(2), ENOUGH, Overload::Arriving);
        queue.add_class(nested(inner)).expect("any flow");
        queue.add_class(plain(ENOUGH)).expect("any flow");
        queue
    };
    for tree in [false, true] {
        let (mut queue, mut stand) = (build(tree), Stand::new(Seed(1)));
        let (mut sent, mut dropped) = (0, 0);
        for n in 0..2_000u64 {
            let now = Time::ZERO + Duration::from_micros(700 * n);
            arrive(&mut queue, &mut stand, now, 0);
            arrive(&mut queue, &mut stand, now, 1);
            while dequeue(&mut queue, &mut stand, now).is_some() {
                sent += 1;
            }
            while stand.dropped().is_some() {
                dropped += 1;
            }
            let [class, other] = queue.classes() else { panic!("two classes") };
            assert_eq!(other.arrived, other.sent);
            assert_eq!(
                class.arrived.packets,
                class.sent.packets + class.dropped.packets + queue.backlog().packets
            );
            assert_eq!(class.sent.packets + other.sent.packets, sent);
            assert_eq!(class.dropped.packets, dropped);
        }
        let class = queue.classes()[0];
        // Half of those that are not lost would be copied, 800; but some of them find no room.
        let copies = class.arrived.packets - 2_000;
        assert!((500..800).contains(&copies), "{copies}");
        assert!(class.dropped.packets > 150 && class.dropped.bytes == class.dropped.packets * 1000);
    }
}
