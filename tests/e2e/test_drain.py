"""SIGTERM: what is in flight is answered, what comes meanwhile is not lost, and it ends."""
import os
import signal
import socket
import threading
import time

import pytest

import fastcgi
import harness
import http1


@pytest.fixture
def kept(make_hanji):
    """A server on a listening socket that the test keeps, as a service manager does."""
    hanji = make_hanji(start=False)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(hanji.socket))
    os.chmod(hanji.socket, 0o666)
    listener.listen(4096)
    hanji.start(listener=listener)
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    yield hanji, listener
    hanji.stop()
    listener.close()


class Load(threading.Thread):
    """PUTs and POSTs through nginx, small ones and some of up to 300 kB, and what became of each."""

    def __init__(self, port, token, number, tls=None):
        super().__init__(daemon=True)
        self.link = http1.Link("127.0.0.1", port, tls)
        self.headers = {"Authorization": "Bearer " + token}
        self.number = number
        self.stopped = threading.Event()
        self.acknowledged = {}
        self.count, self.odd = 0, []

    @staticmethod
    def body(key, count):
        return key.encode() + b"x" * (0 if count % 7 else count * 1000 % 300000)

    def run(self):
        while not self.stopped.is_set():
            self.count += 1
            key = "/docs/load%d/%d" % (self.number, self.count)
            try:
                if self.count % 2:      # nginx never repeats a POST
                    answer = self.link.once("POST", key, self.body(key, self.count), self.headers)
                    good = answer.status == 405
                else:
                    answer = self.link.once("PUT", key, self.body(key, self.count), self.headers)
                    good = answer.status == 201
                    if good:
                        self.acknowledged[key] = answer.header("ETag")
                if not good:
                    self.odd.append((key, answer))
            except OSError as error:
                self.odd.append((key, error))
        self.link.close()


def check_nothing_lost(site_hanji, nginx, loads, mark):
    total = 0
    for load in loads:
        assert load.odd == [], "%d of %d: %r" % (len(load.odd), load.count, load.odd[:5])
        total += load.count
        for key, tag in load.acknowledged.items():
            got = site_hanji.ask("GET", key)
            count = int(key.rpartition("/")[2])
            assert (got.status, got.body, got.header("etag")) == (200, Load.body(key, count), tag)
    with open(nginx.errors) as log:
        log.seek(mark)
        upstream = [line for line in log if "upstream" in line]
    assert upstream == [], "nginx noticed: %s" % upstream[:3]
    repeated = [line for line in nginx.access.read_text().splitlines() if "," in line.split()[2]]
    assert repeated == [], "nginx repeated: %s" % repeated[:3]
    return total


def test_stops_and_starts_under_load_lose_nothing(kept, base, certificate):
    hanji, listener = kept
    nginx = harness.Nginx(base / "drain-nginx", hanji, certificate)
    nginx.start()
    try:
        loads = [Load(nginx.port, hanji.token, i) for i in range(6)]
        mark = nginx.errors.stat().st_size
        for load in loads:
            load.start()
        for _ in range(4):
            time.sleep(0.5)
            hanji.stop(expect=0)
            hanji.start(listener=listener)
        time.sleep(0.3)
        for load in loads:
            load.stopped.set()
        for load in loads:
            load.join(30)
        assert check_nothing_lost(hanji, nginx, loads, mark) > 500
    finally:
        nginx.stop()


def test_a_terminated_worker_is_replaced_and_loses_nothing(kept, base, certificate):
    """SIGTERM to the worker alone: it drains, the supervisor starts another."""
    hanji, _ = kept
    nginx = harness.Nginx(base / "drain2-nginx", hanji, certificate)
    nginx.start()
    try:
        loads = [Load(nginx.port, hanji.token, 10 + i) for i in range(4)]
        mark = nginx.errors.stat().st_size
        for load in loads:
            load.start()
        for _ in range(2):
            time.sleep(0.4)
            old = hanji.worker()
            hanji.expect_new_worker()
            os.kill(old, signal.SIGTERM)
            harness.wait_for("the old worker's end", lambda: not harness.alive(old), 20)
            hanji.wait_healthy()
            assert hanji.worker() != old
        for load in loads:
            load.stopped.set()
        for load in loads:
            load.join(30)
        check_nothing_lost(hanji, nginx, loads, mark)
    finally:
        nginx.stop()


def draining(hanji):
    """Tells the server to stop; returns once it no longer accepts."""
    hanji.process.send_signal(signal.SIGTERM)
    time.sleep(0.15)


@pytest.mark.smoke
def test_idle_connections_are_served_and_not_closed_first(make_hanji):
    hanji = make_hanji(drain_timeout="10s")
    idle = [hanji.client() for _ in range(3)]
    for client in idle:
        assert client.ask("GET", "/health").status == 200
    draining(hanji)
    for client in idle:
        assert client.silent(0.1), "nothing is sent to and nothing closed under an idle connection"
    for i, client in enumerate(idle):
        assert client.ask("PUT", "/docs/k%d" % i, hanji.token, body=b"x").status == 201
        behind = client.record(1)
        assert (behind.version, behind.kind, behind.rid, len(behind.content)) == (1, fastcgi.UNKNOWN_TYPE, 0, 8)
        assert client.silent(0.1), "and the connection is still open"
    assert hanji.process.poll() is None
    for client in idle:
        client.close()
    assert hanji.process.wait(3) == 0
    hanji.stop()
    hanji.start()
    assert hanji.rows("SELECT count(*) FROM doc") == [(3,)]


def test_the_record_behind_comes_in_the_same_piece(make_hanji):
    """END_REQUEST and it arrive together: whoever reads the one has the other."""
    hanji = make_hanji(drain_timeout="10s")
    with hanji.client() as client:
        client.ask("GET", "/health")
        draining(hanji)
        client.send(fastcgi.request("GET", "/health"))
        data = client.sock.recv(65536)
        assert data[-16:] == fastcgi.record(fastcgi.UNKNOWN_TYPE, data[-8:], rid=0)
        assert data[-32:-24] == fastcgi.record(fastcgi.END, bytes(8))[:8]
    assert hanji.process.wait(3) == 0


@pytest.mark.alone
def test_without_connections_it_ends_at_once(make_hanji):
    hanji = make_hanji()
    start = time.monotonic()
    hanji.process.send_signal(signal.SIGTERM)
    assert hanji.process.wait(5) == 0
    assert time.monotonic() - start < (5 if harness.sanitized() else 1)


def test_a_connection_that_stays_is_given_up_at_the_drain_timeout(make_hanji):
    hanji = make_hanji(drain_timeout="700ms")
    with hanji.client() as client:
        client.ask("GET", "/health")
        start = time.monotonic()
        hanji.process.send_signal(signal.SIGTERM)
        assert hanji.process.wait(5) == 0
        assert 0.5 < time.monotonic() - start < 3


def test_requests_in_flight_are_answered(make_hanji, slow):
    slow.set()
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    slow.set(sync_ms=300)
    clients = [hanji.client(10) for _ in range(10)]
    half = clients.pop()
    for i, client in enumerate(clients):
        client.send(fastcgi.request("PUT", "/docs/k%d" % i, hanji.token, body=b"%d" % i))
    data = fastcgi.request("PUT", "/docs/half", hanji.token, body=b"half")
    half.send(data[:100])
    time.sleep(0.05)
    hanji.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    half.send(data[100:])
    assert [client.answer().status for client in clients] == [201] * 9
    assert half.answer().status == 201
    for client in clients + [half]:
        client.close()
    slow.set()
    assert hanji.process.wait(5) == 0
    hanji.stop()
    assert hanji.rows("SELECT count(*) FROM doc") == [(10,)]


def test_sigint_stops_too(make_hanji):
    hanji = make_hanji()
    hanji.process.send_signal(signal.SIGINT)
    assert hanji.process.wait(5) == 0


def test_twice_sigterm_is_no_crash(make_hanji):
    hanji = make_hanji(drain_timeout="500ms")
    with hanji.client() as client:
        client.ask("GET", "/health")
        hanji.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        hanji.process.send_signal(signal.SIGTERM)
        assert hanji.process.wait(5) in (0, -signal.SIGTERM)


def test_the_socket_that_was_passed_stays(kept):
    hanji, listener = kept
    hanji.stop()
    assert hanji.socket.exists()
    waiting = fastcgi.Client(hanji.socket, 10)
    waiting.send(fastcgi.request("GET", "/health"))
    hanji.start(listener=listener)
    assert waiting.answer().status == 200, "who came in between was kept waiting, not lost"
    waiting.close()


def test_its_own_socket_is_made_anew(make_hanji):
    """A socket file left by a crash does not stop the next start."""
    hanji = make_hanji()
    hanji.process.kill()
    hanji.process.wait()
    hanji.stop(expect=None)
    hanji.start()
    assert hanji.ask("GET", "/health").status == 200
