"""One order of all writes, and reads that see what was acknowledged: any thread, any connection, any process."""
import concurrent.futures
import subprocess
import sys
import threading
import time

import pytest

import fastcgi
import harness
from test_documents import noise

SECONDS = 2.0


@pytest.fixture(scope="module", params=[1, 4], ids=["one thread", "four threads"])
def hanji(request, base):
    hanji = harness.Hanji(base / ("order%d" % request.param), threads=request.param)
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    yield hanji
    hanji.stop()


def tag(answer):
    return int(answer.header("etag").strip('"'))


def run(*jobs):
    """Runs each callable in a thread of its own; the first failure is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


def test_many_writers_on_one_key(hanji, box):
    """Each answer has a number of its own; in one writer's eyes they rise; the highest is what stays."""
    key = box[6:] + "k"

    def write(number):
        out = []
        with hanji.client() as client:
            for i in range(60):
                body = b"%d %d" % (number, i)
                answer = client.ask("PUT", box + "k", hanji.token, body=body)
                assert answer.status in (201, 204)
                out.append((tag(answer), body))
        return out
    before = hanji.status()["seq"]
    written = run(*[lambda n=n: write(n) for n in range(16)])
    for mine in written:
        assert [seq for seq, _ in mine] == sorted(seq for seq, _ in mine)
    everything = sorted(pair for mine in written for pair in mine)
    numbers = [seq for seq, _ in everything]
    assert numbers == list(range(before + 1, before + 1 + 960)), "no number lost, none twice"
    got = hanji.ask("GET", box + "k")
    assert (tag(got), got.body) == everything[-1]
    assert hanji.rows("SELECT seq FROM doc WHERE key = ?", key) == [(numbers[-1],)]


def test_a_counter_by_compare_and_swap(hanji, box):
    """Read, add one, write back if unchanged: no addition is lost."""
    hanji.ask("PUT", box + "n", body=b"0")

    def add():
        done = 0
        with hanji.client() as client:
            while done < 25:
                got = client.ask("GET", box + "n", hanji.token)
                answer = client.ask("PUT", box + "n", hanji.token, body=b"%d" % (int(got.body) + 1),
                                    extra={"HTTP_IF_MATCH": got.header("etag")})
                assert answer.status in (204, 412)
                done += answer.status == 204
    run(*[add] * 6)
    assert hanji.ask("GET", box + "n").body == b"150"


def background_load(hanji, box, stop):
    """Writers and readers that keep the server busy meanwhile."""
    def write(number):
        with hanji.client() as client:
            i = 0
            while not stop.is_set():
                i += 1
                client.ask("PUT", box + "load%d/%d" % (number, i % 50), hanji.token, body=noise(200))

    def read():
        with hanji.client() as client:
            while not stop.is_set():
                client.ask("GET", box, hanji.token, query="limit=20")
    return [lambda: write(0), lambda: write(1), read]


def under_load(hanji, box, job):
    stop = threading.Event()

    def then_stop():
        try:
            return job()
        finally:
            stop.set()
    return run(then_stop, *background_load(hanji, box, stop))[0]


def test_a_read_after_the_answer_sees_the_write(hanji, box):
    """From the same connection, from others that were open before, and from a new one."""
    def job():
        others = [hanji.client() for _ in range(8)]
        with hanji.client() as writer:
            end, i = time.monotonic() + SECONDS, 0
            while time.monotonic() < end:
                i += 1
                body = b"%d" % i
                put = writer.ask("PUT", box + "k", hanji.token, body=body)
                for client in (writer, others[i % 8], others[(i * 3 + 1) % 8]):
                    got = client.ask("GET", box + "k", hanji.token)
                    assert (got.body, tag(got)) == (body, tag(put))
                if i % 5 == 0:
                    got = fastcgi.ask(hanji.socket, "GET", box + "k", hanji.token)
                    assert got.body == body
                    listed = hanji.ask("GET", box, query="limit=1000&after=" + box[6:] + "j")
                    assert ('"\\"%d\\""' % tag(put)).encode() in listed.body
                if i % 10 == 0:
                    assert writer.ask("DELETE", box + "k", hanji.token).status == 204
                    for client in others:
                        assert client.ask("GET", box + "k", hanji.token).status == 404
        for client in others:
            client.close()
        return i
    assert under_load(hanji, box, job) > 20


def test_readers_everywhere_never_go_back(hanji, box):
    """Many readers of one key while it is written: each sees numbers that only rise, and never less than what was
    acknowledged before it asked."""
    acknowledged, stop = [0], threading.Event()
    acknowledged[0] = tag(hanji.ask("PUT", box + "k", body=b"x"))

    def write():
        with hanji.client() as client:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                acknowledged[0] = tag(client.ask("PUT", box + "k", hanji.token, body=b"x"))
        stop.set()

    def read():
        seen = count = 0
        with hanji.client() as client:
            while not stop.is_set():
                floor = acknowledged[0]
                now = tag(client.ask("GET", box + "k", hanji.token))
                assert now >= floor and now >= seen
                seen = now
                count += 1
        return count
    counts = run(write, *[read] * 6)[1:]
    assert min(counts) > 20


def test_another_process_sees_it_too(hanji, box):
    """A plain SQLite reader asks after each answer."""
    link = hanji.sqlite()
    key = box[6:] + "k"

    def job():
        with hanji.client() as client:
            end, i = time.monotonic() + SECONDS / 2, 0
            while time.monotonic() < end:
                i += 1
                put = client.ask("PUT", box + "k", hanji.token, body=b"%d" % i)
                assert link.execute("SELECT seq, body FROM doc WHERE key = ?", (key,)).fetchone() == (tag(put),
                        b"%d" % i)
        return i
    try:
        assert under_load(hanji, box, job) > 20
    finally:
        link.close()


def test_another_processs_commit_is_seen_at_once(hanji, box):
    """A plain SQLite writer commits; the next request over any connection shows it."""
    link = hanji.sqlite(readonly=False)
    key = box[6:] + "k"
    hanji.ask("PUT", box + "k", body=b"0")

    def job():
        clients = [hanji.client() for _ in range(8)]
        end, i = time.monotonic() + SECONDS / 2, 0
        while time.monotonic() < end:
            i += 1
            link.execute("BEGIN IMMEDIATE")
            link.execute("UPDATE doc SET body = ? WHERE key = ?", (b"%d" % i, key))
            link.execute("COMMIT")
            for client in clients[i % 3::3]:
                assert client.ask("GET", box + "k", hanji.token).body == b"%d" % i
        for client in clients:
            client.close()
        return i
    try:
        assert under_load(hanji, box, job) > 0  # a guest has to find a gap between the server's commits
    finally:
        link.close()


OUTSIDE = """
import sqlite3, sys
link = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
link.execute("PRAGMA wal_autocheckpoint=0")
for i in range(int(sys.argv[3])):
    link.execute("BEGIN IMMEDIATE")
    link.execute("INSERT INTO doc (key, type, body) VALUES (?, 'text/plain', ?)", (sys.argv[2] + str(i), str(i)))
    link.execute("COMMIT")
"""


def test_two_processes_write_at_once(hanji, box):
    """Numbers stay unique and rising, nobody is refused, nobody starves, everything is there."""
    outside = subprocess.Popen([sys.executable, "-c", OUTSIDE, str(hanji.database), box[6:] + "outside", "150"])
    inside, slowest = [], 0
    with hanji.client(20) as client:
        while outside.poll() is None or len(inside) < 150:
            start = time.monotonic()
            answer = client.ask("PUT", box + "inside%d" % len(inside), hanji.token, body=b"x")
            slowest = max(slowest, time.monotonic() - start)
            assert answer.status == 201, answer
            inside.append(tag(answer))
            assert len(inside) < 100000
    assert outside.returncode == 0
    assert slowest < 2
    assert inside == sorted(inside)
    rows = hanji.rows("SELECT seq FROM doc WHERE key LIKE ?", box[6:] + "%")
    assert len(rows) == len(set(rows)) == 150 + len(inside)
    numbers = [seq for seq, in hanji.rows("SELECT seq FROM change ORDER BY rowid")]
    assert numbers == sorted(set(numbers))
    assert hanji.rows("SELECT count(*) FROM doc") == [(hanji.status()["documents"],)]


def test_a_burst_has_one_order_for_all(hanji, box):
    """Many at once on a few keys, creates, replacements and deletes: answers agree with some one order of them."""
    def work(number):
        out = []
        with hanji.client() as client:
            for i in range(40):
                key = box + "k%d" % (i % 3)
                if (i + number) % 4 == 0:
                    out.append((key, "delete", client.ask("DELETE", key, hanji.token).status, None))
                else:
                    answer = client.ask("PUT", key, hanji.token, body=b"x",
                                        extra={"HTTP_IF_NONE_MATCH": "*"} if i % 5 == 0 else {})
                    out.append((key, "put", answer.status, tag(answer) if answer.status in (201, 204) else None))
        return out
    done = [step for steps in run(*[lambda n=n: work(n) for n in range(10)]) for step in steps]
    assert {status for _, op, status, _ in done if op == "put"} <= {201, 204, 412}
    assert {status for _, op, status, _ in done if op == "delete"} <= {204, 404}
    for key in {step[0] for step in done}:
        created = sum(1 for step in done if step[0] == key and step[2] == 201)
        deleted = sum(1 for step in done if step[0] == key and step[1] == "delete" and step[2] == 204)
        there = hanji.ask("GET", key).status == 200
        assert created - deleted == there, "every create but the last was deleted"
    numbers = [step[3] for step in done if step[3]]
    assert len(numbers) == len(set(numbers))


@pytest.mark.alone
def test_reads_go_on_while_a_sync_takes_its_time(make_hanji, slow):
    slow.set()
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    hanji.ask("PUT", "/docs/k", body=b"x")
    slow.set(sync_ms=100)
    stop, delays = threading.Event(), []

    def write():
        with hanji.client() as client:
            while not stop.is_set():
                assert client.ask("PUT", "/docs/w", hanji.token, body=b"x").status in (201, 204)

    def read():
        with hanji.client() as client:
            end = time.monotonic() + 1
            while time.monotonic() < end:
                start = time.monotonic()
                assert client.ask("GET", "/docs/k", hanji.token).status == 200
                delays.append(time.monotonic() - start)
        stop.set()
    try:
        run(read, write, write)
    finally:
        slow.set()
    delays.sort()
    assert len(delays) > 100
    assert delays[int(len(delays) * 0.99)] < (0.1 if harness.sanitized() else 0.02), "no read waits for a sync"


@pytest.mark.alone
def test_writers_at_once_share_a_sync(make_hanji, slow):
    slow.set()
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    slow.set(sync_ms=100)
    clients = [hanji.client() for _ in range(50)]
    start = time.monotonic()
    for i, client in enumerate(clients):
        client.send(fastcgi.request("PUT", "/docs/k%d" % i, hanji.token, body=b"x"))
    assert [client.answer().status for client in clients] == [201] * 50
    assert time.monotonic() - start < 1, "fifty syncs would have taken five seconds"
    slow.set()
    histogram = hanji.status()["burst"]["histogram"]
    assert any(int(size) > 1 for size, count in histogram.items() if count), histogram
    for client in clients:
        client.close()
