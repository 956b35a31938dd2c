//! Builds the entries of a report from counters and meters.

use narrows_core::{
    Counters, DropReason, Duration, Engine, LinkView, PortCounters, PortId, Rate, Tally, Time,
};

use crate::class;
use crate::figures::{Spread, mean, quantiles, share};
use crate::flows;
use crate::info::DirectionInfo;
use crate::meter::{HISTOGRAM_BOUNDS, LATENESS_BOUNDS, Meter, PairMeter, PortMeter};
use crate::report::{Conservation, Direction, Drop, Lateness, Pair, PortReport, Share, Step, Throughput};
use crate::router;
use crate::rules;
use crate::shaped;
use crate::switch;

/// The counters of a direction. [`describe`] adds the texts.
pub(crate) fn direction<B>(info: &DirectionInfo, engine: &Engine<B>, now: Time) -> Option<Direction> {
    let view = engine.view(engine.link(&info.link)?);
    let all = view.counters();
    let counters = all.get(usize::from(info.lane))?;
    let seen = counters.arrived.packets + counters.duplicated.packets;
    let dropped = counters.dropped_in_all();
    let drops = DropReason::ALL.into_iter().filter_map(|reason| {
        let Tally { packets, bytes } = counters.dropped(reason);
        let drop = Drop { reason: reason.name().into(), packets, bytes, share: share(packets, seen) };
        (packets > 0).then_some(drop)
    });
    let (began, ended) = counters.transmissions;
    let flowing = ended.since(began);
    let took_time = counters.busy > Duration::ZERO && view.instance_counts().is_none();
    Some(Direction {
        link: String::new(),
        lane: info.lane,
        rules: None,
        from: String::new(),
        to: String::new(),
        asked: String::new(),
        asked_rate_bps: info.rate_bps,
        asked_delay_ns: info.delay.map(Duration::nanos),
        overhead: String::new(),
        offered: throughput(counters.arrived, counters.arrivals),
        delivered: throughput(counters.left, counters.departures),
        dropped_packets: dropped.packets,
        dropped_share: share(dropped.packets, seen),
        drops: drops.collect(),
        duplicated_packets: counters.duplicated.packets,
        corrupted_packets: counters.corrupted,
        marked_packets: counters.marked,
        reordered_packets: counters.reordered,
        delayed_to_keep_order_packets: counters.delayed_to_keep_order,
        fragmented_packets: counters.fragmented,
        fragment_packets: counters.pieces,
        wire_bits: counters.wire_bits,
        wire_bps: by_time(counters.wire_bits.into(), flowing),
        utilisation_share: took_time.then(|| share(counters.busy.nanos(), flowing.nanos())),
        queueing_mean_ns: mean(counters.waited, counters.sent.packets),
        inside_packets: counters.inside(),
        backlog_packets: if info.lane == 0 { view.backlog().packets } else { 0 },
        backlog_bytes: if info.lane == 0 { view.backlog().bytes } else { 0 },
        in_flight_packets: if info.lane == 0 { view.in_flight() } else { 0 },
        // The lanes of a shared medium share one queue: its classes are listed with the first lane.
        classes: if info.lane == 0 { class::classes(info, &view, now) } else { Vec::new() },
        scheduler_failure: class::failure(info, &view, now),
        shaped: if info.lane == 0 { shaped::classes(info, &view, now) } else { Vec::new() },
        per_flow: view.instance_counts().is_some(),
        flows: if info.lane == 0 { flows::of_link(&view, info.mask.as_ref(), now) } else { None },
    })
}

/// Sets which direction it is, and its configured settings.
pub(crate) fn describe(direction: &mut Direction, info: &DirectionInfo) {
    direction.link.clone_from(&info.link);
    direction.rules.clone_from(&info.rules);
    direction.from.clone_from(&info.from);
    direction.to.clone_from(&info.to);
    direction.asked.clone_from(&info.asked);
    direction.overhead.clone_from(&info.overhead);
}

pub(crate) fn pairs(meter: &Meter, names: &[String]) -> Vec<((PortId, PortId), Pair)> {
    let name = |port: PortId| names.get(usize::from(port.index())).cloned().unwrap_or_default();
    let pair = |from, to, pair: &PairMeter| Pair {
        from_port: name(from),
        to_port: name(to),
        delivered: throughput(Tally { packets: pair.packets, bytes: pair.bytes }, (pair.first, pair.last)),
        delay: quantiles(&pair.delay),
        queueing: quantiles(&pair.queueing),
    };
    meter.pairs().map(|(from, to, seen)| ((from, to), pair(from, to, seen))).collect()
}

pub(crate) fn port(place: usize, counters: PortCounters, meter: &Meter, names: &[String]) -> PortReport {
    let unseen = PortMeter::default();
    let seen = meter.ports().get(place).unwrap_or(&unseen);
    PortReport {
        name: names.get(place).cloned().unwrap_or_default(),
        arrived_packets: counters.arrived.packets,
        arrived_bytes: counters.arrived.bytes,
        delivered_packets: counters.delivered.packets,
        delivered_bytes: counters.delivered.bytes,
        refused_packets: counters.refused.packets,
        receive_ring_dropped_packets: seen.ring_drops,
        send_failed_packets: seen.send_failures,
        lateness: seen.lateness.as_deref().map(|l| lateness(&l.spread, &l.later_than)),
        input_lateness: seen.input_lateness.as_deref().map(quantiles),
    }
}

pub(crate) fn lateness(spread: &Spread, later_than: &[u64; LATENESS_BOUNDS.len()]) -> Lateness {
    let later_than = LATENESS_BOUNDS
        .iter()
        .zip(later_than)
        .map(|(bound, &count)| Share { bound_ns: bound.nanos(), share: share(count, spread.count()) });
    Lateness { quantiles: quantiles(spread), later_than: later_than.collect(), histogram: histogram(spread) }
}

/// From the first step that has packets to the last.
fn histogram(spread: &Spread) -> Vec<Step> {
    let counts = spread.counts(&HISTOGRAM_BOUNDS);
    let step = |(number, &packets): (usize, &u64)| Step {
        up_to_ns: HISTOGRAM_BOUNDS.get(number).map(|bound| bound.nanos()),
        packets,
    };
    let last = counts.iter().rposition(|&packets| packets > 0).map_or(0, |last| last + 1);
    let first = counts.iter().position(|&packets| packets > 0).unwrap_or(0);
    counts.iter().enumerate().take(last).skip(first).map(step).collect()
}

/// Checks packet conservation over the whole network and at each link; [`seen_by`] checks it over the verdicts
/// polled.
pub(crate) fn conservation<B>(engine: &Engine<B>, now: Time) -> Conservation {
    let mut sum = Conservation { inside_packets: engine.inside(), ..Conservation::default() };
    for port in engine.ports() {
        let port = engine.port_counters(port);
        sum.in_packets += port.arrived.packets;
        sum.delivered_packets += port.delivered.packets;
        sum.dropped_packets += port.refused.packets;
    }
    for link in engine.links() {
        let view = engine.view(link);
        let all = view.counters();
        for counters in &*all {
            sum.duplicated_packets += counters.duplicated.packets;
            sum.dropped_packets += counters.dropped_in_all().packets;
        }
        let (counted, held) = (counted_inside(&all), held(&view));
        if counted != i128::from(held) {
            sum.violations.push(format!(
                "link {}: its counters leave {counted} packets inside, but it holds {held}",
                view.name()
            ));
        }
        sum.violations.extend(class::violations(&view));
        sum.violations.extend(flows::violations(&view, now));
    }
    for rules in engine.rules() {
        let counters = engine.rules_counters(rules);
        sum.dropped_packets += counters.denied.packets + counters.no_pipe.packets + counters.looped.packets;
        sum.violations.extend(rules::violations(rules, engine));
    }
    for router in engine.routers() {
        let counters = engine.router_counters(router);
        sum.dropped_packets +=
            counters.no_route.packets + counters.hop_limit.packets + counters.filtered.packets;
        sum.violations.extend(router::violation(router, engine));
    }
    for switch in engine.switches() {
        let counters = engine.switch_counters(switch);
        sum.duplicated_packets += counters.copied.packets;
        sum.dropped_packets += counters.filtered.packets + counters.looped.packets + counters.refused.packets;
        sum.violations.extend(switch::violation(switch, engine));
    }
    let (taken_over, given) = engine.crossed();
    let came = sum.in_packets + sum.duplicated_packets + taken_over;
    let went = sum.delivered_packets + sum.dropped_packets + sum.inside_packets + given;
    if came != went {
        sum.violations.push(format!(
            "network: {} in and {} duplicated are not {} delivered, {} dropped and {} inside",
            sum.in_packets,
            sum.duplicated_packets,
            sum.delivered_packets,
            sum.dropped_packets,
            sum.inside_packets
        ));
    }
    sum
}

/// Checks conservation a third way: over the verdicts polled.
pub(crate) fn seen_by(meter: &Meter, sum: &mut Conservation) {
    let seen = |of: fn(&PortMeter) -> u64| meter.ports().iter().map(of).sum::<u64>();
    for (what, seen, counted) in [
        ("delivered", seen(|p| p.delivered), sum.delivered_packets),
        ("dropped", seen(|p| p.dropped), sum.dropped_packets),
    ] {
        if seen != counted {
            sum.violations
                .push(format!("events: {counted} packets were {what}, but {seen} such events seen"));
        }
    }
}

/// The packets inside a link according to its counters; negative if more left than arrived.
fn counted_inside(lanes: &[Counters]) -> i128 {
    let inside = |c: &Counters| {
        i128::from(c.arrived.packets) + i128::from(c.duplicated.packets)
            - i128::from(c.left.packets)
            - i128::from(c.dropped_in_all().packets)
    };
    lanes.iter().map(inside).sum()
}

/// The packets that a link actually holds.
fn held(view: &LinkView<'_>) -> u64 {
    view.backlog().packets + view.transmitting() + view.in_flight()
}

fn throughput(tally: Tally, (first, last): (Time, Time)) -> Throughput {
    let Tally { packets, bytes } = tally;
    let bits = u128::from(bytes) * 8;
    let between = bits * u128::from(packets.saturating_sub(1)) / u128::from(packets.max(1));
    let rate_bps = if packets < 2 { None } else { by_time(between, last.since(first)) };
    Throughput { packets, bytes, rate_bps }
}

/// Bits per second, rounded to the nearest; `None` for a span of zero.
fn by_time(bits: u128, span: Duration) -> Option<u64> {
    let nanos = u128::from(span.nanos());
    // 2^64 bytes are 2^67 bits; times 10^9 that is below 2^97.
    let rate = (bits * 1_000_000_000 + nanos / 2).checked_div(nanos)?;
    Some(u64::try_from(rate).unwrap_or(Rate::UNLIMITED.bits_per_second()))
}
