//! Which columns of a table of measurements make a trace: `time=ts,rate=throughput,unit=mbit`.
//!
//! A column is named as in the header, or by its number, from 1. Of `time`, `duration` and `interval` there is
//! exactly one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use narrows_core::Duration;

use crate::problem::{Found, nearest, one_of};
use crate::typed;

/// The columns of a table that make a trace.
///
/// ```
/// use narrows_scenario::trace::{Columns, Trace};
///
/// let columns: Columns = "time=ts,rate=downlink,unit=mbit,rtt=rtt_ms".parse()?;
/// let text = b"ts,cell,downlink,rtt_ms\n0,17,25.5,40\n1,17,19,55\n";
/// let trace = Trace::read_columns("drive.csv", text, &columns).map_err(|error| error.to_string())?;
/// assert_eq!(trace.rate().map(|rates| rates[1].1.to_string()), Some("19mbit".into()));
/// // Half of the round trip.
/// assert_eq!(trace.delay().map(|delays| delays[0].1.to_string()), Some("20ms".into()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(super) clock: Clock,
    pub(super) rate: Option<(Place, RateUnit)>,
    pub(super) delay: Option<Delay>,
    pub(super) loss: Option<(Place, ShareUnit)>,
    /// Rows with another value here belong to another run, whose clock starts again.
    pub(super) run: Option<Place>,
    /// Only rows with this text in this column count.
    pub(super) filter: Option<(Place, String)>,
}

/// The column of delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) place: Place,
    pub(super) unit: Option<TimeUnit>,
    /// Half of a round trip is the one-way delay.
    pub(super) is_round_trip: bool,
}

/// Where the time of a row comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The row holds from this instant on, until the next row.
    Time(Place, Option<TimeUnit>),
    /// The row holds for this long.
    Duration(Place, Option<TimeUnit>),
    /// Every row holds for this long.
    Interval(Duration),
}

/// A column: its name in the header, or its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) Cow<'static, str>);

impl Place {
    pub(super) const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Its number, from 0, if it is not a name.
    pub(super) fn number(&self) -> Option<usize> {
        self.0.parse::<usize>().ok()?.checked_sub(1)
    }
}

/// The unit of times and delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// Nanoseconds are the number times ten to this power.
    Number(i32),
    Date,
    /// Times of day without a date.
    TimeOfDay,
}

/// The unit of rates: bits or bytes per second, times ten to the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateUnit {
    pub(super) power: i32,
    pub(super) bytes: bool,
}

/// The unit of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareUnit {
    Share,
    Percent,
}

const TIMES: &[(&str, TimeUnit)] = &[
    ("s", TimeUnit::Number(9)),
    ("ms", TimeUnit::Number(6)),
    ("us", TimeUnit::Number(3)),
    ("ns", TimeUnit::Number(0)),
    ("date", TimeUnit::Date),
];
const SHARES: &[(&str, ShareUnit)] = &[("share", ShareUnit::Share), ("percent", ShareUnit::Percent)];
const RATES: &[(&str, RateUnit)] = &[
    ("bit", RateUnit { power: 0, bytes: false }),
    ("kbit", RateUnit { power: 3, bytes: false }),
    ("mbit", RateUnit { power: 6, bytes: false }),
    ("gbit", RateUnit { power: 9, bytes: false }),
    // As in CSV traces and as speed tests show them; in tc, `mbps` is bytes.
    ("bps", RateUnit { power: 0, bytes: false }),
    ("kbps", RateUnit { power: 3, bytes: false }),
    ("mbps", RateUnit { power: 6, bytes: false }),
    ("gbps", RateUnit { power: 9, bytes: false }),
    ("byte", RateUnit { power: 0, bytes: true }),
    ("kbyte", RateUnit { power: 3, bytes: true }),
    ("mbyte", RateUnit { power: 6, bytes: true }),
];

impl RateUnit {
    pub(super) const BIT: Self = Self { power: 0, bytes: false };
    pub(super) const KBIT: Self = Self { power: 3, bytes: false };
    pub(super) const MBIT: Self = Self { power: 6, bytes: false };
    pub(super) const BYTE: Self = Self { power: 0, bytes: true };
}

impl Columns {
    /// The words that set it.
    pub const KEYS: [&'static str; 13] = [
        "time",
        "duration",
        "interval",
        "rate",
        "delay",
        "rtt",
        "loss",
        "run",
        "where",
        "unit",
        "time-unit",
        "delay-unit",
        "loss-unit",
    ];

    /// From words and their values, such as `("time", "ts")`.
    ///
    /// # Errors
    /// If a word or a unit is unknown, or one is missing.
    pub fn from_words<'a>(words: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut said: Vec<(&str, &str)> = Vec::new();
        for (key, value) in words {
            let (key, value) = (key.trim(), value.trim());
            if !Self::KEYS.contains(&key) {
                let hint = nearest(key, Self::KEYS).map(|known| format!(" (did you mean `{known}`?)"));
                let known = one_of(&Self::KEYS);
                return Err(format!("{} is none of {known}{}", Found(key), hint.unwrap_or_default()));
            }
            if value.is_empty() {
                return Err(format!("`{key}` has no value"));
            }
            if said.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` is given twice"));
            }
            said.push((key, value));
        }
        let get = |key: &str| said.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
        let place = |key: &str| get(key).map(|name| Place(name.to_owned().into()));
        let unit_without = |unit: &str, of: &str| match (get(unit), get(of)) {
            (Some(_), None) => Err(format!("`{unit}` without `{of}`")),
            _ => Ok(()),
        };
        let time_unit = unit("time-unit", get("time-unit"), TIMES)?;
        let clock = match (place("time"), place("duration"), get("interval")) {
            (Some(time), None, None) => Clock::Time(time, time_unit),
            (None, Some(_), None) if time_unit == Some(TimeUnit::Date) => {
                return Err("a `duration` is not a date".into());
            }
            (None, Some(duration), None) => Clock::Duration(duration, time_unit),
            (None, None, Some(_)) if time_unit.is_some() => {
                return Err("`time-unit` with `interval`, which has its own unit".into());
            }
            (None, None, Some(interval)) => match typed::time(interval) {
                Ok(interval) if interval > Duration::ZERO => Clock::Interval(interval),
                _ => return Err(format!("{} is no `interval`, such as 1s", Found(interval))),
            },
            (None, None, None) => {
                return Err("`time` is missing: the column with the time of each row, or `duration`, or \
                            `interval=1s` for rows at equal intervals"
                    .into());
            }
            _ => return Err("more than one of `time`, `duration` and `interval`".into()),
        };
        let delay_unit = unit("delay-unit", get("delay-unit"), TIMES)?;
        if delay_unit == Some(TimeUnit::Date) {
            return Err("a `delay` is not a date".into());
        }
        unit_without("unit", "rate")?;
        let delay = match (place("delay"), place("rtt")) {
            (Some(_), Some(_)) => return Err("both `delay` and `rtt`, of which half is the delay".into()),
            (None, None) if delay_unit.is_some() => {
                return Err("`delay-unit` without `delay` or `rtt`".into());
            }
            (delay, rtt) => {
                let is_round_trip = rtt.is_some();
                delay.or(rtt).map(|place| Delay { place, unit: delay_unit, is_round_trip })
            }
        };
        unit_without("loss-unit", "loss")?;
        let columns = Self {
            clock,
            rate: both("rate", place("rate"), "unit", unit("unit", get("unit"), RATES)?, RATES)?,
            delay,
            loss: both(
                "loss",
                place("loss"),
                "loss-unit",
                unit("loss-unit", get("loss-unit"), SHARES)?,
                SHARES,
            )?,
            run: place("run"),
            filter: get("where").map(filter).transpose()?,
        };
        if columns.rate.is_none() && columns.delay.is_none() && columns.loss.is_none() {
            return Err("no column: `rate`, `delay`, `rtt` or `loss`".into());
        }
        Ok(columns)
    }

    /// With those of `rate`, `delay` and `loss` that this list has.
    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let mut columns = self.clone();
        columns.rate.take_if(|_| !names.contains(&"rate"));
        columns.delay.take_if(|_| !names.contains(&"delay"));
        columns.loss.take_if(|_| !names.contains(&"loss"));
        columns
    }

    /// As words and their values.
    pub(crate) fn words(&self) -> Vec<(&'static str, String)> {
        let mut words = Vec::new();
        let mut put = |key, value: Option<String>| words.extend(value.map(|value| (key, value)));
        let text = |place: &Place| Some(place.0.to_string());
        let time_unit = match &self.clock {
            Clock::Time(place, unit) => {
                put("time", text(place));
                *unit
            }
            Clock::Duration(place, unit) => {
                put("duration", text(place));
                *unit
            }
            Clock::Interval(interval) => {
                put("interval", Some(interval.to_string()));
                None
            }
        };
        put("time-unit", name(TIMES, time_unit));
        put("rate", self.rate.as_ref().and_then(|(place, _)| text(place)));
        put("unit", name(RATES, self.rate.as_ref().map(|(_, unit)| *unit)));
        if let Some(delay) = &self.delay {
            put(if delay.is_round_trip { "rtt" } else { "delay" }, text(&delay.place));
            put("delay-unit", name(TIMES, delay.unit));
        }
        put("loss", self.loss.as_ref().and_then(|(place, _)| text(place)));
        put("loss-unit", name(SHARES, self.loss.as_ref().map(|(_, unit)| *unit)));
        put("run", self.run.as_ref().and_then(text));
        put("where", self.filter.as_ref().map(|(place, value)| format!("{}:{value}", place.0)));
        words
    }
}

/// A column and the text that rows have there: `target:quad9`.
fn filter(text: &str) -> Result<(Place, String), String> {
    match text.split_once(':') {
        Some((place, value)) if !place.trim().is_empty() && !value.trim().is_empty() => {
            Ok((Place(place.trim().to_owned().into()), value.trim().to_owned()))
        }
        _ => Err(format!(
            "{} is no `where`: a column and what rows have there, such as `target:a`",
            Found(text)
        )),
    }
}

/// A unit by its name.
fn unit<T: Copy>(key: &str, text: Option<&str>, known: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, unit)| *unit);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{} is not a `{key}`: {}", Found(text), one_of(&names))
    })
}

/// A column with a unit that must be given.
fn both<T>(
    key: &str,
    place: Option<Place>,
    unit: &str,
    value: Option<T>,
    known: &[(&str, T)],
) -> Result<Option<(Place, T)>, String> {
    match (place, value) {
        (Some(place), Some(value)) => Ok(Some((place, value))),
        (Some(_), None) => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(format!("`{unit}` is missing, the unit of `{key}`: {}", one_of(&names)))
        }
        (None, _) => Ok(None),
    }
}

fn name<T: PartialEq>(known: &[(&str, T)], unit: Option<T>) -> Option<String> {
    let unit = unit?;
    known.iter().find(|(_, other)| *other == unit).map(|(name, _)| (*name).into())
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(|word| {
            word.split_once('=')
                .ok_or_else(|| format!("{}: expected WORD=COLUMN, such as `time=ts`", Found(word.trim())))
        });
        Self::from_words(words.collect::<Result<Vec<_>, String>>()?)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.words().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for text in [
            "time=ts,rate=throughput,unit=mbit",
            "time=Timestamp,time-unit=date,rate=DL_bitrate,unit=kbit,delay=PINGAVG,delay-unit=ms,loss=l,loss-unit=percent",
            "duration=1,time-unit=ms,rate=2,unit=byte",
            "interval=500ms,rate=Throughput,unit=mbit,run=run_num",
            "time=t,rtt=ping,delay-unit=ms,where=target:fe80::1",
        ] {
            assert_eq!(text.parse::<Columns>().unwrap().to_string(), text);
        }
        // Units in capitals, and as speed tests write them.
        let columns: Columns = " time = ts , rate = 2 , unit = Mbps".parse().unwrap();
        assert_eq!(columns.to_string(), "time=ts,rate=2,unit=mbit");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_allowed() {
        for (text, words) in [
            ("", &["expected WORD=COLUMN"] as &[&str]),
            ("time", &["`time`", "expected WORD=COLUMN"]),
            ("time=", &["`time` has no value"]),
            ("tine=1", &["`tine`", "did you mean `time`?", "`interval`"]),
            ("time=1,time=2", &["`time` is given twice"]),
            ("rate=1,unit=mbit", &["`time` is missing", "`interval=1s`"]),
            ("time=1,duration=2,rate=1,unit=bit", &["more than one"]),
            ("time=1,rate=2", &["`unit` is missing", "`mbit`"]),
            ("time=1,rate=2,unit=mb", &["`mb` is not a `unit`", "`mbit`"]),
            ("time=1,loss=2", &["`loss-unit` is missing", "`share`"]),
            ("time=1,unit=mbit", &["`unit` without `rate`"]),
            ("time=1", &["no column"]),
            ("interval=0s,rate=1,unit=bit", &["`0s` is no `interval`"]),
            ("interval=1,rate=1,unit=bit", &["`1` is no `interval`"]),
            ("interval=1s,time-unit=ms,rate=1,unit=bit", &["`time-unit` with `interval`"]),
            ("time=1,delay=2,delay-unit=date", &["not a date"]),
            ("time=1,delay=2,rtt=3", &["both `delay` and `rtt`"]),
            ("time=1,loss=2,loss-unit=share,delay-unit=ms", &["`delay-unit` without"]),
            ("time=1,delay=2,where=a", &["`a` is no `where`", "`target:a`"]),
        ] {
            let error = text.parse::<Columns>().unwrap_err();
            for word in words {
                assert!(error.contains(word), "{text}: {error}");
            }
        }
    }
}
