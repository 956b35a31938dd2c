//! When the engine is polled changes nothing that queue management does.

use narrows_core::aqm::{
    Aqm, Choke, ChokeConfig, Codel, CodelConfig, DualPi2, DualPi2Config, LowLatency, Pie, PieConfig, Red,
    RedConfig, Sfb, SfbConfig, Thresholds,
};
use narrows_core::classify::{FlowHash, Identity};
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{
    FqCodelConfig, FqPieConfig, Hhf, HhfConfig, PacedFq, PacedFqConfig, SfqConfig, fq_codel, fq_pie, sfq,
};
use narrows_core::{Bytes, Duration, Probability, Rate, Seed, Time};
use proptest::prelude::*;

use crate::drive::{Arrival, MEGABIT, run, run_exactly};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Red,
    RedInBytes,
    Codel,
    Pie,
    DualPi2,
    Choke,
    Sfb,
    Sfq,
    FqCodel,
    FqPie,
    /// With a maximum rate for each flow, and without.
    Fq(Option<u64>),
}

const KINDS: [Kind; 12] = [
    Kind::Red,
    Kind::RedInBytes,
    Kind::Codel,
    Kind::Pie,
    Kind::DualPi2,
    Kind::Choke,
    Kind::Sfb,
    Kind::Sfq,
    Kind::FqCodel,
    Kind::FqPie,
    Kind::Fq(None),
    Kind::Fq(Some(MEGABIT)),
];

impl Kind {
    fn queue(self) -> Box<dyn Queue> {
        let managed = |policy: Box<dyn Aqm>| -> Box<dyn Queue> {
            Box::new(Fifo::managed(Bound::Packets(100), DropAt::Head, policy))
        };
        let flows = FlowHash::new(Seed(1), "wire", 8, Identity::FiveTuple);
        let codel = CodelConfig { interval: Duration::from_millis(20), ..CodelConfig::default() };
        let pie = PieConfig { burst: Duration::from_millis(30), ..PieConfig::default() };
        let bound = Bound::Packets(60);
        let never = "flows without weights are taken";
        match self {
            Self::Red => managed(Box::new(Red::new(RedConfig { weight: 0.05, ..RedConfig::default() }))),
            Self::RedInBytes => {
                let thresholds = Thresholds::Bytes { min: Bytes::new(5_000), max: Bytes::new(15_000) };
                let config = RedConfig { thresholds, weight: 0.05, gentle: true, ..RedConfig::default() };
                managed(Box::new(Red::new(config)))
            }
            Self::Codel => managed(Box::new(Codel::new(codel))),
            Self::Pie => managed(Box::new(Pie::new(pie))),
            Self::DualPi2 => {
                let low_latency = LowLatency::Step(Duration::from_millis(1));
                let config = DualPi2Config { low_latency, ..DualPi2Config::default() };
                Box::new(DualPi2::new(config, Bound::Packets(100)))
            }
            Self::Choke => {
                let red = RedConfig { weight: 0.05, ..RedConfig::default() };
                Box::new(Choke::new(ChokeConfig { red, candidates: 2 }, Bound::Packets(100)))
            }
            Self::Sfb => {
                let config = SfbConfig {
                    increment: Probability::from_ratio(1, 20).expect("a probability"),
                    rehash: Some(Duration::from_millis(60)),
                    warmup: Duration::from_millis(20),
                    ..SfbConfig::default()
                };
                Box::new(Sfb::new(config, Bound::Packets(100)))
            }
            Self::Sfq => Box::new(sfq(SfqConfig { bound, ..SfqConfig::default() }, flows).expect(never)),
            Self::FqCodel => {
                let config = FqCodelConfig { bound, codel, ..FqCodelConfig::default() };
                Box::new(fq_codel(config, flows).expect(never))
            }
            Self::Fq(rate) => {
                let config = PacedFqConfig {
                    bound,
                    flow_limit: 20,
                    initial_quantum: Bytes::new(4_000),
                    max_rate: rate.map(Rate::from_bits_per_second),
                    ce_threshold: Some(Duration::from_millis(5)),
                    ..PacedFqConfig::default()
                };
                Box::new(PacedFq::new(config, flows))
            }
            Self::FqPie => {
                let high_delay_boost = Some(Duration::from_millis(40));
                let pie = PieConfig { derandomize: true, cap_drop: true, high_delay_boost, ..pie };
                let config = FqPieConfig { bound, pie, ..FqPieConfig::default() };
                Box::new(fq_pie(config, flows).expect(never))
            }
        }
    }
}

/// Stretches of packets at different paces, in microseconds for each.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let stretch = (10usize..200, 1u64..2_500).prop_flat_map(|(packets, pace)| {
        proptest::collection::vec((0..pace, 40u32..1600, 0u16..4, 0u8..4), packets)
    });
    proptest::collection::vec(stretch, 1..5).prop_map(|stretches| {
        let mut now = 0;
        let arrival = |(gap, length, flow, ecn)| {
            now += gap * 1_000;
            Arrival { at: Time::from_nanos(now), length, flow, ecn }
        };
        stretches.concat().into_iter().map(arrival).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn polls_change_nothing_and_every_packet_has_its_verdict(
        arrivals in arrivals(),
        kind in proptest::sample::select(&KINDS[..]),
    ) {
        let late = run(kind.queue(), 10 * MEGABIT, &arrivals);
        prop_assert_eq!(&run_exactly(kind.queue(), 10 * MEGABIT, &arrivals), &late);

        let mut numbers: Vec<_> = late.iter().map(|record| record.number).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..arrivals.len()), "each packet once");
        for record in &late {
            // A mark is put on what can be marked, and never taken off.
            let came = arrivals[record.number].ecn;
            prop_assert!(record.ecn == came || came != 0 && record.ecn == 3);
        }
        // What is of one flow, and for DualPI2 of one queue, goes in order of arrival.
        let lane = |number: usize| (arrivals[number].flow, arrivals[number].ecn % 2);
        let sent: Vec<_> = late.iter().filter(|record| record.sent()).map(|record| record.number).collect();
        for flow in 0..4 {
            for parity in 0..2 {
                let own = sent.iter().filter(|&&number| lane(number) == (flow, parity));
                prop_assert!(own.is_sorted(), "in order");
            }
        }
    }

    /// A flow that becomes heavy, or light again, may overtake itself.
    #[test]
    fn polls_change_nothing_of_heavy_flows(arrivals in arrivals()) {
        let queue = || -> Box<dyn Queue> {
            Box::new(Hhf::new(HhfConfig {
                bound: Bound::Packets(60),
                admit: Bytes::new(15_000),
                reset: Duration::from_millis(50),
                evict: Duration::from_millis(30),
                heavy_limit: 3,
                ..HhfConfig::default()
            }))
        };
        let late = run(queue(), 10 * MEGABIT, &arrivals);
        prop_assert_eq!(&run_exactly(queue(), 10 * MEGABIT, &arrivals), &late);
        let mut numbers: Vec<_> = late.iter().map(|record| record.number).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..arrivals.len()), "each packet once");
    }
}
