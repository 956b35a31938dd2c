#!/usr/bin/env python3
"""Request and answer: each packet's delay depends on its length and protocol.

    narrows run --set 'link.up.delay={ feed = "radio", ask = "5ms" }' --on server 'python3 by_length.py' -- CMD

ICMP packets take 1 ms; all others take 2 ms plus 1 µs per byte, and every hundredth of these is lost.
Argument: the socket (optional).
"""

import sys

import numpy

from feed import connected

ICMP = (1, 58)
QUESTION = numpy.dtype(
    [
        ("marker", "<i8"),
        ("number", "<u8"),
        ("at", "<u8"),
        ("until", "<u8"),
        ("source", "S16"),
        ("destination", "S16"),
        ("length", "<u2"),
        ("source_port", "<u2"),
        ("destination_port", "<u2"),
        ("protocol", "u1"),
        ("traffic_class", "u1"),
    ]
)
OVER = (-3).to_bytes(8, "little", signed=True)


def delays(asked):
    """Returns nanoseconds for each request, or -1."""
    by_length = 2_000_000 + 1_000 * asked["length"].astype("i8")
    by_length[asked["number"] % 100 == 99] = -1
    return numpy.where(numpy.isin(asked["protocol"], ICMP), 1_000_000, by_length)


feed = connected(sys.argv[1] if len(sys.argv) > 1 else None)
received = b""
while more := feed.recv(1 << 16):
    received += more
    whole = len(received) - len(received) % QUESTION.itemsize
    asked = numpy.frombuffer(received[:whole], dtype=QUESTION)
    received = received[whole:]
    if len(asked):
        feed.sendall(delays(asked).astype("<i8").tobytes())
    if received == OVER:
        break
