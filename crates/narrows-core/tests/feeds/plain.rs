//! Against a plain model of the rules, over random packets and values.

use std::collections::VecDeque;

use narrows_core::Order;
use narrows_core::model::OnEmpty;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::stand::{Stand, fed};

#[derive(Clone, Debug)]
enum Input {
    Packet,
    Values(Vec<i64>),
}

/// What a feed says, by the words of its documentation.
struct Plain {
    on_empty: OnEmpty,
    lead: usize,
    used: Vec<i64>,
    repeated: usize,
}

impl Plain {
    /// The delay of the next packet, or nothing where it is lost.
    fn decide(&mut self, value: Option<i64>) -> Option<u64> {
        match (value, self.on_empty) {
            (Some(value), _) => {
                self.used.push(value);
                self.repeated = 0;
                u64::try_from(value).ok()
            }
            (None, OnEmpty::Zero) => Some(0),
            (None, OnEmpty::Last) => {
                Some(self.used.iter().rev().find(|&&value| value >= 0).map_or(0, |&value| value as u64))
            }
            (None, OnEmpty::Drop) => None,
            (None, OnEmpty::Repeat) => {
                let kept = &self.used[self.used.len().saturating_sub(self.lead)..];
                if kept.is_empty() {
                    return Some(0);
                }
                let value = kept[self.repeated % kept.len()];
                self.repeated += 1;
                u64::try_from(value).ok()
            }
        }
    }
}

/// One way: when each packet leaves, and how many values were taken each time.
fn one_way(inputs: &[(u64, Input)], mut plain: Plain, order: Order) -> (Vec<Option<u64>>, Vec<usize>) {
    let (mut waiting, mut left, mut taken) = (VecDeque::new(), Vec::new(), Vec::new());
    for (at, input) in inputs {
        match input {
            Input::Values(values) => {
                let room = values.len().min(plain.lead - waiting.len());
                waiting.extend(&values[..room]);
                taken.push(room);
            }
            Input::Packet => left.push((*at, plain.decide(waiting.pop_front()).map(|delay| at + delay))),
        }
    }
    (in_order(left, order), taken)
}

/// Two-way, decision by decision.
fn two_way(
    inputs: &[(u64, Input)],
    mut plain: Plain,
    order: Order,
    patience: u64,
) -> (Vec<Option<u64>>, Vec<usize>) {
    let (mut open, mut owed) = (VecDeque::new(), 0);
    // When it was decided, and when it is due but for the order.
    let (mut decided, mut taken) = (Vec::new(), Vec::new());
    let end = (u64::MAX / 4, Input::Values(Vec::new()));
    for (at, input) in inputs.iter().chain([&end]) {
        while let Some(asked) = open.front().copied().filter(|asked| asked + patience <= *at) {
            open.pop_front();
            owed += 1;
            let given_up = asked + patience;
            decided.push((given_up, plain.decide(None).map(|delay| (asked + delay).max(given_up))));
        }
        match input {
            Input::Packet => open.push_back(*at),
            Input::Values(values) => {
                let mut count = 0;
                for &value in values {
                    if owed > 0 {
                        owed -= 1;
                    } else if let Some(asked) = open.pop_front() {
                        let due = plain.decide(Some(value)).map(|delay| (asked + delay).max(*at));
                        decided.push((*at, due));
                    } else {
                        break;
                    }
                    count += 1;
                }
                taken.push(count);
            }
        }
    }
    taken.pop();
    (in_order(decided, order), taken)
}

/// Where order is kept, no packet leaves before those that came before it, nor before it is known whether these do.
fn in_order(decided: Vec<(u64, Option<u64>)>, order: Order) -> Vec<Option<u64>> {
    let mut floor = 0;
    let keep = |(at, due): (u64, Option<u64>)| {
        floor = floor.max(at).max(due.unwrap_or(0));
        due.map(|_| floor)
    };
    match order {
        Order::Keep => decided.into_iter().map(keep).collect(),
        Order::Allow => decided.into_iter().map(|(_, due)| due).collect(),
    }
}

fn inputs() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let gap = prop_oneof![2 => Just(0u64), 2 => 1u64..20, 1 => 20u64..2_000];
    let value = prop_oneof![2 => Just(-1i64), 3 => 0i64..50, 3 => 0i64..3_000];
    let input = prop_oneof![5 => Just(Input::Packet), 3 => vec(value, 0..6).prop_map(Input::Values)];
    vec((gap, input), 1..120).prop_map(|inputs| {
        let mut at = 0;
        inputs
            .into_iter()
            .map(|(gap, input)| {
                at += gap;
                (at, input)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_gets_what_the_rules_say(
        inputs in inputs(),
        on_empty in prop_oneof![
            Just(OnEmpty::Zero), Just(OnEmpty::Last), Just(OnEmpty::Repeat), Just(OnEmpty::Drop)
        ],
        lead in 1usize..8,
        order in prop_oneof![Just(Order::Keep), Just(Order::Allow)],
        patience in proptest::option::of(prop_oneof![Just(0u64), 1u64..30, 30u64..3_000]),
    ) {
        let plain = Plain { on_empty, lead, used: Vec::new(), repeated: 0 };
        let (expected, took) = match patience {
            None => one_way(&inputs, plain, order),
            Some(patience) => two_way(&inputs, plain, order, patience),
        };
        let mut stand = Stand::new(order, fed(on_empty, lead, patience));
        let mut taken = Vec::new();
        for (at, input) in &inputs {
            match input {
                Input::Packet => stand.send(*at),
                Input::Values(values) => taken.push(stand.feed(*at, values)),
            }
            // What is inside is where it can be seen.
            let view = stand.engine.view(stand.link);
            prop_assert_eq!(view.counters()[0].inside(), view.in_flight());
        }
        prop_assert_eq!(taken, took);
        prop_assert_eq!(stand.left(), expected);
        let feed = stand.view();
        let counted = feed.counters;
        prop_assert_eq!(counted.taken, counted.used + counted.late + counted.discarded + feed.waiting);
    }
}
