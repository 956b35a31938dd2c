//! Bursts after idling: closed forms, and a plain token bucket beside random traffic.

use narrows_core::{Bytes, Change, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Run};
use crate::plan::{ChangePlan, Input, Plan, ServicePlan, What};
use crate::transmitter::{BILLION, at_rate, packet};

const MILLI: u64 = 1_000_000;

fn with_burst(rate: u64, bytes: u64) -> Plan {
    let mut plan = at_rate(rate);
    plan.links[0].burst = bytes;
    plan
}

fn ends(plan: &Plan, inputs: &[Input]) -> Vec<u64> {
    let mut run = Run::new(plan);
    inputs.iter().for_each(|input| run.input(input));
    run.poll(END, usize::MAX);
    run.records.iter().map(|record| record.at.nanos()).collect()
}

fn packets(at: u64, count: usize, length: u32) -> Vec<Input> {
    vec![packet(at, length); count]
}

fn change(at: u64, change: ChangePlan) -> Input {
    Input { at: Time::from_nanos(at), what: What::Change(0, change) }
}

fn rate(bits: u64) -> ChangePlan {
    ChangePlan::Service(ServicePlan::Rate(Rate::from_bits_per_second(bits)))
}

/// At 1 Mbit/s 1,250 bytes take 10 ms.
#[test]
fn a_long_silence_earns_the_whole_burst() {
    let left = ends(&with_burst(1_000_000, 10_000), &packets(1_000 * MILLI, 10, 1_250));
    assert_eq!(left[..8], [1_000 * MILLI; 8]);
    assert_eq!(left[8..], [1_010 * MILLI, 1_020 * MILLI]);
}

#[test]
fn a_short_silence_earns_what_could_have_been_sent() {
    // 40 ms are 5,000 bytes, and 44 ms 5,500: a packet of 1,250 is then paid for by 500 and takes 6 ms.
    let left = ends(&with_burst(1_000_000, 10_000), &packets(40 * MILLI, 6, 1_250));
    assert_eq!(left, [40, 40, 40, 40, 50, 60].map(|at| at * MILLI));
    let left = ends(&with_burst(1_000_000, 10_000), &packets(44 * MILLI, 6, 1_250));
    assert_eq!(left, [44, 44, 44, 44, 50, 60].map(|at| at * MILLI));
    // Nothing at the very beginning, and nothing while there is backlog.
    let left = ends(&with_burst(1_000_000, 10_000), &packets(0, 3, 1_250));
    assert_eq!(left, [10, 20, 30].map(|at| at * MILLI));
}

/// Credit of which only a part is used stays, and grows with the next silence, but not above the burst.
#[test]
fn credit_is_spread_over_packets_as_they_come() {
    let plan = with_burst(1_000_000, 5_000);
    let mut inputs = packets(100 * MILLI, 1, 2_000); // leaves 3,000
    inputs.extend(packets(101 * MILLI, 1, 2_000)); // earns 125, leaves 1,125
    inputs.extend(packets(102 * MILLI, 1, 2_000)); // earns 125; 750 bytes take 6 ms
    inputs.extend(packets(108 * MILLI, 1, 1_000)); // there was no silence: 8 ms
    inputs.extend(packets(200 * MILLI, 2, 3_000)); // 84 ms are more than the burst: 1,000 bytes take 8 ms
    assert_eq!(ends(&plan, &inputs), [100, 101, 108, 116, 200, 208].map(|at| at * MILLI));
}

#[test]
fn credit_is_earned_at_the_rate_of_the_time() {
    // 10 ms at 1 Mbit/s and 10 ms at 2 Mbit/s: 3,750 bytes. Half of the last packet is left, for 2.5 ms.
    let plan = with_burst(1_000_000, 10_000);
    let mut inputs = vec![change(10 * MILLI, rate(2_000_000))];
    inputs.extend(packets(20 * MILLI, 4, 1_250));
    assert_eq!(ends(&plan, &inputs), [20 * MILLI, 20 * MILLI, 20 * MILLI, 25 * MILLI]);
    // A change as the credit is spent takes none of it away.
    inputs.insert(3, change(20 * MILLI, rate(1_000_000)));
    assert_eq!(ends(&plan, &inputs), [20 * MILLI, 20 * MILLI, 20 * MILLI, 30 * MILLI]);
    // A wire that is down earns nothing.
    let mut inputs = vec![change(10 * MILLI, rate(0)), change(900 * MILLI, rate(1_000_000))];
    inputs.extend(packets(900 * MILLI, 2, 1_250));
    assert_eq!(ends(&plan, &inputs), [900 * MILLI, 910 * MILLI]);
}

#[test]
fn nothing_passes_while_the_wire_is_down() {
    let mut inputs = vec![change(100 * MILLI, rate(0))];
    inputs.extend(packets(200 * MILLI, 2, 1_000));
    inputs.push(change(300 * MILLI, rate(1_000_000)));
    assert_eq!(ends(&with_burst(1_000_000, 1_500), &inputs), [300 * MILLI, 304 * MILLI]);
}

#[test]
fn another_burst_keeps_what_was_earned_as_far_as_there_is_room() {
    let run = |changes: &[(u64, u64)]| {
        let to = |&(at, bytes): &(u64, u64)| change(at * MILLI, ChangePlan::Burst(bytes));
        let mut inputs: Vec<_> = changes.iter().map(to).collect();
        inputs.extend(packets(100 * MILLI, 2, 5_000));
        ends(&with_burst(1_000_000, 0), &inputs).into_iter().map(|at| at / MILLI).collect::<Vec<_>>()
    };
    assert_eq!(run(&[]), [140, 180]);
    // Idle time counts from the instant on at which there is a burst: 80 ms, 10,000 bytes.
    assert_eq!(run(&[(20, 20_000)]), [100, 100]);
    assert_eq!(run(&[(60, 20_000)]), [100, 140]);
    // Down to 1,250 and up again: 10 ms more of 1,250.
    assert_eq!(run(&[(0, 20_000), (90, 1_250), (90, 20_000)]), [120, 160]);
    assert_eq!(run(&[(0, 20_000), (100, 0)]), [140, 180]);
}

/// A change of the burst while a packet is on the wire earns nothing for that time.
#[test]
fn a_busy_wire_earns_nothing() {
    let mut run = Run::new(&with_burst(1_000_000, 0));
    let link = run.engine.link("wire").expect("it was configured");
    run.input(&packet(0, 1_250));
    run.engine.change(Time::from_nanos(5 * MILLI), link, Change::Burst(Bytes::new(10_000)));
    run.engine.change(Time::from_nanos(9 * MILLI), link, Change::Burst(Bytes::new(9_000)));
    packets(14 * MILLI, 2, 500).iter().for_each(|input| run.input(input));
    run.poll(END, usize::MAX);
    // From 10 ms on: 500 bytes.
    let left: Vec<_> = run.records.iter().map(|record| record.at.nanos() / MILLI).collect();
    assert_eq!(left, [10, 14, 18]);
}

proptest! {
    /// Against a token bucket in exact arithmetic that fills while nothing is sent.
    #[test]
    fn random_traffic_is_that_of_a_bucket(
        rate in prop_oneof![1_000u64..1_000_000, 1_000_000u64..20_000_000_000],
        burst in prop_oneof![Just(0u64), 1u64..100_000],
        packets in vec((prop_oneof![Just(0), 0u64..20_000, 0u64..20_000_000], 1u32..2_000), 1..80),
    ) {
        let (mut at, mut inputs, mut expected) = (0, Vec::new(), Vec::new());
        let (rate_, most) = (u128::from(rate), u128::from(burst) * 8 * BILLION);
        let (mut free, mut credit) = (0u128, 0u128);
        let mut bits = Vec::new();
        for (gap, length) in packets {
            at += gap;
            inputs.push(packet(at, length));
            bits.push(u128::from(length) * 8);
            let (seen, now) = (free.div_ceil(rate_), u128::from(at));
            let work = u128::from(length) * 8 * BILLION;
            let mut start = free;
            if now > seen {
                start = now * rate_;
                credit = (credit + (now - seen) * rate_).min(most);
            }
            let paid = credit.min(work);
            credit -= paid;
            free = start + work - paid;
            expected.push(free.div_ceil(rate_) as u64);
        }
        let left = ends(&with_burst(rate, burst), &inputs);
        prop_assert_eq!(&left, &expected);

        // And so no interval has more than the rate, the burst and one packet.
        for first in 0..left.len() {
            let (mut sum, mut longest) = (0, 0);
            for last in first..left.len() {
                sum += bits[last];
                longest = longest.max(bits[last]);
                let interval = Duration::from_nanos(left[last] - left[first] + 1).nanos();
                prop_assert!(sum * BILLION <= rate_ * u128::from(interval) + (longest + u128::from(burst) * 8) * BILLION);
            }
        }
    }
}
