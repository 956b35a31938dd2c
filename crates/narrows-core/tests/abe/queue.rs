//! As a link's queue: its bound is that of the virtual queue, and what another queue held comes over.

use narrows_core::classify::{Classifier, Condition};
use narrows_core::queue::{Bound, Dequeue, DropAt, Fifo, Queue, Stand, Wire};
use narrows_core::sched::{Abe, AbeConfig, Class, FlowConfig, Overload, Scheduled, Store};
use narrows_core::service::Overhead;
use narrows_core::{DropReason, FlowKey, PacketRef, Protocol, Rate, Seed, Time};

const EF: u8 = 46 << 2;

fn queue(bound: Bound) -> Scheduled<Abe> {
    let green = Condition { dscps: Some(1 << 46), ..Condition::default() };
    let rules = Classifier::Rules { rules: vec![(green, 0)], default: Some(1) };
    let mut queue = Scheduled::new(Abe::new(AbeConfig::default()), rules, bound, Overload::Scheduler);
    for _ in 0..2 {
        let (flow, bound) = (FlowConfig::default(), Bound::Packets(u64::MAX));
        queue
            .add_class(Class { flow, bound, drop_at: DropAt::Tail, store: Store::Plain })
            .expect("two classes");
    }
    // A kilobyte a millisecond.
    let rate = Rate::from_bits_per_second(8_000_000);
    queue.set_wire(Time::ZERO, Wire { rate, overhead: Overhead::IP });
    queue
}

fn ms(at: u64) -> Time {
    Time::from_nanos(at * 1_000_000)
}

fn enqueue(queue: &mut dyn Queue, stand: &mut Stand, at: Time, traffic_class: u8) -> PacketRef {
    let packet =
        stand.insert(at, FlowKey { traffic_class, network: Protocol::Ipv4, ..FlowKey::default() }, 1000);
    queue.enqueue(at, packet, &mut stand.context());
    packet
}

fn send(queue: &mut dyn Queue, stand: &mut Stand, at: Time) -> Option<PacketRef> {
    match queue.dequeue(at, &mut stand.context()) {
        Dequeue::Packet(packet) => Some(packet),
        Dequeue::Empty => None,
        other => panic!("{other:?}: it is work-conserving"),
    }
}

#[test]
fn the_bound_is_that_of_the_virtual_queue() {
    let (mut queue, mut stand) = (queue(Bound::Packets(2)), Stand::new(Seed(1)));
    let first = enqueue(&mut queue, &mut stand, ms(0), 0);
    assert_eq!(send(&mut queue, &mut stand, ms(0)), Some(first));
    let waiting = [0, EF].map(|class| enqueue(&mut queue, &mut stand, ms(0), class));
    // Two wait behind the first. A third one of either colour is one too many.
    for class in [0, EF] {
        let refused = enqueue(&mut queue, &mut stand, ms(0), class);
        assert_eq!(stand.dropped(), Some((refused, DropReason::QueueFull)));
    }
    queue.set_bound(Bound::Packets(3));
    let third = enqueue(&mut queue, &mut stand, ms(0), 0);
    assert_eq!((stand.dropped(), queue.backlog().packets), (None, 3));
    let order = [1, 2, 3].map(|at| send(&mut queue, &mut stand, ms(at)));
    assert_eq!(order, [Some(waiting[0]), Some(waiting[1]), Some(third)]);
}

#[test]
fn what_another_queue_held_keeps_its_age() {
    let (mut queue, mut stand) = (queue(Bound::Packets(9)), Stand::new(Seed(1)));
    let mut before = Fifo::new(Bound::Packets(9), DropAt::Tail);
    let held = [EF, 0, EF].map(|class| enqueue(&mut before, &mut stand, ms(0), class));
    let all = before.take_all(stand.context().pool);
    queue.adopt(ms(19), all, &mut stand.context());
    // Both green ones may wait for another millisecond, so the first goes at 19 ms, blue at 20, and the other is late.
    assert_eq!(send(&mut queue, &mut stand, ms(19)), Some(held[0]));
    assert_eq!(send(&mut queue, &mut stand, ms(20)), Some(held[1]));
    assert_eq!(send(&mut queue, &mut stand, ms(21)), None);
    assert_eq!(stand.dropped(), Some((held[2], DropReason::TooLate)));
    assert_eq!(queue.backlog().packets, 0);
}
