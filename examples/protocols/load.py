"""Loads https://server:8443/ in Chromium over HTTP/1.1, HTTP/2 and HTTP/3: `load.py HASH [TIMES]`, HASH from page.py.

Fails if the browser used another protocol than asked. CHROMIUM is the browser [default: /usr/bin/chromium].
"""

import os
import statistics
import sys

from playwright.sync_api import sync_playwright

URL = "https://server:8443/"
FLAGS = {
    "http/1.1": ["--disable-http2", "--disable-quic"],
    "h2": ["--disable-quic"],
    "h3": ["--origin-to-force-quic-on=server:8443"],
}
TIMINGS = """() => {
  const page = performance.getEntriesByType('navigation')[0]
  const pictures = performance.getEntriesByType('resource').map(one => one.nextHopProtocol)
  return { used: [...new Set([page.nextHopProtocol, ...pictures])], pictures: pictures.length,
    connected: page.connectEnd, answer: page.responseStart, loaded: page.loadEventEnd }
}"""


def load(playwright, hash, flags):
    """The timings of one page load by a browser without a cache."""
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
        args=[f"--ignore-certificate-errors-spki-list={hash}", "--no-sandbox", *flags],
    )
    try:
        page = browser.new_page()
        page.goto(URL)
        page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
        return page.evaluate(TIMINGS)
    finally:
        browser.close()


def main(hash, times=3):
    print("protocol  connected  first byte  loaded (ms, medians)")
    with sync_playwright() as playwright:
        for protocol, flags in FLAGS.items():
            loads = [load(playwright, hash, flags) for _ in range(times)]
            for one in loads:
                if one["used"] != [protocol] or one["pictures"] != 30:
                    sys.exit(f"asked for {protocol}, used {one['used']} for {one['pictures']} pictures")
            connected, answer, loaded = (
                statistics.median(one[name] for one in loads) for name in ("connected", "answer", "loaded")
            )
            print(f"{protocol:8}  {connected:9.0f}  {answer:10.0f}  {loaded:6.0f}", flush=True)


if len(sys.argv) not in (2, 3):
    sys.exit(__doc__)
main(sys.argv[1], *map(int, sys.argv[2:]))
