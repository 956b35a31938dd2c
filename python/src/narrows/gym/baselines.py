"""Scripted policies to compare agents with: each is called with the observation and the last `info`, and gives an action."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy

from .abr import BITRATES
from .rate_control import MOST, SCALE

Policy = Callable[[Any, dict[str, Any]], Any]


def towards(ratio: float) -> Any:
    """The action that multiplies the rate by this."""
    action = (ratio - 1) / SCALE if ratio >= 1 else (1 - 1 / ratio) / SCALE
    return numpy.array([min(max(action, -MOST), MOST)], numpy.float32)


class AIMD:
    """Ten packets a second more in each interval, half of the rate after a loss."""

    def __call__(self, observation: Any, info: dict[str, Any]) -> Any:
        if info.get("loss", 0.0) > 0:
            return towards(0.5)
        return towards(1 + 10 / info["rate"])


class BBRLike:
    """Near the greatest throughput of the last ten intervals, a quarter more in one interval of eight and a quarter less in the
    next, as BBR's probing of bandwidth (Cardwell et al., ACM Queue 14(5), 2016); at the start a doubling in each interval.
    """

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=10)
        self._round = 0
        self._starts = True

    def __call__(self, observation: Any, info: dict[str, Any]) -> Any:
        throughput = info.get("throughput")
        if throughput is None:
            return towards(1.0)
        before = max(self._seen, default=0.0)
        self._seen.append(throughput)
        if self._starts:
            if throughput > 1.25 * before:
                return towards(2.0)
            self._starts = False
        self._round = (self._round + 1) % 8
        gain = {0: 1.25, 1: 0.75}.get(self._round, 1.0)
        return towards(max(0.1, gain * max(self._seen) / info["rate"]))


class BufferBased:
    """By the buffer alone: the lowest bitrate below 5 s, the highest above 15, in between linear (Huang et al., SIGCOMM 2014)."""

    def __init__(self, reservoir: float = 5.0, cushion: float = 10.0) -> None:
        self._reservoir, self._cushion = reservoir, cushion

    def __call__(self, observation: Any, info: dict[str, Any]) -> int:
        share = (info.get("buffer", 0.0) - self._reservoir) / self._cushion
        return int(min(max(share, 0.0), 1.0) * (len(BITRATES) - 1))


def episode(env: gymnasium.Env[Any, Any], policy: Policy, seed: int) -> tuple[float, list[dict[str, Any]]]:
    """The sum of rewards of an episode, and what each step told."""
    observation, info = env.reset(seed=seed)
    told: list[dict[str, Any]] = []
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(policy(observation, info))
        told.append(info)
        total += float(reward)
        over = terminated or truncated
    return total, told
