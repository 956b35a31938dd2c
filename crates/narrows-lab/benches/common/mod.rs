//! The walk that QFQ is compared with: the same packets through the same memory, without scheduling.

use narrows_core::sched::{FlowId, Flows, Qfq, Waits};
use narrows_core::{PacketRef, Time};
use narrows_lab::bench::{PerFlow, Records, Subject, Workload, columns, quantity, time};

/// So many flows of weight 1, of which 0 to 20 packets wait each.
pub(crate) fn workload(flows: &str) -> Workload {
    let column = columns(flows).expect("a number of flows").remove(0);
    let (qmin, qmax) = (quantity("0").expect("a number"), quantity("20n").expect("a number"));
    Workload::new(&column, qmin, qmax).expect("it fits")
}

/// Takes packets out of the flows in an order that is given, and reads and writes what a scheduler would keep of a flow.
/// Flows, chunks of packets and states lie in memory as a scheduler's do.
pub(crate) struct Walk {
    flows: Flows<[u64; 5]>,
    order: Vec<FlowId>,
    at: usize,
}

impl Walk {
    /// In the order in which QFQ serves that many packets.
    pub(crate) fn like_qfq(workload: &Workload, packets: u64) -> Self {
        let scheduler = PerFlow::join(Qfq::default(), workload).expect("QFQ takes these flows");
        let mut recorder = Recorder { scheduler, order: Vec::new() };
        time(workload, packets, &mut recorder).expect("QFQ serves");
        let mut flows = Flows::default();
        (0..workload.flows()).for_each(|_| {
            flows.add([0; 5]);
        });
        Self { flows, order: recorder.order, at: 0 }
    }
}

impl Subject for Walk {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records) {
        let record = records.get(packet);
        let flow = FlowId::new(record.flow);
        self.flows.push(flow, Waits { packet: PacketRef::from_number(packet), length: record.length });
        self.flows[flow][0] = now.nanos();
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut Records) -> Option<u32> {
        let flow = *self.order.get(self.at)?;
        self.at += 1;
        self.flows[flow][1] = now.nanos();
        self.flows.pop(flow).map(|waits| waits.packet.number())
    }
}

/// Notes the flow of each packet that is served.
struct Recorder {
    scheduler: PerFlow<Qfq>,
    order: Vec<FlowId>,
}

impl Subject for Recorder {
    fn enqueue(&mut self, now: Time, packet: u32, records: &mut Records) {
        self.scheduler.enqueue(now, packet, records);
    }

    fn dequeue(&mut self, now: Time, records: &mut Records) -> Option<u32> {
        let packet = self.scheduler.dequeue(now, records)?;
        self.order.push(FlowId::new(records.get(packet).flow));
        Some(packet)
    }
}
