//! Ranks, and Spearman's correlation of them.

/// The rank of each value, from 1; equal values share the mean of their ranks.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = rank);
        before += equal.len();
    }
    ranks
}

/// Spearman's rank correlation: Pearson's correlation of the [`ranks`], −1 to 1. `None` where there are fewer than two
/// pairs, and where all values of one side are equal.
///
/// Its standard error is about `1/√(n − 1)` for independent pairs. The correlation of lag 1 is that of `values[..n −
/// 1]` and `values[1..]`. Of two lists of different lengths the longer one's rest is left out.
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    let count = first.len().min(second.len());
    if count < 2 {
        return None;
    }
    let (first, second) = (ranks(&first[..count]), ranks(&second[..count]));
    let middle = (count + 1) as f64 / 2.0;
    let moment =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let spread = libm::sqrt(moment(&first, &first) * moment(&second, &second));
    (spread > 0.0).then(|| moment(&first, &second) / spread)
}
