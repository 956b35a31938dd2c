"""That the command given ends when its terminal is gone, of which the kernel tells it alone, and none of the processes that it
has started; prints its exit status."""

import os
import pty
import select
import sys
import time

PATIENCE = 50  # seconds: for a machine under any load

process, person = pty.fork()
if process == 0:
    os.environ["PS1"] = "ready: "
    os.execvp(sys.argv[1], sys.argv[1:])

end = time.monotonic() + PATIENCE
said = b""
while b"ready" not in said:
    ready, _, _ = select.select([person], [], [], max(0, end - time.monotonic()))
    if not ready:
        sys.exit(f"it was not ready within {PATIENCE} s, but said {said!r}")
    said += os.read(person, 4096)
os.close(person)
while time.monotonic() < end:
    ended, status = os.waitpid(process, os.WNOHANG)
    if ended:
        print(os.waitstatus_to_exitcode(status))
        sys.exit()
    time.sleep(0.05)
os.kill(process, 9)
sys.exit(f"it has not ended within {PATIENCE} s")
