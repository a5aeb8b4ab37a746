"""/status and /metrics: whole, well-formed, and true."""
import re
import time

import pytest

import fastcgi
import harness


def parse_metrics(text):
    """Prometheus text format 0.0.4 → {name: type}, {(name, labels): value}; fails on anything out of form."""
    kinds, values, helped = {}, {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "summary", "histogram", "untyped") and name not in kinds
            kinds[name] = kind
        elif line and not line.startswith("#"):
            found = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})? '
                                 r'([+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf)|NaN)(?: -?\d+)?', line)
            assert found, line
            name, labels, value = found.groups()
            base = re.sub(r"_(sum|count|bucket)$", "", name)
            assert name in kinds or base in kinds, "no TYPE before %s" % line
            assert (name, labels or "") not in values, "twice: %s" % line
            values[name, labels or ""] = float(value)
    return kinds, values


def metrics(hanji):
    answer = hanji.ask("GET", "/metrics")
    assert answer.status == 200
    return parse_metrics(answer.body.decode())


FIELDS = {"version": str, "pid": int, "sqlite": str, "seq": int, "documents": int, "wal_bytes": int,
          "uptime_s": (int, float), "connections": int, "requests": int, "threads": int, "rss_bytes": int,
          "burst": dict, "commit_ms": dict, "queue": dict}


def test_status_has_its_fields(site):
    answer = site.get("/status")
    assert answer.status == 200 and answer.header("Content-Type").split(";")[0] == "application/json"
    status = answer.json()
    for name, kind in FIELDS.items():
        assert isinstance(status[name], kind) and not isinstance(status[name], bool), name
    assert set(status["burst"]) == {"count", "operations", "histogram"}
    assert set(status["commit_ms"]) == {"p50", "p99"}
    assert set(status["queue"]) == {"operations", "bytes"}
    for size, count in status["burst"]["histogram"].items():
        assert int(size) & (int(size) - 1) == 0 and isinstance(count, int) and count >= 0


def test_status_is_true(make_hanji):
    hanji = make_hanji(threads=3)
    started = time.monotonic()
    for i in range(20):
        hanji.ask("PUT", "/docs/k%d" % i, body=b"x")
    hanji.ask("DELETE", "/docs/k0")
    status = hanji.status()
    assert status["pid"] == hanji.worker()
    assert status.get("supervisor_pid", hanji.pid) == hanji.pid
    assert re.match(r"3\.\d+\.\d+", status["sqlite"])
    assert status["documents"] == 19 == hanji.rows("SELECT count(*) FROM doc")[0][0]
    assert status["seq"] == 21 == hanji.rows("SELECT max(seq) FROM change")[0][0]
    assert status["threads"] == 3
    wal = hanji.database.with_name("hanji.db-wal").stat().st_size
    assert 0.98 * wal <= status["wal_bytes"] <= wal
    assert 0 <= status["uptime_s"] <= time.monotonic() - started + 10
    assert abs(status["rss_bytes"] - harness.resident_bytes(hanji.worker())) < (2 << 20)
    assert status["burst"]["operations"] >= 21 and status["burst"]["count"] <= status["burst"]["operations"]
    assert sum(status["burst"]["histogram"].values()) == status["burst"]["count"]
    assert 0 < status["commit_ms"]["p50"] <= status["commit_ms"]["p99"] < 10000
    assert status["queue"] == {"operations": 0, "bytes": 0}
    assert status["version"] in hanji.command("version").stdout


def test_requests_and_connections_are_counted(make_hanji):
    hanji = make_hanji()
    before = hanji.status()
    crowd = [hanji.client() for _ in range(10)]
    for client in crowd:
        for _ in range(5):
            client.ask("GET", "/health")
    now = hanji.status()
    assert now["requests"] - before["requests"] in (50, 51)
    assert now["connections"] - before["connections"] in (10, 11)
    for client in crowd:
        client.close()
    harness.wait_for("connections to be gone", lambda: hanji.status()["connections"] <= before["connections"])


NAMES = {"hanji_requests_total": "counter", "hanji_connections": "gauge", "hanji_documents": "gauge", "hanji_seq": None,
         "hanji_wal_bytes": "gauge", "hanji_bursts_total": "counter", "hanji_operations_total": "counter",
         "hanji_commit_seconds": "summary", "hanji_resident_bytes": "gauge", "hanji_start_time_seconds": "gauge"}


@pytest.mark.smoke
def test_metrics_parse(site):
    answer = site.get("/metrics")
    assert answer.status == 200
    assert answer.header("Content-Type").replace(" ", "").startswith("text/plain;version=0.0.4")
    kinds, values = parse_metrics(answer.body.decode())
    for name, kind in NAMES.items():
        assert name in kinds and kind in (None, kinds[name]), name
    assert ("hanji_commit_seconds_sum", "") in values and ("hanji_commit_seconds_count", "") in values
    assert any(name == "hanji_commit_seconds" and "quantile=" in labels for name, labels in values)


def test_metrics_are_true(make_hanji):
    hanji = make_hanji()
    for i in range(10):
        hanji.ask("PUT", "/docs/k%d" % i, body=b"x")
    _, before = metrics(hanji)
    for i in range(7):
        assert hanji.ask("GET", "/docs/missing").status == 404
    for i in range(5):
        assert hanji.ask("PUT", "/docs/n%d" % i, body=b"x").status == 201
    _, now = metrics(hanji)

    def grown(name, labels=""):
        return now[name, labels] - before.get((name, labels), 0)
    assert grown("hanji_requests_total", '{status="4xx"}') == 7
    assert grown("hanji_requests_total", '{status="2xx"}') in (5, 6)
    assert grown("hanji_operations_total") == 5 and 1 <= grown("hanji_bursts_total") <= 5
    assert grown("hanji_commit_seconds_count") == grown("hanji_bursts_total")
    assert 0 < grown("hanji_commit_seconds_sum") < 5
    assert now["hanji_documents", ""] == 15 and now["hanji_seq", ""] == 15
    assert abs(now["hanji_start_time_seconds", ""] - time.time()) < 60
    assert now["hanji_resident_bytes", ""] > 1 << 20


def test_counters_do_not_count_what_was_no_request(make_hanji):
    hanji = make_hanji()
    before = hanji.status()["requests"]
    for data in (b"\xff" * 20, fastcgi.begin(), fastcgi.request("GET", "/health")[:50]):
        with hanji.client() as client:
            client.send(data)
    assert hanji.status()["requests"] - before in (0, 1)


def test_seq_and_documents_follow_other_processes(make_hanji):
    hanji = make_hanji()
    link = hanji.sqlite(readonly=False)
    link.execute("INSERT INTO doc (key, body) VALUES ('a', 'x'), ('b', 'y')")
    link.close()
    status = hanji.status()
    assert (status["documents"], status["seq"]) == (2, 2)
    _, values = metrics(hanji)
    assert (values["hanji_documents", ""], values["hanji_seq", ""]) == (2, 2)


def test_status_under_other_methods_and_parameters(site):
    assert site.http("POST", "/status", b"x").status == 405
    assert site.get("/status?x=1&x=%FF").status == 200
    assert site.get("/metrics?name[]=hanji_seq").status == 200
