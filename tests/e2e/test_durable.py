"""What was acknowledged is there after kill −9; what was not is wholly there or wholly absent."""
import os
import random
import sqlite3
import statistics
import threading
import time

import pytest

import fastcgi
import harness
from test_documents import noise

CYCLES = int(os.environ.get("HANJI_KILL_CYCLES") or 50)


class Writer(threading.Thread):
    """Writes without pause, over a connection of its own that is opened again after each crash.

    Every acknowledged change goes to a file elsewhere before the next one is sent: `key number seq` for a put, with
    `-` as seq for a delete; what was sent and never answered has `?put` or `?delete`.  Bodies begin with the key and
    the number, so that a mix of two would show."""

    def __init__(self, hanji, name, journal):
        super().__init__(daemon=True)
        self.hanji, self.name, self.journal = hanji, name, journal
        self.stopped = threading.Event()
        self.fault = None
        self.rng = random.Random(name)

    @staticmethod
    def body(key, number):
        head = b"%s %d " % (key.encode(), number)
        return head + noise(number * 37 % 3000, head)

    def run(self):
        try:
            with open(self.journal, "a", buffering=1) as journal:
                self.write_all(journal)
        except BaseException as error:      # a thread's failure is told by the test
            self.fault = error

    def write_all(self, journal):
        client, number = None, 0
        while not self.stopped.is_set():
            number += 1
            dice = self.rng.random()
            key = "%s/%s" % (self.name, number if dice < 0.6 else "hot")
            method, body = ("DELETE", None) if dice > 0.9 else ("PUT", self.body(key, number))
            try:
                client = client or self.hanji.client(10)
                answer = client.ask(method, "/docs/" + key, self.hanji.token, body=body)
            except (fastcgi.Closed, OSError):
                journal.write("%s %d ?%s\n" % (key, number, method.lower()))
                if client is not None:
                    client.close()
                client = None
                continue
            assert answer.status in ((201, 204) if body else (204, 404)), answer
            journal.write("%s %d %s\n" % (key, number, answer.header("etag").strip('"') if body else "-"))
        if client is not None:
            client.close()


def possible(lines):
    """What may be stored of one key, given its lines in order: (number, seq) pairs, seq None where it was never told,
    and None for nothing.  The last acknowledged change, or one of those behind it that were never answered."""
    states = {None}
    for number, what in lines:
        if what == "?put":
            states.add((number, None))
        elif what == "?delete":
            states.add(None)
        else:
            states = {None if what == "-" else (number, int(what))}
    return states


def check_store(hanji, journals, live):
    """The file holds what was acknowledged; with `live` writers it may hold more than was written down."""
    written = {}
    for journal in journals:
        for line in open(journal):
            key, number, what = line.split()
            written.setdefault(key, []).append((int(number), what))
    link = hanji.sqlite()
    link.execute("BEGIN")
    rows = {key: (seq, bytes(body)) for key, seq, body in link.execute("SELECT key, seq, body FROM doc")}
    changes = link.execute("SELECT seq, key, op FROM change ORDER BY seq").fetchall()
    count, = link.execute("SELECT value FROM meta WHERE name = 'documents'").fetchone()
    assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    link.execute("COMMIT")
    link.close()
    assert count == len(rows)
    stored = {}
    for key, (seq, body) in rows.items():
        number = int(body.split(b" ", 2)[1])
        assert body == Writer.body(key, number), "%s is not what anybody wrote" % key
        stored[key] = (number, seq)
    for key, lines in written.items():
        states, have = possible(lines), stored.get(key)
        if have in states or have and (have[0], None) in states:
            continue
        newer = have is None or have[0] > lines[-1][0]
        assert live and newer and key.endswith("/hot"), "%s: %s was acknowledged, %s is there" % (key, states, have)
    assert live or not set(stored) - set(written)
    numbers = [seq for seq, _, _ in changes]
    assert numbers == sorted(set(numbers)), "strictly rising"
    newest = {key: (seq, op) for seq, key, op in changes}
    for key, (_, seq) in stored.items():
        assert newest[key] == (seq, "put"), key
    return sum(what.isdigit() or what == "-" for lines in written.values() for _, what in lines)


def back_in(hanji, old):
    """Seconds until a request is answered, counted from before the kill."""
    start = time.monotonic()
    os.kill(old, 9)
    while True:
        try:
            if fastcgi.ask(hanji.socket, "GET", "/health", timeout=10).status == 200:
                return time.monotonic() - start
        except (OSError, fastcgi.Closed):
            time.sleep(0.0005)


def test_kill_loop(make_hanji, base):
    hanji = make_hanji(checkpoint_size="512k")
    hanji.expect_new_worker()
    journals = [base / ("journal%d" % i) for i in range(4)]
    writers = [Writer(hanji, "w%d" % i, journal) for i, journal in enumerate(journals)]
    rng, delays, started = random.Random(1), [], time.monotonic()
    for writer in writers:
        writer.start()
    try:
        for cycle in range(CYCLES):
            time.sleep(rng.uniform(0.005, 0.25))
            delays.append(back_in(hanji, hanji.worker()))
            assert not [writer.fault for writer in writers if writer.fault]
            if cycle % 10 == 9:
                check_store(hanji, journals, live=True)
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join(20)
    assert not [writer for writer in writers if writer.is_alive() or writer.fault]
    total = check_store(hanji, journals, live=False)
    assert total > CYCLES * 10, "there was load"
    # and it says so over HTTP too
    for journal in journals:
        for key, number, what in [line.split() for line in list(open(journal))[-50:]]:
            if what.isdigit() and not key.endswith("/hot"):
                got = hanji.ask("GET", "/docs/" + key)
                assert (got.header("etag"), got.body) == ('"%s"' % what, Writer.body(key, int(number)))
    print("%d kills in %.1f s, %d acknowledged, back in %.0f ms (median), %.0f ms (worst)" % (
        CYCLES, time.monotonic() - started, total, statistics.median(delays) * 1000, max(delays) * 1000))
    assert statistics.median(delays) < (1.5 if harness.sanitized() else 0.1)
    hanji.stop()
    hanji.command("check")


@pytest.mark.alone
def test_a_killed_worker_is_back_at_once(make_hanji):
    """Without load, one after another: each within a tenth of a second (median)."""
    hanji = make_hanji()
    hanji.expect_new_worker()
    hanji.ask("PUT", "/docs/k", body=b"x")
    delays = []
    for _ in range(9):
        time.sleep(0.2)
        delays.append(back_in(hanji, hanji.worker()))
        assert hanji.ask("GET", "/docs/k").body == b"x"
    assert statistics.median(delays) < (1.5 if harness.sanitized() else 0.1), delays


def test_kill_of_the_supervisor_takes_the_worker_along(make_hanji):
    """No worker stays behind to hold the file; a new server starts on it at once."""
    hanji = make_hanji()
    put = hanji.ask("PUT", "/docs/k", body=b"x")
    worker = hanji.worker()
    hanji.process.kill()
    hanji.process.wait()
    harness.wait_for("the worker's end", lambda: not harness.alive(worker), 5)
    hanji.stop(expect=None)
    hanji.start()
    assert hanji.ask("GET", "/docs/k").header("etag") == put.header("etag")


def test_a_worker_whose_supervisor_is_gone_shares_the_file_with_the_next(make_hanji):
    """It still serves the connections it has and leaves; meanwhile a new server runs on the same file."""
    hanji = make_hanji()
    with hanji.client() as client:
        client.ask("GET", "/health")
        worker = hanji.worker()
        hanji.process.kill()
        hanji.process.wait()
        hanji.stop(expect=None)
        time.sleep(0.1)
        hanji.start()
        numbers, end = [], time.monotonic() + 1
        for i in range(20):
            try:
                numbers.append(client.ask("PUT", "/docs/old%d" % i, hanji.token, body=b"x").header("etag"))
            except fastcgi.Closed:
                break
            numbers.append(hanji.ask("PUT", "/docs/new%d" % i, body=b"x").header("etag"))
        assert time.monotonic() < end + 4
    numbers = [int(number.strip('"')) for number in numbers]
    assert numbers == sorted(set(numbers))
    harness.wait_for("the old worker's end", lambda: not harness.alive(worker))
    for i in range(len(numbers) // 2):
        assert hanji.ask("GET", "/docs/old%d" % i).status == hanji.ask("GET", "/docs/new%d" % i).status == 200


def test_clean_stop_and_start_keep_everything(make_hanji):
    hanji = make_hanji()
    tags = {i: hanji.ask("PUT", "/docs/k%d" % i, body=b"%d" % i).header("etag") for i in range(50)}
    hanji.ask("DELETE", "/docs/k7")
    highest = hanji.status()["seq"]
    hanji.stop()
    hanji.start()
    for i, tag in tags.items():
        got = hanji.ask("GET", "/docs/k%d" % i)
        assert (got.status, got.header("etag"),
                got.body) == ((404, None, got.body) if i == 7 else (200, tag, b"%d" % i))
    assert hanji.status()["documents"] == 49
    again = hanji.ask("PUT", "/docs/k7", body=b"x")
    assert int(again.header("etag").strip('"')) > highest, "a number is never given twice"


def test_a_number_is_not_reused_after_the_newest_was_deleted(make_hanji):
    hanji = make_hanji()
    first = int(hanji.ask("PUT", "/docs/k", body=b"x").header("etag").strip('"'))
    hanji.ask("DELETE", "/docs/k")
    hanji.stop()
    hanji.start()
    assert int(hanji.ask("PUT", "/docs/k", body=b"x").header("etag").strip('"')) > first + 1


# a sync that fails, a disk that is full

@pytest.fixture
def faulty(make_hanji, slow):
    """A server whose syncs and disk the test rules; fine at the start."""
    slow.set()
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    yield hanji
    slow.set()


@pytest.mark.alone
@pytest.mark.smoke
def test_an_answer_comes_after_the_sync(faulty, slow):
    slow.set(sync_ms=60)
    for method, path, body in (("PUT", "/docs/k", b"x"), ("PUT", "/docs/k", b"y"), ("DELETE", "/docs/k", None)):
        start = time.monotonic()
        assert faulty.ask(method, path, body=body).status in (201, 204)
        assert time.monotonic() - start >= 0.06
    start = time.monotonic()
    assert faulty.ask("GET", "/docs/k").status == 404
    assert time.monotonic() - start < 0.04, "a read waits for no sync"


def test_an_abort_while_the_write_waits_for_its_sync(faulty, slow):
    """The write is whole and may take place; the request ends once, and the connection goes on."""
    slow.set(sync_ms=150)
    with faulty.client() as client:
        client.send(fastcgi.request("PUT", "/docs/k", faulty.token, body=b"x") + fastcgi.record(fastcgi.ABORT))
        got = client.record()
        while got.kind != fastcgi.END:
            got = client.record()
        slow.set()
        assert client.ask("GET", "/health").status == 200
        assert client.ask("GET", "/docs/k", faulty.token).status in (200, 404)


def test_clients_that_leave_while_their_write_waits(faulty, slow):
    """Their writes take place wholly or not at all; nobody else is disturbed."""
    worker = faulty.worker()
    open_before = harness.descriptors(worker)
    slow.set(sync_ms=50)
    for i in range(60):
        with faulty.client() as client:
            client.send(fastcgi.request("PUT", "/docs/gone%d" % i, faulty.token, body=noise(1000 + i)))
            if i % 3 == 0:
                time.sleep(0.005)
    assert faulty.ask("PUT", "/docs/k", body=b"x").status == 201
    slow.set()
    for i in range(60):
        got = faulty.ask("GET", "/docs/gone%d" % i)
        assert got.status == 404 or got.body == noise(1000 + i)
    harness.wait_for("descriptors to be closed", lambda: harness.descriptors(worker) <= open_before)


def test_a_failed_sync_acknowledges_nothing(faulty, slow):
    """The worker says so, leaves and is replaced; nobody was told of success."""
    assert faulty.ask("PUT", "/docs/before", body=b"x").status == 201
    faulty.expect_new_worker("the worker ended|the store cannot be written")
    old = faulty.worker()
    slow.set(sync_ms=20, failing_syncs=1)
    outcomes = []

    def write(i):
        try:
            outcomes.append((i, faulty.ask("PUT", "/docs/lost%d" % i, body=b"%d" % i, timeout=10).status))
        except (fastcgi.Closed, OSError):
            outcomes.append((i, None))
    mark = faulty.mark()
    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slow.failing_syncs() == 0, "the fault was met"
    slow.set()
    harness.wait_for("the old worker's end", lambda: not harness.alive(old), 5)
    faulty.wait_healthy()
    told = {i for i, status in outcomes if status in (201, 204)}
    assert len(told) < 8, "those of the failed burst were not told of success"
    for i in told:
        assert faulty.ask("GET", "/docs/lost%d" % i).body == b"%d" % i
    assert "level=error" in faulty.log_since(mark)
    assert faulty.ask("GET", "/docs/before").body == b"x"
    assert faulty.ask("PUT", "/docs/after", body=b"x").status == 201


def test_a_full_disk_refuses_writes_and_serves_reads(faulty, slow):
    body = noise(100000)
    assert faulty.ask("PUT", "/docs/k", body=body).status == 201
    faulty.expected.append("full|space")
    slow.set(full=True)
    statuses = [faulty.ask("PUT", "/docs/k%d" % i, body=body).status for i in range(20)]
    assert statuses[-1] == 507 and set(statuses) <= {201, 507}, statuses
    answer = faulty.ask("PUT", "/docs/new", body=body)
    assert answer.status == 507 and answer.header("content-type") == "application/problem+json"
    for _ in range(20):
        got = faulty.ask("GET", "/docs/k")
        assert got.status == 200 and got.body == body
    assert faulty.ask("GET", "/docs/new").status == 404
    assert faulty.ask("GET", "/docs/", query="limit=5").status == 200
    assert faulty.ask("GET", "/status").status == 200
    slow.set()
    assert faulty.ask("PUT", "/docs/new", body=body).status == 201, "writes go on by themselves"
    for i, status in enumerate(statuses):
        assert faulty.ask("GET", "/docs/k%d" % i).status == (200 if status == 201 else 404)
    assert faulty.rows("PRAGMA integrity_check") == [("ok",)]


def test_more_writes_than_the_queue_holds(make_hanji, slow):
    """503 with Retry-After beyond it, for those only; reads go on."""
    slow.set()
    hanji = make_hanji(start=False, queue_operations=4, burst_operations=4)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    slow.set(sync_ms=150)
    try:
        clients = [hanji.client(20) for _ in range(40)]
        for i, client in enumerate(clients):
            client.send(fastcgi.request("PUT", "/docs/k%d" % i, hanji.token, body=b"%d" % i))
        start = time.monotonic()
        assert hanji.ask("GET", "/docs/none").status == 404
        assert time.monotonic() - start < 0.1
        answers = [client.answer() for client in clients]
        for client in clients:
            client.close()
    finally:
        slow.set()
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {201, 503} and statuses.count(503) >= 20, statuses
    for i, answer in enumerate(answers):
        if answer.status == 503:
            assert int(answer.header("retry-after")) > 0
            assert answer.header("content-type") == "application/problem+json"
        assert hanji.ask("GET", "/docs/k%d" % i).status == (200 if answer.status == 201 else 404)
    assert hanji.ask("PUT", "/docs/later", body=b"x").status == 201


def test_many_bytes_waiting_fill_the_queue(make_hanji, slow):
    slow.set()
    hanji = make_hanji(start=False, queue_bytes="100k", max_body="60k", body_in_memory="40k")
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    slow.set(sync_ms=150)
    try:
        clients = [hanji.client(20) for _ in range(20)]
        for i, client in enumerate(clients):
            client.send(fastcgi.request("PUT", "/docs/k%d" % i, hanji.token, body=noise(30000)))
        statuses = [client.answer().status for client in clients]
        for client in clients:
            client.close()
    finally:
        slow.set()
    assert set(statuses) == {201, 503} and statuses.count(503) >= 8, statuses


def test_a_reader_that_stays_bounds_the_wal(make_hanji):
    """Another program holds an old snapshot: the WAL grows to its limit and no further, writes get 503 and, when it
    has left, go on."""
    hanji = make_hanji(wal_limit="2m", checkpoint_size="256k")
    hanji.ask("PUT", "/docs/k", body=b"x")
    link = hanji.sqlite()
    link.execute("BEGIN")
    assert link.execute("SELECT count(*) FROM doc").fetchone() == (1,)
    statuses = []
    for i in range(80):
        answer = hanji.ask("PUT", "/docs/k%d" % (i % 3), body=noise(60000, b"%d" % i))
        statuses.append(answer.status)
    assert statuses[-1] == 503 and set(statuses) <= {201, 204, 503}, statuses
    assert int(answer.header("retry-after")) > 0
    wal = hanji.database.with_name("hanji.db-wal")
    assert wal.stat().st_size < (4 << 20)
    assert hanji.ask("GET", "/docs/k").body == b"x"
    assert str(os.getpid()) in answer.body.decode() + hanji.log.read_text(), "the one who holds it is named"
    link.execute("COMMIT")
    link.close()
    harness.wait_for("writes to go on", lambda: hanji.ask("PUT", "/docs/k", body=b"y").status == 204, 5, 0.05)
    for i in range(100):
        assert hanji.ask("PUT", "/docs/k%d" % (i % 3), body=noise(60000, b"again%d" % i)).status in (201, 204)
    assert wal.stat().st_size < (4 << 20)


def test_the_wal_stays_small_under_load(make_hanji):
    hanji = make_hanji(checkpoint_size="256k")
    wal = hanji.database.with_name("hanji.db-wal")
    for i in range(200):
        assert hanji.ask("PUT", "/docs/k%d" % (i % 10), body=noise(50000, b"%d" % i)).status in (201, 204)
        assert wal.stat().st_size < (2 << 20)


def test_the_files_can_be_read_by_others_after_a_stop(make_hanji):
    hanji = make_hanji()
    hanji.ask("PUT", "/docs/k", body=b"x")
    hanji.stop()
    assert hanji.rows("SELECT key FROM doc") == [("k",)]
    link = sqlite3.connect("file:%s?mode=ro" % hanji.database, uri=True)
    assert link.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    link.close()
