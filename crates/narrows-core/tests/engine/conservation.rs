//! What comes in leaves or is inside, at every instant, and each body comes back exactly once.

use std::collections::BTreeMap;

use narrows_core::{DropReason, Element, Engine, Tally, Time, Verdict};
use proptest::prelude::*;

use crate::drive::{END, Record, Run};
use crate::plan::What;
use crate::random::plan_and_inputs;

/// Per lane: arrived + duplicated = left + dropped + inside, and what is inside is where it can be seen; the same for
/// the network.
fn check_counts(engine: &Engine<u64>) -> Result<(), TestCaseError> {
    let (mut made, mut gone) = (0, 0);
    for link in engine.links() {
        let view = engine.view(link);
        let inside: u64 = view.counters().iter().map(|lane| lane.inside()).sum();
        let seen = view.backlog().packets + u64::from(view.is_transmitting()) + view.in_flight();
        prop_assert_eq!(inside, seen, "link {}", view.name());
        made += view.counters().iter().map(|lane| lane.duplicated.packets).sum::<u64>();
        gone += view.counters().iter().map(|lane| lane.dropped_in_all().packets).sum::<u64>();
    }
    for port in engine.ports() {
        let port = engine.port_counters(port);
        made += port.arrived.packets;
        gone += port.delivered.packets + port.refused.packets;
    }
    prop_assert_eq!(made, gone + engine.inside());
    Ok(())
}

/// When nothing is inside, the bytes add up as well as the packets.
fn check_bytes(engine: &Engine<u64>) -> Result<(), TestCaseError> {
    for link in engine.links() {
        for lane in &*engine.view(link).counters() {
            prop_assert_eq!(lane.inside(), 0);
            let (came, went) =
                (lane.arrived.bytes + lane.duplicated.bytes, lane.left.bytes + lane.dropped_in_all().bytes);
            prop_assert_eq!(came, went, "{:?}", lane);
        }
    }
    Ok(())
}

/// The counters say what the events say, verdict by verdict and reason by reason.
fn check_verdicts(engine: &Engine<u64>, records: &[Record]) -> Result<(), TestCaseError> {
    let mut events: BTreeMap<String, Tally> = BTreeMap::new();
    for record in records {
        let tally = events.entry(format!("{:?}", record.verdict)).or_default();
        tally.packets += 1;
        tally.bytes += u64::from(record.length);
    }
    let mut counted: BTreeMap<String, Tally> = BTreeMap::new();
    let mut count = |verdict: Verdict, tally: Tally| {
        let sum = counted.entry(format!("{verdict:?}")).or_default();
        sum.packets += tally.packets;
        sum.bytes += tally.bytes;
    };
    for port in engine.ports() {
        count(Verdict::Delivered(port), engine.port_counters(port).delivered);
        let reason = DropReason::Memory;
        count(Verdict::Dropped { at: None, reason }, engine.port_counters(port).refused);
    }
    for id in engine.links() {
        for lane in &*engine.view(id).counters() {
            for reason in DropReason::ALL {
                count(Verdict::Dropped { at: Some(Element::Link(id)), reason }, lane.dropped(reason));
            }
        }
    }
    counted.retain(|_, tally| tally.packets > 0);
    prop_assert_eq!(events, counted);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_made_or_lost_at_any_instant((plan, inputs) in plan_and_inputs()) {
        let mut run = Run::new(&plan);
        for input in &inputs {
            while let Some(at) = run.engine.next_event()
                && at <= input.at
            {
                run.poll(at, 1);
                check_counts(&run.engine)?;
            }
            run.input(input);
            check_counts(&run.engine)?;
        }
        run.poll_at_each_event(END);
        check_counts(&run.engine)?;
        prop_assert_eq!(run.engine.inside(), 0, "the last inputs let every packet out");
        check_bytes(&run.engine)?;
        check_verdicts(&run.engine, &run.records)?;

        let handed_in = inputs.iter().filter(|input| matches!(input.what, What::Packet(_))).count();
        let mut returned: Vec<u64> = run.records.iter().filter(|r| r.last).map(|r| r.body).collect();
        returned.sort_unstable();
        prop_assert_eq!(returned, (0..handed_in as u64).collect::<Vec<_>>(), "each body once");

        let mut last = Time::ZERO;
        for record in &run.records {
            prop_assert!(record.at >= last, "events are in the order of their instants");
            last = record.at;
            // A flipped bit lies in the packet as it leaves.
            prop_assert!(record.flips.iter().all(|&bit| bit < 8 * record.length), "{:?}", record);
        }
        let mut copies: Vec<_> = run.records.iter().map(|r| (r.id, r.copy)).collect();
        copies.sort_unstable();
        copies.dedup();
        prop_assert_eq!(copies.len(), run.records.len(), "each copy has one verdict");
    }

    /// From one input to the next, at every instant at which something happens.
    #[test]
    fn nothing_is_delivered_before_the_instant_that_was_told((plan, inputs) in plan_and_inputs()) {
        let mut run = Run::new(&plan);
        let untils = inputs.iter().map(Some).chain([None]);
        for input in untils {
            let until = input.map_or(END, |input| input.at);
            let mut told = Time::ZERO;
            while let Some(at) = run.engine.next_event() {
                let next = run.engine.next_delivery().expect("there is an event");
                prop_assert!(next >= at, "{} before the next event, {}", next, at);
                told = told.max(next);
                if at > until {
                    break;
                }
                let before = run.records.len();
                run.poll(at, 1);
                let early = |record: &&Record| record.delivered() && record.at < told;
                prop_assert_eq!(run.records[before..].iter().find(early), None, "told {}", told);
            }
            prop_assert_eq!(run.engine.next_event().is_none(), run.engine.next_delivery().is_none());
            if let Some(input) = input {
                run.input(input);
            }
        }
    }
}
