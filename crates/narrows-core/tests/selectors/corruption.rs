//! Flipped bits: by a rate of errors, against the binomial and the geometric distribution.

use narrows_core::model::selector::SelectorError;
use narrows_core::{
    BitErrors, Corruption, Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, PortId, Seed,
    Target, Time, Verdict,
};

use crate::sample::{Estimate, assert_lengths, ratio};

/// Sends packets through one link, one at a time.
pub(crate) struct Sender {
    pub(crate) engine: Engine<()>,
    port: PortId,
    sent: u64,
}

impl Sender {
    pub(crate) fn new(seed: u64, link: LinkConfig) -> Self {
        let mut config = NetworkConfig::new(Seed(seed));
        let entry = Target::Link { name: link.name.clone(), lane: 0 };
        config.links.push(link);
        config.ports.push(PortConfig { name: "in".into(), entry });
        config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });
        let engine = Engine::new(config).expect("the names are there");
        let port = engine.port("in").expect("it was configured");
        Self { engine, port, sent: 0 }
    }

    /// The bits that were flipped, unless it was lost.
    pub(crate) fn send(&mut self, length: u32) -> Option<Vec<u32>> {
        self.send_with(FlowKey::default(), length).map(|(_, flips)| flips)
    }

    /// Also the key that it has in the end.
    pub(crate) fn send_with(&mut self, key: FlowKey, length: u32) -> Option<(FlowKey, Vec<u32>)> {
        let at = Time::from_nanos(self.sent);
        self.sent += 1;
        self.engine.hand_in(
            at,
            self.port,
            Packet {
                length,
                link_header: 14,
                network_header: 20,
                headers: Default::default(),
                key,
                body: (),
            },
        );
        let event = self.engine.poll(at).expect("there is no delay");
        matches!(event.verdict, Verdict::Delivered(_)).then_some((event.key, event.flips))
    }
}

fn errors(numerator: u64, denominator: u64) -> Sender {
    let mut config = LinkConfig::new("link", Target::Port("out".into()));
    let errors = BitErrors::new(ratio(numerator, denominator)).expect("not too high");
    config.corruption = Some(Corruption::BitErrors(errors));
    Sender::new(5, config)
}

#[test]
fn bits_and_packets_are_hit_as_often_as_they_should() {
    let packets = 20_000;
    for (length, one_in) in [(1500, 1_000_000), (1500, 20_000), (60_000, 1_000_000), (40, 1_000)] {
        let mut sender = errors(1, one_in);
        let flips: Vec<f64> =
            (0..packets).map(|_| sender.send(length).expect("nothing is lost").len() as f64).collect();
        let (bits, e) = (f64::from(length) * 8.0, 1.0 / one_in as f64);
        let what = format!("{length} bytes, 1 bit in {one_in}");
        // The binomial's own errors, since at the lowest rate few packets are hit.
        let error = |variance: f64| (variance / f64::from(packets)).sqrt();
        let hit: Vec<f64> = flips.iter().map(|&n| f64::from(u8::from(n > 0.0))).collect();
        let share = 1.0 - libm::pow(1.0 - e, bits);
        Estimate { error: error(bits * e * (1.0 - e)), ..Estimate::of(&flips) }.assert_is(bits * e, &what);
        Estimate { error: error(share * (1.0 - share)), ..Estimate::of(&hit) }.assert_is(share, &what);

        let view = sender.engine.view(sender.engine.links().next().expect("one"));
        let counters = &view.counters()[0];
        assert_eq!(counters.flipped as f64, flips.iter().sum::<f64>());
        assert_eq!(counters.corrupted as f64, hit.iter().sum::<f64>());
    }
}

#[test]
fn gaps_between_errors_are_geometric_and_places_uniform() {
    let (mut sender, length) = (errors(1, 20), 60_000);
    let mut gaps = Vec::new();
    for _ in 0..10 {
        let flips = sender.send(length).expect("nothing is lost");
        assert!(flips.is_sorted() && flips.iter().all(|&bit| bit < 8 * length));
        // The first counts from before the packet; the last is cut off, which at 24,000 gaps a packet shows in none.
        let places = std::iter::once(-1).chain(flips.iter().map(|&bit| i64::from(bit))).collect::<Vec<_>>();
        gaps.extend(places.windows(2).map(|two| (two[1] - two[0]) as usize));
    }
    assert_lengths(&gaps, |gap| 0.05 * libm::pow(0.95, (gap - 1) as f64), "gaps");

    // Where a packet is hit but seldom, it is hit anywhere: the mean place, and its spread, of a uniform distribution.
    let mut sender = errors(1, 100_000);
    let bits = 12_000.0;
    let places: Vec<f64> = (0..30_000)
        .flat_map(|_| sender.send(1500).expect("nothing is lost"))
        .map(|bit| f64::from(bit) + 0.5)
        .collect();
    Estimate::of(&places).assert_is(bits / 2.0, "mean place");
    let squares: Vec<f64> = places.iter().map(|place| libm::pow(place - bits / 2.0, 2.0)).collect();
    Estimate::of(&squares).assert_is(bits * bits / 12.0, "spread of places");
}

#[test]
fn no_errors_and_too_many() {
    let mut none = errors(0, 1);
    assert!((0..1000).all(|_| none.send(60_000).expect("nothing is lost").is_empty()));
    let rate = ratio(11, 100);
    let refused = BitErrors::new(rate).unwrap_err();
    assert_eq!(refused, SelectorError::BitErrors(rate));
    assert_eq!(refused.to_string(), "a bit error rate of 11% is too high: at most 10% is allowed");
}
