//! `dualpi2 target 15ms tupdate 16ms step_thresh 1ms classic_protection 10%`: two queues, one for L4S traffic.

use narrows_core::aqm::DualPi2Config;
use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration};

use crate::dialect::{Follows, Opt, Options, Read, Unit, Word, number, shown_as_is, text_of};
use crate::keys::kind::text;
use crate::netem::units;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::tc::unit::{LIMIT, PACKETS, TIME, time_of, whole};

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["coupling_factor"], "coupling", whole::<1, 255>()),
    Opt::value(&["target"], "target", span::<100_000>()),
    Opt::value(&["tupdate"], "update", span::<1_000_000>()),
    Opt::value(&["alpha"], "alpha", ALPHA),
    Opt::value(&["beta"], "beta", BETA),
    Opt::value(&["step_thresh"], "step", STEP),
    Opt::value(&["min_qlen_step"], "step-min-arrival", LEAST),
    Opt::value(&["classic_protection"], "weights", PROTECTION),
    Opt::value(&["max_rtt"], LONGEST, TIME),
    Opt::value(&["typical_rtt"], USUAL_RTT, TIME),
    Opt::switch(&["any_ect"], &["l4s_ect"], "any-ect"),
    Opt::switch(&["overflow"], &["drop_on_overload"], "overflow"),
    Opt::switch(&["drop_enqueue"], &["drop_dequeue"], "on-arrival"),
    Opt::nothing(&["split_gso"], Follows::Nothing),
    Opt::nothing(&["no_split_gso"], Follows::Nothing)
        .remark("`no_split_gso` has no effect: packets here are segments already."),
    Opt::value(&["memlimit"], MEMORY, whole::<1, { u32::MAX as i64 }>()).remark(
        "`memlimit` counts the bytes of IP packets; the kernel counts the memory of its buffers, 2304 bytes for a frame of 1000. It replaces `limit` where it holds fewer packets of 1500 bytes.",
    ),
]]);

/// The kernel's defaults, where narrows has others.
pub(super) const USUAL: &[(&str, &str)] = &[
    ("bound", "10000 packets"),
    ("step", "1ms"),
    ("step-min-backlog", "0 packets"),
    ("weights", "{ low = 90, classic = 10 }"),
];

/// In tc only.
const MEMORY: &str = "memlimit";
/// Round-trip times, from which tc derives the controller's parameters.
const LONGEST: &str = "max_rtt";
const USUAL_RTT: &str = "typical_rtt";
/// The longest IP packet of a device that nobody has changed.
const MTU: u64 = 1500;
/// The kernel gets gains in these parts of a hertz.
const PARTS: f64 = 256.0;
/// Ratio of the maximum to the typical round-trip time, if only one of them is given.
const USUAL_TO_LONGEST: u64 = 6;

/// A time within narrows' range, whose minimum is longer than the kernel's.
const fn span<const LEAST_NANOS: u64>() -> Unit {
    Unit {
        read: |word, option| {
            let (least, most) = (Duration::from_nanos(LEAST_NANOS), Duration::from_secs(10));
            match units::time_in_micros(word)? {
                read if (least..=most).contains(&read.value) => Ok(read.map(text)),
                read => Err(option
                    .problem(format!("`{}` is {}", option.text, read.value))
                    .help(format!("from {least} to {most}"))),
            }
        },
        ..TIME
    }
}

const ALPHA: Unit =
    Unit { what: "a number", read: |word, _| gain(word, *DualPi2Config::ALPHA.start()), show: shown_as_is };
const BETA: Unit = Unit { read: |word, _| gain(word, *DualPi2Config::BETA.start()), ..ALPHA };

/// Rounded to whole parts, as tc passes it.
fn gain(word: Word<'_>, least: f64) -> Result<Read<Value>, Problem> {
    let most = *DualPi2Config::ALPHA.end();
    let told = word.text.parse::<f64>().ok().map(in_parts);
    let told = told.filter(|gain| (least..=most).contains(gain)).ok_or_else(|| {
        word.problem(format!("{} is not a gain in hertz", Found(word.text)))
            .help(format!("from {least} to {most}, in 256ths"))
    })?;
    Ok(Read::plain(Value::Float(told.to_string())))
}

fn in_parts(hertz: f64) -> f64 {
    libm::floor(hertz * PARTS) / PARTS
}

/// A time, or packets with their unit. Zero packets mean the default in tc.
const STEP: Unit = Unit {
    what: "a time or a number of packets",
    read: |word, _| {
        let digits = word.text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        match (&word.text[digits.len()..], digits.parse::<u32>()) {
            ("p" | "pkt" | "pkts" | "packet" | "packets", Ok(packets)) => {
                Ok(Read::plain(text(Bound::Packets(packets.into()))))
            }
            _ => Ok(units::time_in_micros(word)?.map(text)),
        }
    },
    show: |node| match crate::units::packets(node) {
        Ok(packets) => Some(format!("{packets}p")),
        Err(_) => shown_as_is(node),
    },
};

/// Zero packets are allowed here.
const LEAST: Unit = Unit {
    read: |word, _| {
        let packets = units::integer(word, "a number", 0, 1 << 30)?;
        Ok(Read::plain(text(Bound::Packets(packets as u64)))) // at most 2³⁰
    },
    ..PACKETS
};

/// The share of the classic queue in percent. With 0 or 100, one of the queues waits for the other.
const PROTECTION: Unit = Unit {
    what: "a share",
    read: |word, _| {
        let share = word.text.strip_suffix('%').unwrap_or(word.text).parse::<f64>().ok();
        let share = share.map(libm::rint).filter(|share| (0.0..=100.0).contains(share)).ok_or_else(|| {
            word.problem(format!("{} is not a share of the link", Found(word.text))).help("from 0% to 100%")
        })?;
        let mut weights = Table::default();
        weights.put("low", number(100.0 - share));
        weights.put("classic", number(share));
        Ok(Read::plain(Value::Table(weights)))
    },
    show: |node| {
        let weight = |key| crate::dialect::number_of::<u64>(node.table("").ok()?, key);
        let (low, classic) = (weight("low")?, weight("classic")?);
        (low + classic == 100).then(|| format!("{classic}%"))
    },
};

/// Round-trip times override the controller's own options.
pub(super) fn settle(_: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let (longest, usual) = (time_of(keys, LONGEST), time_of(keys, USUAL_RTT));
    let place = keys.key(LONGEST).or(keys.key(USUAL_RTT)).map(|key| key.span.clone());
    keys.remove(LONGEST);
    keys.remove(USUAL_RTT);
    if let Some(place) = place {
        let micros = |round_trip: Option<Duration>| round_trip.map(|time| time.nanos() / 1000);
        by_round_trips(keys, micros(longest), micros(usual)).map_err(|problem| problem.at(&place))?;
    }
    by_memory(keys);
    if text_of(keys, "step") == "0 packets" {
        keys.set("step", Node::new(text("1ms")));
    }
    *keys = OPTIONS.arranged(keys);
    Ok(())
}

/// Of the two limits, the one that holds fewer packets of the MTU.
fn by_memory(keys: &mut Table) {
    let Some((_, memory)) = keys.take(MEMORY) else { return };
    let memory = shown_as_is(&memory).and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(u64::MAX);
    let packets = keys.get("bound").and_then(|bound| crate::units::packets(bound).ok()).unwrap_or(u64::MAX);
    if memory < packets.saturating_mul(MTU) {
        keys.set("bound", Node::new(text(Bytes::new(memory))));
    }
}

/// Computes the controller's parameters from round-trip times in microseconds, as tc does
/// (`dualpi2_parse_opt`): the gains of RFC 9332, with factors in single precision.
fn by_round_trips(keys: &mut Table, longest: Option<u64>, usual: Option<u64>) -> Result<(), Problem> {
    let (longest, usual) = match (longest, usual) {
        (Some(longest), Some(usual)) if usual > longest => {
            return Err(Problem::new("`typical_rtt` is above `max_rtt`"));
        }
        (Some(longest), usual) => (longest, usual.unwrap_or((longest / USUAL_TO_LONGEST).max(1))),
        (None, usual) => {
            let usual = usual.unwrap_or_default();
            (usual * USUAL_TO_LONGEST, usual)
        }
    };
    let update = usual.min(longest / 3).max(1);
    let seconds = longest as f64 / 1e6;
    let alpha = in_parts(f64::from(0.1f32) * (update as f64 / 1e6) / (seconds * seconds));
    let beta = in_parts(f64::from(0.3f32) / seconds);
    let (target, update) = (Duration::from_micros(usual), Duration::from_micros(update));
    let in_range = target >= Duration::from_micros(100)
        && target <= Duration::from_secs(10)
        && update >= Duration::from_millis(1)
        && DualPi2Config::ALPHA.contains(&alpha)
        && DualPi2Config::BETA.contains(&beta);
    if !in_range {
        return Err(Problem::new(format!(
            "target {target}, tupdate {update}, alpha {alpha} and beta {beta} follow"
        ))
        .help("narrows needs a tupdate of at least 1ms and an alpha of at least 0.01"));
    }
    let gain = |gain: f64| Value::Float(gain.to_string());
    for (key, value) in
        [("target", text(target)), ("update", text(update)), ("alpha", gain(alpha)), ("beta", gain(beta))]
    {
        keys.set(key, Node::new(value));
    }
    Ok(())
}
