//! QFQ by its definition: groups, eligibility and blocking are worked out anew for every packet.

use narrows_core::sched::{FlowConfig, Qfq, Weight};

use crate::compare::{Model, exhaustive, random};
use crate::fraction::Fraction;

/// Virtual time and starts as the scheduler rounds them, or not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rounding {
    None,
    /// 1/w up to a multiple of 2⁻⁴³, 1/Σw down to one of 2⁻⁶³, virtual time where a flow begins down to one of 2⁻⁴³.
    Documented,
}

impl Rounding {
    /// 1/w
    pub(crate) fn of_weight(self, weight: u32) -> Fraction {
        match self {
            Self::None => Fraction::new(1, weight.into()),
            Self::Documented => Fraction::new((1_u64 << 43).div_ceil(weight.into()).into(), 1 << 43),
        }
    }

    /// 1/Σw
    pub(crate) fn of_sum(self, sum: u64) -> Fraction {
        match self {
            Self::None => Fraction::new(1, sum.into()),
            Self::Documented => Fraction::new((1 << 63) / i128::from(sum), 1 << 63),
        }
    }
}

#[derive(Clone, Debug)]
struct Flow {
    weight: u32,
    /// 1/w
    pace: Fraction,
    /// log₂ σ
    exponent: i32,
    start: Fraction,
    packets: Vec<u32>,
    /// When it came to its slot: the last one is served first.
    came: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct SlowQfq {
    flows: Vec<Flow>,
    now: Fraction,
    /// 1/Σw
    pace: Fraction,
    rounding: Rounding,
    /// 2 as it is built, 1 as it was published.
    slots_of_sigma: u32,
    arrivals: u64,
}

/// A group that has flows.
#[derive(Clone, Copy)]
struct Group {
    exponent: i32,
    start: Fraction,
    finish: Fraction,
}

impl SlowQfq {
    pub(crate) fn new(flows: &[FlowConfig], rounding: Rounding, slots_of_sigma: u32) -> Self {
        let sum: u64 = flows.iter().map(|flow| u64::from(flow.weight.get())).sum();
        let pace = rounding.of_sum(sum);
        let flows = flows.iter().map(|flow| {
            let weight = flow.weight.get();
            let pace = rounding.of_weight(weight);
            let most = pace * Fraction::whole(flow.longest);
            let exponent = (-43..43).find(|&e| Fraction::power_of_two(e) >= most).expect("within 2^±43");
            Flow { weight, pace, exponent, start: Fraction::ZERO, packets: Vec::new(), came: 0 }
        });
        Self { flows: flows.collect(), now: Fraction::ZERO, pace, rounding, slots_of_sigma, arrivals: 0 }
    }

    fn slot(&self, exponent: i32) -> Fraction {
        Fraction::power_of_two(exponent) * Fraction::new(1, self.slots_of_sigma.into())
    }

    fn rounded_start(&self, flow: &Flow) -> Fraction {
        flow.start.floor_to(self.slot(flow.exponent))
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for flow in self.flows.iter().filter(|flow| !flow.packets.is_empty()) {
            let start = self.rounded_start(flow);
            let finish = start + Fraction::power_of_two(flow.exponent) + self.slot(flow.exponent);
            match groups.iter_mut().find(|group| group.exponent == flow.exponent) {
                Some(group) if group.start <= start => {}
                Some(group) => (group.start, group.finish) = (start, finish),
                None => groups.push(Group { exponent: flow.exponent, start, finish }),
            }
        }
        groups
    }

    /// Groups that are eligible and not blocked by an eligible one of a higher σ.
    fn ready(&self) -> Vec<Group> {
        let mut eligible = self.groups();
        eligible.retain(|group| group.start <= self.now);
        let blocks = |a: &Group, b: &Group| a.exponent > b.exponent && a.finish < b.finish;
        eligible.iter().filter(|b| !eligible.iter().any(|a| blocks(a, b))).copied().collect()
    }

    fn catch_up(&mut self) {
        let groups = self.groups();
        if let Some(first) = groups.iter().map(|group| group.start).min() {
            self.now = self.now.max(first);
        }
    }
}

impl Model for SlowQfq {
    fn enqueue(&mut self, number: usize, length: u32) {
        if self.flows[number].packets.is_empty() {
            let exponent = self.flows[number].exponent;
            let limit = self
                .ready()
                .into_iter()
                .filter(|group| group.exponent >= exponent)
                .min_by_key(|g| g.exponent);
            let now = match self.rounding {
                Rounding::None => self.now,
                Rounding::Documented => self.now.floor_to(Fraction::power_of_two(-43)),
            };
            let mut start = self.flows[number].start.max(now);
            if let Some(limit) = limit
                && start >= limit.finish
            {
                start = limit.finish - Fraction::power_of_two(-43);
            }
            self.arrivals += 1;
            (self.flows[number].start, self.flows[number].came) = (start, self.arrivals);
        }
        self.flows[number].packets.push(length);
        self.catch_up();
    }

    fn dequeue(&mut self) -> Option<(usize, u32)> {
        let chosen = self.groups().into_iter().filter(|group| group.start <= self.now);
        let chosen = chosen.min_by_key(|group| (group.finish, group.exponent))?;
        let of_slot = self.flows.iter().enumerate().filter(|(_, flow)| {
            !flow.packets.is_empty()
                && flow.exponent == chosen.exponent
                && self.rounded_start(flow) == chosen.start
        });
        let (number, _) = of_slot.max_by_key(|(_, flow)| flow.came)?;
        let length = self.flows[number].packets.remove(0);
        let bytes = Fraction::whole(length);
        self.flows[number].start = self.flows[number].start + bytes * self.flows[number].pace;
        self.now = self.now + bytes * self.pace;
        if self.rounded_start(&self.flows[number]) != chosen.start {
            self.arrivals += 1;
            self.flows[number].came = self.arrivals;
        }
        self.catch_up();
        Some((number, length))
    }

    fn drop_first(&mut self, number: usize) -> Option<u32> {
        let flow = &mut self.flows[number];
        let dropped = (!flow.packets.is_empty()).then(|| flow.packets.remove(0));
        self.catch_up();
        dropped
    }
}

impl SlowQfq {
    /// Its share, as a fraction.
    pub(crate) fn share(&self, number: usize) -> Fraction {
        let sum: u64 = self.flows.iter().map(|flow| u64::from(flow.weight)).sum();
        Fraction::new(self.flows[number].weight.into(), sum.into())
    }

    /// `3·φ·σ + 2·φ·L`
    pub(crate) fn published_bound(&self, number: usize, longest: u32) -> Fraction {
        let flow = &self.flows[number];
        Fraction::whole(3 * i128::from(flow.weight)) * Fraction::power_of_two(flow.exponent)
            + self.share(number) * Fraction::whole(2 * i128::from(longest))
    }
}

pub(crate) fn flows(weights_and_longest: &[(u32, u32)]) -> Vec<FlowConfig> {
    let config = |&(weight, longest): &(u32, u32)| FlowConfig {
        weight: Weight::new(weight).expect("not 0"),
        longest,
        ..FlowConfig::default()
    };
    weights_and_longest.iter().map(config).collect()
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model_without_rounding() {
    // The sum of the weights is a power of two as they are themselves: nothing is rounded.
    for (weights, lengths, steps) in [
        (&[(1, 2), (1, 2)][..], &[1, 2][..], 6),
        (&[(2, 3), (2, 8)], &[1, 3], 6),
        (&[(1, 4), (1, 4), (2, 4)], &[1, 4], 6),
        (&[(4, 5), (2, 5), (2, 40)], &[2, 5], 5),
        (&[(8, 64), (4, 64), (2, 64), (2, 64)], &[64], 6),
    ] {
        let flows = flows(weights);
        exhaustive(Qfq::default, SlowQfq::new(&flows, Rounding::None, 2), &flows, lengths, steps);
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model_with_the_documented_rounding() {
    for (weights, lengths, steps) in
        [(&[(1, 3), (3, 3), (5, 3)][..], &[1, 3][..], 5), (&[(7, 9), (1, 2), (100, 1500)], &[1, 2], 5)]
    {
        let flows = flows(weights);
        exhaustive(Qfq::default, SlowQfq::new(&flows, Rounding::Documented, 2), &flows, lengths, steps);
    }
}

#[test]
fn long_random_sequences_give_the_order_of_the_model() {
    for (weights, longest_runs) in [
        (&[(1, 1500), (2, 1500), (4, 1500), (1, 64)][..], 3),
        (&[(1, 1 << 16), (1 << 20, 1 << 16), (77, 40), (1000, 9000), (3, 1), (3, 2)], 3),
        (&[(1, 1), (1, 1), (1, 1), (1, 1), (1 << 24, 1)], 3),
    ] {
        let flows = flows(weights);
        for seed in 0..longest_runs {
            random(Qfq::default(), SlowQfq::new(&flows, Rounding::Documented, 2), &flows, seed, 1500);
        }
    }
}
