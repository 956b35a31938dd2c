//! Values of traffic: rates of packets, durations, sizes and lengths.

use narrows_core::source::{Lengths, Pace, Period, Sizes};
use narrows_core::{Bytes, Duration};
use serde_json::{Value as Json, json};

use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Form, Given, Integer, Kind, text};
use crate::keys::quantity::{Size, Time};
use crate::keys::schema::{self, Definitions};
use crate::keys::{Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::units;

/// A packet rate: `"1000/s"`, `"1/20ms"` or a bit rate.
pub(super) const PACE: ByHand<Pace> = ByHand {
    words: || "pace".into(),
    schema: |definitions| {
        schema::define(definitions, "Pace", |_| {
            let doc = "How fast packets come: `1000/s`, `1/20ms`, or a rate of IP packets such as `12mbit`.";
            json!({ "type": "string", "description": doc, "pattern": "^[^/]*[a-zA-Z/]" })
        })
    },
    read: |node, _| pace(node),
    write: |pace| {
        Some(match pace {
            Pace::Packets { count, per } => text(format!("{count}/{per}")),
            Pace::Bits(rate) => text(rate),
        })
    },
};
/// A duration above zero, constant or random.
pub(super) const PERIOD: ByHand<Period> =
    ByHand { read: |node, around| period(node, &Time::POSITIVE, around), ..PAUSE };
/// A duration, constant or random; may be zero.
pub(super) const PAUSE: ByHand<Period> = ByHand {
    words: || "[period](#traffic)".into(),
    schema: |definitions| {
        let any = [schema::time(definitions), RANDOM_PERIOD.schema(definitions)];
        schema::define(
            definitions,
            "Period",
            |_| json!({ "description": "How long something takes: always the same, or drawn from a distribution.", "anyOf": any }),
        )
    },
    read: |node, around| period(node, &Time::ANY, around),
    write: |period| match period {
        Period::Fixed(length) => Some(text(length)),
        Period::Exponential(mean) => {
            RANDOM_PERIOD.write(&RandomPeriod { exponential: Some(*mean), pareto: None })
        }
        Period::Pareto { mean, shape } => {
            let pareto = Some(ParetoPeriod { mean: *mean, shape: *shape });
            RANDOM_PERIOD.write(&RandomPeriod { exponential: None, pareto })
        }
    },
};
/// A number of bytes to send, constant or random.
pub(super) const SIZES: ByHand<Sizes> = ByHand {
    words: || "sizes".into(),
    schema: |definitions| {
        let any = [schema::size(definitions), RANDOM_SIZES.schema(definitions)];
        schema::define(
            definitions,
            "Sizes",
            |_| json!({ "description": "How many bytes are sent.", "anyOf": any }),
        )
    },
    read: |node, around| match &node.value {
        Value::Table(_) => RANDOM_SIZES.read(node, around).map(RandomSizes::sizes),
        _ => SIZE.read(node, around).map(Sizes::Fixed),
    },
    write: |sizes| match sizes {
        Sizes::Fixed(size) => SIZE.write(size),
        sizes => RANDOM_SIZES.write(&RandomSizes::of(sizes)),
    },
};
/// Lengths of IP packets.
pub(super) const LENGTHS: ByHand<Lengths> = ByHand {
    words: || "size, 28 to 65535 bytes, `\"imix\"`, or a mix".into(),
    schema: |definitions| {
        let any = [schema::size(definitions), json!({ "const": IMIX }), LENGTH_MIX.schema(definitions)];
        schema::define(
            definitions,
            "Length",
            |_| json!({ "description": "How long IP packets are.", "anyOf": any }),
        )
    },
    read: |node, around| match &node.value {
        Value::Table(_) => LENGTH_MIX
            .read(node, around)
            .map(|LengthMix { mix }| {
                Lengths::Mix(mix.into_iter().map(|one| (one.length, one.weight)).collect())
            })
            .map_err(|p| p.help(format!("write it like {}", LENGTH_MIX.example))),
        Value::String(name) if name == IMIX => Ok(Lengths::Mix(IMIX_LENGTHS.to_vec())),
        _ => LENGTH.read(node, around).map(Lengths::Fixed),
    },
    write: |lengths| match lengths {
        Lengths::Fixed(length) => LENGTH.write(length),
        Lengths::Mix(mix) if mix == IMIX_LENGTHS => Some(text(IMIX)),
        Lengths::Mix(mix) => {
            let mix = mix.iter().map(|(length, weight)| LengthWeight { length: *length, weight: *weight });
            LENGTH_MIX.write(&LengthMix { mix: mix.collect() })
        }
    },
};
/// The simple Internet mix (IMIX) used by vendors of test equipment: IP packets of three lengths at 7 : 4 :
/// 1, 340 bytes on average. The kernel's pktgen has the same figures as the example of its `imix_weights`
/// (Documentation/networking/pktgen.rst).
const IMIX: &str = "imix";
const IMIX_LENGTHS: &[(u32, u64)] = &[(40, 7), (576, 4), (1500, 1)];
/// Bytes above zero.
pub(super) const SIZE: Size = Size { low: 1, high: 1_000_000_000_000, expected: "a size above zero" };
/// Packet length from the network header on: at least IPv4 and UDP headers without payload.
const LENGTH: ByHand<u32> = ByHand {
    words: || "size, 28 to 65535 bytes".into(),
    schema: schema::size,
    read: |node, _| match units::size(node)?.get() {
        bytes @ 28..=65_535 => Ok(bytes as u32),
        _ => Err(Problem::new(format!("{} is not a valid IP packet length", node.found()))
            .at(&node.span)
            .help("28 to 65535 bytes, the headers of IP and UDP included")),
    },
    write: |length| Some(text(Bytes::new((*length).into()))),
};
/// The shape of a Pareto distribution.
const SHAPE: ByHand<f64> = ByHand {
    words: || "number above 1, up to 1000".into(),
    schema: |_| json!({ "type": "number", "minimum": 1, "maximum": 1000 }),
    read: |node, _| shape(node),
    write: |shape| Some(Value::Float(format!("{shape:?}"))),
};
const WEIGHT: Integer = Integer { what: "a weight", low: 1, high: 1_000_000_000 };

/// Weighted values, 1 to 10,000 of them. `what` is their plural.
struct Mix<T> {
    what: &'static str,
    one: Group<T>,
}

const MOST_OF_MIX: usize = 10_000;

impl<T: Keyed> Kind for Mix<T> {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        let one = self.one.schema(definitions);
        json!({ "type": "array", "items": one, "minItems": 1, "maxItems": MOST_OF_MIX })
    }

    fn words(&self) -> String {
        format!("list of {} with weights", self.what)
    }
}

impl<T: Keyed> Form<Vec<T>> for Mix<T> {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Vec<T>, Problem> {
        let items = node.list(&self.words().replacen("list", "a list", 1))?;
        if items.is_empty() || items.len() > MOST_OF_MIX {
            return Err(Problem::new(format!("a mix of {} {}", items.len(), self.what))
                .at(&node.span)
                .help(format!("1 to {MOST_OF_MIX}")));
        }
        items.iter().map(|item| self.one.read(item, around)).collect()
    }

    fn write(&self, values: &Vec<T>) -> Option<Value> {
        let values: Vec<Node> =
            values.iter().filter_map(|value| self.one.write(value)).map(Node::new).collect();
        (!values.is_empty()).then_some(Value::Array(values))
    }
}

/// Checks that a table has exactly one of its keys.
fn one_of(table: &Table, place: &std::ops::Range<usize>, expected: &str) -> Result<(), Problem> {
    match table.iter().count() {
        1 => Ok(()),
        _ => Err(Node { span: place.clone(), value: Value::Table(table.clone()) }.expected(expected)),
    }
}

/// A random duration: one of these distributions.
#[derive(Default)]
struct RandomPeriod {
    exponential: Option<Duration>,
    pareto: Option<ParetoPeriod>,
}

#[derive(Default)]
struct ParetoPeriod {
    mean: Duration,
    shape: f64,
}

const RANDOM_PERIOD: Group<RandomPeriod> =
    Group::new("RandomPeriod", "Drawn from one of these distributions.", "{ exponential = \"2s\" }");
const PARETO_PERIOD: Group<ParetoPeriod> =
    Group::new("Pareto", "A Pareto distribution.", "{ mean = \"1s\", shape = 1.5 }");

impl Keyed for RandomPeriod {
    const ROWS: &'static [Row<Self>] = &[
        row!("exponential", exponential, Given(Time::POSITIVE), "Exponential with this mean."),
        row!("pareto", pareto, Given(PARETO_PERIOD), "Pareto."),
    ];

    fn check(&self, table: &Table, place: &std::ops::Range<usize>) -> Result<(), Problem> {
        one_of(table, place, "one of `exponential` and `pareto`")
    }
}

impl Keyed for ParetoPeriod {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, Time::POSITIVE, "The mean.").required(),
        row!("shape", shape, SHAPE, "Above 1; at 2 and below the variance is infinite.").required(),
    ];
}

/// Random sizes: one of these distributions.
#[derive(Default)]
struct RandomSizes {
    exponential: Option<Bytes>,
    pareto: Option<ParetoSizes>,
    mix: Vec<SizeWeight>,
}

#[derive(Default)]
struct ParetoSizes {
    mean: Bytes,
    shape: f64,
    most: Option<Bytes>,
}

#[derive(Default)]
struct SizeWeight {
    size: Bytes,
    weight: u64,
}

const RANDOM_SIZES: Group<RandomSizes> =
    Group::new("RandomSizes", "Drawn from one of these distributions.", "{ exponential = \"10 kB\" }");
const PARETO_SIZES: Group<ParetoSizes> =
    Group::new("ParetoSizes", "A Pareto distribution.", "{ mean = \"10 kB\", shape = 1.5 }");
const SIZE_MIX: Mix<SizeWeight> = Mix {
    what: "sizes",
    one: Group::new("SizeWeight", "A size and how often it comes.", "a size and its weight"),
};

impl RandomSizes {
    fn of(sizes: &Sizes) -> Self {
        match sizes {
            Sizes::Fixed(_) => Self::default(),
            Sizes::Exponential(mean) => Self { exponential: Some(*mean), ..Self::default() },
            Sizes::Pareto { mean, shape, most } => {
                let pareto = ParetoSizes { mean: *mean, shape: *shape, most: *most };
                Self { pareto: Some(pareto), ..Self::default() }
            }
            Sizes::Mix(mix) => {
                let mix = mix.iter().map(|(size, weight)| SizeWeight { size: *size, weight: *weight });
                Self { mix: mix.collect(), ..Self::default() }
            }
        }
    }

    fn sizes(self) -> Sizes {
        match (self.exponential, self.pareto) {
            (Some(mean), _) => Sizes::Exponential(mean),
            (_, Some(ParetoSizes { mean, shape, most })) => Sizes::Pareto { mean, shape, most },
            _ => Sizes::Mix(self.mix.into_iter().map(|one| (one.size, one.weight)).collect()),
        }
    }
}

impl Keyed for RandomSizes {
    const ROWS: &'static [Row<Self>] = &[
        row!("exponential", exponential, Given(SIZE), "Exponential with this mean."),
        row!("pareto", pareto, Given(PARETO_SIZES), "Pareto."),
        row!("mix", mix, SIZE_MIX, "A mix of sizes."),
    ];

    fn check(&self, table: &Table, place: &std::ops::Range<usize>) -> Result<(), Problem> {
        one_of(table, place, "one of `exponential`, `pareto` and `mix`")
    }
}

impl Keyed for ParetoSizes {
    const ROWS: &'static [Row<Self>] = &[
        row!("mean", mean, SIZE, "Mean before truncation.").required(),
        row!("shape", shape, SHAPE, "Above 1; at 2 and below the variance is infinite.").required(),
        row!("most", most, Given(SIZE), "Maximum size; larger draws are cut."),
    ];
}

impl Keyed for SizeWeight {
    const ROWS: &'static [Row<Self>] = &[
        row!("size", size, SIZE, "The size.").required(),
        row!("weight", weight, WEIGHT, "Relative frequency.").required(),
    ];
}

#[derive(Default)]
struct LengthMix {
    mix: Vec<LengthWeight>,
}

#[derive(Default)]
struct LengthWeight {
    length: u32,
    weight: u64,
}

const LENGTH_MIX: Group<LengthMix> = Group::new(
    "LengthMix",
    "Lengths with their weights.",
    "{ mix = [{ length = \"40 bytes\", weight = 7 }, { length = \"1500 bytes\", weight = 1 }] }",
);
const MIX: Mix<LengthWeight> = Mix {
    what: "lengths",
    one: Group::new("LengthWeight", "A length and how often it comes.", "a length and its weight"),
};

impl Keyed for LengthMix {
    const ROWS: &'static [Row<Self>] = &[row!("mix", mix, MIX, "The lengths.").required()];
}

impl Keyed for LengthWeight {
    const ROWS: &'static [Row<Self>] = &[
        row!("length", length, LENGTH, "The length.").required(),
        row!("weight", weight, WEIGHT, "Relative frequency.").required(),
    ];
}

fn pace(node: &Node) -> Result<Pace, Problem> {
    const HELP: &str =
        "write \"1000/s\", \"1/20ms\" (one every 20 ms) or a rate of network-layer bits, such as \"12mbit\"";
    let text = node.text("how fast packets come").map_err(|p| p.help(HELP))?;
    let Some((count, per)) = text.split_once('/') else {
        if text.trim().bytes().all(|c| c.is_ascii_digit()) {
            return Err(Problem::new(format!("{} has no unit", node.found())).at(&node.span).help(HELP));
        }
        return units::finite_rate(node).map(Pace::Bits).map_err(|problem| problem.help(HELP));
    };
    let part = |text: String| Node { span: node.span.clone(), value: Value::String(text) };
    let count =
        part(count.into()).integer("a number of packets", 1..1_000_000_001).map_err(|p| p.help(HELP))?;
    let per = per.trim();
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.into() } else { format!("1{per}") };
    let per = units::positive_time(&part(per)).map_err(|p| p.help(HELP))?;
    Ok(Pace::Packets { count: count as u64, per })
}

fn period(node: &Node, fixed: &Time, around: Surroundings<'_>) -> Result<Period, Problem> {
    if !matches!(node.value, Value::Table(_)) {
        return fixed.read(node, around).map(Period::Fixed);
    }
    Ok(match RANDOM_PERIOD.read(node, around)? {
        RandomPeriod { exponential: Some(mean), .. } => Period::Exponential(mean),
        RandomPeriod { pareto, .. } => {
            let ParetoPeriod { mean, shape } = pareto.unwrap_or_default(); // one of the two is there
            Period::Pareto { mean, shape }
        }
    })
}

fn shape(node: &Node) -> Result<f64, Problem> {
    let text = match &node.value {
        Value::Integer(text) | Value::Float(text) => text.as_str(),
        _ => "",
    };
    let shape: Option<f64> = text.parse().ok();
    shape.filter(|shape| *shape > 1.0 && *shape <= 1000.0).ok_or_else(|| {
        node.expected("a number above 1, up to 1000, such as 1.5")
            .help("at a shape of 1 and below the mean is infinite")
    })
}
