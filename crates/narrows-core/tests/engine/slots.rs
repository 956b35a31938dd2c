//! Slots at the end of the delay line, against a model that goes from packet to packet.

use narrows_core::{Duration, Seed, Stream, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Run};
use crate::plan::{ChangePlan, DelayPlan, Input, LinkPlan, PacketPlan, Plan, SlotsPlan, What};

const SEED: u64 = 6;

/// When each packet leaves that is due then, with so many bytes, in order.
fn model(slots: SlotsPlan, due: &[(u64, u64)]) -> Vec<u64> {
    let most = |limit: u64| if limit == 0 { u64::MAX } else { limit };
    let stream = Stream::new(Seed(SEED), "l", "slots");
    let (least, width) = (slots.gap.0.nanos(), (slots.gap.1 - slots.gap.0).nanos() + 1);
    let mut asked = 0;
    let mut ask = |at: u64| {
        asked += 1;
        at + least + stream.nth(asked - 1).below(width)
    };
    let mut newest: Option<(u64, u64, u64)> = None;
    let leave = |&(due, bytes): &(u64, u64)| {
        let fresh = |opens| (opens, most(slots.packets), most(slots.bytes));
        let (opens, packets, left) =
            newest.filter(|newest| newest.0 >= due).unwrap_or_else(|| fresh(ask(due)));
        newest = Some(match (packets - 1, left.saturating_sub(bytes)) {
            (0, _) | (_, 0) => fresh(ask(opens)),
            (packets, left) => (opens, packets, left),
        });
        opens
    };
    due.iter().map(leave).collect()
}

fn packet(length: u32) -> What {
    What::Packet(PacketPlan { port: 0, length, network: narrows_core::Protocol::Other })
}

fn slots() -> impl Strategy<Value = SlotsPlan> {
    let gap = || prop_oneof![Just(0u64), 1u64..100, 1_000u64..3_000_000].prop_map(Duration::from_nanos);
    (gap(), gap(), 0u64..5, prop_oneof![Just(0), 1u64..4_000]).prop_map(|(a, b, packets, bytes)| SlotsPlan {
        gap: (a.min(b), a.max(b)),
        packets,
        bytes,
    })
}

proptest! {
    #[test]
    fn packets_leave_in_the_slots_that_the_model_gives_them(
        slots in slots(),
        propagation in 0u64..5_000_000,
        packets in vec((prop_oneof![Just(0u64), 1u64..1_000_000], 20u32..1_500), 1..60),
    ) {
        let delay = DelayPlan::Constant(Duration::from_nanos(propagation));
        let link = LinkPlan { slots: Some(slots), delay, ..LinkPlan::new("l") };
        let mut run = Run::new(&Plan::chain(SEED, vec![link]));
        let (mut at, mut due) = (0, Vec::new());
        for (gap, length) in packets {
            at += gap;
            due.push((at + propagation, u64::from(length)));
            run.input(&Input { at: Time::from_nanos(at), what: packet(length) });
        }
        run.poll(END, usize::MAX);
        let left: Vec<u64> = run.records.iter().map(|record| record.at.nanos()).collect();
        prop_assert_eq!(left, model(slots, &due));
        prop_assert!(run.records.is_sorted_by_key(|record| record.body), "in order");
    }
}

/// A slot that was asked for keeps its instant when others come; without slots, what waits leaves at once.
#[test]
fn slots_change_while_packets_wait() {
    let every = |milliseconds, packets| SlotsPlan {
        gap: (Duration::from_millis(milliseconds), Duration::from_millis(milliseconds)),
        packets,
        bytes: 0,
    };
    let link = LinkPlan { slots: Some(every(10, 2)), ..LinkPlan::new("l") };
    let mut run = Run::new(&Plan::chain(SEED, vec![link]));
    let mut input = |milliseconds: u64, what| {
        run.input(&Input { at: Time::from_nanos(milliseconds * 1_000_000), what });
    };
    (0..5).for_each(|_| input(0, packet(100)));
    // The first slot opens at 10 with room for two, whatever comes; then one for three, which leaves one empty place.
    input(5, What::Change(0, ChangePlan::Slots(Some(every(4, 3)))));
    input(11, packet(100));
    input(13, packet(100));
    input(15, What::Change(0, ChangePlan::Slots(None)));
    input(16, packet(100));
    run.poll(END, usize::MAX);
    let left: Vec<u64> = run.records.iter().map(|record| record.at.nanos() / 1_000_000).collect();
    // Used up at 10: the next slot opens at 14 and takes three of the five that wait; then slots end.
    assert_eq!(left, [10, 10, 14, 14, 14, 15, 15, 16]);
}

/// Slots that were off are drawn on from where they were, not again from the first.
#[test]
fn slots_that_come_back_are_others() {
    let gap = (Duration::ZERO, Duration::from_millis(10));
    let slots = SlotsPlan { gap, packets: 1, bytes: 0 };
    let mut run = Run::new(&Plan::chain(SEED, vec![LinkPlan::new("l")]));
    let stream = Stream::new(Seed(SEED), "l", "slots");
    let (mut asked, mut expected) = (0, Vec::new());
    for round in 0..3u64 {
        let start = round * 1_000_000_000;
        let mut input = |what| run.input(&Input { at: Time::from_nanos(start), what });
        input(What::Change(0, ChangePlan::Slots(None)));
        input(What::Change(0, ChangePlan::Slots(Some(slots))));
        (0..6).for_each(|_| input(packet(100)));
        // One for each packet, and the last one uses up its slot, so that another is asked for.
        let mut leaves = start;
        for number in asked..asked + 6 {
            leaves += stream.nth(number).below(gap.1.nanos() + 1);
            expected.push(leaves);
        }
        asked += 7;
    }
    run.poll(END, usize::MAX);
    let left: Vec<u64> = run.records.iter().map(|record| record.at.nanos()).collect();
    assert_eq!(left, expected);
}
