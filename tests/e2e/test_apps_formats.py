"""What apps' rows look like: JSON, CSV, lines of JSON."""
import csv
import io
import json
import math
import re
import random
import sqlite3
import struct

import pytest

import harness

VALUES = """
SELECT 1 AS one, -9223372036854775808 AS low, 9223372036854775807 AS high, NULL AS none, 0.1 AS tenth, 1e300 AS big, 5.0 AS five,
       'a"b\\c' || char(10, 9, 1, 0, 127, 8232) || 'ä' AS text, x'00ff41' AS bytes, '' AS empty, x'' AS zero, 9e999 AS inf, -9e999 AS minus;
"""

FILES = {
    "values.get.sql": VALUES,
    "broken.get.sql": "SELECT CAST(x'61ff62c3' AS TEXT) AS t;",
    "json.get.sql": """SELECT '{"a": [1,\n2]}' AS "doc:json", '{"broken' AS "bad:json", NULL AS "null:json", 7 AS "n:json", '[1]' AS plain;""",
    "odd.get.sql": """SELECT 1 AS "a""b\\c", 2 AS "ä", 3 AS "", 4 AS "x y";""",
    "csv.get.sql": """SELECT 1 AS n, 'plain' AS t UNION ALL SELECT 2, 'a,b' UNION ALL SELECT 3, 'say "hi"' UNION ALL SELECT 4, 'two' || char(13, 10) || 'lines'
                      UNION ALL SELECT 5, '#hash' UNION ALL SELECT 6, '=1+1' UNION ALL SELECT 7, '' UNION ALL SELECT 8, NULL UNION ALL SELECT 9, ' blank '
                      UNION ALL SELECT 10, char(10) UNION ALL SELECT 11, 'a' || char(0) || 'b' UNION ALL SELECT 12, 'ä€😀';""",
    "two.get.sql": "-- name: items\nSELECT 'item' AS a;\nSELECT 'row' AS b;",
    "empty.get.sql": "SELECT 1 AS a, 2 AS b WHERE 0;",
    "long.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:n AS INTEGER)) SELECT i, i * 0.5 AS half, 'row ' || i AS t FROM n;",
    "late.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
                    " SELECT i, CASE WHEN i = 49999 THEN json_extract('{', '$.a') END AS x FROM n;",
    "numbers.post.sql": "SELECT value AS v FROM json_each(:list);",
    "real.get.sql": "SELECT CAST(:a AS REAL) AS r;",
}


@pytest.fixture(scope="module")
def apps(site):
    site.app("form", FILES)
    return site


def get(site, path, headers=None):
    return site.get("/apps/form/" + path, headers)


# JSON

def test_values_are_exact(apps):
    row = get(apps, "values").json()["rows"][0]
    assert row == {"one": 1, "low": -2**63, "high": 2**63 - 1, "none": None, "tenth": 0.1, "big": 1e300, "five": 5.0,
                   "text": 'a"b\\c\n\t\x01\x00\x7f\u2028ä', "bytes": "AP9B", "empty": "", "zero": "", "inf": None, "minus": None}
    assert isinstance(row["five"], float) and isinstance(row["one"], int)


def test_what_is_not_utf8(apps):
    assert get(apps, "broken").json() == {"rows": [{"t": "a\ufffdb\ufffd"}]}


def test_json_inside_of_json(apps):
    row = get(apps, "json").json()["rows"][0]
    assert row == {"doc": {"a": [1, 2]}, "bad": '{"broken', "null": None, "n": 7, "plain": "[1]"}


def test_odd_names_of_columns(apps):
    assert get(apps, "odd").json() == {"rows": [{'a"b\\c': 1, "ä": 2, "": 3, "x y": 4}]}


REALS = [0.0, -0.0, 0.5, 0.05, -12.75, 1e6, 1e15, 1e16, 1e21, 123456.789, 5e-324, 1.7976931348623157e308, 2**53 + 2.0, 0.1 + 0.2, 1 / 3, 1e-7,
         999999999.999999, 999999999.9999999, 1e9, 0.000001, 4.35, 2.675, 1.005]


@pytest.mark.parametrize("real", REALS, ids=repr)
def test_reals_are_read_back_the_same(apps, real):
    text = get(apps, "real?a=" + repr(real).replace("+", "%2B")).body
    got = json.loads(text)["rows"][0]["r"]
    assert isinstance(got, float) and struct.pack("d", got) == struct.pack("d", real)
    digits = [len(re.sub(r"e.*|[^0-9]", "", one).strip("0")) for one in (text.decode().partition('"r":')[2], repr(real))]
    assert digits[0] <= digits[1]


def test_many_reals(apps):
    random.seed(3)
    numbers = [random.uniform(-1e3, 1e3) for _ in range(300)] + [round(random.uniform(-1e9, 1e9), random.randrange(7)) for _ in range(300)]
    numbers += [struct.unpack("d", random.randbytes(8))[0] for _ in range(300)]
    numbers = [n for n in numbers if math.isfinite(n)]
    body = json.dumps({"list": numbers}).encode()
    rows = apps.http("POST", "/apps/form/numbers", body, {"Content-Type": "application/json"}).json()["rows"]
    link = sqlite3.connect(":memory:")
    want = [value for value, in link.execute("SELECT value FROM json_each(?)", (json.dumps(numbers),))]
    assert [row["v"] for row in rows] == want


# CSV (documents.md 24)

def test_csv_is_read_back(apps):
    answer = get(apps, "csv?format=csv")
    assert answer.header("Content-Type") == "text/csv; charset=utf-8; header=present"
    assert answer.header("Content-Disposition") == "attachment; filename=\"form-csv.csv\"; filename*=UTF-8''form-csv.csv"
    text = answer.body.decode("utf-8")
    assert text.endswith("\r\n") and text.startswith("n,t\r\n1,plain\r\n2,\"a,b\"\r\n3,\"say \"\"hi\"\"\"\r\n4,\"two\r\nlines\"\r\n5,#hash\r\n6,=1+1\r\n7,\"\"\r\n8,\r\n")
    rows = list(csv.reader(io.StringIO(text.replace("\0", "NUL"), newline="")))
    assert rows[0] == ["n", "t"] and rows[8] == ["8", ""] and rows[9][1] == " blank " and rows[10][1] == "\n"
    assert rows[11][1] == "aNULb" and rows[12][1] == "ä€😀" and len(rows) == 13


def test_csv_by_accept(apps):
    assert get(apps, "csv", {"Accept": "text/csv"}).header("Content-Type").startswith("text/csv")
    assert get(apps, "csv", {"Accept": "*/*"}).header("Content-Type") == "application/json"


def test_csv_of_values(apps):
    lines = get(apps, "values?format=csv").body.split(b"\r\n", 1)
    assert lines[0] == b"one,low,high,none,tenth,big,five,text,bytes,empty,zero,inf,minus"
    assert lines[1].startswith(b"1,-9223372036854775808,9223372036854775807,,0.1,1e+300,5.0,")
    assert get(apps, "broken?format=csv").body == "t\r\na\ufffdb\ufffd\r\n".encode()
    assert get(apps, "empty?format=csv").body == b"a,b\r\n"
    assert get(apps, "odd?format=csv").body == 'a"b\\c,ä,"",x y\r\n1,2,3,4\r\n'.replace('a"b\\c', '"a""b\\c"').encode()


def test_which_result(apps):
    assert get(apps, "two?format=csv").body == b"b\r\nrow\r\n"
    assert get(apps, "two?format=csv&result=items").body == b"a\r\nitem\r\n"
    assert get(apps, "two?format=csv&result=nothing").status == 400
    assert get(apps, "two?format=csv&result=items&result=rows").status == 400


# lines

def test_lines_of_json(apps):
    answer = get(apps, "csv?format=ndjson")
    assert answer.header("Content-Type") == "application/x-ndjson"
    rows = [json.loads(line) for line in answer.body.split(b"\n")[:-1]]
    assert len(rows) == 12 and rows[3] == {"n": 4, "t": "two\r\nlines"} and rows[10]["t"] == "a\0b"


def test_json_in_a_line_has_no_line_break(apps):
    answer = get(apps, "json?format=ndjson")
    assert answer.body.count(b"\n") == 1 and json.loads(answer.body)["doc"] == {"a": [1, 2]}


# long answers

@pytest.mark.parametrize("form", ["csv", "ndjson"])
@pytest.mark.parametrize("n", [10, 5000, 100000])
def test_long_answers_are_whole(apps, form, n):
    answer = get(apps, "long?format=%s&n=%d" % (form, n))
    lines = answer.body.splitlines()
    assert answer.status == 200 and len(lines) == n + (form == "csv")
    assert int(answer.header("Content-Length")) == len(answer.body)
    last = lines[-1].decode()
    assert last == ("%d,%s,row %d" % (n, n * 0.5, n) if form == "csv" else '{"i":%d,"half":%s,"t":"row %d"}' % (n, n * 0.5, n))


def test_a_long_answer_costs_no_memory(apps):
    worker = apps.hanji.worker()
    get(apps, "long?format=csv&n=1000")
    before = harness.resident_bytes(worker)
    assert len(get(apps, "long?format=csv&n=400000").body) > 8_000_000
    assert harness.sanitized() or harness.resident_bytes(worker) - before < (3 << 20)


def test_an_error_at_the_end_is_an_error(apps):
    """Nothing was sent when it came (documents.md 24)."""
    answer = get(apps, "late?format=csv")
    assert answer.status == 500 and answer.header("Content-Type") == "application/problem+json"


def test_json_has_a_bound_of_rows(apps):
    assert get(apps, "long?n=1000").status == 200
    mark = apps.hanji.mark()
    assert get(apps, "long?n=1001").status == 500
    assert "page it" in harness.wait_for("the log", lambda: apps.hanji.log_since(mark))


def test_head_of_a_long_answer(apps):
    answer = apps.head("/apps/form/long?format=csv&n=100000")
    assert answer.status == 200 and int(answer.header("Content-Length")) > 1_000_000


def test_readers_that_leave_in_the_middle(apps):
    import socket
    worker = apps.hanji.worker()
    before = harness.descriptors(worker)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", apps.nginx.port)) as sock:
            sock.sendall(b"GET /apps/form/long?format=csv&n=300000 HTTP/1.1\r\nHost: x\r\n\r\n")
            sock.recv(1000)
    harness.wait_for("the files to be closed", lambda: harness.descriptors(worker) <= before + 8)
