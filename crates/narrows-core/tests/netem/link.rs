//! Links that are the single queue, that become it, and that were it.

use std::collections::BTreeSet;

use narrows_core::model::{Constant, Independent};
use narrows_core::netem::{Chance, Loss, Netem, Share, SlotGap, Slots};
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Change, Duration, Engine, FlowKey, LinkConfig, Mtu, MtuPolicy, NetworkConfig, Packet, PortConfig, PortId,
    Probability, Rate, Seed, Target, Time, Verdict,
};

const MILLISECOND: u64 = 1_000_000;

struct Run {
    engine: Engine<u32>,
    port: PortId,
}

fn milliseconds(n: u64) -> Time {
    Time::from_nanos(n * MILLISECOND)
}

fn delay(milliseconds: u64) -> Option<Box<Netem>> {
    Some(Box::new(Netem { delay: Duration::from_millis(milliseconds), ..Netem::default() }))
}

impl Run {
    fn new(link: LinkConfig) -> Self {
        let mut config = NetworkConfig::new(Seed(3));
        let entry = Target::Link { name: link.name.clone(), lane: 0 };
        config.links.push(link);
        config.ports.push(PortConfig { name: "in".into(), entry });
        config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });
        let engine = Engine::new(config).expect("the names are there");
        let port = engine.port("in").expect("it was configured");
        Self { engine, port }
    }

    fn send(&mut self, at: Time, number: u32, ecn: u8) {
        let key = FlowKey { traffic_class: ecn, ..FlowKey::default() };
        let packet = Packet {
            length: 1000,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key,
            body: number,
        };
        self.engine.hand_in(at, self.port, packet);
    }

    fn change(&mut self, at: Time, change: Change) {
        let link = self.engine.links().next().expect("there is one");
        self.engine.change(at, link, change);
    }

    /// When each packet leaves and how long it waited in queues, in milliseconds.
    fn queued(&mut self) -> Vec<(u64, u64)> {
        let mut left = Vec::new();
        while let Some(event) = self.engine.poll(milliseconds(1_000_000)) {
            left.push((event.at.nanos() / MILLISECOND, event.queued.nanos() / MILLISECOND));
        }
        left
    }

    /// When which packet leaves, in milliseconds.
    fn departures(&mut self) -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        while let Some(event) = self.engine.poll(milliseconds(1_000_000)) {
            assert!(matches!(event.verdict, Verdict::Delivered(_)), "{event:?}");
            left.push((event.at.nanos() / MILLISECOND, *event.body.get()));
        }
        left
    }
}

fn link() -> LinkConfig {
    LinkConfig::new("link", Target::Port("out".into()))
}

#[test]
fn every_other_part_is_off() {
    let mut config = link();
    config.service = Box::new(ConstantRate(Rate::DOWN));
    config.delay = Box::new(Constant(Duration::from_secs(1)));
    config.wire_loss = Some(narrows_core::Loss::of(Independent(Probability::ONE)));
    config.settings.mtu = Some(Mtu { bytes: 100, policy: MtuPolicy::BlackHole });
    config.settings.line_limit = Some(0);
    config.netem = delay(7);
    let mut run = Run::new(config);
    run.send(milliseconds(1), 0, 0);
    assert_eq!(run.departures(), [(8, 0)]);
}

#[test]
fn packets_inside_keep_their_instants_through_changes() {
    let mut run = Run::new(LinkConfig { netem: delay(20), ..link() });
    run.send(milliseconds(0), 0, 0);
    run.change(milliseconds(5), Change::Netem(delay(2)));
    run.send(milliseconds(6), 1, 0);
    run.change(milliseconds(7), Change::Netem(delay(30)));
    run.send(milliseconds(7), 2, 0);
    run.change(milliseconds(9), Change::Netem(None));
    // Plain now, with order kept: not before those that entered before it.
    run.send(milliseconds(10), 3, 0);
    assert_eq!(run.departures(), [(8, 1), (20, 0), (37, 2), (37, 3)]);

    let mut run = Run::new(LinkConfig { delay: Box::new(Constant(Duration::from_millis(20))), ..link() });
    run.send(milliseconds(0), 0, 0);
    run.change(milliseconds(5), Change::Netem(delay(2)));
    run.send(milliseconds(6), 1, 0);
    assert_eq!(run.departures(), [(8, 1), (20, 0)]);
}

/// In the single queue packets wait until they leave, whatever changes; in the delay line that takes them over they do not.
#[test]
fn changes_keep_the_due_instants_and_count_all_the_waiting() {
    let fifo = || Box::new(Fifo::new(Bound::Packets(5), DropAt::Tail));
    for (change, waited) in [
        (Change::Netem(delay(2)), 20),
        (Change::QueueBound(Bound::Packets(1)), 20),
        (Change::Queue(fifo()), 5),
        (Change::Netem(None), 5),
    ] {
        let what = format!("{change:?}");
        let mut run = Run::new(LinkConfig { netem: delay(20), ..link() });
        run.send(milliseconds(0), 0, 0);
        run.change(milliseconds(5), change);
        assert_eq!(run.queued(), [(20, waited)], "{what}");
    }
}

/// A new kind of queue in place of the single one finds nothing there, and packets behind those in flight stay there.
#[test]
fn a_queue_in_place_of_the_single_one_keeps_order() {
    let mut run = Run::new(LinkConfig { netem: delay(20), ..link() });
    run.send(milliseconds(0), 0, 0);
    run.send(milliseconds(1), 1, 0);
    run.change(milliseconds(5), Change::Queue(Box::new(Fifo::new(Bound::Packets(5), DropAt::Tail))));
    run.send(milliseconds(10), 2, 0);
    run.send(milliseconds(30), 3, 0);
    assert_eq!(run.departures(), [(20, 0), (21, 1), (21, 2), (30, 3)]);
}

#[test]
fn no_slot_is_drawn_again_after_a_change() {
    let slots = || {
        let gap = SlotGap::Between(Duration::ZERO, Duration::from_millis(10));
        Some(Box::new(Netem { slots: Some(Slots { gap, packets: 1, bytes: 0 }), ..Netem::default() }))
    };
    let mut run = Run::new(LinkConfig { netem: slots(), ..link() });
    let mut left = Vec::new();
    for round in 0..3 {
        let start = milliseconds(1000 * round);
        if round == 2 {
            run.change(start, Change::Netem(None));
        }
        run.change(start, Change::Netem(slots()));
        (0..6).for_each(|number| run.send(start, number, 0));
        let mut round = Vec::new();
        while let Some(event) = run.engine.poll(start + Duration::from_millis(900)) {
            round.push(event.at.nanos());
        }
        assert_eq!(round.len(), 6);
        left.push(round);
    }
    let gaps: Vec<_> = left.iter().flat_map(|round| round.windows(2).map(|two| two[1] - two[0])).collect();
    let different: BTreeSet<_> = gaps.iter().collect();
    assert_eq!(different.len(), gaps.len(), "of 15 gaps of up to 10⁷ ns no two are the same: {gaps:?}");
}

#[test]
fn what_waited_for_a_transmitter_leaves_at_once() {
    let mut run = Run::new(LinkConfig { service: Box::new(ConstantRate(Rate::DOWN)), ..link() });
    (0..3).for_each(|number| run.send(milliseconds(0), number, 0));
    run.change(milliseconds(5), Change::Netem(delay(2)));
    run.send(milliseconds(5), 3, 0);
    assert_eq!(run.departures(), [(5, 0), (5, 1), (5, 2), (7, 3)]);
}

/// What the link counts is what its packets show.
#[test]
fn everything_is_counted() {
    let chance =
        |percent| Chance { share: Share::from_percent(percent).expect("a percentage"), ..Chance::NEVER };
    let netem = Netem {
        delay: Duration::from_millis(5),
        loss: Loss::Random(chance(30.0)),
        ecn: true,
        duplication: chance(20.0),
        corruption: chance(25.0),
        reorder: chance(40.0),
        gap: 3,
        ..Netem::default()
    };
    let mut run = Run::new(LinkConfig { netem: Some(Box::new(netem)), ..link() });
    let packets = 20_000;
    let (mut marked, mut corrupted, mut twins, mut at_once, mut lost) = (0, 0, 0, 0, 0);
    for number in 0..packets {
        let at = milliseconds(10 * u64::from(number));
        run.send(at, number, (number % 2) as u8);
        while let Some(event) = run.engine.poll(milliseconds(10 * u64::from(number) + 9)) {
            if !matches!(event.verdict, Verdict::Delivered(_)) {
                lost += 1;
                continue;
            }
            marked += u64::from(event.key.traffic_class == 3 && event.copy == 0);
            corrupted += u64::from(!event.flips.is_empty());
            assert!(event.flips.len() <= 1 && event.flips.iter().all(|&bit| bit < 8000), "{event:?}");
            twins += u64::from(event.copy > 0);
            at_once += u64::from(event.at == at);
        }
    }
    let view = run.engine.view(run.engine.links().next().expect("there is one"));
    let counters = &view.counters()[0];
    let seen = [at_once, corrupted, lost, counters.left.packets];
    let dropped = counters.dropped_in_all().packets;
    assert_eq!(
        seen,
        [
            counters.reordered,
            counters.corrupted,
            dropped,
            u64::from(packets) + counters.duplicated.packets - dropped
        ]
    );
    // A twin may be lost, or made of a packet that was marked.
    assert!(twins <= counters.duplicated.packets && marked <= counters.marked, "{counters:?}");
    // Within 4 standard errors of the binomials. Of half the packets, those that can be marked, 30 % are; of the others the
    // loss takes as many, and a duplicate with a loss is neither.
    let binomial = |count: u64, n: f64, p: f64| {
        let error = (n * p * (1.0 - p)).sqrt();
        assert!((count as f64 - n * p).abs() < 4.0 * error, "{count} of {n} at {p}");
    };
    let n = f64::from(packets);
    binomial(counters.duplicated.packets, n, 0.2 * (0.5 + 0.5 * 0.7));
    binomial(counters.corrupted, (counters.left.packets) as f64, 0.25);
    binomial(marked, n / 2.0, 0.3);
}
