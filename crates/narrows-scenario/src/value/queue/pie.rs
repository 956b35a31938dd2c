//! `{ type = "pie", target = "15ms", update = "15ms", alpha = 0.125, beta = 1.25, burst = "150ms" }` (RFC 8033).

use narrows_core::Duration;
use narrows_core::aqm::{self, PieConfig};

use super::{Maker, Manages, maker};
use crate::keys::kind::{Boolean, Decimal, Given};
use crate::keys::quantity::{PACKET_SIZE, Percentage, Time};
use crate::keys::{Keyed, Row, row};

const fn from(low: Duration) -> Time {
    Time::between(low, Duration::from_secs(10))
}

impl Keyed for PieConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("target", target, from(Duration::from_micros(1)), "The queue delay to hold."),
        row!(
            "update",
            update,
            from(Duration::from_millis(1)),
            "The interval between updates of the drop probability."
        ),
        row!("alpha", alpha, Decimal(Self::ALPHA), "The gain of the deviation from the target, in hertz."),
        row!("beta", beta, Decimal(Self::BETA), "The gain of the change in delay, in hertz."),
        row!("burst", burst, from(Duration::ZERO), "Burst allowance: no drops for this long."),
        row!(
            "mean-packet",
            mean_packet,
            PACKET_SIZE,
            "The mean packet: do not drop while no more than two of these are waiting."
        ),
        row!("ecn", ecn, Boolean, "Mark ECN-capable packets instead of dropping them."),
        row!(
            "max-ecn-threshold",
            max_ecn_threshold,
            Percentage,
            "From this drop probability on, drop even ECN-capable packets."
        )
        .alias(&["mark-below"]),
        row!(
            "derandomize",
            derandomize,
            Boolean,
            "Space drops evenly (RFC 8033, section 5.4): none until the probabilities since the last drop sum to 0.85, one at the latest at 8.5."
        ),
        row!(
            "cap-drop",
            cap_drop,
            Boolean,
            "From a drop probability of 10 % on, raise it by at most 2 % per update (RFC 8033, section 5.5)."
        ),
        row!(
            "high-delay-boost",
            high_delay_boost,
            Given(from(Duration::ZERO)),
            "Above this delay, raise the drop probability by 2 % more per update."
        )
        .alias(&["steep-above"])
        .default("never"),
        row!(
            "byte-mode",
            byte_mode,
            Boolean,
            "Scale the drop probability of a packet shorter than `mean-packet` by its length."
        ),
        row!(
            "departure-rate",
            departure_rate,
            Boolean,
            "Compute the delay from the backlog and the measured departure rate, instead of how long the first packet has waited."
        ),
    ];
}

impl Manages for PieConfig {
    fn maker(&self) -> Option<Maker> {
        Some(match self.departure_rate {
            true => maker(aqm::MeasuredPie::new(*self)),
            false => maker(aqm::Pie::new(*self)),
        })
    }
}
