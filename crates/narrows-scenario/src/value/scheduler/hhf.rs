//! Parameters of the heavy-hitter filter: `{ type = "hhf", admit = "128kB", reset = "40ms", evict = "1s", weight = 2 }`.

use narrows_core::queue::Bound;
use narrows_core::sched::HhfConfig;
use narrows_core::{Bytes, Duration};

use super::own::OwnParameters;
use crate::keys::kind::Integer;
use crate::keys::quantity::{Size, Time};
use crate::keys::{Keyed, Row, row};

const ADMIT: Size =
    Size { low: 1, high: u32::MAX as u64, expected: "a size from 1 byte to 4294967295 bytes" };
const WEIGHT: Integer = Integer { what: "a weight", low: 1, high: HhfConfig::MOST_WEIGHT as i64 };
const HEAVY: Integer = Integer { what: "a number of flows", low: 1, high: HhfConfig::MOST_HEAVY as i64 };
const TIMEOUT: Time = Time::at_least(Duration::from_micros(1));

impl Keyed for HhfConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "admit",
            admit,
            ADMIT,
            "A flow that sends more than this in one `reset` is heavy from that packet on."
        ),
        row!("reset", reset, TIMEOUT, "The interval at which the counters of flows are cleared."),
        row!("evict", evict, TIMEOUT, "A heavy flow that sends nothing for longer is light again."),
        row!("weight", weight, WEIGHT, "How many quanta light flows send per turn; heavy ones send one."),
        row!("heavy-limit", heavy_limit, HEAVY, "At most this many flows are heavy at a time."),
    ];
}

impl OwnParameters for HhfConfig {
    fn effective(&self) -> String {
        let Self { admit, reset, evict, weight, heavy_limit, .. } = self;
        format!(
            "; heavy beyond {admit} in {reset}, until idle for {evict}; light flows send {weight} quanta per turn; up to {heavy_limit} heavy flows"
        )
    }
}

/// The engine's parameters.
pub(super) fn config(own: &HhfConfig, bound: Bound, quantum: Bytes) -> HhfConfig {
    HhfConfig { bound, quantum, ..*own }
}
