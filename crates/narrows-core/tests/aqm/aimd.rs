//! A source that does respond: additive increase, multiplicative decrease, as TCP Reno's congestion avoidance.

use std::collections::BTreeMap;

use narrows_core::aqm::{Aqm, Codel, CodelConfig, Judgement, Pie, PieConfig, Waiting};
use narrows_core::queue::{Bound, Context, DropAt, Fifo};
use narrows_core::{Duration, FlowKey, PacketRef, Time};

use crate::drive::{Arrival, Link, MEGABIT, Record, mean_millis, seconds};

/// One flow. Acknowledgements come back at once, so the delay of the link is the round-trip time without a queue.
#[derive(Clone, Copy)]
struct Source {
    window: f64,
    inside: u32,
    /// Losses and marks of packets sent before that have been answered.
    answered: Time,
}

const ROUND_TRIP: Duration = Duration::from_millis(50);
const LENGTH: u32 = 1500;

struct World {
    link: Link,
    sources: Vec<Source>,
    records: Vec<Record>,
}

impl World {
    fn send(&mut self, flow: usize, at: Time, ecn: u8) {
        let source = &mut self.sources[flow];
        while f64::from(source.inside) < source.window {
            source.inside += 1;
            self.link.hand_in(Arrival { at, length: LENGTH, flow: flow as u16, ecn });
        }
    }

    fn congestion(&mut self, flow: usize, sent: Time, now: Time) {
        let source = &mut self.sources[flow];
        if sent >= source.answered {
            source.window = (source.window / 2.0).max(1.0);
            source.answered = now;
        }
    }
}

/// So many flows over a link of 10 Mbit/s and 50 ms for so many seconds.
fn run(policy: Box<dyn Aqm>, flows: usize, ecn: u8, until: u64) -> Vec<Record> {
    let queue = Box::new(Fifo::managed(Bound::Packets(1_000), DropAt::Tail, policy));
    let source = Source { window: 2.0, inside: 0, answered: Time::ZERO };
    let link = Link::new(queue, 10 * MEGABIT, ROUND_TRIP);
    let mut world = World { link, sources: vec![source; flows], records: Vec::new() };
    // A sender learns of a loss a round trip later. The key tells simultaneous ones apart.
    let mut losses: BTreeMap<(Time, usize), Record> = BTreeMap::new();
    for flow in 0..flows {
        world.send(flow, Time::ZERO, ecn);
    }
    loop {
        let loss = losses.keys().next().map(|&(at, _)| at);
        let now = [world.link.engine.next_event(), loss].into_iter().flatten().min();
        let Some(now) = now.filter(|&now| now < seconds(until)) else { return world.records };
        let mut acknowledged = Vec::new();
        while let Some(record) = world.link.poll(now) {
            match record.sent() {
                true => acknowledged.push(record),
                false => _ = losses.insert((now + ROUND_TRIP, record.number), record),
            }
            world.records.push(record);
        }
        for record in acknowledged {
            let flow = usize::from(record.flow);
            let source = &mut world.sources[flow];
            source.inside -= 1;
            source.window += 1.0 / source.window;
            if record.ecn == FlowKey::CONGESTION_EXPERIENCED {
                world.congestion(flow, record.arrival, now);
            }
            world.send(flow, now, ecn);
        }
        while let Some(entry) = losses.first_entry()
            && entry.key().0 <= now
        {
            let record = entry.remove();
            let flow = usize::from(record.flow);
            world.sources[flow].inside -= 1;
            world.congestion(flow, record.arrival, now);
            world.send(flow, now, ecn);
        }
    }
}

/// The mean wait in milliseconds and the share of the link that was used, from the tenth second on.
fn settled(policy: Box<dyn Aqm>, flows: usize, ecn: u8) -> (f64, f64) {
    let records = run(policy, flows, ecn, 70);
    let late = records.iter().filter(|record| record.sent() && record.at >= seconds(10));
    let used = late.clone().count() as f64 * f64::from(8 * LENGTH) / (60.0 * 10e6);
    (mean_millis(late.map(|record| record.waited)), used)
}

/// One flow has its window halved so often that it does not fill the link, as Reno does not with a buffer of much less
/// than a round trip; the queue is short. Four fill it, and the queue is about the target. That it is rather above it
/// with many flows lies in the control law: they need more drops, so `count` has further to go.
#[test]
fn codel_holds_its_target_with_flows_that_respond() {
    for ecn in [FlowKey::NOT_ECN_CAPABLE, 2] {
        let settle = |flows| settled(Box::new(Codel::new(CodelConfig::default())), flows, ecn);
        let (wait, used) = settle(1);
        assert!(wait < 5.0 && (0.75..1.0).contains(&used), "{wait} ms, {used}");
        let (wait, used) = settle(4);
        assert!((2.5..10.0).contains(&wait) && used > 0.98, "{wait} ms, {used}");
    }
}

/// PIE's integral term leaves no lasting deviation.
#[test]
fn pie_holds_its_target_with_flows_that_respond() {
    for (flows, ecn) in [(4, FlowKey::NOT_ECN_CAPABLE), (4, 2), (10, FlowKey::NOT_ECN_CAPABLE), (10, 2)] {
        let (wait, used) = settled(Box::new(Pie::new(PieConfig::default())), flows, ecn);
        assert!((12.0..20.0).contains(&wait) && used > 0.98, "{wait} ms, {used}");
    }
}

/// The same flows without queue management fill whatever queue there is: here 1000 packets, 1.2 seconds.
#[test]
fn without_queue_management_they_fill_the_queue() {
    #[derive(Debug)]
    struct Nothing;
    impl Aqm for Nothing {
        fn arrive(&mut self, _: Time, _: PacketRef, _: Waiting, _: &mut Context<'_>) -> Judgement {
            Judgement::Pass
        }
        fn depart(&mut self, _: Time, _: PacketRef, _: Waiting, _: &mut Context<'_>) -> Judgement {
            Judgement::Pass
        }
    }
    let (wait, used) = settled(Box::new(Nothing), 4, FlowKey::NOT_ECN_CAPABLE);
    assert!(wait > 500.0 && used > 0.99, "{wait} ms, {used}");
}
