//! Tins: code points, thresholds and priorities.

use narrows_core::sched::{CakeConfig, TinMode};
use narrows_core::{FlowKey, Rate, Time};

use crate::link::{Arrival, constant, flow, mbit, merged, ms, run};

fn with_dscp(key: FlowKey, dscp: u8) -> FlowKey {
    FlowKey { traffic_class: dscp << 2, ..key }
}

const CS0: u8 = 0;
const CS1: u8 = 8;
const AF41: u8 = 34;
const EF: u8 = 46;

/// The shares in percent of flows of these code points, each at this many Mbit/s, of a bandwidth of 16 Mbit/s.
fn shares(config: CakeConfig, link: Rate, flows: &[(u8, u64)]) -> Vec<u64> {
    let each = |(&(dscp, rate), port): (&(u8, u64), u16)| {
        constant(with_dscp(flow(1, 2, port), dscp), 1000, mbit(rate), Time::ZERO, ms(2_000))
    };
    let arrivals = merged(flows.iter().zip(1..).map(each));
    let outcome = run(config, link, &arrivals);
    let span = [ms(500), ms(2_000)];
    let all = outcome.bytes(&arrivals, span, |_| true);
    let of = |port: u16| outcome.bytes(&arrivals, span, |key| key.source_port == port);
    (1..=flows.len() as u16).map(|port| (of(port) * 100 + all / 2) / all).collect()
}

fn near(found: &[u64], expected: &[u64]) {
    let all_near = found.iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= 2);
    assert!(all_near, "{found:?} for {expected:?}");
}

#[test]
fn tins_keep_to_their_thresholds_when_all_send_too_much() {
    let config = CakeConfig { bandwidth: mbit(16), ..CakeConfig::default() };
    // Bulk has a sixteenth, voice a quarter, best effort the rest.
    near(&shares(config, Rate::UNLIMITED, &[(CS1, 16), (CS0, 16), (EF, 16)]), &[6, 69, 25]);
    let config = CakeConfig { tins: TinMode::Diffserv4, ..config };
    near(&shares(config, Rate::UNLIMITED, &[(CS1, 16), (CS0, 16), (AF41, 16), (EF, 16)]), &[6, 19, 50, 25]);
    let config = CakeConfig { tins: TinMode::BestEffort, ..config };
    near(&shares(config, Rate::UNLIMITED, &[(CS1, 16), (CS0, 16), (EF, 16)]), &[33, 33, 33]);
}

/// Thresholds are no limits: what others leave, a tin may have.
#[test]
fn a_tin_uses_what_others_leave() {
    let config = CakeConfig { bandwidth: mbit(16), ..CakeConfig::default() };
    near(&shares(config, Rate::UNLIMITED, &[(CS1, 32), (CS0, 4)]), &[75, 25]);
    near(&shares(config, Rate::UNLIMITED, &[(EF, 32), (CS0, 4)]), &[75, 25]);
}

/// Without a bandwidth, thresholds are weights: 1024, 64 and 256.
#[test]
fn unlimited_tins_share_by_weight() {
    let config = CakeConfig::default();
    near(&shares(config, mbit(16), &[(CS1, 16), (CS0, 16), (EF, 16)]), &[5, 76, 19]);
}

/// Voice within its quarter waits for the packet on the wire only.
#[test]
fn voice_goes_first_within_its_threshold() {
    let config = CakeConfig { bandwidth: mbit(16), ..CakeConfig::default() };
    let voice = constant(with_dscp(flow(1, 2, 9), EF), 200, mbit(2), ms(100), ms(1_000));
    let bulk = (1..4).map(|port| constant(flow(1, 2, port), 1500, mbit(10), Time::ZERO, ms(1_000)));
    let arrivals = merged(bulk.chain([voice]));
    let outcome = run(config, Rate::UNLIMITED, &arrivals);
    let of_voice = outcome.sent.iter().filter(|sent| arrivals[sent.number].key.source_port == 9);
    let longest = of_voice.map(|sent| sent.at.since(arrivals[sent.number].at)).max().expect("some");
    // 1500 bytes at 16 Mbit/s.
    assert!(longest.nanos() <= 750_000, "{longest}");
}

/// The number of tins, and the code points in each but the usual one.
#[test]
fn code_points_have_the_tins_of_linux() {
    let points =
        |mode: TinMode, tin: usize| -> Vec<u8> { (0..64).filter(|&dscp| mode.tin(dscp) == tin).collect() };
    let rest = |mode: TinMode, tin: usize| points(mode, tin).len();
    assert_eq!((TinMode::BestEffort.tins(), rest(TinMode::BestEffort, 0)), (1, 64));
    let three = TinMode::Diffserv3;
    assert_eq!((three.tins(), rest(three, 0)), (3, 57));
    assert_eq!((points(three, 1), points(three, 2)), (vec![1, 8], vec![4, 44, 46, 48, 56]));
    let four = TinMode::Diffserv4;
    assert_eq!((four.tins(), rest(four, 0)), (4, 44));
    assert_eq!(points(four, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
    assert_eq!(points(four, 3), [32, 40, 44, 46, 48, 56]);
    let eight = TinMode::Diffserv8;
    assert_eq!((eight.tins(), rest(eight, 2)), (8, 40));
    assert_eq!(points(eight, 1), [2, 8, 10, 12, 14]);
    assert_eq!(points(eight, 6), [32, 40, 44, 46]);
    let precedence = TinMode::Precedence;
    assert!(
        (0..8).all(|tin| points(precedence, tin) == (tin as u8 * 8..tin as u8 * 8 + 8).collect::<Vec<_>>())
    );
}

/// A packet's code point is read before it is washed.
#[test]
fn washing_clears_the_code_point_and_keeps_ecn() {
    use narrows_core::Seed;
    use narrows_core::queue::{Dequeue, Queue, Stand};
    use narrows_core::sched::Cake;
    let config = CakeConfig { wash: true, ..CakeConfig::default() };
    let mut cake = Cake::new(config, config.limit(), Seed(1), "link");
    let mut stand = Stand::new(Seed(1));
    let key = FlowKey { traffic_class: EF << 2 | 2, ..flow(1, 2, 3) };
    let Arrival { at, key, length } = Arrival { at: ms(0), key, length: 100 };
    let packet = stand.insert(at, key, length);
    cake.enqueue(at, packet, &mut stand.context());
    assert_eq!(cake.dequeue(at, &mut stand.context()), Dequeue::Packet(packet));
    assert_eq!(stand.pool().get(packet).key.traffic_class, 2);
    assert_eq!(cake.classes().iter().map(|tin| tin.sent.packets).collect::<Vec<_>>(), [0, 0, 1]);
}
