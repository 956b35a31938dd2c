//! Distributions from data: tables, samples, histograms, and points of a cumulative distribution function,
//! given in the scenario or in a separate file.

use std::ops::Range;
use std::sync::Arc;

use narrows_core::Duration;
use narrows_core::model::{self, Distribution as Model, DistributionError};
use serde_json::json;

use super::Law;
use crate::files::NamedFile;
use crate::keys::compound::{Group, List};
use crate::keys::kind::{ByHand, Choice, Given, Like, text};
use crate::keys::quantity::{ONE_OF_PERCENTAGES, Time};
use crate::keys::{Form, Keyed, Row, row, schema};
use crate::node::{Node, Table as Keys, Value};
use crate::problem::Problem;
use crate::tables::{self, SampleColumn, TableError, TimeUnit};
use crate::units::{self, Number, Share};
use crate::value::condition::Surroundings;
use crate::value::file::FILE;

/// The default unit of numbers in a file.
const UNIT: Choice<TimeUnit> = Choice {
    what: "unit",
    choices: &[
        ("ns", TimeUnit::Nanoseconds),
        ("us", TimeUnit::Microseconds),
        ("ms", TimeUnit::Milliseconds),
        ("s", TimeUnit::Seconds),
    ],
};

/// A list in the scenario itself, of limited length.
const fn list<F>(what: &'static str, one: F) -> List<F> {
    List { what, most: 100_000, one }
}

/// The file of a table, if it has one; the table must have either a file or `list`.
fn file<'a>(table: &'a Keys, place: &Range<usize>, list: &str) -> Result<Option<&'a Node>, Problem> {
    match (table.get("file"), table.get(list)) {
        (Some(file), None) => Ok(Some(file)),
        (None, Some(_)) => match table.key("unit").or(table.key("column")) {
            Some(key) => {
                let title = format!("`{}` applies to a file, but there is none", key.name);
                Err(Problem::new(title).at(&key.span))
            }
            None => Ok(None),
        },
        (None, None) => Err(Problem::new(format!("`file` or `{list}` is missing")).at(place)),
        (Some(_), Some(_)) => {
            Err(Problem::new(format!("both `file` and `{list}`")).at(place).help("keep one of the two"))
        }
    }
}

/// Parses a file of numbers.
fn parsed<T>(
    node: &Node,
    around: Surroundings<'_>,
    parse: impl FnOnce(&str, &[u8]) -> Result<T, TableError>,
) -> Result<T, Problem> {
    let parsed = around.files.table(node, |file| parse(&file.name, &file.contents));
    parsed.map(|(_, parsed)| parsed).map_err(|problem| problem.inside("file"))
}

/// File name for display.
fn of_file(file: &Option<NamedFile>) -> String {
    file.as_ref().map_or(String::new(), |file| format!(" of {}", file.name))
}

/// A table of deviates in units of 1/8192 of a standard deviation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    file: Option<NamedFile>,
    /// Name of a table that is computed from a formula.
    name: Option<&'static str>,
    mean: Duration,
    sd: Duration,
    /// Deviates from a file.
    deviates: Arc<[i16]>,
}

/// The tables that are computed from a formula.
const NAMED: Choice<&str> = Choice {
    what: "table",
    choices: &[("normal", "normal"), ("pareto", "pareto"), ("paretonormal", "paretonormal")],
};
const NAME: Like<Choice<&str>, &'static str> = Like {
    kind: NAMED,
    read: |node, around| {
        NAMED.read(node, around).map_err(|problem| problem.help("or name a file: file = \"x.dist\""))
    },
    write: |name| NAMED.write(name),
};

impl Table {
    pub(super) const FORM: Group<Self> = Group::new(
        "TableDelay",
        "mean + sd · entry/8192, each entry equally likely: one of `file` and `name`.",
        "{ name = \"pareto\", mean = \"10ms\", sd = \"2ms\" }",
    );
}

impl Keyed for Table {
    const ROWS: &'static [Row<Self>] = &[
        row!("file", file, FILE, "`.dist` file."),
        row!("name", name, Given(NAME), "Built-in table, made from its formula."),
        row!("mean", mean, Time::ANY, "Delay at an entry of zero.").required(),
        row!("sd", sd, Time::ANY, "Delay added by an entry of 8192.").required(),
    ];

    fn finish(
        &mut self,
        table: &Keys,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        if let Some(file) = file(table, place, "name")? {
            self.deviates = parsed(file, around, tables::read_dist)?.into();
        }
        Ok(())
    }
}

impl Law for Table {
    fn engine(&self) -> Result<Model, DistributionError> {
        let (mean, sd) = (self.mean.nanos() as f64, self.sd.nanos() as f64);
        match self.name {
            Some(name) => {
                let deviates = model::builtin_table(name).expect("the names of built-in tables are checked");
                Model::table(&deviates, mean, sd)
            }
            None => Model::table(&self.deviates, mean, sd),
        }
    }

    fn words(&self) -> Option<String> {
        let file = self.file.as_ref().map(|file| &*file.name);
        Some(format!("table {}, {} ± {}", self.name.or(file).unwrap_or_default(), self.mean, self.sd))
    }
}

/// Measured times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    file: Option<NamedFile>,
    unit: Option<TimeUnit>,
    column: Option<String>,
    listed: Arc<[Duration]>,
    /// Times from the list or the file.
    times: Arc<[Duration]>,
}

const COLUMN: ByHand<String> = ByHand {
    words: || "name, or number from 1".into(),
    schema: |_| json!({ "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 1 }] }),
    read: |node, _| match &node.value {
        Value::String(name) | Value::Integer(name) => Ok(name.trim().to_owned()),
        _ => Err(node.expected("the name of a column, or its number from 1")),
    },
    write: |name| Some(text(name)),
};

impl Samples {
    pub(super) const FORM: Group<Self> =
        Group::new("SampleDelay", "One of `file` and `values`.", "{ file = \"rtt.txt\", unit = \"ms\" }");

    /// The times in the order of the file; at least one.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }
}

impl Keyed for Samples {
    const ROWS: &'static [Row<Self>] = &[
        row!("file", file, FILE, "File with one number per line, or a CSV column."),
        row!("unit", unit, Given(UNIT), "Unit of bare numbers in the file."),
        row!("column", column, Given(COLUMN), "CSV column."),
        row!("values", listed, list("a list", Time::ANY), "The samples, inline."),
    ];

    fn finish(
        &mut self,
        table: &Keys,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        self.times = match file(table, place, "values")? {
            None => self.listed.clone(),
            Some(file) => {
                let wanted = SampleColumn { unit: self.unit, name: self.column.clone(), plain: false };
                let read = |name: &str, bytes: &[u8]| tables::read_samples(name, bytes, &wanted);
                parsed(file, around, read)?.durations().into()
            }
        };
        Ok(())
    }
}

impl Law for Samples {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::samples(self.times.to_vec())
    }

    fn words(&self) -> Option<String> {
        let file = of_file(&self.file);
        Some(match self.times.len() {
            1 => format!("the one sample{file}"),
            count => format!("the {count} samples{file}"),
        })
    }
}

/// A histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins {
    file: Option<NamedFile>,
    unit: Option<TimeUnit>,
    listed: Arc<[Bin]>,
    /// Bins from the list or the file.
    bins: Arc<[Bin]>,
}

/// Start, end, weight.
type Bin = (Duration, Duration, f64);

const BIN: ByHand<Bin> = ByHand {
    words: || "from, to and weight".into(),
    schema: |_| schema::tuple(3),
    read: |node, _| bin(node),
    write: |(low, high, weight)| {
        let weight = Value::Float(weight.to_string());
        Some(Value::Array([text(low), text(high), weight].map(Node::new).into()))
    },
};

impl Bins {
    pub(super) const FORM: Group<Self> =
        Group::new("HistogramDelay", "One of `file` and `bins`.", "{ file = \"h.csv\" }");

    /// Start, end and weight of each bin.
    pub fn bins(&self) -> &[(Duration, Duration, f64)] {
        &self.bins
    }
}

impl Keyed for Bins {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "file",
            file,
            FILE,
            "File with one `lower bound,count,unit` per row; the last row ends the last bin."
        ),
        row!("unit", unit, Given(UNIT), "Unit of bare numbers in the file."),
        row!("bins", listed, list("a list", BIN), "Lower bound, upper bound and weight of each bin."),
    ];

    fn finish(
        &mut self,
        table: &Keys,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        self.bins = match file(table, place, "bins")? {
            None => self.listed.clone(),
            Some(file) => {
                let read = |name: &str, bytes: &[u8]| tables::read_histogram(name, bytes, self.unit);
                parsed(file, around, read)?.into()
            }
        };
        Ok(())
    }
}

impl Law for Bins {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::histogram(self.bins.to_vec())
    }

    fn words(&self) -> Option<String> {
        Some(format!("the histogram of {} bins{}", self.bins.len(), of_file(&self.file)))
    }
}

fn bin(node: &Node) -> Result<Bin, Problem> {
    const ALLOWED: &str = "from, to and weight of a bin, such as [\"1ms\", \"2ms\", 30]";
    let [low, high, weight] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
    let (low, high) = (units::time(low)?, units::time(high)?);
    if low > high {
        return Err(Problem::new(format!("a descending bin, from {low} to {high}")).at(&node.span));
    }
    Ok((low, high, Number::read(weight)?.as_f64()))
}

/// Points of a cumulative distribution function, interpolated linearly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    file: Option<NamedFile>,
    unit: Option<TimeUnit>,
    /// Points of a list, with probabilities as written.
    listed: Arc<[Point]>,
    /// Points from the list or the file.
    points: Arc<[(Duration, f64)]>,
}

/// A delay, and the probability that a delay does not exceed it.
type Point = (Duration, Share);

const POINT: ByHand<Point> = ByHand {
    words: || "delay and probability".into(),
    schema: |_| schema::tuple(2),
    read: |node, around| {
        const ALLOWED: &str = "a delay and the probability that one is no longer, such as [\"2ms\", 0.5]";
        let [at, share] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
        // A bare 1 means always: it ends the list.
        Ok((units::time(at)?, ONE_OF_PERCENTAGES.read(share, around)?))
    },
    write: |(at, share)| Some(Value::Array([text(at), text(share)].map(Node::new).into())),
};

impl Points {
    pub(super) const FORM: Group<Self> = Group::new(
        "CdfDelay",
        "One of `file` and `points`.",
        "{ points = [[\"1ms\", 0], [\"2ms\", 0.5], [\"9ms\", 1]] }",
    );

    /// Delays, each with the probability that a delay does not exceed it.
    pub fn points(&self) -> &[(Duration, f64)] {
        &self.points
    }

    /// Checks that the delays and probabilities of a list increase, and that the list ends at one.
    fn check_list(&self, list: &Node) -> Result<(), Problem> {
        let items = list.list("a list")?;
        for (pair, node) in self.listed.windows(2).zip(items.iter().skip(1)) {
            let [(before, least), (at, share)] = pair else { continue };
            let falls = |title: String| Err(Problem::new(title).at(&node.span));
            if at < before {
                return falls(format!("the delay falls, from {before} to {at}"));
            }
            if share < least {
                return falls(format!("the probability falls, from {least} to {share}"));
            }
        }
        match self.listed.last() {
            Some((_, last)) if *last < Share::ALWAYS => {
                Err(Problem::new(format!("the last probability is {last}, not 100%")).at(&list.span))
            }
            _ => Ok(()),
        }
    }
}

impl Keyed for Points {
    const ROWS: &'static [Row<Self>] = &[
        row!("file", file, FILE, "File with one `delay,probability` per row."),
        row!("unit", unit, Given(UNIT), "Unit of bare numbers in the file."),
        row!(
            "points",
            listed,
            list("a list", POINT),
            "Delay and cumulative probability, both ascending, to 1."
        ),
    ];

    fn finish(
        &mut self,
        table: &Keys,
        place: &Range<usize>,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        self.points = match file(table, place, "points")? {
            None => {
                let checked = table.optional("points", |list| self.check_list(list));
                checked.map(|_| self.listed.iter().map(|(at, share)| (*at, share.as_f64())).collect())?
            }
            Some(file) => {
                let read = |name: &str, bytes: &[u8]| tables::read_cdf(name, bytes, self.unit);
                parsed(file, around, read)?.into()
            }
        };
        Ok(())
    }
}

impl Law for Points {
    fn engine(&self) -> Result<Model, DistributionError> {
        Model::points(self.points.to_vec())
    }

    fn words(&self) -> Option<String> {
        Some(format!("the distribution function of {} points{}", self.points.len(), of_file(&self.file)))
    }
}
