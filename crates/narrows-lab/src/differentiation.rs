//! Tests whether hybrid proportional delay keeps delays in proportion: classes with random traffic of equal load,
//! over several loads and values of g.
//!
//! The classes of an experiment offer equal shares of the load, in packets of 40, 550 and 1500 bytes (40, 50 and 10 %
//! of them), as in C. Dovrolis, D. Stiliadis and P. Ramanathan ("Proportional differentiated services: delay
//! differentiation and packet scheduling", IEEE/ACM Transactions on Networking 10(1), 2002), on a link of 10 Mbit/s.
//! Nothing is dropped. The result of a class is the mean queueing delay of its packets; the target is that these are
//! in the ratios of the δ.
//!
//! `reach.rs` computes which ratios any scheduler can achieve.
//!
//! ```
//! use narrows_lab::differentiation::{DifferentiationOptions, Traffic, differentiation};
//!
//! let options = DifferentiationOptions {
//!     ddps: vec![vec![1, 2]],
//!     g: vec![0],
//!     loads: vec![90.0],
//!     traffic: vec![Traffic::Poisson],
//!     packets: 50_000,
//!     ..DifferentiationOptions::default()
//! };
//! let found = differentiation(&options)?;
//! // 1 / (1 − 0.9/2) by Kleinrock's formula.
//! assert!((found.points[0].ratios()[0] - 1.82).abs() < 0.25);
//! # Ok::<(), narrows_lab::differentiation::DifferentiationError>(())
//! ```

mod figure;
mod reach;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod traffic;

pub use traffic::Traffic;

use std::num::NonZero;

use narrows_core::sched::{Estimator, Gamma, Hpd, HpdClass, HpdConfig, Per1024};
use narrows_core::{Duration, Seed};

use crate::watch::{Step, Watch, go_on};

use reach::Reach;

/// A link of 10 Mbit/s.
const NANOS_PER_BYTE: u64 = 800;

/// The options of the experiments.
#[derive(Clone, Debug)]
pub struct DifferentiationOptions {
    /// The delay differentiation parameters of the classes of each experiment: at least two, each at least 1.
    pub ddps: Vec<Vec<u32>>,
    /// The weights g of the average delay, in 1024ths.
    pub g: Vec<u16>,
    /// Loads in percent of the rate, above 0 and below 100.
    pub loads: Vec<f64>,
    /// The arrival processes.
    pub traffic: Vec<Traffic>,
    /// How averages are estimated.
    pub average: Average,
    /// Packets in each run. All are measured, including those at the start: the exact mean covers all, too.
    pub packets: u64,
    /// The seed of all draws.
    pub seed: Seed,
}

/// How the average delay of a class is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// As the exact mean over all packets that have departed: EWMA-r whose threshold is never reached. Proportional
    /// average delay scheduling uses this.
    Exact,
    /// As an EWMA with this γ.
    Moving(Gamma),
}

impl Default for DifferentiationOptions {
    fn default() -> Self {
        Self {
            ddps: vec![vec![1, 2], vec![1, 2, 4]],
            g: vec![0, 512, 1024],
            loads: vec![70.0, 80.0, 90.0, 95.0, 99.0],
            traffic: vec![Traffic::Poisson, Traffic::Bursts],
            average: Average::Exact,
            packets: 1_000_000,
            seed: Seed(1),
        }
    }
}

/// The results.
#[derive(Clone, Debug)]
pub struct Differentiation {
    /// The options.
    pub options: DifferentiationOptions,
    /// For each arrival process, each list of δ, each g and each load.
    pub points: Vec<Point>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The arrival process.
    pub traffic: Traffic,
    /// The δ of the classes.
    pub ddps: Vec<u32>,
    /// The weight of the average delay, in 1024ths.
    pub g: u16,
    /// In percent of the rate.
    pub load: f64,
    /// The mean queueing delay of each class, in seconds.
    pub waits: Vec<f64>,
    /// Whether any order of service can achieve the target ratios.
    pub within_reach: bool,
    /// The ratios by Kleinrock's formula, where it applies: g = 0, Poisson.
    pub theory: Option<Vec<f64>>,
}

impl Point {
    /// The mean queueing delay of each class but the first, divided by that of the first.
    pub fn ratios(&self) -> Vec<f64> {
        self.waits.iter().skip(1).map(|wait| wait / self.waits[0]).collect()
    }

    /// The target ratios.
    pub fn asked(&self) -> Vec<f64> {
        self.ddps.iter().skip(1).map(|&ddp| f64::from(ddp) / f64::from(self.ddps[0])).collect()
    }

    /// The largest relative error of a ratio.
    pub fn worst(&self) -> f64 {
        let off = |(ratio, asked): (f64, f64)| (ratio / asked - 1.0).abs();
        self.ratios().into_iter().zip(self.asked()).map(off).fold(0.0, f64::max)
    }
}

/// Why an experiment is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DifferentiationError {
    /// Too few or too many classes.
    #[error("an experiment has from 2 to {} classes, and one was asked for of {found}", Hpd::CLASSES)]
    Classes {
        /// The number of classes.
        found: usize,
    },
    /// A class whose delay parameter is zero.
    #[error("a delay differentiation parameter is at least 1")]
    NoDelay,
    /// A weight above 1.
    #[error("g is {found}, the maximum is 1024")]
    Weight {
        /// The weight.
        found: u16,
    },
    /// A load of zero, or an overload.
    #[error("the load is {found} %, and must be above 0 and below 100")]
    Load {
        /// The load.
        found: f64,
    },
    /// Too few packets for a result.
    #[error("{found} packets are too few: at least 1000")]
    Packets {
        /// The number of packets.
        found: u64,
    },
}

/// Runs all experiments.
///
/// # Errors
/// If an option is invalid.
pub fn differentiation(options: &DifferentiationOptions) -> Result<Differentiation, DifferentiationError> {
    differentiation_watched(options, &mut go_on)
}

/// As [`differentiation`], with a watch that can stop: only the loads completed are returned.
///
/// # Errors
/// As for [`differentiation`].
pub fn differentiation_watched(
    options: &DifferentiationOptions,
    watch: Watch<'_>,
) -> Result<Differentiation, DifferentiationError> {
    let mut points = Vec::new();
    let total = options.traffic.len() * options.ddps.len() * options.loads.len();
    let (mut done, mut broken_off) = (0, false);
    if options.packets < 1000 {
        return Err(DifferentiationError::Packets { found: options.packets });
    }
    for &traffic in &options.traffic {
        for ddps in &options.ddps {
            // Load by load, because the limits of what can be achieved are the same for every g.
            let mut of_load = Vec::new();
            for &load in &options.loads {
                let what = format!("{}, ddp {ddps:?}, load {load} %", traffic.name());
                broken_off = broken_off || watch(&Step { done, total, what }).is_break();
                if broken_off {
                    break;
                }
                done += 1;
                of_load.push(at_load(options, traffic, ddps, load)?);
            }
            for number in 0..options.g.len() {
                points.extend(of_load.iter().map(|points: &Vec<Point>| points[number].clone()));
            }
        }
    }
    Ok(Differentiation { options: options.clone(), points })
}

/// A point for each g.
fn at_load(
    options: &DifferentiationOptions,
    traffic: Traffic,
    ddps: &[u32],
    load: f64,
) -> Result<Vec<Point>, DifferentiationError> {
    if !(2..=Hpd::CLASSES as usize).contains(&ddps.len()) {
        return Err(DifferentiationError::Classes { found: ddps.len() });
    }
    if !(load > 0.0 && load < 100.0) {
        return Err(DifferentiationError::Load { found: load });
    }
    let arrivals = traffic::arrivals(traffic, ddps.len() as u32, load, options);
    let within_reach = Reach::of(&arrivals, ddps.len()).has(ddps);
    let point = |&g: &u16| {
        let hpd = Hpd::new(config(ddps, g, options.average)?);
        Ok(Point {
            traffic,
            ddps: ddps.to_vec(),
            g,
            load,
            waits: run::waits(hpd, &arrivals, ddps.len(), |_| 0).means(),
            within_reach,
            theory: (g == 0 && traffic == Traffic::Poisson).then(|| reach::waiting_time_priority(ddps, load)),
        })
    };
    options.g.iter().map(point).collect()
}

fn config(ddps: &[u32], g: u16, average: Average) -> Result<HpdConfig, DifferentiationError> {
    let g = Per1024::new(g).ok_or(DifferentiationError::Weight { found: g })?;
    let class = |&ddp: &u32| {
        let ddp = NonZero::new(ddp).ok_or(DifferentiationError::NoDelay)?;
        let plain = HpdClass { ddp, g, ..HpdClass::default() };
        Ok(match average {
            Average::Exact => HpdClass {
                estimator: Estimator::EwmaR { threshold: u32::MAX, cycle: Duration::MAX },
                ..plain
            },
            Average::Moving(gamma) => HpdClass { gamma, ..plain },
        })
    };
    let classes = ddps.iter().map(class).collect::<Result<_, _>>()?;
    Ok(HpdConfig { classes, ..HpdConfig::default() })
}
