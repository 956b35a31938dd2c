"""A sweep: queueing delay under two queues, at three loads, with confidence intervals. python examples/python/queues.py"""

import narrows


def loaded(queue: str, load: float) -> narrows.Scenario:
    """Returns a 10 Mbit/s link with Poisson traffic."""
    return narrows.link(rate="10mbit", delay="10ms", queue=queue).offer(f"poisson={10 * load:g}mbit")


def main() -> None:
    grid = narrows.grid(queue=["100 packets", "codel"], load=[0.5, 0.8, 0.95])
    measure = {"wait_ns": "link.up.queueing_mean_ns", "p99_ns": "client.link>server.link.delay.p99_ns"}
    table = narrows.sweep(loaded, grid, seeds=10, duration="20s", measure=measure)
    for row in table.summary("wait_ns", by=["load", "queue"]):
        print(f"{row['load']:4} {row['queue']:12} {row['mean'] / 1e6:6.2f} ms ({row['low'] / 1e6:.2f} to {row['high'] / 1e6:.2f})")
    difference = table.compare("queue", "100 packets", "codel", of="p99_ns")
    print(f"CoDel changes the 99th percentile by {difference.mean / 1e6:.1f} ms ({difference.low / 1e6:.1f} to {difference.high / 1e6:.1f})")


if __name__ == "__main__":
    main()
