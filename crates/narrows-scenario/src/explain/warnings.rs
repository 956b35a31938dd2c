//! What is legal and may not be meant.

use narrows_core::model::BelowZero;
use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate, Time};

use super::{delay, full_bytes, percent, present_rate};
use crate::direction::Direction;
use crate::link::{Link, Medium};
use crate::scenario::Scenario;
use crate::traffic::TrafficSource;
use crate::value::{LossModel, Policy, Queue, SchedulerKind, Shape, TraceUse};

/// A share of packets that is worth a word.
const NOTICEABLE: f64 = 0.001;

pub(super) fn all(scenario: &Scenario) -> Vec<String> {
    let mut all = Vec::new();
    for (name, direction) in scenario.links.iter().flat_map(|link| link.directions()) {
        let warnings = [
            below_zero(direction),
            held_back(direction),
            never_fits(direction),
            lost(direction),
            no_delay(direction),
            nothing_waits(direction),
        ];
        let warnings = warnings.into_iter().flatten().chain(queues(direction));
        all.extend(warnings.map(|warning| format!("{name}: {warning}")));
    }
    all.extend(scenario.links.iter().filter(|link| contend_apart(link)).map(|link| {
        format!(
            "{}: the stations of each direction contend among themselves only; for one medium say `shared = true`",
            link.name
        )
    }));
    for host in &scenario.hosts {
        if !scenario.ports().iter().any(|port| port.host == host.name) {
            all.push(format!("{}: no link ends at this host", host.name));
        }
    }
    let end = scenario.duration.map(|duration| Time::ZERO + duration);
    for traffic in &scenario.traffic {
        let (start, ends) = match &traffic.source {
            TrafficSource::Generated { config, .. } => {
                (config.start, config.packets.is_some() || config.stop < Time::NEVER)
            }
            TrafficSource::Aimd { config, .. } => {
                (config.start, config.size.is_some() || config.stop < Time::NEVER)
            }
            TrafficSource::Capture { start, .. } => (*start, true),
        };
        match end {
            Some(end) if start >= end => {
                all.push(format!("{}: begins at {start}, when the run has ended", traffic.name));
            }
            None if !ends => all.push(format!(
                "{}: never ends; say `stop` or `{}`, or a `duration` for the run",
                traffic.name,
                if matches!(traffic.source, TrafficSource::Aimd { .. }) { "size" } else { "packets" }
            )),
            _ => {}
        }
    }
    for entry in &scenario.timeline {
        if end.is_some_and(|end| Time::ZERO + entry.at >= end) {
            all.push(format!("timeline: nothing happens at {}, when the run has ended", entry.at));
        }
    }
    all
}

/// A delay that is drawn is cut off at zero.
fn below_zero(direction: &Direction) -> Option<String> {
    let delay = direction.effective_delay();
    let (distribution, _) = delay.distribution()?;
    let share = distribution.engine().share_below_zero();
    let what = match distribution.shape {
        Shape::Normal { .. } => "normal delays",
        _ => "delays",
    };
    let clamps = distribution.below_zero == BelowZero::Clamp && !direction.follows_delay_trace();
    (clamps && share > NOTICEABLE).then(|| {
        format!("{} of the {what} would be below zero and become zero, which raises the mean", percent(share))
    })
}

/// Order kept: a packet that drew less than the one before it waits for that one.
fn held_back(direction: &Direction) -> Option<String> {
    let (share, gap) = delay::held_back(direction)?;
    let packets = match gap {
        Some(gap) => format!("full packets in a row ({gap} apart)"),
        None => "packets close together".into(),
    };
    let longer = match gap {
        Some(_) => "",
        None => "a longer `correlation` holds back fewer, and ",
    };
    (share >= 0.01).then(|| {
        format!(
            "of {packets}, {} are held back behind the one before, as order is kept: \
             delays come out longer and smoother than asked; {longer}`order = \"allow\"` lets packets overtake",
            percent(share)
        )
    })
}

/// Where nothing waits, nothing is to be shared or managed.
fn nothing_waits(direction: &Direction) -> Option<String> {
    if present_rate(direction) != Rate::UNLIMITED || direction.trace.as_ref().is_some_and(TraceUse::has_rate)
    {
        return None;
    }
    let who = match (&direction.scheduler, direction.queue.policy) {
        (Some(scheduler), _) => scheduler.kind.name(),
        (None, Policy::Fifo) => return None,
        (None, policy) => policy.name(),
    };
    Some(format!("nothing ever waits on a link without a rate, so `{who}` has nothing to do"))
}

/// Queues, of the direction or of classes, that cannot do what they are for.
fn queues(direction: &Direction) -> Vec<String> {
    let Some(scheduler) = &direction.scheduler else {
        return below_threshold("", direction.queue, direction.bound()).into_iter().collect();
    };
    if let (true, Some(whole)) = (scheduler.has_flows(), direction.whole_bound()) {
        return below_threshold(" of all flows together", direction.queue, whole).into_iter().collect();
    }
    let mut all: Vec<String> = fills_the_whole(direction).into_iter().collect();
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
    all
}

/// One class may take all the room that there is, and leave none to the others.
fn fills_the_whole(direction: &Direction) -> Option<String> {
    let (classes, whole) = (direction.classes(), direction.whole_bound()?);
    let reaches = |bound: Bound| match (bound, whole) {
        (Bound::Packets(bound), Bound::Packets(whole)) => bound >= whole,
        (Bound::Bytes(bound), Bound::Bytes(whole)) => bound >= whole,
        _ => false,
    };
    let one = classes.iter().find(|class| reaches(class.bound)).filter(|_| classes.len() > 1)?;
    Some(format!(
        "`{}` alone may fill the scheduler's bound of {whole}; then packets of the other classes are dropped",
        one.name
    ))
}

/// The average of RED cannot get to where it drops every packet.
fn below_threshold(whose: &str, queue: Queue, bound: Bound) -> Option<String> {
    let Policy::Red(red) = queue.policy else { return None };
    let (_, max) = red.thresholds();
    let is_below = match (bound, max) {
        (Bound::Packets(bound), Bound::Packets(max)) => bound <= max,
        (Bound::Bytes(bound), Bound::Bytes(max)) => bound <= max,
        _ => return None,
    };
    is_below.then(|| {
        format!(
            "the bound{whose}, {bound}, is no more than RED's upper threshold of {max}: the queue is full before its \
             average gets there"
        )
    })
}

/// A medium access protocol for each direction of a wire.
fn contend_apart(link: &Link) -> bool {
    let is_dcf = |(_, direction): &(String, &Direction)| {
        direction.scheduler.as_ref().is_some_and(|scheduler| scheduler.kind == SchedulerKind::Dcf)
    };
    matches!(link.medium, Medium::Duplex { .. }) && link.directions().iter().any(is_dcf)
}

/// A queue too small for a packet never lets it through.
fn never_fits(direction: &Direction) -> Option<String> {
    if direction.scheduler.as_ref().is_some_and(|scheduler| !scheduler.has_flows()) {
        return None;
    }
    let bytes = full_bytes(direction);
    match direction.whole_bound().unwrap_or(direction.bound()) {
        Bound::Bytes(room) if room.get() < u64::from(bytes) => {
            Some(format!("the queue of {room} has no room for a packet of {bytes} bytes: none gets through"))
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
        return Some("the link is down: nothing gets through until that changes".into());
    }
    (all >= 0.5).then(|| format!("{} of the packets are lost", percent(all)))
}

fn no_delay(direction: &Direction) -> Option<String> {
    let no_delay = direction.longest_delay() == Some(Duration::ZERO);
    (direction.reorder.is_some() && no_delay)
        .then(|| "`reorder` lets packets skip the delay, and there is none".into())
}
