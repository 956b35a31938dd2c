//! The parameters of a DCF: `{ type = "dcf", preamble = "short", basic-rate = "2mbit", rts-threshold = "500 bytes" }`.

use narrows_core::sched::DcfConfig;
use narrows_core::{Bytes, Duration, Rate};

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// What is given of a DCF; the rest is 802.11b's with long preambles, without RTS and CTS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dcf {
    /// PLCP preamble and header before each frame; 192 µs.
    pub preamble: Option<Duration>,
    /// The rate of ACK, RTS and CTS; 2 Mbit/s.
    pub basic_rate: Option<Rate>,
    /// The contention window of a first attempt; 31.
    pub window_min: Option<u32>,
    /// The greatest contention window; 1023.
    pub window_max: Option<u32>,
    /// How often a packet may collide; 7.
    pub retry_limit: Option<u8>,
    /// Longer frames are announced by RTS and CTS; never.
    pub rts_threshold: Option<Bytes>,
}

pub(crate) const KEYS: &[&str] =
    &["preamble", "basic-rate", "window-min", "window-max", "retry-limit", "rts-threshold"];

const PREAMBLES: &[(&str, Duration)] =
    &[("long", DcfConfig::LONG_PREAMBLE), ("short", DcfConfig::SHORT_PREAMBLE)];

/// The rates of 802.11b.
pub(crate) const RATES: [Rate; 4] = [
    Rate::from_bits_per_second(1_000_000),
    Rate::from_bits_per_second(2_000_000),
    Rate::from_bits_per_second(5_500_000),
    Rate::from_bits_per_second(11_000_000),
];

impl Dcf {
    pub(crate) fn read(table: &Table) -> Result<Self, Problem> {
        let dcf = Self {
            preamble: table.optional("preamble", |node| node.choice("preamble", PREAMBLES))?,
            basic_rate: table.optional("basic-rate", |node| {
                let rate = units::rate(node)?;
                if RATES.contains(&rate) { Ok(rate) } else { Err(node.expected(&allowed_rates())) }
            })?,
            window_min: table.optional("window-min", window)?,
            window_max: table.optional("window-max", window)?,
            retry_limit: table
                .optional("retry-limit", |node| node.integer("a number of collisions", 1..256))?
                .map(|limit| limit as u8),
            rts_threshold: table
                .optional("rts-threshold", |node| match &node.value {
                    Value::String(text) if text.trim() == "none" => Ok(None),
                    _ => units::packet_size(node).map(Some),
                })?
                .flatten(),
        };
        let DcfConfig { window_min, window_max, .. } = dcf.config();
        if window_min > window_max {
            let key = table.key("window-min").or(table.key("window-max"));
            let problem = Problem::new(format!(
                "the least contention window, {window_min}, is above the greatest, {window_max}"
            ));
            return Err(match key {
                Some(key) => problem.at(&key.span),
                None => problem,
            });
        }
        Ok(dcf)
    }

    /// With all values in force.
    pub(crate) fn config(self) -> DcfConfig {
        let default = DcfConfig::default();
        DcfConfig {
            preamble: self.preamble.unwrap_or(default.preamble),
            basic_rate: self.basic_rate.unwrap_or(default.basic_rate),
            window_min: self.window_min.unwrap_or(default.window_min),
            window_max: self.window_max.unwrap_or(default.window_max),
            retry_limit: self.retry_limit.unwrap_or(default.retry_limit),
            // At most 65,535.
            rts_threshold: self.rts_threshold.map(|bytes| bytes.get() as u32).or(default.rts_threshold),
            ..default
        }
    }

    pub(crate) fn write(self, table: &mut Inline) {
        let name = |of: Duration| PREAMBLES.iter().find(|(_, known)| *known == of).map(|(name, _)| *name);
        table.quoted("preamble", self.preamble.and_then(name));
        table.quoted("basic-rate", self.basic_rate);
        table.plain("window-min", self.window_min);
        table.plain("window-max", self.window_max);
        table.plain("retry-limit", self.retry_limit);
        table.quoted("rts-threshold", self.rts_threshold);
    }

    pub(crate) fn words(self) -> String {
        let config = self.config();
        let rts = match config.rts_threshold {
            None => "no RTS".into(),
            Some(bytes) => format!("RTS over {bytes} bytes"),
        };
        format!(
            "contention window {} to {}, retry limit {}, preamble {}, basic rate {}, {rts}",
            config.window_min, config.window_max, config.retry_limit, config.preamble, config.basic_rate
        )
    }
}

/// The rates that it knows, for people.
pub(crate) fn allowed_rates() -> String {
    "a rate of 802.11b: \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"".into()
}

/// One less than a power of two.
fn window(node: &Node) -> Result<u32, Problem> {
    let window = node.integer("a contention window", 1..65_536)? as u32;
    if (window + 1).is_power_of_two() {
        return Ok(window);
    }
    Err(node.expected("one less than a power of two: 1, 3, 7, 15, 31, … 65535"))
}
