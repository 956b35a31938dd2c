//! `{ type = "pie", target = "15ms", update = "15ms", alpha = 0.125, beta = 1.25, burst = "150ms" }` (RFC 8033).

use narrows_core::aqm::{self, Aqm, PieConfig};
use narrows_core::{Bytes, Duration};

use super::{Maker, on_off};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units::{self, Number, Share};
use crate::value::inline::Inline;

/// What is given of PIE; the rest is as the RFC has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pie {
    /// The delay to hold; 15 ms.
    pub target: Option<Duration>,
    /// How often the probability moves; 15 ms.
    pub update: Option<Duration>,
    /// The gain of the deviation from the target, in hertz; 0.125.
    pub alpha: Option<Number>,
    /// The gain of its change, in hertz; 1.25.
    pub beta: Option<Number>,
    /// For how long the beginning of a burst is let pass; 150 ms.
    pub burst: Option<Duration>,
    /// The mean packet: while no more than two of these wait, none is dropped; 1024 bytes.
    pub mean_packet: Option<Bytes>,
    /// Whether packets are marked that can be; yes.
    pub ecn: Option<bool>,
    /// At this probability and above they are dropped even so; 10 %.
    pub mark_below: Option<Share>,
    /// Whether drops come at even distances; no.
    pub derandomize: Option<bool>,
    /// Whether the probability, from 10 % on, rises by no more than 2 % at an update; no.
    pub cap_drop: Option<bool>,
    /// Above this delay it rises by 2 % more at each update; never.
    pub steep_above: Option<Duration>,
}

pub(crate) const KEYS: &[&str] = &[
    "target",
    "update",
    "alpha",
    "beta",
    "burst",
    "mean-packet",
    "ecn",
    "mark-below",
    "derandomize",
    "cap-drop",
    "steep-above",
];

impl Pie {
    /// Reads its keys from a table that may have others.
    pub(crate) fn read(table: &Table) -> Result<Self, Problem> {
        let time =
            |key, low| table.optional(key, |node| units::time_between(node, low, Duration::from_secs(10)));
        Ok(Self {
            target: time("target", Duration::from_micros(1))?,
            update: time("update", Duration::from_millis(1))?,
            alpha: table.optional("alpha", |node| Number::within(node, PieConfig::ALPHA))?,
            beta: table.optional("beta", |node| Number::within(node, PieConfig::BETA))?,
            burst: time("burst", Duration::ZERO)?,
            mean_packet: table.optional("mean-packet", units::packet_size)?,
            ecn: table.optional("ecn", Node::boolean)?,
            mark_below: table.optional("mark-below", Share::read)?,
            derandomize: table.optional("derandomize", Node::boolean)?,
            cap_drop: table.optional("cap-drop", Node::boolean)?,
            steep_above: time("steep-above", Duration::ZERO)?,
        })
    }

    /// With all values in force.
    pub(crate) fn config(self) -> PieConfig {
        let default = PieConfig::default();
        PieConfig {
            target: self.target.unwrap_or(default.target),
            update: self.update.unwrap_or(default.update),
            alpha: self.alpha.map_or(default.alpha, Number::as_f64),
            beta: self.beta.map_or(default.beta, Number::as_f64),
            burst: self.burst.unwrap_or(default.burst),
            mean_packet: self.mean_packet.unwrap_or(default.mean_packet),
            ecn: self.ecn.unwrap_or(default.ecn),
            mark_below: self.mark_below.map_or(default.mark_below, Share::probability),
            derandomize: self.derandomize.unwrap_or(default.derandomize),
            cap_drop: self.cap_drop.unwrap_or(default.cap_drop),
            steep_above: self.steep_above.or(default.steep_above),
        }
    }

    pub(super) fn maker(self) -> Maker {
        let policy = aqm::Pie::new(self.config());
        Box::new(move || Box::new(policy.clone()) as Box<dyn Aqm>)
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("target", self.target);
        table.quoted("update", self.update);
        table.plain("alpha", self.alpha);
        table.plain("beta", self.beta);
        table.quoted("burst", self.burst);
        table.quoted("mean-packet", self.mean_packet);
        table.plain("ecn", self.ecn);
        table.quoted("mark-below", self.mark_below);
        table.plain("derandomize", self.derandomize);
        table.plain("cap-drop", self.cap_drop);
        table.quoted("steep-above", self.steep_above);
    }

    pub(crate) fn words(self) -> String {
        let config = self.config();
        let PieConfig { target, update, alpha, beta, burst, ecn, mark_below, .. } = config;
        let ecn = if ecn { format!("ECN below {mark_below}") } else { format!("ECN {}", on_off(ecn)) };
        let mut words = format!(
            "PIE, target {target}, update every {update}, α {alpha}, β {beta}, bursts of {burst} pass, {ecn}"
        );
        if config.derandomize {
            words += ", drops at even distances";
        }
        if config.cap_drop {
            words += ", steps of up to 2 %";
        }
        if let Some(delay) = config.steep_above {
            words += &format!(", 2 % more above {delay}");
        }
        words
    }
}
