#!/usr/bin/env python3
"""Linux's CUBIC and BBR on one bottleneck, under each queue policy, with many seeds, in exact virtual time.

Each run is a separate guest with two iperf3 transfers from client to server. One starts up to a second after the other. The seed
determines which one, and by how much, as well as the guest kernel's random numbers (ports, BBR's phases, flow hashes) and the
draws of narrows (RED, PIE). A run whose file exists is not repeated, so an interrupted series continues.
"""

import argparse
import json
import random
import statistics
import tempfile
from pathlib import Path

import figure
import guest

PRODUCT = 42  # packets: 10 Mbit/s for 50 ms
DEEP = f"{4 * PRODUCT} packets"
RED = f"min = '{PRODUCT // 4} packets', max = '{PRODUCT} packets', gentle = true"


def managed(kind, more=""):
    return f"queue={{ type = '{kind}', bound = '{DEEP}'{more and ', ' + more} }}"


# Name: the setting of the direction, and whether the senders offer ECN.
POLICIES = {
    "tail drop, 1 BDP": (f"queue={PRODUCT} packets", False),
    "tail drop, 4 BDP": (f"queue={DEEP}", False),
    "RED": (managed("red", RED), False),
    "RED, ECN": (managed("red", RED), True),
    "CoDel": (managed("codel"), False),
    "CoDel, ECN": (managed("codel"), True),
    "PIE": (managed("pie"), False),
    "PIE, ECN": (managed("pie"), True),
    "DualPI2": (managed("dualpi2"), False),
    "SFQ": (f"scheduler={{ type = 'sfq', bound = '{DEEP}' }}", False),
    "FQ-PIE": (f"scheduler={{ type = 'fq_pie', bound = '{DEEP}' }}", False),
    "FQ-CoDel": (f"scheduler={{ type = 'fq_codel', bound = '{DEEP}' }}", False),
}

SERVER = "iperf3 -J -s -p 5201 >/dev/null & exec iperf3 -J -s -p 5202 >/dev/null"
CLIENT = """
echo $ECN >/proc/sys/net/ipv4/tcp_ecn
flow() { sleep "$1"; iperf3 -J --get-server-output -t "$SPAN" -C "$2" -p "$3" -c "$NARROWS_SERVER" >"/tmp/$2"; }
flow "$CUBIC" cubic 5201 & flow "$BBR" bbr 5202; wait
printf '{"cubic": '; cat /tmp/cubic; printf ', "bbr": '; cat /tmp/bbr; printf '}'
"""


def measure(policy, seed, span, settle):
    """One run: shares, delays and losses, after both flows have run for `settle` seconds."""
    setting, ecn = POLICIES[policy]
    late = random.Random(seed).uniform(-1, 1)
    environment = {
        "ECN": str(int(ecn)),
        "SPAN": str(span + 1),
        "CUBIC": f"{max(0, late):.6f}",
        "BBR": f"{max(0, -late):.6f}",
    }
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        options = ["--quiet", "--json", file.name, "--set", f"access.up.{setting}", "--on", "server", SERVER]
        written = guest.run("shared-bottleneck.toml", seed, CLIENT, *options, environment=environment)
        flows, report = json.loads(written), json.load(file)
    result = {"policy": policy, "seed": seed, "cubic_is_later_by_s": round(late, 6)}
    for name, flow in flows.items():
        # Received rate per second, from the receiver's report, which the sender has.
        came = [interval["sum"]["bytes"] for interval in flow["server_output_json"]["intervals"][settle:span]]
        result[name] = {"bytes": sum(came), "again": flow["end"]["sum_sent"]["retransmits"]}
    up = next(one for one in report["directions"] if one["link"] == "access.up")
    waits = next(one for one in report["pairs"] if one["from_port"] == "client.access")["queueing"]
    result |= {"dropped": up["dropped_packets"], "marked": up["marked_packets"]}
    return result | {"wait_p50_ns": waits["p50_ns"], "wait_p99_ns": waits["p99_ns"]}


def share(run):
    return 100 * run["bbr"]["bytes"] / (run["bbr"]["bytes"] + run["cubic"]["bytes"])


def fairness(run):
    """Jain's index of the two rates: 1 if they are equal, 1/2 if one flow gets everything."""
    x, y = run["bbr"]["bytes"], run["cubic"]["bytes"]
    return (x + y) ** 2 / (2 * (x * x + y * y))


COLUMNS = (
    ("BBR's share, %", share, "{:.1f}"),
    ("Jain's index", fairness, "{:.3f}"),
    ("wait, median, ms", lambda run: run["wait_p50_ns"] / 1e6, "{:.1f}"),
    ("wait, 99 %, ms", lambda run: run["wait_p99_ns"] / 1e6, "{:.1f}"),
    ("CUBIC sent again", lambda run: run["cubic"]["again"], "{:.0f}"),
    ("BBR sent again", lambda run: run["bbr"]["again"], "{:.0f}"),
    ("marked", lambda run: run["marked"], "{:.0f}"),
)


def table(runs):
    """Medians over the seeds, with minimum and maximum."""
    yield "| queue | " + " | ".join(name for name, _, _ in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for policy, of_policy in runs.items():
        cells = []
        for _, value, form in COLUMNS:
            values = [value(run) for run in of_policy]
            middle, low, high = statistics.median(values), min(values), max(values)
            cells.append(" ".join((form.format(middle), f"({form.format(low)}–{form.format(high)})")))
        yield f"| {policy} | " + " | ".join(cells) + " |"


def draw(runs, note):
    def values(of):
        return [[of(run) for run in of_policy] for of_policy in runs.values()]

    return figure.strips(
        "CUBIC and BBR on one bottleneck, by queue policy",
        note,
        list(runs),
        [
            figure.Panel("BBR's share of both", "%", [("", 1, values(share))], (0, 100), mark=50),
            figure.Panel("Wait in the queue, median", "ms", [("", 2, values(COLUMNS[2][1]))], (0, None)),
            figure.Panel(
                "Segments sent again",
                "",
                [("CUBIC", 0, values(COLUMNS[4][1])), ("BBR", 1, values(COLUMNS[5][1]))],
                (0, None),
            ),
        ],
    )


def seeds(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="where results, table and figure go")
    arguments.add_argument("--seeds", type=seeds, default=seeds("1-20"), help="such as 1-20 (default)")
    arguments.add_argument("--policies", nargs="*", choices=POLICIES, default=list(POLICIES), metavar="POLICY")
    arguments.add_argument("--span", type=int, default=30, help="virtual seconds for which both flows send (30)")
    arguments.add_argument("--settle", type=int, default=10, help="those of them that do not count for shares (10)")
    arguments.add_argument("--jobs", type=int, default=2, help="runs at once (2)")
    asked = arguments.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)

    def once(work):
        policy, seed = work
        name = policy.lower().replace(",", "").replace(" ", "-")
        path = asked.folder / f"{name}-{seed}.json"
        if not path.exists():
            text = json.dumps(measure(policy, seed, asked.span, asked.settle), indent=1) + "\n"
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)
        return json.loads(path.read_text())

    runs = {policy: [] for policy in POLICIES if policy in asked.policies}
    # Seed by seed, so that partial results cover all policies equally.
    for run in guest.all_of(asked.jobs, once, [(policy, seed) for seed in asked.seeds for policy in asked.policies]):
        runs[run["policy"]].append(run)
    text = "\n".join(table(runs)) + "\n"
    (asked.folder / "table.md").write_text(text)
    note = f"10 Mbit/s, round trip 50 ms; runs for each: {len(asked.seeds)}; {asked.span} s, shares without the first {asked.settle}"
    (asked.folder / "sharing.svg").write_text(draw(runs, note))
    print(text, end="")


main()
