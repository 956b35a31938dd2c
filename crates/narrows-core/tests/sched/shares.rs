//! What each flow gets of the transmitter while all of them wait.

use narrows_core::sched::{FlowConfig, FlowId, Served, Weight};
use narrows_core::{Duration, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::kinds::{ALL, Case, Kind, LONGEST, Subject, alike};

/// Something that happened before: a packet for a flow, a service, a drop, another weight.
type Past = (Index, u8, u32);

/// Serves for a while with every flow backlogged, after some past, and checks by how much flows fall behind.
fn check(kind: Kind, flows: &[(u32, u32)], past: &[Past], lag: fn(&Case) -> f64) {
    let mut subject = (kind.make)();
    let mut weights: Vec<u32> = flows.iter().map(|&(weight, _)| weight).collect();
    for &weight in &weights {
        let weight = Weight::new(weight).expect("not 0");
        subject.join(FlowConfig { weight, longest: LONGEST, ..FlowConfig::default() }).expect("in range");
    }
    for &(index, what, number) in past {
        let flow = index.index(flows.len());
        let id = FlowId::new(flow as u32);
        match what {
            0..4 => subject.enqueue(Time::ZERO, id, 0, number % LONGEST + 1),
            4..6 => {
                subject.dequeue(Time::ZERO);
            }
            6 => {
                subject.drop_first(Time::ZERO, id);
            }
            _ => {
                weights[flow] = number % 50 + 1;
                let weight = Weight::new(weights[flow]).expect("not 0");
                subject.set_weight(Time::ZERO, id, weight).expect("in range");
            }
        }
    }
    let refill = |subject: &mut dyn Subject, flow: usize| {
        // Two wait, so that the flow never runs dry.
        while subject.waiting(FlowId::new(flow as u32)).0 < 2 {
            subject.enqueue(Time::ZERO, FlowId::new(flow as u32), 0, flows[flow].1);
        }
    };
    (0..flows.len()).for_each(|flow| refill(&mut *subject, flow));
    let sum: f64 = weights.iter().copied().map(f64::from).sum();
    // A flow may have begun a turn under a greater weight, up to 50, and goes on with it: first these, then two rounds.
    let rounds = 50.0 * flows.len() as f64 + 2.0 * sum;
    let warm_up = if past.is_empty() { 0.0 } else { rounds * f64::from(LONGEST) };
    let (mut warm, mut total, mut served) = (0.0, 0.0, vec![0.0; flows.len()]);
    loop {
        let Served::Packet(flow, waits) = subject.dequeue(Time::ZERO) else { panic!("packets wait") };
        let flow = flow.number() as usize;
        refill(&mut *subject, flow);
        if warm < warm_up {
            warm += f64::from(waits.length);
            continue;
        }
        total += f64::from(waits.length);
        served[flow] += f64::from(waits.length);
        if total > 60_000.0 * flows.len() as f64 {
            break;
        }
        for (&weight, got) in weights.iter().zip(&served) {
            let weight = f64::from(weight);
            let case = Case { share: weight / sum, weight, flows: flows.len() as f64 };
            let behind = case.share * total - got;
            assert!(behind <= lag(&case) + 1.0, "{}: {behind} bytes, {}", kind.name, lag(&case));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// The bound is a constant, so that in the long run the shares are those of the weights, and no flow starves.
    #[test]
    fn shares_are_those_of_the_weights_within_the_bound(
        flows in vec((1u32..50, 300u32..=LONGEST), 1..12),
        past in vec((any::<Index>(), 0u8..8, any::<u32>()), 0..100),
    ) {
        for kind in ALL {
            if let Some(lag) = kind.lag {
                check(kind, &flows, &[], lag);
                check(kind, &flows, &past, lag);
            }
        }
    }
}

/// Those that promise no shares: of flows that are alike each gets its part in the end, by chance or by turns.
#[test]
fn flows_that_are_alike_do_not_starve() {
    for kind in alike() {
        let mut subject = (kind.make)();
        let flows: Vec<FlowId> =
            (0..8).map(|_| subject.join(FlowConfig::default()).expect("in range")).collect();
        flows.iter().for_each(|&flow| (0..2).for_each(|n| subject.enqueue(Time::ZERO, flow, n, 1000)));
        let (mut now, mut served) = (Time::ZERO, [0u32; 8]);
        while served.iter().sum::<u32>() < 8_000 {
            match subject.dequeue(now) {
                Served::Packet(flow, _) => {
                    served[flow.number() as usize] += 1;
                    now = now + Duration::from_micros(700);
                    subject.enqueue(now, flow, 0, 1000);
                }
                Served::GivenUp(flow, ..) => subject.enqueue(now, flow, 0, 1000),
                Served::NotBefore(at) => now = at,
                Served::Empty => panic!("packets wait"),
            }
        }
        // 1000 each. For those that contend by chance the standard deviation is √(8000·⅛·⅞) = 30 if draws are independent;
        // seven of them. Ethernet's capture effect makes bursts of some 30 packets, and of the deviation √30 times as much.
        let span = if kind.name == "csma-cd" { 300..=2200 } else { 790..=1210 };
        assert!(served.iter().all(|served| span.contains(served)), "{}: {served:?}", kind.name);
    }
}
