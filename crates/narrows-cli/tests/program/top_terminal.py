"""A program on a terminal of its own, with a screen that can be read: ROWS COLUMNS STEPS -- COMMAND. STEPS is JSON, a list of
[what the screen or the output is to say, what is then typed or done]; `!signal NAME` signals the program, `!shell LINE` runs a
line, `!size ROWS COLUMNS` changes the terminal's size, `!hangup` takes the terminal away, `!show` prints the screen. Prints the exit status, and whether the
terminal is set as it was and shows its first screen."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 50  # seconds: for a machine under any load


class Screen:
    """As much of a terminal as ratatui draws on: text, places, erasing, a second screen."""

    SEQUENCE = re.compile(rb"\x1b\[([?<>=]?)([0-9;]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[78=>]")

    def __init__(self, rows, columns):
        self.second, self.cursor, self.rest = False, [0, 0], b""
        self.size(rows, columns)

    def size(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def take(self, data):
        data, self.rest = self.rest + data, b""
        at = 0
        while at < len(data):
            if data[at] == 0x1B:
                found = self.SEQUENCE.match(data, at)
                if not found:
                    if len(data) - at < 32:
                        self.rest = data[at:]
                        return
                    at += 1
                    continue
                self.sequence(found)
                at = found.end()
                continue
            length = 1 if data[at] < 0x80 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
            if at + length > len(data):
                self.rest = data[at:]
                return
            self.put(data[at : at + length].decode(errors="replace"))
            at += length

    def put(self, character):
        row, column = self.cursor
        if character == "\r":
            self.cursor[1] = 0
        elif character == "\n":
            self.cursor[0] = min(row + 1, self.rows - 1)
        elif character >= " " and row < self.rows:
            if column < self.columns:
                self.cells[row][column] = character
            self.cursor[1] += 1

    def sequence(self, found):
        private, numbers, letter = found.group(1) or b"", found.group(2) or b"", found.group(3)
        numbers = [int(number) for number in numbers.split(b";") if number]
        if letter == b"H":
            row, column = (numbers + [1, 1])[:2] if numbers else (1, 1)
            self.cursor = [row - 1, column - 1]
        elif letter == b"J":
            self.clear()
        elif private and letter in b"hl" and 1049 in numbers:
            self.second = letter == b"h"
            self.clear()


rows, columns, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
command = sys.argv[sys.argv.index("--") + 1 :]
person, program = pty.openpty()
fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
before = termios.tcgetattr(program)
child = subprocess.Popen(
    command,
    stdin=program,
    stdout=program,
    stderr=program,
    start_new_session=True,
    preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
)
screen, said = Screen(rows, columns), b""


def read(until):
    """Takes what comes until something holds; whether it does before patience ends."""
    global said
    end = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > end:
            return False
        if select.select([person], [], [], 0.05)[0]:
            data = os.read(person, 65536)
            said += data
            screen.take(data)
    return True


for awaited, deed in steps:
    if not read(lambda: awaited in screen.text()):
        child.kill()
        sys.exit(f"{awaited!r} was not shown within {PATIENCE} s, but\n{screen.text()}\nstatus {child.poll()}")
    kind, _, rest = deed.partition(" ")
    if kind == "!signal":
        child.send_signal(getattr(signal, rest))
    elif kind == "!shell":
        subprocess.run(rest, shell=True, check=True, stdin=subprocess.DEVNULL)
    elif kind == "!size":
        rows, columns = map(int, rest.split())
        screen.size(rows, columns)
        # The kernel signals it. A second signal while the next key arrives would delay that key until another one: crossterm
        # reads either the signal or the terminal.
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    elif kind == "!hangup":
        os.close(person)
        print("status", child.wait(PATIENCE))
        sys.exit()
    elif kind == "!show":
        while select.select([person], [], [], 0.1)[0]:
            screen.take(os.read(person, 65536))
        print(screen.text())
        print("=" * columns, flush=True)
    else:
        os.write(person, deed.encode())

if not read(lambda: child.poll() is not None):
    child.kill()
    sys.exit(f"it has not ended within {PATIENCE} s:\n{screen.text()}")
read(lambda: not select.select([person], [], [], 0)[0])
print(screen.text().strip())
print("status", child.returncode)
print("terminal", "as before" if termios.tcgetattr(program) == before and not screen.second else "changed")
