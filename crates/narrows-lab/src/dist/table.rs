//! Builds NetEm distribution tables from samples: in the way of iproute2's `maketable`, and by quantiles.
//!
//! **`maketable`** (`netem/maketable.c`, from NIST Net) normalises the values by mean μ and standard deviation σ
//! (with n − 1), counts them in 400,000 bins of σ/50000 from −4σ to +4σ (values outside count in the outermost bin),
//! accumulates, and walks over the bins: the entry `round(share·4096)` gets the bin's value, `round(8192·(step/50000
//! − 4))`. Each entry keeps the *last* bin assigned to it; entries without one are interpolated linearly, in
//! integers. [`maketable`] reproduces this exactly. Its faults:
//!
//! - the last entry is always 32767, 4σ: one packet in 4096 has that delay, whatever the sample says. If the sample's
//!   maximum is rare, the interpolation towards it affects further entries;
//! - an entry is the value just below the *next* value of the sample, and values in between are interpolated, so a
//!   table of few different values has delays that no packet ever had;
//! - nothing exceeds 4σ, so a long tail is cut; since the rest is not adjusted, the table's mean and deviation are
//!   smaller than those configured.
//!
//! **By quantiles**: entry i of n is the sample's quantile at (i + ½)/n. These n equally likely values are the
//! closest to the distribution (in Wasserstein distance), atoms included. μ and σ are chosen such that the table
//! reproduces the mean and deviation of the sample, as far as 16 bits allow.
//!
//! **Limits of any table.** NetEm draws one of 4,096 entries, each in steps of σ/8192 within ±4σ: a distribution
//! becomes 4,096 atoms, and anything rarer than 1 in 4096 never happens. [`Judgement`] measures the distance from the
//! sample.

use crate::statistics::Sample;

/// The number of entries of a table, as in all tables shipped with iproute2.
const ENTRIES: usize = 4096;
/// The value of an entry for one standard deviation.
const FACTOR: f64 = 8192.0;
/// The domain of `maketable`, in standard deviations on either side.
const DOMAIN: f64 = 4.0;
/// Its bins per standard deviation.
const GRANULARITY: f64 = 50_000.0;
const STEPS: usize = 400_000;

/// A table, and the mean and jitter to use with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The entries, ascending.
    pub entries: Vec<i16>,
    /// NetEm's `delay`, in the sample's unit.
    pub mean: f64,
    /// NetEm's jitter, in the sample's unit.
    pub sd: f64,
}

/// How far a table is from its sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The Wasserstein distance, in the sample's unit.
    pub wasserstein: f64,
    /// The table's mean, in the sample's unit.
    pub mean: f64,
    /// The table's standard deviation, in the sample's unit.
    pub sd: f64,
}

impl Table {
    /// The value that an entry represents, as in sch_netem's `tabledist` except for its rounding to nanoseconds.
    pub fn value(&self, entry: i16) -> f64 {
        self.mean + self.sd * f64::from(entry) / FACTOR
    }

    /// The distance from a sample.
    pub fn judge(&self, sample: &Sample) -> Judgement {
        let values = self.entries.iter().map(|&entry| self.value(entry)).collect();
        let drawn = Sample::new(values).expect("a table has entries, and they are finite");
        Judgement {
            wasserstein: sample.wasserstein_to(&drawn),
            mean: drawn.mean(),
            sd: drawn.sd() * libm::sqrt(1.0 - 1.0 / self.entries.len() as f64),
        }
    }
}

/// The table that iproute2's `maketable` prints for these values, in their order. `None` if their deviation is zero.
pub fn maketable(values: &[f64]) -> Option<Table> {
    let count = values.len() as f64;
    // Sums in the order and form of the original: another one may differ in the last digit, and thereby in an entry.
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in values {
        squares += value * value;
        sum += value;
    }
    let mean = sum / count;
    let sd = libm::sqrt((squares - count * mean * mean) / (count - 1.0));
    // NaN for one value, and possibly for equal ones.
    if !(sd > 0.0 && sd.is_finite()) {
        return None;
    }
    let mut steps = vec![0_u32; STEPS];
    for value in values {
        let place = libm::rint(((value - mean) / sd + DOMAIN) * GRANULARITY);
        steps[(place.max(0.0) as usize).min(STEPS - 1)] += 1;
    }
    let mut entries: Vec<Option<i32>> = vec![None; ENTRIES];
    let mut below = 0_u64;
    for (step, inside) in steps.iter().enumerate() {
        below += u64::from(*inside);
        let entry = libm::rint(below as f64 / count * ENTRIES as f64) as usize;
        let value = libm::rint((step as f64 / GRANULARITY - DOMAIN) * FACTOR) as i32;
        // The minimum 16-bit number means "none" in the original.
        entries[entry.min(ENTRIES - 1)] = Some(value.clamp(-32767, 32767));
    }
    Some(Table { entries: filled(&entries), mean, sd })
}

/// Linear interpolation between existing entries, in the original's integer arithmetic, which rounds towards zero.
fn filled(entries: &[Option<i32>]) -> Vec<i16> {
    let (mut last, mut last_at) = (-32768, -1);
    let mut filled = Vec::with_capacity(entries.len());
    for (at, entry) in (0..).zip(entries) {
        let value = match entry {
            Some(value) => {
                (last, last_at) = (*value, at);
                *value
            }
            None => {
                let ahead = (at..).zip(&entries[at as usize..]).find_map(|(at, entry)| Some((at, (*entry)?)));
                let (next_at, next) = ahead.unwrap_or((entries.len() as i32, 32767));
                last + (at - last_at) * (next - last) / (next_at - last_at)
            }
        };
        filled.push(value.clamp(-32768, 32767) as i16);
    }
    filled
}

/// The table by quantiles. `quantile(p)` is finite for p in (0, 1). `None` if all are equal.
pub fn by_quantiles(quantile: impl Fn(f64) -> f64) -> Option<Table> {
    let share = |entry: usize| (entry as f64 + 0.5) / ENTRIES as f64;
    let values: Vec<f64> = (0..ENTRIES).map(|entry| quantile(share(entry))).collect();
    let count = ENTRIES as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    // Wide enough that no entry exceeds 16 bits: `value` then reproduces each quantile to half a step.
    let widest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max) * FACTOR / 32767.0;
    let sd = libm::sqrt(variance).max(widest);
    if !(sd > 0.0 && sd.is_finite()) {
        return None;
    }
    let entry = |value: f64| libm::rint((value - mean) / sd * FACTOR).clamp(-32767.0, 32767.0) as i16;
    Some(Table { entries: values.into_iter().map(entry).collect(), mean, sd })
}
