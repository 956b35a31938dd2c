//! How far two samples may be apart by chance.

/// Confidence 99.9 %, two-sided, in standard errors of a normal distribution.
pub const STANDARD_ERRORS: f64 = 3.29;
/// Batches that a run is cut into: neighbours depend on one another, the means of long batches hardly do.
const BATCHES: usize = 20;

/// A mean, and its standard error by the method of batch means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Mean {
    /// Of values in the order of sending. Of fewer than there are batches nothing can be said: the error is infinite.
    pub fn of(values: &[f64]) -> Self {
        let mean = average(values);
        if values.len() < 2 * BATCHES {
            return Self { mean, error: f64::INFINITY };
        }
        let means: Vec<f64> = (0..BATCHES)
            .map(|n| average(&values[n * values.len() / BATCHES..(n + 1) * values.len() / BATCHES]))
            .collect();
        let variance =
            means.iter().map(|batch| (batch - mean) * (batch - mean)).sum::<f64>() / (BATCHES - 1) as f64;
        Self { mean, error: libm::sqrt(variance / BATCHES as f64) }
    }

    /// The standard error of the difference of two.
    pub fn error_of_difference(self, other: Self) -> f64 {
        libm::hypot(self.error, other.error)
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The statistic of Kolmogorov and Smirnov: the greatest distance between the distribution functions of two samples.
pub fn distance(one: &[f64], other: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (one, other) = (sorted(one), sorted(other));
    let share = |values: &[f64], at: f64| {
        values.partition_point(|value| *value <= at) as f64 / values.len().max(1) as f64
    };
    one.iter().chain(&other).map(|at| (share(&one, *at) - share(&other, *at)).abs()).fold(0.0, f64::max)
}

/// What two samples of one distribution exceed once in a thousand times: √(ln(2/α)/2)·√((n + m)/(n·m)) with α = 0.001.
pub fn distance_by_chance(one: usize, other: usize) -> f64 {
    let (n, m) = (one as f64, other as f64);
    1.949 * libm::sqrt((n + m) / (n * m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_small_samples() {
        assert_eq!(distance(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(distance(&[1.0, 3.0], &[2.0, 4.0]), 0.5);
        assert_eq!(distance(&[1.0, 1.0, 2.0], &[2.0, 1.0, 1.0]), 0.0);
    }

    #[test]
    fn batch_means_of_values_that_alternate_have_next_to_no_error() {
        let values: Vec<f64> = (0..4000).map(|n| f64::from(n % 2)).collect();
        assert_eq!(Mean::of(&values), Mean { mean: 0.5, error: 0.0 });
    }

    #[test]
    fn the_error_of_batches_that_differ_is_theirs() {
        // Half of the batches are 0, half are 1: the deviation of a batch is √(20/19)/2.
        let values: Vec<f64> = (0..4000).map(|n| f64::from(n / 200 % 2)).collect();
        let error = Mean::of(&values).error;
        assert!((error - 0.5 / libm::sqrt(19.0)).abs() < 1e-12, "{error}");
    }

    #[test]
    fn the_bound_of_the_distance_is_that_of_tables() {
        // 1.949 √(2/n), as in tables for α = 0.001.
        assert!((distance_by_chance(1000, 1000) - 0.0872).abs() < 1e-4);
    }
}
