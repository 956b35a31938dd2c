#!/usr/bin/env python3
"""A web page that shows its own load time: `page.py [PORT]` serves it, with twelve pictures of 20 kB each."""

import struct
import sys
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><title>loading</title><p id=took>loading
{pictures}
<script>
addEventListener('load', () => setTimeout(() => {{
  const t = performance.getEntriesByType('navigation')[0]
  took.textContent = `connected ${{t.connectEnd.toFixed(0)}} ms, first byte ${{t.responseStart.toFixed(0)}} ms, ` +
    `loaded ${{t.loadEventEnd.toFixed(0)}} ms`
}}))
</script>
"""


def picture():
    """A grey PNG of one pixel, and 20 kB that browsers ignore."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0\x80")), chunk(b"fiLl", bytes(20_000)), chunk(b"IEND", b"")]
    )


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/":
            pictures = "\n".join(f"<img src=/{number}.png>" for number in range(12))
            kind, body = "text/html", PAGE.format(pictures=pictures).encode()
        else:
            kind, body = "image/png", picture()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a browser that closed its connection


Server(("", int((sys.argv[1:] or ["8000"])[0])), Pages).serve_forever()
