"""Environments for Gymnasium."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

gymnasium = pytest.importorskip("gymnasium")

import narrows  # noqa: E402
import narrows.gym  # noqa: E402
from narrows.gym.baselines import AIMD, BBRLike, BufferBased, episode, towards  # noqa: E402


@pytest.mark.parametrize("name", ["narrows/RateControl-v0", "narrows/ABR-v0"])
def test_gymnasiums_own_checks(name: str) -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        # Actions of the paper are not within 1, and slopes have no bound.
        warnings.filterwarnings("ignore", message=".*(normalized space|infinity).*")
        check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize(("name", "policy"), [("narrows/RateControl-v0", AIMD), ("narrows/ABR-v0", BufferBased)])
def test_a_seed_is_an_episode(name: str, policy: Any) -> None:
    first, second, other = (episode(gymnasium.make(name), policy(), seed) for seed in (3, 3, 4))
    assert first == second and first[0] != other[0]
    assert len(first[1]) == (400 if "Rate" in name else 48)


def link() -> narrows.Scenario:
    # 250 packets a second, 40 ms one way, nothing is lost but by the queue.
    return narrows.link(rate="3mbit", delay="40ms", queue="25 packets")


def test_rates_and_latencies_are_the_links() -> None:
    env = gymnasium.make("narrows/RateControl-v0", scenario=link())
    total, told = episode(env, lambda _, info: towards(125 / info["rate"]), 1)
    for step in told[2:]:
        # There and back, a transmission of 4 ms, and no queue at half of the rate.
        assert step["latency"] == pytest.approx(0.084) and step["loss"] == 0
    assert sum(step["throughput"] for step in told[50:]) / len(told[50:]) == pytest.approx(125, rel=0.05)
    # At twice the rate half is lost, behind 25 packets in the queue.
    _, told = episode(env, lambda _, info: towards(500 / info["rate"]), 1)
    late = told[-100:]
    assert sum(step["loss"] for step in late) / 100 == pytest.approx(0.5, abs=0.02)
    assert sum(step["throughput"] for step in late) / 100 == pytest.approx(250, rel=0.02)
    assert max(step["latency"] for step in late) == pytest.approx(0.084 + 25 * 0.004, abs=0.0045)


def test_baselines_use_a_link() -> None:
    for policy, least in [(AIMD(), 0.7), (BBRLike(), 0.85)]:
        env = gymnasium.make("narrows/RateControl-v0", scenario=link())
        _, told = episode(env, policy, 1)
        used = sum(step["throughput"] for step in told[100:]) / len(told[100:]) / 250
        assert least < used <= 1.01, policy


def test_transfers_take_what_the_link_takes() -> None:
    env = gymnasium.make("narrows/ABR-v0", scenario=narrows.link(rate="3mbit", delay="40ms", queue="100000 packets"))
    env.reset(seed=1)
    buffer, last = 0.0, 750
    for level in (0, 5, 2, 2):
        size = int(env.unwrapped._sizes[env.unwrapped._chunk, level])
        _, reward, *_, info = env.step(level)
        # The request and the last packet cross 40 ms each; a packet takes 4 ms.
        assert info["seconds"] == pytest.approx(0.08 + -(-size // 1448) * 0.004, abs=1e-6)
        assert info["rebuffer"] == max(0.0, info["seconds"] - buffer)
        expected = (info["bitrate"] - abs(info["bitrate"] - last)) / 1000 - 4.3 * info["rebuffer"]
        assert reward == pytest.approx(expected)
        buffer, last = info["buffer"], info["bitrate"]


def test_a_buffer_prevents_stalls() -> None:
    sums = {}
    for name, policy in [("buffer", BufferBased()), ("highest", lambda *_: 5), ("lowest", lambda *_: 0)]:
        runs = [episode(gymnasium.make("narrows/ABR-v0"), policy, seed) for seed in range(1, 6)]
        sums[name] = sum(total for total, _ in runs)
    assert sums["highest"] < min(sums["lowest"], sums["buffer"])


def test_many_in_one_process() -> None:
    numpy = pytest.importorskip("numpy")
    many = gymnasium.make_vec("narrows/RateControl-v0", num_envs=256, vectorization_mode="sync")
    many.reset(seed=1)
    for _ in range(3):
        observations, rewards, *_ = many.step(numpy.zeros((256, 1), numpy.float32))
    assert observations.shape == (256, 30) and len(set(rewards.tolist())) > 200


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="`speed` is no range"):
        gymnasium.make("narrows/RateControl-v0", ranges={"speed": (1, 2)})
    with pytest.raises(ValueError, match="rates are"):
        gymnasium.make("narrows/ABR-v0", rates=(3, 1))
