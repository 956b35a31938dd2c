//! `dualpi2 target 15ms tupdate 16ms step_thresh 1ms classic_protection 10%`: two queues, one for L4S traffic.

use narrows_core::Duration;
use narrows_core::aqm::DualPi2Config;
use narrows_core::queue::Bound;

use super::classless::Table;
use super::{Kind, number, packets, time, unknown, whole};
use crate::netem::units;
use crate::netem::words::{Word, Words};
use crate::problem::{Found, Problem};

const KNOWN: &[&str] = &[
    "limit",
    "target",
    "tupdate",
    "alpha",
    "beta",
    "coupling_factor",
    "step_thresh",
    "min_qlen_step",
    "classic_protection",
    "max_rtt",
    "typical_rtt",
    "drop_on_overload",
    "drop_dequeue",
];
/// Gains are told to the kernel in these parts of a hertz.
const PARTS: f64 = 256.0;
/// What the longest round trip is, in the usual ones, where tc is told one of the two.
const USUAL_TO_LONGEST: u64 = 6;
/// What the kernel has where nothing is said, and narrows has other values.
const USUAL_STEP: Duration = Duration::from_millis(1);
const USUAL_PROTECTION: u16 = 10;

/// How the controller moves; nothing for what the kernel and narrows have both.
#[derive(Default)]
struct Controller {
    target: Option<Duration>,
    update: Option<Duration>,
    alpha: Option<f64>,
    beta: Option<f64>,
}

pub(super) fn dualpi2(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("dualpi2");
    let mut controller = Controller::default();
    let (mut longest, mut usual) = (None, None);
    let (mut step, mut least, mut protection) = (USUAL_STEP, 0, USUAL_PROTECTION);
    while let Some(word) = words.take() {
        match word.text {
            "limit" => table.quoted("bound", packets(word, words)?),
            "target" => controller.target = Some(span(word, words, Duration::from_micros(100))?),
            "tupdate" => controller.update = Some(span(word, words, Duration::from_millis(1))?),
            "alpha" => controller.alpha = Some(gain(word, words, *DualPi2Config::ALPHA.start())?),
            "beta" => controller.beta = Some(gain(word, words, *DualPi2Config::BETA.start())?),
            "coupling_factor" => table.put("coupling", number(word, words, 1, 255)?),
            "step_thresh" => step = step_threshold(word, words)?,
            "min_qlen_step" => least = number(word, words, 0, 1 << 30)? as u64,
            "classic_protection" => protection = share(word, words)?,
            "max_rtt" => longest = Some((word, time(word, words)?)),
            "typical_rtt" => usual = Some((word, time(word, words)?)),
            "drop_on_overload" | "drop_dequeue" | "l4s_ect" | "split_gso" | "no_split_gso" => {}
            "memlimit" => {
                words.expect(word, "a number")?;
            }
            "overflow" => return Err(other(word, "when overloaded, both queues lose packets")),
            "drop_enqueue" => return Err(other(word, "packets are dropped on departure, as in RFC 9332")),
            "any_ect" => return Err(other(word, "ECT(0) goes to the classic queue, as in RFC 9331")),
            _ => return Err(unknown(word, "dualpi2", KNOWN)),
        }
    }
    if let Some((word, _)) = longest.or(usual) {
        controller = by_round_trips(word, longest, usual)?;
    }
    let Controller { target, update, alpha, beta } = controller;
    if let Some(target) = target {
        table.quoted("target", target);
    }
    if let Some(update) = update {
        table.quoted("update", update);
    }
    for (key, gain) in [("alpha", alpha), ("beta", beta)] {
        if let Some(gain) = gain {
            table.put(key, gain);
        }
    }
    table.quoted("step", step);
    table.quoted("least", Bound::Packets(least));
    table.put("weights", format!("{{ low = {}, classic = {protection} }}", 100 - protection));
    Ok(whole("dualpi2", "queue", table.text()))
}

fn other(word: Word<'_>, here: &str) -> Problem {
    word.problem(format!("{} is not understood", Found(word.text))).help(format!("here {here}"))
}

/// A time that narrows takes, which is not as short as the kernel does.
fn span(after: Word<'_>, words: &mut Words<'_>, least: Duration) -> Result<Duration, Problem> {
    let most = Duration::from_secs(10);
    match time(after, words)? {
        span if (least..=most).contains(&span) => Ok(span),
        span => {
            Err(after.problem(format!("`{}` is {span}", after.text)).help(format!("from {least} to {most}")))
        }
    }
}

/// In whole parts, as tc tells it.
fn gain(after: Word<'_>, words: &mut Words<'_>, least: f64) -> Result<f64, Problem> {
    let word = words.expect(after, "a number")?;
    let told = word.text.parse::<f64>().ok().map(in_parts);
    told.filter(|gain| (least..=*DualPi2Config::ALPHA.end()).contains(gain)).ok_or_else(|| {
        word.problem(format!("{} is no gain in hertz", Found(word.text)))
            .help(format!("from {least} to {}, in 256ths", DualPi2Config::ALPHA.end()))
    })
}

fn in_parts(hertz: f64) -> f64 {
    libm::floor(hertz * PARTS) / PARTS
}

fn step_threshold(after: Word<'_>, words: &mut Words<'_>) -> Result<Duration, Problem> {
    let word = words.expect(after, "a time")?;
    if word.text.trim_start_matches(|char: char| char.is_ascii_digit()).starts_with('p') {
        return Err(word
            .problem("a step in packets")
            .help("a packet is marked by how long it has waited: say a time, as in: step_thresh 1ms"));
    }
    Ok(units::time_in_micros(word)?.value)
}

/// The share of the classic queue, in per cent. Without any, or with all, one of the two could starve.
fn share(after: Word<'_>, words: &mut Words<'_>) -> Result<u16, Problem> {
    let word = words.expect(after, "a share")?;
    let number = word.text.strip_suffix('%').unwrap_or(word.text).parse::<f64>().ok();
    number.map(libm::rint).filter(|share| (1.0..=99.0).contains(share)).map(|share| share as u16).ok_or_else(
        || word.problem(format!("{} is no share of the link", Found(word.text))).help("from 1% to 99%"),
    )
}

/// What tc makes of round trips (`dualpi2_parse_opt`): RFC 9332's gains, of which it has the factors in single precision.
fn by_round_trips(
    word: Word<'_>,
    longest: Option<(Word<'_>, Duration)>,
    usual: Option<(Word<'_>, Duration)>,
) -> Result<Controller, Problem> {
    let micros = |round_trip: Option<(Word<'_>, Duration)>| round_trip.map(|(_, time)| time.nanos() / 1000);
    let (longest, usual) = match (micros(longest), micros(usual)) {
        (Some(longest), Some(usual)) if usual > longest => {
            return Err(word.problem("`typical_rtt` is above `max_rtt`"));
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
        return Err(word
            .problem(format!("target {target}, tupdate {update}, alpha {alpha} and beta {beta} follow"))
            .help("narrows takes a tupdate of 1ms and more, and an alpha of 0.01 and more"));
    }
    Ok(Controller { target: Some(target), update: Some(update), alpha: Some(alpha), beta: Some(beta) })
}
