"""Congestion control by rate, as Aurora poses it.

Source: N. Jay, N. Rotman, P. B. Godfrey, M. Schapira and A. Tamar, "A Deep Reinforcement Learning Perspective on Internet
Congestion Control", ICML 2019: observations, action, reward and the ranges of links are from there. Here the network is the
engine's: packets wait in the link's queue, and are lost as its scenario says. What differs: a monitor interval lasts one mean
round trip of the one before, and an action is at most ±40, which doubles or halves the rate.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from .._scenario import Scenario, link
from .._session import Session

SCALE = 0.025
"""How much an action of 1 changes the rate (the paper's alpha)."""
MOST = 40.0
HISTORY = 10
PACKET = 1500
LEAST_RATE, MOST_RATE = 20.0, 100_000.0  # packets a second

RANGES = {"rate": (100.0, 500.0), "delay": (0.05, 0.5), "queue": (2.0, 2981.0), "loss": (0.0, 0.05)}
"""What links are drawn from: packets a second, seconds one way, packets (its logarithm evenly), a share."""


class RateControl(gymnasium.Env[Any, Any]):
    """One sender behind one link.

    Observation: for each of the last ten intervals the slope of the latency, the ratio of its mean to the least mean so far,
    and the ratio of packets sent to packets delivered. Action: a; the rate is multiplied by 1 + 0.025 a, or divided by
    1 − 0.025 a where a is negative. Reward: 10 × throughput (packets a second) − 1000 × latency (s) − 2000 × loss.

    `scenario` is a network with the hosts `client` and `server`; without it a link is drawn for each episode from `ranges`.
    Feedback takes the link's delay back to the sender.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | None = None,
        ranges: dict[str, tuple[float, float]] | None = None,
        steps: int = 400,
    ) -> None:
        self._scenario = scenario
        self._ranges = {**RANGES, **(ranges or {})}
        unknown = set(self._ranges) - set(RANGES)
        if unknown:
            raise ValueError(f"`{unknown.pop()}` is no range: {', '.join(RANGES)}")
        self._steps = steps
        self.action_space = spaces.Box(-MOST, MOST, (1,), numpy.float32)
        self.observation_space = spaces.Box(-numpy.inf, numpy.inf, (3 * HISTORY,), numpy.float32)
        self._session: Session | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        scenario, back, rate = self._draw()
        self._session = scenario.session(seed=int(self.np_random.integers(2**31)))
        self._back = back
        self._time, self._step = 0.0, 0
        self._length = max(0.01, 2 * back)
        self._least = 0.0
        self._rate = float(rate * self.np_random.uniform(0.3, 1.5))
        self._history: deque[list[float]] = deque([[0.0, 1.0, 1.0]] * HISTORY, maxlen=HISTORY)
        return self._observation(), {"rate": self._rate}

    def _draw(self) -> tuple[Scenario, float, float]:
        """A network, the delay of its way back, and a rate of about its size."""
        if self._scenario is not None:
            ways = {one["name"]: one for one in self._scenario.explain()["links"]}
            back = sum(one["mean_delay_ns"] or 0 for one in ways.values() if one["from"] == "server") / 1e9
            rates = [one["rate_bps"] for one in ways.values() if one["rate_bps"]]
            return self._scenario, back, min(rates, default=2_400_000) / 8 / PACKET
        draw = self.np_random.uniform
        rate, delay, loss = (float(draw(*self._ranges[key])) for key in ("rate", "delay", "loss"))
        queue = float(numpy.exp(draw(*numpy.log(self._ranges["queue"]))))
        made = link(
            rate=f"{round(rate * 8 * PACKET)}bit",
            delay=f"{round(delay * 1e6)}us",
            queue=f"{max(1, round(queue))} packets",
            loss=f"0%/{100 * loss:.4f}%",
        )
        return made, delay, rate

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self._session is not None, "reset first"
        change = SCALE * float(numpy.clip(numpy.asarray(action).reshape(-1)[0], -MOST, MOST))
        self._rate = self._rate * (1 + change) if change >= 0 else self._rate / (1 - change)
        self._rate = min(max(self._rate, LEAST_RATE), MOST_RATE)
        sent = max(1, round(self._rate * self._length))
        self._session.send(
            "client", "server", start=self._time, gap=self._length / sent, count=sent, length=PACKET
        )
        self._time += self._length
        # What the sender knows by now was so when it left the receiver.
        [seen] = self._session.advance(max(self._session.now, self._time - self._back))
        known = seen.delivered + seen.dropped
        loss = seen.dropped / known if known else 0.0
        throughput = seen.delivered / self._length
        latency = self._back + seen.delay_mean if seen.delay_mean is not None else self._length
        if seen.delay_mean is not None and (self._least == 0 or latency < self._least):
            self._least = latency
        ratio = latency / self._least if self._least else 1.0
        self._history.append([seen.delay_slope, ratio, min(sent / max(1, seen.delivered), 1000.0)])
        reward = 10 * throughput - 1000 * latency - 2000 * loss
        self._length = min(max(0.01, latency), 2.0)
        self._step += 1
        info = {"rate": self._rate, "throughput": throughput, "latency": latency, "loss": loss, "time": self._time}
        return self._observation(), float(reward), False, self._step >= self._steps, info

    def _observation(self) -> Any:
        return numpy.array([value for row in self._history for value in row], numpy.float32)
