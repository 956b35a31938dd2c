//! A scheduler from outside the crate: weighted round robin by packets. The worked example of
//! `docs/writing-a-scheduler.md`; run it with `cargo run -p narrows-core --example weighted_round_robin`.

use std::collections::VecDeque;

use narrows_core::classify::{Classifier, Condition};
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::{
    Class, FlowConfig, FlowId, Flows, Overload, Refused, Scheduled, Scheduler, Selection, Served, Server,
    Store, Weight,
};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Engine, FlowKey, LinkConfig, NetworkConfig, Packet, PacketRef, PortConfig, Protocol, Rate, Seed, Target,
    Time,
};

/// Weighted round robin: flows take turns, and at its turn a flow sends as many packets as its weight says.
#[derive(Debug, Default)]
struct WeightedRoundRobin {
    /// The flows in the order of their turns, each once; the first one has its turn. One may have run dry meanwhile.
    turns: VecDeque<FlowId>,
}

/// What it remembers of a flow.
#[derive(Debug)]
struct Turn {
    weight: u32,
    /// How many packets it may still send at this turn, or at its next one if it has not begun.
    left: u32,
    /// Whether it is in line for a turn.
    in_line: bool,
}

impl Scheduler for WeightedRoundRobin {
    type Flow = Turn;

    fn join(&mut self, flow: FlowConfig) -> Result<Turn, Refused> {
        let weight = flow.weight.get();
        Ok(Turn { weight, left: weight, in_line: false })
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<Turn>) {
        if flows[flow].in_line {
            // The next flow of this number must not find itself in line.
            self.turns.retain(|&other| other != flow);
        }
    }

    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<Turn>,
    ) -> Result<(), Refused> {
        let turn = &mut flows[flow];
        turn.weight = weight.get();
        turn.left = turn.left.min(turn.weight);
        Ok(())
    }

    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<Turn>) {
        let turn = &mut flows[flow];
        if !turn.in_line {
            (turn.in_line, turn.left) = (true, turn.weight);
            self.turns.push_back(flow);
        }
    }

    fn select(&mut self, _now: Time, flows: &mut Flows<Turn>) -> Selection {
        while let Some(&flow) = self.turns.front() {
            if flows.packets(flow) > 0 {
                return Selection::Flow(flow);
            }
            // Queue management has dropped what it had.
            flows[flow].in_line = false;
            self.turns.pop_front();
        }
        Selection::Empty
    }

    fn sent(&mut self, _now: Time, flow: FlowId, _length: u32, flows: &mut Flows<Turn>) {
        let more = flows.packets(flow) > 0;
        let turn = &mut flows[flow];
        turn.left -= 1;
        if turn.left == 0 || !more {
            turn.left = turn.weight;
            turn.in_line = more;
            self.turns.pop_front();
            self.turns.extend(more.then_some(flow));
        }
    }

    fn head_dropped(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<Turn>) {
        // A flow that has run dry is passed over at its turn.
    }
}

/// By itself: packets are numbers with lengths, and the instant does not matter to this scheduler.
fn by_itself() -> Result<(), Refused> {
    let mut server = Server::new(WeightedRoundRobin::default());
    for weight in [1, 2, 3] {
        let weight = Weight::new(weight).expect("not 0");
        let flow = server.join(FlowConfig { weight, ..FlowConfig::default() })?;
        for number in 0..6 {
            server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
        }
    }
    print!("order of service by weights 1, 2, 3:");
    while let Served::Packet(flow, _) = server.dequeue(Time::ZERO) {
        print!(" {}", flow.number());
    }
    println!();
    Ok(())
}

/// As a link's queue: two classes, told apart by the code point, each with its own bound.
fn queue() -> Result<Scheduled<WeightedRoundRobin>, Refused> {
    let expedited = Condition { dscps: Some(1 << 46), ..Condition::default() };
    let rules = Classifier::Rules { rules: vec![(expedited, 0)], default: Some(1) };
    let all = Bound::Packets(1000);
    let mut queue = Scheduled::new(WeightedRoundRobin::default(), rules, all, Overload::Arriving);
    for (weight, packets) in [(4, 10), (1, 50)] {
        let weight = Weight::new(weight).expect("not 0");
        queue.add_class(Class {
            flow: FlowConfig { weight, ..FlowConfig::default() },
            bound: Bound::Packets(packets),
            drop_at: DropAt::Tail,
            store: Store::Plain,
        })?;
    }
    Ok(queue)
}

/// In an engine: a link of 1 Mbit/s, which bulk traffic fills while now and then an expedited packet comes.
fn in_a_link() -> Result<(), Box<dyn std::error::Error>> {
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    link.service = Box::new(ConstantRate(Rate::from_bits_per_second(1_000_000)));
    link.queue = Box::new(queue()?);
    let entry = Target::Link { name: "link".into(), lane: 0 };
    let mut config = NetworkConfig::new(Seed(1));
    config.links.push(link);
    config.ports.push(PortConfig { name: "in".into(), entry });
    config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });

    let mut engine = Engine::new(config)?;
    let port = engine.port("in").expect("it was just configured");
    for millisecond in 0..1000 {
        let at = Time::from_nanos(millisecond * 1_000_000);
        let (length, code_point) = if millisecond % 20 == 0 { (200, 46) } else { (1500, 0) };
        let key = FlowKey { network: Protocol::Ipv4, traffic_class: code_point << 2, ..FlowKey::default() };
        engine.hand_in(
            at,
            port,
            Packet {
                length,
                link_header: 14,
                network_header: 20,
                headers: Default::default(),
                key,
                body: (),
            },
        );
    }
    while engine.poll(Time::NEVER).is_some() {}

    let link = engine.link("link").expect("it was just configured");
    for (name, class) in ["expedited", "bulk"].iter().zip(engine.view(link).classes()) {
        let (sent, dropped) = (class.sent.packets, class.dropped.packets);
        println!("{name}: {sent} sent, {dropped} dropped, waited {} at most", class.longest_wait);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    by_itself()?;
    in_a_link()
}
