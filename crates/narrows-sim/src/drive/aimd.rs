//! Against closed forms, on a network made by hand: a wire from `a` to `b` with a queue, and one back without.

use std::cell::RefCell;
use std::rc::Rc;

use narrows_core::model::Constant;
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Change, Duration, Engine, FlowKey, LinkConfig, Loss, NetworkConfig, PortConfig, Protocol, Rate, Seed,
    Target, Time,
};
use narrows_report::PacketRow;
use narrows_scenario::{AimdConfig, EngineChange, Marks};

use crate::changes::Changes;
use crate::drive::{Drive, End};
use crate::error::SimError;
use crate::observe::Observing;
use crate::watched::{Watched, Watchers};
use narrows_traffic::Body;
use narrows_traffic::{Origin, Sources};

mod control;
mod queues;

const LENGTH: u32 = 1500;
const TEN_MEGABIT: Rate = Rate::from_bits_per_second(10_000_000);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The wire from `a` to `b` is as it says; both have half the round trip's delay.
struct Setup {
    rate: Rate,
    round_trip: Duration,
    queue: Box<dyn Queue>,
    loss: Option<Loss>,
    loss_back: Option<Loss>,
}

impl Default for Setup {
    fn default() -> Self {
        let queue = Box::new(Fifo::new(Bound::Packets(u64::MAX), DropAt::Tail));
        Self { rate: Rate::UNLIMITED, round_trip: millis(100), queue, loss: None, loss_back: None }
    }
}

impl Setup {
    fn engine(self) -> Engine<Body> {
        let mut config = NetworkConfig::new(Seed(1));
        let delay = Duration::from_nanos(self.round_trip.nanos() / 2);
        config.links.push(LinkConfig {
            queue: self.queue,
            service: Box::new(ConstantRate(self.rate)),
            delay: Box::new(Constant(delay)),
            wire_loss: self.loss,
            ..LinkConfig::new("there", Target::Port("b".into()))
        });
        config.links.push(LinkConfig {
            delay: Box::new(Constant(delay)),
            wire_loss: self.loss_back,
            ..LinkConfig::new("back", Target::Port("a".into()))
        });
        for (port, link) in [("a", "there"), ("b", "back")] {
            let entry = Target::Link { name: link.into(), lane: 0 };
            config.ports.push(PortConfig { name: port.into(), entry });
        }
        Engine::new(config).expect("the names are right")
    }
}

fn flow() -> AimdConfig {
    let (start, stop) = (Time::ZERO, Time::NEVER);
    AimdConfig { length: LENGTH, size: None, start, stop, window: 10, marks: Marks::None }
}

/// A packet that came in at `a` and has its verdict, or the acknowledgement of one.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    flow: u32,
    acknowledges: bool,
    arrival: u64,
    queued: u64,
    at: u64,
    marked: bool,
    delivered: bool,
}

struct Run {
    seen: Vec<Seen>,
    end: End,
    drive: Drive<'static>,
}

type Listed<I> = std::iter::Peekable<I>;

struct Steps<I: Iterator>(Listed<I>);

impl<I: Iterator<Item = (Time, EngineChange)>> Changes for Steps<I> {
    fn peek(&mut self) -> Option<Time> {
        self.0.peek().map(|(at, ..)| *at)
    }

    fn take(&mut self) -> Result<Vec<EngineChange>, SimError> {
        Ok(self.0.next().map(|(_, change)| change).into_iter().collect())
    }
}

fn run(setup: Setup, flows: &[AimdConfig], seconds: Option<u64>) -> Run {
    run_with(setup, flows, Vec::new(), Vec::new(), seconds)
}

/// Runs with other feeds beside the flows, and with changes of the rate from `a` to `b`.
fn run_with(
    setup: Setup,
    flows: &[AimdConfig],
    feeds: Vec<Origin>,
    rates: Vec<(Time, Rate)>,
    seconds: Option<u64>,
) -> Run {
    let (mut drive, seen) = prepare(setup, flows, feeds, rates);
    let until = seconds.map(|seconds| Time::ZERO + Duration::from_secs(seconds));
    let end = drive.run(until).expect("nothing is written");
    Run { seen: seen.take(), end, drive }
}

fn prepare(
    setup: Setup,
    flows: &[AimdConfig],
    mut feeds: Vec<Origin>,
    rates: Vec<(Time, Rate)>,
) -> (Drive<'static>, Rc<RefCell<Vec<Seen>>>) {
    let engine = setup.engine();
    let port = |name| engine.port(name).expect("it was configured");
    for (number, config) in flows.iter().enumerate() {
        let key = FlowKey {
            network: Protocol::Ipv4DontFragment,
            transport: 6,
            source_port: number as u16,
            traffic_class: config.marks.ecn(),
            ..FlowKey::default()
        };
        feeds.push(Origin::aimd(&number.to_string(), config, key, (port("a"), port("b"))));
    }
    let inputs = Sources::new(feeds);
    let seen: Rc<RefCell<Vec<Seen>>> = Rc::default();
    let theirs = Rc::clone(&seen);
    let observer = move |packet: &PacketRow<'_>| theirs.borrow_mut().push(Seen::of(packet));
    let watchers = Watchers { observing: Observing(Some(Box::new(observer))), ..Watchers::default() };
    let network = Watched::new(engine, inputs.names(), watchers);
    let rates = rates.into_iter();
    let change = |rate| Change::Service(Box::new(ConstantRate(rate)));
    let changes =
        rates.map(move |(at, rate)| (at, EngineChange::Link { link: "there".into(), change: change(rate) }));
    let watch = Box::leak(Box::new(|_| std::ops::ControlFlow::Continue(())));
    (Drive::new(network, inputs, Box::new(Steps(changes.peekable())), watch), seen)
}

impl Seen {
    fn of(packet: &PacketRow<'_>) -> Self {
        Self {
            flow: packet.feed.parse().unwrap_or(u32::MAX),
            acknowledges: packet.port == "b",
            arrival: packet.arrival.nanos(),
            queued: packet.queued.nanos(),
            at: packet.at.nanos(),
            marked: packet.marked,
            delivered: packet.delivered,
        }
    }
}

impl Run {
    /// Packets from `a` that were delivered.
    fn arrived(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| !seen.acknowledges && seen.delivered)
    }

    fn dropped(&self) -> u64 {
        self.seen.iter().filter(|seen| !seen.acknowledges && !seen.delivered).count() as u64
    }
}
