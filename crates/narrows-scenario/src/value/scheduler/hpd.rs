//! The parameters of hybrid proportional delay: `{ type = "hpd", bound-order = "earliest-deadline", classes = [
//! { name = "voip", ddp = 1, gamma = "auto", g = 128, limit = "2ms", estimator = { type = "ewma-r", cycle = "2ms" } }, … ] }`.

use std::num::NonZero;

use narrows_core::Duration;
use narrows_core::sched::{
    BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, HpdClass, HpdConfig, Per1024,
};

use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::units;
use crate::value::inline::Inline;

/// What is given of the scheduler; the rest is the engine's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hpd {
    /// Who goes first among several classes whose bound is at stake; the highest number.
    pub bound_order: Option<BoundOrder>,
    /// When a bound is at stake; when it is about to be missed.
    pub bound_reading: Option<BoundReading>,
}

/// What is given of a class; the rest is the engine's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HpdParameters {
    /// The delay differentiation parameter; 1.
    pub ddp: Option<NonZero<u32>>,
    /// The weight of the newest delay in the average; by the backlog.
    pub gamma: Option<Gamma>,
    /// The weight of the average delay in the hybrid one, of 1024; 512.
    pub g: Option<Per1024>,
    /// The longest wait; any.
    pub limit: Option<Duration>,
    /// How the average is estimated; plainly.
    pub estimator: Option<Estimator>,
}

pub(crate) const KEYS: &[&str] = &["bound-order", "bound-reading"];
pub(crate) const CLASS_KEYS: &[&str] = &["ddp", "gamma", "g", "limit", "estimator"];

const ORDERS: &[(&str, BoundOrder)] =
    &[("reference", BoundOrder::Reference), ("earliest-deadline", BoundOrder::EarliestDeadline)];
const READINGS: &[(&str, BoundReading)] =
    &[("about-to-violate", BoundReading::AboutToViolate), ("has-violated", BoundReading::HasViolated)];
const ESTIMATORS: &[&str] = &["ewma", "ewma-r", "ewma-pe"];
const WIDTHS: &[(&str, ErrorWidth)] = &[("10%", ErrorWidth::Tenth), ("12.5%", ErrorWidth::Eighth)];

impl Hpd {
    pub(crate) fn read(table: &Table) -> Result<Self, Problem> {
        Ok(Self {
            bound_order: table.optional("bound-order", |node| node.choice("order of bounds", ORDERS))?,
            bound_reading: table
                .optional("bound-reading", |node| node.choice("reading of a bound", READINGS))?,
        })
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("bound-order", self.bound_order.and_then(|order| name(ORDERS, order)));
        table.quoted("bound-reading", self.bound_reading.and_then(|reading| name(READINGS, reading)));
    }

    /// With all values in force.
    pub(crate) fn config(self, classes: Vec<HpdClass>) -> HpdConfig {
        HpdConfig {
            classes,
            bound_order: self.bound_order.unwrap_or_default(),
            bound_reading: self.bound_reading.unwrap_or_default(),
        }
    }

    pub(crate) fn words(self) -> String {
        let config = self.config(Vec::new());
        let reading = match config.bound_reading {
            BoundReading::AboutToViolate => "would be missed by one packet more",
            BoundReading::HasViolated => "is missed",
        };
        let order = match config.bound_order {
            BoundOrder::Reference => "the last such class",
            BoundOrder::EarliestDeadline => "the earliest deadline",
        };
        format!("who has a limit that {reading} goes first, of several {order}")
    }
}

impl HpdParameters {
    pub(crate) fn read(table: &Table) -> Result<Self, Problem> {
        Ok(Self {
            ddp: table
                .optional("ddp", |node| node.integer("a delay differentiation parameter", 1..1 << 32))?
                .and_then(|ddp| NonZero::new(ddp as u32)),
            gamma: table.optional("gamma", read_gamma)?,
            g: table.optional("g", |node| per1024(node, "a number"))?,
            limit: table
                .optional("limit", |node| match is(node, "none") {
                    true => Ok(None),
                    false => units::positive_time(node).map(Some),
                })?
                .flatten(),
            estimator: table.optional("estimator", read_estimator)?,
        })
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.plain("ddp", self.ddp);
        table.plain(
            "gamma",
            self.gamma.map(|gamma| match gamma {
                Gamma::Fixed(parts) => parts.to_string(),
                Gamma::OfBacklog => "\"auto\"".into(),
            }),
        );
        table.plain("g", self.g);
        table.quoted("limit", self.limit);
        table.plain("estimator", self.estimator.map(estimator_text));
    }

    /// With all values in force.
    pub fn config(self) -> HpdClass {
        let default = HpdClass::default();
        HpdClass {
            ddp: self.ddp.unwrap_or(default.ddp),
            gamma: self.gamma.unwrap_or(default.gamma),
            g: self.g.unwrap_or(default.g),
            limit: self.limit.or(default.limit),
            estimator: self.estimator.unwrap_or(default.estimator),
        }
    }

    pub(crate) fn words(self) -> String {
        let HpdClass { ddp, gamma, g, limit, estimator } = self.config();
        let limit = limit.map_or("no limit".into(), |limit| format!("limit {limit}"));
        let gamma = match gamma {
            Gamma::Fixed(parts) => format!("{parts}/1024"),
            Gamma::OfBacklog => "by the backlog".into(),
        };
        let estimator = match estimator {
            Estimator::Ewma => String::new(),
            Estimator::EwmaR { threshold, cycle } => {
                format!(", exact for {threshold} packets, anew after {cycle} idle")
            }
            Estimator::EwmaPe { steps, width } => format!(
                ", up to {steps} times that by steps of {} error",
                name(WIDTHS, width).unwrap_or_default()
            ),
        };
        format!("ddp {ddp}, g {g}/1024, {limit}; gamma {gamma}{estimator}")
    }
}

fn is(node: &Node, word: &str) -> bool {
    matches!(&node.value, Value::String(text) if text.trim() == word)
}

fn name<T: PartialEq>(names: &[(&'static str, T)], value: T) -> Option<&'static str> {
    names.iter().find(|(_, known)| *known == value).map(|(name, _)| *name)
}

fn per1024(node: &Node, what: &str) -> Result<Per1024, Problem> {
    let parts = node.integer(&format!("{what} of 1024ths"), 0..1025)?;
    Ok(Per1024::new(parts as u16).unwrap_or(Per1024::ONE)) // in range
}

fn read_gamma(node: &Node) -> Result<Gamma, Problem> {
    match is(node, "auto") {
        true => Ok(Gamma::OfBacklog),
        false => per1024(node, "\"auto\", or a number").map(Gamma::Fixed),
    }
}

fn read_estimator(node: &Node) -> Result<Estimator, Problem> {
    match &node.value {
        Value::Table(table) => {
            let named = table.required("type", &node.span, estimator_name)?;
            read_parts(named, table)
        }
        _ => read_parts(estimator_name(node)?, &Table::default()),
    }
}

fn estimator_name(node: &Node) -> Result<&'static str, Problem> {
    let text = node.text(&format!("an estimator: {}", one_of(ESTIMATORS)))?.trim();
    ESTIMATORS.iter().find(|known| **known == text).copied().ok_or_else(|| {
        suggest(Problem::new(format!("{} is no estimator", node.found())).at(&node.span), text, ESTIMATORS)
    })
}

fn read_parts(named: &'static str, table: &Table) -> Result<Estimator, Problem> {
    match named {
        "ewma-r" => {
            table.only(&["type", "threshold", "cycle"])?;
            let threshold =
                table.optional("threshold", |node| node.integer("a number of packets", 0..1 << 32))?;
            let cycle = table.optional("cycle", units::time)?;
            Ok(Estimator::EwmaR {
                threshold: threshold.map_or(Estimator::THRESHOLD, |packets| packets as u32), // in range
                cycle: cycle.unwrap_or(Estimator::CYCLE),
            })
        }
        "ewma-pe" => {
            table.only(&["type", "steps", "width"])?;
            let width =
                table.optional("width", |node| node.choice("width of a step", WIDTHS))?.unwrap_or_default();
            let steps = table.optional("steps", |node| node.integer("a number of steps", 1..256))?;
            let steps = steps.map_or(width.steps(), |steps| steps as u8); // in range
            Ok(Estimator::EwmaPe { steps, width })
        }
        _ => {
            table.only(&["type"])?;
            Ok(Estimator::Ewma)
        }
    }
}

fn estimator_text(estimator: Estimator) -> String {
    let mut table = Inline::default();
    match estimator {
        Estimator::Ewma => return "\"ewma\"".into(),
        Estimator::EwmaR { threshold, cycle } => {
            table.quoted("type", Some("ewma-r"));
            table.plain("threshold", Some(threshold));
            table.quoted("cycle", Some(cycle));
        }
        Estimator::EwmaPe { steps, width } => {
            table.quoted("type", Some("ewma-pe"));
            table.plain("steps", Some(steps));
            table.quoted("width", name(WIDTHS, width));
        }
    }
    table.finish()
}
