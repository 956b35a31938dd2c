//! Traces of the netem-trace crate, which rattan uses: JSON or TOML with a tag for each model.
//!
//! ```json
//! {"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}}],"count":0}}
//! ```
//! | model | behaviour |
//! |---|---|
//! | `StaticBwConfig` {bw, duration} | constant rate |
//! | `NormalizedBwConfig` {mean, std_dev, lower_bound, upper_bound, duration, step, seed} | a normal draw for each step |
//! | `SawtoothBwConfig` {bottom, top, interval, duty_ratio, duration, step, std_dev, …_noise_bound, seed} | up and down |
//! | `TraceBwConfig` {pattern: [[duration, [bw, …]], …]} | each rate of a list for a duration |
//! | `RepeatedBwPatternConfig` {pattern, count} | models in sequence; count 0 repeats forever |
//! | `StaticDelayConfig`, `StaticLossConfig`, `StaticDuplicateConfig`, `Repeated…PatternConfig` | the same for other quantities |
//!
//! Missing keys get the crate's defaults. Values have units ("12Mbps", "1s 500ms") or are the tables that
//! the crate writes without its `human` feature ({gbps, bps}, {secs, nanos}). A file has one of rate,
//! delay, loss and duplicates.
//!
//! Two differences, each with a remark: random values are drawn anew, because the output of the crate's
//! generator may change from one release to the next; and a loss pattern (element i is the probability
//! after i consecutive losses) becomes its long-run share: with q_k = p_0 ⋯ p_{k−1} and q_0 = 1, Σ_{k≥1}
//! q_k ⁄ Σ_{k≥0} q_k.

mod models;
mod per_packet;
mod values;

use std::fmt::Write;

use narrows_core::{Duration, Probability, Rate, Time};

use crate::node::{Node, Value};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;
use crate::source::number::share;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Then, Trace, json};
use crate::units::LONGEST_NANOS;

/// Files are JSON or TOML with the name of a model, or a list.
impl Format {
    /// JSON or TOML with a tag for each model, as read and written by the netem-trace crate and rattan.
    pub const NETEM_TRACE: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "netem-trace",
    begins: |beginning| match beginning.first {
        '{' => beginning.head().contains("Config"),
        first => first == '[' || beginning.line.contains("Config"),
    },
    always: &["toml"],
    extensions: &["json"],
    read,
    write: |trace, remarks| trace.netem_trace(remarks),
    has_opportunities: false,
    says_loop: true,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let root = document(source)?;
    let mut steps = Steps::default();
    match &root.value {
        // A bare pattern of a TraceBw.
        Value::Array(_) => models::trace_rates(&root, &mut steps)?,
        _ => models::model(&root, &mut steps, 0)?,
    }
    steps.into_trace(&root)
}

/// Parses JSON or TOML.
fn document(source: &Source<'_>) -> Result<Node, Problem> {
    let text = source.text;
    if text.trim().is_empty() {
        return Err(source.empty());
    }
    let begin = text.trim_start();
    // A TOML table header starts like a JSON list, but a JSON list does not start with a bare word.
    let is_header = |list: &str| list.trim_start().starts_with(|first: char| first.is_ascii_alphabetic());
    let is_toml = match begin.strip_prefix('[') {
        Some(list) => is_header(list),
        None => !begin.starts_with('{'),
    };
    match is_toml {
        true => Ok(Node { span: 0..text.len(), value: Value::Table(Node::document(text)?) }),
        false => json::document(text),
    }
}

/// The quantity of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Rate,
    Delay,
    Loss,
    Duplicate,
}

/// The values so far.
#[derive(Default)]
struct Steps {
    now: Time,
    count: usize,
    quantity: Option<Quantity>,
    rate: Column<Rate>,
    delay: Column<Duration>,
    /// For losses or duplicates.
    share: Column<Probability>,
    /// Whether the whole trace is an endless pattern.
    endless: bool,
    drawn: bool,
    patterns: bool,
}

/// A value of a trace.
#[derive(Clone, Copy)]
enum Step {
    Rate(Rate),
    Delay(Duration),
    Share(Probability),
}

impl Steps {
    /// Sets the quantity of the file, or checks that it is the same; `tag` is the key that implies it.
    fn about(&mut self, quantity: Quantity, tag: &Node) -> Result<(), Problem> {
        match self.quantity.replace(quantity) {
            Some(other) if other != quantity => {
                let problem = Problem::new("models of different kinds in one trace").at(&tag.span);
                Err(problem.help("a netem-trace file is about one of rate, delay, loss and duplicates"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the next value with its duration, unless that is zero.
    fn push(&mut self, step: Step, lasts: Duration, place: &Node) -> Result<(), Problem> {
        if lasts == Duration::ZERO {
            return Ok(());
        }
        let end = self.now + lasts;
        self.count += 1;
        if end.nanos() > LONGEST_NANOS || self.count > MOST_POINTS {
            return Err(too_long(place));
        }
        match step {
            Step::Rate(rate) => put(&mut self.rate, self.now, rate),
            Step::Delay(delay) => put(&mut self.delay, self.now, delay),
            Step::Share(share) => put(&mut self.share, self.now, share),
        }
        self.now = end;
        Ok(())
    }

    fn into_trace(self, root: &Node) -> Result<Trace, Problem> {
        if self.now == Time::ZERO {
            let problem = Problem::new("this trace has no duration").at(&root.span);
            return Err(problem.help("a model has a `duration` above zero, a pattern at least one model"));
        }
        let mut trace = Trace::new(Format::NETEM_TRACE, self.now.since(Time::ZERO));
        trace.rate = filled(self.rate);
        trace.delay = filled(self.delay);
        match self.quantity {
            Some(Quantity::Duplicate) => trace.duplicate = filled(self.share),
            _ => trace.loss = filled(self.share),
        }
        if self.endless {
            trace.then = Then::Loop;
        }
        if self.drawn {
            trace.remarks.push(
                "random values are drawn by narrows: same distribution, different values from the crate's"
                    .into(),
            );
        }
        if self.patterns {
            let text = "a pattern that depends on earlier packets is replaced by its long-run share: its bursts become independent here";
            trace.remarks.push(text.into());
        }
        Ok(trace)
    }
}

/// The error for a trace with too many points or too long.
fn too_long(place: &Node) -> Problem {
    let problem = Problem::new("the trace is too long").at(&place.span);
    problem.help(format!("at most 876000h and {MOST_POINTS} points"))
}

/// The only key of a table, which names the model, and its content.
fn tagged(node: &Node) -> Result<(&str, Node, &Node), Problem> {
    const ALLOWED: &str = "a table with one key that names a model, such as `StaticBwConfig`";
    let table = node.table(ALLOWED)?;
    let mut entries = table.iter();
    match (entries.next(), entries.next()) {
        (Some((key, inner)), None) => {
            let tag = Node { span: key.span.clone(), value: Value::String(key.name.clone()) };
            Ok((&key.name, tag, inner))
        }
        (None, _) => Err(node.expected(ALLOWED)),
        (Some(_), Some((key, _))) => Err(Problem::new(format!("a second key, {}", Found(&key.name)))
            .at(&key.span)
            .help(format!("expected {ALLOWED}"))),
    }
}

/// The error for an unknown model.
fn unknown(tag: &Node, name: &str, known: &[&str]) -> Problem {
    if name.contains("PerPacket") {
        return Problem::new(format!("{} is a delay for each packet, not over time", Found(name)))
            .at(&tag.span)
            .help("it is a pattern: `delay = { pattern = \"FILE\" }`; random ones are `delay = { normal = … }` or the like");
    }
    if name.contains("Rwnd") {
        return Problem::new(format!("{} concerns a host's receive window, not a link", Found(name)))
            .at(&tag.span)
            .help(format!("models: {}", one_of(known)));
    }
    let problem = Problem::new(format!("unknown model {}", Found(name))).at(&tag.span);
    problem.did_you_mean(name, known.iter().copied()).help(format!("models: {}", one_of(known)))
}

impl Trace {
    /// Writes the first column that exists of rate, delay, loss, duplicates.
    pub(super) fn netem_trace(&self, remarks: &mut Vec<String>) -> Result<String, CannotWrite> {
        const SAYS: &str = "one of rate, delay, loss and duplicates";
        let models: Vec<(Duration, String)>;
        let kind;
        if let Some(rates) = &self.rate {
            kind = "Bw";
            let unlimited = rates.iter().filter(|point| point.1 == Rate::UNLIMITED).count();
            if unlimited > 0 {
                remarks.push(format!("{unlimited} unlimited rates are written as the maximum, 1000 Tbps"));
            }
            models = self.steps(rates, |rate| {
                let bits = match rate {
                    Rate::UNLIMITED => crate::units::MOST_BITS,
                    rate => rate.bits_per_second(),
                };
                format!("\"bw\":\"{bits}bps\"")
            });
            self.left_out(
                remarks,
                &[self.delay.is_some(), self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
            );
        } else if let Some(delays) = &self.delay {
            kind = "Delay";
            models = self.steps(delays, |delay| format!("\"delay\":\"{}ns\"", delay.nanos()));
            self.left_out(
                remarks,
                &[false, self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
            );
        } else if let Some(shares) = self.loss.as_ref().or(self.duplicate.as_ref()) {
            let (name, key) = if self.loss.is_some() { ("Loss", "loss") } else { ("Duplicate", "duplicate") };
            kind = name;
            models = self.steps(shares, |value| format!("\"{key}\":[{}]", share(value)));
            let others = self.loss.is_some() && self.duplicate.is_some();
            self.left_out(remarks, &[false, false, others, self.bound.is_some()]);
        } else {
            return Err(CannotWrite::Nothing { format: Format::NETEM_TRACE, says: SAYS });
        }
        let count = u32::from(self.then != Then::Loop);
        let mut text = format!("{{\"Repeated{kind}PatternConfig\":{{\"pattern\":[");
        for (index, (lasts, value)) in models.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let nanos = lasts.nanos();
            // Writing to a String cannot fail.
            let _ =
                write!(text, "{comma}\n{{\"Static{kind}Config\":{{{value},\"duration\":\"{nanos}ns\"}}}}");
        }
        let _ = writeln!(text, "\n],\"count\":{count}}}}}");
        Ok(text)
    }

    /// Each value with its duration.
    fn steps<T: Copy>(&self, column: &[(Time, T)], value: impl Fn(T) -> String) -> Vec<(Duration, String)> {
        let end = Time::ZERO + self.length;
        let ends = column.iter().skip(1).map(|point| point.0).chain([end]);
        column.iter().zip(ends).map(|(point, end)| (end.since(point.0), value(point.1))).collect()
    }
}
