"""FastCGI parameters: lengths that lie, names and values that mislead, too many of them, the same one twice."""
import struct

import pytest

import fastcgi
import harness
from fastcgi import PARAMS, STDIN, begin, pairs, record, request_of, stream, variables


def outcome(site, data, timeout=3.0):
    """Sends this request: "closed", or the status of its answer."""
    with site.hanji.client() as client:
        try:
            client.send(data)
        except fastcgi.Closed:
            pass
        try:
            return client.answer(timeout=timeout).status
        except fastcgi.Closed:
            return "closed"


def with_params(block, body=b""):
    return begin() + stream(PARAMS, block) + stream(STDIN, body)


def put_items(site, path, body=b"x"):
    return variables("PUT", path, site.token, body=body)


def absent(site, path):
    return site.hanji.ask("GET", path).status == 404


FINE = pairs([("REQUEST_METHOD", "GET"), ("DOCUMENT_URI", "/health"), ("SCRIPT_NAME", ""), ("QUERY_STRING", "")])
HUGE = struct.pack("!I", 0xffffffff)

LYING = {
    "both huge": HUGE + HUGE, "huge name": HUGE + b"\x01a", "huge value": b"\x01" + HUGE + b"a",
    "1.9 GB name": struct.pack("!I", 0x80000000 | 1900000000) + b"\x00",
    "sum wraps 32 bits": struct.pack("!II", 0xfffffffe, 0x80000003), "name beyond the end": b"\x7f\x00abc",
    "value beyond the end": b"\x01\x7fa", "only a name length": b"\x05", "half a long length": b"\x80\x00",
    "name length and half a value length": b"\x01\x80\x00", "lengths only": b"\x03\x04",
    "one byte short": b"\x03\x04abcdef", "long form cut": b"\x80\x00\x00\x03\x80\x00\x00\x04abcdef",
}


@pytest.mark.parametrize("name", LYING)
@pytest.mark.parametrize("where", ["alone", "behind good ones"])
def test_lengths_that_lie(site, name, where):
    block = LYING[name] if where == "alone" else FINE + LYING[name]
    assert outcome(site, with_params(block)) in (400, "closed")


def test_a_lie_does_not_cost_memory(site):
    worker = site.hanji.worker()
    before = harness.resident_bytes(worker)
    clients = [site.hanji.client() for _ in range(200)]
    for client in clients:
        client.send(begin() + record(PARAMS, HUGE + HUGE + b"x" * 50))
    assert site.hanji.ask("GET", "/health").status == 200
    assert harness.sanitized() or harness.resident_bytes(worker) - before < (8 << 20)
    for client in clients:
        client.close()


def test_long_forms_of_short_lengths_are_lengths(site):
    block = b"".join(struct.pack("!II", 0x80000000 | len(n), 0x80000000 | len(v)) + n + v
                     for n, v in ((b"REQUEST_METHOD", b"GET"), (b"DOCUMENT_URI", b"/health")))
    assert outcome(site, with_params(block)) == 200


def test_nothing_at_all(site):
    assert outcome(site, with_params(b"")) in (400, "closed")


@pytest.mark.parametrize("missing", ["REQUEST_METHOD", "DOCUMENT_URI"])
def test_without_what_is_needed(site, box, missing):
    items = [pair for pair in put_items(site, box + "k") if pair[0] != missing]
    assert outcome(site, request_of(items, b"x")) == 400
    assert absent(site, box + "k")


@pytest.mark.parametrize("missing",
                         ["SCRIPT_NAME", "QUERY_STRING", "CONTENT_TYPE", "REQUEST_ID", "HTTPS", "REMOTE_ADDR",
                          "HTTP_HOST"])
def test_without_what_is_not_needed(site, box, missing):
    items = [pair for pair in put_items(site, box + "k") if pair[0] != missing]
    assert outcome(site, request_of(items, b"x")) == 201


@pytest.mark.parametrize("name", ["X", "HTTP_X_FOO", "HTTP_COOKIE", "SERVER_NAME", "x" * 127, "x" * 128, "x" * 5000])
def test_names_nobody_reads(site, name):
    items = variables("GET", "/health") + [(name, "whatever"), ("EMPTY", "")]
    assert outcome(site, request_of(items)) == 200


NULS = ["REQUEST_METHOD", "DOCUMENT_URI", "QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_AUTHORIZATION",
        "SCRIPT_NAME", "HTTP_IF_MATCH", "REQUEST_ID"]


@pytest.mark.parametrize("name", NULS)
def test_nul_in_a_value(site, box, name):
    """Never cut at the NUL and used."""
    values = dict(put_items(site, box + "k"))
    for value in (str(values.get(name, "")) + "\0", str(values.get(name, "")) + "\0tail",
                  "\0" + str(values.get(name, ""))):
        items = [(n, v) for n, v in values.items() if n != name] + [(name, value)]
        assert outcome(site, request_of(items, b"x")) in (400, "closed"), value
    assert absent(site, box + "k")


@pytest.mark.parametrize("name",
                         ["HTTP_IF_MATCH=x", "=", "=REQUEST_METHOD", "A=B", "DOCUMENT_URI=/health",
                          "HTTP_AUTHORIZATION=", "\0", "A\0", "HTTP_IF_MATCH\0", ""])
def test_names_that_mislead(site, box, name):
    items = put_items(site, box + "k") + [(name, "value")]
    assert outcome(site, request_of(items, b"x")) in (400, "closed")
    assert absent(site, box + "k")


SECURITY = {
    "HTTP_AUTHORIZATION": "Bearer x", "HTTP_IF_MODIFIED_SINCE": "Mon, 30 Nov 2026 00:00:00 GMT",
    "HTTP_IF_UNMODIFIED_SINCE": "Mon, 30 Nov 2026 00:00:00 GMT", "REQUEST_METHOD": "PUT", "DOCUMENT_URI": "/docs/other",
    "SCRIPT_NAME": "/h", "QUERY_STRING": "limit=1", "CONTENT_LENGTH": "1", "CONTENT_TYPE": "text/plain",
}


@pytest.mark.parametrize("name", SECURITY)
@pytest.mark.parametrize("order", ["before", "after", "the same twice"])
def test_given_twice(site, box, name, order):
    """Two answers to one question: refused, whichever comes first."""
    items = put_items(site, box + "k")
    had = dict(items).get(name)
    if had is None:
        items.append((name, SECURITY[name]))
        had = SECURITY[name]
    other = had if order == "the same twice" else SECURITY[name]
    items = [(name, other)] + items if order == "before" else items + [(name, other)]
    assert outcome(site, request_of(items, b"x")) == 400
    assert absent(site, box + "k") and absent(site, "/docs/other-k")


@pytest.mark.parametrize("first,second,status", [
    ('"x"', '{0}', 204), ('{0}', '"x"', 204), ('"x"', '"y"', 412), ("*", '"x"', 400), ('"x"', "*", 400),
    ("*", "*", 400), ('"x"', "junk", 400)])
def test_lists_of_tags_given_twice_are_one_list(site, box, first, second, status):
    """Newer versions of nginx join them before they come here."""
    tag = site.hanji.ask("PUT", box + "k", body=b"x").header("etag")
    items = put_items(site, box + "k") + [("HTTP_IF_MATCH", value.format(tag)) for value in (first, second)]
    assert outcome(site, request_of(items, b"x")) == status


@pytest.mark.parametrize("name", ["HTTP_X_FOO", "HTTP_COOKIE", "HTTP_X_FORWARDED_FOR", "HTTP_PROXY", "SERVER_NAME"])
def test_given_twice_where_nobody_reads(site, name):
    """nginx 1.22 hands repeated headers on like this."""
    items = variables("GET", "/health") + [(name, "a"), (name, "b")]
    assert outcome(site, request_of(items)) == 200


def test_too_many(site):
    for count in (1000, 100000):
        items = variables("GET", "/health") + [("X%d" % i, "") for i in range(count)]
        assert outcome(site, request_of(items), 10) in (400, "closed")
    items = variables("GET", "/health") + [("X%d" % i, "") for i in range(200)]
    assert outcome(site, request_of(items)) == 200


def test_too_large(site):
    for size in (70000, 1 << 20):
        assert outcome(site, request_of(variables("GET", "/health") + [("X", b"x" * size)]), 10) in (400, "closed")
    assert outcome(site, request_of(variables("GET", "/health") + [("X", b"x" * 40000)])) == 200


def test_endless_parameters_are_cut_off(site):
    with site.hanji.client() as client:
        client.send(begin())
        with pytest.raises(fastcgi.Closed):
            for _ in range(2000):
                client.send(record(PARAMS, b"\x01\x01ab" * 10000))


def test_much_padding(site):
    """Records of little else, for a long time."""
    with site.hanji.client() as client:
        data = b"".join(record(PARAMS, pairs([pair]), padding=255) for pair in variables("GET", "/health"))
        client.send(begin() + data + record(PARAMS, padding=255) + record(STDIN, padding=255))
        assert client.answer().status == 200
        try:
            client.send(record(fastcgi.ABORT, padding=255) * 2000)
            client.send(fastcgi.request("GET", "/health"))
            assert client.answer().status == 200
        except fastcgi.Closed:
            pass


HEADERS = ["HTTP_AUTHORIZATION", "HTTP_ACCEPT", "HTTP_HOST", "HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH",
           "HTTP_IF_MODIFIED_SINCE", "REMOTE_ADDR", "CONTENT_TYPE", "HTTPS", "QUERY_STRING", "REQUEST_ID",
           "SCRIPT_NAME"]


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("value",
                         [b"\xff\xfe\x80", b"%s%n%x" * 100, b"'\"; DROP TABLE doc; --", b"\x01\x02\x1b[2J",
                          b"x" * 30000, b",,,,;;;;====", b"\r\n\r\nHTTP/1.1 200 OK\r\n"])
def test_noise_in_a_value(site, box, name, value):
    """An answer with a whole head, or a closed connection."""
    items = [pair for pair in variables("GET", box + "k", site.token) if pair[0] != name] + [(name, value)]
    with site.hanji.client() as client:
        client.send(request_of(items))
        try:
            answer = client.answer()
        except fastcgi.Closed:
            return
    assert answer.status in (200, 304, 400, 401, 404, 412), answer
    assert len(answer.head) < 8192 and b"\n" not in answer.head.replace(b"\r\n",
            b"") and b"HTTP/1.1 200" not in answer.head
    assert answer.header("content-length") is None or int(answer.header("content-length")) == len(answer.body)
