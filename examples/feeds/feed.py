"""A narrows feed, for writers in Python: sends values when the run has room for them.

    with Feed(path) as feed:
        while True:
            feed.write(next_delays(feed.room()))

`room` waits until the run needs more values, and `write` sends a numpy array of delays in nanoseconds, -1 for a
lost packet. So a generator is never further ahead than the run's lead, and a change takes effect soon.
Both raise `Over` when the run has ended.
"""

import os
import socket
import sys

import numpy

LOSE = -1
ASK_WAKE = -3


def connected(path=None):
    """Connects to the feed's socket."""
    path = path or os.environ.get("NARROWS_FEED")
    if not path:
        sys.exit("which feed? Name its socket: `narrows feed --list` and the variables NARROWS_FEED_… tell it")
    feed = socket.socket(socket.AF_UNIX)
    try:
        feed.connect(path)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    return feed


class Over(Exception):
    """The run has ended."""


class Feed:
    def __init__(self, path=None):
        """Connects to the socket at `path`. Default, inside a run with one feed: the path in the environment."""
        self.socket = connected(path)
        self.most = 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def room(self):
        """Waits until half of the lead is free, and returns the number of values that fit."""
        self._send(numpy.array([ASK_WAKE, max(1, self.most // 2)]))
        room = int(self._receive(8).view("<i8")[0])
        if room == -1:
            sys.exit("another process writes to this feed")
        if room == -2:
            sys.exit("what was sent is no value")
        if room == -3:
            raise Over
        self.most = max(self.most, room)
        return room

    def write(self, nanoseconds):
        """Sends delays in nanoseconds, one per packet."""
        values = numpy.rint(nanoseconds)
        self._send(values)

    def _send(self, integers):
        try:
            self.socket.sendall(integers.astype("<i8").tobytes())
        except (BrokenPipeError, ConnectionResetError):
            pass  # the next message received gives the reason

    def _receive(self, length):
        received = b""
        while len(received) < length:
            try:
                more = self.socket.recv(length - len(received))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Over
            received += more
        return numpy.frombuffer(received, dtype=numpy.uint8)
