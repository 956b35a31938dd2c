use super::*;
use crate::aqm::Pie;
use crate::classify::Identity;
use crate::queue::Queue;
use crate::random::Seed;
use crate::sched::{FairFlow, Weight};
use crate::time::Time;

/// Besides its packets, a flow is its line in the scheduler, its place among the stores, and its policy.
#[test]
fn a_flow_takes_128_bytes() {
    // A line of `Flows`: 24 bytes of queue and the scheduler's part, in whole cache lines.
    let line = (24 + size_of::<FairFlow>()).next_multiple_of(64);
    assert_eq!(line + size_of::<Store>() + size_of::<Codel>(), 128);
    assert_eq!(line + size_of::<Store>() + size_of::<Pie>(), 128);
}

#[test]
fn there_are_as_many_flows_as_classes_of_the_hash() {
    for flows in [1, 8, 1024] {
        let hash = FlowHash::new(Seed(1), "wire", flows, Identity::FiveTuple);
        let mut fair = fq_codel(FqCodelConfig::default(), hash).expect("they are taken");
        let mut is_there =
            |flow| fair.set_weight(Time::ZERO, flow as usize, Weight::ONE) != Err(Refused::NoClass);
        assert_eq!([is_there(flows - 1), is_there(flows)], [true, false]);
        assert_eq!(fair.bound(), Bound::Packets(10_240));
    }
}
