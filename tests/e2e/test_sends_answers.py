"""What every address below /sends/ answers when something is short: memory, room, the database, the disk; see test_openapi.py."""
import json

import pytest

import fastcgi
import harness
from test_openapi import LIMIT, refused_for_want_of_a_file
from test_sends import become

JSON = {"CONTENT_TYPE": "application/json"}
LINE = b'{"url":"http://192.0.2.1:9/"}'
# method, path below the line, the body, what it is answered when all is well
OPERATIONS = [("GET", "", None, 200), ("HEAD", "", None, 200), ("PUT", "", LINE, 200), ("POST", "", b'{"n":1}', 202),
              ("POST", "/pause", None, 204), ("POST", "/resume", None, 204), ("POST", "/retry", None, 200), ("POST", "/replay?from=1", None, 200),
              ("GET", "/ID", None, 200), ("HEAD", "/ID", None, 200), ("POST", "/ID/retry", None, 200), ("POST", "/ID/skip", None, 204),
              ("DELETE", "", None, 204)]
WRITES = [one for one in OPERATIONS if one[0] not in ("GET", "HEAD")]
NUMBERS = iter(range(1000000))


@pytest.fixture(scope="module")
def small(base, slow):
    """A server that takes little, over a disk that can fail."""
    hanji = harness.Hanji(base / "sends-answers", max_body=LIMIT, body_memory=LIMIT, body_in_memory="16k")
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    hanji.elsewhere = hanji.new_token("elsewhere", read=["/docs/"], write=["/docs/"])
    yield hanji
    hanji.stop()


@pytest.fixture
def line(small):
    """A line with a message, paused."""
    path = "/sends/a%d" % next(NUMBERS)
    assert small.ask("PUT", path, body=LINE, extra=JSON).status == 201
    assert small.ask("POST", path + "/pause").status == 204
    return path, json.loads(small.ask("POST", path, body=b"{}", extra=JSON).body)["id"]


def ask(small, line, operation, token=None, **more):
    method, path, body, _ = operation
    path, _, query = (line[0] + path.replace("ID", line[1])).partition("?")
    more.setdefault("body", body)
    extra = {**(JSON if body else {}), **more.pop("extra", {})}
    return fastcgi.ask(small.socket, method, path, token or small.token, extra=extra, query=query, **more)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_all_is_well(small, line, operation):
    assert ask(small, line, operation).status == operation[3]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_malformed(small, line, operation):
    method, path = operation[0], line[0] + operation[1].partition("?")[0].replace("ID", line[1])
    parts = fastcgi.variables(method, path, small.token) + [("HTTP_AUTHORIZATION", "Bearer x")]
    with small.client() as client:
        client.send(fastcgi.request_of(parts))
        assert client.answer().status == 400


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_who_may_not(small, line, operation):
    assert ask(small, line, operation, extra={"HTTP_AUTHORIZATION": None}).status == 401
    assert ask(small, line, operation, "hanji_" + 43 * "A").status == 401
    assert ask(small, line, operation, small.elsewhere).status == 403


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_of_no_line(small, line, operation):
    status = ask(small, ("/sends/nothere", line[1]), operation).status
    assert status == (201 if operation[0] == "PUT" else 404)
    small.ask("DELETE", "/sends/nothere")


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_body_beyond_the_limit(small, line, operation):
    assert ask(small, line, operation, body=bytes(LIMIT + 1)).status == 413


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_no_room_for_the_body(small, line, operation):
    path = line[0] + operation[1].partition("?")[0].replace("ID", line[1])
    assert refused_for_want_of_a_file(small, operation[0], path, small.token) == 503


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_the_database_cannot_be_read(small, slow, line, operation):
    assert small.ask("PUT", "/docs/other", body=b"what was read before is stale").status in (201, 204)
    slow.set(unreadable=True)
    try:
        assert ask(small, line, operation).status == 500
    finally:
        slow.set()
    assert small.ask("GET", "/docs/other").status == 200


@pytest.mark.parametrize("operation", WRITES, ids=str)
def test_the_disk_is_full(small, slow, line, operation):
    """Then nothing is changed; once there is room again, it is."""
    if operation[1] == "/pause":
        assert small.ask("POST", line[0] + "/resume").status == 204
    if operation[1] in ("/retry", "/replay?from=1"):        # there must be something to do
        become(small, line[1], "parked" if operation[1] == "/retry" else "delivered")
    def looks():
        """What the courier, which tries what is on an open line, leaves as it is."""
        told = json.loads(small.ask("GET", line[0]).body)
        return told["line"]["state"], told["line"]["seq"], [(one["id"], one["state"]) for one in told["messages"]]
    before = looks()
    slow.set(full=True)
    try:
        assert ask(small, line, operation).status == 507
        assert looks() == before
    finally:
        slow.set()
    assert ask(small, line, operation).status == operation[3]


def test_a_method_that_there_is_not(small, line):
    answer = small.ask("PATCH", line[0], body=b"{}", extra=JSON)
    assert answer.status == 405 and answer.header("Allow") == "GET, HEAD, PUT, DELETE, POST"
    answer = small.ask("GET", line[0] + "/pause")
    assert answer.status == 405 and answer.header("Allow") == "POST"


def test_a_message_that_is_over(small, line):
    assert ask(small, line, ("POST", "/ID/skip", None, 204)).status == 204
    assert ask(small, line, ("POST", "/ID/skip", None, 409)).status == 409
    assert ask(small, line, ("POST", "/ID/retry", None, 409)).status == 409
