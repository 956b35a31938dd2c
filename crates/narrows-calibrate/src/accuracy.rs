//! One-way times: without delay, with constant delays, with a distribution, at several rates.

use std::fmt;

use narrows_core::model::{cumulative, quantile};
use narrows_core::{Duration, Seed, Stream};
use narrows_lab::statistics::Sample;
use narrows_live::director::Wait;
use narrows_report::Quantiles;
use serde::Serialize;

use crate::asked::{Path, Setting};
use crate::bed::Bed;
use crate::kernel::Qdisc;
use crate::measured::Spread;
use crate::traffic;
use crate::{CalibrateError, Effort};

/// The base rate of all measurements, in packets per second: 100 MB/s in Grohmann's evaluation.
const BASE: u32 = 130_000;
/// Multiples of it, measured with a constant and a distributed delay.
const MORE: [u32; 3] = [260_000, 390_000, 520_000];
/// Additional rates for finding the knee.
const BETWEEN: [u32; 3] = [195_000, 325_000, 455_000];
/// The delay measured at all rates.
pub(crate) const COMMON: Setting = Setting::Constant(100_000);
/// The p99 of the error below the knee.
const KNEE: f64 = 50_000.0;

/// The results for one rate and delay.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// The path.
    pub path: Path,
    /// The configured delay.
    pub setting: Setting,
    /// The configured rate in packets per second.
    pub asked_per_second: u32,
    /// The rate that the sender reached, in packets per second.
    pub offered_per_second: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost.
    pub lost: u64,
    /// One-way time, from the sender's call to the kernel's timestamp at the receiver.
    pub one_way: Spread,
    /// The error: one-way time minus configured delay; for a distribution, percentile by percentile.
    pub error: Spread,
    /// How late the emulator's send calls returned, by its own measurement.
    pub late: Option<Late>,
    /// The maximum distance between the distribution of one-way times and the configured one, after subtracting the
    /// error's median.
    pub kolmogorov_smirnov: Option<f64>,
    /// The mean distance between the quantiles of one-way times and the configured ones.
    pub wasserstein_ns: Option<f64>,
}

/// The lateness of packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Late {
    /// The p50.
    pub p50_ns: f64,
    /// The p99.
    pub p99_ns: f64,
    /// The maximum.
    pub max_ns: f64,
}

impl From<&Quantiles> for Late {
    fn from(late: &Quantiles) -> Self {
        Self { p50_ns: late.p50_ns as f64, p99_ns: late.p99_ns as f64, max_ns: late.max_ns as f64 }
    }
}

impl From<&Spread> for Late {
    fn from(late: &Spread) -> Self {
        Self { p50_ns: late.median(), p99_ns: late.percentile(99), max_ns: late.percentile(100) }
    }
}

/// A measurement: path, delay, and rate in packets per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case(Path, Setting, u32);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path, setting, rate) = self;
        write!(f, "{path}, {setting}, {rate} packets a second")
    }
}

/// All measurements, in order, without those for which the kernel lacks something.
pub(crate) fn cases(lacking: &[Path]) -> Vec<Case> {
    let normal = Setting::Reordering { mean: 200_000, sd: 25_000 };
    let ordered = Setting::Ordered { mean: 200_000, sd: 25_000, length: 1_000_000 };
    let constant = [0, 100_000, 400_000, 1_000_000].map(Setting::Constant);
    let mut cases = vec![Case(Path::Cable, Setting::Constant(0), BASE)];
    cases.extend([COMMON, normal].map(|setting| Case(Path::Forwarder, setting, BASE)));
    cases.extend(
        constant.into_iter().chain([normal, ordered]).map(|setting| Case(Path::Narrows, setting, BASE)),
    );
    for rate in MORE {
        let more = [(Path::Forwarder, COMMON), (Path::Narrows, COMMON), (Path::Narrows, normal)];
        cases.extend(more.map(|(path, setting)| Case(path, setting, rate)));
    }
    cases.extend(BETWEEN.map(|rate| Case(Path::Narrows, COMMON, rate)));
    cases.push(Case(Path::PfifoFast, Setting::Constant(0), BASE));
    cases.extend(constant.into_iter().chain([normal]).map(|setting| Case(Path::Netem, setting, BASE)));
    for rate in MORE {
        cases.extend([COMMON, normal].map(|setting| Case(Path::Netem, setting, rate)));
    }
    cases.retain(|Case(path, ..)| !lacking.contains(path));
    cases
}

pub(crate) fn measure(
    bed: &mut Bed,
    effort: Effort,
    Case(path, setting, rate): Case,
) -> Result<Accuracy, CalibrateError> {
    let seconds = match effort {
        Effort::Full => 1.5,
        Effort::Quick => 0.05,
    };
    let packets = (f64::from(rate) * seconds) as u32;
    let gap = 1_000_000_000 / u64::from(rate);
    let load = move |mut ends: traffic::Ends| ends.stream(gap, packets, true);
    let (seen, late) = match path {
        Path::Cable => (bed.cable(None, load)?, None),
        Path::PfifoFast => (bed.cable(Some(&Qdisc::pfifo_fast()), load)?, None),
        Path::Netem => (bed.cable(Some(&Qdisc::netem(setting)), load)?, None),
        Path::Forwarder => {
            let draws = Stream::new(Seed(1), "forwarder", "delay");
            let delay = move |number| match setting.normal() {
                None => setting.mean(),
                // The cast turns negative values into zero.
                Some((mean, sd)) => (mean + sd * quantile(draws.nth(number).uniform())) as u64,
            };
            let (seen, late) = bed.forwarder(&setting.scenario()?, delay, load)?;
            (seen, Some(Late::from(&Spread::of(late))))
        }
        Path::Narrows => {
            let (seen, report) = bed.narrows(&setting.scenario()?, Wait::Hybrid, load)?;
            (seen, report.sent_lateness.as_ref().map(Late::from))
        }
    };
    Ok(Accuracy::of(path, setting, rate, &seen, late))
}

impl Accuracy {
    fn of(path: Path, setting: Setting, rate: u32, seen: &traffic::Stream, late: Option<Late>) -> Self {
        let mut times: Vec<i64> = seen.one_ways.iter().map(|&(_, time)| time).collect();
        times.sort_unstable();
        let one_way = Spread::of(times.clone());
        let percentiles = one_way.percentiles_ns.iter().zip(0..);
        let error = Spread {
            percentiles_ns: percentiles.map(|(time, percent)| time - setting.quantile(percent)).collect(),
            ..one_way.less(setting.mean() as f64)
        };
        let sample = |off: f64| Sample::new(times.iter().map(|&time| time as f64 - off).collect());
        let (mut kolmogorov_smirnov, mut wasserstein_ns) = (None, None);
        if let Some((mean, sd)) = setting.normal() {
            let asked = |x| cumulative((x - mean) / sd);
            kolmogorov_smirnov =
                sample(error.median()).map(|sample| sample.kolmogorov_smirnov(asked).distance);
            wasserstein_ns = sample(0.0).map(|sample| sample.wasserstein(|p| mean + sd * quantile(p)));
        }
        Self {
            path,
            setting,
            asked_per_second: rate,
            offered_per_second: (seen.sent.max(2) - 1) as f64 * 1e9 / seen.span.max(1) as f64,
            sent: seen.sent,
            lost: seen.sent - (seen.one_ways.len() as u64).min(seen.sent),
            one_way,
            error,
            late,
            kolmogorov_smirnov,
            wasserstein_ns,
        }
    }

    /// Whether the sender reached its rate, and all packets arrived.
    pub fn is_sustained(&self) -> bool {
        self.lost == 0 && self.offered_per_second > 0.99 * f64::from(self.asked_per_second)
    }
}

/// The highest rate, of those tested with the common delay, up to which p99 was within 50 µs.
pub(crate) fn knee(all: &[Accuracy]) -> Option<u32> {
    let mut rates: Vec<&Accuracy> =
        all.iter().filter(|row| row.path == Path::Narrows && row.setting == COMMON).collect();
    rates.sort_by_key(|row| row.asked_per_second);
    let good = rates.into_iter().take_while(|row| row.is_sustained() && row.error.percentile(99) <= KNEE);
    good.last().map(|row| row.asked_per_second)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cable => "cable",
            Self::Forwarder => "forwarder",
            Self::Narrows => "narrows",
            Self::PfifoFast => "pfifo_fast",
            Self::Netem => "netem",
        })
    }
}

/// As text for people.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Duration::from_nanos;
        match *self {
            Self::Constant(0) => f.write_str("no delay"),
            Self::Constant(delay) => write!(f, "{}", time(delay)),
            Self::Reordering { mean, sd } => write!(f, "{} ± {}, reordering", time(mean), time(sd)),
            Self::Ordered { mean, sd, .. } => write!(f, "{} ± {}, in order", time(mean), time(sd)),
        }
    }
}
