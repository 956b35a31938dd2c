//! Computes the fair division, and how close a division is to it.

/// The demand of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    pub(super) weight: u32,
    /// The most it can use; infinite for a flow that takes whatever it gets.
    pub(super) most: f64,
}

/// Divides `total` among flows in proportion to their weights, except that no flow gets more than it can use, which
/// leaves more for the others (weighted max-min fairness).
pub(super) fn max_min(total: f64, demands: &[Demand]) -> Vec<f64> {
    let mut given = vec![0.0; demands.len()];
    let mut open: Vec<usize> = (0..demands.len()).collect();
    // Sorted by demand per unit of weight, so that once a flow is not satisfied, none after it is.
    let level = |flow: &usize| demands[*flow].most / f64::from(demands[*flow].weight);
    open.sort_by(|a, b| level(a).total_cmp(&level(b)));
    let mut left = total;
    let mut weights: f64 = demands.iter().map(|demand| f64::from(demand.weight)).sum();
    for flow in open {
        let Demand { weight, most } = demands[flow];
        let part = left * f64::from(weight) / weights;
        given[flow] = part.min(most);
        left -= given[flow];
        weights -= f64::from(weight);
    }
    given
}

/// Jain's index of the flows' throughput divided by their fair throughput. Flows with a fair share of zero are
/// ignored.
pub(super) fn jain(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (got, fair) in pairs.filter(|&(_, fair)| fair > 0.0) {
        let x = got / fair;
        (count, sum, squares) = (count + 1.0, sum + x, squares + x * x);
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_given_more_than_it_uses_and_the_rest_goes_by_weight() {
        let demand = |weight, most| Demand { weight, most };
        // 100 for a call that uses 4, one that would use 60 with twice the weight of two that take what they get.
        let demands = [demand(1, f64::INFINITY), demand(8, 4.0), demand(2, 60.0), demand(1, f64::INFINITY)];
        assert_eq!(max_min(100.0, &demands), [24.0, 4.0, 48.0, 24.0]);
        // All are content: nothing is given beyond.
        assert_eq!(max_min(100.0, &[demand(1, 10.0), demand(1, 20.0)]), [10.0, 20.0]);
        assert_eq!(max_min(90.0, &[demand(1, f64::INFINITY), demand(2, f64::INFINITY)]), [30.0, 60.0]);
    }

    #[test]
    fn the_index_is_one_for_a_fair_division_and_k_of_n_where_k_got_all() {
        assert_eq!(jain([(3.0, 3.0), (5.0, 5.0)].into_iter()), Some(1.0));
        assert_eq!(jain([(4.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)].into_iter()), Some(0.25));
        // x = 1.5, ½: 4 / (2 · 2.5).
        assert_eq!(jain([(3.0, 2.0), (1.0, 2.0)].into_iter()), Some(0.8));
        assert_eq!(jain([(0.0, 1.0), (0.0, 0.0)].into_iter()), None);
    }
}
