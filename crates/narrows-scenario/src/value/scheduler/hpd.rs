//! Parameters of hybrid proportional delay (HPD): `{ type = "hpd", bound-order = "earliest-deadline",
//! classes = [ { name = "voip", ddp = 1, gamma = "auto", g = 128, limit = "2ms", estimator = { type =
//! "ewma-r", cycle = "2ms" } }, … ] }`.

use std::num::NonZero;

use narrows_core::Duration;
use narrows_core::sched::{
    BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, HpdClass, HpdConfig, Per1024,
};
use serde_json::{Value as Json, json};

use super::own::OwnParameters;
use crate::keys::kind::{ByHand, Choice, Given, Integer, Or, text};
use crate::keys::quantity::Time;
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Key, Keyed, Parameters, Row, row};
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Problem, one_of};
use crate::value::condition::Surroundings;

/// Parameters of the scheduler as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hpd {
    /// Order among several classes whose delay bound counts.
    pub bound_order: BoundOrder,
    /// When the delay bound of a class counts: if its first packet is about to exceed it, or has exceeded
    /// it.
    pub bound_reading: BoundReading,
}

const ORDER: Choice<BoundOrder> = Choice {
    what: "order of bounds",
    choices: &[("reference", BoundOrder::Reference), ("earliest-deadline", BoundOrder::EarliestDeadline)],
};
const READING: Choice<BoundReading> = Choice {
    what: "reading of a bound",
    choices: &[
        ("about-to-violate", BoundReading::AboutToViolate),
        ("has-violated", BoundReading::HasViolated),
    ],
};
const DDP: ByHand<NonZero<u32>> = ByHand {
    words: || "whole number, 1 to 4294967295".into(),
    schema: |_| json!({ "type": "integer", "minimum": 1 }),
    read: |node, _| {
        let ddp = node.integer("a delay differentiation parameter", 1..1 << 32)?;
        Ok(NonZero::new(ddp as u32).unwrap_or(NonZero::<u32>::MIN)) // in range
    },
    write: |ddp| Some(Value::Integer(ddp.to_string())),
};
const GAMMA: ByHand<Gamma> = ByHand {
    words: || "whole number, 0 to 1024, or `\"auto\"`".into(),
    schema: |_| json!({ "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 0, "maximum": 1024 }] }),
    read: |node, _| match &node.value {
        Value::String(text) if text.trim() == "auto" => Ok(Gamma::OfBacklog),
        _ => per1024(node, "\"auto\", or a number").map(Gamma::Fixed),
    },
    write: |gamma| match gamma {
        Gamma::Fixed(parts) => Some(Value::Integer(parts.to_string())),
        Gamma::OfBacklog => Some(text("auto")),
    },
};
const G: ByHand<Per1024> = ByHand {
    words: || "whole number, 0 to 1024".into(),
    schema: |_| json!({ "type": "integer", "minimum": 0, "maximum": 1024 }),
    read: |node, _| per1024(node, "a number"),
    write: |parts| Some(Value::Integer(parts.to_string())),
};
const ESTIMATOR: ByHand<Estimator> = ByHand {
    words: || "`\"ewma\"`, `\"ewma-r\"` or `\"ewma-pe\"`, or a table with that `type`".into(),
    schema: estimator_schema,
    read: read_estimator,
    write: |estimator| Some(estimator_value(*estimator)),
};

impl Keyed for Hpd {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "bound-order",
            bound_order,
            ORDER,
            "Which of several classes close to their limits goes first: the last one, as in the published implementation, or the one with the earliest deadline."
        ),
        row!(
            "bound-reading",
            bound_reading,
            READING,
            "When a limit takes effect: when the head packet would miss it after one more packet of another class, or when it has missed it."
        ),
    ];
}

impl Keyed for HpdClass {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "ddp",
            ddp,
            DDP,
            "Delay differentiation parameter: delays are proportional to it, so the smallest gets the best service."
        ),
        row!(
            "gamma",
            gamma,
            GAMMA,
            "Weight of the newest delay in the average, in 1024ths. `\"auto\"` is `1/(N·√q·ln q)`, at most 1, with N classes and q packets in this class at departure."
        ),
        row!(
            "g",
            g,
            G,
            "Weight of the average delay in the hybrid delay, in 1024ths; the head packet's waiting time has the rest."
        ),
        row!(
            "limit",
            limit,
            Or("none", Time::POSITIVE),
            "Delay limit: no packet waits longer, except for earlier packets of its class in the same burst."
        ),
        row!("estimator", estimator, ESTIMATOR, "Estimator of the average delay."),
    ];
}

impl Hpd {
    /// The engine's configuration with these classes.
    pub(crate) fn config(self, classes: Vec<HpdClass>) -> HpdConfig {
        HpdConfig { classes, bound_order: self.bound_order, bound_reading: self.bound_reading }
    }
}

impl OwnParameters for Hpd {
    fn effective(&self) -> String {
        let reading = match self.bound_reading {
            BoundReading::AboutToViolate => "would be missed by one packet more",
            BoundReading::HasViolated => "is missed",
        };
        let order = match self.bound_order {
            BoundOrder::Reference => "the last such class",
            BoundOrder::EarliestDeadline => "the earliest deadline",
        };
        format!("; a class whose limit {reading} goes first, of several {order}")
    }
}

/// The parameters of a class, for display.
pub(crate) fn class_words(class: &HpdClass) -> String {
    let HpdClass { ddp, gamma, g, limit, estimator } = class;
    let limit = limit.map_or("no limit".into(), |limit| format!("limit {limit}"));
    let gamma = match gamma {
        Gamma::Fixed(parts) => format!("{parts}/1024"),
        Gamma::OfBacklog => "by the backlog".into(),
    };
    let estimator = match estimator {
        Estimator::Ewma => String::new(),
        Estimator::EwmaR { threshold, cycle } => {
            format!(", exact for {threshold} packets, restarts after {cycle} idle")
        }
        Estimator::EwmaPe { steps, width } => {
            let width = WIDTHS.iter().find(|(_, known)| known == width).map_or("", |(name, _)| name);
            format!(", up to {steps} times that by steps of {width} error")
        }
    };
    format!("ddp {ddp}, g {g}/1024, {limit}; gamma {gamma}{estimator}")
}

fn per1024(node: &Node, what: &str) -> Result<Per1024, Problem> {
    let parts = node.integer(&format!("{what} of 1024ths"), 0..1025)?;
    Ok(Per1024::new(parts as u16).unwrap_or(Per1024::ONE)) // in range
}

/// The plain moving average, which has no parameters.
#[derive(Default)]
struct Plain;

impl Keyed for Plain {
    const ROWS: &'static [Row<Self>] = &[];
}

/// Moving average with restart.
struct Restart {
    threshold: u32,
    cycle: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self { threshold: Estimator::THRESHOLD, cycle: Estimator::CYCLE }
    }
}

impl Keyed for Restart {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "threshold",
            threshold,
            Integer { what: "a number of packets", low: 0, high: u32::MAX as i64 },
            "Number of packets averaged exactly before the moving average takes over."
        ),
        row!("cycle", cycle, Time::ANY, "Idle time after which the estimator restarts."),
    ];
}

/// Moving average by the proportional error.
#[derive(Default)]
struct Proportional {
    steps: Option<u8>,
    width: ErrorWidth,
}

const WIDTHS: &[(&str, ErrorWidth)] = &[("10%", ErrorWidth::Tenth), ("12.5%", ErrorWidth::Eighth)];

impl Keyed for Proportional {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "steps",
            steps,
            Given(Integer { what: "a number of steps", low: 1, high: 255 }),
            "Maximum multiple of `gamma`: 1 when the delay is within one step of the average, 2 within two, and so on."
        )
        .default("7, or 8 with steps of 12.5 %"),
        row!(
            "width",
            width,
            Choice { what: "width of a step", choices: WIDTHS },
            "Size of a step relative to the average: as published with the estimator, or as in the published implementation."
        ),
    ];
}

const ESTIMATORS: &[&str] = &["ewma", "ewma-r", "ewma-pe"];

/// The keys of an estimator, except its `type`.
fn estimator_keys(name: &str) -> Vec<&'static dyn Key> {
    match name {
        "ewma-r" => keys::keys::<Restart>(),
        "ewma-pe" => keys::keys::<Proportional>(),
        _ => keys::keys::<Plain>(),
    }
}

fn estimator_schema(definitions: &mut Definitions) -> Json {
    let tables = [
        ("ewma", "Ewma", "An exponentially weighted moving average."),
        (
            "ewma-r",
            "EwmaR",
            "With restart: the exact mean of the first packets, the moving average from there on, and anew after an idle time.",
        ),
        (
            "ewma-pe",
            "EwmaPe",
            "By the proportional error: the newest delay weighs more where it is far from the average.",
        ),
    ];
    let mut any = vec![json!({ "enum": ESTIMATORS })];
    for (name, called, doc) in tables {
        any.push(schema::define(definitions, called, |definitions| {
            schema::tagged(name, doc, &estimator_keys(name), definitions)
        }));
    }
    json!({ "anyOf": any })
}

fn read_estimator(node: &Node, around: Surroundings<'_>) -> Result<Estimator, Problem> {
    let none = Table::default();
    let (name, table) = match &node.value {
        Value::Table(table) => (table.required("type", &node.span, estimator_name)?, table),
        _ => (estimator_name(node)?, &none),
    };
    keys::only_tagged(table, &estimator_keys(name))?;
    Ok(match name {
        "ewma-r" => {
            let Restart { threshold, cycle } = keys::read(node, table, around)?;
            Estimator::EwmaR { threshold, cycle }
        }
        "ewma-pe" => {
            let Proportional { steps, width } = keys::read(node, table, around)?;
            Estimator::EwmaPe { steps: steps.unwrap_or(width.steps()), width }
        }
        _ => Estimator::Ewma,
    })
}

fn estimator_name(node: &Node) -> Result<&'static str, Problem> {
    let text = node.text(&format!("an estimator: {}", one_of(ESTIMATORS)))?.trim();
    ESTIMATORS.iter().find(|known| **known == text).copied().ok_or_else(|| {
        suggest(
            Problem::new(format!("{} is not an estimator", node.found())).at(&node.span),
            text,
            ESTIMATORS,
        )
    })
}

fn estimator_value(estimator: Estimator) -> Value {
    let mut table = Table::default();
    let (name, parameters): (_, &dyn Parameters) = match estimator {
        Estimator::Ewma => return text("ewma"),
        Estimator::EwmaR { threshold, cycle } => ("ewma-r", &Restart { threshold, cycle }),
        Estimator::EwmaPe { steps, width } => ("ewma-pe", &Proportional { steps: Some(steps), width }),
    };
    table.put("type", text(name));
    parameters.write(&mut table);
    Value::Table(table)
}

/// The tables of estimators in the reference.
pub(super) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    vec![("ewma-r", estimator_keys("ewma-r")), ("ewma-pe", estimator_keys("ewma-pe"))]
}
