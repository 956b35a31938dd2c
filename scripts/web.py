#!/usr/bin/env python3
"""A small web server, and clients that fetch pages from it: `web.py serve`, and `web.py fetch HOST SECONDS`."""

import http.client
import json
import random
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8080
MEAN = 10_000  # bytes of a page, exponentially distributed
PACE = 62.5  # pages per second: 5 Mbit/s
PATIENCE = 10  # seconds


class Pages(BaseHTTPRequestHandler):
    """`GET /N` gives N bytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = bytes(int(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def server_bind(self):
        # Skips the lookup of its own name, which would query a name server that does not exist.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "server", PORT

    def handle_error(self, *_):
        pass  # the client timed out


def fetch(host, length, times):
    begin = time.monotonic()
    try:
        connection = http.client.HTTPConnection(host, PORT, timeout=PATIENCE)
        connection.request("GET", f"/{length}")
        connection.getresponse().read()
        connection.close()
        times.append(time.monotonic() - begin)
    except OSError:
        times.append(None)


def clients(host, seconds):
    """Requests pages as a Poisson process, whether or not earlier pages have arrived."""
    draws, times, threads = random.Random(1), [], []
    now = time.monotonic()
    end = now + seconds
    while (now := now + draws.expovariate(PACE)) < end:
        time.sleep(max(0, now - time.monotonic()))
        length = max(1, round(draws.expovariate(1 / MEAN)))
        threads.append(threading.Thread(target=fetch, args=(host, length, times)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    done = sorted(one for one in times if one is not None) or [float("nan")]
    at = lambda share: done[min(len(done) - 1, int(share * len(done)))]
    result = {"asked": len(times), "fetched": len(done), "median": at(0.5), "most_of_99": at(0.99)}
    json.dump(result, sys.stdout)


if sys.argv[1] == "serve":
    Server(("", PORT), Pages).serve_forever()
else:
    clients(sys.argv[2], float(sys.argv[3]))
