"""Adaptive bitrate streaming, as Pensieve poses it.

Source: H. Mao, R. Netravali and M. Alizadeh, "Neural Adaptive Video Streaming with Pensieve", SIGCOMM 2017: observations,
bitrates, the buffer of 60 s and the linear quality of experience are from there. Here each chunk crosses the engine's link as
packets, behind a request that takes the link's delay; they are sent at once, so that a transfer has no slow start.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from .._scenario import Scenario, link
from .._session import Session

BITRATES = (300, 750, 1200, 1850, 2850, 4300)
"""In kbit/s."""
CHUNK = 4.0
"""Seconds of video."""
CHUNKS = 48
MOST_BUFFER = 60.0
WAIT = 0.5
HISTORY = 8
PAYLOAD, PACKET = 1448, 1500
REBUFFER_PENALTY = 4.3
RATES = (0.3, 6.0)
"""What a link's rate is drawn from, in Mbit/s."""
LONGEST = 1000.0
"""Seconds after which a transfer is given up."""


class ABR(gymnasium.Env[Any, Any]):
    """One viewer of one video.

    Observation: the last bitrate, the buffer, throughput and transfer time of the last eight chunks, the sizes of the next one at
    each bitrate, and how many chunks remain; scaled to about 1. Action: the bitrate of the next chunk. Reward: its bitrate in
    Mbit/s − 4.3 × seconds of rebuffering − the change of bitrate in Mbit/s.

    `scenario` is a network with the hosts `client` and `server`, such as `narrows.link(trace="cell.csv", delay="40ms",
    queue="100000 packets")` with any of the [trace formats](traces.md); without it a link whose rate wanders is made for each
    episode.
    """

    metadata = {"render_modes": []}

    def __init__(self, scenario: Scenario | None = None, rates: tuple[float, float] = RATES) -> None:
        if not 0 < rates[0] <= rates[1]:
            raise ValueError(f"rates are from a low one above 0 to a high one, not {rates}")
        self._scenario, self._rates = scenario, rates
        self.action_space = spaces.Discrete(len(BITRATES))
        self.observation_space = spaces.Box(0.0, numpy.inf, (2 + 2 * HISTORY + len(BITRATES) + 1,), numpy.float32)
        self._session: Session | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._wanders = self._scenario is None
        scenario = self._scenario
        if scenario is None:
            self._rate = float(numpy.exp(self.np_random.uniform(*numpy.log(self._rates))))
            scenario = link(rate=f"{round(1e6 * self._rate)}bit", delay="40ms", queue="100000 packets")
        ways = scenario.explain()["links"]
        self._request = sum(one["mean_delay_ns"] or 0 for one in ways if one["from"] == "client") / 1e9
        self._links = scenario.links
        self._session = scenario.session(seed=int(self.np_random.integers(2**31)))
        # Sizes of a variable bitrate: within a tenth of the mean.
        vary = self.np_random.uniform(0.9, 1.1, (CHUNKS, 1))
        self._sizes = (numpy.array(BITRATES) * 1000 / 8 * CHUNK * vary).astype(int)
        self._chunk, self._buffer, self._last = 0, 0.0, 1
        self._seen: deque[tuple[float, float]] = deque([(0.0, 0.0)] * HISTORY, maxlen=HISTORY)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self._session is not None, "reset first"
        level = int(action)
        if self._wanders:
            # A step of a walk of the rate's logarithm, within the range.
            self._rate = float(numpy.clip(self._rate * numpy.exp(self.np_random.normal(0, 0.25)), *self._rates))
            self._session.set({f"{name}.down.rate": f"{round(1e6 * self._rate)}bit" for name in self._links})
        size = int(self._sizes[self._chunk, level])
        began = self._session.now
        packets = -(-size // PAYLOAD)
        self._session.send(
            "server", "client", start=began + self._request, count=packets, length=PACKET, tag=self._chunk
        )
        ended, is_whole = self._session.finish(packets, tag=self._chunk, latest=began + LONGEST)
        spent = ended - began
        rebuffer = max(0.0, spent - self._buffer)
        self._buffer = max(0.0, self._buffer - spent) + CHUNK
        slept = 0.0
        if self._buffer > MOST_BUFFER:
            slept = WAIT * float(numpy.ceil((self._buffer - MOST_BUFFER) / WAIT))
            self._buffer -= slept
            self._session.advance(ended + slept)
        quality, before = BITRATES[level] / 1000, BITRATES[self._last] / 1000
        reward = quality - REBUFFER_PENALTY * rebuffer - abs(quality - before)
        self._seen.append((size / spent, spent))
        self._last = level
        self._chunk += 1
        info = {"rebuffer": rebuffer, "seconds": spent, "buffer": self._buffer, "bitrate": BITRATES[level], "time": ended}
        return self._observation(), float(reward), self._chunk >= CHUNKS, not is_whole, info

    def _observation(self) -> Any:
        sizes = self._sizes[self._chunk] / 1e6 if self._chunk < CHUNKS else numpy.zeros(len(BITRATES))
        parts = [
            [BITRATES[self._last] / BITRATES[-1], self._buffer / 10],
            [throughput / 1e6 for throughput, _ in self._seen],
            [seconds / 10 for _, seconds in self._seen],
            sizes,
            [(CHUNKS - self._chunk) / CHUNKS],
        ]
        return numpy.concatenate([numpy.asarray(part, numpy.float32) for part in parts]).astype(numpy.float32)
