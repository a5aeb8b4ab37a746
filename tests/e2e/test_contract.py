"""The reader of docs/openapi.yaml can fail: what is not written down, or written down otherwise, is told."""
import importlib.util

import pytest

import contract
import fastcgi
import harness

DOCUMENT = """
paths:
  /docs/{key}:
    get:
      responses:
        "200":
          headers: {ETag: {required: true, schema: {pattern: '^"[0-9]+"$'}}, Link: {schema: {type: string}}}
          content: {"*/*": {schema: {}}}
        "404": {$ref: "#/components/responses/Problem"}
    put: {responses: {"204": {description: done}}}
  /docs/{name}/: {get: {responses: {"200": {content: {application/json: {schema: {type: array}}}}}}}
  /docs/: {get: {responses: {"200": {}}}}
x-common-headers: {}
x-by-nginx: {"502": {}}
x-internal: {/asked: {any: {responses: {"204": {}}}}}
x-unlisted: {path: {"404": {}}, method: {"405": {headers: {Allow: {required: true, schema: {}}}}}}
components:
  responses:
    Problem: {content: {application/problem+json: {schema: {$ref: "#/components/schemas/Problem"}}}}
  schemas:
    Problem: {type: object, required: [status], properties: {status: {type: integer}}}
"""
TAG = ("ETag", '"7"')
PROBLEM = ("Content-Type", "application/problem+json")


@pytest.fixture
def small(tmp_path):
    (tmp_path / "openapi.yaml").write_text(DOCUMENT)
    return contract.Contract(tmp_path / "openapi.yaml")


RIGHT = {
    "a document": ("GET", b"/docs/a/b", 200, [TAG], b"anything"),
    "what nginx adds": ("GET", b"/docs/a", 200, [TAG, ("Server", "nginx"), ("Vary", "x")], b""),
    "a header that may be": ("GET", b"/docs/a", 200, [TAG, ("Link", "x")], b""),
    "a list": ("GET", b"/docs/a/b/", 200, [("Content-Type", "application/json")], b"[]"),
    "a problem": ("GET", b"/docs/a", 404, [PROBLEM], b'{"status":404}'),
    "no other address": ("GET", b"/nowhere", 404, [], b""),
    "no other method": ("POST", b"/docs/a", 405, [("Allow", "GET")], b""),
}
WRONG = {
    "no header": ("GET", b"/docs/a", 200, [], b"", "no etag"),
    "another header": ("GET", b"/docs/a", 200, [TAG, ("X-New", "1")], b"", "x-new is not written down"),
    "a header of another form": ("GET", b"/docs/a", 200, [("ETag", "7")], b"", "etag: "),
    "a second header of another form": ("GET", b"/docs/a", 200, [TAG, ("etag", "7")], b"", "etag: "),
    "another type": ("GET", b"/docs/a", 404, [("Content-Type", "text/html")], b"", "'text/html' is not"),
    "no type": ("GET", b"/docs/a", 404, [], b"", "'' is not"),
    "no JSON": ("GET", b"/docs/a", 404, [PROBLEM], b"{", "not JSON"),
    "a missing member": ("GET", b"/docs/a", 404, [PROBLEM], b"{}", "'status' is a required"),
    "a member of another form": ("GET", b"/docs/a", 404, [PROBLEM], b'{"status":"x"}', "['status']: 'x' is not"),
    "a body where none is written down": ("GET", b"/docs/", 200, [], b"x", "a body where"),
    "no Allow": ("POST", b"/docs/a", 405, [], b"", "no allow"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers(small, name):
    small.judge(*RIGHT[name])
    assert not small.faults and not small.strange


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers(small, name):
    *answer, said = WRONG[name]
    small.judge(*answer)
    assert len(small.faults) == 1 and said in small.faults[0]


@pytest.mark.parametrize("method,path,status", [
    ("GET", b"/docs/a", 500), ("PUT", b"/docs/a", 200), ("GET", b"/nowhere", 200), ("POST", b"/docs/a", 200),
    ("GET", b"/docs/a/", 404), ("HEAD", b"/docs/a", 200), ("get", b"/docs/a", 200), ("GET", b"/docs/a\n", 201)])
def test_a_status_that_is_not_listed(small, method, path, status):
    small.count(method, path, status)
    assert any(line.startswith("not in docs/openapi.yaml: %s " % method) for line in small.verdict())


def test_what_was_never_seen(small):
    for name in RIGHT:
        small.judge(*RIGHT[name])
    small.count("PUT", b"/docs/a", 204)
    small.count("MOVE", b"/asked", 204)
    assert small.verdict() == ["never seen: GET /docs/: 200", "never seen: by nginx: 502"]
    small.count("GET", b"/docs/", 200)
    small.seen["by nginx", "", 502] += 1
    assert small.verdict() == []


TEMPLATES = {b"/docs/": "/docs/", b"/docs/a": "/docs/{key}", b"/docs/a/b": "/docs/{key}", b"/docs/a/": "/docs/{name}/",
             b"/docs/a/b/": "/docs/{name}/", b"/docs/\n": "/docs/{key}", b"/docs": None, b"/": None,
             b"/docsa": None, b"/x/docs/a": None, b"/docs/\xff": "/docs/{key}"}


@pytest.mark.parametrize("path", TEMPLATES)
def test_which_route(small, path):
    assert small.template(path) == TEMPLATES[path]


TARGETS = {"/docs/a": b"/docs/a", "/docs//a": b"/docs/a", "/docs/a/": b"/docs/a/", "/docs/a/..": b"/docs/",
           "/docs/./a": b"/docs/a", "/../docs": b"/docs", "/docs/%2e%2e/x": b"/x", "/docs/a%2Fb": b"/docs/a/b",
           "/docs/%25": b"/docs/%", "/docs/a?b/../c": b"/docs/a", "http://host:80/docs/a": b"/docs/a", "/": b"/",
           "/docs/a#b": b"/docs/a", "/docs/%C3%A9": b"/docs/\xc3\xa9", "/docs/\xe9": b"/docs/\xc3\xa9"}


@pytest.mark.parametrize("target", TARGETS)
def test_targets_become_paths(target):
    assert contract.normal(target) == TARGETS[target]


LOG = b"""GET /h/docs/a 200 200 /h/docs/a
GET /h/docs/b 200  /h/docs/b
PUT /h/docs/c%2Fd?x 418 502,418 /h/docs/c/d
GET /docs/a 500 500 /docs/a
GET /h/docs/e 502 502 /h/docs/e
GET /h/docs/e 502  /h/docs/e
GET /h/docs/e 499 200 /h/docs/e
GET /h/docs/e 503  /h/docs/e
GET /h/other 400  /h/other
- - 502  -
GET /h/asked 404  /h/asked
POST /h 404 404 /h
GET /h/docs/\xff 204 204 /h/docs/\xff
POST /application 200 200 /h/docs/
GET /application 200  /h/docs/
PROPFIND /h/asked 204 204 /h/asked
"""


def test_the_log_counts_what_hanji_was_asked(small, tmp_path):
    log = tmp_path / "seen.log"
    log.write_bytes(LOG.replace(b" ", b"\t"))
    small.take_log(log, "/h")
    assert small.seen == {("/docs/{key}", "GET", 200): 1, ("path", "", 404): 1, ("/docs/", "GET", 200): 1,
                          ("/asked", "ANY", 204): 1, ("by nginx", "", 502): 3}
    assert set(small.strange) == {("/docs/{key}", "PUT", 418), ("/docs/{key}", "GET", 204), ("by nginx", "", 503)}


REQUEST = fastcgi.request("PUT", "/docs/k", body=b"x" * 70000)
SENT = {
    "one": ([REQUEST], b"/docs/k"),
    "in bytes": ([REQUEST[:100], REQUEST[100:66000], REQUEST[66000:]], b"/docs/k"),
    "two": ([REQUEST + fastcgi.request("GET", "/docs/x")], b"/docs/k"),
    "cut": ([REQUEST[:-8]], None),
    "aborted behind its end": ([REQUEST, fastcgi.record(fastcgi.ABORT)], None),
    "management before it": ([fastcgi.record(fastcgi.GET_VALUES, rid=0), REQUEST], None),
    "noise": ([b"\xff" * 100], None),
    "lengths that lie": ([fastcgi.begin() + fastcgi.stream(fastcgi.PARAMS, b"\x7f\xff\xff") + fastcgi.stream(
        fastcgi.STDIN, b"")], None),
}


@pytest.mark.parametrize("name", SENT)
def test_which_request_an_answer_is_for(name):
    sent = fastcgi.Sent()
    for data in SENT[name][0]:
        sent.add(data)
    found = sent.next()
    assert (dict(found)[b"DOCUMENT_URI"] if found else None) == SENT[name][1]


@pytest.fixture(scope="module")
def lint(tmp_path_factory):
    """The lines that the lint has for this text in the place of the document."""
    spec = importlib.util.spec_from_file_location("lint_openapi", harness.REPOSITORY / "tests" / "lint" / "openapi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path_factory.mktemp("lint") / "openapi.yaml"

    def run(text):
        path.write_text(text)
        return module.problems(path)
    return run


MUTATIONS = [
    ("openapi: 3.1.0", "openapi: 3.0.3", "is not 3.1"),
    ("operationId: putDocument", "operationId: getDocument", "is not its own"),
    ("    put:\n", "    trace:\n", "is in handlers/routes.c"),
    ("    put:\n", "    putt:\n", "has no place here"),
    ("  /metrics:", "  /metrix:", "is not in handlers/routes.c"),
    ("  /metrics:", "  /health:", "named twice"),
    ("required: [status]", "required: [statuz]", "no property"),
    ("#/components/responses/Status", "#/components/responses/Statu", "leads nowhere"),
    ("#/components/responses/Status", "#/components/schemas/Status", "is not in components/responses"),
    ("    Metrics:\n", "    Metric:\n", "leads nowhere"),
    ("components:\n", "components:\n  examples:\n    Lonely: {value: 1}\n", "is used nowhere"),
    ("pattern: '^[0-9]+$'", "pattern: '['", "the pattern"),
    ("type: integer", "type: whole", "is not valid"),
    ('"507"', "507", "no status in quotes"),
    ("size: 12,", "size: -12,", "does not fit"),
    ("      name: key\n", "      name: kee\n", "parameters of the path"),
    ("      in: query\n", "      in: body\n", "none of path"),
    ("tags: [server]", "tags: [servant]", "not described"),
    ("- token: []", "- pass: []", "no security scheme"),
    ("  version: ", "  version: 9", "is not that of the Makefile"),
    ("      summary: ", "      summry: ", "is missing"),
    ("paths:\n", "paths: [\n", "openapi.yaml"),
]


@pytest.mark.parametrize("old,new,said", MUTATIONS)
def test_the_lint_says_what_is_wrong(lint, old, new, said):
    text = contract.FILE.read_text()
    assert old in text
    lines = lint(text.replace(old, new, 1))
    assert any(said in line for line in lines), lines


def test_the_lint_says_nothing_else(lint):
    assert lint(contract.FILE.read_text()) == []
