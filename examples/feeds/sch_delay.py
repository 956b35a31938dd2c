#!/usr/bin/env python3
"""Normally distributed delays, 700 µs ± 100 µs, written to a device file of the qdisc `delay` (Grohmann, Stuttgart 2023).

    narrows run --set 'link.up.delay={ feed = "radio", on-empty = "last" }' -- sh -c '
      narrows feed --device /tmp/delay -- python3 examples/feeds/sch_delay.py /tmp/delay &
      sleep 1; ping -c 20 -i 0.05 $NARROWS_SERVER'

The program does not depend on narrows. A read returns the number of delays that fit; a write supplies delays, eight bytes
each. The program checks every 10 ms; sch_delay_poll.c uses poll instead.
"""

import os
import sys
import time

import numpy

draw = numpy.random.default_rng(1)
device = os.open(sys.argv[1], os.O_RDWR)
try:
    while True:
        room = int.from_bytes(os.read(device, 8), "little")
        if room > 1000:
            delays = numpy.abs(draw.normal(700e3, 100e3, room))
            os.write(device, delays.astype("<i8").tobytes())
        time.sleep(0.01)
except (OSError, KeyboardInterrupt):
    pass  # the device has been removed: the run has ended
