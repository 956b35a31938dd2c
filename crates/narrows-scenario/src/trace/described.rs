//! Tables of measurements whose header says by itself which columns make a trace: `at_ms,delay_ms,loss_pct,note`.
//!
//! A column counts if its name says what it holds and in which unit ([`super::names`]), and no other may be meant.
//! Of a time, dates, times of day and clocks since 1970 count without a unit; a date and a time of day may be in two
//! columns. A round trip is twice the delay, unless
//! there is a rate: measured under load, it has the queues in it. Columns that are not understood are left out, and
//! a remark says how each was taken. Where a name leaves a choice, the error says which, and how to make it.

use super::columns::{Clock, Columns, Delay, Place, RateUnit, ShareUnit, TimeUnit};
use super::look::Look;
use super::names::{self, Meaning, meaning};
use super::{Format, Trace, date, table};
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;

/// Columns named in the remark.
const MOST_NAMED: usize = 12;

/// A table without a header, if the comment above its first line says which columns make a trace.
pub(super) fn in_comment<'a>(source: &Source<'a>) -> Option<Look<'a>> {
    Look::commented(source).filter(|look| Header::of(source, look).columns().is_ok())
}

/// Whether the first line has names, in quotes or behind an empty cell.
pub(super) fn has_header(source: &Source<'_>, line: &str) -> bool {
    let is_name = |cell: &&str| cell.chars().any(char::is_alphabetic);
    line.trim_start_matches(' ').starts_with(['"', ',', ';', '\t'])
        && Look::at(source).is_some_and(|look| look.is_header && look.first.iter().any(is_name))
}

/// Reads a table by its header.
pub(super) fn read(source: &Source<'_>, look: &Look<'_>) -> Result<Trace, Problem> {
    let header = Header::of(source, look);
    let chosen = header.columns().map_err(|problem| look.ask(problem))?;
    let Chosen { columns, mut remarks, used, times } = chosen;
    remarks.extend(header.subjects(&columns, &used, &times)?);
    let mut trace = table::read(source, &columns, Format::CSV)?;
    trace.remarks.splice(0..0, remarks);
    Ok(trace)
}

/// Columns, and how each was understood.
struct Chosen {
    columns: Columns,
    remarks: Vec<String>,
    /// Their numbers.
    used: Vec<usize>,
    /// Those of the time.
    times: Vec<usize>,
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
    fn columns(&self) -> Result<Chosen, Problem> {
        let times = self.time()?;
        let rate = self.one("rate", |means| matches!(means, Meaning::Rate(_)))?;
        let delay = self.one("delay", |means| matches!(means, Meaning::Delay(_)))?;
        let loss = self.one("loss", |means| matches!(means, Meaning::Loss(_)))?;
        let Some(&time) = times.first() else {
            return Err(self.problem("no column is the time by its name"));
        };
        let time_unit = match times[..] {
            [time] => self.time_unit(time).ok_or_else(|| self.no_unit(time, "time"))?,
            _ => TimeUnit::Date,
        };
        let rate = match rate.map(|at| (at, self.columns[at].means)) {
            Some((at, Meaning::Rate(Some(unit)))) => Some((at, unit)),
            Some((at, _)) => return Err(self.no_unit(at, "rate")),
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
        let round_trip = match delay {
            Some(_) => None,
            None => self.round_trip(rate.is_some())?,
        };
        let halved = round_trip.filter(|_| rate.is_none());
        if rate.is_none() && delay.is_none() && loss.is_none() && halved.is_none() {
            return Err(self.problem("no column is a rate, a delay or a loss, with its unit, by its name"));
        }
        let mut read = match times[..] {
            [date, time] => vec![self.said("time", date, "dates"), self.said("and", time, "times of day")],
            _ => vec![self.said("time", time, time_name(time_unit))],
        };
        read.extend(rate.map(|(at, unit)| self.said("rate", at, rate_name(unit))));
        read.extend(delay.map(|(at, unit)| self.said("delay", at, time_name(unit))));
        read.extend(halved.map(|(at, unit)| self.said("round trip", at, time_name(unit))));
        read.extend(loss.map(|(at, unit)| self.said("loss", at, share_name(unit))));
        let mut remark = format!("columns: {}", read.join(", "));
        let others = [rate.map(|of| of.0), delay.or(halved).map(|of| of.0), loss.map(|of| of.0)];
        let used: Vec<usize> = times.iter().copied().chain(others.into_iter().flatten()).collect();
        if let Some(left) = self.left_out(&used) {
            remark = format!("{remark}; left out: {left}");
        }
        let place = |at: usize| -> Place { self.look.place(at) };
        let delayed = |(at, unit), is_round_trip| Delay { place: place(at), unit: Some(unit), is_round_trip };
        let columns = Columns {
            clock: Clock::Time(self.look.places(&times), Some(time_unit)),
            rate: rate.map(|(at, unit)| (place(at), unit)),
            delay: delay.map(|of| delayed(of, false)).or(halved.map(|of| delayed(of, true))),
            loss: loss.map(|(at, unit)| (place(at), unit)),
            run: None,
            filter: None,
        };
        let mut remarks = vec![remark];
        if let Some((at, unit)) = round_trip {
            // The other way to take it.
            let other = Columns { delay: Some(delayed((at, unit), halved.is_none())), ..columns.clone() };
            let name = Found(self.columns[at].name);
            match (halved, self.columns[at].means) {
                (None, _) => remarks.push(format!(
                    "{name}, measured beside a rate, may have the queues of that load in it; `--columns {other}` takes half \
                     of it as the delay"
                )),
                (Some(_), Meaning::RoundTrip { is_sure: false, .. }) => remarks.push(format!(
                    "{name} is taken to be a round trip, as ping measures it; if it is a one-way delay: `--columns {other}`"
                )),
                _ => {}
            }
        }
        Ok(Chosen { columns, remarks, used, times })
    }

    /// Refuses a table of several series with the same times; says that there may be several with others.
    fn subjects(
        &self,
        columns: &Columns,
        used: &[usize],
        times: &[usize],
    ) -> Result<Option<String>, Problem> {
        /// Values that are named.
        const MOST: usize = 5;
        let shown = |values: &[&str]| {
            let more = if values.len() > MOST {
                format!(", and {} more", values.len() - MOST)
            } else {
                String::new()
            };
            let names: Vec<String> = values.iter().take(MOST).map(|value| Found(value).to_string()).collect();
            format!("{}{more}", names.join(", "))
        };
        let one = |at: usize, value: &str| {
            let filter = Some((self.look.place(at), value.to_owned()));
            Columns { filter, ..columns.clone() }
        };
        if let Some((at, values)) = self.look.series(times) {
            let name = self.columns[at].name;
            let title =
                format!("several series: rows of one time differ in {}: {}", Found(name), shown(&values));
            let how = format!(
                "take one, for example: `--columns {}` (in a scenario, the key `columns`)",
                one(at, values[0])
            );
            return Err(Problem::new(title).at(&self.source.span(name)).help(how));
        }
        let other = |at: &usize| !used.contains(at) && names::is_subject(self.columns[*at].name);
        let several = (0..self.columns.len()).filter(other).map(|at| (at, self.look.values(at)));
        Ok(several.into_iter().find(|(_, values)| values.len() > 1).map(|(at, values)| {
            let (count, name) = (values.len(), Found(self.columns[at].name));
            let one = one(at, values[0]);
            format!(
                "rows with {count} values of {name} ({}) are one series here; `--columns {one}` takes one of them",
                shown(&values)
            )
        }))
    }

    /// The column of the clock: of several, the one whose name says most. Two if they have a date and a time of day.
    fn time(&self) -> Result<Vec<usize>, Problem> {
        let is_time = |at: &usize| {
            matches!(self.columns[*at].means, Meaning::Time(_)) && self.look.cells(*at).next().is_some()
        };
        let rank = |at: &usize| names::clock_rank(self.columns[*at].name);
        let all: Vec<usize> = (0..self.columns.len()).filter(is_time).collect();
        let least = all.iter().map(rank).min();
        let best: Vec<usize> = all.iter().copied().filter(|at| Some(rank(at)) == least).collect();
        let pair = match best.len() {
            // The time of day may have another name than the date.
            1 => self.look.date_and_time(&all).filter(|pair| pair[0] == best[0]),
            2 => self.look.date_and_time(&best),
            _ => None,
        };
        match pair {
            Some(pair) => Ok(pair.to_vec()),
            None => Ok(self.only("time", &best)?.into_iter().collect()),
        }
    }

    /// The column of round trips that has a unit. Beside a rate, which is enough, there may be several.
    fn round_trip(&self, has_rate: bool) -> Result<Option<(usize, TimeUnit)>, Problem> {
        let is_it = |means: &Meaning| matches!(means, Meaning::RoundTrip { unit: Some(_), .. });
        let found = match self.one("round-trip time", is_it) {
            Err(_) if has_rate => None,
            found => found?,
        };
        Ok(found.and_then(|at| match self.columns[at].means {
            Meaning::RoundTrip { unit: Some(unit), .. } => Some((at, unit)),
            _ => None,
        }))
    }

    fn no_unit(&self, at: usize, of: &str) -> Problem {
        let name = self.columns[at].name;
        Problem::new(format!("the name {} does not say the unit of the {of}", Found(name)))
            .at(&self.source.span(name))
    }

    /// The only column of this kind that has a value.
    fn one(&self, what: &str, is: fn(&Meaning) -> bool) -> Result<Option<usize>, Problem> {
        let is_it = |at: &usize| is(&self.columns[*at].means) && self.look.cells(*at).next().is_some();
        let all: Vec<usize> = (0..self.columns.len()).filter(is_it).collect();
        self.only(what, &all)
    }

    /// The only one of these columns.
    fn only(&self, what: &str, all: &[usize]) -> Result<Option<usize>, Problem> {
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
        date::unit(first).or_else(|| date::epoch(first.parse().ok()?).map(TimeUnit::Number))
    }

    fn said(&self, what: &str, at: usize, unit: &str) -> String {
        format!("{what} {} in {unit}", Found(self.columns[at].name))
    }

    /// The other columns, each with the reason if there is one.
    fn left_out(&self, used: &[usize]) -> Option<String> {
        let left: Vec<usize> = (0..self.columns.len()).filter(|at| !used.contains(at)).collect();
        let mut names: Vec<String> = Vec::new();
        for at in left.iter().take(MOST_NAMED) {
            let Column { name, means } = &self.columns[*at];
            let why = match means {
                Meaning::Near(why) => Some(*why),
                Meaning::Other => None,
                _ if self.look.cells(*at).next().is_none() => Some("no value"),
                Meaning::Delay(None) | Meaning::RoundTrip { unit: None, .. } => Some("no unit"),
                Meaning::RoundTrip { .. } => Some("a round trip"),
                Meaning::Loss(None) => Some("share or percent?"),
                _ => None,
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
        TimeUnit::TimeOfDay => "times of day",
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
