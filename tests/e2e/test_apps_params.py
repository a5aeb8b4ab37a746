"""Parameters of apps: where they come from, their types, and what is malformed."""
import json
import random

import pytest

FORM = "application/x-www-form-urlencoded"
ECHO = "SELECT :a AS a, typeof(:a) AS t, $q AS q, @b AS b, :_method AS method;"

FILES = {
    "echo.get.sql": ECHO, "echo.post.sql": ECHO, "echo.put.sql": ECHO, "echo.delete.sql": ECHO,
    "at/:a.get.sql": ECHO, "at/:a.post.sql": ECHO,
    "own.get.sql": "SELECT :_user AS user, :_now AS now, :_request_id AS id, :_method AS method, :_app AS app, :_cookie_c AS c;",
    "own.post.sql": "SELECT :_user AS user, :_now AS now, :_request_id AS id, :_method AS method, :_app AS app, :_cookie_c AS c;",
    "set.get.sql": "-- set\nSELECT 42 AS total;\nSELECT :total AS total, :x AS x;",
    "set.post.sql": "-- set\nSELECT 42 AS total;\nSELECT :total AS total, :x AS x;",
    "tags.get.sql": "SELECT :tag AS tag;", "tags.post.sql": "SELECT :tag AS tag;",
    "file.post.sql": "SELECT typeof(:photo) AS t, length(:photo) AS n, hex(substr(:photo, 1, 4)) AS head, :photo_type AS type, :photo_name AS name,"
                     " :title AS title;",
    "bytes.post.sql": "SELECT hex(:a) AS hex, length(CAST(:a AS BLOB)) AS n;",
}


@pytest.fixture(scope="module")
def apps(site):
    site.app("param", FILES, "read = public\nwrite = public\nbody = 64k\n")
    return site


def row(answer):
    assert answer.status == 200, answer
    return answer.json()["rows"][0]


def post(site, path, body=b"", kind=FORM, query=""):
    return site.http("POST", "/apps/param/" + path + query, body, {"Content-Type": kind} if kind else {})


def as_json(site, value, path="echo"):
    return post(site, path, value if isinstance(value, bytes) else json.dumps(value).encode(), "application/json")


# sources

def test_a_missing_one_is_null(apps):
    assert row(apps.get("/apps/param/echo")) == {"a": None, "t": "null", "q": None, "b": None, "method": "GET"}


def test_the_query(apps):
    assert row(apps.get("/apps/param/echo?a=1&q=2&b=3")) == {"a": "1", "t": "text", "q": "2", "b": None, "method": "GET"}


def test_the_body(apps):
    assert row(post(apps, "echo", b"a=1&q=2&b=3")) == {"a": "1", "t": "text", "q": None, "b": "3", "method": "POST"}


def test_the_body_comes_before_the_query(apps):
    assert row(post(apps, "echo", b"a=body", query="?a=query&q=query&b=query")) == {
        "a": "body", "t": "text", "q": "query", "b": None, "method": "POST"}


def test_the_path_comes_first(apps):
    assert row(apps.get("/apps/param/at/path?a=query"))["a"] == "path"
    assert row(post(apps, "at/path", b"a=body"))["a"] == "path"


@pytest.mark.parametrize("segment,value", [("x", "x"), ("a+b", "a+b"), ("%C3%A4", "\u00e4"), ("%25", "%"), ("1%2B1", "1+1"), ("'", "'")])
def test_what_a_path_says(apps, segment, value):
    assert row(apps.get("/apps/param/at/" + segment))["a"] == value


def test_put_and_delete_have_bodies(apps):
    assert row(apps.put("/apps/param/echo", b"a=1", {"Content-Type": FORM}))["method"] == "PUT"
    assert row(apps.http("DELETE", "/apps/param/echo?a=1"))["a"] == "1"
    assert row(apps.http("DELETE", "/apps/param/echo", b"a=2", {"Content-Type": FORM}))["a"] == "2"


# what is never the client's

def test_the_servers_own(apps):
    got = row(apps.get("/apps/param/own", {"Cookie": "param_c=biscuit"}))
    assert got["user"] is None and got["method"] == "GET" and got["app"] == "/apps/param/" and got["c"] == "biscuit"
    assert abs(got["now"] - __import__("time").time()) < 60 and len(got["id"]) == 32


@pytest.mark.parametrize("way", ["query", "form", "json"])
def test_nobody_gives_the_servers_own(apps, way):
    names = ["_user", "_now", "_request_id", "_method", "_app", "_cookie_c", "user", "now"]
    if way == "query":
        got = row(apps.get("/apps/param/own?" + "&".join(name + "=evil" for name in names)))
    elif way == "form":
        got = row(post(apps, "own", "&".join(name + "=evil" for name in names).encode()))
    else:
        got = row(as_json(apps, dict.fromkeys(names, "evil"), "own"))
    assert "evil" not in got.values()


def test_nobody_gives_what_is_set(apps):
    """documents.md 22: the page's own variables win."""
    assert row(apps.get("/apps/param/set?total=0&x=1")) == {"total": 42, "x": "1"}
    assert row(post(apps, "set", b"total=0&x=1")) == {"total": 42, "x": "1"}
    assert row(as_json(apps, {"total": 0, "x": 1}, "set")) == {"total": 42, "x": 1}


# types

@pytest.mark.parametrize("value,kind", [(1, "integer"), (-1, "integer"), (2**63 - 1, "integer"), (-2**63, "integer"), (0.5, "real"), (1e300, "real"),
                                        ("x", "text"), ("", "text"), ("1", "text"), (None, "null"), ("\u0000", "text"), ("\U0001f600", "text")])
def test_types_of_json(apps, value, kind):
    got = row(as_json(apps, {"a": value}))
    assert got["t"] == kind and got["a"] == value


@pytest.mark.parametrize("text,value,kind", [(b"true", 1, "integer"), (b"false", 0, "integer"), (b"1.0", 1.0, "real"), (b"1e2", 100.0, "real"),
                                             (b"9223372036854775808", 9223372036854775808.0, "real"),
                                             (b"9007199254740993.5", 9007199254740994.0, "real"),
                                             (b"123456789012345678901234567890", "123456789012345678901234567890", "text"),
                                             (b"[1,2]", "[1,2]", "text"), (b'{"x":1}', '{"x":1}', "text"), (b"-0", 0, "integer"),
                                             (b"1e400", "1e400", "text")])
def test_spellings_of_json(apps, text, value, kind):
    got = row(as_json(apps, b'{"a":' + text + b"}"))
    assert got["t"] == kind and got["a"] == value


def test_text_with_nul_is_whole(apps):
    assert row(as_json(apps, {"a": "x\u0000y"}, "bytes")) == {"hex": "780079", "n": 3}
    assert row(post(apps, "bytes", b"a=x%00y")) == {"hex": "780079", "n": 3}


def test_any_text_survives(apps):
    random.seed(7)
    for _ in range(60):
        text = "".join(chr(random.choice([random.randrange(0, 0x80), random.randrange(0xa0, 0xd800), random.randrange(0x10000, 0x110000)]))
                       for _ in range(random.randrange(40)))
        assert row(as_json(apps, {"a": text}))["a"] == text
        assert row(post(apps, "echo", __import__("urllib.parse").parse.urlencode({"a": text}).encode()))["a"] == text


# more than one

@pytest.mark.parametrize("query", ["?a=1&a=1", "?a=1&%61=2"])
def test_twice_in_a_query(apps, query):
    answer = apps.get("/apps/param/echo" + query)
    assert answer.status == 400 and "parameter a " in answer.json()["detail"]


def test_twice_in_a_body(apps):
    """documents.md 20"""
    for answer in (post(apps, "echo", b"a=1&a=2"), as_json(apps, b'{"a":1,"a":2}'), as_json(apps, b'{"a":1,"\\u0061":2}')):
        assert answer.status == 400 and "parameter a " in answer.json()["detail"]


def test_what_nobody_names_may_be_there_twice(apps):
    assert row(apps.get("/apps/param/echo?z=1&z=2"))["a"] is None


def test_lists(apps):
    assert row(apps.get("/apps/param/tags?tag[]=x&tag[]=%22y%22")) == {"tag": '["x","\\"y\\""]'}
    assert row(apps.get("/apps/param/tags?tag%5B%5D=x")) == {"tag": '["x"]'}
    assert row(post(apps, "tags", b"tag[]=1&other=2&tag[]=%C3%A4")) == {"tag": '["1","\u00e4"]'}
    assert row(as_json(apps, {"tag": ["x", 1]}, "tags")) == {"tag": '["x", 1]'}
    assert row(post(apps, "tags", b"tag[]=body", query="?tag[]=query")) == {"tag": '["body"]'}
    assert apps.get("/apps/param/tags?tag[]=x&tag=y").status == 400


# malformed

@pytest.mark.parametrize("query", ["?a=%", "?a=%zz", "?a=%ff", "?zz=%ff", "?%ff=1", "?a=%C3", "?q=%ED%A0%80"])
def test_malformed_queries(apps, query):
    assert apps.get("/apps/param/echo" + query).status == 400


@pytest.mark.parametrize("body", [b"a=%", b"zz=%ff", b"a=\xff", b"%ff=1"])
def test_malformed_forms(apps, body):
    assert post(apps, "echo", body).status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"1", b'"a"', b"null", b'{"a":01}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":1}}'])
def test_malformed_json(apps, body):
    answer = post(apps, "echo", body, "application/json")
    assert answer.status == (200 if body == b"" else 400)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/mixed; boundary=x", "application/jsonx", "application/octet-stream", None])
def test_other_types(apps, kind):
    assert post(apps, "echo", b"a=1", kind).status == 415
    assert post(apps, "echo", b"", kind).status == 200


@pytest.mark.parametrize("kind", ["Application/JSON; charset=utf-8", "application/json;x"])
def test_spellings_of_a_type(apps, kind):
    assert row(post(apps, "echo", b'{"a":1}', kind))["a"] == 1


def test_too_large(apps):
    assert post(apps, "echo", b"a=" + b"x" * (64 * 1024 - 2)).status == 200
    answer = post(apps, "echo", b"a=" + b"x" * (64 * 1024 - 1))
    assert answer.status == 413 and "65536" in answer.json()["detail"]


def test_many_fields(apps):
    assert post(apps, "echo", b"&".join(b"f%d=1" % i for i in range(1000))).status == 200
    assert post(apps, "echo", b"&".join(b"f%d=1" % i for i in range(1001))).status == 400
    assert apps.get("/apps/param/echo?" + "&".join("f%d" % i for i in range(1001))).status == 400


# files

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def part(head, body):
    return b"--B\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + body + b"\r\n"


def upload(site, *parts, path="file"):
    return post(site, path, b"".join(parts) + b"--B--\r\n", "multipart/form-data; boundary=B")


def test_a_file(apps):
    got = row(upload(apps, part(b'name="title"', b"a photo"),
                     part(b'name="photo"; filename="C:\\\\me\\\\f.png"\r\nContent-Type: image/png', PNG)))
    assert got == {"t": "blob", "n": len(PNG), "head": "89504E47", "type": "image/png", "name": "f.png", "title": "a photo"}


def test_by_curl(apps, tmp_path):
    (tmp_path / "p.png").write_bytes(PNG)
    answer = apps.curl("-F", "title=hello, x", "-F", "photo=@%s" % (tmp_path / "p.png"), apps.url() + "/apps/param/file")
    assert row(answer) == {"t": "blob", "n": len(PNG), "head": "89504E47", "type": "image/png", "name": "p.png", "title": "hello, x"}


def test_no_file_was_chosen(apps):
    got = row(upload(apps, part(b'name="photo"; filename=""\r\nContent-Type: application/octet-stream', b"")))
    assert got["t"] == "null" and got["n"] is None


def test_what_a_file_says_of_itself_is_not_a_field(apps):
    got = row(upload(apps, part(b'name="photo_type"', b"text/html"), part(b'name="photo"; filename="f"\r\nContent-Type: image/png', b"x"),
                     part(b'name="photo_name"', b"../../etc/passwd")))
    assert got["type"] == "image/png" and got["name"] == "f"


def test_two_files_of_a_name(apps):
    assert upload(apps, *2 * [part(b'name="photo"; filename="f"', b"x")]).status == 400


@pytest.mark.parametrize("body", [b"", b"--B", b"--B--", b"--B\r\n\r\nx\r\n--B--", b"nothing", part(b'name="a"', b"x"),
                                  part(b'name="a', b"x") + b"--B--", part(b'filename="f"', b"x") + b"--B--",
                                  part(b'name="a"', b"\xff") + b"--B--", b"--C\r\n" + part(b'name="a"', b"x")[5:] + b"--C--"])
def test_malformed_multipart(apps, body):
    answer = post(apps, "echo", body, "multipart/form-data; boundary=B")
    assert answer.status == (200 if body in (b"", b"--B--") else 400)


def test_random_bodies_break_nothing(apps):
    random.seed(11)
    whole = part(b'name="a"', b"x") + part(b'name="photo"; filename="f"', PNG) + b"--B--\r\n"
    for _ in range(150):
        body = bytearray(whole)
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(body))
            body[at:at + random.randrange(4)] = bytes(random.randrange(256) for _ in range(random.randrange(4)))
        assert upload_raw(apps, bytes(body)).status in (200, 400)


def upload_raw(site, body):
    return post(site, "file", body, "multipart/form-data; boundary=B")
