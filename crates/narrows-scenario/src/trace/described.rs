//! Tables of measurements whose header says by itself which columns make a trace: `at_ms,delay_ms,loss_pct,note`.
//!
//! A column counts if its name says what it holds and in which unit ([`super::names`]), and no other may be meant.
//! Of a time, dates and clocks since 1970 count without a unit. Columns that are not understood are left out, and
//! a remark says how each was taken. Where a name leaves a choice, the error says which, and how to make it.

use super::columns::{Clock, Columns, Place, RateUnit, ShareUnit, TimeUnit};
use super::look::{Look, how};
use super::names::{Meaning, meaning};
use super::{Format, Trace, date, table};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;

/// Columns named in the remark.
const MOST_NAMED: usize = 12;

/// A table without a header, if the comment above its first line says which columns make a trace.
pub(super) fn in_comment<'a>(source: &Source<'a>) -> Option<Look<'a>> {
    Look::commented(source).filter(|look| Header::of(source, look).columns().is_ok())
}

/// Reads a table by its header.
pub(super) fn read(source: &Source<'_>, look: &Look<'_>) -> Result<Trace, Problem> {
    let header = Header::of(source, look);
    let (columns, remark) = header.columns().map_err(|problem| match look.columns() {
        Some(columns) => problem.help(how(&columns)),
        None => problem.help("say which columns they are, such as `--columns time=ts,rate=dl,unit=mbit`"),
    })?;
    let mut trace = table::read(source, &columns, Format::CSV)?;
    trace.remarks.insert(0, remark);
    Ok(trace)
}

struct Column<'a> {
    name: &'a str,
    means: Meaning,
}

impl<'a> Column<'a> {
    fn of(name: &'a str) -> Self {
        // Alone it is a share in tables of narrows, and percent in those of others.
        let means = match meaning(name) {
            Meaning::Loss(Some(ShareUnit::Share)) if name.eq_ignore_ascii_case("loss") => Meaning::Loss(None),
            means => means,
        };
        Self { name, means }
    }
}

struct Header<'s, 'a> {
    source: &'s Source<'a>,
    look: &'s Look<'a>,
    columns: Vec<Column<'a>>,
}

impl<'s, 'a> Header<'s, 'a> {
    fn of(source: &'s Source<'a>, look: &'s Look<'a>) -> Self {
        Self { source, look, columns: look.first.iter().map(|name| Column::of(name)).collect() }
    }

    /// The columns, and how each was understood.
    fn columns(&self) -> Result<(Columns, String), Problem> {
        let time = self.one("time", |means| matches!(means, Meaning::Time(_)))?;
        let rate = self.one("rate", |means| matches!(means, Meaning::Rate(_)))?;
        let delay = self.one("delay", |means| matches!(means, Meaning::Delay(_)))?;
        let loss = self.one("loss", |means| matches!(means, Meaning::Loss(_)))?;
        let no_unit = |at: usize, of: &str| {
            let name = self.columns[at].name;
            let title = format!("the name {} does not say the unit of the {of}", Found(name));
            Problem::new(title).at(&self.source.span(name))
        };
        let Some(time) = time else {
            return Err(self.problem("no column is the time by its name"));
        };
        let time_unit = self.time_unit(time).ok_or_else(|| no_unit(time, "time"))?;
        let rate = match rate.map(|at| (at, self.columns[at].means)) {
            Some((at, Meaning::Rate(Some(unit)))) => Some((at, unit)),
            Some((at, _)) => return Err(no_unit(at, "rate")),
            None => None,
        };
        // Without a unit, they are left out.
        let delay = delay.and_then(|at| match self.columns[at].means {
            Meaning::Delay(Some(unit)) => Some((at, unit)),
            _ => None,
        });
        let loss = loss.and_then(|at| match self.columns[at].means {
            Meaning::Loss(Some(unit)) => Some((at, unit)),
            _ => None,
        });
        if rate.is_none() && delay.is_none() && loss.is_none() {
            return Err(self.problem("no column is a rate, a delay or a loss by its name"));
        }
        let mut read = vec![self.said("time", time, time_name(time_unit))];
        read.extend(rate.map(|(at, unit)| self.said("rate", at, rate_name(unit))));
        read.extend(delay.map(|(at, unit)| self.said("delay", at, time_name(unit))));
        read.extend(loss.map(|(at, unit)| self.said("loss", at, share_name(unit))));
        let mut remark = format!("columns: {}", read.join(", "));
        let used = [Some(time), rate.map(|of| of.0), delay.map(|of| of.0), loss.map(|of| of.0)];
        if let Some(left) = self.left_out(&used) {
            remark = format!("{remark}; left out: {left}");
        }
        let place = |at: usize| -> Place { self.look.place(at) };
        let columns = Columns {
            clock: Clock::Time(place(time), Some(time_unit)),
            rate: rate.map(|(at, unit)| (place(at), unit)),
            delay: delay.map(|(at, unit)| (place(at), Some(unit))),
            loss: loss.map(|(at, unit)| (place(at), unit)),
            run: None,
        };
        Ok((columns, remark))
    }

    /// The only column of this kind that has a value.
    fn one(&self, what: &str, is: fn(&Meaning) -> bool) -> Result<Option<usize>, Problem> {
        let is_it = |at: &usize| is(&self.columns[*at].means) && self.look.cells(*at).next().is_some();
        let all: Vec<usize> = (0..self.columns.len()).filter(is_it).collect();
        match all[..] {
            [] => Ok(None),
            [at] => Ok(Some(at)),
            _ => {
                let names: Vec<&str> = all.iter().take(MOST_NAMED).map(|at| self.columns[*at].name).collect();
                let shown = one_of(&names);
                let title = format!("{} columns may be the {what}: {shown}", all.len());
                Err(Problem::new(title).at(&self.source.span(names[0])))
            }
        }
    }

    /// The unit of the times: that of the name, or what the first value shows.
    fn time_unit(&self, at: usize) -> Option<TimeUnit> {
        if let Meaning::Time(Some(unit)) = self.columns[at].means {
            return Some(unit);
        }
        let first = self.look.cells(at).next()?;
        if date::nanos(first).is_some() {
            return Some(TimeUnit::Date);
        }
        date::epoch(first.parse().ok()?).map(TimeUnit::Number)
    }

    fn said(&self, what: &str, at: usize, unit: &str) -> String {
        format!("{what} {} in {unit}", Found(self.columns[at].name))
    }

    /// The other columns, each with the reason if there is one.
    fn left_out(&self, used: &[Option<usize>]) -> Option<String> {
        let left: Vec<usize> = (0..self.columns.len()).filter(|at| !used.contains(&Some(*at))).collect();
        let mut names: Vec<String> = Vec::new();
        for at in left.iter().take(MOST_NAMED) {
            let Column { name, means } = &self.columns[*at];
            let why = match means {
                Meaning::Near(why) => Some(*why),
                Meaning::Delay(None) => Some("no unit"),
                Meaning::Loss(None) => Some("share or percent?"),
                Meaning::Other => None,
                _ => Some("no value"),
            };
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            names.push(format!("{}{why}", Found(name)));
        }
        if left.len() > MOST_NAMED {
            names.push(format!("{} more", left.len() - MOST_NAMED));
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn problem(&self, title: &str) -> Problem {
        let first = self.look.first.first().copied().unwrap_or_default();
        Problem::new(title).at(&self.source.span(first))
    }
}

fn time_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Number(9) => "s",
        TimeUnit::Number(6) => "ms",
        TimeUnit::Number(3) => "us",
        TimeUnit::Number(_) => "ns",
        TimeUnit::Date => "dates",
    }
}

fn rate_name(unit: RateUnit) -> &'static str {
    match (unit.power, unit.bytes) {
        (0, false) => "bit/s",
        (3, false) => "kbit/s",
        (6, false) => "Mbit/s",
        (_, false) => "Gbit/s",
        (0, true) => "byte/s",
        (3, true) => "kbyte/s",
        (_, true) => "Mbyte/s",
    }
}

fn share_name(unit: ShareUnit) -> &'static str {
    match unit {
        ShareUnit::Share => "shares of 1",
        ShareUnit::Percent => "percent",
    }
}
