"""FastCGI records on the socket: right ones in odd pieces, wrong ones of every kind.

A wrong one ends in a closed connection or an answer that says so, never in something executed.
"""
import random
import socket
import struct
import time

import pytest

import fastcgi
import harness
from fastcgi import PARAMS, STDIN, begin, pairs, record, request, stream, variables
from test_documents import noise


@pytest.fixture
def client(site):
    with site.hanji.client() as client:
        yield client


def gone(client, timeout=2.0):
    """The server closed this connection."""
    return client.closed(timeout)


def put(site, path, body, **more):
    return request("PUT", path, site.token, body=body, **more)


def absent(site, path):
    return site.hanji.ask("GET", path).status == 404


# right ones

@pytest.mark.smoke
def test_an_answer_record_by_record(client, site):
    client.send(request("GET", "/health"))
    out = client.record()
    assert (out.version, out.kind, out.rid) == (1, fastcgi.STDOUT, 1)
    assert out.content.startswith(b"Status: 200 ") and b"\r\n\r\n" in out.content
    head = out.content.partition(b"\r\n")[0]
    assert len(head.split(b" ", 2)) == 3 and head.split(b" ", 2)[2], "nginx 1.22 needs a reason"
    kinds = []
    while not kinds or kinds[-1].kind != fastcgi.END:
        kinds.append(client.record())
    assert [r.kind for r in kinds if r.content] == [fastcgi.END]
    assert kinds[-1].content == struct.pack("!IB3x", 0, fastcgi.REQUEST_COMPLETE)
    assert client.silent(0.05)


def test_a_connection_serves_many_requests(client, site, box):
    for i in range(300):
        body = noise(i * 7)
        assert client.ask("PUT", box + "k", site.token, body=body).status == (204 if i else 201)
        assert client.ask("GET", box + "k", site.token).body == body


def test_without_keep_conn_the_server_closes(client, site):
    client.send(request("GET", "/health", flags=0))
    assert client.answer().status == 200
    assert gone(client)


def test_keep_conn_is_of_each_request(client, site):
    assert client.ask("GET", "/health").status == 200
    client.send(request("GET", "/health", flags=0))
    assert client.answer().status == 200
    assert gone(client)


@pytest.mark.parametrize("flags", [1, 3, 0x81, 0xff])
def test_unknown_flags_do_not_matter(client, flags):
    client.send(request("GET", "/health", flags=flags))
    assert client.answer().status == 200
    assert client.ask("GET", "/health").status == 200


@pytest.mark.parametrize("rid", [1, 2, 255, 256, 65535])
def test_any_request_id(client, site, rid):
    client.send(request("GET", "/docs/", site.token, rid=rid))
    assert client.answer(rid).status == 200


def test_one_byte_at_a_time(client, site, box):
    client.send_slowly(put(site, box + "k", b"slow"))
    assert client.answer().status == 201
    client.send_slowly(request("GET", box + "k", site.token))
    assert client.answer().body == b"slow"


@pytest.mark.parametrize("piece", [1, 2, 7, 8, 9, 255, 8192])
@pytest.mark.parametrize("padding", [0, 1, 7, 255])
def test_streams_in_pieces(client, site, box, piece, padding):
    body = noise(3000)
    client.send(begin() + stream(PARAMS, pairs(variables("PUT", box + "k", site.token, body=body)), piece=piece,
                                 padding=padding)
                + stream(STDIN, body, piece=piece, padding=padding))
    assert client.answer().status == 201
    assert client.ask("GET", box + "k", site.token).body == body


def test_reserved_bytes_do_not_matter(client, site):
    data = bytearray(request("GET", "/health"))
    data[7] = 0xff                  # of BEGIN's header
    data[11:16] = b"\xff" * 5       # of BEGIN's body
    client.send(bytes(data))
    assert client.answer().status == 200


def test_random_cuts(site, box):
    """Two requests as one stream of bytes, cut anywhere."""
    rng = random.Random(7)
    for i in range(40):
        body = noise(rng.randrange(20000), b"%d" % i)
        data = put(site, box + "k%d" % i, body) + request("GET", box + "k%d" % i, site.token)
        with site.hanji.client() as client:
            while data:
                n = rng.randrange(1, 5000)
                client.send(data[:n])
                data = data[n:]
            assert client.answer().status == 201
            assert client.answer().body == body


@pytest.mark.parametrize("count", [2, 3, 50])
def test_pipelined_requests_are_all_answered(client, site, box, count):
    data = b"".join(put(site, box + "k%d" % i, b"%d" % i) for i in range(count))
    data += b"".join(request("GET", box + "k%d" % i, site.token, rid=i + 1) for i in range(count))
    client.send(data)
    assert [client.answer().status for _ in range(count)] == [201] * count
    assert [client.answer(i + 1).body for i in range(count)] == [b"%d" % i for i in range(count)]


def test_a_body_that_looks_like_a_request_is_a_body(client, site, box):
    inner = put(site, box + "inner", b"x")
    assert client.ask("PUT", box + "k", site.token, body=inner).status == 201
    assert client.ask("GET", box + "k", site.token).body == inner
    assert absent(site, box + "inner")


def test_the_body_of_a_refused_request_is_not_the_next_request(client, site, box):
    inner = put(site, box + "inner", b"x")
    for path, token in ((box + "k", None), (box + "k", "wrong"), ("/nowhere", site.token), (box, site.token),
                        (box + "\x01", site.token)):
        assert client.ask("PUT", path, token, body=inner).status in (400, 401, 404, 405)
    assert client.ask("GET", "/health", body=inner).status == 200
    assert client.ask("GET", "/health").status == 200
    assert absent(site, box + "inner")


def test_a_too_big_body_is_read_to_its_end(client, site, box):
    """The answer is a clean 413, and the connection goes on or is closed behind it."""
    for size in (307200 + 1, 1 << 20):
        client.send(put(site, box + "k", bytes(size)))
        answer = client.answer()
        assert answer.status == 413 and b"307200" in answer.body
    assert client.ask("GET", "/health").status == 200
    assert absent(site, box + "k")


# management records

def values(client, names, **more):
    client.send(record(fastcgi.GET_VALUES, pairs([(name, "") for name in names]), rid=0, **more))
    got = client.record()
    assert (got.kind, got.rid) == (fastcgi.GET_VALUES_RESULT, 0)
    out, rest = {}, got.content
    while rest:
        name, value = rest[0], rest[1]
        out[rest[2:2 + name].decode()] = rest[2 + name:2 + name + value].decode()
        rest = rest[2 + name + value:]
    return out


def test_get_values(client):
    """We do not multiplex; the other two may be left unanswered."""
    got = values(client, ["FCGI_MAX_CONNS", "FCGI_MAX_REQS", "FCGI_MPXS_CONNS"])
    assert got.pop("FCGI_MPXS_CONNS") == "0"
    assert set(got) <= {"FCGI_MAX_CONNS", "FCGI_MAX_REQS"} and all(int(value) >= 1 for value in got.values())
    assert client.ask("GET", "/health").status == 200


@pytest.mark.parametrize("names,known",
                         [([], []), (["X"], []), (["FCGI_MPXS_CONNS", "X"], ["FCGI_MPXS_CONNS"]),
                          (["fcgi_max_conns"], []), (["FCGI_MAX_CONNSX"], [])])
def test_get_values_answers_what_it_knows(client, names, known):
    assert sorted(values(client, names)) == known
    assert client.ask("GET", "/health").status == 200


def test_get_values_in_pieces(client):
    data = record(fastcgi.GET_VALUES, pairs([("FCGI_MPXS_CONNS", "")]), rid=0, padding=7)
    client.send_slowly(data)
    assert client.record().kind == fastcgi.GET_VALUES_RESULT


@pytest.mark.parametrize("kind", [0, 12, 77, 255])
def test_unknown_management_types_are_told(client, kind):
    client.send(record(kind, b"whatever", rid=0, padding=3))
    got = client.record()
    assert (got.kind, got.rid, got.content) == (fastcgi.UNKNOWN_TYPE, 0, bytes([kind]) + bytes(7))
    assert client.ask("GET", "/health").status == 200


def test_management_records_inside_a_request(client, site, box):
    body = b"x" * 10
    params = stream(PARAMS, pairs(variables("PUT", box + "k", site.token, body=body)))
    ask = record(fastcgi.GET_VALUES, pairs([("FCGI_MPXS_CONNS", "")]), rid=0)
    client.send(begin() + ask + params + ask + record(77, b"", rid=0) + record(STDIN, body) + ask + record(STDIN))
    kinds = [client.record().kind for _ in range(4)]
    assert kinds.count(fastcgi.GET_VALUES_RESULT) == 3 and kinds.count(fastcgi.UNKNOWN_TYPE) == 1
    assert client.answer().status == 201


@pytest.mark.parametrize("content",
                         [b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\x05", b"\x05\x00ab", b"\x80", b"\x00\x00" * 30,
                          b"x" * 65535])
def test_broken_get_values(site, client, content):
    client.send(record(fastcgi.GET_VALUES, content, rid=0))
    try:
        got = client.record(1)
        assert got.kind == fastcgi.GET_VALUES_RESULT and got.content == b""
    except fastcgi.Closed:
        pass


def test_a_flood_of_questions_does_not_fill_memory(site, client):
    """Somebody who asks and never reads is stopped, not buffered for."""
    client.sock.settimeout(0.5)
    ask = record(fastcgi.GET_VALUES, pairs([("FCGI_MAX_CONNS", "")]), rid=0) * 1000
    worker = site.hanji.worker()
    before = harness.resident_bytes(worker)
    sent = 0
    try:
        for _ in range(200):
            client.sock.sendall(ask)
            sent += len(ask)
    except OSError:
        pass
    assert harness.sanitized() or harness.resident_bytes(worker) - before < (4 << 20), "after %d bytes" % sent
    assert site.hanji.ask("GET", "/health").status == 200


# one request at a time

def test_a_second_begin_is_turned_away(client, site, box):
    body = b"first"
    block = pairs(variables("PUT", box + "k", site.token, body=body))
    client.send(begin(1) + record(PARAMS, block[:20]) + begin(2))
    got = client.record()
    assert (got.kind, got.rid) == (fastcgi.END, 2)
    assert struct.unpack("!IB3x", got.content)[1] == fastcgi.CANT_MPX_CONN
    client.send(stream(PARAMS, block[20:]) + stream(STDIN, body))
    assert client.answer().status == 201


def test_records_of_the_turned_away_request_are_dropped(client, site, box):
    first = begin(1) + stream(PARAMS, pairs(variables("PUT", box + "k", site.token, body=b"1")), 1)
    second = put(site, box + "second", b"2", rid=2)
    client.send(first + second + stream(STDIN, b"1", 1))
    got = client.record()
    assert (got.kind, got.rid, got.content[4]) == (fastcgi.END, 2, fastcgi.CANT_MPX_CONN)
    assert client.answer(1).status == 201
    assert absent(site, box + "second")


def test_a_second_begin_with_the_same_id(client, site, box):
    client.send(begin(1) + stream(PARAMS, pairs(variables("PUT", box + "k", site.token, body=b"1")), 1) + begin(1))
    assert gone(client)
    assert absent(site, box + "k")


@pytest.mark.parametrize("role", [0, 2, 3, 9, 0xffff])
def test_other_roles_are_unknown(client, role):
    client.send(begin(5, role=role))
    got = client.record()
    assert (got.kind, got.rid) == (fastcgi.END, 5)
    assert struct.unpack("!IB3x", got.content)[1] == fastcgi.UNKNOWN_ROLE


def test_a_request_of_another_role_is_not_executed(client, site, box):
    data = put(site, box + "k", b"x")
    client.send(begin(1, role=fastcgi.FILTER) + data[16:])
    assert client.record().content[4] == fastcgi.UNKNOWN_ROLE
    assert absent(site, box + "k")


@pytest.mark.parametrize("when", ["begun", "in params", "params done", "in stdin"])
def test_abort(client, site, box, when):
    params = stream(PARAMS, pairs(variables("PUT", box + "k", site.token, body=b"0123456789")), end=False)
    data = begin()
    if when != "begun":
        data += params
    if when in ("params done", "in stdin"):
        data += record(PARAMS)
    if when == "in stdin":
        data += record(STDIN, b"01234")
    client.send(data + record(fastcgi.ABORT))
    got = client.record()
    assert (got.kind, got.rid) == (fastcgi.END, 1)
    assert absent(site, box + "k")
    assert client.ask("GET", "/health").status == 200, "the connection goes on"


def test_abort_of_nothing(client):
    client.send(record(fastcgi.ABORT))
    client.send(request("GET", "/health"))
    try:
        assert client.answer().status == 200
    except fastcgi.Closed:
        pass


# wrong ones: the connection is closed and nothing is executed

def valid_parts(site, path):
    """BEGIN, PARAMS, its end, STDIN, its end of a valid PUT."""
    return [begin(), stream(PARAMS, pairs(variables("PUT", path, site.token, body=b"x")), end=False), record(PARAMS),
            record(STDIN, b"x"), record(STDIN)]


BROKEN = {
    "version 0": lambda p: [record(1, p[0][8:], version=0), *p[1:]],
    "version 2": lambda p: [p[0], record(PARAMS, p[1][8:], version=2), *p[2:]],
    "version 9": lambda p: [record(1, p[0][8:], version=9), *p[1:]],
    "version 255 at the end": lambda p: [*p[:4], record(STDIN, version=255)],
    "short BEGIN": lambda p: [record(1, p[0][8:12]), *p[1:]],
    "empty BEGIN": lambda p: [record(1, b""), *p[1:]],
    "long BEGIN": lambda p: [record(1, p[0][8:] + b"12345678"), *p[1:]],
    "BEGIN with id 0": lambda p: [begin(0), *p[1:]],
    "no BEGIN": lambda p: p[1:],
    "STDIN first": lambda p: [p[3], *p],
    "STDIN before the end of PARAMS": lambda p: [p[0], p[1], p[3], p[2], p[3], p[4]],
    "STDIN ends before PARAMS ends": lambda p: [p[0], p[1], p[4], p[2]],
    "no PARAMS": lambda p: [p[0], p[3], p[4]],
    "PARAMS after their end": lambda p: [p[0], p[1], p[2], p[1], p[3], p[4]],
    "PARAMS end twice": lambda p: [p[0], p[1], p[2], p[2], p[3], p[4]],
    "other id in PARAMS": lambda p: [p[0], record(PARAMS, p[1][8:], rid=7), *p[2:]],
    "other id in STDIN": lambda p: [*p[:3], record(STDIN, b"x", rid=7), record(STDIN, b"", rid=7)],
    "type 77": lambda p: [p[0], record(77, b"x"), *p[1:]],
    "type 0": lambda p: [p[0], record(0, b"x"), *p[1:]],
    "END from a client": lambda p: [*p[:3], record(fastcgi.END, bytes(8)), *p[3:]],
    "STDOUT from a client": lambda p: [*p[:3], record(fastcgi.STDOUT, b"Status: 200 OK\r\n\r\n"), *p[3:]],
    "STDERR from a client": lambda p: [*p[:3], record(fastcgi.STDERR, b"x"), *p[3:]],
    "DATA": lambda p: [*p[:3], record(fastcgi.DATA, b"x"), *p[3:]],
    "GET_VALUES_RESULT with our id": lambda p: [p[0], record(fastcgi.GET_VALUES_RESULT, b"", rid=1), *p[1:]],
    "GET_VALUES with our id": lambda p: [p[0], record(fastcgi.GET_VALUES, b"", rid=1), *p[1:]],
    "PARAMS with id 0": lambda p: [p[0], record(PARAMS, p[1][8:], rid=0), *p[2:]],
    "STDIN with id 0": lambda p: [*p[:3], record(STDIN, b"x", rid=0), p[4]],
    "HTTP": lambda p: [b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"],
    "TLS": lambda p: [bytes.fromhex("16030100a5010000a1")],
    "NULs": lambda p: [bytes(64)],
    "0xFF": lambda p: [b"\xff" * 64],
}

# Records of an id that is none of ours may also be ignored (as the specification says of requests that have ended),
# and then the request is answered as if they were not there; it must never be executed without its own body.
MAY_STAY_OPEN = {"other id in PARAMS", "other id in STDIN", "PARAMS with id 0", "STDIN with id 0", "no BEGIN",
                 "STDIN first", "PARAMS end twice", "BEGIN with id 0"}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_sequences(site, client, box, name):
    try:
        client.send(b"".join(BROKEN[name](valid_parts(site, box + "k"))))
    except fastcgi.Closed:
        pass
    closed = gone(client, 0.3 if name in MAY_STAY_OPEN else 2.0)
    assert closed or name in MAY_STAY_OPEN
    if name != "STDIN first":
        assert absent(site, box + "k")


def test_broken_sequences_do_not_delay_others(site, box):
    """While a hundred of them are at it, a good client is answered at once."""
    worst = 0
    with site.hanji.client() as good:
        for name in list(BROKEN) * 3:
            with site.hanji.client() as bad:
                try:
                    bad.send(b"".join(BROKEN[name](valid_parts(site, box + "k"))))
                except fastcgi.Closed:
                    pass
                start = time.monotonic()
                assert good.ask("GET", "/health").status == 200
                worst = max(worst, time.monotonic() - start)
    assert worst < 0.25


# bodies and lengths

@pytest.mark.parametrize("declared,sent",
                         [(10, 5), (5, 10), (0, 1), (1, 0), (5, 0), (65536, 65535), (65535, 65536), (299999, 300000),
                          (2**31, 5), (2**63 - 1, 5), (10**18, 0)])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_length_and_body_disagree(site, client, box, declared, sent, method):
    client.send(request(method, box + "k", site.token, body=noise(sent), extra={"CONTENT_LENGTH": declared}))
    answer = client.answer()
    assert answer.status == 400 or answer.status == 413 and declared > 307200, answer
    assert absent(site, box + "k")


def test_after_a_length_that_disagrees_the_records_still_agree(client, site, box):
    """The stream of records was whole, so the next request is read from its begin."""
    inner = put(site, box + "inner", b"x")
    client.send(request("PUT", box + "k", site.token, body=inner, extra={"CONTENT_LENGTH": 10}))
    assert client.answer().status == 400
    assert client.ask("GET", "/health").status == 200
    assert absent(site, box + "inner") and absent(site, box + "k")


@pytest.mark.parametrize("wrong",
                         ["+3", "-3", "3 ", " 3", "0x3", "3.0", "3e0", "three", "3,3", "3\t", "٣",
                          "99999999999999999999", "18446744073709551619", "1_0", "3;", "00000000000000000000003"])
def test_lengths_that_are_none(site, client, box, wrong):
    client.send(request("PUT", box + "k", site.token, body=b"abc", extra={"CONTENT_LENGTH": wrong}))
    assert client.answer().status == 400
    assert absent(site, box + "k")


@pytest.mark.parametrize("absent_as", [None, ""])
def test_a_body_without_a_length(site, client, box, absent_as):
    """The end of STDIN is the truth."""
    for body in (b"", b"x", noise(100000)):
        client.send(request("PUT", box + "k", site.token, body=body, extra={"CONTENT_LENGTH": absent_as}))
        assert client.answer().status in (201, 204)
        assert client.ask("GET", box + "k", site.token).body == body


def test_the_three_ways_of_no_body(client, site, box):
    for value in (None, "", "0", "000"):
        client.send(request("GET", "/health", extra={"CONTENT_LENGTH": value}))
        assert client.answer().status == 200


def test_a_body_on_a_read(client, site, box):
    assert client.ask("PUT", box + "k", site.token, body=b"x").status == 201
    for method in ("GET", "HEAD", "DELETE"):
        assert client.ask(method, box + "k", site.token, body=b"ignored" * 1000).status in (200, 204, 400)
    assert client.ask("GET", "/health").status == 200


# truncation

@pytest.mark.parametrize("how", ["close", "shutdown"])
def test_cut_at_every_byte(site, box, how):
    """Nothing is executed from less than the whole; the whole is."""
    data = put(site, box + "k", b"body")
    for n in range(len(data)):
        with site.hanji.client() as client:
            client.send(data[:n])
            if how == "shutdown":
                client.sock.shutdown(socket.SHUT_WR)
                assert gone(client, 5), n
    assert absent(site, box + "k")
    with site.hanji.client() as client:
        client.send(data)
        assert client.answer().status == 201


def test_cut_at_every_byte_of_the_second_request(site, box):
    """What was whole before the cut is executed, what was not is not."""
    first, second = put(site, box + "a", b"1"), put(site, box + "b", b"2")
    for n in range(0, len(second), 3):
        with site.hanji.client() as client:
            client.send(first + second[:n])
            assert client.answer().status in (201, 204), n
    assert absent(site, box + "b") and not absent(site, box + "a")


@pytest.mark.parametrize("kind", ["delete", "if-match put"])
def test_a_cut_request_does_not_lose_its_condition(site, box, kind):
    """A precondition in the last pair: without it the request must not run."""
    site.put(box + "k", b"keep")
    items = variables("DELETE" if kind == "delete" else "PUT", box + "k", site.token,
                      body=b"") + [("HTTP_IF_MATCH", '"1"')]
    whole = pairs(items)
    for short in (pairs(items[:-1]), whole[:-1], whole[:-5]):
        # the cut parameters, ended by a close, by the STDIN end, and by an end record of other lengths
        for tail in (b"", record(STDIN)):
            with site.hanji.client() as client:
                try:
                    client.send(begin() + record(PARAMS, short) + tail)
                except fastcgi.Closed:
                    pass
    for short in (whole[:-1], whole[:-5]):
        with site.hanji.client() as client:
            client.send(begin() + record(PARAMS, short) + record(PARAMS) + record(STDIN))
            assert gone(client) or b"Status: 400" in client.buffer
    assert site.get(box + "k").body == b"keep"
