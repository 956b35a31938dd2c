//! Runs of a plan, polled in one way or another, and what came of them.

use narrows_core::model::FeedCounters;
use narrows_core::queue::{Bound, DropAt};
use narrows_core::{
    Body, Duration, Engine, Event, FeedView, FlowKey, Fragment, LinkId, NetworkConfig, Packet, PacketId,
    PortId, Question, Rate, Time, Verdict,
};

use crate::plan::{ChangePlan, DelayPlan, Input, PacketPlan, Plan, QueuePlan, ServicePlan, What, feed_name};

/// An event that can be compared. The body is the number of the packet among all that were handed in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) at: Time,
    pub(crate) verdict: Verdict,
    pub(crate) id: PacketId,
    pub(crate) copy: u16,
    pub(crate) arrival: Time,
    pub(crate) queued: Duration,
    pub(crate) length: u32,
    pub(crate) fragment: Option<Fragment>,
    pub(crate) flips: Vec<u32>,
    pub(crate) body: u64,
    pub(crate) last: bool,
    pub(crate) key: FlowKey,
    pub(crate) link_header: u8,
}

impl From<Event<'_, u64>> for Record {
    fn from(event: Event<'_, u64>) -> Self {
        Self {
            at: event.at,
            verdict: event.verdict,
            id: event.id,
            copy: event.copy,
            arrival: event.arrival,
            queued: event.queued,
            length: event.length,
            fragment: event.fragment,
            body: *event.body.get(),
            last: matches!(event.body, Body::Last(_)),
            flips: event.flips,
            key: event.key,
            link_header: event.link_header,
        }
    }
}

impl Record {
    pub(crate) fn delivered(&self) -> bool {
        matches!(self.verdict, Verdict::Delivered(_))
    }
}

/// A running plan.
pub(crate) struct Run {
    pub(crate) engine: Engine<u64>,
    pub(crate) records: Vec<Record>,
    ports: Vec<PortId>,
    links: Vec<LinkId>,
    handed_in: u64,
    /// How many values a feed took, each time, and what the feeds of its link had counted then.
    pub(crate) fed: Vec<(usize, Vec<FeedCounters>)>,
    /// Those that were taken.
    pub(crate) questions: Vec<Question>,
}

/// Beyond everything that a test schedules.
pub(crate) const END: Time = Time::from_nanos(u64::MAX / 2);

impl Run {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self::of(plan, plan.config())
    }

    /// A run of a configuration that was made from the plan and then changed, but for its names.
    pub(crate) fn of(plan: &Plan, config: NetworkConfig) -> Self {
        let engine = Engine::new(config).expect("plans are sound");
        let port = |(name, _): &(String, _)| engine.port(name).expect("it was configured");
        let (ports, links) = (plan.ports.iter().map(port).collect(), plan.links.iter());
        let links = links.map(|link| engine.link(&link.name).expect("it was configured")).collect();
        let (records, fed, questions) = (Vec::new(), Vec::new(), Vec::new());
        Self { engine, records, ports, links, handed_in: 0, fed, questions }
    }

    pub(crate) fn hand_in(&mut self, at: Time, packet: PacketPlan) {
        let number = self.handed_in;
        self.handed_in += 1;
        let network_header = if packet.network == narrows_core::Protocol::Other { 0 } else { 20 };
        // Two of four can be marked with congestion.
        let traffic_class = (number % 4) as u8;
        let key =
            FlowKey { network: packet.network, mark: number as u32, traffic_class, ..FlowKey::default() };
        let packet_in = Packet {
            length: packet.length,
            link_header: 14,
            network_header,
            headers: Default::default(),
            key,
            body: number,
        };
        self.engine.hand_in(at, self.ports[packet.port], packet_in);
    }

    pub(crate) fn input(&mut self, input: &Input) {
        match &input.what {
            What::Packet(packet) => self.hand_in(input.at, *packet),
            What::Change(link, change) => self.engine.change(input.at, self.links[*link], change.build()),
            What::Feed(link, feed, values) => {
                let link = self.links[*link];
                let taken = self.engine.feed(input.at, link, &feed_name(*feed), values);
                // How many questions nobody took in time depends on when they are taken, and nothing else does.
                let counters = |feed: FeedView<'_>| FeedCounters { untold: 0, ..feed.counters };
                let feeds = self.engine.view(link).feeds().into_iter().map(counters).collect();
                self.fed.push((taken, feeds));
            }
        }
    }

    /// Polls at `now`, for at most `most` events.
    pub(crate) fn poll(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            let Some(event) = self.engine.poll(now) else { return };
            self.records.push(event.into());
        }
        self.engine.take_questions(&mut self.questions);
    }

    /// Polls at every instant at which something happens, up to `until`.
    pub(crate) fn poll_at_each_event(&mut self, until: Time) {
        while let Some(at) = self.engine.next_event()
            && at <= until
        {
            self.poll(at, usize::MAX);
        }
    }
}

/// What to do before an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Nothing: the input joins the batch.
    Wait,
    /// Poll at every instant at which something happens.
    Exactly,
    /// Poll somewhere between the last input and this one (in 256ths of the way), for so many events.
    Between(u8, u8),
    /// Poll at the instant of the input itself until nothing is due.
    Late,
}

/// All events of a run, polled before inputs as `steps` say, in turn, and after the last input in one go.
pub(crate) fn run(plan: &Plan, inputs: &[Input], steps: &[Step]) -> Vec<Record> {
    finished(plan, inputs, steps).records
}

/// The same run with all that came of it.
pub(crate) fn finished(plan: &Plan, inputs: &[Input], steps: &[Step]) -> Run {
    let mut run = Run::new(plan);
    let mut last = Time::ZERO;
    for (input, step) in inputs.iter().zip(steps.iter().cycle()) {
        match *step {
            Step::Wait => {}
            Step::Exactly => run.poll_at_each_event(input.at),
            Step::Between(part, most) => {
                let way = input.at.since(last).nanos() / 256 * u64::from(part);
                run.poll(last + Duration::from_nanos(way), usize::from(most));
            }
            Step::Late => run.poll(input.at, usize::MAX),
        }
        run.input(input);
        last = input.at;
    }
    match steps {
        [Step::Exactly] => run.poll_at_each_event(END),
        _ => run.poll(END, usize::MAX),
    }
    assert_eq!(run.engine.stragglers(), 0);
    run
}

/// Changes at `at` that let every packet out, however its link was configured.
pub(crate) fn flush(plan: &Plan, at: Time) -> Vec<Input> {
    let open = [
        ChangePlan::Netem(None),
        ChangePlan::Slots(None),
        ChangePlan::BoundSteps(None),
        ChangePlan::Service(ServicePlan::Rate(Rate::UNLIMITED)),
        ChangePlan::Queue(QueuePlan::Fifo(Bound::Packets(1000), DropAt::Tail)),
        ChangePlan::Delay(DelayPlan::Constant(Duration::ZERO)),
    ];
    let on = |link| open.iter().map(move |change| Input { at, what: What::Change(link, change.clone()) });
    (0..plan.links.len()).flat_map(on).collect()
}
