//! The parameters of half-duplex Ethernet: `{ type = "csma-cd", propagation = 20, attempt-limit = 16 }`.

use narrows_core::sched::CsmaCdConfig;

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
            "From any station to any other, in bits at the link's rate: who starts within that time after another collides \
             with it."
        ),
        row!("slot", slot, bits(1, 65_536), "The unit of the backoff, in bits; gigabit Ethernet has 4096."),
        row!(
            "backoff-limit",
            backoff_limit,
            Integer { what: "a number of collisions", low: 0, high: 32 },
            "How many collisions in a row double the backoff's window."
        ),
        row!(
            "attempt-limit",
            attempt_limit,
            Integer { what: "a number of collisions", low: 1, high: 255 },
            "How often a frame may collide before it is dropped, with the reason `collisions`."
        ),
    ];
}
