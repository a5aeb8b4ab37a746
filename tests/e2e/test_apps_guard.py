"""SQL of apps over HTTP, against clients and authors who mean ill: the server lives, and others do not wait."""
import pathlib
import time

import pytest

import harness

SCHEMA = """
CREATE TABLE hall_note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE hall_words USING fts5 (text);
INSERT INTO hall_note (text) VALUES (replace(hex(zeroblob(200000)), '0', 'a'));
INSERT INTO hall_words VALUES (replace(hex(zeroblob(20000)), '0', 'a '));
"""
FILES = {
    "schema/001-note.sql": SCHEMA,
    "quick.get.sql": "SELECT 1 AS one;",
    "like.get.sql": "SELECT count(*) AS n FROM hall_note WHERE text LIKE '%' || :q || '%';",
    "printf.get.sql": "SELECT length(printf('%.*c', CAST(:n AS INTEGER), 'x')) AS n;",
    "search.get.sql": "SELECT length(highlight(hall_words, 0, '<', '>')) AS h, snippet(hall_words, 0, '<', '>', '', 5) AS s FROM hall_words(:q);",
    "memory.get.sql": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(DISTINCT randomblob(1000000)) AS n FROM c;",
    "changed.post.sql": "SELECT put_doc(:key, 'x') AS key;",
}


@pytest.fixture(scope="module")
def hall(base, certificate):
    site = harness.Site(base / "guard", certificate, pool_threads="2")
    site.start()
    site.hanji.expected.append(r"an app does not compile|an app has a fault")
    site.app("hall", FILES, "read = public\nwrite = public\ntime = 2s\n")
    yield site
    site.stop()


def timed(site, path, method="GET"):
    link = site.link()
    start = time.monotonic()
    try:
        return link.request(method, path), time.monotonic() - start
    finally:
        link.close()


def lives(site):
    assert timed(site, "/apps/hall/quick")[0].json() == {"rows": [{"one": 1}]}


@pytest.mark.parametrize("q", ["a" * 3000 + "b", "_" * 3000 + "b", "%a" * 1000 + "b"], ids=["letters", "any", "parts"])
def test_a_pattern_is_not_slow(hall, q):
    answer, took = timed(hall, "/apps/hall/like?q=" + q.replace("%", "%25"))
    assert answer.status in (200, 503) and took < 5
    lives(hall)


def test_a_width_is_bounded(hall):
    answer, took = timed(hall, "/apps/hall/printf?n=2000000000")
    assert answer.status >= 400 and took < 3
    assert timed(hall, "/apps/hall/printf?n=2000")[0].json() == {"rows": [{"n": 2000}]}
    lives(hall)


def test_many_hits_are_not_slow(hall):
    answer, took = timed(hall, "/apps/hall/search?q=a")
    assert answer.status == 200 and answer.json()["rows"][0]["s"].startswith("<a>") and took < 3


def test_memory_is_bounded(hall):
    answer, took = timed(hall, "/apps/hall/memory")
    assert answer.status >= 400 and took < 5
    lives(hall)


@pytest.mark.parametrize("key", ["notes/a", "apps/hallo/a", "apps/hall/../a", "", "apps/hall"])
def test_documents_of_others_are_not_written(hall, key):
    assert timed(hall, "/apps/hall/changed?key=" + key, "POST")[0].status >= 400
    assert hall.hanji.rows("SELECT count(*) FROM doc") == [(0,)]


@pytest.mark.parametrize("name,files,why", [
    ("steals", {"x.get.sql": "SELECT body FROM doc"}, "may not read doc"),
    ("looks", {"x.get.sql": "SELECT sql FROM sqlite_schema"}, "may not read sqlite_master"),
    ("drops", {"x.post.sql": "DELETE FROM token"}, "may not delete from token"),
    ("doubles", {"x.get.sql": "WITH a0 AS (SELECT 1)" + "".join(
        ", a%d AS (SELECT * FROM a%d, a%d AS b)" % (i, i - 1, i - 1) for i in range(1, 40)) + " SELECT * FROM a39"}, "too large"),
    ("unites", {"x.get.sql": "SELECT 1" + " UNION SELECT 1" * 499}, "too large"),
    ("ends", {"x.post.sql": "SELECT RAISE(ROLLBACK, 'x')"}, "ROLLBACK"),
    ("takes", {"schema/001-a.sql": "CREATE TABLE takes_a (a); ALTER TABLE takes_a RENAME TO doc2;"}, "takes_"),
    ("points", {"schema/001-a.sql": "CREATE TABLE points_a (a REFERENCES doc (key));"}, "not the app's"),
    ("counts", {"schema/001-a.sql": "UPDATE sqlite_sequence SET seq = 9223372036854775807;"}, "sqlite_"),
    ("reads", {"schema/001-a.sql": "CREATE VIRTUAL TABLE reads_f USING fts5 (body, content='doc');"}, "not the app's"),
])
def test_an_app_that_means_ill_is_not_served(hall, name, files, why):
    mark, folder = hall.hanji.mark(), pathlib.Path(hall.hanji.settings["apps"]) / name
    for path, text in {"app.ini": "read = public\nwrite = public\n", **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    harness.wait_for("the fault", lambda: why in hall.hanji.log_since(mark))
    for method in ("GET", "POST"):
        assert timed(hall, "/apps/%s/x" % name, method)[0].status >= 400
    assert hall.hanji.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'doc2' OR name GLOB ?", name + "*") == [(0,)]
    lives(hall)
