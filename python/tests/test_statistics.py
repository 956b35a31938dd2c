"""Intervals, beside tables."""

from __future__ import annotations

import random

import pytest

from narrows._statistics import bootstrap_interval, t_interval, t_quantile


# Student's t, from the tables of NIST's handbook of statistical methods (1.3.6.7.2).
@pytest.mark.parametrize(
    ("freedom", "share", "value"),
    [(1, 0.975, 12.706), (2, 0.95, 2.920), (4, 0.995, 4.604), (9, 0.975, 2.262), (30, 0.9, 1.310), (100, 0.975, 1.984)],
)
def test_quantiles_of_t(freedom: int, share: float, value: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(value, abs=5.1e-4)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(1000):
        interval = t_interval([draw.gauss(5, 2) for _ in range(8)], 0.9)
        assert interval.low is not None and interval.high is not None
        held += interval.low <= 5 <= interval.high
    # Within four standard deviations of a binomial.
    assert 900 - 38 <= held <= 900 + 38


def test_the_bootstrap_is_near_to_t_for_many_values() -> None:
    draw = random.Random(2)
    values = [draw.gauss(5, 2) for _ in range(400)]
    t, bootstrap = t_interval(values, 0.95), bootstrap_interval(values, 0.95)
    assert bootstrap == bootstrap_interval(values, 0.95)
    assert t.mean == bootstrap.mean and t.low is not None and t.high is not None
    assert bootstrap.low == pytest.approx(t.low, abs=0.03)
    assert bootstrap.high == pytest.approx(t.high, abs=0.03)


def test_one_value_has_no_interval() -> None:
    assert t_interval([3.0], 0.95) == bootstrap_interval([3.0], 0.95) == (1, 3.0, None, None)
