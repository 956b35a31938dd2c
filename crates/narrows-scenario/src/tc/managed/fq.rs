//! `fq maxrate 5mbit flow_limit 200p quantum 3028`: fair queueing with a maximum rate for each flow.

use crate::dialect::{Follows, Opt, Options, Read, Unit, Word, number, shown_as_is};
use crate::node::{Table, Value};
use crate::problem::{Found, Problem};
use crate::tc::unit::{LIMIT, RATE, SIZE, TIME};

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT),
    Opt::value(&["flow_limit"], "flow-limit", LIMIT),
    Opt::nothing(&["buckets"], Follows::One("a number"))
        .remark("`buckets` has no effect: it is the size of a table that finds flows."),
    Opt::value(&["orphan_mask"], "flows", MASK),
    Opt::nothing(&["bands"], Follows::One("a number")),
    Opt::numbers(&["priomap"], "priomap", 16, (0, 2)),
    Opt::numbers(&["weights"], "weights", 3, (1 << 14, i32::MAX as i64)),
    Opt::switch(&["pacing"], &["nopacing"], PACING).remark(
        "Sockets are paced by the sender's own stack, before packets come here: of `pacing`, `maxrate` remains, and `nopacing` switches it off.",
    ),
    Opt::value(&["quantum"], "quantum", SIZE),
    Opt::value(&["initial_quantum"], "initial-quantum", SIZE),
    Opt::value(&["maxrate"], "max-rate", RATE),
    Opt::value(&["low_rate_threshold"], "low-rate-threshold", RATE),
    Opt::value(&["refill_delay"], "refill-delay", TIME),
    Opt::value(&["ce_threshold"], "ce-threshold", TIME),
    Opt::nothing(&["timer_slack"], Follows::One("a time"))
        .remark("`timer_slack` has no effect: a packet is sent at the instant at which it may be."),
    Opt::nothing(&["horizon", "offload_horizon"], Follows::One("a time")).remark(NO_HORIZON),
    Opt::nothing(&["horizon_drop", "horizon_cap"], Follows::Nothing).remark(NO_HORIZON),
    Opt::nothing(&["defrate"], Follows::One("a rate")).remark("`defrate` has no effect, nor has it in the kernel."),
]]);

const NO_HORIZON: &str =
    "`horizon` has no effect: departure times that a socket sets (SO_TXTIME) do not leave the sender's host.";

/// Whether the maximum rate counts. In tc only.
const PACING: &str = "pacing";

/// The number of flows as tc has it: one less, the mask of a hash.
const MASK: Unit = Unit {
    what: "a mask",
    read: |word, _| {
        let number_of = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let flows = number_of(word.text).map(|mask| u64::from(mask) + 1);
        match flows.filter(|flows| flows.is_power_of_two() && *flows <= 65_536) {
            Some(flows) => Ok(Read::plain(number(flows))),
            None => Err(word
                .problem(format!("{} is not a mask of flows", Found(word.text)))
                .help("one less than a power of two, up to 65535: 1023 for 1024 flows")),
        }
    },
    show: |node| {
        let flows = shown_as_is(node)?.parse::<u64>().ok()?;
        flows.is_power_of_two().then(|| (flows - 1).to_string())
    },
};

/// Without pacing, the kernel ignores the maximum rate.
pub(super) fn settle(_: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    if let Some((_, pacing)) = keys.take(PACING)
        && pacing.value == Value::Boolean(false)
    {
        keys.remove("max-rate");
    }
    Ok(())
}
