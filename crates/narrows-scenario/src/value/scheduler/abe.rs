//! Parameters of alternative best effort (ABE): `{ type = "abe", green = ["ef", 44], max-delay = "20ms",
//! bias = "100%" }`.

use narrows_core::sched::AbeConfig;
use narrows_core::{Duration, Probability};

use super::own::OwnParameters;
use crate::keys::kind::Several;
use crate::keys::quantity::{Percentage, Time};
use crate::keys::{Keyed, Row, row};
use crate::value::condition::CODE_POINT;

/// Parameters of alternative best effort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abe {
    /// Code points of green packets.
    pub green: Vec<u8>,
    /// Maximum queueing delay of a green packet.
    pub max_delay: Duration,
    /// Probability that green goes first if either could.
    pub bias: Probability,
}

/// Expedited forwarding (RFC 3246), the code point for low delay.
const EF: u8 = 46;

impl Default for Abe {
    fn default() -> Self {
        let AbeConfig { max_delay, bias } = AbeConfig::default();
        Self { green: vec![EF], max_delay, bias }
    }
}

impl Keyed for Abe {
    const ROWS: &'static [Row<Self>] = &[
        row!("green", green, Several(CODE_POINT), "DSCPs of green packets; all others are blue."),
        row!(
            "max-delay",
            max_delay,
            Time::ANY,
            "Maximum waiting time of a green packet. One that would wait longer is dropped with the reason `too late`."
        ),
        row!(
            "bias",
            bias,
            Percentage,
            "How often green goes first when either head packet could wait for the other."
        ),
    ];
}

impl Abe {
    pub(super) const fn config(&self) -> AbeConfig {
        AbeConfig { max_delay: self.max_delay, bias: self.bias }
    }
}

impl OwnParameters for Abe {
    fn effective(&self) -> String {
        format!(
            "; green waits for {} at most, and goes first in {} of open decisions",
            self.max_delay, self.bias
        )
    }
}
