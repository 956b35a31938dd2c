//! Adversarial traffic for schedulers, and random traffic.
//!
//! A pattern adds packets to an [`Agenda`]; it observes every arrival and every transmission, and may respond with
//! more packets. Instants are in byte-times. All draws come from the seed, so that runs are reproducible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::sched::{FlowConfig, Weight};
use narrows_core::{Draw, Seed, Stream};

/// The patterns, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Flows that start and stop at random, next to some that are never idle; random weights and lengths.
    Random,
    /// Flows that are never idle; random weights and lengths.
    Greedy,
    /// One flow has as much weight as all others together and sends a burst at the instant at which each other flow
    /// sends a packet: Bennett and Zhang's example that distinguishes WF2Q from WFQ.
    Burst,
    /// The heavy flow has the link to itself, then all others start just after one of its packets has begun
    /// transmission.
    Late,
    /// Half of the flows send only packets of minimum length, the others only of maximum length; in each half one
    /// flow is heavy.
    Lengths,
    /// A flow goes idle when its packet leaves, and returns at that instant, just before or after it, or after about
    /// the time that its packet is worth.
    Return,
    /// One flow has the maximum weight, one the minimum, others are in between; the lightest sends the longest
    /// packets.
    Extremes,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Random, Self::Greedy, Self::Burst, Self::Late, Self::Lengths, Self::Return, Self::Extremes];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Greedy => "greedy",
            Self::Burst => "burst",
            Self::Late => "late",
            Self::Lengths => "lengths",
            Self::Return => "return",
            Self::Extremes => "extremes",
        }
    }

    /// Its description, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Random => "flows that come and go at random beside some that are never idle",
            Self::Greedy => "no flow is ever idle; random weights and lengths",
            Self::Burst => {
                "a burst of a flow that weighs as much as all others, and a packet of each of these"
            }
            Self::Late => "the others come after that flow has had the link for itself",
            Self::Lengths => "half of the flows send the shortest packets, the others the longest",
            Self::Return => {
                "flows go idle and return when a packet leaves, or when its share of the time is over"
            }
            Self::Extremes => "the greatest weight, and the least one with the longest packets, among others",
        }
    }
}

/// The amount of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    /// The number of flows, at least 2.
    pub(crate) flows: u32,
    pub(crate) packets: u64,
    /// The maximum packet length, in bytes.
    pub(crate) longest: u32,
    /// The maximum weight.
    pub(crate) heaviest: u32,
    pub(crate) seed: Seed,
}

/// Flows, and the packets they send.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) flows: Vec<FlowConfig>,
    pattern: Pattern,
    agenda: Agenda,
    random: Random,
    /// For patterns with rounds: packets of this round that have not left, and the heavy flow's packets still to be
    /// sent before the others start.
    round: u64,
    ahead: u64,
    /// For the random pattern: packets of each flow's burst that have not arrived yet.
    bursts: Vec<u64>,
    mean_length: u64,
}

/// A packet on its way to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    order: u64,
    pub(crate) flow: u32,
    pub(crate) length: u32,
}

/// Future packets, in order of time; limited to the total number of packets.
#[derive(Debug, Default)]
struct Agenda {
    arrivals: BinaryHeap<Reverse<Arrival>>,
    given: u64,
    most: u64,
}

#[derive(Debug)]
struct Random {
    stream: Stream,
    number: u64,
}

/// The minimum packet length: an IPv4 header and eight bytes.
const SHORTEST: u32 = 28;

impl Traffic {
    pub(crate) fn new(pattern: Pattern, amount: Amount) -> Self {
        let mut random = Random { stream: Stream::new(amount.seed, pattern.name(), "fairness"), number: 0 };
        let flows = flows(pattern, amount, &mut random);
        let agenda = Agenda { most: amount.packets, ..Agenda::default() };
        let mean_length =
            flows.iter().map(|flow| u64::from(flow.longest)).sum::<u64>() / flows.len() as u64 / 2;
        let bursts = vec![0; flows.len()];
        let mut traffic = Self { flows, pattern, agenda, random, round: 0, ahead: 0, bursts, mean_length };
        traffic.begin();
        traffic
    }

    /// When the next packet arrives, if known.
    pub(crate) fn peek(&self) -> Option<u64> {
        self.agenda.arrivals.peek().map(|Reverse(arrival)| arrival.at)
    }

    /// The next packet arrives.
    pub(crate) fn take(&mut self) -> Option<Arrival> {
        let Reverse(arrival) = self.agenda.arrivals.pop()?;
        if self.pattern == Pattern::Random && !self.is_greedy(arrival.flow) {
            let left = &mut self.bursts[arrival.flow as usize];
            *left -= 1;
            if *left == 0 {
                self.on_and_off(arrival.at, arrival.flow);
            }
        }
        Some(arrival)
    }

    /// A packet of `flow` is sent from `start` to `end`; `left` packets of the flow are waiting.
    pub(crate) fn sent(&mut self, flow: u32, start: u64, end: u64, left: usize) {
        match self.pattern {
            Pattern::Random if self.is_greedy(flow) => self.refill(flow, start, left),
            Pattern::Random => {}
            Pattern::Greedy | Pattern::Lengths | Pattern::Extremes => self.refill(flow, start, left),
            Pattern::Return if left == 0 => self.come_back(flow, start, end),
            Pattern::Return => {}
            Pattern::Burst => {
                self.round -= 1;
                if self.round == 0 {
                    // At the end, or slightly later.
                    let pause = self.random.draw().below(2) * self.random.draw().below(self.mean_length);
                    self.burst(end + pause);
                }
            }
            Pattern::Late => {
                self.round -= 1;
                if self.ahead > 0 {
                    self.ahead -= 1;
                    if self.ahead == 0 {
                        self.others(start + 1);
                    }
                }
                if self.round == 0 {
                    let pause = self.random.draw().below(3) * self.mean_length;
                    self.heavy_alone(end + pause);
                }
            }
        }
    }

    fn begin(&mut self) {
        let flows = 0..self.flows.len() as u32;
        match self.pattern {
            Pattern::Random => {
                for flow in flows {
                    match self.is_greedy(flow) {
                        true => self.refill(flow, 0, 0),
                        false => self.on_and_off(0, flow),
                    }
                }
            }
            Pattern::Greedy | Pattern::Lengths | Pattern::Extremes => {
                flows.for_each(|flow| self.refill(flow, 0, 0));
            }
            Pattern::Return => flows.for_each(|flow| {
                let at = self.random.draw().below(2);
                self.add(at, flow);
            }),
            Pattern::Burst => self.burst(0),
            Pattern::Late => self.heavy_alone(0),
        }
    }

    /// Every eighth flow of the random pattern is never idle.
    const fn is_greedy(&self, flow: u32) -> bool {
        flow.is_multiple_of(8)
    }

    /// Keeps a flow backlogged, with two to five packets.
    fn refill(&mut self, flow: u32, now: u64, left: usize) {
        if left < 2 {
            for _ in 0..=self.random.draw().below(4) {
                self.add(now, flow);
            }
        }
    }

    /// A burst of a flow, after a pause such that these flows together offer about 80 % of the link's rate; each
    /// offers the same, whatever its weight.
    fn on_and_off(&mut self, now: u64, flow: u32) {
        let mut draw = self.random.draw();
        let sources = self.flows.len() as u64 * 7 / 8 + 1;
        let mean_silence = 8 * self.mean_length * sources * 5 / 4;
        let mut at = now + draw.below(2 * mean_silence);
        let packets = 1 + draw.below(15); // 8 in the mean
        self.bursts[flow as usize] = packets;
        let gap = [1, self.mean_length, self.mean_length * sources][draw.below(3) as usize];
        for _ in 0..packets {
            self.add(at, flow);
            at += draw.below(gap);
        }
    }

    /// An idle flow returns.
    fn come_back(&mut self, flow: u32, start: u64, end: u64) {
        let sum: u64 = self.flows.iter().map(|flow| u64::from(flow.weight.get())).sum();
        let FlowConfig { weight, longest, .. } = self.flows[flow as usize];
        // The work during which virtual time advances by its longest packet, and the next power of two above, which
        // is the width of slots.
        let worth = (u64::from(longest) * sum / u64::from(weight.get())).max(1);
        let slot = worth.next_power_of_two();
        let mut draw = self.random.draw();
        let at = match draw.below(8) {
            0 => start,
            1 => start + 1,
            2 => end,
            3 => end + 1,
            4 => start + worth / 2,
            5 => start + worth - draw.below(2),
            6 => start + slot - draw.below(2),
            _ => (start / slot + 1) * slot - draw.below(2),
        };
        // For a light flow that may take very long; the other flows must have packets meanwhile.
        let at = at.min(end + 64 * self.mean_length * self.flows.len() as u64).max(start);
        for _ in 0..=draw.below(2) {
            self.add(at, flow);
        }
    }

    fn burst(&mut self, at: u64) {
        let others = self.flows.len() as u32 - 1;
        (0..=others).for_each(|_| self.add_longest(at, 0));
        (1..=others).for_each(|flow| self.add_longest(at, flow));
        self.round = 2 * u64::from(others) + 1;
    }

    fn heavy_alone(&mut self, at: u64) {
        let packets = self.flows.len() as u64;
        (0..packets).for_each(|_| self.add_longest(at, 0));
        self.ahead = 1 + self.random.draw().below(packets - 1);
        self.round = packets;
    }

    fn others(&mut self, at: u64) {
        let others = 1..self.flows.len() as u32;
        self.round += others.len() as u64;
        others.for_each(|flow| self.add_longest(at, flow));
    }

    /// Adds a packet with a length that fits the pattern.
    fn add(&mut self, at: u64, flow: u32) {
        let longest = self.flows[flow as usize].longest;
        let mut draw = self.random.draw();
        let length = match (self.pattern, draw.below(4)) {
            (Pattern::Lengths, _) | (_, 0 | 1) => longest,
            (_, 2) => SHORTEST.min(longest),
            _ => SHORTEST.min(longest) + draw.below(u64::from(longest - SHORTEST.min(longest)) + 1) as u32,
        };
        self.agenda.add(at, flow, length);
    }

    fn add_longest(&mut self, at: u64, flow: u32) {
        self.agenda.add(at, flow, self.flows[flow as usize].longest);
    }
}

impl Agenda {
    fn add(&mut self, at: u64, flow: u32, length: u32) {
        if self.given < self.most {
            self.arrivals.push(Reverse(Arrival { at, order: self.given, flow, length }));
            self.given += 1;
        }
    }
}

impl Random {
    /// The draws of one decision.
    fn draw(&mut self) -> Draw {
        self.number += 1;
        self.stream.nth(self.number)
    }

    /// Between the two, log-uniformly: each power of two is equally likely.
    fn logarithmic(&mut self, least: u32, most: u32) -> u32 {
        let mut draw = self.draw();
        let doublings = u64::from((most / least).ilog2());
        let low = u64::from(least) << draw.below(doublings + 1);
        (low + draw.below(low)).min(most.into()) as u32
    }
}

/// The weights and maximum packet lengths of a pattern's flows.
fn flows(pattern: Pattern, amount: Amount, random: &mut Random) -> Vec<FlowConfig> {
    let Amount { flows, longest, heaviest, .. } = amount;
    let shortest = SHORTEST.min(longest);
    let config = |number: u32| match pattern {
        Pattern::Random | Pattern::Greedy | Pattern::Return => {
            (random.logarithmic(1, heaviest), random.logarithmic(shortest, longest))
        }
        Pattern::Burst | Pattern::Late => (if number == 0 { (flows - 1).min(heaviest) } else { 1 }, longest),
        Pattern::Lengths => {
            let weight = if number < 2 { flows.min(heaviest) } else { 1 };
            (weight, if number.is_multiple_of(2) { longest } else { shortest })
        }
        Pattern::Extremes => match number {
            0 => (heaviest, longest.min(1500)),
            1 => (1, longest),
            _ => (random.logarithmic(1, (heaviest / 16).max(1)), random.logarithmic(shortest, longest)),
        },
    };
    let flow = |(weight, longest)| FlowConfig {
        weight: Weight::new(weight).expect("weights are drawn from 1 up"),
        longest,
        ..FlowConfig::default()
    };
    (0..flows).map(config).map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_sends_all_its_packets_within_its_lengths() {
        for pattern in Pattern::ALL {
            let amount = Amount { flows: 9, packets: 700, longest: 9000, heaviest: 1 << 10, seed: Seed(3) };
            let mut traffic = Traffic::new(pattern, amount);
            let (mut now, mut packets, mut seen) = (0, 0, [false; 9]);
            // A link that sends in the order of arrival.
            while let Some(arrival) = traffic.take() {
                assert!(arrival.length >= SHORTEST);
                assert!(arrival.length <= traffic.flows[arrival.flow as usize].longest);
                seen[arrival.flow as usize] = true;
                packets += 1;
                now = arrival.at.max(now) + u64::from(arrival.length);
                traffic.sent(arrival.flow, now - u64::from(arrival.length), now, 0);
            }
            assert_eq!(packets, 700, "{}", pattern.name());
            assert!(seen.iter().all(|&seen| seen), "{}", pattern.name());
        }
    }

    #[test]
    fn burst_is_the_example_of_bennett_and_zhang() {
        let amount = Amount { flows: 11, packets: 21, longest: 100, heaviest: 1000, seed: Seed(1) };
        let mut traffic = Traffic::new(Pattern::Burst, amount);
        assert_eq!(traffic.flows[0].weight.get(), 10);
        let arrivals: Vec<Arrival> = std::iter::from_fn(|| traffic.take()).collect();
        assert!(arrivals.iter().all(|arrival| arrival.at == 0 && arrival.length == 100));
        assert_eq!(arrivals.iter().filter(|arrival| arrival.flow == 0).count(), 11);
    }
}
