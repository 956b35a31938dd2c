//! `{ type = "dualpi2", target = "15ms", update = "16ms", alpha = 0.16, beta = 3.2, coupling = 2, step = "1ms" }` (RFC 9332).

use std::ops::Range;

use narrows_core::Duration;
use narrows_core::aqm::{DualPi2Config, LowLatency, Sharing};
use serde_json::json;

use super::Manages;
use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, ByHand, Decimal, Integer};
use crate::keys::quantity::{PACKETS_OR_NONE, Time};
use crate::keys::{Form, Keyed, Kind, Row, row};
use crate::node::Table;
use crate::problem::Problem;

const fn from(low: Duration) -> Time {
    Time::between(low, Duration::from_secs(10))
}

const ANY: Time = from(Duration::ZERO);
const STEP: ByHand<LowLatency> = ByHand {
    words: || "time, up to 10s, or packets".into(),
    schema: |definitions| {
        let (time, packets) = (ANY.schema(definitions), PACKETS_OR_NONE.schema(definitions));
        json!({ "anyOf": [time, packets] })
    },
    read: |node, around| match node.text("").is_ok_and(|text| text.contains('p')) {
        true => PACKETS_OR_NONE.read(node, around).map(LowLatency::Backlog),
        false => ANY.read(node, around).map(LowLatency::Step),
    },
    write: |low_latency| match low_latency {
        LowLatency::Step(from) => ANY.write(from),
        LowLatency::Backlog(most) => PACKETS_OR_NONE.write(most),
        LowLatency::Ramp { .. } => None,
    },
};
const RAMP: Group<Ramp> = Group::new(
    "Ramp",
    "Marking that rises evenly with the sojourn time.",
    "{ from = \"800us\", to = \"1.2ms\" }",
);
const WEIGHTS: Group<Weights> =
    Group::new("HalfWeights", "The shares of the two queues.", "{ low = 15, classic = 1 }");

impl Keyed for DualPi2Config {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "target",
            target,
            from(Duration::from_micros(100)),
            "The queue delay to hold in the classic queue."
        ),
        row!(
            "update",
            update,
            from(Duration::from_millis(1)),
            "The interval between updates of the probability."
        ),
        row!("alpha", alpha, Decimal(Self::ALPHA), "The gain of the deviation from the target, in hertz."),
        row!("beta", beta, Decimal(Self::BETA), "The gain of the change in delay, in hertz."),
        row!(
            "coupling",
            coupling,
            Decimal(Self::COUPLING),
            "Coupling factor: how much more often low-latency packets are marked."
        ),
        Row::new(
            "step",
            &STEP,
            "Mark every packet of the low-latency queue from this sojourn time on, or while more than this many packets wait behind it.",
            |of| STEP.write(&of.low_latency),
            |of, node, around| {
                of.low_latency = STEP.read(node, around)?;
                Ok(())
            },
        ),
        Row::new(
            "ramp",
            &RAMP,
            "Instead of `step`: mark none up to `from`, every packet from `to` on, and a rising share between.",
            |of| match of.low_latency {
                LowLatency::Ramp { from, to } => RAMP.write(&Ramp { from, to }),
                LowLatency::Step(_) | LowLatency::Backlog(_) => None,
            },
            |of, node, around| {
                let Ramp { from, to } = RAMP.read(node, around)?;
                of.low_latency = LowLatency::Ramp { from, to };
                Ok(())
            },
        ),
        row!(
            "step-min-backlog",
            least,
            PACKETS_OR_NONE,
            "Mark only while at least this much is still waiting in the low-latency queue."
        )
        .alias(&["least"]),
        row!(
            "step-min-arrival",
            least_on_arrival,
            PACKETS_OR_NONE,
            "Mark only packets that found at least this many in the low-latency queue when they arrived."
        ),
        row!("any-ect", any_ect, Boolean, "Send packets with ECT(0) to the low-latency queue, too."),
        row!(
            "overflow",
            overflow,
            Boolean,
            "On overload, go on marking ECN-capable packets until the bound is reached, instead of dropping them."
        ),
        row!(
            "on-arrival",
            on_arrival,
            Boolean,
            "Drop and mark by probability when packets arrive; `step` and `ramp` still apply when they depart."
        ),
        Row::new(
            "weights",
            &WEIGHTS,
            "Shares of the two queues, in bytes sent, while both have packets.",
            |of| match of.sharing {
                Sharing::Weighted { low, classic } => WEIGHTS.write(&Weights { low, classic }),
                Sharing::TimeShifted(_) => None,
            },
            |of, node, around| {
                let Weights { low, classic } = WEIGHTS.read(node, around)?;
                of.sharing = Sharing::Weighted { low, classic };
                Ok(())
            },
        ),
        Row::new(
            "time-shift",
            &ANY,
            "Instead of `weights`: time shift in favour of the low-latency queue; send the packet that has waited longest.",
            |of: &Self| match of.sharing {
                Sharing::TimeShifted(shift) => ANY.write(&shift),
                Sharing::Weighted { .. } => None,
            },
            |of, node, around| {
                of.sharing = Sharing::TimeShifted(ANY.read(node, around)?);
                Ok(())
            },
        )
        .alias(&["shift"]),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        if let (Sharing::Weighted { low: 0, classic: 0 }, Some(node)) = (self.sharing, table.get("weights")) {
            return Err(Problem::new("both shares are 0").at(&node.span).help("one of the two may be 0"));
        }
        for (one, other) in [("step", "ramp"), ("weights", "time-shift"), ("weights", "shift")] {
            if let (Some(key), Some(beside)) = (table.key(one), table.key(other)) {
                return Err(Problem::new(format!("both `{one}` and `{other}`"))
                    .at(&beside.span)
                    .also(&key.span, "here")
                    .help("keep one of the two"));
            }
        }
        Ok(())
    }
}

/// It is a queue of its own, so it has no maker.
impl Manages for DualPi2Config {}

/// Linear ramp of the native L4S marking.
#[derive(Clone, Copy, Default)]
struct Ramp {
    from: Duration,
    to: Duration,
}

impl Keyed for Ramp {
    const ROWS: &'static [Row<Self>] = &[
        row!("from", from, ANY, "Mark none up to this sojourn time.").required(),
        row!("to", to, ANY, "Mark every packet from this sojourn time on.").required(),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { from, to } = self;
        if from > to {
            return Err(Problem::new(format!("`from` is {from}, above `to`, which is {to}")).at(place));
        }
        Ok(())
    }
}

/// Scheduler weights of the two queues.
#[derive(Clone, Copy, Default)]
struct Weights {
    low: u16,
    classic: u16,
}

const SHARE: Integer = Integer { what: "a share", low: 0, high: 65_535 };

impl Keyed for Weights {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "low",
            low,
            SHARE,
            "The share of the low-latency queue; with 0 it is served only while the other is empty."
        )
        .required(),
        row!("classic", classic, SHARE, "The share of the classic queue; 0 likewise.").required(),
    ];
}
