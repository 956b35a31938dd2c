//! The harness's own work for a packet: selecting the flow that gets the next one, and the packet records.

use narrows_core::sched::FlowConfig;

use super::Workload;

const NONE: u32 = u32::MAX;

/// Represents a packet: written when the packet is created, read when it is returned. It takes 48 bytes, as in the
/// reference, including the allocator's overhead there.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// A link field for the current owner of the packet.
    pub next: u32,
    /// The number of its flow.
    pub flow: u32,
    /// Its length in bytes.
    pub length: u32,
    _rest: [u32; 9],
}

/// All records. Free ones are reused, last one first.
#[derive(Debug)]
pub struct Records {
    records: Vec<Record>,
    free: Vec<u32>,
}

impl Records {
    /// A packet's record.
    #[inline]
    pub fn get(&self, packet: u32) -> &Record {
        &self.records[packet as usize]
    }

    /// A packet's record, mutable.
    #[inline]
    pub fn get_mut(&mut self, packet: u32) -> &mut Record {
        &mut self.records[packet as usize]
    }

    #[inline]
    fn make(&mut self, flow: u32, length: u32) -> u32 {
        match self.free.pop() {
            Some(packet) => {
                let record = self.get_mut(packet);
                (record.next, record.flow, record.length) = (NONE, flow, length);
                packet
            }
            None => {
                self.records.push(Record { next: NONE, flow, length, _rest: [0; 9] });
                self.records.len() as u32 - 1
            }
        }
    }

    #[inline]
    fn give_back(&mut self, packet: u32) -> u32 {
        self.free.push(packet);
        self.get(packet).flow
    }
}

/// A flow in the list of flows with the same backlog, or the anchor of such a list.
#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    previous: u32,
    /// How many of its packets are outstanding.
    level: u32,
    /// The length of its packets.
    length: u32,
}

/// Creates packets for flows with the smallest backlog.
///
/// There is one circular list of flows for each backlog; the anchors come after the flows. The reference finds the
/// smallest backlog in a 32-bit bitmap, which limits it to 30 packets per flow. This code needs no search: the flow
/// that leaves a list empty is the first of the next list.
#[derive(Debug)]
pub(super) struct Load {
    nodes: Vec<Node>,
    flows: u32,
    /// The smallest backlog of any flow.
    lowest: u32,
    /// The packets.
    pub(super) records: Records,
}

impl Load {
    pub(super) fn new(workload: &Workload) -> Self {
        let flows = workload.flows() as u32;
        // A packet is only created while fewer than qmax are outstanding, so some flow has fewer than ceil(qmax /
        // flows).
        let levels = workload.qmax().div_ceil(u64::from(flows)) as u32 + 1;
        let node = |number: u32, length: u32| Node { next: number, previous: number, level: 0, length };
        let mut nodes = Vec::with_capacity(flows as usize + levels as usize);
        let lengths = workload.configs().map(|(config, _): (FlowConfig, _)| config.longest);
        nodes.extend((0..).zip(lengths).map(|(number, length)| node(number, length)));
        nodes.extend((flows..flows + levels).map(|number| node(number, 0)));
        let most = workload.qmax() as usize;
        let records = Records { records: Vec::with_capacity(most), free: Vec::with_capacity(most) };
        let mut load = Self { nodes, flows, lowest: 0, records };
        (0..flows).for_each(|flow| load.append(flow, 0));
        load
    }

    /// The next packet, for a flow with the smallest backlog: among these, the one whose backlog has not changed for
    /// the longest time.
    #[inline(always)]
    pub(super) fn make(&mut self) -> u32 {
        let anchor = self.flows + self.lowest;
        let flow = self.nodes[anchor as usize].next;
        self.unlink(flow);
        self.append(flow, self.lowest + 1);
        if self.nodes[anchor as usize].next == anchor {
            self.lowest += 1;
        }
        let length = self.nodes[flow as usize].length;
        self.records.make(flow, length)
    }

    /// A packet is returned.
    #[inline(always)]
    pub(super) fn give_back(&mut self, packet: u32) {
        let flow = self.records.give_back(packet);
        let level = self.nodes[flow as usize].level - 1;
        self.unlink(flow);
        self.append(flow, level);
        self.lowest = self.lowest.min(level);
    }

    #[inline]
    fn unlink(&mut self, flow: u32) {
        let Node { next, previous, .. } = self.nodes[flow as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }

    #[inline]
    fn append(&mut self, flow: u32, level: u32) {
        let anchor = self.flows + level;
        let last = self.nodes[anchor as usize].previous;
        self.nodes[last as usize].next = flow;
        self.nodes[anchor as usize].previous = flow;
        let node = &mut self.nodes[flow as usize];
        (node.next, node.previous, node.level) = (anchor, last, level);
    }

    #[cfg(test)]
    pub(super) fn backlogs(&self) -> Vec<u32> {
        self.nodes[..self.flows as usize].iter().map(|node| node.level).collect()
    }
}
