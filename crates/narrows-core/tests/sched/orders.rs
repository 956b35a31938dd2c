//! Exact orders of service: arrival, bands.

use narrows_core::sched::{Fifo, FlowConfig, FlowId, Priority, Refused, Scheduler, Served, Server};
use narrows_core::{PacketRef, Time};
use proptest::collection::vec;
use proptest::prelude::*;

fn serve<S: Scheduler>(server: &mut Server<S>) -> Option<(u32, u32)> {
    match server.dequeue(Time::ZERO) {
        Served::Packet(flow, waits) => Some((flow.number(), waits.packet.number())),
        _ => None,
    }
}

proptest! {
    /// Whatever is dropped on the way, and whichever numbers of flows are used again.
    #[test]
    fn fifo_serves_in_order_of_arrival_across_flows(steps in vec((0u8..10, 0u32..6), 1..600)) {
        let mut server = Server::new(Fifo::default());
        for _ in 0..6 {
            server.join(FlowConfig::default()).expect("it takes any flow");
        }
        let mut model: Vec<(u32, u32)> = Vec::new();
        for (number, (what, flow)) in (0..).zip(steps) {
            match what {
                0..5 => {
                    server.enqueue(Time::ZERO, FlowId::new(flow), PacketRef::from_number(number), 100);
                    model.push((flow, number));
                }
                5..7 => {
                    let first = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(serve(&mut server), first);
                }
                7..9 => {
                    server.drop_first(Time::ZERO, FlowId::new(flow));
                    if let Some(at) = model.iter().position(|&(of, _)| of == flow) {
                        model.remove(at);
                    }
                }
                _ => {
                    if server.leave(FlowId::new(flow)) {
                        let again = server.join(FlowConfig::default()).expect("it takes any flow");
                        prop_assert_eq!(again, FlowId::new(flow));
                    }
                }
            }
        }
        for packet in model {
            prop_assert_eq!(serve(&mut server), Some(packet));
        }
        prop_assert_eq!(serve(&mut server), None);
    }

    /// The lowest band first; in it the flow that was served longest ago, or has waited longest for its first turn.
    #[test]
    fn prio_serves_the_lowest_band_and_its_flows_by_turns(
        bands in vec(prop_oneof![0u32..3, 99_990u32..100_000], 1..8),
        steps in vec((0u8..8, 0usize..8), 1..400),
    ) {
        let mut server = Server::new(Priority::default());
        for &band in &bands {
            server.join(FlowConfig { band, ..FlowConfig::default() }).expect("in range");
        }
        // Packets of each flow; and the flows in the order of their turns.
        let (mut waiting, mut order) = (vec![0u32; bands.len()], Vec::<usize>::new());
        for (what, flow) in steps {
            let flow = flow % bands.len();
            let gone = match what {
                0..4 => {
                    server.enqueue(Time::ZERO, FlowId::new(flow as u32), PacketRef::from_number(0), 100);
                    if waiting[flow] == 0 {
                        order.push(flow);
                    }
                    waiting[flow] += 1;
                    continue;
                }
                4..7 => {
                    let best = order.iter().copied().min_by_key(|&flow| bands[flow]);
                    prop_assert_eq!(serve(&mut server).map(|(flow, _)| flow as usize), best);
                    // Its next turn comes last.
                    order.retain(|&flow| Some(flow) != best);
                    order.extend(best);
                    best
                }
                _ => server.drop_first(Time::ZERO, FlowId::new(flow as u32)).map(|_| flow),
            };
            if let Some(flow) = gone {
                waiting[flow] -= 1;
                if waiting[flow] == 0 {
                    order.retain(|&other| other != flow);
                }
            }
        }
    }
}

#[test]
fn a_band_beyond_the_last_is_refused() {
    let mut server = Server::new(Priority::default());
    let join = |server: &mut Server<_>, band| server.join(FlowConfig { band, ..FlowConfig::default() });
    let most = u64::from(Priority::BANDS) - 1;
    assert_eq!(join(&mut server, Priority::BANDS), Err(Refused::Band { found: most + 1, most }));
    assert_eq!(server.flows().len(), 0);
    join(&mut server, Priority::BANDS - 1).expect("the last one");
}
