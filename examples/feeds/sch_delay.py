#!/usr/bin/env python3
"""Normally distributed delays, 700 µs ± 100 µs, into a device file of the qdisc `delay` (Grohmann, Stuttgart 2023).

    narrows run --set 'link.up.delay={ feed = "radio", on-empty = "last" }' -- sh -c '
      narrows feed --device /tmp/delay -- python3 examples/feeds/sch_delay.py /tmp/delay &
      sleep 1; ping -c 20 -i 0.05 $NARROWS_SERVER'

Nothing in here knows of narrows. A read tells how many delays there is room for; what is written are the delays, eight
bytes each. The program looks every 10 ms; sch_delay_poll.c waits instead.
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
    pass  # the device is gone, and the run with it
