#!/usr/bin/env python3
"""resilience.py: a client with a time limit and retries, tested through narrows toxi: over TCP and over UDP.

Starts `narrows toxi` and two echo servers, creates a proxy for each, and prints how the client fares under toxics.
Needs Python alone; with a client library of Toxiproxy, the calls of `ask` are the library's.
"""

import json
import socket
import subprocess
import threading
import time
import urllib.request

LIMIT = 0.5


def ask(api, method, path, body=None):
    """A request to the API, and its answer."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(api + path, data, method=method)) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def echo_tcp(server):
    while True:
        connection = server.accept()[0]
        threading.Thread(target=echo_connection, args=[connection], daemon=True).start()


def echo_connection(connection):
    try:
        while data := connection.recv(4096):
            connection.sendall(data)
    except OSError:
        pass


def echo_udp(server):
    while True:
        server.sendto(*server.recvfrom(4096))


def try_tcp(address):
    """One request over a connection of its own."""
    with socket.create_connection(address, LIMIT) as connection:
        connection.settimeout(LIMIT)
        connection.sendall(b"ping")
        if not connection.recv(4):
            raise ConnectionError("closed")


def try_udp(address):
    """One datagram and its answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(LIMIT)
        client.sendto(b"ping", address)
        client.recv(4)


def fares(what, attempt, address, requests=20):
    """Prints how many requests succeed at the first try and after up to three, and the median time of a success."""
    first = later = 0
    times = []
    for _ in range(requests):
        for number in range(3):
            start = time.monotonic()
            try:
                attempt(address)
            except OSError:
                continue
            times.append(time.monotonic() - start)
            first += number == 0
            later += number > 0
            break
    median = f"{sorted(times)[len(times) // 2] * 1000:.0f} ms" if times else "-"
    print(f"{what:34} {first:2} of {requests} at once, {later:2} after a retry; median {median}", flush=True)


def main():
    program = subprocess.Popen(["narrows", "toxi", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        api = program.stdout.readline().split()[1]
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=echo_tcp, args=[tcp], daemon=True).start()
        threading.Thread(target=echo_udp, args=[udp], daemon=True).start()
        addresses = {}
        for name, scheme, server in [("tcp", "", tcp), ("udp", "udp://", udp)]:
            upstream = "127.0.0.1:%d" % server.getsockname()[1]
            proxy = ask(api, "POST", "/proxies", {"name": name, "listen": f"{scheme}127.0.0.1:0", "upstream": upstream})
            addresses[name] = ("127.0.0.1", int(proxy["listen"].rsplit(":")[-1]))

        fares("tcp", try_tcp, addresses["tcp"])
        ask(api, "POST", "/proxies/tcp/toxics", {"type": "latency", "attributes": {"latency": 100}})
        fares("tcp, latency 100 ms", try_tcp, addresses["tcp"])
        ask(api, "POST", "/proxies/tcp/toxics", {"type": "reset_peer", "toxicity": 0.3})
        fares("tcp, and 30 % of connections reset", try_tcp, addresses["tcp"])
        fares("udp", try_udp, addresses["udp"])
        link = {"delay": "40ms", "loss": "20%"}
        ask(api, "POST", "/proxies/udp/toxics", {"type": "link", "stream": "upstream", "attributes": link})
        fares("udp, link of 40 ms, 20 % lost", try_udp, addresses["udp"])
    finally:
        program.terminate()
        program.wait()


main()
