//! Bounds that are hit: visits, copies, memory.

use narrows_core::{DropReason, Mtu, MtuPolicy, Probability, Protocol, Rate, Target, Time, Verdict};

use crate::drive::{END, Run};
use crate::plan::{LinkPlan, PacketPlan, Plan, ServicePlan};

const PACKET: PacketPlan = PacketPlan { port: 0, length: 100, network: Protocol::Ipv4 };

fn reasons(run: &Run, reason: DropReason) -> usize {
    let hit = |verdict| matches!(verdict, Verdict::Dropped { reason: r, .. } if r == reason);
    run.records.iter().filter(|record| hit(record.verdict)).count()
}

/// A link that leads back into itself and takes no time.
fn circle(visits: u8, duplication: Probability) -> Plan {
    let lanes = vec![Target::Link { name: "l".into(), lane: 0 }];
    let mut plan = Plan::chain(1, vec![LinkPlan { duplication, ..LinkPlan::new("l") }]);
    plan.links[0].lanes = lanes;
    plan.visits = visits;
    plan
}

#[test]
fn a_packet_that_goes_round_in_circles_is_dropped() {
    for visits in [0, 1, 64, u8::MAX] {
        let mut run = Run::new(&circle(visits, Probability::ZERO));
        run.hand_in(Time::ZERO, PACKET);
        run.poll(END, usize::MAX);
        assert_eq!((run.records.len(), reasons(&run, DropReason::Loop)), (1, 1));
        let link = run.engine.link("l").expect("it was configured");
        // It came for the visits that it may make, and once more.
        assert_eq!(run.engine.view(link).counters()[0].arrived.packets, u64::from(visits) + 1);
    }
}

/// Doubled again and again, a packet stops at as many copies as can be numbered, and its body comes back once. From
/// then on it cannot be cut either.
#[test]
fn copies_are_bounded() {
    let mut plan = circle(u8::MAX, Probability::ONE);
    plan.memory = u64::MAX;
    // Seventeen times through `l`, then through `m`.
    let lanes = (1..17).map(|lane| Target::Link { name: "l".into(), lane });
    plan.links[0].lanes = lanes.chain([Target::Link { name: "m".into(), lane: 0 }]).collect();
    for (mtu, delivered) in [(100, 65_535), (60, 0)] {
        let mut plan = plan.clone();
        let mtu = Some(Mtu { bytes: mtu, policy: MtuPolicy::Fragment });
        plan.links.push(LinkPlan { mtu, ..LinkPlan::new("m") });
        let mut run = Run::new(&plan);
        run.hand_in(Time::ZERO, PACKET);
        run.poll(END, usize::MAX);
        assert_eq!(run.records.iter().filter(|r| r.delivered()).count(), delivered);
        assert_eq!(delivered + reasons(&run, DropReason::Memory), 65_535);
        assert_eq!(run.records.iter().filter(|record| record.last).count(), 1);
        assert_eq!(run.engine.inside(), 0);
    }
}

/// Frames of 114 bytes with 128 each for the engine: four fit into 1,000 bytes, whether they were polled or not.
#[test]
fn memory_is_bounded_at_the_entrance_and_for_copies() {
    let mut plan = circle(4, Probability::ONE);
    plan.memory = 1_000;
    let mut run = Run::new(&plan);
    run.hand_in(Time::ZERO, PACKET);
    run.poll(END, usize::MAX);
    // 1, 2, 4 copies; of the next four twins none is let in, and after a fourth visit each of the four loops.
    assert_eq!((reasons(&run, DropReason::Memory), reasons(&run, DropReason::Loop)), (8, 4));

    let mut plan = Plan::chain(1, vec![LinkPlan::new("l")]);
    plan.links[0].service = ServicePlan::Rate(Rate::DOWN);
    plan.memory = 1_000;
    let mut run = Run::new(&plan);
    (0..10).for_each(|_| run.hand_in(Time::ZERO, PACKET));
    assert_eq!(run.engine.inside(), 4);
    run.poll(END, usize::MAX);
    assert_eq!(reasons(&run, DropReason::Memory), 6);
}
