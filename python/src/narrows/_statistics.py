"""Confidence intervals for means, without other packages."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean and its confidence interval; the ends are None if there is only one value."""

    n: int
    mean: float
    low: float | None
    high: float | None


def t_interval(values: Sequence[float], confidence: float) -> Interval:
    """Student's t interval for the mean: valid for values close to a normal distribution, or for many values."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(n, mean, None, None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = t_quantile(0.5 + confidence / 2, n - 1) * math.sqrt(variance / n)
    return Interval(n, mean, mean - half, mean + half)


def bootstrap_interval(values: Sequence[float], confidence: float, resamples: int = 2000) -> Interval:
    """The percentile bootstrap interval of the mean (Efron 1979): valid for any distribution, given enough values. The
    resamples are the same each time.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(n, mean, None, None)
    draw = random.Random(n)
    means = sorted(math.fsum(draw.choices(values, k=n)) / n for _ in range(resamples))
    tail = (1 - confidence) / 2
    low = means[int(tail * (resamples - 1))]
    high = means[math.ceil((1 - tail) * (resamples - 1))]
    return Interval(n, mean, low, high)


def t_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t with `freedom` degrees of freedom at probability `share`, which is at least 1/2."""
    low, high = 0.0, 1.0
    while _t_below(high, freedom) < share:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _t_below(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_below(t: float, freedom: int) -> float:
    x = freedom / (freedom + t * t)
    return 1 - _incomplete_beta(freedom / 2, 0.5, x) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, computed by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(tiny, 1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a
