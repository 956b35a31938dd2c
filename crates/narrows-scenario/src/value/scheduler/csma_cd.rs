//! Parameters of half-duplex Ethernet (CSMA/CD): `{ type = "csma-cd", propagation = 20, attempt-limit = 16
//! }`.

use narrows_core::sched::CsmaCdConfig;

use super::own::OwnParameters;
use crate::keys::Parameters;
use crate::keys::kind::Integer;
use crate::keys::{Keyed, Row, row};

const fn bits(low: i64, high: i64) -> Integer {
    Integer { what: "a number of bits", low, high }
}

impl Keyed for CsmaCdConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "propagation",
            propagation,
            bits(0, Self::MOST_PROPAGATION as i64),
            "Propagation delay between stations, in bits at the link's rate. A station that starts within this time after another \
             one collides with it."
        ),
        row!("slot", slot, bits(1, 65_536), "Slot time of the backoff, in bits; 4096 for gigabit Ethernet."),
        row!(
            "backoff-limit",
            backoff_limit,
            Integer { what: "a number of collisions", low: 0, high: 32 },
            "Number of consecutive collisions that double the backoff window."
        ),
        row!(
            "attempt-limit",
            attempt_limit,
            Integer { what: "a number of collisions", low: 1, high: 255 },
            "Collisions after which a frame is dropped with the reason `collisions`."
        ),
    ];
}

impl OwnParameters for CsmaCdConfig {
    fn effective(&self) -> String {
        format!(", {}", Parameters::words(self))
    }
}
