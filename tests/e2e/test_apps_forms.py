"""Forms: writing, going on to a page, the page again with what is wrong; all or nothing; the same post twice."""
import threading
import uuid

import pytest

import harness

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = {**FORM, "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Sec-Fetch-Site": "same-origin"}

FILES = {
    "schema/001-todo.sql": """
CREATE TABLE todo_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE CONSTRAINT a_name_is_needed CHECK (trim(name) <> ''),
                        days INTEGER CHECK (days BETWEEN 1 AND 99));
CREATE TABLE todo_log (n INTEGER PRIMARY KEY, what TEXT);
CREATE TRIGGER todo_no_gold BEFORE INSERT ON todo_item WHEN new.name = 'gold' BEGIN SELECT RAISE(ABORT, 'No gold here'); END;
""",
    "list.get.sql": "SELECT id, name FROM todo_item ORDER BY id;",
    "list.html": "<h1>{{_title}}</h1>{{#_error}}<p role=alert>{{_error}}</p>{{/_error}}<input name=name value=\"{{_input.name}}\">"
                 "<input name=days value=\"{{_input.days}}\">{{#rows}}<li>{{name}}</li>{{/rows}}",
    "add.post.sql": "-- form: list\nINSERT INTO todo_log (what) VALUES (:name);\n"
                    "SELECT 422 AS _status, 'A name has at most 20 letters' AS message WHERE length(:name) > 20;\n"
                    "INSERT INTO todo_item (name, days) VALUES (:name, :days) RETURNING id, name;",
    "go.post.sql": "-- form: list\nSELECT 'edit/7?ok=1' AS _location;",
    "made.post.sql": "INSERT INTO todo_item (name) VALUES (:name) RETURNING id, 201 AS _status, 'edit/' || id AS _location;",
    "gone.post.sql": "-- form: list\nDELETE FROM todo_item WHERE name = :name; SELECT 204 AS _status;",
    "edit/:id.get.sql": "SELECT :id AS id, 'old' AS name;",
    "edit/:id.html": "{{#rows}}<form action=\"{{_app}}edit/{{id}}\"><input value=\"{{_input.name}}{{^_input.name}}{{name}}{{/_input.name}}\">{{/rows}}{{_error}}",
    "edit/:id.post.sql": "SELECT 409 AS _status, 'Somebody was faster' AS message WHERE :name = 'new';\nSELECT :id AS id;",
    "save.post.sql": "-- form: edit/:id\nSELECT 422 AS _status, 'Not so' AS message WHERE :name = '';\nSELECT 1 AS one;",
    "lone.post.sql": "SELECT 422 AS _status, 'no page for it' AS message WHERE :x = 'no'; SELECT :x AS x;",
    "half.post.sql": "INSERT INTO todo_item (name) VALUES (:name);\nINSERT INTO todo_item (name) VALUES (:name);",
    "stop.post.sql": "INSERT INTO todo_item (name) VALUES (:name);\nSELECT 400 AS _status, 'after all not' AS message;",
    "slow.post.sql": "INSERT INTO todo_item (name) VALUES (:name);\n"
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS n FROM n;",
    "bad.post.sql": "INSERT INTO todo_item (name) VALUES (:name);\nSELECT json_extract('{', '$') AS x;",
    "wrong.post.sql": "INSERT INTO todo_item (name) VALUES (:name);\nSELECT '//x' AS _location;",
    "many.post.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n;",
    "count.get.sql": "SELECT (SELECT count(*) FROM todo_item) AS items, (SELECT count(*) FROM todo_log) AS logged;",
    "raw.post.sql": "SELECT 'text/plain' AS _type, 'done' AS _body;",
    "cookie.post.sql": "-- form: list\nSELECT 'name=' || :name AS _cookie;",
}


@pytest.fixture(scope="module")
def todo(site):
    site.app("todo", FILES, "title = To <do>\nread = public\nwrite = public\n")
    return site


def post(site, path, body=b"", headers=FORM, **more):
    return site.http("POST", "/apps/todo/" + path, body, headers, **more)


def names(site):
    return [row["name"] for row in site.get("/apps/todo/list").json()["rows"]]


def counts(site):
    return site.get("/apps/todo/count").json()["rows"][0]


def fresh():
    return "n" + uuid.uuid4().hex[:12]


# on success

def test_a_program_gets_rows(todo):
    name = fresh()
    answer = post(todo, "add", b"name=%s" % name.encode())
    assert answer.status == 200 and answer.json()["rows"][0]["name"] == name and name in names(todo)


def test_a_browser_goes_on_to_the_page_of_the_form(todo):
    name = fresh()
    answer = post(todo, "add", b"name=%s" % name.encode(), BROWSER)
    assert (answer.status, answer.header("Location"), answer.body) == (303, "/apps/todo/list", b"")
    assert answer.header("Cache-Control") == "no-store" and name in names(todo)


def test_to_another_place(todo):
    assert post(todo, "go", headers=BROWSER).header("Location") == "/apps/todo/edit/7?ok=1"
    answer = post(todo, "go")
    assert (answer.status, answer.header("Location")) == (200, "/apps/todo/edit/7?ok=1")


def test_what_was_made(todo):
    answer = post(todo, "made", b"name=" + fresh().encode())
    ident = answer.json()["rows"][0]["id"]
    assert (answer.status, answer.header("Location")) == (201, "/apps/todo/edit/%d" % ident)
    answer = post(todo, "made", b"name=" + fresh().encode(), BROWSER)
    assert answer.status == 303 and answer.header("Location").startswith("/apps/todo/edit/")


def test_no_content(todo):
    answer = post(todo, "gone", b"name=x")
    assert answer.status == 204 and answer.body == b""
    assert post(todo, "gone", b"name=x", BROWSER).status == 303


def test_to_its_own_page(todo):
    assert post(todo, "edit/5", b"name=x", BROWSER).header("Location") == "/apps/todo/edit/5"


def test_where_there_is_no_page(todo):
    assert post(todo, "lone", b"x=1", BROWSER).json() == {"rows": [{"x": "1"}]}
    assert post(todo, "raw", headers=BROWSER).body == b"done"


def test_a_cookie_on_the_way(todo):
    answer = post(todo, "cookie", b"name=Ann", BROWSER)
    assert answer.status == 303 and answer.header("Set-Cookie").startswith("todo_name=Ann; Path=/apps/todo/;")


# when something is wrong

@pytest.mark.parametrize("body,status,text", [(b"name=+&days=3", 422, "a_name_is_needed"), (b"days=3", 422, "NOT NULL"),
                                              (b"name=gold", 422, "No gold here"), (b"name=zz&days=100", 422, "CHECK"),
                                              (b"name=" + b"x" * 21, 422, "A name has at most 20 letters")])
def test_the_page_again(todo, body, status, text):
    """With its own rows, what was sent, and what is wrong; and nothing was kept."""
    before = counts(todo)
    answer = post(todo, "add", body, BROWSER)
    page = answer.body.decode()
    assert answer.status == status and text in page and "<p role=alert>" in page and "<li>" in page
    for field in body.decode().split("&"):
        name, _, value = field.partition("=")
        assert 'name=%s value="%s"' % (name, value.replace("+", " ")) in page
    assert counts(todo) == before
    answer = post(todo, "add", body)
    assert answer.status == status and text in answer.json()["detail"]
    assert counts(todo) == before


def test_a_name_that_is_there(todo):
    name = fresh().encode()
    post(todo, "add", b"name=" + name)
    assert post(todo, "add", b"name=" + name, BROWSER).status == 409
    assert post(todo, "add", b"name=" + name).status == 409


def test_what_was_sent_is_escaped(todo):
    page = post(todo, "add", b"name=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", BROWSER).body
    assert b"<script>" not in page and b"&quot;&gt;&lt;script&gt;" in page and b"<h1>To &lt;do&gt;</h1>" in page


def test_the_page_of_an_item(todo):
    answer = post(todo, "edit/12", b"name=new", BROWSER)
    assert answer.status == 409 and b'action="/apps/todo/edit/12"' in answer.body and b'value="new"' in answer.body
    assert b"Somebody was faster" in answer.body


def test_a_page_that_the_body_names(todo):
    answer = post(todo, "save", b"name=&id=31", BROWSER)
    assert answer.status == 422 and b'action="/apps/todo/edit/31"' in answer.body
    assert post(todo, "save", b"name=x&id=31", BROWSER).header("Location") == "/apps/todo/edit/31"
    assert post(todo, "save", b"name=", BROWSER).status == 422      # there is no such page: a problem
    assert post(todo, "save", b"name=&id=a/b", BROWSER).status == 422
    assert post(todo, "save", b"name=&id=..", BROWSER).status == 422


def test_no_page_to_show(todo):
    answer = post(todo, "lone", b"x=no", BROWSER)
    assert answer.status == 422 and b"no page for it" in answer.body
    assert answer.header("Content-Type") == "text/html; charset=utf-8"


# all or nothing (documents.md 23)

@pytest.mark.parametrize("path,status", [("half", 409), ("stop", 400), ("slow", 503), ("bad", 422)])
def test_nothing_is_left(todo, path, status):
    before = counts(todo)
    answer = post(todo, path, b"name=" + fresh().encode())
    assert answer.status == status
    assert counts(todo) == before
    assert post(todo, "add", b"name=" + fresh().encode()).status == 200


def test_a_slow_one_does_not_take_others_with_it(todo):
    """In the same burst."""
    results = []

    def run(path, name):
        link = todo.link()
        answer = link.request("POST", "/apps/todo/" + path, b"name=" + name.encode(), FORM)
        results.append((path, answer.status, name))
        link.close()
    threads = [threading.Thread(target=run, args=("slow" if i % 4 == 0 else "add", fresh())) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = names(todo)
    for path, status, name in results:
        assert status == (503 if path == "slow" else 200)
        assert (name in there) == (path == "add")


def test_wrong_answers_to_what_was_done(todo):
    """It is done, and the answer says so."""
    name = fresh()
    answer = post(todo, "wrong", b"name=" + name.encode())
    assert answer.status == 500 and "was done" in answer.json()["detail"] and name in names(todo)
    assert post(todo, "many").status == 500


# twice

def test_the_same_key_changes_nothing(todo):
    name, key = fresh(), {"Idempotency-Key": uuid.uuid4().hex}
    first = post(todo, "made", b"name=" + name.encode(), {**FORM, **key})
    again = post(todo, "made", b"name=" + name.encode(), {**FORM, **key})
    assert (first.status, first.body, first.header("Location")) == (again.status, again.body, again.header("Location"))
    assert first.header("Idempotency-Replayed") is None and again.header("Idempotency-Replayed") == "true"
    assert names(todo).count(name) == 1


def test_the_same_in_another_spelling_is_the_same(todo):
    name, key = fresh().encode(), {"Idempotency-Key": uuid.uuid4().hex}
    assert post(todo, "made", b"name=" + name, {**FORM, **key}).status == 201
    assert post(todo, "made", b'{"name":"%s"}' % name, {"Content-Type": "application/json", **key}).header("Idempotency-Replayed") == "true"
    assert post(todo, "made", b"x=y&name=" + name, {**FORM, **key}).header("Idempotency-Replayed") == "true"


def test_another_request_with_the_same_key(todo):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    assert post(todo, "made", b"name=" + fresh().encode(), {**FORM, **key}).status == 201
    assert post(todo, "made", b"name=" + fresh().encode(), {**FORM, **key}).status == 422
    assert post(todo, "made", b"", {**FORM, **key}).status == 422


def test_what_failed_may_be_tried_again(todo):
    key, name = {"Idempotency-Key": uuid.uuid4().hex}, fresh().encode()
    assert post(todo, "stop", b"name=" + name, {**FORM, **key}).status == 400
    assert post(todo, "stop", b"name=" + name, {**FORM, **key}).status == 400
    assert post(todo, "add", b"name=" + name, {**FORM, "Idempotency-Key": "x y"}).status == 400


def test_a_browser_twice(todo):
    key, name = {"Idempotency-Key": uuid.uuid4().hex}, fresh().encode()
    for _ in range(2):
        assert post(todo, "add", b"name=" + name, {**BROWSER, **key}).status == 303


# durable

def test_what_was_acknowledged_is_there(make_hanji):
    hanji = make_hanji()
    hanji.app("todo", FILES)
    import os
    import signal
    from fastcgi import Client  # noqa: F401
    hanji.expect_new_worker()
    for i in range(5):
        assert hanji.ask("POST", "/apps/todo/add", body=b"name=durable%d" % i, extra={"CONTENT_TYPE": FORM["Content-Type"]}).status == 200
    old = hanji.worker()
    os.kill(old, signal.SIGKILL)
    harness.wait_for("another worker", lambda: [pid for pid in hanji.workers() if pid != old])
    hanji.wait_healthy()
    assert hanji.ask("GET", "/apps/todo/count").body == b'{"rows":[{"items":5,"logged":5}]}\n'
