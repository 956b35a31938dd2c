//! Distributions made of numbers: tables, samples, histograms, points of a cumulative distribution; in the scenario
//! itself or in a file beside it.

use std::sync::Arc;

use narrows_core::Duration;
use narrows_core::model::{self, Distribution as Model, DistributionError};

use crate::files::{Files, NamedFile};
use crate::node::{Node, Table as Keys, Value, toml_string};
use crate::problem::Problem;
use crate::tables::{self, SampleColumn, TimeUnit};
use crate::units::{self, Number, Share};
use crate::value::inline::Inline;

/// The units of numbers in a file that stand without one.
const UNITS: &[(&str, TimeUnit)] = &[
    ("ns", TimeUnit::Nanoseconds),
    ("us", TimeUnit::Microseconds),
    ("ms", TimeUnit::Milliseconds),
    ("s", TimeUnit::Seconds),
];

/// What a list in a file or in the scenario itself may hold: more is a mistake.
const MOST_LISTED: usize = 100_000;

fn unit(table: &Keys) -> Result<Option<TimeUnit>, Problem> {
    table.optional("unit", |node| node.choice("unit", UNITS))
}

/// Where numbers come from: a file, or the list in the scenario itself.
#[derive(Clone, Debug, PartialEq)]
struct Source {
    /// Nothing for a list in the scenario.
    file: Option<NamedFile>,
    /// The unit of the file's numbers, where they have none of their own.
    unit: Option<TimeUnit>,
}

impl Source {
    /// Which of the two keys is there: exactly one must be. `list` is the key of the list.
    fn choose<'a>(node: &Node, table: &'a Keys, list: &str) -> Result<Option<&'a Node>, Problem> {
        match (table.get("file"), table.get(list)) {
            (Some(file), None) => Ok(Some(file)),
            (None, Some(_)) => match table.key("unit").or(table.key("column")) {
                Some(key) => {
                    Err(Problem::new(format!("`{}` is about a file, and there is none", key.name))
                        .at(&key.span))
                }
                None => Ok(None),
            },
            (None, None) => Err(node.expected(&format!("`file` or `{list}`"))),
            (Some(_), Some(_)) => Err(Problem::new(format!("both `file` and `{list}`"))
                .at(&node.span)
                .help("keep one of the two")),
        }
    }

    fn write(&self, table: &mut Inline) {
        table.plain("file", self.file.as_ref().map(|file| toml_string(&file.name)));
        table.quoted("unit", self.unit);
    }

    /// For people.
    fn words(&self) -> String {
        self.file.as_ref().map_or(String::new(), |file| format!(" of {}", file.name))
    }
}

fn list<'a>(table: &'a Keys, key: &str) -> Result<&'a [Node], Problem> {
    let node = table.get(key);
    let items = node.map_or(Ok(&[][..]), |node| node.list("a list")).map_err(|p| p.inside(key))?;
    match (node, items.len()) {
        (Some(node), 0) => Err(Problem::new("the list is empty").at(&node.span).inside(key)),
        (Some(node), count) if count > MOST_LISTED => Err(Problem::new(format!("a list of {count}"))
            .at(&node.span)
            .inside(key)
            .help(format!("at most {MOST_LISTED}; more may stand in a file"))),
        _ => Ok(items),
    }
}

/// A table of deviates in steps of 1/8192 of a standard deviation.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    deviates: Deviates,
    mean: Duration,
    sd: Duration,
}

#[derive(Clone, Debug, PartialEq)]
enum Deviates {
    /// Made from its formula.
    Named(&'static str),
    File(NamedFile, Arc<[i16]>),
}

/// The tables that are made from their formulas.
const NAMED: &[(&str, &str)] =
    &[("normal", "normal"), ("pareto", "pareto"), ("paretonormal", "paretonormal")];

impl Table {
    pub(super) const KEYS: &[&str] = &["file", "name", "mean", "sd"];

    pub(super) fn read(node: &Node, table: &Keys, files: &Files) -> Result<Self, Problem> {
        const HELP: &str = "write it like table = { name = \"pareto\", mean = \"10ms\", sd = \"2ms\" }";
        let deviates = match (table.get("file"), table.get("name")) {
            (Some(file), None) => {
                let read = |file: &NamedFile| tables::read_dist(&file.name, &file.contents);
                let (file, deviates) = files.table(file, read).map_err(|p| p.inside("file"))?;
                Deviates::File(file, deviates.into())
            }
            (None, Some(name)) => {
                let name =
                    name.choice("table", NAMED).map_err(|p| p.help("or name a file: file = \"x.dist\""));
                Deviates::Named(name.map_err(|p| p.inside("name"))?)
            }
            (None, None) => return Err(node.expected("`file` or `name`").help(HELP)),
            (Some(_), Some(_)) => {
                return Err(Problem::new("both `file` and `name`")
                    .at(&node.span)
                    .help("keep one of the two"));
            }
        };
        let time = |key| table.required(key, &node.span, units::time);
        Ok(Self { deviates, mean: time("mean")?, sd: time("sd")? })
    }

    pub(super) fn engine(&self) -> Result<Model, DistributionError> {
        let (mean, sd) = (self.mean.nanos() as f64, self.sd.nanos() as f64);
        match &self.deviates {
            Deviates::Named(name) => {
                let deviates = model::builtin_table(name).expect("the names of built-in tables are checked");
                Model::table(&deviates, mean, sd)
            }
            Deviates::File(_, deviates) => Model::table(deviates, mean, sd),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut table = Inline::default();
        match &self.deviates {
            Deviates::Named(name) => table.quoted("name", Some(name)),
            Deviates::File(file, _) => table.plain("file", Some(toml_string(&file.name))),
        }
        table.quoted("mean", Some(self.mean));
        table.quoted("sd", Some(self.sd));
        table.finish()
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        let name = match &self.deviates {
            Deviates::Named(name) => name,
            Deviates::File(file, _) => &*file.name,
        };
        format!("table {name}, {} ± {}", self.mean, self.sd)
    }
}

/// Measured times.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    source: Source,
    /// The column of the file.
    column: Option<String>,
    times: Arc<[Duration]>,
}

impl Samples {
    pub(super) const KEYS: &[&str] = &["file", "unit", "column", "values"];

    pub(super) fn read(node: &Node, table: &Keys, files: &Files) -> Result<Self, Problem> {
        let Some(file) = Source::choose(node, table, "values")? else {
            let times = list(table, "values")?.iter().map(units::time).collect::<Result<_, _>>();
            let source = Source { file: None, unit: None };
            return Ok(Self { source, column: None, times: times.map_err(|p| p.inside("values"))? });
        };
        let unit = unit(table)?;
        let column = table.optional("column", |node| match &node.value {
            Value::String(name) | Value::Integer(name) => Ok(name.trim().to_owned()),
            _ => Err(node.expected("the name of a column, or its number from 1")),
        })?;
        let wanted = SampleColumn { unit, name: column.clone(), plain: false };
        let read = |file: &NamedFile| tables::read_samples(&file.name, &file.contents, &wanted);
        let (file, samples) = files.table(file, read).map_err(|p| p.inside("file"))?;
        let times = samples.durations().into();
        Ok(Self { source: Source { file: Some(file), unit }, column, times })
    }

    /// In the order of the file; at least one.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    pub(super) fn text(&self) -> String {
        let mut table = Inline::default();
        self.source.write(&mut table);
        table.plain("column", self.column.as_ref().map(|name| toml_string(name)));
        if self.source.file.is_none() {
            let values: Vec<String> = self.times.iter().map(|time| format!("\"{time}\"")).collect();
            table.plain("values", Some(format!("[{}]", values.join(", "))));
        }
        table.finish()
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        match self.times.len() {
            1 => format!("the one sample{}", self.source.words()),
            count => format!("the {count} samples{}", self.source.words()),
        }
    }
}

/// A histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    source: Source,
    bins: Arc<[Bin]>,
}

/// From, to, weight.
type Bin = (Duration, Duration, f64);

impl Bins {
    pub(super) const KEYS: &[&str] = &["file", "unit", "bins"];

    pub(super) fn read(node: &Node, table: &Keys, files: &Files) -> Result<Self, Problem> {
        let Some(file) = Source::choose(node, table, "bins")? else {
            let bins = list(table, "bins")?.iter().map(bin).collect::<Result<_, _>>();
            let source = Source { file: None, unit: None };
            return Ok(Self { source, bins: bins.map_err(|p| p.inside("bins"))? });
        };
        let unit = unit(table)?;
        let read = |file: &NamedFile| tables::read_histogram(&file.name, &file.contents, unit);
        let (file, bins) = files.table(file, read).map_err(|p| p.inside("file"))?;
        Ok(Self { source: Source { file: Some(file), unit }, bins: bins.into() })
    }

    /// From, to, weight of each.
    pub fn bins(&self) -> &[(Duration, Duration, f64)] {
        &self.bins
    }

    pub(super) fn text(&self) -> String {
        let mut table = Inline::default();
        self.source.write(&mut table);
        if self.source.file.is_none() {
            let bin = |(low, high, weight): &Bin| format!("[\"{low}\", \"{high}\", {weight}]");
            let bins: Vec<String> = self.bins.iter().map(bin).collect();
            table.plain("bins", Some(format!("[{}]", bins.join(", "))));
        }
        table.finish()
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        format!("the histogram of {} bins{}", self.bins.len(), self.source.words())
    }
}

fn bin(node: &Node) -> Result<Bin, Problem> {
    const ALLOWED: &str = "from, to and weight of a bin, such as [\"1ms\", \"2ms\", 30]";
    let [low, high, weight] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
    let (low, high) = (units::time(low)?, units::time(high)?);
    if low > high {
        return Err(Problem::new(format!("a bin from {low} to {high}, which is less")).at(&node.span));
    }
    Ok((low, high, Number::read(weight)?.as_f64()))
}

/// Points of a cumulative distribution, straight lines between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    source: Source,
    points: Arc<[(Duration, f64)]>,
    /// The probabilities of a list, as they were written.
    listed: Arc<[Share]>,
}

impl Points {
    pub(super) const KEYS: &[&str] = &["file", "unit", "points"];

    pub(super) fn read(node: &Node, table: &Keys, files: &Files) -> Result<Self, Problem> {
        let Some(file) = Source::choose(node, table, "points")? else {
            let mut points: Vec<(Duration, Share)> = Vec::new();
            for node in list(table, "points")? {
                let (at, share) = point(node).map_err(|p| p.inside("points"))?;
                if let Some(&(before, least)) = points.last() {
                    let falls = |title: String| Err(Problem::new(title).at(&node.span).inside("points"));
                    if at < before {
                        return falls(format!("the delay falls, from {before} to {at}"));
                    }
                    if share < least {
                        return falls(format!("the probability falls, from {least} to {share}"));
                    }
                }
                points.push((at, share));
            }
            let last = points.last().map_or(Share::ZERO, |point| point.1);
            if last < Share::ALWAYS {
                return Err(Problem::new(format!("the last probability is {last}, not 100%"))
                    .at(table.get("points").map_or(&node.span, |node| &node.span))
                    .inside("points"));
            }
            return Ok(Self {
                source: Source { file: None, unit: None },
                points: points.iter().map(|(at, share)| (*at, share.as_f64())).collect(),
                listed: points.iter().map(|(_, share)| *share).collect(),
            });
        };
        let unit = unit(table)?;
        let read = |file: &NamedFile| tables::read_cdf(&file.name, &file.contents, unit);
        let (file, points) = files.table(file, read).map_err(|p| p.inside("file"))?;
        Ok(Self { source: Source { file: Some(file), unit }, points: points.into(), listed: Arc::default() })
    }

    /// Delays, and the probability that one is no longer.
    pub fn points(&self) -> &[(Duration, f64)] {
        &self.points
    }

    pub(super) fn text(&self) -> String {
        let mut table = Inline::default();
        self.source.write(&mut table);
        if self.source.file.is_none() {
            let points = self.points.iter().zip(&*self.listed);
            let points: Vec<String> =
                points.map(|((at, _), share)| format!("[\"{at}\", \"{share}\"]")).collect();
            table.plain("points", Some(format!("[{}]", points.join(", "))));
        }
        table.finish()
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        format!("the distribution function of {} points{}", self.points.len(), self.source.words())
    }
}

/// A delay and a probability, of which a bare 1 is always: it stands at the end of others.
fn point(node: &Node) -> Result<(Duration, Share), Problem> {
    const ALLOWED: &str = "a delay and the probability that one is no longer, such as [\"2ms\", 0.5]";
    let [at, share] = node.list(ALLOWED)? else { return Err(node.expected(ALLOWED)) };
    Ok((units::time(at)?, Share::read_of_several(share)?))
}
