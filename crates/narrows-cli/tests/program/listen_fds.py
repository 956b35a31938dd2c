"""listen_fds.py PATH now|later PROGRAM …: listens at PATH as a service manager does, and starts PROGRAM with the socket
(sd_listen_fds(3)), at once or for the first client."""
import os
import select
import socket
import sys

path, when, *program = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(path)
os.chmod(path, 0o600)
listener.listen()
print("listening", flush=True)
if when == "later":
    select.select([listener], [], [])
if listener.fileno() == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(listener.fileno(), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="narrows.socket")
os.execv(program[0], program)
