"""Apps over HTTP: addresses, methods, rights, errors, and what the SQL says about the answer."""
import json
import time

import pytest

import harness

SCHEMA = """
CREATE TABLE lab_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE CHECK (name <> ''), points INTEGER NOT NULL DEFAULT 0);
INSERT INTO lab_item (name, points) VALUES ('ink', 3), ('paper', 5);
"""

LAB = {
    "schema/001-item.sql": SCHEMA,
    "index.get.sql": "SELECT 'home' AS page;",
    "list.get.sql": "SELECT id, name FROM lab_item ORDER BY id;",
    "two.get.sql": "-- name: items\nSELECT name FROM lab_item ORDER BY id;\nSELECT count(*) AS n FROM lab_item;",
    "item/:id.get.sql": "SELECT id, name FROM lab_item WHERE id = :id;",
    "item/new.get.sql": "SELECT 'literal' AS page;",
    "item/:id.put.sql": "UPDATE lab_item SET name = :name WHERE id = :id RETURNING id, name;",
    "item/:id.delete.sql": "DELETE FROM lab_item WHERE id = :id RETURNING id;",
    "add.post.sql": "INSERT INTO lab_item (name) VALUES (:name) RETURNING id, name;",
    "nothing.get.sql": "SELECT 1 AS x WHERE 0;",
    "page.html": "<p>only a page</p>",
    "both.get.sql": "SELECT name FROM lab_item ORDER BY id;",
    "both.html": "{{#rows}}<i>{{name}}</i>{{/rows}}",
    "number.get.sql": "SELECT 404 AS _status, 'There is no such thing' AS message WHERE :x = 'no';\nSELECT 1 AS one;",
    "away.get.sql": "SELECT :to AS _location;",
    "made.get.sql": "SELECT 201 AS _status, 'item/7' AS _location, 7 AS id;",
    "cookie.get.sql": "SELECT 'who=' || :who || '; Max-Age=3600' AS _cookie, 1 AS x;",
    "cookied.get.sql": "SELECT :_cookie_who AS who;",
    "cache.get.sql": "SELECT 'public, max-age=60' AS _cache, 1 AS x;",
    "raw.get.sql": "SELECT 'text/plain; charset=utf-8' AS _type, 'hello ' || :x AS _body;",
    "file.get.sql": "SELECT 'image/png' AS _type, x'89504e47' AS _body, :n AS _filename;",
    "bad.get.sql": "SELECT json_extract(:x, '$.a') AS a;",
    "odd.get.sql": "SELECT 99 AS _status;",
    "split.get.sql": "SELECT 'a' || char(13) || char(10) || 'X: y' AS _location;",
    "many.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n;",
}


@pytest.fixture(scope="module")
def lab(site):
    site.app("lab", LAB)
    return site


def get(site, path, headers=None, **more):
    return site.get("/apps/lab/" + path, headers, **more)


# addresses

@pytest.mark.parametrize("path,rows", [("", [{"page": "home"}]), ("item/new", [{"page": "literal"}]),
                                       ("item/1", [{"id": 1, "name": "ink"}]), ("nothing", []), ("item/77", [])])
def test_a_route(lab, path, rows):
    answer = get(lab, path)
    assert answer.status == 200 and answer.json() == {"rows": rows}
    assert answer.header("Content-Type") == "application/json"


@pytest.mark.parametrize("path", ["nowhere", "list/", "item/", "item/1/", "item/1/2", "index", "list.get.sql", "app.ini", "_layout",
                                  "schema/001-item.sql", ".", "LIST", "list%2F"])
def test_no_route(lab, path):
    answer = get(lab, path)
    assert answer.status in (404, 200) if path == "." else answer.status == 404


def test_no_app(lab):
    assert lab.get("/apps/nowhere/").status == 404
    assert lab.get("/apps/nowhere").status == 404
    assert lab.get("/apps/").status == 404


def test_the_slash_behind_the_name(lab):
    answer = lab.get("/apps/lab?a=1&b=%C3%A4")
    assert (answer.status, answer.header("Location")) == (308, "/apps/lab/?a=1&b=%C3%A4")
    assert lab.head("/apps/lab").status == 308
    answer = lab.http("POST", "/apps/lab", b"a=1", {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 405         # nothing is lost on the way


def test_head(lab):
    want, got = get(lab, "list"), lab.head("/apps/lab/list")
    assert got.status == 200 and got.body == b"" and got.header("Content-Length") == want.header("Content-Length")


@pytest.mark.parametrize("method,path,allow", [("POST", "list", "GET, HEAD"), ("GET", "add", "POST"), ("HEAD", "add", "POST"),
                                               ("POST", "item/1", "GET, HEAD, PUT, DELETE"), ("PATCH", "item/1", "GET, HEAD, PUT, DELETE"),
                                               ("PUT", "page", "GET, HEAD"), ("DELETE", "", "GET, HEAD")])
def test_wrong_methods(lab, method, path, allow):
    answer = lab.http(method, "/apps/lab/" + path)
    assert (answer.status, answer.header("Allow")) == (405, allow)


def test_put_and_delete(lab):
    made = lab.http("POST", "/apps/lab/add", b'{"name":"brush"}', {"Content-Type": "application/json"}).json()["rows"][0]
    path = "/apps/lab/item/%d" % made["id"]
    answer = lab.put(path, b'{"name":"brushes"}', {"Content-Type": "application/json"})
    assert answer.json() == {"rows": [{"id": made["id"], "name": "brushes"}]}
    assert lab.delete(path).json() == {"rows": [{"id": made["id"]}]}
    assert lab.delete(path).json() == {"rows": []}


def test_several_results(lab):
    answer = get(lab, "two").json()
    assert list(answer) == ["items", "rows"] and answer["rows"] == [{"n": len(answer["items"])}]


# forms of an answer

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_html_where_it_is_preferred(lab):
    answer = get(lab, "both", BROWSER)
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    assert answer.body.startswith(b"<i>ink</i><i>paper</i>")
    assert "frame-ancestors" in answer.header("Content-Security-Policy")
    assert answer.header("Referrer-Policy") == "same-origin"
    assert "Accept" in answer.header("Vary")


def test_json_where_it_is_not(lab):
    assert get(lab, "both", {"Accept": "*/*"}).json()["rows"][0] == {"name": "ink"}
    assert get(lab, "list", BROWSER).header("Content-Type") == "application/json"
    assert get(lab, "both?format=json", BROWSER).json()["rows"][0] == {"name": "ink"}
    assert get(lab, "both?format=html").body.startswith(b"<i>ink</i>")


def test_a_page_without_sql(lab):
    answer = get(lab, "page")
    assert answer.body == b"<p>only a page</p>" and answer.header("Content-Type").startswith("text/html")


@pytest.mark.parametrize("path", ["list?format=html", "list?format=xml", "list?format=", "list?format=json&format=csv", "both?format=%ff"])
def test_formats_that_there_are_not(lab, path):
    answer = get(lab, path)
    assert answer.status == 400 and ("format" in answer.json()["detail"] or "UTF-8" in answer.json()["detail"])


# what the SQL says

@pytest.mark.parametrize("code", [400, 402, 404, 409, 410, 422, 429, 451, 500, 503, 599])
def test_a_status_that_is_an_error(lab, code):
    lab.app("say", {"s.get.sql": "SELECT CAST(:code AS INTEGER) AS _status, 'said ' || :code AS message;"})
    answer = lab.get("/apps/say/s?code=%d" % code)
    assert answer.status == code and answer.json()["detail"] == "said %d" % code
    assert answer.header("Content-Type") == "application/problem+json"


def test_a_status_ends_the_reading(lab):
    assert get(lab, "number?x=no").json()["detail"] == "There is no such thing"
    assert get(lab, "number").json() == {"rows": [{"one": 1}]}


def test_what_was_made(lab):
    answer = get(lab, "made")
    assert (answer.status, answer.header("Location"), answer.json()) == (201, "/apps/lab/item/7", {"rows": [{"id": 7}]})


@pytest.mark.parametrize("to,location", [("list", "/apps/lab/list"), ("list?a=1%26b=2", "/apps/lab/list?a=1&b=2"), ("", "/apps/lab/"),
                                         ("/docs/x", "/docs/x"), ("https://example.org/a", "https://example.org/a"),
                                         ("%C3%A4%20b", "/apps/lab/%C3%A4%20b"), ("%22%3E", "/apps/lab/%22%3E")])
def test_another_place(lab, to, location):
    answer = get(lab, "away?to=" + to)
    assert (answer.status, answer.header("Location")) == (303, location)


@pytest.mark.parametrize("to", ["//evil.example/", "/%5Cevil.example/", "a%0d%0aSet-Cookie:x=y", "%00", "x" * 3000])
def test_places_that_are_none(lab, to):
    lab.hanji.expected.append("app")
    answer = get(lab, "away?to=" + to)
    assert answer.status == 500 and answer.header("Location") is None and answer.header("Set-Cookie") is None


def test_a_cookie(lab):
    answer = get(lab, "cookie?who=J%C3%BCrgen%3B+%22M%22%2C+100%25")
    line = answer.header("Set-Cookie")
    name, _, rest = line.partition("=")
    value, _, attributes = rest.partition(";")
    assert name == "lab_who" and attributes == " Path=/apps/lab/; Max-Age=3600; HttpOnly; SameSite=Lax"
    assert get(lab, "cookied", {"Cookie": "lab_who=" + value}).json() == {"rows": [{"who": 'J\u00fcrgen; "M", 100%'}]}
    assert get(lab, "cookied", {"Cookie": "who=x; other_who=y"}).json() == {"rows": [{"who": None}]}
    assert get(lab, "cookied", {"Cookie": "lab_who=a; lab_who=b"}).json() == {"rows": [{"who": None}]}
    assert "Cookie" in get(lab, "cookied").header("Vary")


def test_a_cookie_over_tls(lab):
    assert get(lab, "cookie?who=x", tls=True).header("Set-Cookie").endswith("; Secure")


def test_caching(lab):
    assert get(lab, "cache").all("Cache-Control") == ["public, max-age=60"]
    assert get(lab, "list").header("Cache-Control") == "no-cache"
    assert get(lab, "cookied").header("Cache-Control") == "private, no-cache"
    assert get(lab, "list").header("X-Content-Type-Options") == "nosniff"


def test_a_body_of_its_own(lab):
    answer = get(lab, "raw?x=%3Cb%3E")
    assert (answer.header("Content-Type"), answer.body) == ("text/plain; charset=utf-8", b"hello <b>")
    assert answer.header("X-Content-Type-Options") == "nosniff" and answer.header("Content-Security-Policy")


@pytest.mark.parametrize("name,plain", [("a.png", "a.png"), ("a%22b%0a.png", None), ("%C3%A4.png", "__.png"), ("a/b", "a_b")])
def test_the_name_of_a_file(lab, name, plain):
    if plain is None:
        lab.hanji.expected.append("app")
        assert get(lab, "file?n=" + name).status == 500
        return
    answer = get(lab, "file?n=" + name)
    assert answer.body == b"\x89PNG" and answer.header("Content-Type") == "image/png"
    assert answer.header("Content-Disposition").startswith('attachment; filename="%s"; filename*=UTF-8\'\'' % plain)


# faults

@pytest.mark.parametrize("path", ["bad?x=%7B", "odd", "split", "many"])
def test_a_fault_of_the_app(lab, path):
    """The client learns that there is one, the owner which."""
    mark = lab.hanji.mark()
    answer = get(lab, path)
    assert answer.status == 500
    problem = answer.json()
    assert "SELECT" not in problem["detail"] and "json" not in problem["detail"] and len(problem["request_id"]) == 32
    log = harness.wait_for("the log", lambda: lab.hanji.log_since(mark))
    assert "lab/%s.get.sql" % path.partition("?")[0] in log


def test_after_a_fault_all_is_well(lab):
    assert get(lab, "bad?x=%7B").status == 500
    assert get(lab, "list").status == 200


# rights

@pytest.fixture(scope="module")
def closed(site):
    sql = {"x.get.sql": "SELECT :_user AS user;", "x.post.sql": "SELECT :_user AS user;", "x.html": "{{_user}}"}
    site.app("closed", sql, "")
    site.app("folks", sql, "read = users\nwrite = users\n")
    site.app("open", sql, "read = public\nwrite = rights\n")
    site.hanji.command("user", "add", "bob", "--read", "/docs/bob/", stdin="correct horse\n")
    return site


def login(site, name):
    answer = site.http("POST", "/auth/login", b"user=%s&password=correct+horse" % name.encode(),
                       {"Content-Type": "application/x-www-form-urlencoded", "Origin": site.url().rstrip("/")}, token=None)
    assert answer.status in (200, 303), answer
    return answer.header("Set-Cookie").split(";")[0]


HERE = {"Sec-Fetch-Site": "same-origin"}


def test_rights_are_the_default(closed):
    token = closed.hanji.new_token("closed", read=["/apps/closed/"], write=["/docs/"])
    assert closed.get("/apps/closed/x", token=None).status == 401
    assert closed.get("/apps/closed/x", token="hanji_" + 43 * "A").status == 401
    assert closed.get("/apps/closed/x", token=token).status == 200
    assert closed.http("POST", "/apps/closed/x", token=token).status == 403
    assert closed.http("POST", "/apps/closed/x").status == 200
    assert closed.get("/apps/closed/nowhere", token=None).status == 404
    assert closed.get("/apps/closed/x", token=None).header("WWW-Authenticate")


def test_a_browser_is_led_to_the_login(closed):
    answer = closed.get("/apps/closed/x", {"Accept": "text/html"}, token=None)
    assert answer.status == 401 and b"/auth/login?next=/apps/closed/x" in answer.body


def test_users(closed):
    cookie = login(closed, "bob")
    with_cookie = {"Cookie": cookie}
    assert closed.get("/apps/folks/x", token=None).status == 401
    assert closed.get("/apps/folks/x", with_cookie, token=None).json() == {"rows": [{"user": "bob"}]}
    assert closed.get("/apps/folks/x?format=html", with_cookie, token=None).body == b"bob"
    assert closed.get("/apps/closed/x", with_cookie, token=None).status == 403
    token = closed.hanji.new_token("elsewhere2", read=["/docs/"])
    assert closed.get("/apps/folks/x", token=token).status == 403
    assert closed.http("POST", "/apps/folks/x", None, {**with_cookie, **HERE}, token=None).json() == {"rows": [{"user": "bob"}]}


def test_public_to_read_only(closed):
    assert closed.get("/apps/open/x", token=None).json() == {"rows": [{"user": None}]}
    assert closed.http("POST", "/apps/open/x", token=None).status == 401
    assert closed.get("/apps/open/x", token="hanji_" + 43 * "A").status == 401
    assert closed.get("/apps/open/x", {"Cookie": "hanji_session=hanjis_" + 43 * "A"}, token=None).status == 200


def test_a_token_is_no_person(closed):
    assert closed.get("/apps/closed/x").json() == {"rows": [{"user": None}]}


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"},
                                     {"Origin": "null"}, {"Referer": "https://evil.example/"}])
def test_pages_of_other_sites_change_nothing(lab, headers):
    """Not even where anybody may write: the visitor did not mean to."""
    answer = lab.http("POST", "/apps/lab/add", b"name=evil", {"Content-Type": "application/x-www-form-urlencoded", **headers}, token=None)
    assert answer.status == 403
    assert "evil" not in [row["name"] for row in get(lab, "list").json()["rows"]]


def test_programs_say_nothing_of_where_they_are(lab):
    answer = lab.http("POST", "/apps/lab/add", b"name=program", {"Content-Type": "application/x-www-form-urlencoded"}, token=None)
    assert answer.status == 200


def test_a_session_needs_to_say_it(closed):
    assert closed.http("POST", "/apps/folks/x", None, {"Cookie": login(closed, "bob")}, token=None).status == 403


# under a mount

def test_below_a_mount(make_site):
    site = make_site(mount="/h")
    site.app("lab", LAB)
    assert site.get("/apps/lab").header("Location") == "/h/apps/lab/"
    assert site.get("/apps/lab/made").header("Location") == "/h/apps/lab/item/7"
    assert site.get("/apps/lab/away?to=/docs/x").header("Location") == "/h/docs/x"
    assert "Path=/h/apps/lab/;" in site.get("/apps/lab/cookie?who=x").header("Set-Cookie")


# the feed

def test_the_feed_of_an_app(lab):
    lab.put("/docs/apps/lab/shop", b"1")
    lab.put("/docs/elsewhere", b"1")
    answer = lab.get("/apps/lab/_changes", token=None)
    assert answer.status == 200
    keys = {entry["key"] for entry in answer.json()["changes"]}
    assert "apps/lab/shop" in keys and all(key.startswith("apps/lab/") for key in keys)
    assert lab.get("/apps/lab/_changes?prefix=none", token=None).json()["changes"] == []
    assert lab.get("/apps/lab/_changes?prefix=../", token=None).status == 400
    assert lab.get("/apps/lab/_changes?prefix=" + "x" * 510, token=None).status == 400
    assert lab.get("/apps/lab/_changes?since=x", token=None).status == 400
    assert lab.head("/apps/lab/_changes", token=None).status == 200
    assert lab.http("POST", "/apps/lab/_changes").status == 405


def test_the_feed_is_as_closed_as_the_app(closed):
    assert closed.get("/apps/closed/_changes", token=None).status == 401
    token = closed.hanji.new_token("elsewhere3", read=["/docs/"])
    assert closed.get("/apps/closed/_changes", token=token).status == 403
    token = closed.hanji.new_token("closed4", read=["/apps/closed/"])
    assert closed.get("/apps/closed/_changes", token=token).status == 200


def test_waiting_for_a_change_of_an_app(lab):
    lab.app("live", {"poke.post.sql": "SELECT changed('list');"})
    since = lab.get("/apps/live/_changes?since=now", token=None).json()["next"]
    with lab.hanji.client(timeout=20) as client:
        client.send(__import__("fastcgi").request("GET", "/apps/live/_changes", query="since=%d&wait=10" % since))
        start = time.monotonic()
        assert lab.http("POST", "/apps/live/poke").status == 200
        answer = client.answer(timeout=20)
        assert time.monotonic() - start < 5
    assert [entry["key"] for entry in json.loads(answer.body)["changes"]] == ["apps/live/list"]


# counting

def test_counters(lab):
    before = lab.hanji.status()["apps"]
    get(lab, "list")
    get(lab, "odd")
    after = lab.hanji.status()["apps"]
    assert after["requests"] - before["requests"] == 2 and after["faults"] - before["faults"] == 1
    assert set(after) >= {"requests", "moved", "stopped", "faults", "refused"}


# what every address may answer

def test_no_address_for_others(lab):
    assert lab.head("/apps/lab/nowhere").status == 404
    for method in ("POST", "PUT", "DELETE"):
        assert lab.http(method, "/apps/lab/nowhere", b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}).status == 404


def test_a_body_beyond_max_body(lab):
    """Also where none is expected."""
    for method, path in (("GET", "list"), ("POST", "add")):
        assert lab.http(method, "/apps/lab/" + path, bytes(400 * 1024)).status == 413


def test_a_full_disk(slow, make_hanji):
    """Nothing was changed, reading goes on, and so does writing once there is room."""
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    hanji.app("lab", LAB)
    form = {"CONTENT_TYPE": "application/x-www-form-urlencoded"}
    slow.set(full=True)
    try:
        assert hanji.ask("POST", "/apps/lab/add", body=b"name=full", extra=form).status == 507
        assert b"full" not in hanji.ask("GET", "/apps/lab/list").body
    finally:
        slow.set()
    assert hanji.ask("POST", "/apps/lab/add", body=b"name=full", extra=form).status == 200
