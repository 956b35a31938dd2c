//! A fed delay line as the queue of a class, worked by hand.

use narrows_core::classify::{Classifier, Condition};
use narrows_core::model::{FeedConfig, OnEmpty};
use narrows_core::queue::{Bound, DropAt, Queue};
use narrows_core::sched::{Class, FlowConfig, Overload, Priority, Scheduled, Store};
use narrows_core::service::ConstantRate;
use narrows_core::{Change, DelayQueue, LinkConfig, Order, Rate, Seed, Target, Time};

use crate::stand::{Stand, fed};

/// Packets longer than 100 bytes go first; the others wait in a fed delay line of this kind.
fn bands(order: Order, on_empty: OnEmpty, limit: u64) -> Box<dyn Queue> {
    let long = Condition { lengths: Some(101..=u32::MAX), ..Condition::default() };
    let rules = vec![(long, 0)];
    let classifier = Classifier::Rules { rules, default: Some(1) };
    let enough = Bound::Packets(u64::MAX);
    let mut queue = Scheduled::new(Priority::default(), classifier, enough, Overload::Arriving);
    let line = DelayQueue::new(
        Box::new(fed(on_empty, 10, None)),
        order,
        Bound::Packets(limit),
        Seed(1),
        "wire/delayed",
    );
    for (band, store) in (0..).zip([Store::Plain, Store::Queue(Box::new(line))]) {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        queue.add_class(Class { flow, bound: enough, drop_at: DropAt::Tail, store }).expect("any flow");
    }
    Box::new(queue)
}

/// A link of 8 bits a nanosecond, so that a packet of 100 bytes takes 100 ns.
fn stand(queue: Box<dyn Queue>) -> Stand {
    let mut link = LinkConfig::new("wire", Target::Port("b".into()));
    link.service = Box::new(ConstantRate(Rate::from_bits_per_second(8_000_000_000)));
    link.queue = queue;
    Stand::of(link)
}

#[test]
fn each_packet_of_the_class_takes_the_next_delay_and_holds_up_no_other() {
    let mut stand = stand(bands(Order::Keep, OnEmpty::Drop, 10));
    assert_eq!(stand.feed(0, &[1_000, -1, 50]), 3);
    stand.send(0); // due at 1000
    stand.send(10); // lost
    stand.send_long(20, 200); // of the other band
    stand.send(30); // due at 80, and behind the first
    stand.send(40); // no value: dropped
    assert_eq!(stand.left(), [Some(1_100), None, Some(220), Some(1_200), None]);
    let counters = stand.counters();
    assert_eq!((counters.taken, counters.used, counters.lost, counters.underruns), (3, 3, 1, 1));
}

#[test]
fn without_order_the_earliest_due_goes_first_and_the_bound_counts_all() {
    let mut stand = stand(bands(Order::Allow, OnEmpty::Zero, 2));
    assert_eq!(stand.feed(0, &[1_000, 50, 7]), 3);
    stand.send(0);
    stand.send(10); // due at 60
    stand.send(20); // the line is full, so it takes no delay
    stand.send(170); // due at 177
    assert_eq!(stand.left(), [Some(1_100), Some(160), None, Some(277)]);
    assert_eq!(stand.counters().used, 3);
}

#[test]
fn a_queue_that_replaces_another_keeps_the_values_of_its_feed() {
    let mut stand = stand(bands(Order::Keep, OnEmpty::Drop, 10));
    assert_eq!(stand.feed(0, &[100, 300]), 2);
    stand.send(0);
    let other = bands(Order::Keep, OnEmpty::Last, 5);
    stand.engine.change(Time::from_nanos(500), stand.link, Change::Queue(other));
    stand.send(1_000); // 300, from the queue before
    stand.send(2_000); // the last one again
    assert_eq!(stand.left(), [Some(200), Some(1_400), Some(2_400)]);
    let view = stand.view();
    assert_eq!(
        (view.config, view.room),
        (&FeedConfig { on_empty: OnEmpty::Last, lead: 10, ..FeedConfig::new("f") }, 10)
    );
    assert_eq!((view.counters.taken, view.counters.used, view.counters.underruns), (2, 2, 1));
}
