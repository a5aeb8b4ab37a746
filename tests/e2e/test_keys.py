"""Which paths are keys: decoded once by nginx, never folded, and refused where they are none."""
import urllib.parse

import pytest

import fastcgi


def stored(site, box):
    """Keys in the file below this box, without its name."""
    prefix = box[len("/docs/"):]
    return [key[len(prefix):] for key, in site.hanji.rows(
        "SELECT key FROM doc WHERE key >= ? AND key < ? ORDER BY key", prefix, prefix[:-1] + "0")]


SAME = {
    "a%2Bb": "a+b", "a+b": "a+b", "%61": "a", "a%20b": "a b", "a%3Fb": "a?b", "a%23b": "a#b", "%C3%A4": "ä",
    "a%26b": "a&b", "a=b;c": "a=b;c", "1%2Fbis": "1/bis", "a%252Fb": "a%2Fb", "a%25": "a%", "%7Ex": "~x",
    "a%2E%2Eb": "a..b", "...": "...", ".a": ".a", "a.": "a.", "a%22b": 'a"b', "a%27b": "a'b", "a%3Cb%3E": "a<b>",
    "%F0%9F%98%80": "\U0001f600", "a:b@c!$(*),": "a:b@c!$(*),", "%E2%80%AE": "\u202e", "a//b": "a/b", "a/./b": "a/b",
    "a/x/../b": "a/b", "a/%2e/b": "a/b", "a/x/%2E%2e/b": "a/b", "a%2F%2Fb": "a/b", "x/y/../../c": "c",
    "%EF%BB%BFa": "\ufeffa", "%EF%BF%BD": "\ufffd", "a%5Eb": "a^b", "%7B%7D%7C%60": "{}|`",
}


@pytest.mark.parametrize("spelling", SAME)
def test_the_key_of_a_path(site, box, spelling):
    put = site.put(box + spelling, spelling.encode())
    assert put.status == 201
    assert stored(site, box) == [SAME[spelling]]
    for path in (box + spelling, box + urllib.parse.quote(SAME[spelling])):
        got = site.get(path)
        assert (got.status, got.body) == (200, spelling.encode()), path
    location = put.header("Location")
    if location.startswith("http"):
        location = location[len(site.url()):]
    assert location.isascii() and " " not in location
    assert site.get(location).body == spelling.encode(), "Location %s names it" % location


@pytest.mark.smoke
def test_plus_is_no_space(site, box):
    site.put(box + "a+b", b"plus")
    assert site.get(box + "a%20b").status == 404
    assert site.get(box + "a%2Bb").body == b"plus"


def test_percent_is_decoded_once(site, box):
    site.put(box + "a%252Fb", b"three characters")
    site.put(box + "a%2Fb", b"slash")
    assert stored(site, box) == ["a%2Fb", "a/b"]
    assert site.get(box + "a%252Fb").body == b"three characters"
    assert site.get(box + "a/b").body == b"slash"


def test_case_and_dots_and_semicolons_are_not_folded(site, box):
    for i, name in enumerate(["a", "A", "a.", "a;", "a;x", "a%20", "%20a"]):
        site.put(box + name, b"%d" % i)
    assert stored(site, box) == sorted(["a", "A", "a.", "a;", "a;x", "a ", " a"])


def test_two_normal_forms_are_two_keys(site, box):
    site.put(box + "%C3%A9", b"composed")
    site.put(box + "e%CC%81", b"decomposed")
    assert site.get(box + "%C3%A9").body == b"composed"
    assert site.get(box + "e%CC%81").body == b"decomposed"
    assert stored(site, box) == ["e\u0301", "\u00e9"]
    assert [item["key"] for item in site.get(box).json()["items"]] == [box[6:] + "e\u0301", box[6:] + "\u00e9"]


BAD = {
    "lone continuation": "%80", "cut sequence": "a%C3", "0xFF": "%FF", "overlong slash": "%C0%AF",
    "overlong NUL": "%C0%80", "surrogate": "%ED%A0%80", "beyond Unicode": "%F4%90%80%80",
    "five bytes": "%F8%88%80%80%80", "latin-1": "caf%E9", "unit separator": "a%1Fb", "start of heading": "%01",
    "newline": "a%0Ab", "return": "a%0Db", "both": "a%0D%0ASet-Cookie:x", "tab": "a%09b", "escape": "%1B[31m",
    "delete": "a%7Fb", "backslash": "a%5Cb", "backslash dots": "..%5C..%5Cx", "plain backslash": "a\\b",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_bytes_are_refused(site, box, name):
    for method in ("PUT", "GET", "HEAD", "DELETE"):
        got = site.http(method, box + BAD[name], b"x" if method == "PUT" else None)
        assert got.status == 400, (method, got)
        assert not got.all("Set-Cookie")
    assert stored(site, box) == []
    assert site.get(box + "sub" + BAD[name] + "/").status == 400, "nor as a collection"


def test_nul_is_refused(site, box):
    """nginx refuses it itself."""
    assert site.get(box + "a%00b").status == 400
    assert site.put(box + "%00", b"x").status == 400


def test_raw_bytes_in_the_request_line(site, box):
    """Not encoded at all: good UTF-8 is a key, other bytes are not."""
    line = (b"%s " + box.encode() + b"%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n"
            b"Authorization: Bearer " + site.token.encode() + b"\r\n\r\n%s")
    assert site.bytes_over_tcp(line % (b"PUT", "ä".encode(), 1, b"x")).status == 201
    assert site.bytes_over_tcp(line % (b"PUT", b"\xff", 1, b"x")).status == 400
    assert stored(site, box) == ["ä"]


@pytest.mark.parametrize("letter,count", [("a", 1), ("%C3%A4", 2), ("%F0%9F%98%80", 4)])
def test_512_bytes_and_not_one_more(site, box, letter, count):
    room = 512 - len(box[6:])
    fits = "x" * (room % count) + letter * (room // count)
    assert site.put(box + fits, b"x").status == 201
    assert site.get(box + fits).body == b"x"
    for method in ("PUT", "GET", "DELETE"):
        got = site.http(method, box + "y" + fits, b"x" if method == "PUT" else None)
        assert got.status == 400, got
        assert "512" in got.json()["detail"]
    assert len(stored(site, box)) == 1


def test_many_segments(site, box):
    path = box + "/".join("s" * 200)
    assert site.put(path, b"x").status == 201
    assert site.get(path).body == b"x"


def test_very_long_path(site, box):
    assert site.get(box + "x" * 7000).status == 400
    assert site.get(box + "%41" * 2500).status == 400


def test_dot_segments_cannot_leave(site):
    assert site.get("/docs/../health").json() == {"status": "ok"}
    assert site.get("/docs/%2e%2e/health").json() == {"status": "ok"}
    assert site.get("/docs/../../x").status == 400, "nginx refuses to go above the root"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_a_collection_is_not_a_document(site, box, method):
    got = site.http(method, box, b"x" if method != "DELETE" else None)
    assert got.status == 405 and "GET" in got.header("Allow")
    assert stored(site, box) == []


@pytest.mark.parametrize("path", ["/docs", "/docsx", "/docs2/a", "/Docs/a", "/doc/a", "/docs;/a", "/docs?/a"])
def test_only_docs_is_docs(site, path):
    assert site.hanji.ask("GET", path).status == 404
    assert site.hanji.ask("PUT", path, body=b"x").status == 404


def test_docs_without_a_slash_is_not_redirected(site):
    assert site.get("/docs").status == 404
    assert site.get("/docs").header("Location") is None


# What only another web server, or an attacker on the socket, can send: a DOCUMENT_URI that nginx never would.

RAW_BAD = ["/docs/a//b", "/docs//a", "/docs/a//b/c", "/docs/.", "/docs/..", "/docs/a/./b", "/docs/a/../b",
           "/docs/../docs/a", "/docs/./b", "/docs/a/..", b"/docs/\xff", "/docs/a\\b", "/docs/a\nb", "/docs/a\x7f",
           "/docs/" + "x" * 513]


@pytest.mark.parametrize("uri", RAW_BAD)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_unnormalised_document_uri(site, uri, method):
    before = site.hanji.status()["documents"]
    got = site.hanji.ask(method, uri, body=b"x" if method == "PUT" else None)
    assert got.status == 400, got
    assert site.hanji.status()["documents"] == before


@pytest.mark.parametrize("uri", ["", "docs/a", "http://x/docs/a", "*", "?", "\\docs\\a"])
def test_document_uri_without_a_slash(site, uri):
    assert site.hanji.ask("GET", uri).status in (400, 404)


REQUEST_URIS = {
    "/docs/{0}a%20b": "a b", "/docs/{0}a+b": "a+b", "/docs/{0}x/../a": "a", "/docs/{0}./a": "a", "//docs//{0}/a": "a",
    "/docs/{0}a%2Fb": "a/b", "/docs/{0}a%252Fb": "a%2Fb", "/docs/{0}a?b=%FF": "a", "/docs/{0}x/%2e%2e/a": "a",
    "/x/../docs/{0}a": "a", "/%64ocs/{0}a": "a",
}


@pytest.mark.parametrize("uri", REQUEST_URIS)
def test_request_uri_is_decoded_by_the_same_rules(site, box, uri):
    """Where DOCUMENT_URI is missing."""
    got = site.hanji.ask("PUT", body=b"x", extra={"DOCUMENT_URI": None, "REQUEST_URI": uri.format(box[6:])})
    assert got.status == 201, got
    assert stored(site, box) == [REQUEST_URIS[uri]]


@pytest.mark.parametrize("uri",
                         ["/docs/%", "/docs/a%4", "/docs/%zz", "/docs/a%00b", "/docs/../../docs/a", "/docs/%ff", "",
                          "docs/a", "/docs/a%5cb", "/docs/a%0ab", "/..", "/docs/%2e%2e/%2e%2e/docs/x",
                          "http://host.test/docs/a"])
def test_bad_request_uri(site, uri):
    before = site.hanji.status()["documents"]
    got = site.hanji.ask("PUT", body=b"x", extra={"DOCUMENT_URI": None, "REQUEST_URI": uri})
    assert got.status in (400, 404), got
    assert site.hanji.status()["documents"] == before


def test_document_uri_goes_before_request_uri(site, box):
    site.put(box + "a", b"a")
    site.put(box + "b", b"b")
    assert site.hanji.ask("GET", box + "a", extra={"REQUEST_URI": box + "b"}).body == b"a"


def test_neither_uri(site):
    items = [pair for pair in fastcgi.variables("GET", "/health") if pair[0] != "DOCUMENT_URI"]
    with site.hanji.client() as client:
        client.send(fastcgi.request_of(items))
        assert client.answer().status == 400
