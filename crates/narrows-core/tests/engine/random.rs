//! Random networks, traffic, changes and polls.

use narrows_core::model::OnEmpty;
use narrows_core::model::selector::Transitions;
use narrows_core::netem::Generation;
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::Overload;
use narrows_core::service::Overhead;
use narrows_core::{
    Bytes, Duration, Exceed, LinkSettings, Mtu, MtuPolicy, Order, PolicerConfig, Probability, Protocol, Rate,
    Target, Time,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::drive::{Step, flush};
use crate::foreign::Outage;
use crate::plan::{
    AirPlan, BitsPlan, ChangePlan, DelayPlan, FedPlan, GATE, Input, Limits, LinkPlan, LossPlan, NetemPlan,
    PacketPlan, Plan, QueuePlan, ReorderPlan, SchedulerPlan, ServicePlan, SlotsPlan, TracePlan, What,
};

/// Names in no particular order, so that neither the plan's order nor the path's is that of the names.
const NAMES: [&str; 5] = ["m", "c", "x", "a", "q"];

/// A network of one to five links with one or two lanes each, joined at random: chains, shared media, cycles.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let links = vec((link(), vec(any::<u16>(), 1..3)), 1..=NAMES.len());
    let memory = prop_oneof![4 => Just(1 << 30), 1 => 1_000u64..30_000];
    (any::<u64>(), links, vec(any::<u16>(), 1..4), memory, 1u8..9).prop_map(
        |(seed, links, entries, memory, visits)| {
            let lanes: Vec<Target> = links
                .iter()
                .zip(NAMES)
                .flat_map(|((_, lanes), name)| (0..lanes.len() as u8).map(move |lane| (name, lane)))
                .map(|(name, lane)| Target::Link { name: name.into(), lane })
                .collect();
            let port = |n: usize| format!("p{n}");
            // An even selector leads to a port, an odd one to a lane.
            let target = |selector: u16| match usize::from(selector / 2) {
                at if selector.is_multiple_of(2) => Target::Port(port(at % entries.len())),
                at => lanes[at % lanes.len()].clone(),
            };
            let links = links
                .iter()
                .zip(NAMES)
                .map(|((link, exits), name)| LinkPlan {
                    name: name.into(),
                    lanes: exits.iter().map(|&exit| target(exit)).collect(),
                    ..link.clone()
                })
                .collect();
            // Few entries lead past every link.
            let entry =
                |selector: u16| target(if selector.is_multiple_of(16) { selector } else { selector | 1 });
            let ports = entries.iter().enumerate().map(|(n, &selector)| (port(n), entry(selector))).collect();
            Plan { seed, links, ports, memory, visits }
        },
    )
}

/// A network, with packets and changes in order of time, at the end of which every packet is let out.
pub(crate) fn plan_and_inputs() -> impl Strategy<Value = (Plan, Vec<Input>)> {
    (plan(), vec((gap(), what()), 1..80)).prop_map(|(plan, steps)| {
        let mut at = Time::ZERO;
        let mut inputs: Vec<Input> = steps
            .into_iter()
            .map(|(gap, what)| {
                at = at + gap;
                let what = match what {
                    What::Packet(p) => What::Packet(PacketPlan { port: p.port % plan.ports.len(), ..p }),
                    What::Change(link, change) => What::Change(link % plan.links.len(), change),
                    What::Feed(link, name, values) => What::Feed(link % plan.links.len(), name, values),
                };
                Input { at, what }
            })
            .collect();
        inputs.extend(flush(&plan, at + Duration::from_millis(5)));
        (plan, inputs)
    })
}

/// Ways to poll.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Wait),
        Just(Step::Exactly),
        Just(Step::Late),
        (any::<u8>(), any::<u8>()).prop_map(|(part, most)| Step::Between(part, most % 4)),
    ];
    vec(step, 1..20)
}

/// Often none at all: bursts at one instant.
fn gap() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => Just(0),
        3 => 1u64..2_000,
        3 => 2_000u64..1_000_000,
        1 => 1_000_000u64..20_000_000,
    ]
    .prop_map(Duration::from_nanos)
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        6 => packet().prop_map(What::Packet),
        1 => (any::<usize>(), change()).prop_map(|(link, change)| What::Change(link, change)),
        2 => (any::<usize>(), prop_oneof![4 => Just(0u8), 1 => Just(1)], vec(value(), 1..6))
            .prop_map(|(link, name, values)| What::Feed(link, name, values)),
    ]
}

/// For a feed: losses and what is not possible among them.
fn value() -> impl Strategy<Value = i64> {
    prop_oneof![
        2 => Just(-1i64),
        1 => Just(0),
        6 => 1i64..4_000_000,
        1 => prop_oneof![Just(i64::MIN), Just(-2)],
    ]
}

fn fed() -> impl Strategy<Value = FedPlan> {
    let on_empty =
        prop_oneof![Just(OnEmpty::Zero), Just(OnEmpty::Last), Just(OnEmpty::Repeat), Just(OnEmpty::Drop)];
    let patience = prop_oneof![Just(0u64), 1u64..1_000, 1_000u64..3_000_000].prop_map(Duration::from_nanos);
    (prop_oneof![4 => Just(0u8), 1 => Just(1)], on_empty, 0usize..6, option::of(patience))
        .prop_map(|(name, on_empty, lead, ask)| FedPlan { name, on_empty, lead, ask })
}

fn trace<T: Copy + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> BoxedStrategy<TracePlan<T>> {
    let span = || prop_oneof![1u64..100, 100u64..3_000_000].prop_map(Duration::from_nanos);
    ([value.clone(), value], [span(), span()], 0u64..5_000_000, any::<bool>())
        .prop_map(|(values, spans, start, loops)| TracePlan {
            values,
            spans,
            start: Time::from_nanos(start),
            loops,
        })
        .boxed()
}

pub(crate) fn packet() -> impl Strategy<Value = PacketPlan> {
    let network = prop_oneof![
        Just(Protocol::Ipv4),
        Just(Protocol::Ipv4DontFragment),
        Just(Protocol::Ipv6),
        Just(Protocol::Other)
    ];
    let length = prop_oneof![20u32..1_501, Just(1_500), Just(64)];
    (any::<usize>(), length, network).prop_map(|(port, length, network)| PacketPlan { port, length, network })
}

// Boxed, because strategies in one another take more stack than a thread of tests has.
pub(crate) fn link() -> BoxedStrategy<LinkPlan> {
    let wire = (queue(), service(), overhead(), delay(), order());
    let chance = (option::of(loss()), option::of(loss()), probability(), probability());
    let rest =
        (option::weighted(0.3, reorder()), option::weighted(0.2, 0u64..20), option::weighted(0.4, mtu()));
    let more = (
        option::weighted(0.2, bits()),
        option::weighted(0.2, loss()),
        option::weighted(0.3, slots()),
        option::weighted(0.2, netem()),
        option::weighted(0.2, trace(bound().boxed())),
        option::weighted(0.3, air()),
        prop_oneof![3 => Just(0), 1 => burst()],
        option::weighted(0.2, policer()),
    );
    (wire, chance, rest, more)
        .prop_map(
            |(
                (queue, service, overhead, delay, order),
                (ingress_loss, wire_loss, corruption, duplication),
                (reorder, line_limit, mtu),
                (bits, duplicates, slots, netem, bounds, air, burst, policer),
            )| LinkPlan {
                queue,
                service,
                overhead,
                air,
                burst,
                ingress_loss,
                wire_loss,
                corruption,
                duplication,
                delay,
                order,
                reorder,
                line_limit,
                mtu,
                bits,
                duplicates,
                slots,
                netem,
                bounds,
                policer,
                ..LinkPlan::new("")
            },
        )
        .boxed()
}

pub(crate) fn change() -> BoxedStrategy<ChangePlan> {
    prop_oneof![
        4 => service().prop_map(ChangePlan::Service),
        2 => queue().prop_map(ChangePlan::Queue),
        1 => bound().prop_map(ChangePlan::QueueBound),
        1 => option::of(trace(bound().boxed())).prop_map(ChangePlan::BoundSteps),
        1 => overhead().prop_map(ChangePlan::Overhead),
        1 => option::of(air()).prop_map(ChangePlan::AirTime),
        1 => burst().prop_map(ChangePlan::Burst),
        1 => option::of(loss()).prop_map(ChangePlan::IngressLoss),
        1 => option::of(loss()).prop_map(ChangePlan::WireLoss),
        1 => option::of(policer()).prop_map(ChangePlan::Policer),
        1 => probability().prop_map(ChangePlan::Corruption),
        1 => probability().prop_map(ChangePlan::Duplication),
        2 => delay().prop_map(ChangePlan::Delay),
        1 => option::of(reorder()).prop_map(ChangePlan::Reorder),
        1 => option::of(bits()).prop_map(ChangePlan::Bits),
        1 => option::of(loss()).prop_map(ChangePlan::Duplicates),
        2 => option::of(slots()).prop_map(ChangePlan::Slots),
        2 => option::of(netem()).prop_map(ChangePlan::Netem),
        3 => settings().prop_map(ChangePlan::Settings),
    ]
    .boxed()
}

fn queue() -> impl Strategy<Value = QueuePlan> {
    let drop_at = prop_oneof![Just(DropAt::Tail), Just(DropAt::Head)];
    let gate = (bound(), 1u64..300_000, 0u64..3_000_000).prop_map(|(bound, period, patience)| {
        let (period, patience) = (Duration::from_nanos(period), Duration::from_nanos(patience));
        QueuePlan::Gate { bound, period, patience }
    });
    let fifo = (bound(), drop_at).prop_map(|(bound, drop_at)| QueuePlan::Fifo(bound, drop_at));
    let longest = |batch| Overload::Longest { batch, drop_at: DropAt::Head };
    let overload = prop_oneof![Just(Overload::Arriving), (1u32..4).prop_map(longest)];
    let limits = prop_oneof![Just(Limits::None), Just(Limits::Tight)];
    let classes =
        (scheduler(), bound(), overload, limits).prop_map(|(scheduler, bound, overload, limits)| {
            QueuePlan::Classes { scheduler, bound, overload, limits }
        });
    let rate = option::of(prop_oneof![10_000u64..500_000, 600_000u64..50_000_000]);
    let paced = (bound(), rate).prop_map(|(bound, rate)| QueuePlan::Paced { bound, rate });
    prop_oneof![4 => fifo, 1 => gate, 1 => paced, 4 => classes]
}

pub(crate) fn scheduler() -> impl Strategy<Value = SchedulerPlan> {
    prop_oneof![
        Just(SchedulerPlan::Fifo),
        Just(SchedulerPlan::Priority),
        Just(SchedulerPlan::Drr),
        Just(SchedulerPlan::Ets),
        Just(SchedulerPlan::Taprio),
        Just(SchedulerPlan::Wf2q),
        Just(SchedulerPlan::Qfq),
        Just(SchedulerPlan::Gfq),
        Just(SchedulerPlan::Kps),
        Just(SchedulerPlan::Fair),
        Just(SchedulerPlan::Hpd),
        Just(SchedulerPlan::Htb),
        Just(SchedulerPlan::Hfsc),
        Just(SchedulerPlan::Cbq),
        (1u64..2_000).prop_map(|micros| SchedulerPlan::Abe(Duration::from_micros(micros))),
        option::of(1u64..50).prop_map(SchedulerPlan::Cake),
        (1u64..15).prop_map(|periods| SchedulerPlan::Slots(periods * GATE.nanos())),
    ]
}

/// Around the rates of links.
fn policer() -> impl Strategy<Value = PolicerConfig> {
    let exceed = prop_oneof![Just(Exceed::Drop), Just(Exceed::Mark), Just(Exceed::Pass)];
    (100_000u64..100_000_000, 500u64..5_000, exceed).prop_map(|(rate, burst, exceed)| PolicerConfig {
        rate: Rate::from_bits_per_second(rate),
        burst: Bytes::new(burst),
        peak: None,
        mpu: Bytes::new(64),
        overhead: None,
        exceed,
    })
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (0u64..5).prop_map(Bound::Packets),
        (5u64..100).prop_map(Bound::Packets),
        (0u64..10_000).prop_map(|bytes| Bound::Bytes(Bytes::new(bytes)))
    ]
}

pub(crate) fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        2 => Just(Rate::UNLIMITED),
        1 => Just(Rate::DOWN),
        1 => (1u64..100).prop_map(Rate::from_bits_per_second),
        6 => (100_000u64..20_000_000).prop_map(Rate::from_bits_per_second),
        2 => (20_000_000u64..4_000_000_000).prop_map(Rate::from_bits_per_second),
        1 => (4_000_000_000_000u64..9_000_000_000_000).prop_map(Rate::from_bits_per_second),
    ]
}

fn service() -> impl Strategy<Value = ServicePlan> {
    let outage =
        (rate(), 0u64..10_000_000, 0u64..10_000_000, rate()).prop_map(|(before, at, lasts, after)| {
            let down = Time::from_nanos(at);
            ServicePlan::Outage(Outage { before, down, up: down + Duration::from_nanos(lasts), after })
        });
    let gap = || prop_oneof![Just(0u64), 1u64..100, 100u64..1_000_000].prop_map(Duration::from_nanos);
    let opportunities = ([gap(), gap(), gap()], any::<bool>(), 100u64..2_000)
        .prop_map(|(gaps, loops, bytes)| ServicePlan::Opportunities(gaps, loops, bytes));
    prop_oneof![
        8 => rate().prop_map(ServicePlan::Rate),
        2 => outage,
        2 => trace(rate().boxed()).prop_map(ServicePlan::Trace),
        2 => opportunities,
    ]
}

fn overhead() -> impl Strategy<Value = Overhead> {
    let any = (any::<bool>(), -60i32..60, 0u32..200, any::<bool>()).prop_map(
        |(link_header, extra, minimum, atm)| {
            let cells = if atm { Overhead::ATM.cells } else { None };
            Overhead { link_header, extra, minimum, cells }
        },
    );
    prop_oneof![2 => Just(Overhead::IP), 1 => Just(Overhead::ETHERNET), 1 => Just(Overhead::ATM), 1 => any]
}

fn air() -> BoxedStrategy<AirPlan> {
    let span = || prop_oneof![Just(0u64), 1u64..100, 100u64..1_000_000].prop_map(Duration::from_nanos);
    (span(), span(), 2u32..20, 50u64..=100)
        .prop_map(|(a, b, samples, level)| AirPlan { times: (a.min(b), a.max(b)), samples, level })
        .boxed()
}

fn burst() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..10_000]
}

fn loss() -> BoxedStrategy<LossPlan> {
    let pattern = (option::of(1_000u64..1_000_000), 1u64..30, 0u64..30, 0u64..30).prop_map(
        |(span, length, from, more)| {
            let from = from.min(length - 1);
            LossPlan::Pattern(span.map(Duration::from_nanos), length, [from, (from + more).min(length)])
        },
    );
    let halves =
        || (0u64..=50).prop_map(|percent| Probability::from_ratio(percent, 100).expect("a percentage"));
    let states = (halves(), halves(), halves(), halves(), halves())
        .prop_map(|(p13, p31, p32, p23, p14)| LossPlan::FourState(Transitions { p13, p31, p32, p23, p14 }));
    prop_oneof![
        4 => probability().prop_map(LossPlan::Independent),
        2 => (2u64..9).prop_map(LossPlan::EveryNth),
        1 => (probability(), -0.9..0.9).prop_map(|(p, rho)| LossPlan::Correlated(p, rho)),
        1 => [probability(), probability(), probability(), probability()].prop_map(LossPlan::GilbertElliott),
        1 => states,
        1 => [probability(), probability(), probability()].prop_map(LossPlan::Conditional),
        1 => pattern,
        1 => probability().prop_map(LossPlan::Marking),
        1 => trace(probability().boxed()).prop_map(LossPlan::Trace),
    ]
    .boxed()
}

fn bits() -> BoxedStrategy<BitsPlan> {
    let rate = (0u64..1000).prop_map(|n| Probability::from_ratio(n, 10_000).expect("no more than a tenth"));
    let pattern = (1u64..40_000, 0u64..40_000, 0u64..20).prop_map(|(length, from, more)| {
        let from = from.min(length - 1);
        BitsPlan::Pattern(length, [from, (from + more).min(length)])
    });
    prop_oneof![rate.prop_map(BitsPlan::Errors), pattern, loss().prop_map(BitsPlan::Packets)].boxed()
}

fn slots() -> impl Strategy<Value = SlotsPlan> {
    let gap = || prop_oneof![Just(0u64), 1u64..100, 100u64..3_000_000].prop_map(Duration::from_nanos);
    (gap(), gap(), 0u64..4, prop_oneof![Just(0), 1u64..4_000]).prop_map(|(a, b, packets, bytes)| SlotsPlan {
        gap: (a.min(b), a.max(b)),
        packets,
        bytes,
    })
}

fn netem() -> BoxedStrategy<NetemPlan> {
    let span = || prop_oneof![Just(0u64), 1u64..100, 100u64..5_000_000].prop_map(Duration::from_nanos);
    let percent = || prop_oneof![2 => Just(0.0), 2 => 1.0..60.0, 1 => Just(100.0)];
    let times = (span(), span(), any::<bool>(), option::of(slots()));
    let chances = (percent(), 0u8..3, percent(), percent(), percent(), percent());
    let rest =
        (prop_oneof![0u32..8, Just(1000)], 0u32..4, prop_oneof![Just(0), 1_000u64..2_000_000], 0u32..2);
    let generation = prop_oneof![
        Just(Generation::Linux5_10),
        Just(Generation::Linux6_11),
        Just(Generation::Linux6_13),
        Just(Generation::Linux7_1)
    ];
    (times, chances, rest, generation)
        .prop_map(
            |(
                (delay, jitter, table, slots),
                (loss, model, duplication, corruption, reorder, correlation),
                (limit, gap, rate, cells),
                generation,
            )| NetemPlan {
                generation,
                limit,
                delay,
                jitter,
                table,
                loss,
                model,
                duplication,
                corruption,
                reorder,
                correlation,
                gap,
                rate,
                cell_size: 48 * cells,
                slots,
            },
        )
        .boxed()
}

fn delay() -> impl Strategy<Value = DelayPlan> {
    let span = || prop_oneof![Just(0u64), 1u64..100, 100u64..5_000_000].prop_map(Duration::from_nanos);
    prop_oneof![
        1 => span().prop_map(DelayPlan::Constant),
        1 => (span(), span()).prop_map(|(a, b)| DelayPlan::Uniform(a.min(b), a.max(b))),
        1 => (span(), span()).prop_map(|(mean, sd)| DelayPlan::Normal(mean, sd)),
        1 => (span(), span()).prop_map(|(a, b)| DelayPlan::InTurn(a, b)),
        1 => trace(span().boxed()).prop_map(DelayPlan::Trace),
        2 => fed().prop_map(DelayPlan::Fed),
        1 => (fed(), fed(), span()).prop_map(|(long, lane, rest)| DelayPlan::ByClass(long, lane, rest)),
    ]
}

/// What is tried of the plain settings.
pub(crate) fn settings_of(order: Order, line_limit: Option<u64>, mtu: Option<Mtu>) -> LinkSettings {
    let mut settings = LinkSettings::PLAIN;
    (settings.order, settings.line_limit, settings.mtu) = (order, line_limit, mtu);
    settings
}

fn settings() -> impl Strategy<Value = LinkSettings> {
    (order(), option::of(0u64..20), option::of(mtu()))
        .prop_map(|(order, line_limit, mtu)| settings_of(order, line_limit, mtu))
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Keep), Just(Order::Allow)]
}

fn reorder() -> impl Strategy<Value = ReorderPlan> {
    (probability(), 1u32..5).prop_map(|(probability, gap)| ReorderPlan { probability, gap })
}

fn mtu() -> impl Strategy<Value = Mtu> {
    let policy = prop_oneof![
        3 => Just(MtuPolicy::Fragment),
        1 => Just(MtuPolicy::Answer),
        1 => Just(MtuPolicy::BlackHole)
    ];
    (prop_oneof![0u32..60, 60u32..1_500], policy).prop_map(|(bytes, policy)| Mtu { bytes, policy })
}

/// Zero in half of the cases.
fn probability() -> impl Strategy<Value = Probability> {
    let ratio = |percent| Probability::from_ratio(percent, 100).expect("a percentage");
    prop_oneof![4 => Just(Probability::ZERO), 3 => (1u64..40).prop_map(ratio), 1 => Just(Probability::ONE)]
}
