"""What is stored comes back: bytes, type, tag, time.  Right uses and the bodies at which framing could slip."""
import email.utils
import hashlib
import re
import time

import pytest

TAG = re.compile(r'"([0-9]+)"\Z')


def seq(answer):
    """The number in the answer's strong tag."""
    found = TAG.match(answer.header("ETag") or "")
    assert found, answer
    return int(found.group(1))


def noise(n, seed=b"x"):
    """n bytes that do not repeat."""
    out = b"".join(hashlib.sha256(seed + b"%d" % i).digest() for i in range(n // 32 + 1))
    return out[:n]


BODIES = {
    "empty": b"",
    "one NUL": b"\0",
    "NULs": b"\0" * 1000,
    "text with a NUL": b"before\0after",
    "every byte": bytes(range(256)),
    "line ends": b"\r\n\r\n\n\r",
    "looks like a response": b"Status: 500 Oops\r\nContent-Type: text/html\r\n\r\n<h1>",
    "looks like a record": b"\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00" * 10,
    "broken UTF-8": b"\xff\xfe\xc3(\xed\xa0\x80",
    "UTF-8 with a mark": b"\xef\xbb\xbfh\xc3\xa4llo",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", [None, "text/plain; charset=utf-8", "application/octet-stream"])
def test_exact_bytes(site, box, name, kind):
    body = BODIES[name]
    assert site.put(box + "k", body, {"Content-Type": kind} if kind else {}).status == 201
    got = site.get(box + "k")
    assert got.status == 200 and got.body == body
    assert got.header("Content-Length") == str(len(body))
    assert got.header("Content-Type") == (kind or "application/octet-stream")


SIZES = [n + d for n in (127, 128, 4096, 8192, 16384, 32768, 65535, 65536, 131072) for d in (-1, 0, 1)] + [200 * 1024]


@pytest.mark.parametrize("size", sorted(set(SIZES)))
def test_sizes_around_borders(site, box, size):
    body = noise(size)
    assert site.put(box + "k", body).status == 201
    got = site.get(box + "k")
    assert got.body == body and got.header("Content-Length") == str(size)
    head = site.head(box + "k")
    assert head.header("Content-Length") == str(size) and head.body == b""


@pytest.mark.smoke
def test_new_then_replaced(site, box):
    first = site.put(box + "k", b"one")
    assert first.status == 201
    assert first.header("Location") in (box + "k", site.url() + box + "k")
    second = site.put(box + "k", b"two")
    assert second.status == 204 and second.body == b""
    assert second.header("Location") is None
    assert seq(second) > seq(first)
    got = site.get(box + "k")
    assert (got.status, got.body, seq(got)) == (200, b"two", seq(second))


def test_delete(site, box):
    first = site.put(box + "k", b"one")
    gone = site.delete(box + "k")
    assert gone.status == 204 and gone.body == b""
    assert site.get(box + "k").status == 404
    assert site.head(box + "k").status == 404
    assert site.delete(box + "k").status == 404
    again = site.put(box + "k", b"one")
    assert again.status == 201
    assert seq(again) > seq(first) + 1, "the delete took a number too"


def test_tag_is_the_seq_of_the_row(site, box):
    put = site.put(box + "k", b"one")
    key = box[len("/docs/"):] + "k"
    assert site.hanji.rows("SELECT seq, size FROM doc WHERE key = ?", key) == [(seq(put), 3)]
    assert site.hanji.rows("SELECT seq, op FROM change WHERE key = ?", key) == [(seq(put), "put")]


def test_tag_changes_with_the_type_alone(site, box):
    site.put(box + "k", b"one", {"Content-Type": "text/plain"})
    first = site.get(box + "k")
    site.put(box + "k", b"one", {"Content-Type": "text/html"})
    second = site.get(box + "k")
    assert seq(second) > seq(first)
    assert second.header("Content-Type") == "text/html"


def test_other_documents_keep_their_tag(site, box):
    put = site.put(box + "k", b"one")
    site.put(box + "k2", b"two")
    site.put(box + "k/below", b"three")
    site.delete(box + "k2")
    assert seq(site.get(box + "k")) == seq(put)


def test_a_document_may_lie_below_another(site, box):
    site.put(box + "a", b"1")
    site.put(box + "a/b", b"2")
    site.put(box + "a/b/c", b"3")
    assert [site.get(box + key).body for key in ("a", "a/b", "a/b/c")] == [b"1", b"2", b"3"]
    site.delete(box + "a/b")
    assert [site.get(box + key).status for key in ("a", "a/b", "a/b/c")] == [200, 404, 200]


TYPES = ["text/plain", "text/html; charset=\"utf-8\"", "image/svg+xml", "application/x-very.own+thing; a=b; c=\"d;e\"",
         "x/" + "y" * 200]


@pytest.mark.parametrize("kind", TYPES)
def test_type_comes_back_as_sent(site, box, kind):
    assert site.put(box + "k", b"x", {"Content-Type": kind}).status == 201
    assert site.get(box + "k").header("Content-Type") == kind
    assert site.hanji.rows("SELECT type FROM doc WHERE key = ?", box[6:] + "k") == [(kind,)]


def test_replacing_replaces_the_type(site, box):
    site.put(box + "k", b"x", {"Content-Type": "text/plain"})
    site.put(box + "k", b"x")
    assert site.get(box + "k").header("Content-Type") == "application/octet-stream"


def test_headers_of_a_stored_page_keep_it_harmless(site, box):
    site.put(box + "k.html", b"<script>alert(1)</script>", {"Content-Type": "text/html"})
    got = site.get(box + "k.html")
    assert got.header("X-Content-Type-Options") == "nosniff"
    assert "sandbox" in got.header("Content-Security-Policy")
    assert len(got.all("Content-Type")) == 1


def test_last_modified_is_the_time_of_the_write(site, box):
    before = int(time.time())
    site.put(box + "k", b"x")
    after = int(time.time())
    header = site.get(box + "k").header("Last-Modified")
    assert re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT", header)
    when = email.utils.parsedate_to_datetime(header).timestamp()
    assert before <= when <= after
    assert site.hanji.rows("SELECT modified FROM doc WHERE key = ?", box[6:] + "k") == [(when,)]


HEADERS = ["Content-Type", "Content-Length", "ETag", "Last-Modified", "X-Content-Type-Options",
           "Content-Security-Policy"]


@pytest.mark.smoke
def test_head_equals_get_without_body(site, box):
    site.put(box + "k", noise(5000))
    get, head = site.get(box + "k"), site.head(box + "k")
    assert head.status == 200 and head.body == b""
    assert [get.header(name) for name in HEADERS] == [head.header(name) for name in HEADERS]
    assert all(get.header(name) for name in HEADERS)


def test_head_equals_get_for_the_rest(site, box):
    for path in (box, "/health", "/status", "/metrics", box + "missing", "/nowhere", box + "%ff"):
        get, head = site.get(path), site.head(path)
        assert (get.status, get.header("Content-Type")) == (head.status, head.header("Content-Type")), path
        assert head.body == b"", path


def test_head_of_a_big_document_leaves_the_connection_usable(site, box):
    site.put(box + "k", noise(250 * 1024))
    for _ in range(5):
        assert site.head(box + "k").header("Content-Length") == str(250 * 1024)
        assert len(site.get(box + "k").body) == 250 * 1024


JSON_TEXTS = {
    "big integers": b'{"n":123456789012345678901234567890,"m":9007199254740993}',
    "names twice": b'{"a":1,"a":2}',
    "escaped NUL": b'{"a":"\\u0000"}',
    "numbers as written": b'[1.0,1.00,1e5,1E+05,-0,0.1e-400,1e999]',
    "blanks": b' \t\r\n{ "a" :\n[ ] }\r\n ',
    "a lone string": b'"x"',
    "a lone number": b"7",
    "null": b"null",
    "non-ASCII": '{"ä":"\U0001f600"}'.encode(),
    "lone surrogate escape": b'"\\ud800"',
    "deep": b"[" * 500 + b"]" * 500,
}


@pytest.mark.parametrize("name", JSON_TEXTS)
@pytest.mark.parametrize("kind", ["application/json", "application/problem+json", "Application/JSON; charset=utf-8"])
def test_json_is_kept_byte_for_byte(site, box, name, kind):
    body = JSON_TEXTS[name]
    assert site.put(box + "k", body, {"Content-Type": kind}).status == 201
    got = site.get(box + "k")
    assert got.body == body and got.header("Content-Type") == kind


NOT_JSON = {
    "nothing": b"", "blank": b"  ", "cut": b'{"a":', "open string": b'"abc', "single quotes": b"{'a':1}",
    "bare name": b"{a:1}", "trailing comma": b"[1,]", "comment": b"/* x */ 1", "two values": b"1 2", "NaN": b"NaN",
    "Infinity": b"[Infinity]", "plus": b"+1", "leading zero": b"01", "hex": b"0x10", "lone point": b"1.",
    "NUL after": b"{}\0", "NUL inside": b'{"a":"\0"}', "raw control": b'"\x01"', "bad escape": b'"\\x41"',
    "bad UTF-8": b'"\xff"', "text": b"hello", "true in capitals": b"TRUE", "bracket mix": b"[}",
    "mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_json_that_does_not_parse_is_refused(site, box, name):
    got = site.put(box + "k", NOT_JSON[name], {"Content-Type": "application/json"})
    assert got.status == 400, got
    assert got.header("Content-Type") == "application/problem+json"
    assert site.get(box + "k").status == 404, "nothing was stored"


@pytest.mark.parametrize("kind", ["application/merge+json", "application/ld+JSON; x=y", "APPLICATION/JSON"])
def test_every_json_type_is_checked(site, box, kind):
    assert site.put(box + "k", b"{", {"Content-Type": kind}).status == 400


@pytest.mark.parametrize("kind", ["application/jsonx", "text/json-not", "application/octet-stream; x=json"])
def test_other_types_are_not_checked(site, box, kind):
    assert site.put(box + "k", b"{", {"Content-Type": kind}).status == 201


def test_refused_json_leaves_the_old_document(site, box):
    first = site.put(box + "k", b"{}", {"Content-Type": "application/json"})
    assert site.put(box + "k", b"{", {"Content-Type": "application/json"}).status == 400
    got = site.get(box + "k")
    assert (got.body, seq(got)) == (b"{}", seq(first))


def test_json_and_text_are_text_in_the_file(site, box):
    site.put(box + "j", b'{"a":{"b":7}}', {"Content-Type": "application/json"})
    site.put(box + "t", "häll".encode(), {"Content-Type": "text/plain; charset=utf-8"})
    site.put(box + "b", b"\xff\0", {"Content-Type": "application/octet-stream"})
    prefix = box[6:]
    assert site.hanji.rows("SELECT json_extract(body, '$.a.b') FROM doc WHERE key = ?", prefix + "j") == [(7,)]
    kinds = site.hanji.rows("SELECT key, typeof(body), size FROM doc WHERE key BETWEEN ? AND ? ORDER BY key",
                            prefix, prefix + "~")
    assert kinds == [(prefix + "b", "blob", 2), (prefix + "j", "text", 13), (prefix + "t", "text", 5)]


def test_text_that_would_not_survive_as_text_still_comes_back(site, box):
    for body in (b"a\0b", b"\xff\xfe", b"ok\xed\xa0\x80"):
        site.put(box + "t", body, {"Content-Type": "text/plain"})
        assert site.get(box + "t").body == body
