//! Measured samples: one number per line, or a column of a file with columns.

use narrows_core::Duration;

use super::error::TableError;
use super::quantity::{self, TimeUnit, is_name};
use super::rows::{self, Separator};
use crate::problem::{Found, nearest, one_of};

/// Maximum delay, a day; longer ones indicate a wrong unit.
pub(super) const LONGEST: f64 = 86_400e9;

/// Selects the numbers of a file, and their unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleColumn {
    /// Unit of numbers without one. `None`: each number has its own, as in `1.5ms`.
    pub unit: Option<TimeUnit>,
    /// The name of the column, or its number from 1. `None`: the only column.
    pub name: Option<String>,
    /// Whether the numbers are not delays but plain numbers of any sign and scale, used for the shape of
    /// their distribution.
    pub plain: bool,
}

/// Values in the order of the file; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The numbers as in the file, or in nanoseconds if each has its own unit.
    pub values: Vec<f64>,
    /// Unit of `values`; `None` for plain numbers.
    pub unit: Option<TimeUnit>,
    /// The line number of each value, from 1.
    pub lines: Vec<usize>,
}

impl Samples {
    /// The values in nanoseconds; plain numbers unchanged.
    pub fn nanoseconds(&self) -> Vec<f64> {
        let scale = self.unit.map_or(1.0, TimeUnit::nanoseconds);
        self.values.iter().map(|value| value * scale).collect()
    }

    /// The values rounded to nanoseconds.
    pub fn durations(&self) -> Vec<Duration> {
        // Delays are checked to be from 0 to a day; the cast clamps plain numbers.
        self.nanoseconds().into_iter().map(|value| Duration::from_nanos(value.round() as u64)).collect()
    }
}

/// Reads a file of samples. `file` is its name, for errors.
///
/// Columns are separated by commas, semicolons, tabs or spaces. A first line of names is skipped. If there
/// are several columns, one must be chosen by name or number.
///
/// # Errors
/// If a line has no number there, or one that is not finite, is negative or longer than a day; if a number
/// has no unit, or two; if lines have different numbers of columns; if there are no lines.
pub fn read_samples(file: &str, bytes: &[u8], column: &SampleColumn) -> Result<Samples, TableError> {
    let mut reader = Reader { file, column, shape: None, own_units: None };
    let mut samples = Samples { values: Vec::new(), unit: None, lines: Vec::new() };
    for (line, text) in rows::lines(rows::text(file, bytes)?) {
        if let Some(value) = reader.row(line, text)? {
            samples.values.push(value);
            samples.lines.push(line);
        }
    }
    if samples.values.is_empty() {
        return Err(TableError::whole(file, "there is no number in this file"));
    }
    samples.unit = match reader.own_units {
        _ if column.plain => None,
        Some((_, true)) => Some(TimeUnit::Nanoseconds),
        _ => column.unit,
    };
    Ok(samples)
}

/// The layout of a file, as determined by its first line.
struct Shape {
    separator: Separator,
    fields: usize,
    /// The column that is read.
    chosen: usize,
    line: usize,
}

struct Reader<'a> {
    file: &'a str,
    column: &'a SampleColumn,
    shape: Option<Shape>,
    /// Whether numbers have their own units, and the line that determined it.
    own_units: Option<(usize, bool)>,
}

impl Reader<'_> {
    /// The value of a line; `None` for a line of names.
    fn row(&mut self, line: usize, text: &str) -> Result<Option<f64>, TableError> {
        let shape = match &self.shape {
            Some(shape) => shape,
            None => {
                let separator = Separator::of(text);
                let fields = separator.fields(text);
                let chosen = self.choose(line, &fields)?;
                let shape = self.shape.insert(Shape { separator, fields: fields.len(), chosen, line });
                if fields.iter().all(|field| is_name(field)) {
                    return Ok(None);
                }
                shape
            }
        };
        let fields = shape.separator.fields(text);
        if fields.len() != shape.fields {
            let what =
                format!("{} here, {} on line {}", columns(fields.len()), columns(shape.fields), shape.line);
            return Err(TableError::line_of(self.file, line, what));
        }
        let field = fields[shape.chosen];
        self.value(line, field).map(Some)
    }

    fn choose(&self, line: usize, fields: &[&str]) -> Result<usize, TableError> {
        let wrong = |what: String| Err(TableError::line_of(self.file, line, what));
        let named = fields.iter().all(|field| is_name(field));
        let known = || if named { format!(": {}", one_of(fields)) } else { String::new() };
        let Some(name) = &self.column.name else {
            return match fields.len() {
                1 => Ok(0),
                count => wrong(format!("{}: select one by name or number{}", columns(count), known())),
            };
        };
        if let Some(index) = fields.iter().position(|field| field == name).filter(|_| named) {
            return Ok(index);
        }
        match name.parse::<usize>() {
            Ok(number) if (1..=fields.len()).contains(&number) => Ok(number - 1),
            Ok(number) => wrong(format!("there is no column {number}: {}", columns(fields.len()))),
            Err(_) if !named => {
                wrong(format!("this line has no names, so there is no column {}", Found(name)))
            }
            Err(_) => wrong(match nearest(name, fields.iter().copied()) {
                Some(near) => format!("there is no column {}; did you mean `{near}`?", Found(name)),
                None => format!("there is no column {}{}", Found(name), known()),
            }),
        }
    }

    fn value(&mut self, line: usize, field: &str) -> Result<f64, TableError> {
        let wrong = |what: String| Err(TableError::line_of(self.file, line, what));
        let Some((number, suffix)) = quantity::split(field) else {
            let expected = if self.column.plain { "a number" } else { "a delay, such as 10.5 or 10.5ms" };
            return Err(TableError::found(self.file, line, field, expected));
        };
        if self.column.plain {
            return match suffix {
                "" => Ok(number),
                _ => Err(TableError::found(self.file, line, field, "a bare number")),
            };
        }
        let own = !suffix.is_empty();
        let unit = match (own, self.column.unit) {
            (true, given) => {
                let Some(unit) = TimeUnit::named(suffix) else {
                    return wrong(format!(
                        "{} is not a unit of {}: ns, us, ms, s",
                        Found(suffix),
                        Found(field)
                    ));
                };
                if given.is_some() {
                    return wrong(format!(
                        "{} has its own unit, but one is given for the file",
                        Found(field)
                    ));
                }
                unit
            }
            (false, Some(unit)) => unit,
            (false, None) => match self.own_units {
                Some((first, true)) => {
                    return wrong(format!(
                        "{} has no unit, but the number on line {first} has one",
                        Found(field)
                    ));
                }
                _ => {
                    return wrong(format!("{} has no unit: give the file's (ns, us, ms or s)", Found(field)));
                }
            },
        };
        self.own_units.get_or_insert((line, own));
        if number < 0.0 {
            return wrong(format!("{} is negative", Found(field)));
        }
        let nanoseconds = number * unit.nanoseconds();
        if nanoseconds > LONGEST {
            let what = format!("{} {unit} is longer than a day: is the unit right?", Found(field));
            return wrong(if own { what.replace(&format!(" {unit} is"), " is") } else { what });
        }
        Ok(if own { nanoseconds } else { number })
    }
}

fn columns(count: usize) -> String {
    if count == 1 { "1 column".into() } else { format!("{count} columns") }
}
