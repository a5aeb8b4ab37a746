"""What runs away is stopped, and others do not notice."""
import concurrent.futures
import os
import signal
import threading
import time

import pytest

import harness

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS n FROM n;"
FILES = {
    "endless.get.sql": ENDLESS,
    "medium.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) AS n FROM n;",
    "quick.get.sql": "SELECT 1 AS one;",
    "wide.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, hex(zeroblob(500)) AS t FROM n;",
    "vast.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, hex(zeroblob(20000)) AS t FROM n;",
    "page.get.sql": ENDLESS.replace(" AS n FROM n;", " AS n FROM n;"),
    "page.html": "{{#rows}}{{n}}{{/rows}}",
    "loop.html": "{{#a}}{{/a}}ok",
    "endless.post.sql": ENDLESS,
}


@pytest.fixture(scope="module")
def slow(make_slow):
    return make_slow


@pytest.fixture(scope="module")
def make_slow(base, certificate):
    site = harness.Site(base / "limits", certificate, pool_threads="4")
    site.start()
    site.app("slow", FILES, "read = public\nwrite = public\ntime = 1s\n")
    site.app("other", {"quick.get.sql": "SELECT 1 AS one;", "medium.get.sql": FILES["medium.get.sql"]})
    yield site
    site.stop()


def timed(site, path, method="GET"):
    link = site.link()
    start = time.monotonic()
    try:
        answer = link.request(method, path)
        return answer, time.monotonic() - start
    finally:
        link.close()


def test_an_endless_query_is_stopped(slow):
    mark = slow.hanji.mark()
    answer, took = timed(slow, "/apps/slow/endless")
    assert answer.status == 503 and "stopped after 1 s" in answer.json()["detail"] and answer.header("Retry-After")
    assert 0.9 < took < 5
    assert "slow/endless.get.sql" in harness.wait_for("the log", lambda: slow.hanji.log_since(mark))


def test_also_behind_a_page(slow):
    assert timed(slow, "/apps/slow/page?format=html")[0].status == 503


def test_also_as_csv(slow):
    assert timed(slow, "/apps/slow/endless?format=csv")[0].status == 503


def test_an_endless_write_is_stopped_at_once(slow):
    answer, took = timed(slow, "/apps/slow/endless", "POST")
    assert answer.status == 503 and took < 2


def test_a_slow_query_is_moved_and_answered(slow):
    before = slow.hanji.status()["apps"]["moved"]
    assert timed(slow, "/apps/slow/medium")[0].json() == {"rows": [{"n": 300000}]}
    assert slow.hanji.status()["apps"]["moved"] == before + 1


def test_a_long_answer_is_moved_and_answered(slow):
    answer = timed(slow, "/apps/slow/wide")[0]
    assert answer.status == 200 and len(answer.json()["rows"]) == 900
    answer = timed(slow, "/apps/slow/vast")[0]
    assert answer.status == 500


def test_others_do_not_wait(slow):
    """While one app runs endless queries, another answers, and so do documents and logins."""
    slow.put("/docs/limits/k", b"x")
    slow.hanji.command("user", "add", "carol", "--read", "/", stdin="correct horse\n")
    stop = threading.Event()

    def burn():
        while not stop.is_set():
            timed(slow, "/apps/slow/endless")
    threads = [threading.Thread(target=burn) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.3)
        times = []
        for _ in range(150):
            start = time.monotonic()
            assert slow.get("/docs/limits/k").status == 200
            times.append(time.monotonic() - start)
            assert slow.get("/apps/other/quick").status == 200
        times.sort()
        assert harness.sanitized() or times[len(times) * 9 // 10] < 0.1, times[-20:]
        answer, took = timed(slow, "/apps/other/medium")
        assert answer.status == 200 and (harness.sanitized() or took < 3)
        start = time.monotonic()
        answer = slow.http("POST", "/auth/login", b"user=carol&password=correct+horse",
                           {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}, token=None)
        assert answer.status in (200, 303)
        assert harness.sanitized() or time.monotonic() - start < 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_too_many_slow_ones_at_once(slow):
    """Beyond those that run and wait there is 503, at once; nobody waits for ever."""
    with concurrent.futures.ThreadPoolExecutor(150) as pool:
        found = list(pool.map(lambda _: timed(slow, "/apps/slow/endless"), range(150)))
    assert {answer.status for answer, _ in found} == {503}
    refused = [took for answer, took in found if "at once" in answer.json()["detail"]]
    assert refused and max(took for _, took in found) < 20
    assert slow.get("/apps/slow/medium").status == 200


def test_a_busy_machine_makes_nothing_slow(slow):
    """What is fast is not taken for slow because its thread had to wait: here the whole worker is stopped again and again."""
    slow.app("busy", {"index.get.sql": ENDLESS.replace(" FROM n)", " FROM n WHERE i < 2000)")})
    worker, ends, before = slow.hanji.worker(), time.monotonic() + 1.5, slow.hanji.status()["apps"]["moved"]

    def ask(_):
        link, statuses = slow.link(), set()
        while time.monotonic() < ends:
            statuses.add(link.request("GET", "/apps/busy/").status)
        link.close()
        return statuses
    with concurrent.futures.ThreadPoolExecutor(32) as threads:
        asked = [threads.submit(ask, n) for n in range(32)]
        while time.monotonic() < ends:
            os.kill(worker, signal.SIGSTOP)
            time.sleep(0.003)
            os.kill(worker, signal.SIGCONT)
            time.sleep(0.003)
        assert set.union(*[one.result() for one in asked]) == {200}
    assert slow.hanji.status()["apps"]["moved"] > before


def test_clients_that_leave_meanwhile(slow):
    import socket
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", slow.nginx.port)) as sock:
            sock.sendall(b"GET /apps/slow/endless HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.05)
    assert slow.get("/apps/slow/quick").status == 200
    harness.wait_for("those to end", lambda: slow.get("/apps/slow/medium").status == 200, timeout=20)


def test_an_end_in_the_middle(make_site):
    """SIGTERM while slow queries run and wait: what is in flight is answered."""
    site = make_site(pool_threads="2", drain_timeout="15s")
    site.app("slow", FILES, "read = public\ntime = 1s\n")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(timed, site, "/apps/slow/endless") for _ in range(4)]
        time.sleep(0.5)
        os.kill(site.hanji.pid, signal.SIGTERM)
        assert [one.result()[0].status for one in running] == [503] * 4
    site.hanji.process.wait(20)
    site.hanji.stop()
