#!/usr/bin/env python3
"""Delays from a measured histogram: rows `low,high,count`, in microseconds, uniform within each bin.

Arguments: the CSV file; the socket; a seed. Rows without numbers, such as a header, are skipped.
"""

import csv
import sys

import numpy

from feed import Feed, Over


def numbers(row):
    try:
        return [float(field) for field in row]
    except ValueError:
        return []


if len(sys.argv) < 2:
    sys.exit(f"usage: {sys.argv[0]} FILE.csv [SOCKET [SEED]]")
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    bins = numpy.array([row for row in map(numbers, csv.reader(file)) if len(row) == 3])
if len(bins) == 0 or bins[:, 2].min() < 0 or bins[:, 2].sum() == 0:
    sys.exit(f"{sys.argv[1]}: no bins with counts, as in 100,150,12")
low, high, count = bins.T * [[1e3], [1e3], [1]]

path = sys.argv[2] if len(sys.argv) > 2 else None
draw = numpy.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)

with Feed(path) as feed:
    try:
        while True:
            chosen = draw.choice(len(bins), feed.room(), p=count / count.sum())
            feed.write(draw.uniform(low[chosen], high[chosen]))
    except (Over, KeyboardInterrupt):
        pass
