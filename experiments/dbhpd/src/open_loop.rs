//! Traffic that does not respond, through a scheduler on a link of constant rate: what each class's packets wait.

use narrows_core::sched::{FlowConfig, FlowId, Scheduler, Served, Server};
use narrows_core::source::{Source, SourceConfig};
use narrows_core::{Duration, PacketRef, Rate, Seed, Time};

/// Traffic of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Which class.
    pub class: usize,
    /// What its random draws are keyed by.
    pub name: String,
    /// When packets come, and how long they are on the wire.
    pub source: SourceConfig,
}

/// A link, and what may wait for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// How fast it is.
    pub rate: Rate,
    /// The scheduler's flows, which join in this order, and how many packets may wait in each.
    pub flows: Vec<(FlowConfig, u32)>,
    /// The flow of each class.
    pub flow_of: Vec<usize>,
}

impl Link {
    /// A link whose scheduler has a flow for each class, with the same bound.
    pub fn plain(rate: Rate, classes: usize, bound: u32) -> Self {
        Self { rate, flows: vec![(FlowConfig::default(), bound); classes], flow_of: (0..classes).collect() }
    }
}

/// What became of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassOutcome {
    /// From arrival to the end of transmission, in nanoseconds, in the order of service.
    pub delays: Vec<u64>,
    /// Packets that found no room.
    pub dropped: u64,
}

/// Sends the traffic through a scheduler, and says what became of each class. What comes before `settled` is not counted.
/// `served` is told of the scheduler after each packet, and of its class. Packets that come at the instant at which the link
/// gets free are there before it chooses.
///
/// # Panics
/// When the scheduler does not take the flows, or says that nothing waits while packets do.
pub fn drive<S: Scheduler>(
    scheduler: S,
    offered: &[Offered],
    link: &Link,
    (seed, settled): (Seed, Time),
    mut served: impl FnMut(&S, usize),
) -> Vec<ClassOutcome> {
    let mut server = Server::new(scheduler);
    for &(flow, _) in &link.flows {
        server.join(flow).expect("the scheduler takes its flows");
    }
    let mut sources: Vec<(usize, Source)> = offered
        .iter()
        .map(|offered| (offered.class, Source::new(seed, &offered.name, offered.source.clone())))
        .collect();
    let mut outcome = vec![ClassOutcome::default(); link.flow_of.len()];
    // The class and the arrival of each packet, by its number.
    let mut packets: Vec<(usize, Time)> = Vec::new();
    let (mut free, mut waiting) = (Time::ZERO, 0_u64);
    // Until when the scheduler will not send, unless something comes.
    let mut declined: Option<Time> = None;
    let mut next = earliest(&sources);
    loop {
        let asks_at = declined.unwrap_or(free);
        match next {
            Some((at, which)) if waiting == 0 || at <= asks_at => {
                let (class, source) = &mut sources[which];
                let class = *class;
                let (at, length) = source.take().expect("it was peeked at");
                let flow = link.flow_of[class];
                let id = FlowId::new(flow as u32);
                if server.flows().packets(id) < link.flows[flow].1 {
                    let number = u32::try_from(packets.len()).expect("fewer packets than that");
                    packets.push((class, at));
                    server.enqueue(at, id, PacketRef::from_number(number), length);
                    waiting += 1;
                } else if at >= settled {
                    outcome[class].dropped += 1;
                }
                (free, declined) = (free.max(at), None);
                next = earliest(&sources);
            }
            _ if waiting > 0 => {
                free = asks_at;
                match server.dequeue(free) {
                    Served::Packet(_, waits) => {
                        let (class, arrival) = packets[waits.packet.number() as usize];
                        (waiting, declined) = (waiting - 1, None);
                        served(server.scheduler(), class);
                        free = free + transmission(link.rate, waits.length);
                        if arrival >= settled {
                            outcome[class].delays.push(free.since(arrival).nanos());
                        }
                    }
                    Served::NotBefore(at) => declined = Some(at),
                    other => panic!("{waiting} packets wait, and the scheduler says {other:?}"),
                }
            }
            _ => return outcome,
        }
    }
}

fn transmission(rate: Rate, length: u32) -> Duration {
    let bits = u128::from(length) * 8_000_000_000;
    Duration::from_nanos(bits.div_ceil(u128::from(rate.bits_per_second().max(1))) as u64)
}

/// The source whose packet comes next, and when; the first of those at one instant.
fn earliest(sources: &[(usize, Source)]) -> Option<(Time, usize)> {
    let peeked = sources.iter().enumerate().filter_map(|(which, (_, source))| Some((source.peek()?, which)));
    peeked.min()
}

#[cfg(test)]
mod tests {
    use narrows_core::Bytes;
    use narrows_core::sched::{Fifo, Priority, Tbf, TbfConfig};
    use narrows_core::source::{Arrivals, Lengths, Pace};

    use super::*;

    fn offered(class: usize, arrivals: Arrivals) -> Offered {
        let source = SourceConfig {
            arrivals,
            lengths: Lengths::Fixed(1250),
            start: Time::ZERO,
            stop: Time::from_nanos(60_000_000_000),
            packets: None,
        };
        Offered { class, name: format!("class {class}"), source }
    }

    fn mean(outcome: &ClassOutcome) -> f64 {
        outcome.delays.iter().sum::<u64>() as f64 / outcome.delays.len() as f64 / 1e9
    }

    /// M/D/1: at a load ρ and a transmission time s, packets wait for ρ·s/(2·(1 − ρ)) in the mean.
    #[test]
    fn a_fifo_under_poisson_traffic_waits_as_long_as_the_formula_says() {
        let poisson = Arrivals::Poisson(Pace::Bits(Rate::from_bits_per_second(7_000_000)));
        let link = Link::plain(Rate::from_bits_per_second(10_000_000), 1, 10_000);
        let outcome = drive(Fifo::default(), &[offered(0, poisson)], &link, (Seed(1), Time::ZERO), |_, _| {});
        let expected = 0.001 + 0.7 * 0.001 / (2.0 * 0.3);
        assert!((mean(&outcome[0]) / expected - 1.0).abs() < 0.03, "{} for {expected}", mean(&outcome[0]));
    }

    /// Two classes in one flow are one queue; and of 1.5 times what the link takes, a third is lost.
    #[test]
    fn classes_can_share_a_flow_and_what_is_too_much_is_dropped() {
        let half =
            |class| offered(class, Arrivals::Constant(Pace::Bits(Rate::from_bits_per_second(7_500_000))));
        let link = Link { flow_of: vec![0, 0], ..Link::plain(Rate::from_bits_per_second(10_000_000), 1, 20) };
        let both = [half(0), half(1)];
        let outcome = drive(Priority::default(), &both, &link, (Seed(1), Time::ZERO), |_, _| {});
        let (dropped, sent): (u64, usize) = (
            outcome.iter().map(|class| class.dropped).sum(),
            outcome.iter().map(|class| class.delays.len()).sum(),
        );
        let lost = dropped as f64 / (dropped as f64 + sent as f64);
        assert!((lost - 1.0 / 3.0).abs() < 0.001, "{lost}");
        assert!(outcome.iter().flat_map(|class| &class.delays).all(|&delay| delay <= 21_000_000));
    }

    /// A shaper declines: 1250 bytes at 1 Mbit/s are 10 ms.
    #[test]
    fn a_scheduler_that_declines_is_asked_again_when_it_says() {
        let mut source =
            offered(0, Arrivals::Constant(Pace::Packets { count: 100, per: Duration::from_nanos(1) }));
        source.source.packets = Some(5);
        let link = Link::plain(Rate::from_bits_per_second(1_000_000_000), 1, 10);
        let shaper = TbfConfig {
            rate: Rate::from_bits_per_second(1_000_000),
            burst: Bytes::new(1250),
            peak: None,
            mpu: Bytes::new(0),
        };
        let shaper = Tbf::new(shaper).unwrap();
        let outcome = drive(shaper, &[source], &link, (Seed(1), Time::ZERO), |_, _| {});
        // The packets are less than two nanoseconds apart.
        for (number, &delay) in outcome[0].delays.iter().enumerate() {
            assert!(
                (number as u64 * 10_000_000 + 10_000).abs_diff(delay) <= 2,
                "packet {number}: {delay} ns"
            );
        }
        assert_eq!(outcome[0].delays.len(), 5);
    }
}
