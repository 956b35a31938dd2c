//! Describes impairments, traffic and the timeline in words.

use narrows_core::source::{Arrivals, Lengths, Pace, Period};
use narrows_core::{Duration, MtuPolicy, Time};

use super::about::about;
use super::app;
use crate::direction::Direction;
use crate::timeline::{Entry, Origin};
use crate::traffic::{AimdConfig, Marks, Traffic, TrafficSource};
use crate::value::LossModel;

pub(super) fn impairments(direction: &Direction) -> Vec<String> {
    let Direction { loss, duplicate, corrupt, .. } = direction;
    let mut all = Vec::new();
    if let Some(profile) = &direction.profile {
        all.push(format!("adds {profile}"));
        if let Some(rate) = profile.rate().filter(|rate| *rate != direction.own_rate()) {
            all.push(format!("the profile's rate, {rate}, is ignored: the link has its own"));
        }
    }
    for filter in direction.ingress.iter().flatten() {
        all.push(format!("filters arriving packets: {}", filter.words()));
    }
    if let Some(policer) = &direction.policer {
        all.push(format!("polices arriving packets to {}", policer.words()));
    }
    if direction.burst.get() > 0 {
        all.push(format!(
            "passes up to {} at once after idle time, at most what the rate would have sent meanwhile",
            direction.burst
        ));
    }
    let places = [("before the queue", &loss.ingress), ("on the wire", &loss.wire)];
    for (place, model) in places.into_iter().filter_map(|(place, model)| Some((place, model.as_ref()?))) {
        all.push(losses(model, place));
    }
    if let (Some((from, least)), Some((to, most))) = (loss.with_delay.first(), loss.with_delay.last()) {
        all.push(match loss.with_delay.len() {
            1 => format!("loses {least} of the packets, whatever their delay"),
            points => format!(
                "loses {least} of the packets with a delay of {from}, {most} with {to} ({points} points)"
            ),
        });
    }
    if !duplicate.is_never() {
        all.push(format!("duplicates {duplicate} of the packets"));
    }
    if !corrupt.is_never() {
        all.push(format!("flips {corrupt}"));
    }
    if let Some(reorder) = direction.reorder {
        let of = match reorder.gap {
            1 => "of the packets".into(),
            gap => format!("of the candidates, the first of which comes after {} packets,", gap - 1),
        };
        all.push(format!("lets {} {of} skip the delay", reorder.chance));
    }
    if let Some(slots) = &direction.slots {
        all.push(format!("lets packets leave in {slots}"));
    }
    if let Some(mtu) = direction.settings.mtu {
        let longer = match mtu.policy {
            MtuPolicy::Fragment => "are fragmented, or answered with \"too big\" if they must not be",
            MtuPolicy::Answer => "are answered with \"too big\"",
            MtuPolicy::BlackHole => "vanish",
        };
        all.push(format!("packets over {} bytes {longer}", mtu.bytes));
    }
    if let Some(limit) = direction.settings.line_limit {
        all.push(format!("the delay line holds at most {limit} packets"));
    }
    all.extend(direction.plain_words());
    all
}

/// Describes a loss model, with its long-run loss if that is not obvious.
fn losses(model: &LossModel, place: &str) -> String {
    let verb = if model.ecn { "marks (where it can, else loses)" } else { "loses" };
    if let Some(chance) = model.independent() {
        return format!("{verb} {chance} of the packets {place}");
    }
    let burst = match model.mean_burst() {
        None => String::new(),
        Some(burst) if burst.is_finite() => format!(", {burst:.2} in a row on average"),
        Some(_) => ", permanently once they begin".into(),
    };
    format!("{verb} packets {place}, {}: {} of them{burst}", model.losses, super::percent(model.mean()))
}

pub(super) fn traffic(traffic: &Traffic) -> String {
    let Traffic { name, from, to, source, sim_only } = traffic;
    let what = match source {
        TrafficSource::Generated { config, .. } => {
            let arrivals = match config.arrivals {
                Arrivals::Constant(pace) => format!("evenly {}", self::pace(pace)),
                Arrivals::Poisson(pace) => format!("at random (Poisson), {} on average", self::pace(pace)),
                Arrivals::OnOff { pace, on, off } => {
                    format!("{} while on; on {}, off {}", self::pace(pace), period(on), period(off))
                }
            };
            let lengths = match &config.lengths {
                Lengths::Fixed(length) => format!("{length} bytes"),
                Lengths::Mix(mix) => format!("{} lengths mixed", mix.len()),
            };
            let mut what = format!("{arrivals}, {lengths}");
            let by_rate = matches!(
                config.arrivals,
                Arrivals::Constant(Pace::Bits(_)) | Arrivals::Poisson(Pace::Bits(_))
            );
            if !by_rate {
                what += &format!(", about {}", about(crate::traffic::offered(config)));
            }
            if config.start > Time::ZERO {
                what += &format!(", from {}", config.start);
            }
            if config.stop < Time::NEVER {
                what += &format!(", until {}", config.stop);
            }
            if let Some(packets) = config.packets {
                what += &format!(", at most {packets} packets");
            }
            what
        }
        TrafficSource::Aimd { config, .. } => aimd(config),
        TrafficSource::App { config, .. } => app::sentence(config),
        TrafficSource::Capture { file, start } => format!("the packets of {}, from {start}", file.display()),
    };
    let only = if *sim_only { "; `sim` only" } else { "" };
    format!("{name}: {from} → {to}: {what}{only}")
}

fn aimd(config: &AimdConfig) -> String {
    let AimdConfig { length, size, start, stop, window, marks } = config;
    let reduces = match marks {
        Marks::None => "halved by a loss",
        Marks::Classic => "halved by a loss or a mark",
        Marks::Scalable => "halved by a loss, reduced by half of the marked share",
    };
    let mut what = format!(
        "a window that grows by a packet per round trip and is {reduces}; {length} bytes, initially {window} packets"
    );
    if *start > Time::ZERO {
        what += &format!(", from {start}");
    }
    if *stop < Time::NEVER {
        what += &format!(", until {stop}");
    }
    if let Some(size) = size {
        what += &format!(", until {size} are delivered");
    }
    what
}

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Packets { count: 1, per } => format!("one packet every {per}"),
        Pace::Packets { count, per } if per == Duration::from_secs(1) => format!("{count} packets a second"),
        Pace::Packets { count, per } => format!("{count} packets every {per}"),
        Pace::Bits(rate) => format!("{rate} of IP packets"),
    }
}

fn period(period: Period) -> String {
    match period {
        Period::Fixed(length) => format!("for {length}"),
        Period::Exponential(mean) => format!("for {mean} on average (exponential)"),
        Period::Pareto { mean, shape } => format!("for {mean} on average (Pareto, shape {shape})"),
    }
}

pub(super) fn entry(entry: &Entry) -> String {
    let from = match entry.from {
        Origin::Start => "",
        Origin::FirstPacket => " after the first packet",
    };
    let again = match (entry.every, entry.times) {
        (None, _) => String::new(),
        (Some(every), None) => format!(", then every {every}"),
        (Some(every), Some(times)) => format!(", then every {every}, {times} times in total"),
    };
    format!("at {}{from}{again}: {}", entry.at, entry.texts().join(", "))
}
