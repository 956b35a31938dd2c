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


def test_packets_of_several_calls_are_sent_in_the_order_of_time() -> None:
    net = narrows.link(rate="10mbit", delay="100ms")
    session = net.session()
    session.send("client", "server", count=10, gap=0.1, length=1250)
    assert session.inside == 1
    counts = []
    for until in (0.05, 0.15, 0.5, 1.5):
        [interval] = session.advance(until)
        counts.append(interval.delivered)
        assert interval.last is None or interval.last <= until
    assert counts == [0, 1, 3, 6]
    # What changes meanwhile is met by those that are not sent yet.
    session = net.session()
    session.send("client", "server", count=10, gap=0.1)
    session.advance(0.05)
    session.set({"link.up.loss": "100%"})
    [interval] = session.advance(2.0)
    assert (interval.delivered, interval.dropped) == (1, 9)
    # Two flows of 6 Mbit/s each on a link of 20: nobody waits long.
    session = narrows.link(rate="20mbit", queue="20 packets").session()
    for tag in (1, 2):
        session.send("client", "server", count=100, gap=0.002, length=1500, tag=tag)
    flows = session.advance(1.0, [1, 2])
    assert [(flow.delivered, flow.dropped) for flow in flows] == [(100, 0), (100, 0)]
    session.send("client", "server", count=100, gap=0.02)
    ended, is_whole = session.finish(1)
    assert is_whole and ended == pytest.approx(1.0006, abs=1e-4)
    assert session.finish(99, latest=1.5) == (1.5, False)


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


class Fifo:
    """As the engine's own, of ten packets."""

    def __init__(self) -> None:
        self.waiting: list[int] = []

    def enqueue(self, packet: narrows.QueuedPacket) -> bool:
        if len(self.waiting) == 10:
            return False
        self.waiting.append(packet.number)
        return True

    def dequeue(self, now: float) -> int | None:
        return self.waiting.pop(0) if self.waiting else None


class DropHead(Fifo):
    def enqueue(self, packet: narrows.QueuedPacket) -> list[int]:
        self.waiting.append(packet.number)
        return [self.waiting.pop(0)] if len(self.waiting) > 10 else []


class Priority:
    """Small packets first; what has waited for 20 ms is dropped."""

    def __init__(self) -> None:
        self.waiting: list[tuple[bool, int, float]] = []

    def enqueue(self, packet: narrows.QueuedPacket) -> None:
        assert (packet.protocol, packet.source, packet.destination_port) == ("udp", "10.213.0.1", 9)
        assert packet.destination == "10.213.0.2" and packet.source_port >= 49152 and packet.traffic_class == 0
        self.waiting.append((packet.length > 1000, packet.number, packet.now))

    def dequeue(self, now: float) -> tuple[int | None, list[int]]:
        late = [one for one in self.waiting if now - one[2] > 0.02]
        self.waiting = sorted(one for one in self.waiting if one not in late)
        return (self.waiting.pop(0)[1] if self.waiting else None), [number for _, number, _ in late]


@pytest.mark.parametrize(("queue", "own"), [(Fifo, "10 packets"), (DropHead, '{ bound = "10 packets", drop = "head" }')])
def test_a_queue_in_python_is_as_the_engines_own(queue: Any, own: str) -> None:
    full = narrows.link(rate="5mbit", delay="5ms", queue=own).offer("up:poisson=6mbit")
    mine = full.simulate(duration="10s", elements={"link.up.queue": queue()}, packets=True).packets.to_dict()
    theirs = full.simulate(duration="10s", packets=True).packets.to_dict()
    assert theirs["reason"].count("queue full") > 500
    # What a queue throws out later is queue management to the engine.
    mine["reason"] = ["queue full" if reason == "queue management" else reason for reason in mine["reason"]]
    assert mine == theirs


def test_a_scheduler_in_python() -> None:
    small = {"from": "client", "to": "server", "constant": "50/s", "length": "100 bytes"}
    full = narrows.link(rate="5mbit", delay="5ms").offer("up:poisson=6mbit", small)
    result = full.simulate(duration="10s", elements={"link.up.queue": Priority()}, packets=True)
    packets = result.packets
    waits = {"small": [0], "large": [0]}
    for length, waited, verdict in zip(packets["length_bytes"], packets["queueing_ns"], packets["verdict"]):
        if verdict == "delivered":
            waits["small" if length == 100 else "large"].append(waited)
    # A small one waits for the packet on the wire at most, and for small ones.
    assert max(waits["small"]) <= 2_400_000 + 160_000 and 19_000_000 < max(waits["large"]) <= 20_000_000
    assert packets["reason"].count("queue management") > 100


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((None, 5), "named packet 5, which does not wait"),
        (([7], None), "named packet 7, which does not wait"),
        (("yes", None), "`enqueue` of the queue of link.up.queue answered something else"),
        ((None, "first"), "`dequeue` of the queue of link.up.queue answered something else"),
    ],
)
def test_queues_that_are_wrong_end_the_run(answers: tuple[Any, Any], said: str) -> None:
    class Wrong:
        def enqueue(self, packet: narrows.QueuedPacket) -> Any:
            return answers[0]

        def dequeue(self, now: float) -> Any:
            return answers[1]

    with pytest.raises((TypeError, ValueError), match=said):
        net().simulate(duration="1000h", elements={"link.up.queue": Wrong()})
    with pytest.raises(AttributeError, match="enqueue"):
        net().simulate(duration="1000h", elements={"link.up.queue": object()})
