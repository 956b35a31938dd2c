//! Warnings about settings that are valid but probably unintended.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::model::BelowZero;
use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate, Time};

use super::{PathExplanation, delay, full_bytes, guarantees, percent, present_rate, rules};
use crate::direction::Direction;
use crate::link::{Link, Medium};
use crate::scenario::Scenario;
use crate::topology::{Circle, Port};
use crate::traffic::{Traffic, TrafficSource};
use crate::value::{
    self, Child, Class, LossModel, Policy, Queue, Scheduler, SchedulerKind, Shape, ShapedBy, TraceUse,
};

/// A profile whose times probably have another unit than intended.
fn slowed(direction: &Direction) -> Option<String> {
    let used = direction.profile.as_ref()?;
    used.profile.slows(direction.mean_rate()).filter(|_| direction.mean_rate() != Rate::UNLIMITED)
}

/// Smallest share of packets worth a warning.
const NOTICEABLE: f64 = 0.001;

pub(super) fn all(scenario: &Scenario, paths: &[PathExplanation]) -> Vec<String> {
    let mut all = Vec::new();
    for (name, direction) in scenario.links.iter().flat_map(|link| link.directions()) {
        let warnings = [
            below_zero(direction),
            delayed_to_keep_order(direction),
            never_fits(direction),
            lost(direction),
            no_delay(direction),
            nothing_waits(direction),
            slowed(direction),
        ];
        let warnings = warnings.into_iter().flatten().chain(queues(direction));
        all.extend(warnings.map(|warning| format!("{name}: {warning}")));
    }
    all.extend(scenario.links.iter().filter(|link| contend_apart(link)).map(|link| {
        format!(
            "{}: the stations of each direction contend only with each other; for one medium set `shared = true`",
            link.name
        )
    }));
    all.extend(scenario.links.iter().flat_map(rules::warnings));
    let linked: BTreeSet<&str> = scenario.ports().iter().map(|port| port.host.as_str()).collect();
    for host in &scenario.hosts {
        if !linked.contains(host.name.as_str()) {
            all.push(format!("{}: no link ends at this host", host.name));
        }
    }
    all.extend(routes(scenario, paths));
    let end = scenario.duration.map(|duration| Time::ZERO + duration);
    for traffic in &scenario.traffic {
        let (start, ends) = match &traffic.source {
            TrafficSource::Generated { config, .. } => {
                (config.start, config.packets.is_some() || config.stop < Time::NEVER)
            }
            TrafficSource::Aimd { config, .. } => {
                (config.start, config.size.is_some() || config.stop < Time::NEVER)
            }
            TrafficSource::App { config, .. } => (config.start, config.ends()),
            TrafficSource::Capture { start, .. } => (*start, true),
        };
        all.extend(misdirected(scenario, traffic));
        all.extend(too_long(scenario, paths, traffic));
        match end {
            Some(end) if start >= end => {
                all.push(format!("{}: starts at {start}, after the end of the run", traffic.name));
            }
            None if !ends => all.push(format!(
                "{}: never ends; set `stop` or `{}`, or the run's `duration`",
                traffic.name,
                match &traffic.source {
                    TrafficSource::Aimd { .. } => "size",
                    TrafficSource::App { .. } => "transactions",
                    _ => "packets",
                }
            )),
            _ => {}
        }
    }
    for entry in &scenario.timeline {
        if end.is_some_and(|end| Time::ZERO + entry.at >= end) {
            all.push(format!("timeline: the step at {} is after the end of the run", entry.at));
        }
    }
    all
}

/// Routers that connect nothing, routing loops, and paths that do not reach their destination.
fn routes(scenario: &Scenario, paths: &[PathExplanation]) -> Vec<String> {
    let mut all = Vec::new();
    for router in &scenario.routers {
        if !scenario.interfaces().iter().any(|interface| interface.router == router.name) {
            all.push(format!("{}: no link ends at this router", router.name));
        }
    }
    for Circle { routers, destinations } in scenario.topology.circles(&scenario.routers) {
        let mut names: Vec<&str> = destinations.iter().map(String::as_str).collect();
        let more = names.len().saturating_sub(MOST_NAMED);
        names.truncate(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        all.push(format!(
            "{}: packets to {}{more} may loop, {} → {}, until their hop limit is exhausted",
            routers[0],
            names.join(", "),
            routers.join(" → "),
            routers[0],
        ));
    }
    for path in paths {
        for (from, to, ways) in [(&path.from, &path.to, &path.there), (&path.to, &path.from, &path.back)] {
            // Loops were reported before.
            let astray = ways.iter().filter(|way| way.fault.is_some() && !way.goes_round);
            all.extend(astray.map(|way| format!("{from}: not all packets reach {to}: {way}")));
        }
    }
    all
}

/// Maximum number of destinations named in one warning.
const MOST_NAMED: usize = 8;

/// Traffic whose destination routers do not reach.
fn misdirected(scenario: &Scenario, traffic: &Traffic) -> Option<String> {
    let (key, answers) = match &traffic.source {
        TrafficSource::Generated { key, .. } => (key, false),
        TrafficSource::Aimd { key, .. } | TrafficSource::App { key, .. } => (key, true),
        TrafficSource::Capture { .. } => return None,
    };
    let port = |name: &str| scenario.ports().iter().find(|port| port.name == name);
    let (from, to) = (port(&traffic.from)?, port(&traffic.to)?);
    let routed = from.peer != to.name;
    let wrong = |bytes, port: &Port| {
        let ip = IpAddr::V6(Ipv6Addr::from_octets(bytes)).to_canonical();
        let is_group = ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        let is_own =
            port.addresses.iter().any(|address| address.ip == ip) || is_group && scenario.is_switched(from);
        (routed && !is_own).then(|| (ip, port.name.clone()))
    };
    let answered = wrong(key.source, from).filter(|_| answers);
    let (ip, name) = wrong(key.destination, to).or(answered)?;
    Some(format!(
        "{}: {ip} is not an address of `{name}`; routers send packets for it wherever their routes lead",
        traffic.name
    ))
}

/// Application packets, which must not be fragmented, on a path with a smaller MTU.
fn too_long(scenario: &Scenario, paths: &[PathExplanation], traffic: &Traffic) -> Option<String> {
    let TrafficSource::App { config, key } = &traffic.source else { return None };
    let longest = u32::from(config.longest_packet(key.network));
    let ends = [&traffic.from, &traffic.to];
    let path = paths.iter().find(|path| ends == [&path.from, &path.to] || ends == [&path.to, &path.from])?;
    let links = scenario.links.iter().filter(|link| path.links.contains(&link.name));
    let mut directions = links.flat_map(Link::directions);
    let (name, mtu) = directions.find_map(|(name, direction)| {
        let mtu = direction.settings.mtu?.bytes;
        (mtu < longest).then_some((name, mtu))
    })?;
    let help = if config.tcp.is_some() { format!("; set `tcp = {{ mtu = {mtu} }}`") } else { String::new() };
    Some(format!(
        "{}: packets of up to {longest} bytes that must not be fragmented do not pass the MTU of {mtu} of `{name}`{help}",
        traffic.name
    ))
}

/// A random delay that is truncated at zero.
fn below_zero(direction: &Direction) -> Option<String> {
    let delay = direction.effective_delay();
    let (distribution, _) = delay.distribution()?;
    let share = distribution.engine().share_below_zero();
    let what = match distribution.shape {
        Shape::Normal(_) => "normal delays",
        _ => "delays",
    };
    let clamps = distribution.below_zero == BelowZero::Clamp && !direction.follows_delay_trace();
    (clamps && share > NOTICEABLE).then(|| {
        format!(
            "{} of the {what} would be negative and are clamped to zero, which raises the mean",
            percent(share)
        )
    })
}

/// Kept order: a packet with a smaller delay than its predecessor waits for it.
fn delayed_to_keep_order(direction: &Direction) -> Option<String> {
    let (share, gap) = delay::delayed_to_keep_order(direction)?;
    let packets = match gap {
        Some(gap) => format!("full packets in a row ({gap} apart)"),
        None => "packets close together".into(),
    };
    let longer = match gap {
        Some(_) => "",
        None => "a longer `correlation` delays fewer, and ",
    };
    (share >= 0.01).then(|| {
        format!(
            "{} of {packets} are delayed to keep order, so delays are longer and smoother than asked; {longer}`order = \"allow\"` permits reordering",
            percent(share)
        )
    })
}

/// A scheduler or an AQM on a link that never queues packets.
fn nothing_waits(direction: &Direction) -> Option<String> {
    if present_rate(direction) != Rate::UNLIMITED || direction.trace.as_ref().is_some_and(TraceUse::has_rate)
    {
        return None;
    }
    let who = match (&direction.scheduler, direction.queue.policy) {
        // A shaper or netem queues packets at any link rate.
        (Some(scheduler), _) if scheduler.holds_back() => return None,
        (Some(scheduler), _) => scheduler.kind.name(),
        (None, Policy::Fifo) => return None,
        (None, policy) => policy.name(),
    };
    Some(format!("a link without a rate has no backlog, so `{who}` has no effect"))
}

/// Queues, of the direction or of classes, that cannot work as intended.
fn queues(direction: &Direction) -> Vec<String> {
    let Some(scheduler) = &direction.scheduler else {
        return below_threshold("", direction.queue, direction.bound()).into_iter().collect();
    };
    if let (true, Some(whole)) = (scheduler.has_flows(), direction.whole_bound()) {
        return below_threshold(" of all flows together", direction.queue, whole).into_iter().collect();
    }
    let mut all: Vec<String> = fills_the_whole(direction).into_iter().collect();
    all.extend(beyond_parents(scheduler, present_rate(direction)));
    all.extend(guarantees::beyond(scheduler, present_rate(direction)));
    for (class, asked) in direction.classes().iter().zip(scheduler.classes()) {
        let whose = format!(" of `{}`", class.name);
        let longest = asked.longest();
        match class.bound {
            Bound::Bytes(room) if room < longest => {
                all.push(format!("the queue{whose}, {room}, has no room for a packet of {longest}"));
            }
            _ => {}
        }
        all.extend(below_threshold(&whose, asked.queue.unwrap_or(direction.queue), class.bound));
    }
    all.extend(limits_too_short(direction, scheduler));
    all
}

/// A delay bound shorter than the transmission time of one packet.
fn limits_too_short(direction: &Direction, scheduler: &Scheduler) -> Vec<String> {
    let rate = present_rate(direction);
    let classes = scheduler.classes();
    let longest = classes.iter().map(Class::longest).max().unwrap_or_default();
    if [Rate::UNLIMITED, Rate::DOWN].contains(&rate) || scheduler.kind != SchedulerKind::Hpd {
        return Vec::new();
    }
    let bits = direction.effective_overhead().bits(longest.get() as u32, 14); // at most 65,535 bytes
    let nanos = u128::from(bits) * 1_000_000_000 / u128::from(rate.bits_per_second());
    let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    let short = |class: &Class| {
        class.hpd.limit.filter(|limit| *limit < takes).map(|limit| (class.name.clone(), limit))
    };
    let words = |(name, limit)| {
        format!(
            "the limit of `{name}`, {limit}, is below the transmission time of {longest} at {rate}, {takes}: a packet already on the wire breaks it"
        )
    };
    classes.iter().filter_map(short).map(words).collect()
}

/// Guaranteed rates that exceed the parent's rate in total, as tc's manual warns, and ceilings above the
/// parent's. Includes nested schedulers.
fn beyond_parents(scheduler: &Scheduler, rate: Rate) -> Vec<String> {
    let classes = scheduler.named();
    let mut all = Vec::new();
    let bits = |rate: Rate| rate.bits_per_second();
    let tree = value::Tree::of(classes);
    let mut sums = vec![0_u64; classes.len()];
    for (index, class) in classes.iter().enumerate() {
        if let (Some(above), Some(rate)) = (tree.parent(index), class.shape.and_then(|shape| shape.rate())) {
            sums[above] = sums[above].saturating_add(bits(rate));
        }
    }
    for (index, class) in classes.iter().enumerate() {
        let Some(own) = class.shape.and_then(|shape| shape.rate()) else { continue };
        let sum = sums[index];
        if sum > bits(own) {
            all.push(format!(
                "the classes below `{}` have rates of {} in total, above its own {}: not all can reach their rates",
                class.name,
                Rate::from_bits_per_second(sum),
                own
            ));
        }
        let above = tree.parent(index).map(|above| &classes[above]);
        let ceilings = [Some(class), above].map(|class| match class?.shape? {
            ShapedBy::Htb(shape) => Some(shape.ceil()),
            _ => None,
        });
        if let ([Some(own), Some(most)], Some(above)) = (ceilings, above)
            && own > most
        {
            all.push(format!(
                "the ceiling of `{}`, {own}, is above that of its parent `{}`, {most}, and cannot be reached",
                class.name, above.name
            ));
        }
    }
    let top = classes.iter().filter(|class| class.parent.is_none());
    let sum = top.filter_map(|class| class.shape?.rate()).map(bits).fold(0, u64::saturating_add);
    if ![Rate::UNLIMITED, Rate::DOWN].contains(&rate) && sum > bits(rate) {
        all.push(format!(
            "the classes of `{}` have rates of {} in total, above the link's {rate}",
            scheduler.kind.name(),
            Rate::from_bits_per_second(sum)
        ));
    }
    for class in classes {
        if let Some(inner) = class.child.as_ref().and_then(Child::scheduler) {
            all.extend(beyond_parents(inner, Rate::UNLIMITED));
        }
    }
    all
}

/// One class may fill the total bound and leave no room to the others.
fn fills_the_whole(direction: &Direction) -> Option<String> {
    // By design, as in one queue.
    direction.scheduler.as_ref().filter(|scheduler| !scheduler.kind.shares_one_bound())?;
    let (classes, whole) = (direction.classes(), direction.whole_bound()?);
    let reaches = |bound: Bound| match (bound, whole) {
        (Bound::Packets(bound), Bound::Packets(whole)) => bound >= whole,
        (Bound::Bytes(bound), Bound::Bytes(whole)) => bound >= whole,
        _ => false,
    };
    let one = classes.iter().find(|class| reaches(class.bound)).filter(|_| classes.len() > 1)?;
    Some(format!(
        "`{}` alone can fill the scheduler's bound of {whole}; then packets of other classes are dropped",
        one.name
    ))
}

/// RED's average cannot reach the threshold at which every packet is dropped.
fn below_threshold(whose: &str, queue: Queue, bound: Bound) -> Option<String> {
    let red = match queue.policy {
        Policy::Red(red) => red,
        Policy::Choke(choke) => choke.red,
        _ => return None,
    };
    let (_, max) = red.thresholds();
    let is_below = match (bound, max) {
        (Bound::Packets(bound), Bound::Packets(max)) => bound <= max,
        (Bound::Bytes(bound), Bound::Bytes(max)) => bound <= max,
        _ => return None,
    };
    is_below.then(|| {
        format!(
            "the bound{whose}, {bound}, is not above RED's `max` of {max}: the queue is full before its average reaches it"
        )
    })
}

/// A medium access protocol on separate directions of a wire.
fn contend_apart(link: &Link) -> bool {
    let contends = |(_, direction): &(String, &Direction)| {
        direction.scheduler.as_ref().is_some_and(|scheduler| scheduler.kind.is_medium_access())
    };
    matches!(link.medium, Medium::Duplex { .. }) && link.directions().iter().any(contends)
}

/// A queue too small for a packet, which therefore never passes.
fn never_fits(direction: &Direction) -> Option<String> {
    if direction.scheduler.as_ref().is_some_and(|scheduler| !scheduler.has_flows()) {
        return None;
    }
    let bytes = full_bytes(direction);
    match direction.whole_bound().unwrap_or(direction.bound()) {
        Bound::Bytes(room) if room.get() < u64::from(bytes) => {
            Some(format!("the queue of {room} is too small for a packet of {bytes} bytes: all are dropped"))
        }
        _ => None,
    }
}

fn lost(direction: &Direction) -> Option<String> {
    let of =
        |model: &Option<LossModel>| model.as_ref().filter(|model| !model.ecn).map_or(0.0, LossModel::mean);
    let on_wire = direction.trace.as_ref().and_then(TraceUse::mean_loss).unwrap_or(of(&direction.loss.wire));
    let all = 1.0 - (1.0 - of(&direction.loss.ingress)) * (1.0 - on_wire);
    if present_rate(direction) == Rate::DOWN {
        return Some("the link is down: packets wait in its queue until that changes".into());
    }
    (all >= 0.5).then(|| format!("{} of the packets are lost", percent(all)))
}

fn no_delay(direction: &Direction) -> Option<String> {
    let no_delay = direction.longest_delay() == Some(Duration::ZERO);
    (direction.reorder.is_some() && no_delay)
        .then(|| "`reorder` lets packets skip the delay, but there is no delay".into())
}
