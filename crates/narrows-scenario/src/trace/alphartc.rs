//! Network traces of AlphaRTC's gym (`OpenNetLab/gym`, `OpenNetLab/AlphaRTC`; the MMSys 2021 challenge on bandwidth
//! estimation for real-time communication).
//!
//! ```json
//! {"type": "video", "downlink": {}, "uplink": {"trace_pattern": [
//!   {"duration": 500, "capacity": 1000, "loss": 0.2, "rtt": 80, "jitter": 0}, …]}}
//! ```
//! Each period has a duration in ms and a capacity in kbit/s, and may have a loss from 0 to 1, a round trip and a
//! jitter in ms. Half of the round trip is the one-way delay. As in the gym, the uplink is played, and repeats; the
//! downlink has a format of its own.

use std::ops::Range;

use narrows_core::{Duration, Probability, Rate, Time};

use super::json::{self, number, required};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::source::Source;
use crate::source::number::SHARE_ONE;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Then, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Files are JSON tables with a `trace_pattern`.
impl Format {
    /// The uplink of a trace of AlphaRTC's gym, or its downlink if it has no other. Read only.
    pub const ALPHARTC: Self = Self(&UPLINK);
    /// The downlink of such a trace: never detected. Read only.
    pub const ALPHARTC_DOWNLINK: Self = Self(&DOWNLINK);
}

const UPLINK: Entry = Entry {
    name: "alphartc",
    begins: |beginning| beginning.first == '{' && beginning.head().contains("\"trace_pattern\""),
    always: &[],
    extensions: &[],
    read: |source| read(source, Format::ALPHARTC),
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::ALPHARTC, why: WHY }),
    has_opportunities: false,
    says_loop: true,
};
const DOWNLINK: Entry = Entry {
    name: "alphartc-downlink",
    begins: |_| false,
    read: |source| read(source, Format::ALPHARTC_DOWNLINK),
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::ALPHARTC_DOWNLINK, why: WHY }),
    ..UPLINK
};

const WHY: &str = "it may have two directions";
const DIRECTIONS: [&str; 2] = ["uplink", "downlink"];
const KEYS: [&str; 6] = ["duration", "capacity", "loss", "rtt", "jitter", "time"];
const PERIODS: &str = "a list of periods, such as [{\"duration\": 500, \"capacity\": 1000}]";

/// Parses a file.
fn read(source: &Source<'_>, format: Format) -> Result<Trace, Problem> {
    if source.text.trim().is_empty() {
        return Err(source.empty());
    }
    let root = json::document(source.text)?;
    let directions = root.table("a table with `uplink` or `downlink`")?;
    let patterns =
        DIRECTIONS.map(|name| directions.get(name).and_then(pattern).filter(|list| !is_empty(list)));
    let (direction, periods) = match patterns {
        [Some(periods), _] if format == Format::ALPHARTC => (0, periods),
        [_, Some(periods)] => (1, periods),
        _ => {
            let wanted = if format == Format::ALPHARTC { "`uplink` or `downlink`" } else { "`downlink`" };
            let problem = Problem::new(format!("{wanted} with a `trace_pattern` is missing")).at(&root.span);
            return Err(problem.help(format!("`trace_pattern` is {PERIODS}")));
        }
    };
    let periods = periods.list(PERIODS)?;
    if periods.len() > MOST_POINTS / 3 {
        return Err(Problem::new(format!("more than {} periods", MOST_POINTS / 3)).at(&periods[0].span));
    }
    let mut rows = Rows::default();
    for period in periods {
        rows.period(period, period.table(PERIODS)?)?;
    }
    let mut trace = rows.into_trace(format, &root)?;
    match (patterns, direction) {
        ([Some(_), Some(_)], 0) => trace.remarks.push(
            "the rate is that of the uplink; for the downlink: `alphartc-downlink` as the format".into(),
        ),
        (_, 1) if format == Format::ALPHARTC => trace.remarks.push("the file has a downlink only".into()),
        _ => {}
    }
    Ok(trace)
}

fn pattern(direction: &Node) -> Option<&Node> {
    match &direction.value {
        Value::Table(table) => table.get("trace_pattern"),
        _ => None,
    }
}

fn is_empty(list: &Node) -> bool {
    matches!(&list.value, Value::Array(items) if items.is_empty())
}

/// The periods read so far.
#[derive(Default)]
struct Rows {
    now: Time,
    count: usize,
    rate: Column<Rate>,
    delay: Column<Duration>,
    loss: Column<Probability>,
    jitter: usize,
    /// The first period with, and without, a loss and a round trip.
    with: [[Option<Range<usize>>; 2]; 2],
}

impl Rows {
    fn period(&mut self, period: &Node, table: &Table) -> Result<(), Problem> {
        table.only(&KEYS)?;
        let lasts = required(period, table, "duration", 6, LONGEST_NANOS, "a duration in milliseconds")?;
        let bits = required(period, table, "capacity", 3, MOST_BITS, "a rate in kbit/s")?;
        let optional = |key, power, most, what| match table.get(key) {
            Some(node) => number(node, power, most, what).map(Some),
            None => Ok(None),
        };
        let loss = optional("loss", 19, SHARE_ONE, "a loss from 0 to 1")?;
        let rtt = optional("rtt", 6, LONGEST_NANOS, "a round trip in milliseconds")?;
        let jitter = optional("jitter", 6, LONGEST_NANOS, "a jitter in milliseconds")?;
        for (of, value) in [loss, rtt].into_iter().enumerate() {
            self.with[of][usize::from(value.is_none())].get_or_insert_with(|| period.span.clone());
        }
        self.count += 1;
        self.jitter += usize::from(jitter.is_some_and(|jitter| jitter > 0));
        if lasts == 0 {
            return Ok(());
        }
        put(&mut self.rate, self.now, Rate::from_bits_per_second(bits));
        if let Some(rtt) = rtt {
            put(&mut self.delay, self.now, Duration::from_nanos(rtt / 2));
        }
        if let Some(loss) = loss {
            let loss = Probability::from_ratio(loss, SHARE_ONE).expect("it is at most one");
            put(&mut self.loss, self.now, loss);
        }
        self.now = self.now + Duration::from_nanos(lasts);
        if self.now.nanos() > LONGEST_NANOS {
            let problem = Problem::new("the periods up to here last too long").at(&period.span);
            return Err(problem.help("a trace lasts for 876000h at most"));
        }
        Ok(())
    }

    fn into_trace(self, format: Format, root: &Node) -> Result<Trace, Problem> {
        for (key, with) in ["loss", "rtt"].into_iter().zip(self.with) {
            if let [Some(_), Some(without)] = with {
                let title = format!("`{key}` is missing, which other periods have");
                return Err(Problem::new(title).at(&without));
            }
        }
        if self.now == Time::ZERO {
            return Err(Problem::new("this trace has no duration").at(&root.span).help(PERIODS));
        }
        let mut trace = Trace::new(format, self.now.since(Time::ZERO));
        trace.rate = filled(self.rate);
        trace.delay = filled(self.delay);
        trace.loss = filled(self.loss);
        trace.then = Then::Loop;
        if trace.delay.is_some() {
            trace.remarks.push("rtt is a round trip: half of it is the one-way delay".into());
        }
        if self.jitter > 0 {
            let what = "have jitter, which a trace lacks: only the delay is used";
            trace.remarks.push(format!("{} of {} periods {what}", self.jitter, self.count));
        }
        Ok(trace)
    }
}
