"""Many clients that wait, dawdle, leave or stop reading: the others do not notice, and nothing is kept of them."""
import random
import socket
import statistics
import time

import pytest

import fastcgi
import harness
from test_documents import noise


def delays(hanji, seconds=1.0, path="/health", token=None):
    """Seconds each of a row of requests took, over one connection and over a new one each time, in turn."""
    out = []
    end = time.monotonic() + seconds
    with hanji.client() as kept:
        while time.monotonic() < end:
            start = time.monotonic()
            assert kept.ask("GET", path, token).status == 200
            middle = time.monotonic()
            assert fastcgi.ask(hanji.socket, "GET", path, token).status == 200
            out += [middle - start, time.monotonic() - middle]
    return sorted(out)


def check_fast(before, during):
    """Not slower than a crowd that is not there: medians within a millisecond and a factor, no second-long wait."""
    slack = 10 if harness.sanitized() else 1
    assert statistics.median(during) < statistics.median(before) * 3 + 0.001 * slack
    assert during[int(len(during) * 0.99)] < before[int(len(before) * 0.99)] * 3 + 0.020 * slack
    assert during[-1] < 0.5 * slack


@pytest.fixture(scope="module")
def hanji(base):
    """A server that gives requests two seconds to arrive."""
    hanji = harness.Hanji(harness.unused(base / "crowd"), request_timeout="2s", write_timeout="2s", max_body="1m",
                          max_connections=4000, pool_threads=1)
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    yield hanji
    hanji.stop()


def settled(hanji, wanted, seconds=5):
    """Waits until the worker has at most this many descriptors open."""
    worker = hanji.worker()
    harness.wait_for("%d descriptors, not %d" % (wanted, harness.descriptors(worker)),
                     lambda: harness.descriptors(worker) <= wanted, seconds, 0.02)


HALVES = {
    "nothing": b"", "half a header": b"\x01\x01\x00\x01", "BEGIN": fastcgi.begin(),
    "half the PARAMS": fastcgi.request("GET", "/health")[:60],
    "no end of STDIN": fastcgi.request("GET", "/health")[:-8],
    "half a body": fastcgi.request("PUT", "/docs/k", body=b"x" * 1000)[:-500],
}


@pytest.mark.alone
def test_a_thousand_half_sent_requests(hanji):
    before = delays(hanji)
    open_before = harness.descriptors(hanji.worker())
    crowd, kinds = [], list(HALVES.values())[1:]
    start = time.monotonic()
    for i in range(1000):
        client = hanji.client()
        client.send(kinds[i % len(kinds)])
        crowd.append(client)
    during = delays(hanji)
    check_fast(before, during)
    # each is dropped after its own two seconds
    assert all(client.closed(4) for client in crowd)
    assert time.monotonic() - start < 6
    for client in crowd:
        client.close()
    settled(hanji, open_before)


@pytest.mark.alone
def test_idle_connections_are_kept_and_cost_no_time(hanji):
    before = delays(hanji)
    crowd = [hanji.client() for _ in range(2000)]
    for client in crowd[:100]:
        assert client.ask("GET", "/health").status == 200
    check_fast(before, delays(hanji))
    time.sleep(1.5)     # longer than request_timeout since the first: idle is no half-sent request
    for client in crowd[:100] + crowd[-5:]:
        assert client.ask("GET", "/health").status == 200
    for client in crowd:
        client.close()


def test_each_half_is_dropped_at_its_time(hanji):
    start = time.monotonic()
    clients = {name: hanji.client() for name in HALVES if name != "nothing"}
    for name, client in clients.items():
        client.send(HALVES[name])
    for name, client in clients.items():
        assert client.closed(5), name
        assert 1.5 < time.monotonic() - start < 3.5, name
        client.close()


def test_a_byte_now_and_then_does_not_extend_the_time(hanji):
    """The deadline is of the whole request."""
    data = fastcgi.request("GET", "/health")
    with hanji.client() as client:
        start = time.monotonic()
        with pytest.raises(fastcgi.Closed):
            for byte in data:
                client.send(bytes([byte]))
                time.sleep(0.1)
        assert 1.5 < time.monotonic() - start < 4


def test_more_connections_than_allowed_wait(make_hanji):
    hanji = make_hanji(max_connections=20)
    crowd = [hanji.client() for _ in range(20)]
    assert all(client.ask("GET", "/health").status == 200 for client in crowd[:15])
    late = hanji.client()
    late.send(fastcgi.request("GET", "/health"))
    time.sleep(0.1)
    for client in crowd:
        client.close()
    try:
        assert late.answer().status == 200
    except fastcgi.Closed:
        pass                # turned away is as good, it was over the limit
    late.close()
    assert hanji.ask("GET", "/health").status == 200


@pytest.mark.alone
def test_readers_that_do_not_read(hanji):
    """Answers nobody takes are bounded and given up; others go on."""
    body = noise(1 << 20)
    assert hanji.ask("PUT", "/docs/big", body=body).status == 201
    assert hanji.ask("GET", "/docs/big").body == body       # the pool's thread has opened the file now
    worker = hanji.worker()
    open_before = harness.descriptors(worker)
    crowd = [hanji.client() for _ in range(30)]
    for client in crowd:
        client.send(fastcgi.request("GET", "/docs/big", hanji.token))
    check_fast([0.001] * 100, delays(hanji, 0.5)[:-1])      # the first waits while the answers are built
    assert harness.sanitized() or harness.resident_bytes(worker) < (200 << 20)
    time.sleep(2.5)
    settled(hanji, open_before)
    for client in crowd:
        client.close()
    assert hanji.ask("GET", "/docs/big").body == body


def test_a_reader_that_is_slow_gets_it_all(hanji):
    body = noise(1 << 20)
    hanji.ask("PUT", "/docs/big2", body=body)
    with hanji.client() as client:
        client.send(fastcgi.request("GET", "/docs/big2", hanji.token))
        for _ in range(50):
            client.buffer += client.sock.recv(10000)
            time.sleep(0.02)
        assert client.answer().body == body


def test_one_who_pipelines_and_does_not_read(hanji):
    """Requests behind an answer that is not taken wait in the sender's own socket."""
    hanji.ask("PUT", "/docs/big3", body=noise(1 << 20))
    worker = hanji.worker()
    before = harness.resident_bytes(worker)
    client = hanji.client()
    client.sock.settimeout(0.3)
    try:
        client.sock.sendall(fastcgi.request("GET", "/docs/big3", hanji.token) * 2000)
    except OSError:
        pass
    assert harness.sanitized() or harness.resident_bytes(worker) - before < (48 << 20)
    assert hanji.ask("GET", "/health").status == 200
    client.close()


def test_nothing_leaks(hanji):
    """Thousands of clients that leave at every possible moment."""
    hanji.ask("PUT", "/docs/leak", body=noise(100000))
    worker, rng = hanji.worker(), random.Random(3)
    whole = [fastcgi.request("GET", "/docs/leak", hanji.token), fastcgi.request("GET", "/health", flags=0),
             fastcgi.request("HEAD", "/docs/leak", hanji.token),
             fastcgi.request("PUT", "/docs/leak2", hanji.token, body=noise(5000)), fastcgi.request("GET", "/nowhere"),
             b"\xff" * 30]

    def rounds(count):
        for i in range(count):
            data = whole[i % len(whole)]
            with hanji.client() as client:
                try:
                    client.send(data[:rng.randrange(len(data) + 1)] if i % 3 else data)
                except fastcgi.Closed:
                    pass
    rounds(1000)
    settled(hanji, 64)
    open_before, memory_before = harness.descriptors(worker), harness.resident_bytes(worker)
    rounds(5000)
    settled(hanji, open_before)
    if not harness.sanitized():     # the page caches (3 MiB) may fill meanwhile
        assert harness.resident_bytes(worker) - memory_before < (4 << 20)


def test_abandoned_through_nginx(site, box):
    """Clients that go away while nginx uploads or downloads for them."""
    site.put(box + "k", noise(250000))
    worker = site.hanji.worker()
    def round_():
        for i in range(60):
            with socket.create_connection(("127.0.0.1", site.nginx.port)) as sock:
                method = "GET" if i % 2 else "PUT"
                sock.sendall(("%s %sk HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n" % (
                    method, box, site.token,
                    "" if i % 2 else "Content-Length: 200000\r\n")).encode() + (b"" if i % 2 else b"y" * 100000))
                if i % 4 == 1:
                    sock.recv(100)
    round_()
    time.sleep(0.2)
    open_before = harness.descriptors(worker)
    for _ in range(5):
        round_()
    settled(site.hanji, open_before + 5, 10)
    assert len(site.get(box + "k").body) == 250000


def test_the_memory_for_bodies_is_bounded(make_hanji):
    """body_memory: beyond it bodies wait in files, whatever their size, and memory does not grow."""
    hanji = make_hanji(body_memory="256k", max_body="512k", body_in_memory="256k")
    body = noise(200 * 1024)
    worker = hanji.worker()
    hanji.ask("PUT", "/docs/first", body=body)
    memory, descriptors = harness.resident_bytes(worker), harness.descriptors(worker)
    crowd = []
    for i in range(40):
        client = hanji.client()
        client.send(fastcgi.request("PUT", "/docs/k%d" % i, hanji.token, body=body)[:-8])
        crowd.append(client)
    harness.wait_for("files", lambda: harness.descriptors(worker) >= descriptors + 40 + 38)
    assert harness.sanitized() or harness.resident_bytes(worker) < memory + (3 << 20)
    for client in crowd:
        client.send(fastcgi.record(fastcgi.STDIN))
    assert {client.answer().status for client in crowd} == {201}
    for i in range(40):
        assert hanji.ask("GET", "/docs/k%d" % i).body == body
    for client in crowd:
        client.close()
    settled(hanji, descriptors)
