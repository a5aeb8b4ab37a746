"""The folder of copies that nginx sends: who can read it, what hanji says of that when it starts; and large bodies whose
clients, or whose hanji, go in the middle."""
import concurrent.futures
import grp
import itertools
import os
import signal
import socket
import threading

import pytest

import fastcgi
import harness
from harness import wait_for

NUMBERS = itertools.count(1)
# A group that a folder can be given to and that is not hanji's own; one who is in no second group has none.
OTHERS = [33] if os.geteuid() == 0 else [group for group in os.getgroups() if group != os.getegid()][:1]


@pytest.fixture
def started(base):
    """start(folder, **settings) gives a server and what it said of the folder."""
    made = []

    def start(folder, **settings):
        hanji = harness.Hanji(base / ("b%d" % next(NUMBERS)), blobs=folder, **settings)
        made.append(hanji)
        hanji.start()
        return hanji, [line for line in hanji.log_since(0).splitlines() if "doubt=" in line or "no folder" in line]
    yield start
    for hanji in made:
        hanji.stop()


def folder_of(base, mode, group=None):
    folder = base / ("folder%d" % next(NUMBERS))
    folder.mkdir()
    if group is not None:
        os.chown(folder, -1, group)
    folder.chmod(mode)
    return folder


def test_a_folder_that_hanji_makes_is_in_order(base, started):
    folder = base / "new"
    _, said = started(folder)
    assert said == []
    assert folder.stat().st_mode & 0o7777 == 0o2750


@pytest.mark.parametrize("mode", [0o2751, 0o2754, 0o755, 0o777, 0o2752])
def test_a_folder_that_everybody_can_read_is_told(base, started, mode):
    _, said = started(folder_of(base, mode), socket_group=None)
    assert len(said) == 1 and "everybody" in said[0] and "chmod o=" in said[0] and "level=warn" in said[0]


@pytest.mark.parametrize("group", OTHERS)
@pytest.mark.parametrize("mode", [0o700, 0o750, 0o2700, 0o2740])
def test_a_folder_that_its_group_cannot_use_is_told(base, started, mode, group):
    _, said = started(folder_of(base, mode, group), socket_group=None)
    assert len(said) == 1 and "chmod 2750" in said[0]


@pytest.mark.parametrize("group", OTHERS)
def test_a_folder_of_another_group_than_the_web_servers_is_told(base, started, group):
    _, said = started(folder_of(base, 0o2750, os.getegid()), socket_group=grp.getgrgid(group).gr_name)
    assert len(said) == 1 and "socket_group" in said[0]


@pytest.mark.parametrize("group", OTHERS)
def test_a_folder_below_a_closed_one_is_told(base, started, group):
    above = folder_of(base, 0o700)
    (above / "blobs").mkdir()
    os.chown(above / "blobs", -1, group)
    (above / "blobs").chmod(0o2750)
    _, said = started(above / "blobs", socket_group=None)
    assert len(said) == 1 and "a folder above" in said[0]


@pytest.mark.parametrize("what", ["file", "nowhere", "link"])
def test_without_a_folder_large_documents_are_served_all_the_same(base, started, what):
    folder = base / ("none-" + what)
    if what == "file":
        folder.write_text("x")
    elif what == "link":
        folder.symlink_to(base / "dangling" / "link")
    else:
        folder = folder / "deep" / "down"
    hanji, said = started(folder)
    assert len(said) == 1 and "no folder for blobs" in said[0]
    token = hanji.new_token("t", read=["/"], write=["/"])
    body = os.urandom(1 << 20)
    assert hanji.ask("PUT", "/docs/a", body=body, token=token).status == 201
    got = hanji.ask("GET", "/docs/a", token=token)
    assert (got.status, got.body) == (200, body)


# ---- in the middle of things

@pytest.fixture
def site(base, certificate):
    made = []

    def make(**settings):
        site = harness.Site(base / ("m%d" % next(NUMBERS)), certificate, **settings)
        made.append(site)
        return site.start() or site
    yield make
    for one in made:
        one.stop()


def leave(site, data, take):
    """Sends these bytes to hanji itself, reads at least so many, and goes."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(site.hanji.socket))
        sock.sendall(data)
        while take > 0:
            got = sock.recv(65536)
            assert got
            take -= len(got)


def all_is_given_back(site, before):
    folder = site.hanji.database.with_name("hanji.db.blobs")
    wait_for("descriptors to be closed", lambda: harness.descriptors(site.hanji.worker()) <= before + 4)  # pool threads
    wait_for("temporary files to go", lambda: not [path for path in folder.iterdir() if path.name.startswith(".")])


def test_clients_that_leave_in_the_middle_leave_nothing(site):
    site = site(body_in_memory="4k")
    body = os.urandom(3 << 20)
    site.put("/docs/big", body)
    site.get("/docs/big")
    before = harness.descriptors(site.hanji.worker())
    upload = fastcgi.request("PUT", "/docs/never", site.token, body=body[:1 << 20])
    streamed = fastcgi.request("GET", "/docs/big", site.token, extra={"HTTP_IF_MATCH": "*"})
    for i in range(60):
        leave(site, upload[:len(upload) * i // 60], 0)
        leave(site, streamed, i * 20000)
        with socket.create_connection(("127.0.0.1", site.nginx.port)) as sock:
            sock.sendall(b"GET /docs/big HTTP/1.1\r\nHost: x\r\n%sAuthorization: Bearer %s\r\n\r\n"
                         % (b"If-Match: *\r\n" if i % 2 else b"", site.token.encode()))
            sock.recv(1 + 3000 * i)
    for i in range(20):       # while the file of a new state is being made
        site.put("/docs/new%d" % (i % 4), os.urandom(1 << 20))
        leave(site, fastcgi.request("GET", "/docs/new%d" % (i % 4), site.token, extra={"HTTP_IF_MATCH": "*"}), 0)
    all_is_given_back(site, before)
    assert site.get("/docs/never").status == 404
    assert site.get("/docs/big").body == body
    site.hanji.judge()


def test_half_uploads_end_with_their_time(site):
    site = site(body_in_memory="4k", request_timeout="1s")
    before = harness.descriptors(site.hanji.worker())
    half = fastcgi.request("PUT", "/docs/never", site.token, body=bytes(100000))[:50000]
    socks = []
    for _ in range(300):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(site.hanji.socket))
        sock.sendall(half)
        socks.append(sock)
    wait_for("the uploads", lambda: harness.descriptors(site.hanji.worker()) >= before + 600)
    assert site.put("/docs/ok", bytes(100000)).status == 201, "others are served meanwhile"
    all_is_given_back(site, before)
    for sock in socks:
        sock.close()


def test_slow_readers_cost_a_piece_each(site):
    site = site()
    site.put("/docs/big", os.urandom(20 << 20))
    site.get("/docs/big")
    was, before = harness.resident_bytes(site.hanji.worker()), harness.descriptors(site.hanji.worker())
    socks = []
    for _ in range(100):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(site.hanji.socket))
        sock.sendall(fastcgi.request("GET", "/docs/big", site.token, extra={"HTTP_IF_MATCH": "*"}))
        socks.append(sock)
    wait_for("the streams", lambda: harness.descriptors(site.hanji.worker()) >= before + 200)
    assert site.get("/health").status == 200
    most = (100 * 2 * 65536 + (8 << 20)) * (3 if harness.sanitized() else 1)
    assert harness.resident_bytes(site.hanji.worker()) - was < most
    for sock in socks:
        sock.close()
    all_is_given_back(site, before)


def test_a_hand_over_in_the_middle_of_large_bodies_loses_nothing(site):
    """Two clients write, two read (one of a file that nginx sends, one of a stream), while hanji is replaced twice."""
    site = site(drain_timeout="30s")
    body = os.urandom(16 << 20)
    site.put("/docs/big", body)
    site.get("/docs/big")
    stop, faults, counts = threading.Event(), [], [0] * 4

    def client(number):
        link = site.link()
        headers = {"Authorization": "Bearer " + site.token}
        while not stop.is_set():
            if number < 2:
                want = body[:(8 << 20) + counts[number]]
                got = link.once("PUT", "/docs/w%d" % number, want, headers)
                read = link.once("GET", "/docs/w%d" % number, None, headers)
                good = got.status in (201, 204) and read.body == want
            else:
                got = link.once("GET", "/docs/big", None, {**headers, **({"If-Match": "*"} if number == 3 else {})})
                good = (got.status, got.body == body) == (200, True)
            counts[number] += 1
            if not good:
                faults.append((number, got.status))
        link.close()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(client, number) for number in range(4)]
        try:
            for _ in range(2):
                old = site.hanji.worker()
                seen = list(counts)
                wait_for("requests", lambda: all(now > then for now, then in zip(counts, seen)), 60)
                site.hanji.known_worker = None
                os.kill(site.hanji.pid, signal.SIGUSR2)
                wait_for("another worker", lambda: site.hanji.workers() and old not in site.hanji.workers(), 60)
        finally:
            stop.set()
        for one in running:
            one.result()
    assert faults == []
    assert "ok" in site.hanji.command("check").stdout


def test_full_of_files_that_are_in_use(site):
    """Nothing that was told to nginx is removed; what has no room goes through hanji."""
    site = site(blobs_max="4m")
    bodies = [os.urandom(1 << 20) for _ in range(8)]
    for number, body in enumerate(bodies):
        site.put("/docs/%d" % number, body)
    for _ in range(2):
        for number, body in enumerate(bodies):
            assert site.get("/docs/%d" % number).body == body
    folder = site.hanji.database.with_name("hanji.db.blobs")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4 << 20
    all_is_given_back(site, harness.descriptors(site.hanji.worker()))
