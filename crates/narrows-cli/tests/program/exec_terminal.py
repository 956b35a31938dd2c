"""A shell that the command given opens on a terminal of its own: types lines once it says what they wait for, and prints all
that was shown, and the exit status."""

import os
import pty
import select
import sys
import time

PATIENCE = 50  # seconds: for a machine under any load
LINES = [
    (b"(lab:client)", b"test -t 0 && test -t 1 && echo it is a term''inal\n"),
    (b"it is a terminal", b"sleep 1000; echo slept $?\n"),
    # A Ctrl-C, which is for the program and not for the shell.
    (b"sleep 1000", b"\x03"),
    (b"^C", b"echo still h''ere; exit 5\n"),
    (b"still here", b""),
]

process, person = pty.fork()
if process == 0:
    os.execvp(sys.argv[1], sys.argv[1:])

end = time.monotonic() + PATIENCE
said = b""
for awaited, line in LINES:
    while awaited not in said:
        if not select.select([person], [], [], max(0, end - time.monotonic()))[0]:
            os.kill(process, 9)
            sys.exit(f"{awaited!r} did not come within {PATIENCE} s: {said!r}")
        said += os.read(person, 4096)
    time.sleep(0.2)  # until the shell, or the program, has the terminal
    os.write(person, line)
while True:
    try:
        said += os.read(person, 4096)
    except OSError:
        break
print(said.decode(errors="replace"))
_, status = os.waitpid(process, 0)
print("status", os.waitstatus_to_exitcode(status))
