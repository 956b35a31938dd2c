"""That `narrows shell --virtual`, the command given, is a shell at a terminal: it has the window's size; at its prompt virtual
time keeps to real time, and does not make up for what was computed; while a command runs it rushes on; the terminal is put
back; the exit status is the shell's."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE = 50  # seconds of real time: for a machine under any load

person, programs = pty.openpty()
fcntl.ioctl(programs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
before = termios.tcgetattr(programs)
process = os.fork()
if process == 0:
    os.setsid()
    fcntl.ioctl(programs, termios.TIOCSCTTY, 0)
    for descriptor in range(3):
        os.dup2(programs, descriptor)
    os.environ.update(SHELL="/bin/sh", PS1="ready: ")
    os.execvp(sys.argv[1], sys.argv[1:])

seen = ""


def until(pattern):
    """What the shell says, up to what matches and with it."""
    global seen
    end = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, seen)):
        ready, _, _ = select.select([person], [], [], max(0, end - time.monotonic()))
        if not ready:
            sys.exit(f"{pattern!r} was not said within {PATIENCE} s, but {seen!r}")
        seen += os.read(person, 4096).decode()
    seen = seen[found.end() :]
    return found


def say(line):
    os.write(person, line.encode() + b"\r")


def clock():
    """What the guest's clock shows, in seconds."""
    say("date +%s.%N")
    shown = float(until(r"(\d+\.\d{9})")[1])
    until("ready: ")
    return shown


until("ready: ")
say("stty size")
until("40 100")
until("ready: ")
real, virtual = time.monotonic(), clock()
while time.monotonic() < real + 2:
    time.sleep(0.4)
    passed, shown = time.monotonic() - real, clock() - virtual
    real_after = time.monotonic() - real
    # No further than real time, but for the looks at a prompt and what a command takes; and on.
    assert shown < real_after + 0.3, f"{shown} s of virtual time in {real_after} s at the prompt"
assert shown > 0.2, f"{shown} s of virtual time in {passed} s at the prompt"
virtual = clock()
say("sleep 2000; echo wok'en'")
until("woken")
assert clock() - virtual > 2000
say("exit 7")
status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
assert status == 7, status
assert termios.tcgetattr(programs) == before, "the terminal was not put back"
print("as a terminal")
