"""send() of SQL: messages in the transaction of an app's write."""
import json
import shutil

import pytest

import harness
from test_sends import JSON, make_line, messages, stored
from test_sends_lines import Other, make_sealed

FILES = {
    "schema/001-item.sql": "CREATE TABLE till_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL CHECK (name <> 'bad'));",
    "add.post.sql": "INSERT INTO till_item (name) VALUES (:name);\nSELECT send('orders', json_object('name', :name)) AS id;",
    "late.post.sql": "SELECT send('orders', :name) AS id;\nINSERT INTO till_item (name) VALUES (:name);",
    "stop.post.sql": "SELECT send('orders', 'x') AS id;\nSELECT 409 AS _status;",
    "raw.post.sql": "SELECT send(:line, CAST(:body AS TEXT), :type) AS id;",
    "blob.post.sql": "SELECT send('orders', x'ff') AS id;",
    "sealed.post.sql": "SELECT send('secret', CAST(x'ff00' AS BLOB)) AS id;",
    "many.post.sql": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT CAST(:n AS INTEGER)) "
                     "SELECT count(send(:line, substr(hex(zeroblob(:size)), 1, :size))) AS n FROM c;",
    "read.get.sql": "SELECT send('orders', 'x') AS id;",
    "count.get.sql": "SELECT count(*) AS n FROM till_item;",
}
INI = "read = public\nwrite = public\nsends = orders, secret\nsends = missing\n"


@pytest.fixture(scope="module")
def till(base, certificate):
    site = harness.Site(base / "till", certificate)
    site.hanji.command("key", "new")
    site.start()
    site.hanji.expected.append("an app has a fault|an app does not compile")
    make_line(site, "orders")
    make_line(site, "other")
    make_sealed(site, "secret", [Other(base, "till-other").card])
    site.app("till", FILES, INI)
    yield site
    site.stop()


def run(site, route, **fields):
    return site.http("POST", "/apps/till/" + route, json.dumps(fields).encode(), {**JSON, "Accept": "application/json"}, token=None)


def number(site, line):
    """Of the last message on it."""
    return site.get("/sends/%s?limit=0" % line).json()["line"]["seq"]


def last(site, line):
    return messages(site, line, "?after=%d" % (number(site, line) - 1))[0]


def items(site):
    return site.get("/apps/till/count").json()["rows"][0]["n"]


@pytest.mark.smoke
def test_a_message_in_the_transaction_of_a_row(till):
    before = items(till)
    answer = run(till, "add", name="käse")
    assert answer.status == 200, answer.body
    message = last(till, "orders")
    assert answer.json()["rows"] == [{"id": message["id"]}]
    assert stored(till, message["id"]) == '{"name":"käse"}'.encode() and message["type"] == "application/json"
    assert items(till) == before + 1


@pytest.mark.parametrize("route,name", [("late", "bad"), ("stop", "x"), ("blob", "x")])
def test_what_fails_sends_nothing(till, route, name):
    before, rows = number(till, "orders"), items(till)
    assert run(till, route, name=name).status >= 400
    assert number(till, "orders") == before and items(till) == rows


def test_a_type(till):
    assert run(till, "raw", line="orders", body="a,b", type="text/csv").status == 200
    assert last(till, "orders")["type"] == "text/csv"


@pytest.mark.parametrize("line", ["other", "missing", "", "ORDERS", "orders\nother", "secret2"])
def test_lines_that_are_not_for_the_app(till, line):
    assert run(till, "raw", line=line, body="x", type="text/plain").status >= 400
    assert messages(till, "other") == []


def test_a_get_sends_nothing(till):
    before = number(till, "orders")
    assert till.get("/apps/till/read").status >= 400
    assert number(till, "orders") == before


def test_sealed(till):
    answer = run(till, "sealed")
    assert answer.status == 200, answer.body
    message = last(till, "secret")
    assert message["sealed"] is True and message["type"] == "application/octet-stream"
    assert json.loads(stored(till, message["id"]))["line"] == "secret"


@pytest.mark.parametrize("n,size,ok", [(16, 10, True), (17, 10, False), (1, 65536, True), (1, 65537, False), (4, 16384, True), (5, 16384, False)])
def test_what_one_request_can_seal(till, n, size, ok):
    before = number(till, "secret")
    answer = run(till, "many", line="secret", n=n, size=size)
    assert (answer.status == 200) == ok, answer.body
    assert number(till, "secret") == before + (n if ok else 0)


def test_what_is_not_sealed_has_other_bounds(till):
    before = number(till, "orders")
    assert run(till, "many", line="orders", n=100, size=1000).status == 200
    assert number(till, "orders") == before + 100
    assert run(till, "many", line="orders", n=1, size=262144).status == 200
    assert run(till, "many", line="orders", n=1, size=262145).status >= 400


def test_a_write_that_is_sent_twice(till):
    before = number(till, "orders")
    answers = [till.http("POST", "/apps/till/add", b'{"name":"tea"}', {**JSON, "Accept": "application/json", "Idempotency-Key": "t1"}, token=None)
               for _ in range(2)]
    assert answers[0].status == 200 and answers[0].body == answers[1].body
    assert number(till, "orders") == before + 1


def test_names_in_app_ini(till):
    folder = till.hanji.base / "apps" / "badini"
    folder.mkdir()
    (folder / "app.ini").write_text("sends = Orders, a b\n")
    done = till.hanji.command("app", "check", folder, ok=False)
    assert done.returncode != 0 and 'sends: "Orders" is no name of a line' in done.stdout + done.stderr
    shutil.rmtree(folder)
