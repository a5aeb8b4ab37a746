"""listenfds.py FD COMMAND…: becomes COMMAND with the listening socket FD passed the way a service manager does."""
import os
import sys

fd = int(sys.argv[1])
if fd != 3:
    os.dup2(fd, 3)
    os.close(fd)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
