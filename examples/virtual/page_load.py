#!/usr/bin/env python3
"""A page loaded by curl over a bad network, in exact virtual time: many times with one seed, and with many seeds.

The page is a document of 30 kB and, once that has arrived, twelve objects of 4 to 120 kB, six at a time. Each load is a fresh
run: the guest boots, server and client start, with no open connection and no cache.
"""

import argparse
import statistics
from collections import Counter
from pathlib import Path

import guest

OBJECTS = [4, 6, 8, 8, 12, 15, 20, 25, 40, 60, 80, 120]  # kB
SERVER = f"exec python3 {guest.ROOT}/scripts/web.py serve"
CLIENT = """
begin=$(date +%s%6N)
curl -sS --fail -o /dev/null "http://$NARROWS_SERVER:8080/30000" || exit
for size in $OBJECTS; do
  printf 'url = "http://%s:8080/%s000"\\noutput = /dev/null\\n' "$NARROWS_SERVER" "$size"
done | curl -sS --fail --no-progress-meter --parallel --parallel-max 6 --parallel-immediate --config - || exit
echo $(($(date +%s%6N) - begin))
"""


def load(seed):
    """Returns the load time of the page, in microseconds."""
    environment = {"OBJECTS": " ".join(map(str, OBJECTS))}
    return int(guest.run("bad-network.toml", seed, CLIENT, "--quiet", "--on", "server", SERVER, environment=environment))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="where the times go, one a line in ms")
    arguments.add_argument("--alike", type=int, default=100, help="loads with seed 1 (100)")
    arguments.add_argument("--seeds", type=int, default=100, help="loads with seeds 1, 2, … (100)")
    arguments.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
    asked = arguments.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)

    for name, seeds in (("alike", [1] * asked.alike), ("seeds", list(range(1, asked.seeds + 1)))):
        if not seeds:
            continue
        times = list(guest.all_of(asked.jobs, load, seeds))
        (asked.folder / f"{name}.txt").write_text("".join(f"{time / 1e3:.3f}\n" for time in times))
        distinct = Counter(times)
        print(f"{name}: {len(times)} loads, {len(distinct)} distinct times,", end=" ")
        print(f"median {statistics.median(times) / 1e6:.6f} s, from {min(times) / 1e6:.6f} to {max(times) / 1e6:.6f} s")


main()
