"""Sends frames through a qdisc of this kernel and tells when each was sent and when it came.

host.py PLAN OUTPUT LENGTH DEADLINE_S COMMAND…   as root, in a network namespace of its own

Each COMMAND is a line for tc, in which `near` is the end of a veth pair through which frames go. Lines of PLAN: `NS PRIORITY`,
the instant since the first and the class identifier to which the frame's priority is set. Lines of the output: `sent NUMBER
NS`, `came NUMBER NS`. Standard library only.
"""

import errno
import socket
import struct
import subprocess
import sys
import threading
import time

ALL, TIMESTAMP, BUFFER = 3, 35, 33  # ETH_P_ALL, SO_TIMESTAMPNS, SO_RCVBUFFORCE
TYPE = b"\x88\xb5"  # for experiments
HEAD = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02" + TYPE


def main():
    plan, output, length, deadline, *commands = sys.argv[1:]
    length, deadline = int(length), float(deadline)
    run = lambda *words: subprocess.run(words, check=True)
    run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    for end in ("near", "far"):
        run("ip", "link", "set", end, "up")
    for command in commands:
        run("tc", *command.split())

    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    far.bind(("far", ALL))
    far.setsockopt(socket.SOL_SOCKET, TIMESTAMP, 1)
    far.setsockopt(socket.SOL_SOCKET, BUFFER, 256 << 20)
    far.settimeout(0.2)

    with open(plan) as file:
        frames = [tuple(map(int, line.split())) for line in file]
    nears = {}
    for _, priority in frames:
        if priority not in nears:
            near = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            near.bind(("near", 0))
            near.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
            # A socket that waits for its own frames would hold back the others.
            near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            near.setblocking(False)
            nears[priority] = near

    came, sending = [], True

    def receive():
        while True:
            try:
                data, ancillary, _, _ = far.recvmsg(65536, 128)
            except TimeoutError:
                if not sending:
                    return
                continue
            seconds, nanos = struct.unpack("qq", ancillary[0][2])
            if len(data) == length and data[12:14] == TYPE:
                came.append((struct.unpack("!I", data[14:18])[0], seconds * 10**9 + nanos))

    receiver = threading.Thread(target=receive)
    receiver.start()
    rest = b"\x00" * (length - 18)
    sent, refused = [], 0
    begin = time.time_ns() + 50_000_000
    for number, (offset, priority) in enumerate(frames):
        data = HEAD + struct.pack("!I", number) + rest
        while time.time_ns() < begin + offset:
            time.sleep(0)
        sent.append(time.time_ns())
        try:
            nears[priority].send(data)
        except OSError as error:  # a full queue is told
            if error.errno not in (errno.ENOBUFS, errno.EAGAIN):
                raise
            refused += error.errno == errno.EAGAIN
    time.sleep(deadline)
    sending = False
    receiver.join()
    assert refused == 0, f"the sender's buffer was full {refused} times"
    with open(output, "w") as file:
        file.writelines(f"sent {number} {at}\n" for number, at in enumerate(sent))
        file.writelines(f"came {number} {at}\n" for number, at in came)


main()
