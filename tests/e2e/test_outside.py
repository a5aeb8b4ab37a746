"""Rows changed by the sqlite3 shell keep every invariant, and the server serves them at once."""
import json
import re
import subprocess
import time

import pytest


@pytest.fixture
def shell(site):
    """Runs SQL in the plain sqlite3 shell; returns its output."""
    def run(sql, ok=True):
        done = subprocess.run(["sqlite3", "-batch", "-bail", "-cmd", ".timeout 10000", "-cmd",
                               "PRAGMA wal_autocheckpoint=0", str(site.hanji.database)],
                              input=sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
        assert (done.returncode == 0) == ok, done
        return done.stdout.split("\n", 1)[1].strip()        # the PRAGMA prints its value
    return run


def quoted(key):
    return "'%s'" % key.replace("'", "''")


def row(site, key):
    found = site.hanji.rows("SELECT seq, type, modified, size FROM doc WHERE key = ?", key)
    return found[0] if found else None


def changes(site, key):
    return site.hanji.rows("SELECT seq, op FROM change WHERE key = ? ORDER BY seq", key)


@pytest.mark.smoke
def test_insert(site, box, shell):
    key, before = box[6:] + "k", site.hanji.status()
    start = int(time.time())
    shell("INSERT INTO doc (key, type, body) VALUES (%s, 'text/plain', 'häl');" % quoted(key))
    got = site.get(box + "k")
    assert (got.status, got.body, got.header("Content-Type")) == (200, "häl".encode(), "text/plain")
    seq, kind, modified, size = row(site, key)
    assert seq > before["seq"] and got.header("ETag") == '"%d"' % seq
    assert size == 4, "bytes, not characters"
    assert start <= modified <= time.time()
    assert changes(site, key) == [(seq, "put")]
    after = site.hanji.status()
    assert after["documents"] == before["documents"] + 1 and after["seq"] == seq


def test_insert_of_the_least(site, box, shell):
    shell("INSERT INTO doc (key, body) VALUES (%s, x'00ff');" % quoted(box[6:] + "k"))
    got = site.get(box + "k")
    assert (got.body, got.header("Content-Type")) == (b"\0\xff", "application/octet-stream")


def test_insert_of_an_empty_body(site, box, shell):
    shell("INSERT INTO doc (key, type, body) VALUES (%s, 'text/plain', '');" % quoted(box[6:] + "k"))
    got = site.get(box + "k")
    assert (got.status, got.body, got.header("Content-Length")) == (200, b"", "0")


def test_update_of_the_body(site, box, shell):
    first = int(site.put(box + "k", b"one", {"Content-Type": "text/plain"}).header("ETag").strip('"'))
    key = box[6:] + "k"
    shell("UPDATE doc SET body = 'longer' WHERE key = %s;" % quoted(key))
    got = site.get(box + "k")
    seq, _, modified, size = row(site, key)
    assert got.body == b"longer" and got.header("Content-Length") == "6" and size == 6
    assert seq > first and got.header("ETag") == '"%d"' % seq
    assert time.time() - modified < 5
    assert changes(site, key)[-1] == (seq, "put")
    assert site.put(box + "k", b"x", {"If-Match": '"%d"' % first}).status == 412


def test_update_of_the_type_alone(site, box, shell):
    first = site.put(box + "k", b"one", {"Content-Type": "text/plain"}).header("ETag")
    shell("UPDATE doc SET type = 'text/html' WHERE key = %s;" % quoted(box[6:] + "k"))
    got = site.get(box + "k")
    assert got.header("Content-Type") == "text/html" and got.header("ETag") != first


def test_update_by_json(site, box, shell):
    site.put(box + "k", b'{"a":1}', {"Content-Type": "application/json"})
    shell("UPDATE doc SET body = json_set(body, '$.b', 2) WHERE key = %s;" % quoted(box[6:] + "k"))
    assert site.get(box + "k").json() == {"a": 1, "b": 2}


def test_delete(site, box, shell):
    site.put(box + "k", b"x")
    before = site.hanji.status()
    shell("DELETE FROM doc WHERE key = %s;" % quoted(box[6:] + "k"))
    assert site.get(box + "k").status == 404
    after = site.hanji.status()
    assert after["documents"] == before["documents"] - 1 and after["seq"] > before["seq"]
    assert changes(site, box[6:] + "k")[-1] == (after["seq"], "delete")


def test_renaming_is_a_delete_and_a_put(site, box, shell):
    site.put(box + "old", b"x")
    shell("UPDATE doc SET key = %s WHERE key = %s;" % (quoted(box[6:] + "new"), quoted(box[6:] + "old")))
    assert site.get(box + "old").status == 404
    got = site.get(box + "new")
    assert got.body == b"x"
    assert changes(site, box[6:] + "old")[-1][1] == "delete"
    assert changes(site, box[6:] + "new")[-1] == (int(got.header("ETag").strip('"')), "put")


def test_replace_and_upsert(site, box, shell):
    key = quoted(box[6:] + "k")
    site.put(box + "k", b"x")
    before = site.hanji.status()["documents"]
    shell("INSERT OR REPLACE INTO doc (key, type, body) VALUES (%s, 'text/plain', 'replaced');" % key)
    first = site.get(box + "k")
    assert first.body == b"replaced"
    shell("INSERT INTO doc (key, type, body) VALUES (%s, 'text/plain', 'x')"
          " ON CONFLICT (key) DO UPDATE SET body = 'upserted';" % key)
    second = site.get(box + "k")
    assert second.body == b"upserted" and int(second.header("ETag").strip('"')) > int(first.header("ETag").strip('"'))
    assert site.hanji.status()["documents"] == before
    assert site.hanji.rows("SELECT count(*) FROM doc") == [(before,)]


def test_many_rows_at_once(site, box, shell):
    prefix = box[6:]
    before = site.hanji.status()
    shell("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
          " INSERT INTO doc (key, type, body)"
          " SELECT '%s' || printf('%%03d', i), 'text/plain', CAST(i AS TEXT) FROM n;" % prefix)
    assert site.hanji.status()["documents"] == before["documents"] + 500
    listed = site.get(box + "?limit=1000").json()["items"]
    assert len(listed) == 500 and listed[0]["key"] == prefix + "001"
    tags = {item["etag"] for item in listed}
    assert len(tags) == 500, "each row has a number of its own"
    assert site.get(box + "007").body == b"7"
    shell("UPDATE doc SET body = body || '!' WHERE key LIKE '%s%%';" % prefix)
    again = {item["etag"] for item in site.get(box + "?limit=1000").json()["items"]}
    assert len(again) == 500 and not again & tags
    assert site.get(box + "007").body == b"7!"
    shell("DELETE FROM doc WHERE key LIKE '%s%%';" % prefix)
    assert site.get(box).json()["items"] == []
    assert site.hanji.status()["documents"] == before["documents"]


def test_rolled_back_changes_leave_no_trace(site, box, shell):
    before = site.hanji.status()
    shell("BEGIN; INSERT INTO doc (key, type, body) VALUES (%s, 'text/plain', 'x'); ROLLBACK;" % quoted(box[6:] + "k"))
    after = site.hanji.status()
    assert (after["seq"], after["documents"]) == (before["seq"], before["documents"])
    assert changes(site, box[6:] + "k") == []
    assert site.get(box + "k").status == 404


def test_numbers_are_not_for_others_to_give(site, box, shell):
    """Whatever somebody writes into seq, size and modified: what is served holds together, and numbers go on rising."""
    shell("INSERT OR IGNORE INTO doc (key, type, body, seq, size, modified)"
          " VALUES (%s, 'text/plain', 'abc', 1, 99, 5);" % quoted(box[6:] + "k"))
    got = site.get(box + "k")
    if got.status == 200:
        assert got.body == b"abc" and got.header("Content-Length") == "3" and int(got.header("ETag").strip('"')) > 1
    shell("UPDATE OR IGNORE doc SET seq = 1, size = 99 WHERE key = %s;" % quoted(box[6:] + "k"))
    got = site.get(box + "k")
    if got.status == 200:
        assert got.body == b"abc" and got.header("Content-Length") == "3"
    put = site.put(box + "next", b"x")
    numbers = [seq for seq, in site.hanji.rows("SELECT seq FROM change ORDER BY rowid")]
    assert numbers == sorted(set(numbers))
    assert int(put.header("ETag").strip('"')) == max(numbers)


ODD_ROWS = {
    "a number as body": "('%s', 'text/plain', 42)", "a real as body": "('%s', 'text/plain', 1.5)",
    "broken JSON": "('%s', 'application/json', '{')",
    "a type with a line end": "('%s', 'text/plain' || char(13, 10) || 'X-Evil: 1', 'x')",
    "an empty type": "('%s', '', 'x')", "NULL as body": "('%s', 'text/plain', NULL)",
    "NULL as type": "('%s', NULL, 'x')", "text with a NUL": "('%s', 'text/plain', 'a' || char(0) || 'b')",
    "a number as type": "('%s', 5, 'x')", "a long type": "('%s', printf('%%.20000c', 'x'), 'x')",
    "bytes as text": "('%s', 'text/plain', CAST(x'ff00fe' AS TEXT))",
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_odd_rows(site, box, name):
    """Refused by the table, or served without harm."""
    values = ODD_ROWS[name].replace("%%", "%").replace("%s", box[6:] + "k")
    link = site.hanji.sqlite(readonly=False)
    try:
        link.execute("INSERT INTO doc (key, type, body) VALUES " + values)
    except Exception as refused:
        assert re.search("constraint|check|doc", str(refused), re.I), refused
        assert site.get(box + "k").status == 404
        return
    finally:
        link.close()
    try:
        got = site.get(box + "k")
        assert got.header("X-Evil") is None and got.header("Content-Length") == str(len(got.body))
        item, = site.get(box).json()["items"]
        if name == "a type with a line end":
            assert got.status == 500, "it can be no header"
        else:
            assert got.status == 200 and item["size"] == len(got.body) and item["etag"] == got.header("ETag")
    finally:
        site.delete(box + "k")


BAD_KEYS = ["''", "'/'", "'a//b'", "'/a'", "'a/'", "'.'", "'a/../b'", "printf('%.600c', 'x')", "'a' || char(0) || 'b'",
            "'a' || char(10)", "'a\\b'", "NULL", "5", "x'6162'", "CAST(x'ff' AS TEXT)"]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_odd_keys(site, box, key):
    """Refused by the table, or there and harmless: lists stay JSON and the server lives."""
    link = site.hanji.sqlite(readonly=False)
    try:
        before = link.execute("SELECT max(id) FROM doc").fetchone()[0] or 0
        try:
            link.execute("INSERT INTO doc (key, type, body) VALUES (%s, 'text/plain', 'x')" % key)
        except Exception as refused:
            assert re.search("constraint|key|type", str(refused), re.I), refused
            return
        try:
            got = site.get("/docs/?limit=1000")
            assert got.status == 200
            json.loads(got.body)
            assert site.hanji.ask("GET", "/docs/a//b").status == 400
        finally:
            link.execute("DELETE FROM doc WHERE id > ?", (before,))
    finally:
        link.close()


@pytest.mark.alone
def test_a_write_waits_for_another_processs_transaction(site, box):
    """Somebody holds the write lock for a moment: the answer comes after it, reads do not wait."""
    import concurrent.futures
    link = site.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    link.execute("INSERT INTO doc (key, type, body) VALUES (?, 'text/plain', 'x')", (box[6:] + "theirs",))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(site.hanji.ask, "PUT", box + "ours", body=b"x", timeout=10)
        start = time.monotonic()
        assert site.get(box + "theirs").status == 404
        assert time.monotonic() - start < 0.2
        time.sleep(0.4)
        assert not future.done()
        link.execute("COMMIT")
        assert future.result().status == 201
    link.close()
    assert site.get(box + "theirs").status == 200


def test_the_file_reads_well(site, box, shell):
    """What the documentation promises to somebody with a shell."""
    site.put(box + "k", b'{"n":7}', {"Content-Type": "application/json"})
    assert shell("SELECT key, size FROM doc WHERE key = %s;" % quoted(box[6:] + "k")) == "%sk|7" % box[6:]
    assert shell("SELECT body FROM doc WHERE key = %s;" % quoted(box[6:] + "k")) == '{"n":7}'
    assert int(shell("SELECT value FROM meta WHERE name = 'schema_version';")) >= 1
    assert shell("SELECT value FROM meta WHERE name = 'min_program';") != ""
    assert shell("PRAGMA integrity_check;") == "ok"
    assert shell("PRAGMA journal_mode;") == "wal"
