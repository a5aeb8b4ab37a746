"""Errors: which, in which shape, for which client."""
import functools
import html.parser
import json
import os
import pathlib
import re
import resource
import signal

import pytest

import harness
import http1

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def check_problem(answer, status):
    """RFC 9457, with our request id."""
    assert answer.status == status, answer
    assert answer.header("Content-Type") == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "request_id"}
    assert problem["status"] == status
    assert problem["type"] and problem["title"] and problem["detail"]
    assert re.fullmatch(r"[0-9a-f]{32}", problem["request_id"])
    assert answer.header("Content-Length") == str(len(answer.body)) or answer.header("Content-Encoding")
    return problem


def test_missing_document(site, box):
    check_problem(site.get(box + "k"), 404)
    check_problem(site.delete(box + "k"), 404)


@pytest.mark.parametrize("path",
                         ["/", "/nowhere", "/docs", "/health/", "/health/x", "/healthz", "/statusx", "/metrics/",
                          "/HEALTH", "/index.html"])
def test_unknown_route(site, path):
    answer = site.hanji.ask("GET", path)
    assert answer.status == 404, answer
    assert site.hanji.ask("PUT", path, body=b"x").status == 404


def test_request_id_is_nginxs(site, box):
    problem = check_problem(site.get(box + "k"), 404)
    def logged():
        start = problem["request_id"] + " 404 404"
        return [line for line in site.nginx.access.read_text().splitlines() if line.startswith(start)]
    line, = harness.wait_for("nginx's access log", logged)
    assert line.endswith(box + "k")


ALLOWED = {
    "/docs/{0}k": {"GET", "HEAD", "PUT", "DELETE", "PATCH"},
    "/docs/{0}": {"GET", "HEAD", "POST"},
    "/health": {"GET", "HEAD"},
    "/status": {"GET", "HEAD"},
    "/metrics": {"GET", "HEAD"},
}


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("method", ["POST", "PATCH", "OPTIONS", "PROPFIND", "FOO", "GETX", "PUT", "DELETE", "M" * 40])
def test_wrong_method_names_the_right_ones(site, box, path, method):
    if method in ALLOWED[path]:
        return
    answer = site.http(method, path.format(box[6:]), b"x")
    check_problem(answer, 405)
    allow = {word.strip() for word in answer.header("Allow").split(",")}
    assert allow == ALLOWED[path]
    assert site.get(box + "k").status == 404


@pytest.mark.parametrize("method", ["", "get", "GET ", " GET", "GET\n", "GET /", "\xff", "X" * 5000])
def test_methods_that_are_none(site, box, method):
    """Only the socket can bring them."""
    answer = site.hanji.ask(method, box + "k", body=b"")
    assert answer.status in (400, 405, 501), answer


@pytest.mark.smoke
def test_browsers_get_a_page(site, box):
    answer = site.get(box + "k", {"Accept": BROWSER})
    assert answer.status == 404
    assert answer.header("Content-Type").lower().replace(" ", "") == "text/html;charset=utf-8"
    html.parser.HTMLParser().feed(answer.body.decode())
    assert b"<html" in answer.body.lower() and b"404" in answer.body
    assert site.head(box + "k", {"Accept": BROWSER}).body == b""


# A client that names HTML and no JSON gets a page.
PREFERENCES = {
    "text/html": True, "application/xhtml+xml, text/html": True, "text/html;q=0.9, */*;q=0.1": True, "*/*": False,
    "": False, "application/json": False, "application/problem+json": False, "application/json, */*": False,
    "application/json, text/html;q=0.5": False, "text/html;q=0.1, application/problem+json": False,
    "text/plain": False, "garbage": False, ";;;,,,": False, "x" * 4000: False,
}


@pytest.mark.parametrize("accept", PREFERENCES)
def test_who_gets_a_page(site, box, accept):
    kind = site.get(box + "k", {"Accept": accept}).header("Content-Type")
    assert kind.startswith("text/html") == PREFERENCES[accept], kind


def test_no_accept_at_all(site, box):
    assert site.get(box + "k").header("Content-Type") == "application/problem+json"


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_pages_and_problems_do_not_carry_script(site, box, accept):
    for path in (box + "%3Cscript%3Ealert(1)%3C/script%3E", box + "?limit=%3Cscript%3E", box + "?limit=<script>"):
        answer = site.get(path, {"Accept": accept})
        assert answer.status in (400, 404)
        if answer.header("Content-Type").startswith("text/html"):
            assert b"<script" not in answer.body
        else:
            answer.json()


def test_problem_details_stay_json_for_odd_paths(site, box):
    for path in ('"', "%5Cx", "%22%5C", "%0A", "%FF", "%F0%9F%98%80", "a" * 600):
        site.get(box + path + "k").json()


def test_errors_are_not_stored_documents(site, box):
    """An error says so in its headers; caches do not keep it as a document."""
    answer = site.get(box + "k")
    assert answer.header("ETag") is None and answer.header("Last-Modified") is None


def test_hanji_is_too_slow(base, certificate):
    """nginx says so, as a problem; what it asked is answered to nobody."""
    site = harness.Site(base / "stopped", certificate)
    params = site.nginx.base / "params.conf"
    text = params.read_text()
    assert "fastcgi_read_timeout 75s;" in text
    params.write_text(text.replace("fastcgi_read_timeout 75s;", "fastcgi_read_timeout 1s;"))
    site.start()
    worker = site.hanji.worker()
    try:
        os.kill(worker, signal.SIGSTOP)
        answer = site.get("/docs/x")
        os.kill(worker, signal.SIGCONT)
        check_problem(answer, 504)
        assert int(answer.header("Retry-After")) > 0
        assert site.get("/docs/x").status == 404
    finally:
        os.kill(worker, signal.SIGCONT)
        site.stop()


def test_nginx_refuses_an_address_beyond_its_buffer(site, box):
    assert site.get(box + "a" * 9000).status == 414


def test_nginx_refuses_trace(site, box):
    assert site.http("TRACE", box + "k").status == 405


def test_health_is_for_all(site):
    answer = site.get("/health", token=None)
    assert answer.status == 200 and answer.json() == {"status": "ok"}
    assert answer.header("Content-Type").split(";")[0] == "application/json"
    assert site.get("/health", token="nonsense").status == 200


def test_health_ignores_what_it_does_not_read(site):
    for headers in ({"If-Match": '"x"'}, {"If-None-Match": "*"}, {"Accept": "image/png"}):
        assert site.get("/health?x=%FF&limit=abc", headers).status == 200


@pytest.mark.parametrize("kind", ["a\x01b", "text/plain\x7f", "x" * 5000])
def test_types_that_cannot_be_a_header(site, box, kind):
    """A type is refused or comes back; it never breaks the response."""
    answer = site.put(box + "k", b"x", {"Content-Type": kind})
    if answer.status == 201:
        got = site.get(box + "k")
        assert got.status == 200 and got.header("Content-Type") == kind
    else:
        assert answer.status == 400


@pytest.mark.parametrize("kind",
                         ["text/plain\r\nX-Evil: 1", "text/plain\nX-Evil: 1", "text/plain\r\n\r\n<html>"])
def test_types_that_would_split_the_response(site, box, kind):
    """Only the socket can bring them."""
    answer = site.hanji.ask("PUT", box + "k", body=b"x", extra={"CONTENT_TYPE": kind})
    assert answer.status == 400, answer
    assert site.get(box + "k").status == 404


@pytest.mark.parametrize("value", ["x\r\nX-Evil: 1", "\n", "x" * 3000, "\"", "<b>", "\xff", ""])
def test_request_ids_that_would_split_the_response(site, box, value):
    answer = site.hanji.ask("GET", box + "k", extra={"REQUEST_ID": value})
    assert answer.status in (400, 404), answer
    assert answer.header("X-Evil") is None
    assert isinstance(http1.parse_json(answer.body)["request_id"], str)


@pytest.mark.parametrize("method, path, query, body", [
    ("GET", "/docs/", "include=body", None),
    ("POST", "/snapshot", "", json.dumps({"keys": ["m/%d" % i for i in range(8)]}).encode()),
])
def test_an_answer_for_which_there_is_no_memory(make_hanji, method, path, query, body):
    """It is 503, to be tried again, and there is no fault in the server."""
    hanji = make_hanji()
    for i in range(8):
        assert hanji.ask("PUT", "/docs/m/%d" % i, body=b"m" * 500000, extra={"CONTENT_TYPE": "text/plain"}).status == 201
    with hanji.client() as client:
        ask = functools.partial(client.ask, method, path, hanji.token, query=query, body=body,
                                extra={"CONTENT_TYPE": "application/json"})
        assert client.ask("GET", "/health").status == 200
        if not harness.sanitized():     # a sanitizer ends the program when memory is short
            status = pathlib.Path("/proc/%d/status" % hanji.worker()).read_text()
            mapped = int(re.search(r"VmSize:\s+(\d+)", status)[1])
            resource.prlimit(hanji.worker(), resource.RLIMIT_AS, (mapped * 1024 + (1 << 20), resource.RLIM_INFINITY))
            answer = ask()
            assert answer.status == 503 and answer.header("Retry-After") and b"Memory" in answer.body, answer
            resource.prlimit(hanji.worker(), resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert ask().status == 200
