//! Draws depend on the seed, the element's name, what is decided and the packet, and on nothing else: adding a link, a
//! port or an impairment changes no other draw.

use std::sync::{Arc, Mutex};

use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::Overload;
use narrows_core::{Duration, Loss, Mtu, MtuPolicy, Order, Probability, Protocol, Rate, Target, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::drive::{END, Record, Run};
use crate::foreign::{Drawn, Recorder};
use crate::plan::{
    AirPlan, BitsPlan, Limits, LinkPlan, LossPlan, PacketPlan, Plan, QueuePlan, ReorderPlan, ServicePlan,
    SlotsPlan,
};
use crate::random::scheduler;

/// A path through links, some of which it may visit twice, as a relay on a shared medium does.
#[derive(Clone, Debug)]
struct Path {
    seed: u64,
    links: Vec<LinkPlan>,
    /// The links in the order of visits.
    visits: Vec<usize>,
    another_port: bool,
}

impl Path {
    fn plan(&self) -> Plan {
        let mut links = self.links.clone();
        links.iter_mut().for_each(|link| link.lanes.clear());
        let mut next = Target::Port("z".into());
        // Backwards, so that each visit knows where the packet goes from there.
        for &visited in self.visits.iter().rev() {
            let link = &mut links[visited];
            let lane = link.lanes.len() as u8;
            link.lanes.push(std::mem::replace(&mut next, Target::Link { name: link.name.clone(), lane }));
        }
        let mut ports = vec![("a".into(), next.clone()), ("z".into(), Target::Port("z".into()))];
        if self.another_port {
            ports.push(("0 sorts first".into(), next));
        }
        // Links that the path leaves out need a lane too.
        links.iter_mut().filter(|l| l.lanes.is_empty()).for_each(|l| l.lanes.push(Target::Port("z".into())));
        Plan { seed: self.seed, links, ports, memory: 1 << 30, visits: 255 }
    }

    /// Sends packets with the given gaps; the other port sends as many, with other marks.
    fn run(&self, gaps: &[(u64, u32)]) -> (Drawn, Vec<Record>) {
        let plan = self.plan();
        let drawn = Arc::new(Mutex::new(Drawn::new()));
        let mut config = plan.config();
        for link in &mut config.links {
            let recorder =
                |purpose| Recorder { place: format!("{} {purpose}", link.name), drawn: Arc::clone(&drawn) };
            link.delay = Box::new(recorder("delay"));
            if link.ingress_loss.is_none() {
                link.ingress_loss = Some(Loss::of(recorder("ingress")));
            }
            link.wire_loss = Some(Loss::of(recorder("wire")));
        }
        let mut run = Run::of(&plan, config);
        let mut now = Time::ZERO;
        let packet = |port, length| PacketPlan { port, length, network: Protocol::Ipv4 };
        for &(gap, length) in gaps {
            now = now + Duration::from_nanos(gap);
            run.hand_in(now, packet(0, length));
        }
        if self.another_port {
            gaps.iter().for_each(|&(_, length)| run.hand_in(now, packet(2, length)));
        }
        run.poll(END, usize::MAX);
        run.records.retain(|record| record.body < gaps.len() as u64);
        let mut drawn = std::mem::take(&mut *drawn.lock().expect("no panic while it was held"));
        drawn.retain(|&(_, mark), _| mark < gaps.len() as u32);
        drawn.values_mut().for_each(|draws| draws.sort_unstable());
        (drawn, run.records)
    }
}

/// Whether all draws of `few` are among those of `many`.
fn includes(many: &Drawn, few: &Drawn) -> Result<(), TestCaseError> {
    for (place, draws) in few {
        let mut others = many.get(place).into_iter().flatten().peekable();
        for draw in draws {
            while others.next_if(|&other| other < draw).is_some() {}
            prop_assert_eq!(others.next(), Some(draw), "{:?}", place);
        }
    }
    Ok(())
}

fn links() -> impl Strategy<Value = Vec<LinkPlan>> {
    let bound = Bound::Packets(u64::MAX);
    let queue = prop_oneof![
        Just(QueuePlan::Fifo(bound, DropAt::Tail)),
        scheduler().prop_map(move |scheduler| {
            let (overload, limits) = (Overload::Arriving, Limits::None);
            QueuePlan::Classes { scheduler, bound, overload, limits }
        }),
    ];
    let link =
        (1u64..40, 0u64..40, any::<bool>(), queue).prop_map(|(megabits, percent, keep, queue)| LinkPlan {
            queue,
            service: ServicePlan::Rate(Rate::from_bits_per_second(megabits * 1_000_000)),
            duplication: percentage(percent),
            corruption: percentage(40 - percent),
            order: if keep { Order::Keep } else { Order::Allow },
            ..LinkPlan::new("")
        });
    vec(link, 1..4).prop_map(|mut links| {
        links.iter_mut().zip(["m", "c", "x"]).for_each(|(link, name)| link.name = name.into());
        links
    })
}

/// Each link once, in order, and some of them a second time.
fn path() -> impl Strategy<Value = Path> {
    (any::<u64>(), links(), vec((any::<Index>(), any::<Index>()), 0..3)).prop_map(|(seed, links, again)| {
        let mut visits: Vec<usize> = (0..links.len()).collect();
        for (link, place) in again {
            let link = link.index(links.len());
            if visits.iter().filter(|&&visited| visited == link).count() == 1 {
                visits.insert(place.index(visits.len() + 1), link);
            }
        }
        Path { seed, links, visits, another_port: false }
    })
}

fn percentage(percent: u64) -> Probability {
    Probability::from_ratio(percent, 100).expect("a percentage")
}

fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    vec((prop_oneof![Just(0), 0u64..500_000], 40u32..1_500), 1..30)
}

proptest! {
    #[test]
    fn a_new_link_changes_no_other_draw(
        path in path(),
        packets in packets(),
        places in (any::<Index>(), any::<Index>()),
        twice: bool,
        name in prop_oneof![Just("0"), Just("d"), Just("zz")],
        duplicates in 0u64..2,
    ) {
        let (base, records) = path.run(&packets);
        let mut longer = path.clone();
        longer.links.push(LinkPlan { duplication: percentage(50 * duplicates), ..LinkPlan::new(name) });
        longer.visits.insert(places.0.index(longer.visits.len() + 1), path.links.len());
        if twice {
            // What lies between now lies on a cycle.
            longer.visits.insert(places.1.index(longer.visits.len() + 1), path.links.len());
        }
        let (drawn, longer) = longer.run(&packets);
        includes(&drawn, &base)?;
        same_flips(&records, &longer)?;
    }

    #[test]
    fn a_new_port_changes_no_draw(path in path(), packets in packets()) {
        let (base, records) = path.run(&packets);
        let (drawn, more) = Path { another_port: true, ..path }.run(&packets);
        includes(&drawn, &base)?;
        includes(&base, &drawn)?;
        same_flips(&records, &more)?;
    }

    #[test]
    fn a_new_impairment_changes_no_other_draw(
        path in path(),
        packets in packets(),
        link in any::<Index>(),
        impairment in 0..9,
    ) {
        let mut impaired = path.clone();
        let link = &mut impaired.links[link.index(path.links.len())];
        let before = std::mem::replace(&mut link.duplication, Probability::ZERO);
        let without = Path { links: impaired.links.clone(), ..path };
        let link = impaired.links.iter_mut().find(|l| l.duplication.is_zero()).expect("it was just set");
        match impairment {
            0 => link.duplication = before,
            1 => link.mtu = Some(Mtu { bytes: 600, policy: MtuPolicy::Fragment }),
            2 => link.reorder = Some(ReorderPlan { probability: percentage(30), gap: 2 }),
            3 => link.ingress_loss = Some(LossPlan::Independent(percentage(30))),
            4 => {
                let gap = (Duration::from_micros(10), Duration::from_millis(2));
                link.slots = Some(SlotsPlan { gap, packets: 2, bytes: 2_000 });
            }
            5 => link.duplicates = Some(LossPlan::Correlated(percentage(30), 0.5)),
            6 => link.bits = Some(BitsPlan::Errors(percentage(1))),
            7 => {
                let times = (Duration::from_micros(10), Duration::from_micros(500));
                link.air = Some(AirPlan { times, samples: 100, level: 100 });
                link.burst = 2_000;
            }
            _ => link.service = ServicePlan::Rate(Rate::from_bits_per_second(100_000)),
        }
        let name = link.name.clone();
        let (mut base, records) = without.run(&packets);
        let (drawn, impaired) = impaired.run(&packets);
        match impairment {
            // What is lost, or is not delayed, has fewer draws; the lossy model itself is no recorder.
            2 => includes(&base, &drawn)?,
            3 => {
                base.retain(|(place, _), _| *place != format!("{name} ingress"));
                includes(&base, &drawn)?;
            }
            _ => includes(&drawn, &base)?,
        }
        if [0, 4, 5, 7, 8].contains(&impairment) {
            same_flips(&records, &impaired)?;
        }
    }
}

/// What was flipped in the packets themselves, copies apart.
fn same_flips(some: &[Record], more: &[Record]) -> Result<(), TestCaseError> {
    let flips = |records: &[Record]| {
        let mut flips: Vec<_> =
            records.iter().filter(|r| r.copy == 0).map(|r| (r.body, r.flips.clone())).collect();
        flips.sort_unstable();
        flips
    };
    prop_assert_eq!(flips(some), flips(more));
    Ok(())
}
