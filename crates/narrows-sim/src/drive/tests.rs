//! Against closed forms, on networks made by hand.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::service::ConstantRate;
use narrows_core::source::{Arrivals, Lengths, Pace, Source, SourceConfig};
use narrows_core::{
    Change, DropReason, Engine, FlowKey, LinkConfig, NetworkConfig, PortConfig, PortId, Rate, Seed, Target,
    model,
};

use narrows_scenario::EngineChange;

use super::*;
use crate::output::Rows;
use crate::series::{Series, Sink};
use crate::watched::Watchers;
use narrows_traffic::Body;
use narrows_traffic::{Origin, Sources};

const MEGABIT: u64 = 1_000_000;

/// One direction: port `a`, link `wire`, port `b`.
fn engine(rate: Rate, delay: Duration, bound: Bound) -> Engine<Body> {
    let mut link = LinkConfig::new("wire", Target::Port("b".into()));
    link.service = Box::new(ConstantRate(rate));
    link.delay = Box::new(model::Constant(delay));
    link.queue = Box::new(Fifo::new(bound, DropAt::Tail));
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    let entry = Target::Link { name: "wire".into(), lane: 0 };
    config.ports.push(PortConfig { name: "a".into(), entry });
    config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
    Engine::new(config).expect("the names are right")
}

fn source(name: &str, port: PortId, arrivals: Arrivals, lengths: Lengths, packets: u64) -> Origin {
    let config =
        SourceConfig { arrivals, lengths, start: Time::ZERO, stop: Time::NEVER, packets: Some(packets) };
    Origin::generated(name, port, Source::new(Seed(1), name, config), FlowKey::default())
}

type Listed<I> = std::iter::Peekable<I>;

impl<I: Iterator<Item = (Time, EngineChange)>> Changes for Listed<I> {
    fn peek(&mut self) -> Option<Time> {
        self.peek().map(|(at, ..)| *at)
    }

    fn take(&mut self) -> Result<Vec<EngineChange>, SimError> {
        Ok(self.next().map(|(_, change)| change).into_iter().collect())
    }
}

/// Another rate of the wire.
fn at_rate_of_wire(rate: Rate) -> EngineChange {
    EngineChange::Link { link: "wire".into(), change: Change::Service(Box::new(ConstantRate(rate))) }
}

fn no_changes() -> Box<dyn Changes> {
    Box::new(std::iter::empty().peekable())
}

/// Memory that a test reads after a run wrote to it.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("outputs are text")
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn drive(
    engine: Engine<Body>,
    feeds: Vec<Origin>,
    changes: Box<dyn Changes>,
    watchers: Watchers,
) -> Drive<'static> {
    let inputs = Sources::new(feeds);
    let watch = Box::leak(Box::new(|_| ControlFlow::Continue(())));
    Drive::new(Watched::new(engine, inputs.names(), watchers), inputs, changes, watch)
}

/// What became of each packet: its number, its wait, its end, delivered or not.
#[derive(Debug, PartialEq)]
struct Seen {
    number: u64,
    queued: u64,
    at: u64,
    dropped: Option<DropReason>,
}

/// Runs a single source through one link and gives all packets in the order of verdicts, from the packet records.
fn run(
    engine: Engine<Body>,
    feed: Origin,
    changes: Box<dyn Changes>,
    until: Option<Time>,
) -> (Vec<Seen>, Drive<'static>, End) {
    let memory = Memory::default();
    let packets = Rows::to(memory.clone());
    let watchers = Watchers { packets: Some(packets), ..Watchers::default() };
    let mut drive = drive(engine, vec![feed], changes, watchers);
    let end = drive.run(until).expect("memory takes all");
    (memory.text().lines().skip(1).map(seen).collect(), drive, end)
}

fn seen(line: &str) -> Seen {
    let columns: Vec<_> = line.split(',').collect();
    let number = |at: usize| columns[at].parse().expect("a number");
    let reason = DropReason::ALL.into_iter().find(|reason| reason.name() == columns[14]);
    assert_eq!(reason.is_some(), columns[12] == "dropped");
    Seen { number: number(1), queued: number(15), at: number(16), dropped: reason }
}

fn at_rate(bits: u64) -> Arrivals {
    Arrivals::Constant(Pace::Bits(Rate::from_bits_per_second(bits)))
}

/// D/D/1 above capacity: packet n comes at n·g and waits n·(s − g), exactly.
#[test]
fn a_queue_of_even_arrivals_grows_by_the_difference_of_gap_and_service() {
    let engine =
        engine(Rate::from_bits_per_second(MEGABIT), Duration::from_millis(10), Bound::Packets(u64::MAX));
    let feed = source("s", engine.port("a").unwrap(), at_rate(MEGABIT * 5 / 4), Lengths::Fixed(1000), 1000);
    let (seen, drive, end) = run(engine, feed, no_changes(), None);
    let (gap, service) = (6_400_000, 8_000_000);
    let expected = (0..1000).map(|n| Seen {
        number: n,
        queued: n * (service - gap),
        at: (n + 1) * service + 10_000_000,
        dropped: None,
    });
    assert!(seen.into_iter().eq(expected));
    assert_eq!(
        end,
        End { at: Time::from_nanos(1000 * service + 10_000_000), stuck: false, broken_off: false }
    );
    assert_eq!(drive.network.engine.inside(), 0);
}

/// D/D/1 below capacity: nobody waits.
#[test]
fn even_arrivals_below_the_rate_never_wait() {
    let engine = engine(Rate::from_bits_per_second(MEGABIT), Duration::ZERO, Bound::Packets(1));
    let feed = source("s", engine.port("a").unwrap(), at_rate(MEGABIT), Lengths::Fixed(1000), 1000);
    let (seen, ..) = run(engine, feed, no_changes(), None);
    assert!(seen.iter().all(|s| s.queued == 0 && s.dropped.is_none()));
    assert_eq!(seen.len(), 1000);
}

/// Overload for 31 s. The wire is never idle, so by t it has sent exactly ⌊rate·t⌋. Packets come faster than they are
/// sent, so that after every arrival the queue is full: what came up to the last one was sent, dropped, or is one of
/// the packets in the queue and the one on the wire.
#[test]
fn overload_is_delivered_at_the_rate_and_the_rest_is_dropped() {
    for (rate, queue) in [(500_000, 2), (1_500_000, 13), (10 * MEGABIT, 84), (100 * MEGABIT, 834)] {
        let (bits, end, delay) = (1498 * 8, 31_000_000_000, 50_000_000);
        let engine =
            engine(Rate::from_bits_per_second(rate), Duration::from_nanos(delay), Bound::Packets(queue));
        let sent = |nanos: u64| (u128::from(rate) * u128::from(nanos) / (bits * 1_000_000_000)) as u64;
        let feed =
            source("s", engine.port("a").unwrap(), at_rate(rate * 6 / 5), Lengths::Fixed(1498), u64::MAX);
        let (seen, drive, _) = run(engine, feed, no_changes(), Some(Time::from_nanos(end)));
        // What was sent in the last 50 ms is still in the delay line.
        let delivered = seen.iter().filter(|s| s.dropped.is_none()).count() as u64;
        assert_eq!(delivered, sent(end - delay), "at {rate} bit/s");

        let wire = drive.network.engine.view(drive.network.engine.link("wire").unwrap());
        let wire = &wire.counters()[0];
        let arrivals = wire.arrivals;
        let dropped = seen.iter().filter(|s| s.dropped == Some(DropReason::QueueFull)).count() as u64;
        assert_eq!(dropped, wire.arrived.packets - sent(arrivals.1.nanos()) - (queue + 1), "at {rate} bit/s");
        assert_eq!(delivered + dropped + drive.network.engine.inside(), wire.arrived.packets);
    }
}

/// M/D/1: the mean wait is ρ/(2(1 − ρ)) service times (Pollaczek–Khinchine). The standard error comes from the means
/// of 50 batches of 20,000 packets, each of which is far longer than the queue's memory at ρ = 0.8.
#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    let (batches, size, load) = (50, 20_000, 0.8);
    let engine = engine(Rate::from_bits_per_second(8 * MEGABIT), Duration::ZERO, Bound::Packets(u64::MAX));
    // 1000 bytes take 1 ms; 800 packets a second.
    let pace = Pace::Packets { count: 800, per: Duration::from_secs(1) };
    let port = engine.port("a").unwrap();
    let feed = source("s", port, Arrivals::Poisson(pace), Lengths::Fixed(1000), (batches + 1) * size);
    let (seen, ..) = run(engine, feed, no_changes(), None);
    // The first batch fills the queue.
    let waits: Vec<f64> = seen[size as usize..].iter().map(|s| s.queued as f64).collect();
    let means: Vec<f64> =
        waits.chunks(size as usize).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let expected = 1e6 * load / (2.0 * (1.0 - load));
    println!("mean wait {mean:.0} ns, expected {expected:.0} ns, standard error {error:.0} ns");
    assert!((mean - expected).abs() < 3.0 * error);
    // A test that could not fail would have a standard error of any size: this one is below 1 %.
    assert!(error < 0.01 * expected);
}

/// Two sources over 100 ms, with a change of rate on the way: all outputs, byte by byte, however seldom it is polled.
#[test]
fn outputs_do_not_depend_on_when_the_engine_is_polled() {
    let outputs = |poll_every| {
        let engine = engine(Rate::from_bits_per_second(MEGABIT), Duration::from_millis(3), Bound::Packets(5));
        let port = engine.port("a").unwrap();
        let mix = Lengths::Mix(vec![(40, 2), (576, 1), (1500, 1)]);
        let pace = Pace::Packets { count: 1000, per: Duration::from_secs(1) };
        let feeds = vec![
            source("x", port, Arrivals::Poisson(pace), mix, 100),
            source("y", port, at_rate(MEGABIT / 2), Lengths::Fixed(500), 20),
        ];
        let faster = at_rate_of_wire(Rate::from_bits_per_second(2 * MEGABIT));
        let changes = Box::new(std::iter::once((Time::from_nanos(50_000_000), faster)).peekable());
        let (packets, series) = (Memory::default(), Memory::default());
        let interval = Duration::from_millis(7);
        let watchers = Watchers {
            packets: Some(Rows::to(packets.clone())),
            series: Some(Series::new(Sink::File(Rows::to(series.clone())), interval, &engine)),
            ..Watchers::default()
        };
        let mut drive = drive(engine, feeds, changes, watchers);
        drive.poll_every(poll_every);
        drive.run(None).unwrap();
        (packets.text(), series.text())
    };
    let (packets, series) = outputs(1);
    assert_eq!(packets.lines().count(), 121);
    assert!(packets.contains(",queue full,") && series.lines().count() > 20);
    assert_eq!((&packets, &series), (&outputs(1).0, &outputs(1).1));
    for poll_every in [2, 7, 1000] {
        let other = outputs(poll_every);
        assert_eq!((&packets, &series), (&other.0, &other.1));
    }
}

/// The series adds up to what the links and ports counted.
#[test]
fn a_series_adds_up() {
    let engine = engine(Rate::from_bits_per_second(MEGABIT), Duration::from_millis(5), Bound::Packets(3));
    let feed = source("s", engine.port("a").unwrap(), at_rate(2 * MEGABIT), Lengths::Fixed(1000), 500);
    let memory = Memory::default();
    let series = Series::new(Sink::File(Rows::to(memory.clone())), Duration::from_millis(100), &engine);
    let watchers = Watchers { series: Some(series), ..Watchers::default() };
    let end = drive(engine, vec![feed], no_changes(), watchers).run(None).unwrap();
    let text = memory.text();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let sum = |kind: &str, column: usize| -> u64 {
        rows.iter().filter(|row| row[2] == kind).map(|row| row[column].parse::<u64>().unwrap_or(0)).sum()
    };
    assert_eq!(sum("link", 10) + sum("link", 11), 500);
    assert_eq!((sum("flow", 10), sum("flow", 11)), (sum("link", 10), sum("link", 11)));
    // While the queue is full: 1 Mbit/s, three packets waiting, and a packet waits for between two and three others.
    let row = rows.iter().find(|row| row[2] == "link" && row[0] == "1000000000").unwrap();
    assert_eq!((row[5], row[9]), ("3", "960000"), "twelve whole packets of 8 ms end in this 100 ms");
    let sojourn: u64 = row[8].parse().unwrap();
    assert!((16_000_000..=24_000_000).contains(&sojourn));
    assert_eq!(rows.last().unwrap()[1], end.at.nanos().to_string());
}

#[test]
fn a_wire_that_stays_down_does_not_hang_the_run() {
    let engine = engine(Rate::DOWN, Duration::ZERO, Bound::Packets(3));
    let port = engine.port("a").unwrap();
    let feed = source("s", port, at_rate(MEGABIT), Lengths::Fixed(1000), 10);
    // Somebody keeps setting it to down, for ever.
    let changes =
        (0..).map(move |second| (Time::from_nanos(second * 1_000_000_000), at_rate_of_wire(Rate::DOWN)));
    let (seen, drive, end) = run(engine, feed, Box::new(changes.peekable()), None);
    assert!(end.stuck);
    assert_eq!((seen.len(), drive.network.engine.inside()), (6, 4));
}

#[test]
fn a_wire_that_comes_up_late_lets_all_leave() {
    let engine = engine(Rate::DOWN, Duration::ZERO, Bound::Packets(20));
    let port = engine.port("a").unwrap();
    let feed = source("s", port, at_rate(MEGABIT), Lengths::Fixed(1000), 10);
    let up = at_rate_of_wire(Rate::from_bits_per_second(MEGABIT));
    let changes = std::iter::once((Time::from_nanos(5_000_000_000), up));
    let (seen, _, end) = run(engine, feed, Box::new(changes.peekable()), None);
    assert_eq!(end, End { at: Time::from_nanos(5_080_000_000), stuck: false, broken_off: false });
    assert_eq!(seen.len(), 10);
}

/// A reader that goes away ends the run with an error, not with a panic.
#[test]
fn a_broken_pipe_is_an_error_with_a_name() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let engine = engine(Rate::UNLIMITED, Duration::ZERO, Bound::Packets(3));
    let feed = source("s", engine.port("a").unwrap(), at_rate(MEGABIT), Lengths::Fixed(1000), 10_000);
    let packets = Rows::to(Gone);
    let watchers = Watchers { packets: Some(packets), ..Watchers::default() };
    let error = drive(engine, vec![feed], no_changes(), watchers).run(None).unwrap_err();
    assert!(error.is_broken_pipe());
    assert!(error.to_string().starts_with("cannot write test: "), "{error}");
}

/// Sources of one instant: sources by their names, whatever order they were given in.
#[test]
fn inputs_at_one_instant_are_in_the_order_of_names() {
    let engine = engine(Rate::UNLIMITED, Duration::ZERO, Bound::Packets(3));
    let port = engine.port("a").unwrap();
    let feed = |name| source(name, port, at_rate(MEGABIT), Lengths::Fixed(1000), 2);
    let order = |names: [&'static str; 3]| -> Vec<(u64, String)> {
        let mut inputs = Sources::new(names.map(feed).into());
        let names = inputs.names();
        let next = || {
            inputs
                .take()
                .unwrap()
                .map(|(at, _, packet)| (at.nanos(), names[packet.body.source as usize].clone()))
        };
        std::iter::from_fn(next).collect()
    };
    let expected = [(0, "x"), (0, "y"), (0, "z"), (8_000_000, "x"), (8_000_000, "y"), (8_000_000, "z")];
    assert_eq!(order(["z", "x", "y"]), expected.map(|(at, name)| (at, name.to_owned())));
    assert_eq!(order(["y", "z", "x"]), order(["x", "y", "z"]));
}
