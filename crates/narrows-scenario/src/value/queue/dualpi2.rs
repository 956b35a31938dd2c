//! `{ type = "dualpi2", target = "15ms", update = "16ms", alpha = 0.16, beta = 3.2, coupling = 2, step = "1ms" }` (RFC 9332).

use narrows_core::Duration;
use narrows_core::aqm::{self, DualPi2Config, LowLatency, Sharing};
use narrows_core::queue::{self, Bound};

use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units::{self, Number};
use crate::value::inline::Inline;

/// What is given of DualPI2; the rest is as the RFC has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DualPi2 {
    /// The delay to hold in the classic half; 15 ms.
    pub target: Option<Duration>,
    /// How often the probability moves; 16 ms.
    pub update: Option<Duration>,
    /// The gain of the deviation from the target, in hertz; 0.16.
    pub alpha: Option<Number>,
    /// The gain of its change, in hertz; 3.2.
    pub beta: Option<Number>,
    /// How much stronger the low-latency half is marked; 2.
    pub coupling: Option<Number>,
    /// From which sojourn on packets of the low-latency half are marked in any case; a ramp from 800 µs to 1.2 ms.
    pub low_latency: Option<LowLatency>,
    /// How many packets must still wait there for that; 1.
    pub least: Option<u64>,
    /// Which half goes first; 15 bytes of the low-latency half for 1 of the other.
    pub sharing: Option<Sharing>,
}

pub(crate) const KEYS: &[&str] =
    &["target", "update", "alpha", "beta", "coupling", "step", "ramp", "least", "weights", "shift"];

const LONGEST: Duration = Duration::from_secs(10);

impl DualPi2 {
    /// Reads its keys from a table that may have others.
    pub(crate) fn read(table: &Table) -> Result<Self, Problem> {
        let time = |key, low| table.optional(key, |node| units::time_between(node, low, LONGEST));
        let step = time("step", Duration::ZERO)?.map(LowLatency::Step);
        let weights = table.optional("weights", weights)?;
        let shift = time("shift", Duration::ZERO)?.map(Sharing::TimeShifted);
        let ramp = table.optional("ramp", ramp)?;
        for (one, other) in [("step", "ramp"), ("weights", "shift")] {
            if let (Some(key), Some(beside)) = (table.key(one), table.key(other)) {
                return Err(Problem::new(format!("both `{one}` and `{other}`"))
                    .at(&beside.span)
                    .also(&key.span, "here")
                    .help("keep one of the two"));
            }
        }
        Ok(Self {
            target: time("target", Duration::from_micros(100))?,
            update: time("update", Duration::from_millis(1))?,
            alpha: table.optional("alpha", |node| Number::within(node, DualPi2Config::ALPHA))?,
            beta: table.optional("beta", |node| Number::within(node, DualPi2Config::BETA))?,
            coupling: table.optional("coupling", |node| Number::within(node, DualPi2Config::COUPLING))?,
            low_latency: step.or(ramp),
            least: table.optional("least", least)?,
            sharing: weights.or(shift),
        })
    }

    /// With all values in force.
    pub(crate) fn config(self) -> DualPi2Config {
        let default = DualPi2Config::default();
        DualPi2Config {
            target: self.target.unwrap_or(default.target),
            update: self.update.unwrap_or(default.update),
            alpha: self.alpha.map_or(default.alpha, Number::as_f64),
            beta: self.beta.map_or(default.beta, Number::as_f64),
            coupling: self.coupling.map_or(default.coupling, Number::as_f64),
            low_latency: self.low_latency.unwrap_or(default.low_latency),
            least: self.least.unwrap_or(default.least),
            sharing: self.sharing.unwrap_or(default.sharing),
        }
    }

    /// The engine's queue.
    pub(super) fn build(self, bound: Bound) -> Box<dyn queue::Queue> {
        Box::new(aqm::DualPi2::new(self.config(), bound))
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("target", self.target);
        table.quoted("update", self.update);
        table.plain("alpha", self.alpha);
        table.plain("beta", self.beta);
        table.plain("coupling", self.coupling);
        match self.low_latency {
            None => {}
            Some(LowLatency::Step(from)) => table.quoted("step", Some(from)),
            Some(LowLatency::Ramp { from, to }) => {
                table.plain("ramp", Some(format!("{{ from = \"{from}\", to = \"{to}\" }}")));
            }
        }
        table.quoted("least", self.least.map(Bound::Packets));
        match self.sharing {
            None => {}
            Some(Sharing::Weighted { low, classic }) => {
                table.plain("weights", Some(format!("{{ low = {low}, classic = {classic} }}")));
            }
            Some(Sharing::TimeShifted(shift)) => table.quoted("shift", Some(shift)),
        }
    }

    pub(crate) fn words(self) -> String {
        let DualPi2Config { target, update, alpha, beta, coupling, low_latency, least: _, sharing } =
            self.config();
        let native = match low_latency {
            LowLatency::Step(from) => format!("marks from {from} on"),
            LowLatency::Ramp { from, to } => format!("marks on a ramp from {from} to {to}"),
        };
        let shares = match sharing {
            Sharing::Weighted { low, classic } => format!("shares {low} to {classic}"),
            Sharing::TimeShifted(shift) => format!("the oldest first, {shift} ahead for low latency"),
        };
        format!(
            "DualPI2, target {target}, update every {update}, α {alpha}, β {beta}, coupling {coupling}; low latency (ECT(1)) {native}; {shares}"
        )
    }
}

/// A number of packets, which may be zero.
fn least(node: &Node) -> Result<u64, Problem> {
    match node.text("").is_ok_and(|text| text.trim() == "0 packets") {
        true => Ok(0),
        false => units::packets(node),
    }
}

fn ramp(node: &Node) -> Result<LowLatency, Problem> {
    let table = node.table("{ from = \"800us\", to = \"1.2ms\" }")?;
    table.only(&["from", "to"])?;
    let time =
        |key| table.required(key, &node.span, |node| units::time_between(node, Duration::ZERO, LONGEST));
    let (from, to) = (time("from")?, time("to")?);
    if from > to {
        return Err(Problem::new(format!("`from` is {from}, above `to`, which is {to}")).at(&node.span));
    }
    Ok(LowLatency::Ramp { from, to })
}

fn weights(node: &Node) -> Result<Sharing, Problem> {
    let table = node.table("{ low = 15, classic = 1 }")?;
    table.only(&["low", "classic"])?;
    let share =
        |key| table.required(key, &node.span, |node| node.integer("a share", 1..65_536)).map(|n| n as u16);
    Ok(Sharing::Weighted { low: share("low")?, classic: share("classic")? })
}
