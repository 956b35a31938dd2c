"""Networks in virtual time, driven by Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import _narrows
from ._narrows import Interval
from ._value import Value, plain

if TYPE_CHECKING:
    from ._scenario import Scenario


class Session:
    """A network in virtual time into which Python sends packets, for senders and controllers written in Python:

        session = net.session(seed=1)
        session.send("client", "server", count=100, gap=0.001)
        [interval] = session.advance(0.5)
        print(interval.delivered_bytes, interval.delay_mean)

    The session ignores the traffic and the timeline of the scenario: only Python sends packets and changes settings. Times are
    in seconds. The same calls give the same answers.
    
    """

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        self._session = _narrows.Session(scenario._scenario, scenario.seed if seed is None else seed)

    @property
    def now(self) -> float:
        """The current virtual time."""
        return self._session.now

    @property
    def inside(self) -> int:
        """The number of packets in the network; those that are sent later are not."""
        return self._session.inside

    def send(
        self,
        source: str,
        destination: str,
        *,
        start: float | None = None,
        gap: float = 0.0,
        count: int = 1,
        length: int = 1500,
        tag: int = 0,
    ) -> None:
        """Sends `count` packets of `length` bytes from one host (or port `HOST.LINK`) to another, the first at `start`
        (default: now), then one every `gap` seconds. They are sent when the session comes to these instants, with those of
        other calls in the order of time. Packets of one `tag` are a flow.
        """
        self._session.send(source, destination, self.now if start is None else start, gap, count, length, tag)

    def advance(self, until: float, tags: Sequence[int] = (0,)) -> list[Interval]:
        """Advances to an instant and returns the statistics of each tag for this interval."""
        return self._session.advance(until, tags)

    def finish(self, count: int, *, tag: int = 0, latest: float = 1e6) -> tuple[float, bool]:
        """Advances until `count` packets of a tag have been delivered or dropped, at most to `latest`. Returns the instant, and
        whether all of them have.
        """
        return self._session.finish(tag, count, latest)

    def set(self, assignments: Mapping[str, Value]) -> None:
        """Sets keys of links from now on, as `narrows set` does."""
        self._session.set([f"{key}={plain(value)}" for key, value in assignments.items()])
