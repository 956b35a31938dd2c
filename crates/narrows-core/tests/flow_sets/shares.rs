//! The references' examples on a link: shares as their text says them, up to the bound of WF2Q+.

use narrows_core::classify::FlowMask;
use narrows_core::queue::Queue;
use narrows_core::sched::{FlowSet, Wf2q};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, PortId, Rate, Seed, Target, Time, Verdict,
};

use crate::stand::{SOURCES, key, ms, queue, set, source, weight};

const LENGTH: u32 = 1000;

/// A link with the queue, from port `in` to port `out`.
pub(crate) fn network(rate: Rate, queue: Box<dyn Queue>) -> NetworkConfig {
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    link.service = Box::new(ConstantRate(rate));
    link.queue = queue;
    let entry = Target::Link { name: "link".into(), lane: 0 };
    let mut config = NetworkConfig::new(Seed(1));
    config.links = vec![link];
    config.ports = vec![
        PortConfig { name: "in".into(), entry },
        PortConfig { name: "out".into(), entry: Target::Port("out".into()) },
    ];
    config
}

pub(crate) fn packet(key: FlowKey, length: u32) -> Packet<FlowKey> {
    Packet { length, link_header: 0, network_header: 20, key, headers: Default::default(), body: key }
}

struct Wire {
    engine: Engine<FlowKey>,
    port: PortId,
    /// Set and source of each packet that has left, with the instant.
    left: Vec<(Time, u32, u32)>,
}

impl Wire {
    fn new(megabits: u64, sets: Vec<FlowSet>) -> Self {
        let rate = Rate::from_bits_per_second(megabits * 1_000_000);
        let engine =
            Engine::new(network(rate, Box::new(queue(Wf2q::default(), sets)))).expect("names are unique");
        let port = engine.port("in").expect("it was configured");
        Self { engine, port, left: Vec::new() }
    }

    fn hand_in(&mut self, at: Time, set: u32, source: u32, packets: u64) {
        for _ in 0..packets {
            self.engine.hand_in(at, self.port, packet(key(set, source), LENGTH));
        }
    }

    fn poll(&mut self, until: Time) {
        while let Some(event) = self.engine.poll(until) {
            assert!(matches!(event.verdict, Verdict::Delivered(_)), "nothing is bounded here");
            let key = event.body.get();
            self.left.push((event.at, key.mark, source(key)));
        }
    }

    /// Packets of a flow that left between two instants.
    fn count(&self, set: u32, source: Option<u32>, from: Time, to: Time) -> u64 {
        let of_flow = |&&(at, of, by): &&(Time, u32, u32)| {
            at > from && at <= to && of == set && source.is_none_or(|source| source == by)
        };
        self.left.iter().filter(of_flow).count() as u64
    }
}

/// A flow that waits from an instant on lags behind its share by at most two packets, and is ahead by at most one: of those
/// that are ahead only one that has begun by V is served.
fn is_share(found: u64, all: u64, share: (u64, u64), slack: f64) {
    let expected = all as f64 * share.0 as f64 / share.1 as f64;
    let off = found as f64 - expected;
    assert!(off.abs() <= slack, "{found} of {all} packets, which should be {expected}");
}

/// Rizzo, "New developments in link emulation and packet scheduling", 2010:
/// `queue 1 config sched 5 weight 10`, `queue 2 config sched 5 mask dst-ip 0xff weight 1`. Here the mask is
/// one of sources.
#[test]
fn one_of_weight_10_and_many_of_weight_1() {
    for sources in [1, 2, 5, 40] {
        let low_byte = FlowMask { source_v4: 0xff, ..FlowMask::NONE };
        let mut wire = Wire::new(8, vec![set(FlowMask::NONE, weight(10)), set(low_byte, weight(1))]);
        // Packets take a millisecond. Those of queue 1 come from everywhere, and are one flow.
        let (end, all) = (ms(2_000), 2_000);
        for n in 0..2_010 {
            wire.hand_in(Time::ZERO, 0, n % 77, 1);
        }
        let each = all / (10 + sources) + 10;
        for source in 1..=sources as u32 {
            // The same low byte is the same flow, whatever is before it.
            wire.hand_in(Time::ZERO, 1, source, each / 2);
            wire.hand_in(Time::ZERO, 1, source | 0x5_0100, each - each / 2);
        }
        wire.poll(end);
        assert_eq!(wire.left.len() as u64, all, "the wire is never idle");
        is_share(wire.count(0, None, Time::ZERO, end), all, (10, 10 + sources), 2.0);
        for source in 1..=sources as u32 {
            let of = |source| wire.count(1, Some(source), Time::ZERO, end);
            is_share(of(source) + of(source | 0x5_0100), all, (1, 10 + sources), 2.0);
        }
        let flows = wire.engine.view(wire.engine.link("link").expect("it was configured")).masked_flows(end);
        assert_eq!(flows.len() as u64, 1 + sources);
    }
}

/// Carbone and Rizzo, "Dummynet Revisited", section 3.6: 4 Mbit/s, a queue of weight 20, and one of weight 10 for each source.
#[test]
fn four_megabits_by_weights_20_and_10() {
    for sources in [1, 2, 3, 6, 18] {
        let mut wire = Wire::new(4, vec![set(FlowMask::NONE, weight(20)), set(SOURCES, weight(10))]);
        // Packets take 2 ms.
        let (end, all) = (ms(4_000), 2_000);
        wire.hand_in(Time::ZERO, 0, 1, all);
        for source in 0..sources {
            wire.hand_in(Time::ZERO, 1, source, all / u64::from(sources + 2) + 10);
        }
        wire.poll(end);
        // 2 Mbit/s and two times 1 Mbit/s where there are two sources: 4 Mbit/s by 2 : 1 : …
        let rate = |packets: u64| packets as f64 * 8e3 / 4.0;
        let fixed = wire.count(0, None, Time::ZERO, end);
        is_share(fixed, all, (2, u64::from(sources) + 2), 2.0);
        assert!((rate(fixed) - 4e6 * 2.0 / f64::from(sources + 2)).abs() <= 4_000.0);
        for source in 0..sources {
            is_share(wire.count(1, Some(source), Time::ZERO, end), all, (1, u64::from(sources) + 2), 2.0);
        }
    }
}

/// A source that falls silent leaves its share to the others in proportion, and one that comes back has it again, expired or
/// not.
#[test]
fn shares_are_among_those_that_send() {
    for silence in [40, 3_000] {
        let mut wire = Wire::new(8, vec![set(FlowMask::NONE, weight(20)), set(SOURCES, weight(10))]);
        wire.hand_in(Time::ZERO, 0, 0, 4_500);
        wire.hand_in(Time::ZERO, 1, 1, 2_500);
        // Half a second's worth of a quarter of 1,000 packets a second.
        wire.hand_in(Time::ZERO, 1, 2, 125);
        wire.poll(ms(540));
        let back = ms(540 + silence);
        wire.hand_in(back, 1, 2, 300);
        let end = back + narrows_core::Duration::from_secs(1);
        wire.poll(end);
        for (from, to, of) in [(ms(0), ms(495), 4), (ms(505), back, 3), (back, end, 4)] {
            let all = (to.nanos() - from.nanos()) / 1_000_000;
            // Up to two at either end.
            is_share(wire.count(0, None, from, to), all, (2, of), 4.0);
            is_share(wire.count(1, Some(1), from, to), all, (1, of), 4.0);
        }
        is_share(wire.count(1, Some(2), back, end), 1_000, (1, 4), 4.0);
        let counts = wire.engine.view(wire.engine.link("link").expect("it was configured")).flow_sets();
        assert_eq!((counts[0].made, counts[0].expired), (1, 0));
        assert_eq!((counts[1].made, counts[1].expired), if silence > 100 { (3, 1) } else { (2, 0) });
    }
}

/// The reference clamps weights to 100.
#[test]
fn weights_are_as_great_as_the_scheduler_takes() {
    for heavy in [101, 1_000, Wf2q::MOST_WEIGHT] {
        let mut wire = Wire::new(8, vec![set(FlowMask::NONE, weight(heavy)), set(SOURCES, weight(1))]);
        wire.hand_in(Time::ZERO, 0, 0, 5_001);
        wire.hand_in(Time::ZERO, 1, 1, 100);
        wire.poll(ms(5_000));
        let of = u64::from(heavy) + 1;
        is_share(wire.count(1, None, Time::ZERO, ms(5_000)), 5_000, (1, of), 2.0);
    }
}
