//! `{ type = "sfb", bin-target = "20 packets", bin-max = "25 packets", rehash = "10min", penalty-rate = 10 }` (Feng and
//! others 2001).

use narrows_core::Duration;
use narrows_core::aqm::SfbConfig;

use super::Manages;
use crate::keys::kind::{Boolean, Integer, Or};
use crate::keys::quantity::{PACKETS, Percentage, Time};
use crate::keys::{Keyed, Row, row};

const RATE: Integer = Integer { what: "a number of packets a second", low: 0, high: u32::MAX as i64 };
const BURST: Integer = Integer { what: "a number of packets", low: 0, high: u32::MAX as i64 };
const INTERVAL: Or<Time> = Or("never", Time::at_least(Duration::from_millis(1)));

impl Keyed for SfbConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "bin-target",
            bin_target,
            PACKETS,
            "Raise the drop probability of a bin while at least this much of it is waiting."
        ),
        row!(
            "bin-max",
            bin_max,
            PACKETS,
            "Drop a packet if this much is waiting in each of its flow's bins."
        ),
        row!(
            "increment",
            increment,
            Percentage,
            "How much the probability of a bin rises at an arrival; rounded to 65535ths."
        ),
        row!(
            "decrement",
            decrement,
            Percentage,
            "How much it falls at an arrival that finds the bin empty; rounded to 65535ths."
        ),
        row!(
            "penalty-rate",
            penalty_rate,
            RATE,
            "Packets per second of all flows together whose bins all have a probability of 100 %."
        ),
        row!("penalty-burst", penalty_burst, BURST, "How many of these may arrive at once."),
        row!(
            "rehash",
            rehash,
            INTERVAL,
            "The interval between changes of the hash function that maps flows to bins."
        ),
        row!(
            "warmup",
            warmup,
            Time::ANY,
            "For this long before a change, flows that are penalized also count in the bins of the next function."
        ),
        row!(
            "ecn",
            ecn,
            Boolean,
            "Mark ECN-capable packets instead of dropping them, while the probability is at most 50 %."
        ),
    ];
}

/// It is a queue of its own, so it has no maker.
impl Manages for SfbConfig {}
