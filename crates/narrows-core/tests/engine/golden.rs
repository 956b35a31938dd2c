//! One network with a bit of everything and the hash of all its events, which every machine must reproduce; beside it,
//! what can be said of the same run in closed form.

use narrows_core::queue::{Bound, DropAt};
use narrows_core::service::Overhead;
use narrows_core::source::{Arrivals, Lengths, Pace, Period, Source, SourceConfig};
use narrows_core::{
    Bytes, Duration, Mtu, MtuPolicy, Order, Probability, Protocol, Rate, Seed, Target, Time, Verdict,
};

use crate::drive::{END, Record, Run};
use crate::plan::{
    ChangePlan, DelayPlan, Input, LinkPlan, LossPlan, PacketPlan, Plan, QueuePlan, ReorderPlan, ServicePlan,
    What,
};

const SECONDS: u64 = 20;

fn percent(percent: u64) -> Probability {
    Probability::from_ratio(percent, 100).expect("a percentage")
}

/// Two hosts on a wireless medium that both directions share, then an access line each way.
fn plan() -> Plan {
    let lane = |name: &str, lane| Target::Link { name: name.into(), lane };
    let port = |name: &str| Target::Port(name.into());
    let air = LinkPlan {
        lanes: vec![lane("access.up", 0), port("client")],
        service: ServicePlan::Rate(Rate::from_bits_per_second(6_000_000)),
        overhead: Overhead::ETHERNET,
        ingress_loss: Some(LossPlan::Independent(percent(1))),
        corruption: percent(2),
        duplication: percent(1),
        delay: DelayPlan::Uniform(Duration::ZERO, Duration::from_micros(700)),
        ..LinkPlan::new("air")
    };
    let up = LinkPlan {
        lanes: vec![port("server")],
        queue: QueuePlan::Fifo(Bound::Bytes(Bytes::new(20_000)), DropAt::Head),
        service: ServicePlan::Rate(Rate::from_bits_per_second(1_000_003)),
        overhead: Overhead::ATM,
        delay: DelayPlan::Normal(Duration::from_millis(10), Duration::from_millis(2)),
        wire_loss: Some(LossPlan::Independent(percent(1))),
        mtu: Some(Mtu { bytes: 1_000, policy: MtuPolicy::Fragment }),
        ..LinkPlan::new("access.up")
    };
    let down = LinkPlan {
        lanes: vec![lane("air", 1)],
        queue: QueuePlan::Fifo(Bound::Packets(13), DropAt::Tail),
        service: ServicePlan::Rate(Rate::from_bits_per_second(3_000_001)),
        overhead: Overhead::ATM,
        delay: DelayPlan::Normal(Duration::from_millis(3), Duration::from_millis(2)),
        order: Order::Allow,
        reorder: Some(ReorderPlan { probability: percent(10), gap: 5 }),
        ..LinkPlan::new("access.down")
    };
    let ports = vec![("client".into(), lane("air", 0)), ("server".into(), lane("access.down", 0))];
    Plan { seed: 2, links: vec![air, up, down], ports, memory: 1 << 20, visits: 8 }
}

/// Bursts from the client, a Poisson stream from the server, and a handover in the middle.
fn inputs() -> Vec<Input> {
    let on = Period::Exponential(Duration::from_millis(200));
    let off = Period::Pareto { mean: Duration::from_millis(300), shape: 1.5 };
    let pace = |rate| Pace::Bits(Rate::from_bits_per_second(rate));
    let stop = Time::ZERO + Duration::from_secs(SECONDS);
    let sources = [
        ("up", Arrivals::OnOff { pace: pace(2_500_000), on, off }),
        ("down", Arrivals::Poisson(pace(2_900_000))),
    ];
    let mut inputs = Vec::new();
    for (port, (name, arrivals)) in sources.into_iter().enumerate() {
        let lengths = Lengths::Mix(vec![(40, 7), (576, 4), (1_500, 6)]);
        let config = SourceConfig { arrivals, lengths, start: Time::ZERO, stop, packets: None };
        let mut source = Source::new(Seed(2), name, config);
        while let Some((at, length)) = source.take() {
            let packet = PacketPlan { port, length, network: Protocol::Ipv4 };
            inputs.push(Input { at, what: What::Packet(packet) });
        }
    }
    for (ms, link, change) in [
        (9_000, 0, ChangePlan::Service(ServicePlan::Rate(Rate::DOWN))),
        (9_120, 0, ChangePlan::Service(ServicePlan::Rate(Rate::from_bits_per_second(11_000_000)))),
        (9_120, 1, ChangePlan::Delay(DelayPlan::Constant(Duration::from_millis(4)))),
        (12_000, 2, ChangePlan::QueueBound(Bound::Packets(5))),
    ] {
        inputs.push(Input { at: Time::ZERO + Duration::from_millis(ms), what: What::Change(link, change) });
    }
    inputs.sort_by_key(|input| input.at);
    inputs
}

/// FNV-1a with 64 bits over every field, integers as little-endian bytes.
fn hash(records: &[Record]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut word = |word: u64| {
        for byte in word.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for record in records {
        match record.verdict {
            Verdict::Delivered(port) => word(u64::from(port.index())),
            Verdict::Dropped { at, reason } => {
                word(1 << 32 | at.map_or(u64::MAX >> 32, |at| u64::from(at.number())));
                word(reason as u64);
            }
        }
        let place = record.fragment.map_or(0, |f| u64::from(f.offset) | u64::from(f.more) << 16 | 1 << 17);
        let numbers = [
            record.at.nanos(),
            u64::from(record.id.port().index()),
            record.id.number(),
            u64::from(record.copy),
            record.arrival.nanos(),
            record.queued.nanos(),
            u64::from(record.length),
            place,
            record.flips.len() as u64,
        ];
        numbers.into_iter().for_each(&mut word);
        record.flips.iter().for_each(|&bit| word(u64::from(bit)));
    }
    hash
}

#[test]
fn every_machine_gives_these_events() {
    let mut run = Run::new(&plan());
    let inputs = inputs();
    inputs.iter().for_each(|input| run.input(input));
    run.poll(END, usize::MAX);

    // Bounds that hold whatever the draws. The uplink sends whole cells at its rate from its first transmission on,
    // and what it sent is what it was busy for.
    let view = |name| run.engine.view(run.engine.link(name).expect("it was configured"));
    let up = &view("access.up").counters()[0];
    let busy_bits = 1_000_003u128 * u128::from(up.busy.nanos()) / 1_000_000_000;
    let rounding = u128::from(up.sent.packets) * 1_000_003 / 1_000_000_000 + 1;
    assert!(u128::from(up.wire_bits).abs_diff(busy_bits) <= rounding, "{} {busy_bits}", up.wire_bits);
    assert_eq!(up.wire_bits % (53 * 8), 0);
    let span = up.transmissions.1.since(up.transmissions.0);
    assert!(up.busy <= span && span < Duration::from_secs(SECONDS + 1));
    // At most 20,000 bytes wait, which are worst in packets of 40 bytes with a cell of 53 each, and at most a packet of
    // 21 cells is on the wire before them: 212,000 + 8,904 bits, 221 ms.
    assert!(up.waited.nanos() < up.sent.packets * 221_000_000);
    // The air loses 1 % of what comes to it, within 4 standard errors.
    for lane in &*view("air").counters() {
        let (n, lost) = (lane.arrived.packets as f64, lane.dropped(narrows_core::DropReason::IngressLoss));
        assert!((lost.packets as f64 - 0.01 * n).abs() < 4.0 * (0.01 * 0.99 * n).sqrt(), "{lost:?} of {n}");
    }

    assert_eq!((run.records.len(), hash(&run.records)), (16_529, 1231777548409074401));
}
