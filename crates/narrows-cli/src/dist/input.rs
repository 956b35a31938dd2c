//! Input of samples.

use std::path::{Path, PathBuf};

use clap::Args;
use narrows_core::model::Distribution;
use narrows_lab::dist::read_entry;
use narrows_lab::statistics::Sample;
use narrows_scenario::read_bytes;
use narrows_scenario::tables::{SampleColumn, Samples, TimeUnit, read_samples};

use crate::output::Failure;

/// A file of samples and how it is to be read.
#[derive(Clone, Debug, Args)]
pub(crate) struct Input {
    /// Measured delays: one number per line, or a CSV column; - is stdin
    #[arg(value_name = "SAMPLES")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// How a file of samples is to be read.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Unit of bare numbers: ns, us, ms, s
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<TimeUnit>,
    /// CSV column, by header or by number from 1 [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
}

/// The samples read.
pub(crate) struct Delays {
    pub(crate) samples: Samples,
    /// Samples in nanoseconds, in increasing order.
    pub(crate) sample: Sample,
    /// Name of the file in output.
    pub(crate) name: String,
}

impl Options {
    pub(crate) fn column(&self, plain: bool) -> SampleColumn {
        SampleColumn { unit: self.unit, name: self.column.clone(), plain }
    }
}

impl Delays {
    pub(crate) fn read(file: &Path, column: &SampleColumn) -> Result<Self, Failure> {
        let name =
            if file == Path::new("-") { "the standard input".into() } else { file.display().to_string() };
        let bytes =
            read_bytes(file).map_err(|cause| Failure::Other(format!("cannot read {name}: {cause}")))?;
        let samples = read_samples(&name, &bytes, column).map_err(|error| {
            let hint =
                if error.what().contains("has no unit: give") { "\nhelp: set it: --unit ms" } else { "" };
            let hint = if error.what().contains("select one") { "\nhelp: --column NAME" } else { hint };
            Failure::Other(format!("{error}{hint}"))
        })?;
        let sample =
            Sample::new(samples.nanoseconds()).expect("numbers that were read are finite, and there is one");
        Ok(Self { samples, sample, name })
    }

    /// Checks that there is something to fit or plot: at least two different values.
    pub(crate) fn differ(&self) -> Result<(), Failure> {
        let (least, count) = (self.sample.least(), self.sample.len());
        if self.sample.greatest() > least {
            return Ok(());
        }
        let delay = narrows_core::Duration::from_nanos(least.round() as u64);
        let all =
            if count == 1 { "there is one value".into() } else { format!("all {count} values are equal") };
        Err(Failure::Other(format!(
            "{}: {all}, {delay}: no distribution can be fitted\nhelp: a constant delay is `delay = \"{delay}\"`",
            self.name
        )))
    }

    /// The unit for the likelihood: the file's unit.
    pub(crate) fn unit(&self) -> TimeUnit {
        self.samples.unit.unwrap_or(TimeUnit::Nanoseconds)
    }
}

/// Parses a distribution written as in a scenario. `option` is the option that it was given to.
pub(crate) fn distribution(text: &str, option: &str) -> Result<Distribution, Failure> {
    read_entry(text, option).map_err(|error| match error {
        narrows_lab::dist::EntryError::Scenario(error) => error.into(),
        other => Failure::Other(format!("{option}: {other}")),
    })
}
