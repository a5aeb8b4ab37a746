"""SIGUSR2: a new worker takes over from the old one, from the program now on disk; or nothing changes."""
import os
import shutil
import signal
import time

import pytest

import fastcgi
import harness
from test_drain import Load, check_nothing_lost


@pytest.fixture
def hanji(make_hanji):
    """A server whose program is a copy that a test can replace."""
    hanji = make_hanji(start=False)
    hanji.binary = hanji.base / "program"
    shutil.copy(harness.BINARY, hanji.binary)
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    return hanji


def replace_program(hanji, data=None):
    """Puts another file in the program's place, as an upgrade does; by default the same program again."""
    new = hanji.base / "program.new"
    if data is None:
        shutil.copy(harness.BINARY, new)
    else:
        new.write_bytes(data)
        new.chmod(0o755)
    new.rename(hanji.binary)


def hand_over(hanji, timeout=20):
    """Asks for it and waits until the new worker answers alone."""
    old = hanji.worker()
    hanji.process.send_signal(signal.SIGUSR2)
    harness.wait_for("the old worker's end", lambda: not harness.alive(old), timeout)
    hanji.known_worker = new = hanji.worker()
    assert new != old
    time.sleep(0.02)            # until the supervisor has seen that end, too: only then it takes up another
    return new


def stays(hanji, word):
    """Asks for a hand-over that cannot succeed: the same worker goes on, the log says why."""
    old, mark = hanji.worker(), hanji.mark()
    hanji.expected.append("new worker|cannot be started")
    hanji.process.send_signal(signal.SIGUSR2)
    harness.wait_for("a word about it", lambda: word in hanji.log_since(mark), 10)
    time.sleep(0.1)
    assert hanji.workers() == [old]
    assert hanji.ask("GET", "/health").status == 200


def test_a_new_worker_under_the_same_supervisor(hanji):
    put = hanji.ask("PUT", "/docs/k", body=b"x")
    supervisor = hanji.pid
    replace_program(hanji)
    worker = hand_over(hanji)
    status = hanji.status()
    assert (status["pid"], status["supervisor_pid"]) == (worker, supervisor)
    assert os.readlink("/proc/%d/exe" % worker) == str(hanji.binary), "from the file on disk, not the deleted one"
    assert os.readlink("/proc/%d/exe" % supervisor) == str(hanji.binary)
    assert hanji.ask("GET", "/docs/k").header("etag") == put.header("etag")
    again = hanji.ask("PUT", "/docs/k", body=b"y")
    assert int(again.header("etag").strip('"')) == int(put.header("etag").strip('"')) + 1
    assert hanji.command("token", "list").returncode == 0, "the control socket answers"


def test_under_load_nothing_is_lost(hanji, base, certificate):
    os.chmod(hanji.socket, 0o666)
    nginx = harness.Nginx(base / "handover-nginx", hanji, certificate)
    nginx.start()
    try:
        loads = [Load(nginx.port, hanji.token, i) for i in range(6)]
        mark = nginx.errors.stat().st_size
        for load in loads:
            load.start()
        for _ in range(4):
            time.sleep(0.3)
            replace_program(hanji)
            hand_over(hanji)
        time.sleep(0.2)
        for load in loads:
            load.stopped.set()
        for load in loads:
            load.join(30)
        assert check_nothing_lost(hanji, nginx, loads, mark) > 500
    finally:
        nginx.stop()
    numbers = [seq for seq, in hanji.rows("SELECT seq FROM change ORDER BY rowid")]
    assert numbers == sorted(set(numbers))
    assert hanji.rows("SELECT count(*) FROM doc") == [(hanji.status()["documents"],)]


def test_a_connection_in_the_middle_of_an_upload_is_served(hanji):
    data = fastcgi.request("PUT", "/docs/k", hanji.token, body=b"x" * 100000)
    with hanji.client() as client:
        client.send(data[:50000])
        hanji.process.send_signal(signal.SIGUSR2)
        old = hanji.known_worker
        harness.wait_for("two workers", lambda: len(hanji.workers()) == 2)
        time.sleep(0.2)
        assert harness.alive(old)
        client.send(data[50000:])
        assert client.answer().status == 201
    harness.wait_for("the old worker's end", lambda: not harness.alive(old))
    hanji.known_worker = hanji.worker()
    assert hanji.ask("GET", "/docs/k").body == b"x" * 100000


def test_a_new_configuration_is_taken(hanji):
    assert hanji.status()["threads"] == 1
    hanji.settings["threads"] = 3
    hanji.write_conf()
    hand_over(hanji)
    assert hanji.status()["threads"] == 3


def test_a_wrong_configuration_changes_nothing(hanji):
    hanji.settings["threads"] = "many"
    hanji.write_conf()
    hanji.expected.append("hanji.conf")
    stays(hanji, "78")


@pytest.mark.parametrize("data", [b"#!/bin/sh\nexit 3\n", b"not a program", b"", b"#!/nonexistent\n",
                                  b"#!/bin/sh\nkill -9 $$\n"])
def test_a_broken_program_changes_nothing(hanji, data):
    replace_program(hanji, data)
    stays(hanji, "the new worker failed")
    replace_program(hanji)
    hand_over(hanji)
    assert hanji.ask("GET", "/health").status == 200


def test_a_missing_program_changes_nothing(hanji):
    hanji.binary.unlink()
    stays(hanji, "the new worker failed")
    assert hanji.ask("PUT", "/docs/k", body=b"x").status == 201


def test_a_new_worker_killed_before_it_is_ready(hanji):
    """Again and again, at different moments: somebody always answers."""
    hanji.expect_new_worker("worker")
    for pause in (0, 0.001, 0.002, 0.004, 0.008):
        before = set(hanji.workers())
        hanji.process.send_signal(signal.SIGUSR2)
        new = harness.wait_for("a new worker", lambda: set(hanji.workers()) - before, pause=0.0002)
        time.sleep(pause)
        for pid in new:
            os.kill(pid, signal.SIGKILL)
        assert hanji.ask("GET", "/health", timeout=5).status == 200
        harness.wait_for("one worker", lambda: len(hanji.workers()) == 1)
        time.sleep(0.05)        # until the supervisor has seen the end of the other, too
    assert hanji.ask("PUT", "/docs/k", body=b"x").status == 201


def test_asking_twice_is_asking_once(hanji):
    with hanji.client() as client:      # keeps the first hand-over from ending
        client.ask("GET", "/health")
        old = hanji.worker()
        hanji.process.send_signal(signal.SIGUSR2)
        harness.wait_for("two workers", lambda: len(hanji.workers()) == 2)
        time.sleep(0.1)
        hanji.process.send_signal(signal.SIGUSR2)
        time.sleep(0.2)
        assert len(hanji.workers()) == 2
    harness.wait_for("the old worker's end", lambda: not harness.alive(old))
    time.sleep(0.05)
    hand_over(hanji)


@pytest.mark.parametrize("pause", [0, 0.001, 0.003, 0.01])
def test_a_stop_goes_before_a_hand_over(hanji, pause):
    """SIGTERM right after SIGUSR2, before or after the new worker is ready: it ends."""
    hanji.process.send_signal(signal.SIGUSR2)
    time.sleep(pause)
    hanji.process.send_signal(signal.SIGTERM)
    assert hanji.process.wait(5) == 0


def test_stopping_in_the_middle(hanji):
    with hanji.client() as client:
        client.ask("GET", "/health")
        hanji.process.send_signal(signal.SIGUSR2)
        harness.wait_for("two workers", lambda: len(hanji.workers()) == 2)
        hanji.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    assert hanji.process.wait(10) == 0


def test_a_killed_worker_comes_from_the_program_that_was_handed_over(hanji):
    """After a hand-over the supervisor is the new one too, and so is every later worker."""
    replace_program(hanji)
    worker = hand_over(hanji)
    hanji.expect_new_worker()
    os.kill(worker, signal.SIGKILL)
    harness.wait_for("the worker's end", lambda: not harness.alive(worker))
    hanji.wait_healthy()
    assert os.readlink("/proc/%d/exe" % hanji.worker()) == str(hanji.binary)
