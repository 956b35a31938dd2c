#!/usr/bin/env python3
"""UDP hole punching: `peer.py serve` introduces two peers; `peer.py NAME SERVER` is one of them.

A peer learns from the server from which address the other one is seen, sends there for two seconds, and says whether it
heard anything. Exit status 1 if not.
"""

import socket
import sys
import time

PORT = 3478


def serve():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("", PORT))
    seen = {}
    while True:
        name, address = server.recvfrom(100)
        seen[name] = address
        for other in seen:
            if other != name:
                server.sendto("{} {}".format(*seen[other]).encode(), address)


def meet(name, server):
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(0.1)
    other, end = None, time.monotonic() + 5
    while time.monotonic() < end:
        if other is None:
            peer.sendto(name.encode(), (server, PORT))
        else:
            peer.sendto(b"hello", other)
        try:
            text, sender = peer.recvfrom(100)
        except socket.timeout:
            continue
        if sender[0] != server:
            peer.sendto(b"hello", sender)
            print(f"  {name} hears its peer at {sender[0]}:{sender[1]}")
            return 0
        if other is None:
            address, port = text.decode().split()
            other, end = (address, int(port)), time.monotonic() + 2
            print(f"  {name} is told that its peer is at {address}:{port}")
    print(f"  {name} hears nothing")
    return 1


if sys.argv[1:] == ["serve"]:
    serve()
sys.exit(meet(*sys.argv[1:3]))
