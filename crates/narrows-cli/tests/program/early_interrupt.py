"""That Ctrl-C at a terminal ends the command given at whatever moment it comes, also before the command has started its own
program: tries many moments; prints the exit statuses."""

import os
import pty
import sys
import time

PATIENCE = 20  # seconds: for a machine under any load

statuses = set()
for after in (0.02, 0.05, 0.08, 0.11, 0.15, 0.2, 0.3):
    process, person = pty.fork()
    if process == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    time.sleep(after)
    os.write(person, b"\x03")
    end = time.monotonic() + PATIENCE
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            statuses.add(os.waitstatus_to_exitcode(status))
            break
        if time.monotonic() > end:
            os.kill(process, 9)
            sys.exit(f"Ctrl-C after {after} s: it has not ended within {PATIENCE} s")
        time.sleep(0.02)
    os.close(person)
print(*sorted(statuses))
