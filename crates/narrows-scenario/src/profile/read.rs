//! Parses profile files line by line.

use narrows_core::{AirTime, Duration, Probability, Rate};

use super::Profile;
use crate::node::suggest;
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::units::MOST_BITS;

/// Words before the points; `bandwidth` is the paper's word for the rate.
const KEYS: [&str; 5] = ["name", "bw", "loss-level", "samples", "bandwidth"];

/// Probabilities are in units of 10⁻¹⁹.
const ONE: u64 = 10_000_000_000_000_000_000;

/// Units of time, as powers of ten of a nanosecond. `s` is last, as other units end with it.
const UNITS: [(&str, i32); 6] = [("ns", 0), ("us", 3), ("µs", 3), ("μs", 3), ("ms", 6), ("s", 9)];

/// The values read so far, each with its word in the text.
struct Reader<'s, 't> {
    source: &'s Source<'t>,
    name: Option<&'t str>,
    rate: Option<(&'t str, Rate)>,
    loss_level: Option<(&'t str, Probability)>,
    samples: Option<(&'t str, u64)>,
    /// Whether the probability comes first.
    order: Option<(&'t str, bool)>,
    points: Vec<Point<'t>>,
    /// The unit of times without one, if the line with the column names gives it in a comment, as in the
    /// paper's own file (`prob delay # delay in us`).
    unit: Option<(&'static str, i32)>,
    /// Whether some time has no unit.
    has_bare: bool,
}

/// Default unit of times, as a power of ten of a nanosecond: milliseconds, as in Dummynet.
const BARE: i32 = 6;

struct Point<'t> {
    probability: Probability,
    time: Duration,
    /// The probability as written.
    word: &'t str,
}

pub(super) fn read(source: &Source<'_>) -> Result<Profile, Problem> {
    let mut reader = Reader {
        source,
        name: None,
        rate: None,
        loss_level: None,
        samples: None,
        order: None,
        points: Vec::new(),
        unit: None,
        has_bare: false,
    };
    for line in source.lines() {
        let (line, comment) = line.split_once('#').unwrap_or((line, ""));
        let had_columns = reader.order.is_some();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [first, ..] = words[..] {
            reader.line(first, line.trim(), &words)?;
        }
        if !had_columns && reader.order.is_some() {
            let mut words = comment.split(|c: char| !c.is_alphabetic());
            reader.unit = words.find_map(|word| UNITS.into_iter().find(|(unit, _)| *unit == word));
        }
    }
    reader.finish()
}

impl<'t> Reader<'_, 't> {
    fn line(&mut self, first: &'t str, line: &'t str, words: &[&'t str]) -> Result<(), Problem> {
        let key = first.to_ascii_lowercase();
        let is_key = KEYS.contains(&key.as_str());
        let is_header = ["prob", "delay"].contains(&key.as_str());
        let is_number = first.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if !is_key && !is_header && !is_number {
            let known: Vec<&str> = KEYS[..4].iter().copied().chain(["prob delay", "delay prob"]).collect();
            let problem = Problem::new(format!("found {}, expected a line of a profile", Found(first)));
            return Err(suggest(problem.at(&self.source.span(first)), first, &known));
        }
        let &[_, value] = words else {
            let problem = Problem::new(format!("{} words on a line of two", words.len()));
            let help = match () {
                () if is_key => format!("write only `{key}` and its value"),
                () if is_header => "write `prob delay` or `delay prob`".into(),
                () => "a point is a probability and a time, such as `0.5 1.2ms`".into(),
            };
            return Err(problem.at(&self.source.span(line)).help(help));
        };
        match key.as_str() {
            "name" => once(self.source, &mut self.name, first, value)?,
            "bw" | "bandwidth" => {
                let rate = self.rate(value)?;
                once(self.source, &mut self.rate, first, (value, rate))?;
            }
            "loss-level" => {
                let level = self.probability(value)?;
                once(self.source, &mut self.loss_level, first, (value, level))?;
            }
            "samples" => {
                let samples = self.source.whole(value, u64::from(u32::MAX), "a number of samples")?;
                once(self.source, &mut self.samples, first, (value, samples))?;
            }
            "prob" | "delay" => {
                let probability_first = key == "prob";
                let other = if probability_first { "delay" } else { "prob" };
                if !value.eq_ignore_ascii_case(other) {
                    return Err(self.source.expected(value, &format!("`{other}`")));
                }
                once(self.source, &mut self.order, first, (first, probability_first))?;
            }
            _ => self.point(first, value)?,
        }
        Ok(())
    }

    fn point(&mut self, first: &'t str, second: &'t str) -> Result<(), Problem> {
        let Some((_, probability_first)) = self.order else {
            let problem = Problem::new(format!("found {} before the columns have names", Found(first)));
            return Err(problem
                .at(&self.source.span(first))
                .help("name the column order: `prob delay` or `delay prob`"));
        };
        let (word, time) = if probability_first { (first, second) } else { (second, first) };
        if self.points.len() == Profile::MOST_POINTS {
            let problem = Problem::new(format!("more than {} points", Profile::MOST_POINTS));
            return Err(problem.at(&self.source.span(first)));
        }
        self.has_bare |= time.ends_with(|c: char| c.is_ascii_digit());
        let (probability, time) = (self.probability(word)?, self.time(time)?);
        self.points.push(Point { probability, time, word });
        Ok(())
    }

    fn probability(&self, word: &'t str) -> Result<Probability, Problem> {
        const WHAT: &str = "a probability from 0 to 1";
        let parts = match word.strip_suffix('%') {
            Some(percent) => self.source.number(percent, 17, ONE, WHAT)?,
            None => self.source.number(word, 19, ONE, WHAT)?,
        };
        Ok(Probability::from_ratio(parts, ONE).unwrap_or(Probability::ONE))
    }

    fn time(&self, word: &'t str) -> Result<Duration, Problem> {
        let unit = UNITS.into_iter().find_map(|(unit, power)| Some((word.strip_suffix(unit)?, power)));
        let (number, power) = unit.unwrap_or((word, self.unit.map_or(BARE, |(_, power)| power)));
        let what = "a time, in ms or with one of the units ns, us, ms, s";
        let problem = |problem: Problem| match number.is_empty() {
            true => self.source.expected(word, what),
            false => problem,
        };
        let nanos = self.source.number(number, power, Profile::LONGEST.nanos(), what).map_err(problem)?;
        Ok(Duration::from_nanos(nanos))
    }

    /// A rate in ipfw's format: bits or bytes per second, with K, M or G; 0 is unlimited.
    fn rate(&self, word: &'t str) -> Result<Rate, Problem> {
        const WHAT: &str = "a rate such as 2Mbit/s, 5.5Mbit/s or 250KByte/s";
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let (power, unit) = match unit.as_bytes().first() {
            Some(b'k' | b'K') => (3, &unit[1..]),
            Some(b'm' | b'M') => (6, &unit[1..]),
            Some(b'g' | b'G') => (9, &unit[1..]),
            _ => (0, unit),
        };
        let factor = match unit.strip_suffix("/s").unwrap_or(unit) {
            "" | "b" | "bit" | "bits" | "Bit" | "Bits" | "bps" => 1,
            "B" | "byte" | "bytes" | "Byte" | "Bytes" => 8,
            _ => return Err(self.source.expected(word, WHAT)),
        };
        let bits = self.source.number(number, power, MOST_BITS / factor, WHAT).map_err(|problem| {
            if number.is_empty() {
                self.source.expected(word, WHAT)
            } else {
                problem.at(&self.source.span(word))
            }
        })? * factor;
        Ok(if bits == 0 { Rate::UNLIMITED } else { Rate::from_bits_per_second(bits) })
    }

    fn finish(mut self) -> Result<Profile, Problem> {
        let count = self.points.len();
        let Some((columns, _)) = self.order else {
            return Err(if self.source.text.trim().is_empty() {
                self.source.empty()
            } else {
                Problem::new("there is no line `prob delay` or `delay prob`")
                    .help("the points follow that line")
            });
        };
        if count < 2 {
            let problem =
                Problem::new(format!("a profile has at least two points, and this one has {count}"));
            return Err(problem.at(&self.source.span(columns)).help("they follow this line"));
        }
        self.points.sort_by_key(|point| (point.probability, point.time));
        if let Some(pair) = self.points.windows(2).find(|pair| pair[1].time < pair[0].time) {
            return Err(self.goes_down(&pair[0], &pair[1]));
        }
        let mut remarks = Vec::new();
        if let Some((unit, power)) = self.unit
            && power != BARE
            && self.has_bare
        {
            remarks.push(format!(
                "times are in {unit}, as the comment behind the names of the columns says: FreeBSD passes over it, and takes them as ms"
            ));
        }
        let samples = match self.samples {
            None => AirTime::SAMPLES,
            Some((_, said)) if said == count as u64 => {
                if said != u64::from(AirTime::SAMPLES) {
                    remarks.push(format!(
                        "samples {said} is the number of points: taken for that, with a resolution of {}",
                        AirTime::SAMPLES
                    ));
                }
                AirTime::SAMPLES
            }
            Some((word, said)) => u32::try_from(said)
                .ok()
                .filter(|samples| (2..=AirTime::MOST_SAMPLES).contains(samples))
                .ok_or_else(|| {
                    let range = format!("a number of samples from 2 to {}", AirTime::MOST_SAMPLES);
                    self.source.expected(word, &format!("{range}, or the number of points, {count}"))
                })?,
        };
        let points: Vec<_> = self.points.iter().map(|point| (point.probability, point.time)).collect();
        let loss_level = self.loss_level.map_or(Probability::ONE, |(_, level)| level);
        let air_time =
            AirTime::new(&points, samples, loss_level).map_err(|error| Problem::new(error.to_string()))?;
        let mut profile = Profile {
            name: self.name.map(String::from),
            rate: self.rate.map(|(_, rate)| rate).filter(|rate| *rate != Rate::UNLIMITED),
            loss_level,
            points,
            air_time,
            remarks,
        };
        profile.remarks.extend(profile.rate.and_then(|rate| profile.slows(rate)));
        Ok(profile)
    }

    /// The problem with a point that has a larger probability but a shorter time, shown at the later point
    /// in the file.
    fn goes_down(&self, low: &Point<'_>, high: &Point<'_>) -> Problem {
        let place = |point: &Point<'_>| self.source.span(point.word);
        let later = if place(low).start > place(high).start { low } else { high };
        let title = format!(
            "the probability decreases, from {} to {}, while the time increases, from {} to {}",
            high.word, low.word, high.time, low.time
        );
        let help = "points are cumulative probabilities: they increase with time";
        Problem::new(title).at(&place(later)).help(help)
    }
}

/// Stores a value that may be given once.
fn once<T>(source: &Source<'_>, place: &mut Option<T>, key: &str, value: T) -> Result<(), Problem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::new(format!("duplicate {}", Found(key))).at(&source.span(key))),
    }
}
