"""The courier's process: when it is started and by whom, what it is given, and how it ends with the server.

The program is a script of these tests; that the real one delivers is told elsewhere.
"""
import os
import pathlib
import signal
import socket
import stat
import time

import pytest

import harness
from test_handover import hand_over, replace_program

SCRIPT = """#!/usr/bin/python3
import os, signal, socket, sys
base = os.path.dirname(os.path.abspath(sys.argv[0]))
def left(*_):
    open(base + "/left", "a").write("%d\\n" % os.getpid())
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if os.path.exists(base + "/stubborn") else left)
nudges = socket.socket(fileno=int(os.environ["HANJI_COURIER_FD"]))
nudges.setblocking(True)
print("courier %d %r" % (os.getpid(), sys.argv[1:]), file=sys.stderr, flush=True)
if os.path.exists(base + "/fails"):
    sys.exit(3)
while nudges.recv(100) != b"leave":
    pass
"""


class Courier:
    """A server with the script for a courier, kept in a folder beside it."""

    def __init__(self, make_hanji, **settings):
        self.hanji = make_hanji(start=False)
        self.folder = self.hanji.base / "courier"
        self.folder.mkdir()
        program = self.folder / "program"
        program.write_text(SCRIPT)
        program.chmod(0o755)
        self.hanji.settings["courier"] = program
        self.hanji.settings.update(settings)
        self.hanji.write_conf()
        self.socket = pathlib.Path("%s.courier" % self.hanji.database)
        self.program = program

    def start(self):
        self.hanji.start()
        return self

    def nudge(self, data=b"n"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.sendto(data, str(self.socket))

    def pids(self):
        return [pid for pid in harness.children(self.hanji.pid) if str(self.program).encode() in harness.command_line(pid)]

    def started(self, but=None):
        """The pid of the one that runs and has said so, which is not `but`."""
        def said():
            return [pid for pid in self.pids() if pid != but and "courier %d " % pid in self.hanji.log.read_text()]
        return harness.wait_for("a courier", said)[0]

    def left(self):
        path = self.folder / "left"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture
def courier(make_hanji):
    return Courier(make_hanji).start()


def gone(pid, timeout=10):
    harness.wait_for("the courier's end", lambda: not harness.alive(pid), timeout)


def test_a_datagram_starts_it(courier):
    assert courier.pids() == []
    assert stat.S_IMODE(courier.socket.stat().st_mode) == 0o600
    courier.nudge()
    pid = courier.started()
    assert "courier %d ['-c', '%s']" % (pid, courier.hanji.conf) in courier.hanji.log.read_text()
    courier.nudge()
    courier.nudge()
    time.sleep(0.05)
    assert courier.pids() == [pid], "one is enough"


def test_it_has_no_descriptor_but_its_own(courier):
    courier.nudge()
    pid = courier.started()
    assert harness.descriptors(pid) == 4, os.listdir("/proc/%d/fd" % pid)


def test_one_that_has_left_is_started_by_the_next_datagram(courier):
    courier.nudge()
    first = courier.started()
    courier.nudge(b"leave")
    gone(first)
    time.sleep(0.05)
    assert courier.pids() == []
    courier.nudge()
    courier.started()


def test_one_that_was_killed_is_started_again_by_itself(courier):
    courier.nudge()
    first = courier.started()
    os.kill(first, signal.SIGKILL)
    second = courier.started(but=first)
    assert courier.hanji.log.read_text().count("the courier ended; it is started again") == 1
    assert harness.alive(second)


def test_one_that_fails_is_not_started_all_the_time(courier):
    (courier.folder / "fails").touch()
    mark = courier.hanji.mark()
    courier.nudge()
    time.sleep(0.9)             # pauses of 100, 200, 400 and 800 ms
    starts = courier.hanji.log_since(mark).count("courier ended")
    assert 1 <= starts <= 4
    (courier.folder / "fails").unlink()
    courier.started()
    assert courier.hanji.ask("GET", "/health").status == 200


def test_a_program_that_is_not_there_is_an_error_in_the_log(courier):
    courier.hanji.expected.append("cannot be started")
    courier.program.rename(courier.folder / "away")
    mark = courier.hanji.mark()
    courier.nudge()
    harness.wait_for("a word", lambda: "the courier cannot be started" in courier.hanji.log_since(mark))
    (courier.folder / "away").rename(courier.program)
    courier.started()


def test_the_end_of_the_worker_is_not_its_end(courier):
    courier.nudge()
    pid = courier.started()
    courier.hanji.expect_new_worker()
    worker = courier.hanji.worker()
    os.kill(worker, signal.SIGKILL)
    harness.wait_for("another worker", lambda: courier.hanji.workers() not in ([], [worker]))
    assert courier.pids() == [pid]


def test_it_ends_with_the_server_and_first(courier):
    courier.nudge()
    pid = courier.started()
    with courier.hanji.client() as client:      # an open connection: the worker would drain for a while
        courier.hanji.process.send_signal(signal.SIGTERM)
        gone(pid, 2)
        assert courier.left() == [pid]
        client.close()
    courier.hanji.stop()
    assert not courier.socket.exists()


def test_one_that_does_not_want_to_end_is_killed(make_hanji):
    courier = Courier(make_hanji, drain_timeout="10s").start()
    (courier.folder / "stubborn").touch()
    courier.nudge()
    pid = courier.started()
    courier.hanji.stop(timeout=20)
    assert not harness.alive(pid)


def test_it_ends_when_its_supervisor_is_killed(courier):
    courier.nudge()
    pid = courier.started()
    os.kill(courier.hanji.pid, signal.SIGKILL)
    gone(pid)
    assert courier.left() == [pid]
    courier.hanji.stop(expect=-signal.SIGKILL)
    courier.start()             # the socket that was left is no hindrance
    courier.nudge()
    courier.started()


def test_a_hand_over_replaces_it(courier):
    hanji = courier.hanji
    hanji.stop()
    hanji.binary = hanji.base / "program"
    replace_program(hanji)
    courier.start()
    courier.nudge()
    first = courier.started()
    supervisor = hanji.pid
    replace_program(hanji)
    hand_over(hanji)
    second = courier.started(but=first)
    assert courier.left() == [first]
    assert hanji.pid == supervisor and harness.alive(supervisor)
    courier.nudge(b"leave")
    gone(second)
    replace_program(hanji)
    hand_over(hanji)
    assert courier.pids() == [], "none ran: none is started"
    courier.nudge()
    courier.started()


def test_none_has_no_socket(make_hanji):
    courier = Courier(make_hanji, courier="none").start()
    assert not courier.socket.exists()


def test_a_file_in_the_sockets_place_is_left_and_the_server_serves(make_hanji):
    courier = Courier(make_hanji)
    courier.hanji.expected.append("no courier can be started")
    courier.socket.write_text("mine")
    courier.start()
    assert courier.socket.read_text() == "mine"
    assert "left as it is" in courier.hanji.log.read_text()
