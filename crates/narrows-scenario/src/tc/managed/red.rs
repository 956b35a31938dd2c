//! `red limit 60000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02`: random early detection.

use narrows_core::Bytes;

use crate::dialect::{Follows, Opt, Options, Word, number_of};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::tc::unit::{PROBABILITY, SIZE, missing, size_of, whole};

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", SIZE),
    Opt::value(&["min"], "min", SIZE).zero_is_none(),
    Opt::value(&["max"], "max", SIZE).zero_is_none(),
    PROBABILITY_OF_MAX,
    Opt::value(&["avpkt"], "avpkt", SIZE).zero_is_none(),
    BURST,
    Opt::nothing(&["bandwidth"], Follows::One("a rate")).remark(NO_BANDWIDTH),
    Opt::switch(&["ecn"], &[], "ecn"),
    Opt::switch(&["harddrop"], &[], "harddrop"),
    Opt::switch(&["nodrop"], &[], "nodrop"),
    Opt::nothing(&["adaptive", "adaptative"], Follows::Nothing).remark(
        "`adaptive` has no effect: tc says it where the kernel (since 5.7) does not look when it starts the timer, and the \
         probability stays. For RED that adapts, set `adaptive = true` in the scenario.",
    ),
    Opt::refused(
        &["qevent"],
        "of `red` is not supported: it hands packets that are dropped or marked early to filters",
        "leave it out: no filter acts on such packets here",
    ),
]]);

pub(super) const NO_BANDWIDTH: &str =
    "`bandwidth`, the kernel's rate for the decay of an idle average, is the link's rate here.";
pub(super) const PROBABILITY_OF_MAX: Opt = Opt::value(&["probability"], "probability", PROBABILITY);
pub(super) const BURST: Opt = Opt::value(&["burst"], "burst", whole::<0, { 1 << 20 }>()).zero_is_none();

const EXAMPLE: &str = "red limit 60000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02";

/// Computes the thresholds that are not given, and the weight of an arrival in the average, as tc does.
pub(super) fn settle(name: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let limit = size_of(keys, "bound").ok_or_else(|| missing(name, "limit", EXAMPLE))?;
    if keys.get("avpkt").is_none() {
        return Err(missing(name, "avpkt", EXAMPLE));
    }
    let by_limit = Bytes::new(limit.get() / 4);
    let max = match (size_of(keys, "max"), size_of(keys, "min")) {
        (Some(max), _) => max,
        (None, Some(min)) => Bytes::new(min.get().saturating_mul(3)),
        (None, None) => by_limit,
    };
    average(name, keys, max)
}

/// Sets the parameters of the average from the upper threshold, and `min`, `avpkt` and `burst`, which it removes.
pub(super) fn average(name: Word<'_>, keys: &mut Table, max: Bytes) -> Result<(), Problem> {
    let place = |key: &str| keys.key(key).map_or(name.span(), |key| key.span.clone());
    let packet = size_of(keys, "avpkt").unwrap_or(PACKET);
    let min = size_of(keys, "min").unwrap_or(Bytes::new(max.get() / 3));
    if min >= max {
        return Err(Problem::new(format!("`min`, {min}, is not below `max`, {max}")).at(&place("min")));
    }
    if min.get() == 0 {
        return Err(
            Problem::new(format!("`max`, {max}, leaves no room for a lower threshold")).at(&place("max"))
        );
    }
    let given = number_of::<u64>(keys, "burst");
    let burst = given.unwrap_or((2 * min.get() + max.get()) / (3 * packet.get().max(1)));
    let weight = weight(min, burst, packet).ok_or_else(|| {
        Problem::new(format!("a burst of {burst} packets is too short for `min`, which is {min}"))
            .at(&place(if given.is_some() { "burst" } else { "min" }))
            .help(format!("it takes at least {} packets of `avpkt`", min.get() / packet.get().max(1)))
    })?;
    check_scale(max.get(), weight).map_err(|problem| problem.at(&place("max")))?;
    if keys.get("probability").and_then(|node| node.text("").ok()) == Some("100%") {
        keys.set("probability", Node::new(decimal(of_one(min.get(), max.get()))));
    }
    keys.remove("avpkt");
    keys.remove("burst");
    keys.set("min", Node::new(text(min)));
    keys.set("max", Node::new(text(max)));
    keys.put("typical-packet", text(packet));
    keys.put("by-length", Value::Boolean(false));
    keys.put("weight", decimal(weight));
    Ok(())
}

/// The probability that `probability 1` comes to: tc gives the kernel 2^32, of which 32 bits are 0, and the kernel then takes
/// what tc's logarithm of it says (`tc_red_eval_P` of iproute2 6.1, `red_set_parms` of Linux 6.12).
fn of_one(min: u64, max: u64) -> f64 {
    let between = max - min;
    let above = (0..u64::BITS - 1).map(|log| 1_u64 << log).find(|power| *power > between);
    between as f64 / above.unwrap_or(1 << 63) as f64
}

/// Checks that the kernel's average, a number of 31 bits scaled by the weight, reaches the upper threshold.
pub(super) fn check_scale(max: u64, weight: f64) -> Result<(), Problem> {
    const LEAST_BEYOND: f64 = (1u64 << 31) as f64;
    if (max as f64) / weight < LEAST_BEYOND {
        return Ok(());
    }
    Err(Problem::new("`max` is too large for so long a burst, in the kernel, too")
        .help("give a smaller `max`, or a shorter `burst`"))
}

/// A weight as a scenario can have it, with nine digits at most.
pub(super) fn decimal(weight: f64) -> Value {
    Value::Float(format!("{weight:.9}").trim_end_matches('0').into())
}

/// tc's default of `avpkt` for `sfq` and `choke`; `red` requires it.
pub(super) const PACKET: Bytes = Bytes::new(1000);

/// The weight of an arrival in the average, as tc computes it (`tc_red_eval_ewma`): the largest power of
/// two with which `burst` packets can arrive at once at an empty queue before the average reaches `min`.
/// `None` if no weight allows it.
pub(super) fn weight(min: Bytes, burst: u64, packet: Bytes) -> Option<f64> {
    let above = burst as f64 + 1.0 - min.get() as f64 / packet.get() as f64;
    let holds = |weight: &f64| above <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight;
    if above < 1.0 { None } else { (1..30).map(|log| 1.0 / f64::from(1u32 << log)).find(holds) }
}
