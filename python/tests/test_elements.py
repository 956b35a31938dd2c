"""Models in Python, and sessions that Python drives."""

from __future__ import annotations

import random
from typing import Any

import pytest

import narrows


def net() -> narrows.Scenario:
    return narrows.link(rate="10mbit", delay="25ms", order="allow").offer("poisson=5mbit")


def test_models_in_python_decide_delay_and_loss() -> None:
    draw = random.Random(3)
    asked: list[int] = []

    def delays(n: int) -> list[float]:
        asked.append(n)
        return [0.1] * n

    def losses(n: int) -> list[bool]:
        return [draw.random() < 0.25 for _ in range(n)]

    elements = {"link.up.delay": delays, "link.down.loss": losses}
    result = net().simulate(duration="20s", elements=elements, packets=True)
    up, down = (result.report().direction(name) for name in ("link.up", "link.down"))
    pair = next(one for one in result.report()["pairs"] if one["from_port"] == "client.link")
    # 100 ms and a transmission of 1.2 ms; the histogram has a resolution.
    assert pair["delay"]["min_ns"] == 100_000_000 + 1_198_400
    assert down["dropped_share"] == pytest.approx(0.25, abs=0.02) and up["dropped_share"] == 0
    # Asked for many at once.
    packets = up["delivered"]["packets"]
    assert len(asked) < packets / 500 and sum(asked) >= packets
    assert result.packets["reason"].count("wire loss") == down["dropped_packets"]
    with pytest.raises(narrows.NarrowsError, match="interval="):
        print(result.series)


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ({"link.up.delay": lambda n: [1.0] * (n - 1)}, "link.up.delay gave 1023 values when asked for 1024"),
        ({"link.up.delay": lambda n: [-1.0] * n}, "delay of -1 s"),
        ({"link.up.delay": lambda n: ["x"] * n}, "wrong type"),
        ({"link.up.delay": lambda n: 1 / 0}, "division by zero"),
        ({"link.up.rate": lambda n: [1.0] * n}, "`link.up.rate` is no element"),
        ({"nowhere.delay": lambda n: [1.0] * n}, "`nowhere.delay` is no element"),
    ],
)
def test_models_that_are_wrong_end_the_run(elements: Any, said: str) -> None:
    with pytest.raises(Exception, match=said):
        net().simulate(duration="1000h" if "no element" not in said else "1s", elements=elements)


def test_a_session_goes_on_in_steps() -> None:
    session = narrows.link(rate="12mbit", delay="10ms", queue="5 packets").session(seed=1)
    # A packet takes a millisecond on the wire: one is sent, five wait, the rest is dropped.
    session.send("client", "server", count=10)
    assert session.inside == 6
    [early] = session.advance(0.0105)
    assert (early.delivered, early.dropped, early.delay_mean) == (0, 4, None)
    [rest] = session.advance(1.0)
    assert (rest.delivered, rest.delivered_bytes, rest.dropped) == (6, 9000, 0)
    assert (rest.delay_min, rest.delay_max, rest.last) == (0.011, 0.016, 0.016)
    assert session.now == 1.0 and session.inside == 0
    # Sent at twice the rate, the delay grows by a second in a second.
    session.set({"link.up.queue": "1000 packets"})
    session.send("client", "server", count=100, gap=0.0005, tag=7)
    other, mine = session.advance(2.0, [0, 7])
    assert other.delivered == 0 and mine.delivered == 100
    assert mine.delay_slope == pytest.approx(1.0)
    session.send("server.link", "client.link", count=3)
    assert session.finish(3) == (pytest.approx(2.013), True)
    session.send("client", "server")
    assert session.finish(1, latest=2.02) == (2.02, False)


def test_what_a_session_refuses() -> None:
    session = narrows.link(rate="10mbit").session()
    session.advance(1.0)
    for wrong, said in [
        (lambda: session.advance(0.5), "past"),
        (lambda: session.send("client", "server", start=0.5), "past"),
        (lambda: session.send("client", "nobody"), "no host or port `nobody`: client.link, server.link"),
        (lambda: session.send("client", "server", length=1), "20 to 65,535"),
        (lambda: session.advance(float("nan")), "no instant"),
        (lambda: session.set({"link.up.rat": "1mbit"}), "did you mean `rate`"),
    ]:
        with pytest.raises((ValueError, narrows.NarrowsError), match=said):
            wrong()
