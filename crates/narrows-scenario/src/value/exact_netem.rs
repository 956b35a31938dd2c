//! NetEm's single queue, emulated exactly: `exact-netem = "delay 100ms 10ms loss 1%"`.

use narrows_core::queue::Bound;
use narrows_core::service::{Cells, Overhead};
use narrows_core::{Duration, Rate};

use serde_json::json;

use crate::keys::kind::{ByHand, Or, text};
use crate::netem::{self, Netem};

/// The complete behaviour of a link, as NetEm options.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactNetem {
    /// The options.
    pub options: Box<Netem>,
    /// Same in the kernel's units.
    engine: Box<narrows_core::netem::Netem>,
}

pub(crate) const EXACT_NETEM: Or<ByHand<ExactNetem>> = Or(
    "none",
    ByHand {
        words: || "NetEm's words".into(),
        schema: |_| json!({ "type": "string" }),
        read: |node, around| {
            let options = Box::new(netem::read_exact(node)?);
            let engine = Box::new(options.exact(node, around.files)?);
            Ok(ExactNetem { options, engine })
        },
        write: |netem| Some(text(netem)),
    },
);

impl ExactNetem {
    /// The engine's queue.
    pub(crate) fn build(&self) -> Box<narrows_core::netem::Netem> {
        self.engine.clone()
    }

    /// The rate; unlimited if none is given.
    pub fn rate(&self) -> Rate {
        self.options.rate.as_ref().map_or(Rate::UNLIMITED, |rate| rate.rate)
    }

    /// Maximum number of packets inside, packets in flight included.
    pub fn limit(&self) -> Bound {
        Bound::Packets(self.engine.limit.into())
    }

    /// What its rate counts as the length of a packet: the frame, plus the overhead of the rate option.
    pub fn overhead(&self) -> Overhead {
        let Some(rate) = self.options.rate else { return Overhead::FRAME };
        let cells = (rate.cell_size > 0).then(|| Cells {
            payload: rate.cell_size,
            size: rate.cell_size.saturating_add_signed(rate.cell_overhead),
        });
        Overhead { extra: rate.packet_overhead, cells, ..Overhead::FRAME }
    }

    /// Whether packets may leave in another order than they arrived.
    pub fn overtakes(&self) -> bool {
        self.options.overtakes() || self.options.reordering().is_some()
    }

    /// The delay without jitter.
    pub fn mean_delay(&self) -> Duration {
        self.options.delay
    }
}

/// For display: as tc options.
impl std::fmt::Display for ExactNetem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.options.text())
    }
}
