#!/usr/bin/env python3
"""Normally distributed delays, 200 µs ± 25 µs, written to a feed of a run.

    narrows run --set 'link.up.delay={ feed = "radio" }' --on server 'python3 normal.py' -- CMD

Arguments (all optional): the socket; mean and standard deviation in microseconds; a seed.
"""

import sys

import numpy

from feed import Feed, Over

path = sys.argv[1] if len(sys.argv) > 1 else None
mean = float(sys.argv[2]) * 1e3 if len(sys.argv) > 2 else 200e3
deviation = float(sys.argv[3]) * 1e3 if len(sys.argv) > 3 else 25e3
draw = numpy.random.default_rng(int(sys.argv[4]) if len(sys.argv) > 4 else 1)

with Feed(path) as feed:
    try:
        while True:
            delays = draw.normal(mean, deviation, feed.room())
            feed.write(numpy.maximum(delays, 0))
    except (Over, KeyboardInterrupt):
        pass
