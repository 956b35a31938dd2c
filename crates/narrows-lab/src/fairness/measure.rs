//! Worst-case fair indices, measured exactly.
//!
//! The link sends one byte per unit of time. W(t) counts whole packets, each at the instant at which its transmission
//! begins: that is when a scheduler decides, and when its virtual time advances. A flow is backlogged while it has
//! packets waiting, from the arrival of the first to the dequeue of the last. With `φ_k = w_k/Σw`, Σw over all flows
//! that have joined:
//!
//! - **B-WFI** of flow k: the maximum of `φ_k·W(t1,t2) − W_k(t1,t2)` over all t1 ≤ t2 such that k is backlogged
//!   throughout and one of its packets is sent at t2; that packet is included.
//! - The **shortfall** of flow k: the same over all t1 ≤ t2, for example intervals that end just before one of its
//!   packets. It is larger by up to `(1 − φ_k)` times that packet.
//!
//!   `D_k = w_k·W − Σw·W_k`, an integer, rises with every packet of the other flows and falls with each of the flow's
//!   own. So within a backlogged period its minima lie at the beginning and after the flow's own packets, and its
//!   maxima before them. The maximum difference between a value and an earlier one needs only the minimum so far: a
//!   few comparisons per packet, whatever the number of flows.
//! - **T-WFI** of flow k: the maximum over its packets of `d − a − Q_k(a)/(φ_k·R)`: d is when its last bit has left,
//!   a when it arrived, Q_k(a) the bytes of the flow waiting at that time, including the packet itself but not a
//!   packet being sent.
//!
//! Sources: J. Bennett and H. Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM Transactions on
//! Networking 5(5), 1997, whose bound for WF2Q+ is on intervals that end when a packet has been sent; F. Checconi, L.
//! Rizzo and P. Valente, "QFQ: efficient packet scheduling with tight guarantees", IEEE/ACM Transactions on
//! Networking 21(3), 2013, who take the maximum over all intervals.

use std::collections::VecDeque;

/// The maximum of φ_k·W − W_k, or the maximum delay beyond the guaranteed one, and where it occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worst {
    /// For service: bytes times the sum of weights. For delay: byte-times times the flow's weight.
    pub(crate) value: i128,
    /// The interval in which it occurred: [t1, t2], or from arrival to departure, in byte-times.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Measures both indices of all flows.
#[derive(Debug)]
pub(crate) struct Measure {
    flows: Vec<Track>,
    sum: i128,
    /// W: bytes that the link has begun to send.
    work: i128,
    now: u64,
}

#[derive(Debug)]
struct Track {
    weight: i128,
    /// W_k.
    service: i128,
    waiting: VecDeque<Waiting>,
    waiting_bytes: i128,
    /// The minimum of D_k in the current backlogged period, and when it was.
    least: i128,
    least_at: u64,
    worst_service: Worst,
    worst_shortfall: Worst,
    worst_delay: Option<Worst>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    length: u32,
    arrival: u64,
    /// Q_k at its arrival.
    queue: i128,
}

impl Measure {
    /// Flows with these weights, all idle.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let flows: Vec<Track> = weights.into_iter().map(Track::new).collect();
        Self { sum: flows.iter().map(|flow| flow.weight).sum(), flows, work: 0, now: 0 }
    }

    /// A packet joins a flow at `now`.
    pub(crate) fn arrive(&mut self, now: u64, flow: usize, length: u32) {
        self.now = now;
        let flow = &mut self.flows[flow];
        if flow.waiting.is_empty() {
            (flow.least, flow.least_at) = (flow.difference(self.work, self.sum), now);
        }
        flow.waiting_bytes += i128::from(length);
        flow.waiting.push_back(Waiting { length, arrival: now, queue: flow.waiting_bytes });
    }

    /// The first packet waiting in a flow begins transmission on the free link at `now`. Returns its length and
    /// arrival time.
    pub(crate) fn begin(&mut self, now: u64, flow: usize) -> (u32, u64) {
        self.now = now;
        let flow = &mut self.flows[flow];
        let packet = flow.waiting.pop_front().expect("only a packet that waits is sent");
        flow.compare(now, self.work, self.sum);
        let departure = now + u64::from(packet.length);
        let length = i128::from(packet.length);
        self.work += length;
        flow.service += length;
        flow.waiting_bytes -= length;
        let difference = flow.difference(self.work, self.sum);
        if difference - flow.least > flow.worst_service.value {
            flow.worst_service = Worst { value: difference - flow.least, from: flow.least_at, to: departure };
        }
        if difference < flow.least {
            (flow.least, flow.least_at) = (difference, now);
        }
        let delay = i128::from(departure - packet.arrival) * flow.weight - packet.queue * self.sum;
        if flow.worst_delay.is_none_or(|worst| delay > worst.value) {
            flow.worst_delay = Some(Worst { value: delay, from: packet.arrival, to: departure });
        }
        (packet.length, packet.arrival)
    }

    /// The end of the run: packets waiting count until now.
    pub(crate) fn finish(&mut self) {
        for flow in &mut self.flows {
            if !flow.waiting.is_empty() {
                flow.compare(self.now, self.work, self.sum);
            }
        }
    }

    /// A flow's shortfall since it was furthest ahead in this backlogged period: the maximum of φ_k·W(t1,t) −
    /// W_k(t1,t) over all t1, for t = now, in bytes. 0 for a flow that is not backlogged.
    pub(crate) fn shortfall(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        match flow.waiting.is_empty() {
            true => 0.0,
            false => (flow.difference(self.work, self.sum) - flow.least) as f64 / self.sum as f64,
        }
    }

    /// The sum of the weights of all flows.
    pub(crate) const fn sum(&self) -> i128 {
        self.sum
    }

    /// The maximum shortfall of a flow.
    pub(crate) fn worst_shortfall(&self, flow: usize) -> Worst {
        self.flows[flow].worst_shortfall
    }

    /// The B-WFI of a flow.
    pub(crate) fn worst_service(&self, flow: usize) -> Worst {
        self.flows[flow].worst_service
    }

    /// The maximum delay of a flow's packets beyond the guaranteed one. `None` if none was sent.
    pub(crate) fn worst_delay(&self, flow: usize) -> Option<Worst> {
        self.flows[flow].worst_delay
    }
}

impl Track {
    fn new(weight: u32) -> Self {
        Self {
            weight: weight.into(),
            service: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            least: 0,
            least_at: 0,
            worst_service: Worst { value: 0, from: 0, to: 0 },
            worst_shortfall: Worst { value: 0, from: 0, to: 0 },
            worst_delay: None,
        }
    }

    /// D_k. With weights below 2^32, their sum below 2^64 and bytes below 2^60, it is below 2^125.
    const fn difference(&self, work: i128, sum: i128) -> i128 {
        self.weight * work - sum * self.service
    }

    fn compare(&mut self, now: u64, work: i128, sum: i128) {
        let behind = self.difference(work, sum) - self.least;
        if behind > self.worst_shortfall.value {
            self.worst_shortfall = Worst { value: behind, from: self.least_at, to: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::{Seed, Stream};

    /// Straight from the definition: the state after every event, and all pairs of them.
    #[derive(Default)]
    struct AllIntervals {
        /// After each event: W, then for each flow W_k and whether it is backlogged.
        events: Vec<(i128, Vec<(i128, bool)>)>,
    }

    impl AllIntervals {
        /// B-WFI, and the largest shortfall.
        fn indices(&self, flow: usize, weight: i128, sum: i128) -> (i128, i128) {
            let (mut worst, mut shortfall) = (0, 0);
            for (first, (w1, flows1)) in self.events.iter().enumerate() {
                if !flows1[flow].1 {
                    continue;
                }
                let mut before = flows1[flow].0;
                for (w2, flows2) in &self.events[first..] {
                    let behind = weight * (w2 - w1) - sum * (flows2[flow].0 - flows1[flow].0);
                    shortfall = shortfall.max(behind);
                    if flows2[flow].0 > before {
                        worst = worst.max(behind);
                        before = flows2[flow].0;
                    }
                    if !flows2[flow].1 {
                        break; // backlogged until this very event, and no longer
                    }
                }
            }
            (worst, shortfall)
        }
    }

    #[test]
    fn the_index_is_the_maximum_over_all_intervals() {
        for seed in 0..60 {
            let stream = Stream::new(Seed(seed), "measure", "test");
            let weights = [1u32, 2, 5, 7];
            let mut measure = Measure::new(weights);
            let mut all = AllIntervals::default();
            let (mut work, mut services, mut waiting) =
                (0i128, [0i128; 4], [const { VecDeque::<u32>::new() }; 4]);
            let mut now = 0;
            for index in 0..120 {
                let mut draw = stream.nth(index);
                let flow = draw.below(4) as usize;
                if waiting[flow].is_empty() || draw.below(2) == 0 {
                    let length = 1 + draw.below(9) as u32;
                    measure.arrive(now, flow, length);
                    waiting[flow].push_back(length);
                    now += draw.below(3);
                } else {
                    // Any flow may be chosen: this is no scheduler at all.
                    let length = waiting[flow].pop_front().unwrap();
                    assert_eq!(measure.begin(now, flow).0, length);
                    work += i128::from(length);
                    services[flow] += i128::from(length);
                    now += u64::from(length);
                }
                let state = |flow: usize| (services[flow], !waiting[flow].is_empty());
                all.events.push((work, (0..4).map(state).collect()));
            }
            measure.finish();
            for (flow, weight) in weights.into_iter().enumerate() {
                let expected = all.indices(flow, weight.into(), measure.sum());
                let found = (measure.worst_service(flow).value, measure.worst_shortfall(flow).value);
                assert_eq!(found, expected, "flow {flow}, seed {seed}");
            }
        }
    }

    #[test]
    fn the_interval_and_the_delay_are_those_of_a_case_done_by_hand() {
        // Weights 1 and 3. Flow 0 has a packet of 100 bytes at 0; flow 1 sends 200 + 300 bytes first.
        let mut measure = Measure::new([1, 3]);
        measure.arrive(0, 1, 200);
        measure.arrive(0, 1, 300);
        measure.arrive(0, 0, 100);
        assert_eq!(measure.begin(0, 1), (200, 0));
        assert_eq!(measure.begin(200, 1), (300, 0));
        assert_eq!(measure.shortfall(0), 125.0); // a quarter of 500
        assert_eq!(measure.begin(500, 0), (100, 0));
        measure.finish();
        assert_eq!(measure.worst_shortfall(0), Worst { value: 500, from: 0, to: 500 }); // 125 bytes times 4
        assert_eq!(measure.worst_service(0), Worst { value: 200, from: 0, to: 600 }); // a quarter of 600, less 100
        // It left at 600; at a quarter of the rate it would have by 400.
        assert_eq!(measure.worst_delay(0), Some(Worst { value: 200, from: 0, to: 600 }));
        // The second packet of flow 1 left at 500; at three quarters by 500 / 0.75 = 666.7: 166.7 to spare. The first one
        // left at 200 instead of 266.7.
        assert_eq!(measure.worst_delay(1), Some(Worst { value: -200, from: 0, to: 200 }));
        assert_eq!(measure.worst_service(1).value, 0);
    }
}
