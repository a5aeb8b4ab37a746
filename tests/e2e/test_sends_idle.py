"""What sending costs when nothing is sent: no process, no wake-up; and what it costs the server at any time: no memory of its own."""
import http.server
import os
import pathlib
import re
import signal
import threading
import time

import pytest

import harness
from test_nudge import switches


class Receiver(http.server.ThreadingHTTPServer):
    """Takes everything; `deaf`: answers 500."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", harness.free_port()), Handler)
        self.deaf = False
        self.ids = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return "http://127.0.0.1:%d/" % self.server_port


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.deaf:
            self.server.ids.append(self.headers["webhook-id"])
        self.send_response(500 if self.server.deaf else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def sender(make_hanji, receiver):
    hanji = make_hanji(start=False, courier_idle="150ms", retry_first="2s", drain_timeout="200ms",
                       read_cache="64k", write_cache="64k")
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    hanji.command("key", "new")
    hanji.command("line", "add", "l", receiver.url(), "--allow-private")
    return hanji


def couriers(hanji):
    return [pid for pid in harness.children(hanji.pid) if b"hanji-courier" in b" ".join(harness.command_line(pid)[:1])]


def send(hanji, body=b"x"):
    answer = hanji.ask("POST", "/sends/l", body=body, extra={"CONTENT_TYPE": "text/plain"})
    assert answer.status == 202, answer
    return answer


def delivered(hanji, receiver, count):
    harness.wait_for("%d deliveries" % count, lambda: len(receiver.ids) >= count, 20)


def left(hanji):
    harness.wait_for("the courier's end", lambda: not couriers(hanji))


def test_after_the_last_delivery_there_is_no_process_and_nothing_wakes(sender, receiver):
    send(sender)
    delivered(sender, receiver, 1)
    left(sender)
    assert harness.children(sender.pid) == [sender.worker()]
    assert sender.status()["sends"] == {"lines": 1, "disabled": 0, "waiting": 0, "parked": 0, "courier": False}

    def asleep():
        before = [switches(pid) for pid in (sender.pid, sender.worker())]
        time.sleep(1)
        return before == [switches(pid) for pid in (sender.pid, sender.worker())]
    harness.wait_for("a second without a wake-up", asleep, 15)
    assert couriers(sender) == []


def test_what_is_to_be_tried_again_later_needs_no_process_meanwhile(sender, receiver):
    receiver.deaf = True
    send(sender)
    harness.wait_for("a try", lambda: sender.rows("SELECT count(*) FROM attempt")[0][0] == 1)
    left(sender)
    status = sender.status()["sends"]
    assert status["waiting"] == 1 and not status["courier"]
    assert 0 < status["due_ms"] - time.time() * 1000 <= 2000
    receiver.deaf = False
    delivered(sender, receiver, 1)
    assert time.time() * 1000 >= status["due_ms"]


def test_a_line_that_is_paused_starts_nothing(sender, receiver):
    sender.command("line", "pause", "l")
    left(sender)
    send(sender)
    time.sleep(0.3)
    assert couriers(sender) == [] and receiver.ids == []
    sender.command("line", "resume", "l")
    delivered(sender, receiver, 1)


def test_status_says_that_a_courier_runs(sender, receiver):
    sender.settings["courier_idle"] = "30s"
    sender.write_conf()
    sender.process.send_signal(signal.SIGUSR2)
    old = sender.known_worker
    harness.wait_for("the old worker's end", lambda: not harness.alive(old))
    sender.known_worker = sender.worker()
    send(sender)
    delivered(sender, receiver, 1)
    assert sender.status()["sends"]["courier"] is True
    assert b"\nhanji_courier 1\n" in sender.ask("GET", "/metrics").body


def test_the_server_has_nothing_of_the_library_and_no_memory_for_sends(sender, receiver):
    worker = sender.worker()
    with sender.client() as client:
        for number in range(300):
            assert client.ask("PUT", "/docs/k/%d" % number, sender.token, body=b"y" * 1000).status == 201
            assert client.ask("POST", "/sends/l", sender.token, body=b"y" * 1000, extra={"CONTENT_TYPE": "text/plain"}).status == 202
        before = harness.resident_bytes(worker)
        for number in range(600):
            assert client.ask("POST", "/sends/l", sender.token, body=b"y" * 1000, extra={"CONTENT_TYPE": "text/plain"}).status == 202
    delivered(sender, receiver, 900)
    grown = harness.resident_bytes(worker) - before
    if not harness.sanitized():     # those keep what was freed
        assert grown < 600 << 10
    for pid in (worker, sender.pid):
        maps = pathlib.Path("/proc/%d/maps" % pid).read_text()
        assert not re.search(r"lib(curl|ssl|crypto)\b", maps)
    for pid in couriers(sender):
        assert "libcurl" in pathlib.Path("/proc/%d/maps" % pid).read_text() or os.geteuid() != 0
