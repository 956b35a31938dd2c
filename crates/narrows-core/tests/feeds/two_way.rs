//! Questions and answers, worked by hand.

use narrows_core::classify::Condition;
use narrows_core::model::{ByClass, Constant, Fed, FeedConfig, OnEmpty};
use narrows_core::{Change, Duration, LinkSettings, Order, Time};

use crate::stand::{Stand, fed};

fn asking(order: Order, on_empty: OnEmpty, patience: u64) -> Stand {
    Stand::new(order, fed(on_empty, 100, Some(patience)))
}

#[test]
fn an_answer_counts_from_the_question_but_works_from_its_own_instant() {
    let mut stand = asking(Order::Allow, OnEmpty::Drop, 1_000);
    [0, 0, 0].into_iter().for_each(|at| stand.send(at));
    assert_eq!(stand.feed(100, &[500, 30]), 2);
    assert_eq!(stand.feed(200, &[-1]), 1);
    assert_eq!(stand.left(), [Some(500), Some(100), None]);
    let counters = stand.counters();
    assert_eq!((counters.asked, counters.taken, counters.used, counters.lost), (3, 3, 3, 1));
}

#[test]
fn patience_runs_out_and_the_late_answer_is_thrown_away() {
    let mut stand = asking(Order::Allow, OnEmpty::Last, 1_000);
    stand.send(0);
    assert_eq!(stand.feed(10, &[300]), 1);
    stand.send(100);
    stand.send(400);
    assert_eq!((stand.view().open, stand.view().room), (2, 2));
    // At 1100 the second one gets the last delay, 300, which is over: it is due at once. The answer at that very instant is
    // late, the one behind it is for the third.
    assert_eq!(stand.feed(1_100, &[77, 900]), 2);
    stand.send(1_200);
    assert_eq!(stand.left(), [Some(300), Some(1_100), Some(1_300), Some(2_200)]);
    let counters = stand.counters();
    assert_eq!((counters.asked, counters.used, counters.late, counters.underruns), (4, 2, 1, 2));
    // One answer is still to come, and nothing beyond.
    assert_eq!(stand.feed(3_000_000, &[1, 1, 1]), 1);
    assert_eq!((stand.counters().late, stand.counters().refused), (2, 2));
}

#[test]
fn where_order_is_kept_all_wait_for_the_first() {
    let mut stand = asking(Order::Keep, OnEmpty::Zero, 1_000);
    [0, 10, 20, 30].into_iter().for_each(|at| stand.send(at));
    assert_eq!(stand.engine.view(stand.link).in_flight(), 4);
    // The first is known to be long; the second would be short, and is held back; the third is lost; the fourth gets
    // no answer, and is held back by nobody.
    assert_eq!(stand.feed(50, &[600, 5, -1]), 3);
    assert_eq!(stand.left(), [Some(600), Some(600), None, Some(1_030)]);
    assert_eq!(stand.engine.view(stand.link).counters()[0].delayed_to_keep_order, 1);
}

/// Packets of another class know their delay at once, but not whether the one in front of them will hold them back.
#[test]
fn packets_behind_one_that_waits_are_held_back_with_it() {
    let rules = || {
        let condition = Condition { lengths: Some(1_000..=u32::MAX), ..Condition::default() };
        let long = Box::new(fed(OnEmpty::Drop, 100, Some(1_000)));
        ByClass::new(vec![(condition, long as _)], Box::new(Constant(Duration::from_nanos(40))))
    };
    for (order, expected) in [
        // The third is due at 50, but only at 300 is it known that the second will not hold it back longer.
        (Order::Keep, [Some(40), None, Some(300), Some(500), None, Some(1_600)]),
        (Order::Allow, [Some(40), None, Some(50), Some(500), None, Some(640)]),
    ] {
        let mut stand = Stand::new(order, rules());
        for (at, length) in [(0, 100), (0, 1_500), (10, 100), (20, 1_500)] {
            stand.send_long(at, length);
        }
        // The first long one is lost at 300, the other due at 500.
        assert_eq!(stand.feed(300, &[-1, 480]), 2);
        stand.send_long(600, 1_500);
        stand.send_long(600, 100);
        assert_eq!(stand.left(), expected, "{order:?}");
    }
}

#[test]
fn questions_tell_what_is_asked_and_their_number_is_bounded() {
    let mut stand = Stand::new(Order::Allow, fed(OnEmpty::Zero, 2, Some(1_000)));
    stand.send_long(5, 100);
    stand.send_long(6, 200);
    stand.send_long(7, 300);
    let tell = |stand: &mut Stand| -> Vec<_> {
        let link = stand.link;
        let questions = stand.questions().into_iter();
        questions
            .inspect(|q| assert_eq!((q.link, q.feed), (link, 0)))
            .map(|q| (q.number, q.at.nanos(), q.length))
            .collect()
    };
    assert_eq!(tell(&mut stand), [(0, 5, 100), (1, 6, 200)]);
    assert_eq!(tell(&mut stand), []);
    assert_eq!(stand.counters().untold, 1);
    stand.send_long(8, 400);
    assert_eq!(tell(&mut stand), [(3, 8, 400)]);
    // All four need answers, told or not.
    assert_eq!(stand.feed(10, &[10, 20, 30, 40, 50]), 4);
    assert_eq!(stand.left(), [Some(15), Some(26), Some(37), Some(48)]);
}

#[test]
fn questions_outlive_a_change_where_the_feed_goes_on_being_asked_and_are_decided_where_not() {
    let mut stand = asking(Order::Allow, OnEmpty::Drop, 1_000);
    [0, 1, 2].into_iter().for_each(|at| stand.send(at));
    // The same feed, more patient for new questions only.
    stand.change(10, fed(OnEmpty::Last, 100, Some(5_000)));
    assert_eq!(stand.feed(20, &[100]), 1);
    stand.send(30);
    // The second has run out of patience at 1001, the third at 1002; both get the last delay, 100. The fourth waits on.
    assert_eq!(stand.feed(2_000, &[1, 2, 4_000]), 3);
    stand.send(2_000);
    // Nobody will answer the fifth: it gets the last delay, which is 4000 now.
    stand.change(2_500, Constant(Duration::from_nanos(3)));
    stand.send(2_500);
    assert!(stand.questions().len() < 5, "questions to a feed that is gone are gone");
    assert_eq!(stand.left(), [100, 1_001, 1_002, 4_030, 6_000, 2_503].map(Some));

    // From two-way to one-way and back: open questions are decided, values that wait are thrown away.
    let mut stand = asking(Order::Allow, OnEmpty::Zero, 1_000);
    stand.send(0);
    stand.change(10, fed(OnEmpty::Zero, 100, None));
    assert_eq!(stand.feed(20, &[70, 80]), 2);
    stand.send(30);
    stand.change(40, fed(OnEmpty::Zero, 100, Some(1_000)));
    stand.send(50);
    assert_eq!(stand.feed(60, &[9]), 1);
    assert_eq!(stand.left(), [Some(10), Some(100), Some(60)]);
    let counters = stand.counters();
    assert_eq!((counters.taken, counters.used, counters.discarded, counters.underruns), (3, 2, 1, 1));
}

/// Two feeds are asked in one link; each has its own answers, and order is that of the packets.
#[test]
fn two_feeds_of_a_link_are_asked_independently() {
    let named = |name: &str, patience| {
        let ask = Some(Duration::from_nanos(patience));
        Box::new(Fed::new(FeedConfig { on_empty: OnEmpty::Drop, ask, ..FeedConfig::new(name) }))
    };
    let condition = Condition { lengths: Some(1_000..=u32::MAX), ..Condition::default() };
    let classes = ByClass::new(vec![(condition, named("long", 500) as _)], named("short", 2_000));
    let mut stand = Stand::new(Order::Keep, classes);
    for (at, length) in [(0, 1_500), (1, 100), (2, 1_500), (3, 100)] {
        stand.send_long(at, length);
    }
    let numbers: Vec<_> = stand.questions().iter().map(|q| (q.feed, q.number)).collect();
    assert_eq!(numbers, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    assert_eq!(stand.feed_to(100, "short", &[10, 20]), 2);
    assert_eq!(stand.feed_to(200, "long", &[30]), 1);
    // The first goes at 200, and the second with it; the third runs out of patience at 502 and is lost, which lets the
    // fourth go.
    assert_eq!(stand.left(), [Some(200), Some(200), None, Some(502)]);
}

/// Nobody can answer the second feed of a name; a change of the model decides its questions and loses none.
#[test]
fn of_two_feeds_of_one_name_the_first_goes_on_and_the_questions_to_the_other_are_decided() {
    let both = |second| {
        let condition = Condition { lengths: Some(1_000..=u32::MAX), ..Condition::default() };
        let first = Box::new(fed(OnEmpty::Drop, 100, Some(1_000)));
        ByClass::new(vec![(condition, first as _)], Box::new(fed(OnEmpty::Drop, 100, second)))
    };
    for order in [Order::Keep, Order::Allow] {
        for second in [Some(1_000), None] {
            let mut stand = Stand::new(order, both(Some(1_000)));
            stand.send_long(0, 1_500);
            stand.send_long(1, 100);
            stand.send_long(2, 1_500);
            stand.change(10, both(second));
            let open: Vec<_> = stand.engine.view(stand.link).feeds().iter().map(|feed| feed.open).collect();
            assert_eq!(open, [2, 0]);
            let asked: Vec<_> =
                stand.questions().iter().map(|question| (question.feed, question.number)).collect();
            assert_eq!(asked, [(0, 0), (0, 1)]);
            assert_eq!(stand.feed(20, &[100, 200, 300]), 2);
            let counters: Vec<_> =
                stand.engine.view(stand.link).feeds().iter().map(|feed| feed.counters.taken).collect();
            assert_eq!(counters, [2, 0], "only the first goes on");
            assert_eq!(stand.left(), [Some(100), None, Some(202)]);
        }
    }
}

/// Packets that may overtake go past questions that stay open, many of them; each of those still gets its own answer, and
/// a packet that keeps order waits for all that entered before it.
#[test]
fn open_questions_keep_their_places_while_others_go_past() {
    let named = |name: &str, patience| {
        let ask = Some(Duration::from_nanos(patience));
        Box::new(Fed::new(FeedConfig { on_empty: OnEmpty::Drop, lead: 1_000, ask, ..FeedConfig::new(name) }))
    };
    let condition = Condition { lengths: Some(1_000..=u32::MAX), ..Condition::default() };
    let classes = ByClass::new(vec![(condition, named("long", 1_000_000) as _)], named("short", 50));
    let mut stand = Stand::new(Order::Allow, classes);
    let order = |stand: &mut Stand, at, order| {
        stand.engine.change(
            Time::from_nanos(at),
            stand.link,
            Change::Settings(LinkSettings { order, ..LinkSettings::default() }),
        );
    };
    let mut expected = Vec::new();
    for at in 0..1_000 {
        if at % 100 == 0 {
            stand.send_long(at, 1_500);
            expected.push(Some(50_000 + at + at / 100));
        }
        if at == 500 {
            order(&mut stand, at, Order::Keep);
            stand.send(at);
            assert_eq!(stand.feed_to(at, "short", &[9]), 1);
            // Held back with the last one before it that is open.
            expected.push(Some(50_505));
            order(&mut stand, at, Order::Allow);
        }
        stand.send(at);
        let is_lost = at % 3 == 0;
        assert_eq!(stand.feed_to(at, "short", &[if is_lost { -1 } else { 9 }]), 1);
        expected.push((!is_lost).then_some(at + 9));
    }
    assert_eq!(stand.engine.view(stand.link).feeds().iter().map(|feed| feed.open).sum::<u64>(), 10);
    let answers: Vec<i64> = (50_000..50_010).collect();
    assert_eq!(stand.feed_to(2_000, "long", &answers), 10);
    assert_eq!(stand.left(), expected);
}

/// A change to keeping order, or from it, is for packets that enter later.
#[test]
fn a_change_of_order_is_for_packets_to_come() {
    let mut stand = asking(Order::Allow, OnEmpty::Drop, 10_000);
    let order = |stand: &mut Stand, at, order| {
        stand.engine.change(
            Time::from_nanos(at),
            stand.link,
            Change::Settings(LinkSettings { order, ..LinkSettings::default() }),
        );
    };
    stand.send(0);
    stand.send(1);
    order(&mut stand, 2, Order::Keep);
    stand.send(3);
    order(&mut stand, 4, Order::Allow);
    stand.send(5);
    assert_eq!(stand.feed(100, &[900, 200, 10, 10]), 4);
    // The second may overtake the first; the third may not overtake anybody; the fourth may.
    assert_eq!(stand.left(), [Some(900), Some(201), Some(900), Some(100)]);
}
