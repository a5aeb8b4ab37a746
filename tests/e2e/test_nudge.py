"""The server wakes the courier when something is due, and nothing wakes the server while nothing is.

The courier is the script of test_courier_process.py, which only notes that it was started; lines are rows of the table `line`, put
there while no server runs.
"""
import os
import pathlib
import time

import pytest

import harness
from test_courier_process import Courier, gone


def add_line(hanji, due_in, name="l"):
    """A line whose next message is due in so many seconds, None: never."""
    due = None if due_in is None else int((time.time() + due_in) * 1000)
    link = hanji.sqlite(readonly=False)
    try:
        link.execute("INSERT INTO line (name, url, due, created) VALUES (?, 'https://example.org/', ?, 1)", (name, due))
    finally:
        link.close()


@pytest.fixture
def made(make_hanji):
    """The file is there, the server does not run."""
    courier = Courier(make_hanji, drain_timeout="200ms").start()
    courier.hanji.stop()
    return courier


def switches(pid):
    """How often a thread of the process has gone to sleep: it cannot wake without doing it again.

    Of a sanitized one the first thread: the sanitizer has one of its own, which wakes all the time.
    """
    total = 0
    threads = "/proc/%d/task/%d" % (pid, pid) if harness.sanitized() else ""
    for task in [pathlib.Path(threads)] if threads else pathlib.Path("/proc/%d/task" % pid).iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def test_what_was_due_before_the_start_is_delivered_at_the_start(made):
    add_line(made.hanji, -3600)
    made.start()
    made.started()


def test_what_is_due_later_is_delivered_then(made):
    add_line(made.hanji, 100000, "late")
    add_line(made.hanji, 1.2)
    made.start()
    assert made.pids() == []
    from_s = time.monotonic()
    made.started()
    assert time.monotonic() - from_s > 0.3


def test_nothing_due_starts_nothing(made):
    add_line(made.hanji, None)
    made.start()
    assert made.hanji.ask("PUT", "/docs/k", body=b"x").status in (201, 401)
    time.sleep(0.2)
    assert made.pids() == []


def test_nothing_wakes_while_nothing_is_due(made):
    add_line(made.hanji, None)
    add_line(made.hanji, 100000, "late")
    made.start()
    time.sleep(1.5)     # what a start leaves: idle steps of the writer
    both = (made.hanji.pid, made.hanji.worker())

    def asleep():
        before = [switches(pid) for pid in both]
        time.sleep(1)
        return before == [switches(pid) for pid in both]
    harness.wait_for("a second without a wake-up", asleep, 15)


def test_a_socket_that_is_not_there_is_told_once(make_hanji):
    hanji = make_hanji(start=False, courier="none")
    hanji.start()
    hanji.stop()
    add_line(hanji, -1)
    hanji.start()
    harness.wait_for("a word", lambda: "the courier cannot be woken" in hanji.log.read_text())
    assert hanji.log.read_text().count("cannot be woken") == 1
    assert hanji.ask("GET", "/health").status == 200


def test_a_socket_of_somebody_else_is_used(make_hanji, base):
    """As under systemd: the supervisor neither makes nor reads it."""
    import socket
    path = base / "systemds.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unit:
        unit.bind(str(path))
        unit.settimeout(10)
        hanji = make_hanji(start=False, courier="none", courier_socket=path)
        hanji.start()
        hanji.stop()
        add_line(hanji, -1)
        hanji.start()
        assert unit.recv(100) == b"n"
        assert harness.children(hanji.pid) == [hanji.worker()]
        hanji.stop()
    assert path.exists(), "it is not ours"
    os.unlink(path)


def test_one_that_left_with_work_undone_is_woken_again_by_a_commit_only(made):
    """It was woken and did nothing: a minute is waited, and no process spins."""
    add_line(made.hanji, -1)
    made.start()
    first = made.started()
    made.nudge(b"leave")
    gone(first)
    time.sleep(0.5)
    assert made.pids() == []
