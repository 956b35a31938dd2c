#!/usr/bin/env python3
"""A random walk: each packet's delay differs slightly from the previous one, between 1 ms and 50 ms.

Arguments: the socket; the step's standard deviation in microseconds; a seed.
"""

import sys

import numpy

from feed import Feed, Over

LEAST, MOST = 1e6, 50e6

path = sys.argv[1] if len(sys.argv) > 1 else None
step = float(sys.argv[2]) * 1e3 if len(sys.argv) > 2 else 20e3
draw = numpy.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)


def reflected(position):
    """Reflects values at the bounds."""
    along = (position - LEAST) % (2 * (MOST - LEAST))
    return LEAST + numpy.minimum(along, 2 * (MOST - LEAST) - along)


with Feed(path) as feed:
    position = 10e6
    try:
        while True:
            steps = draw.normal(0, step, feed.room())
            positions = position + numpy.cumsum(steps)
            position = positions[-1]
            feed.write(reflected(positions))
    except (Over, KeyboardInterrupt):
        pass
