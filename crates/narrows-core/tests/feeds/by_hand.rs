//! One way, worked by hand.

use narrows_core::classify::Condition;
use narrows_core::model::{ByClass, Constant, DelayModel, Fed, FeedConfig, OnEmpty, PerByte};
use narrows_core::service::ConstantRate;
use narrows_core::{Duration, LinkConfig, Order, Rate, Target, Time};

use crate::stand::{Stand, fed};

const HOUR: i64 = 3_600_000_000_000;

#[test]
fn each_policy_of_an_empty_feed() {
    let cases = [
        (OnEmpty::Zero, [Some(50), None, Some(30), Some(3), Some(4), Some(5), Some(6), Some(7)]),
        (OnEmpty::Last, [Some(50), None, Some(30), Some(31), Some(32), Some(33), Some(34), Some(35)]),
        // Of 50, -1, 28 the first comes again, then the loss, then 28, then 50 and so on.
        (OnEmpty::Repeat, [Some(50), None, Some(30), Some(53), None, Some(33), Some(56), None]),
        (OnEmpty::Drop, [Some(50), None, Some(30), None, None, None, None, None]),
    ];
    for (policy, expected) in cases {
        let mut stand = Stand::new(Order::Allow, fed(policy, 10, None));
        assert_eq!(stand.feed(0, &[50, -1, 28]), 3);
        (0..8).for_each(|at| stand.send(at));
        assert_eq!(stand.left(), expected, "{policy:?}");
        let counters = stand.counters();
        assert_eq!((counters.taken, counters.used, counters.lost, counters.underruns), (3, 3, 1, 5));
    }
}

#[test]
fn a_fresh_value_begins_the_round_anew_and_a_round_is_as_long_as_the_lead() {
    let mut stand = Stand::new(Order::Allow, fed(OnEmpty::Repeat, 2, None));
    assert_eq!(stand.feed(0, &[100, 200, 300]), 2);
    stand.send(0);
    assert_eq!(stand.feed(1, &[300]), 1);
    (1..=5).for_each(|at| stand.send(at)); // 200, 300, then 200, 300, 200
    assert_eq!(stand.feed(6, &[400]), 1);
    (6..=9).for_each(|at| stand.send(at)); // 400, then 300, 400, 300
    let expected = [100, 201, 302, 203, 304, 205, 406, 307, 408, 309];
    assert_eq!(stand.left(), expected.map(Some));
}

#[test]
fn before_the_first_value_there_is_no_delay() {
    for policy in [OnEmpty::Zero, OnEmpty::Last, OnEmpty::Repeat] {
        let mut stand = Stand::new(Order::Allow, fed(policy, 10, None));
        stand.send(5);
        assert_eq!(stand.feed(5, &[70]), 1);
        stand.send(5);
        assert_eq!(stand.left(), [Some(5), Some(75)]);
    }
}

/// A transmission that ends at 8000 ns sees what was handed in before, not what is at that very instant; a packet that is
/// handed in at the instant of the values, behind them, sees them.
#[test]
fn a_value_is_seen_from_its_instant_on() {
    let stand = || {
        let mut link = LinkConfig::new("wire", Target::Port("b".into()));
        link.service = Box::new(ConstantRate(Rate::from_bits_per_second(100_000_000)));
        link.delay = Box::new(fed(OnEmpty::Drop, 10, None));
        Stand::of(link)
    };
    for (at, expected) in [(7_999, Some(8_500)), (8_000, None), (8_001, None)] {
        let mut stand = stand();
        stand.send(0);
        stand.feed(at, &[500]);
        assert_eq!(stand.left(), [expected], "fed at {at}");
    }
}

#[test]
fn what_is_impossible_is_clamped_and_counted() {
    let mut stand = Stand::new(Order::Allow, fed(OnEmpty::Drop, 10, None));
    assert_eq!(stand.feed(0, &[HOUR, HOUR + 1, i64::MAX, -2, i64::MIN, -1, 0]), 7);
    (0..7).for_each(|_| stand.send(0));
    let hour = Some(HOUR as u64);
    assert_eq!(stand.left(), [hour, hour, hour, Some(0), Some(0), None, Some(0)]);
    let counters = stand.counters();
    assert_eq!((counters.clamped, counters.lost, counters.underruns), (4, 1, 0));
}

#[test]
fn the_lead_is_bounded_and_the_rest_refused() {
    let mut stand = Stand::new(Order::Allow, fed(OnEmpty::Zero, 3, None));
    assert_eq!(stand.feed(0, &[1, 2]), 2);
    assert_eq!(stand.view().room, 1);
    assert_eq!(stand.feed(0, &[3, 4, 5]), 1);
    assert_eq!((stand.view().waiting, stand.view().room, stand.counters().refused), (3, 0, 2));
    stand.send(10);
    assert_eq!(stand.view().room, 1);
    assert_eq!(stand.feed(10, &[6, 7]), 1);
    (0..4).for_each(|_| stand.send(10));
    assert_eq!(stand.left(), [11, 12, 13, 16, 10].map(Some));
    // Another name is no feed of this link.
    assert_eq!(stand.feed_to(10, "g", &[1]), 0);
    assert_eq!(stand.counters().refused, 3);
}

/// Order is kept as for any delay.
#[test]
fn packets_are_held_back_to_keep_order() {
    let mut stand = Stand::new(Order::Keep, fed(OnEmpty::Zero, 10, None));
    stand.feed(0, &[100, 20, -1, 150]);
    [0, 10, 11, 12, 13].into_iter().for_each(|at| stand.send(at));
    assert_eq!(stand.left(), [Some(100), Some(100), None, Some(162), Some(162)]);
    assert_eq!(stand.engine.view(stand.link).counters()[0].delayed_to_keep_order, 2);
}

fn named(name: &str) -> Box<Fed> {
    Box::new(Fed::new(FeedConfig { on_empty: OnEmpty::Drop, ..FeedConfig::new(name) }))
}

fn by_length(long: Box<dyn DelayModel>, others: Box<dyn DelayModel>) -> ByClass {
    let condition = Condition { lengths: Some(1_000..=u32::MAX), ..Condition::default() };
    ByClass::new(vec![(condition, long)], others)
}

#[test]
fn classes_have_feeds_of_their_own_and_a_part_by_length_is_added() {
    let long = PerByte::new(named("long"), 2_000);
    let mut stand = Stand::new(Order::Allow, by_length(Box::new(long), named("short")));
    assert_eq!((stand.feed_to(0, "short", &[1, 2, 3]), stand.feed_to(0, "long", &[50, 60])), (3, 2));
    for length in [100, 1_000, 200, 1_500, 999, 1_000] {
        stand.send_long(0, length);
    }
    assert_eq!(stand.left(), [Some(1), Some(2_050), Some(2), Some(3_060), Some(3), None]);
    let view = stand.engine.view(stand.link);
    let feeds: Vec<_> = view.feeds().iter().map(|f| (f.config.name.clone(), f.counters.used)).collect();
    assert_eq!(feeds, [("long".into(), 2), ("short".into(), 3)]);
}

#[test]
fn values_outlive_a_change_of_the_model_under_their_names() {
    let mut stand = Stand::new(Order::Allow, by_length(named("long"), named("short")));
    stand.feed_to(0, "long", &[10, 20, 30]);
    stand.feed_to(0, "short", &[1, 2, 3]);
    stand.send_long(0, 1_500);
    stand.send(0);
    // They change places, one with another policy and no more room than two; what it holds stays.
    let config = FeedConfig { on_empty: OnEmpty::Last, lead: 1, ..FeedConfig::new("short") };
    stand.change(100, by_length(Box::new(Fed::new(config)), named("long")));
    let view = stand.engine.view(stand.link);
    assert_eq!(view.feeds().iter().find(|feed| feed.config.name == "short").map(|feed| feed.room), Some(0));
    (0..3).for_each(|_| stand.send_long(100, 1_500));
    stand.send(100);
    // Gone for a while, a feed is forgotten.
    stand.change(200, Constant(Duration::from_nanos(7)));
    stand.send(200);
    stand.change(300, *named("long"));
    stand.send(300);
    let left = stand.left();
    assert_eq!(
        left,
        [10, 1, 102, 103, 103, 120, 207].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
    );
    assert_eq!(stand.counters().taken, 0);
    assert_eq!(stand.engine.now(), Time::from_nanos(u64::MAX / 2));
}
