"""Each operation of docs/openapi.yaml gives the answers that every operation has.

A route that is added there is tested here by itself: malformed, without a credential, with one that does not reach,
too large, no memory, no database, and, where the document says so, a full disk.  The request that the document gives as
the example of an operation must succeed.  What is particular to a route is tested beside its subject.
"""
import contextlib
import json
import os
import re
import resource

import pytest

import fastcgi
import harness
from contract import CONTRACT

# What is below /apps/ hangs on the app: see test_apps*.py. The console is an app: see test_console.py. What is below an inbox needs one,
# and signatures: see test_inbox*.py; what is below a line needs one: see test_sends_answers.py.
OPERATIONS = sorted(operation for operation in CONTRACT.operations
                    if not operation[0].startswith(("/apps/", "/console", "/inbox/{", "/sends/{")))
NAMES = ["%s %s" % (method, template) for template, method in OPERATIONS]
LIMIT = 64 * 1024


def described(template, method):
    return {**CONTRACT.document["paths"], **CONTRACT.document["x-internal"]}[template][method.lower()]


def security(template, method):
    return described(template, method).get("security", CONTRACT.document["security"])


def having(status):
    return [operation for operation in OPERATIONS if status in CONTRACT.operations[operation]]


def guarded(status):
    """Those where a credential is needed, and that have this answer.  Reading is: the documents here are not public."""
    return [operation for operation in having(status) if operation[0] not in ("/auth/login", "/auth/logout")]


def address(template, box="/docs/openapi/"):
    return re.sub(r"\{(\w+)\}", lambda found: box[6:-1] + ("/k" if found.group(1) == "key" else ""), template)


def example(template, method):
    """(type, body) of the operation's example, or (None, None)."""
    body = described(template, method).get("requestBody")
    for kind, media in CONTRACT.resolve(body)["content"].items() if body else ():
        examples = media.get("examples") or {"": {"value": media["example"]}}
        value = CONTRACT.resolve(next(iter(examples.values())))["value"]
        text = value if isinstance(value, str) and not kind.endswith("json") else json.dumps(value)
        return ("application/json" if kind == "*/*" else kind), text.encode()
    return None, None


def real(method):
    return "GET" if method == "ANY" else method


def ask(hanji, operation, token=None, **more):
    """The operation's example."""
    template, method = operation
    kind, body = example(template, method)
    more.setdefault("body", body)
    return fastcgi.ask(hanji.socket, real(method), address(template), token or hanji.token,
                       extra={"CONTENT_TYPE": kind or "", "HANJI_CHECK_URI": address("/docs/{key}"),
                              **more.pop("extra", {})}, **more)


@pytest.fixture(scope="module")
def small(base, slow):
    """A server that takes little, over a disk that can fail."""
    hanji = harness.Hanji(base / "openapi", max_body=LIMIT, body_memory=LIMIT, body_in_memory="16k")
    hanji.env = slow.env()
    hanji.command("key", "new")
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    hanji.command("user", "add", "alice", "--read", "/", stdin="correct horse\n")
    yield hanji
    hanji.stop()


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
def test_a_credential_given_twice_is_malformed(small, operation):
    template, method = operation
    parts = fastcgi.variables(real(method), address(template), small.token) + [("HTTP_AUTHORIZATION", "Bearer x")]
    with small.client() as client:
        client.send(fastcgi.request_of(parts))
        assert client.answer().status == 400


@pytest.mark.parametrize("operation", guarded(401), ids=str)
def test_no_credential(small, operation):
    answer = ask(small, operation, extra={"HTTP_AUTHORIZATION": None})
    assert answer.status == 401 and "error" not in answer.header("WWW-Authenticate")


@pytest.mark.parametrize("operation", guarded(401), ids=str)
def test_a_credential_that_is_not_known(small, operation):
    answer = ask(small, operation, "hanji_" + 43 * "A")
    assert answer.status == 401 and "error" in answer.header("WWW-Authenticate")


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if 401 not in CONTRACT.operations[one]], ids=str)
def test_none_is_needed_where_none_is_listed(small, operation):
    assert {} in security(*operation) or not security(*operation)
    assert ask(small, operation, extra={"HTTP_AUTHORIZATION": None}).status < 400


@pytest.fixture(scope="module")
def elsewhere(small):
    return small.new_token("elsewhere", read=["/docs/elsewhere/"], write=["/docs/elsewhere/"])


@pytest.mark.parametrize("operation", guarded(403), ids=str)
def test_a_credential_that_does_not_reach(small, elsewhere, operation):
    assert ask(small, operation, elsewhere).status == 403


@pytest.mark.parametrize("operation", having(413), ids=str)
def test_a_body_beyond_the_limit(small, operation):
    """Also where none is expected."""
    assert ask(small, operation, body=bytes(LIMIT + 1)).status == 413


@contextlib.contextmanager
def no_descriptor_left(hanji):
    """The worker can open nothing more."""
    worker = hanji.worker()
    before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/proc/%d/fd" % worker)}
    free = min(number for number in range(3, len(used) + 4) if number not in used)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(worker, resource.RLIMIT_NOFILE, before)


def refused_for_want_of_a_file(hanji, method, path, token=None):
    """A body for which there is no memory, since half of another one is there, and no descriptor for a file of its own."""
    with hanji.client() as client, hanji.client() as other:
        other.send(fastcgi.request("PUT", "/docs/half", token, body=bytes(8000))[:-100])
        assert client.ask("GET", "/health").status == 200       # both are accepted now, and the half is there
        with no_descriptor_left(hanji):
            return client.ask(method, path, token, body=bytes(LIMIT)).status


@pytest.mark.parametrize("operation", having(503), ids=str)
def test_no_room_for_the_body(small, operation):
    template, method = operation
    assert refused_for_want_of_a_file(small, real(method), address(template), small.token) == 503


@pytest.mark.parametrize("method,path", [("GET", "/nothing"), ("POST", "/health")])
def test_bodies_for_what_there_is_not(small, method, path):
    """Too large, and no room for it."""
    assert fastcgi.ask(small.socket, method, path, body=bytes(LIMIT + 1)).status == 413
    assert refused_for_want_of_a_file(small, method, path) == 503


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one in having(500) or one[0] == "/health"], ids=str)
def test_the_database_cannot_be_read(small, slow, operation):
    """500, but health, which says 503; afterwards it can be."""
    assert small.ask("PUT", "/docs/openapi/other", body=b"what was read before is stale").status in (201, 204)
    slow.set(unreadable=True)
    try:
        status = ask(small, operation).status
    finally:
        slow.set()
    assert status == (500 if 500 in CONTRACT.operations[operation] else 503)
    assert small.ask("GET", "/docs/openapi/other").status == 200


@pytest.mark.parametrize("operation", [one for one in having(507) if one[0] != "/auth/logout"], ids=str)
def test_the_disk_is_full(small, slow, operation):
    """Then nothing is changed; once there is room again, writing goes on."""
    small.ask("PUT", "/docs/openapi/k", body=b"{}", extra={"CONTENT_TYPE": "application/json"})
    slow.set(full=True)
    try:
        assert ask(small, operation).status == 507
        assert small.ask("GET", "/docs/openapi/k").body == b"{}"
    finally:
        slow.set()
    assert ask(small, operation).status < 300


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one[1] != "ANY"], ids=str)
def test_the_example_of_the_document(site, box, operation):
    template, method = operation
    site.put(box + "k", b'{"a":1}', {"Content-Type": "application/json"})
    kind, body = example(template, method)
    answer = site.http(method, address(template, box), body, {"Content-Type": kind} if kind else {})
    assert 200 <= answer.status < 300 and answer.status in CONTRACT.operations[operation]
