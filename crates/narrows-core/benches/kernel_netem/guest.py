"""Sends frames through sch_netem and tells when each was sent and when, how often and how it came.

guest.py OUTPUT PACKETS GAP_NS LENGTH OPTION…   with root's rights, between two ends of a new veth pair

Lines of the output: `sent NUMBER NS`, `came NUMBER NS CHANGED`. Standard library only.
"""

import errno
import socket
import struct
import subprocess
import sys
import time

ALL, TIMESTAMP, BUFFER = 3, 35, 33  # ETH_P_ALL, SO_TIMESTAMPNS, SO_RCVBUFFORCE
TYPE = b"\x88\xb5"  # for experiments


def frame(number, length):
    """The number stands in it many times over, so that one flipped bit does not hide it."""
    word = struct.pack("!I", number)
    head = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02" + TYPE
    return (head + word * (length // 4))[:length]


def number_in(data):
    words = [data[at : at + 4] for at in range(14, min(len(data), 14 + 4 * 15), 4)]
    return struct.unpack("!I", max(set(words), key=words.count))[0]


def main():
    output, packets, gap, length, *options = sys.argv[1:]
    packets, gap, length = int(packets), int(gap), int(length)
    run = lambda *words: subprocess.run(words, check=True)
    run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    for end in ("near", "far"):
        run("ip", "link", "set", end, "up")
    run("tc", "qdisc", "add", "dev", "near", "root", "netem", *options)

    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    far.bind(("far", ALL))
    far.setsockopt(socket.SOL_SOCKET, TIMESTAMP, 1)
    far.setsockopt(socket.SOL_SOCKET, BUFFER, 256 << 20)
    far.setblocking(False)
    near = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    near.bind(("near", 0))

    lines = []

    def receive():
        while True:
            try:
                data, ancillary, _, _ = far.recvmsg(65536, 128)
            except BlockingIOError:
                return
            seconds, nanos = struct.unpack("qq", ancillary[0][2])
            number = number_in(data)
            if len(data) == length and number < packets:
                changed = int(data != frame(number, length))
                lines.append(f"came {number} {seconds * 10**9 + nanos} {changed}")

    at = time.time_ns()
    for number in range(packets):
        data = frame(number, length)
        while time.time_ns() < at:
            pass
        lines.append(f"sent {number} {time.time_ns()}")
        try:
            near.send(data)
        except OSError as error:  # a full queue is told
            if error.errno != errno.ENOBUFS:
                raise
        at += gap
        if number % 64 == 0:
            receive()
    # Whatever is under way comes within this time.
    end = time.time_ns() + 3 * 10**9
    while time.time_ns() < end:
        receive()
        time.sleep(0.05)
    run("ip", "link", "del", "near")
    with open(output, "w") as file:
        file.write("\n".join(lines) + "\n")


main()
