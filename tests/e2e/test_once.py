"""Idempotency-Key: a POST that is sent again changes nothing and is answered the same, whatever happened in between."""
import concurrent.futures
import json
import os
import random
import signal
import time

import pytest

import fastcgi
from test_batch import key_of

KINDS = ["create", "batch"]


def post(site, box, kind, key, body=None, path=None, content_type=None, **more):
    """A create in the box, or a batch that puts two documents into it."""
    if kind == "create":
        path, body, content_type = path or box, body or b"x", content_type or "text/plain"
    else:
        operations = [{"op": "put", "key": key_of(box) + "a", "text": "x"}, {"op": "put", "key": key_of(box) + "b", "text": "y"}]
        path, body, content_type = path or "/batch", body or json.dumps(operations).encode(), content_type or "application/json"
    headers = {"Content-Type": content_type}
    if key is not None:
        headers["Idempotency-Key"] = key
    return site.http("POST", path, body, headers, **more)


def same(first, again):
    """The same answer, but for the header that says that it is a repeated one."""
    assert again.status == first.status and again.body == first.body
    for name in ("ETag", "Location", "Content-Type"):
        assert again.header(name) == first.header(name), name
    assert first.header("Idempotency-Replayed") is None
    assert again.header("Idempotency-Replayed") == "true"


def count(site, box):
    return len(site.get(box + "?limit=1000").json()["items"])


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_the_second_is_the_first(site, box, kind):
    first = post(site, box, kind, "one" + box)
    before = site.hanji.status()["seq"]
    for _ in range(3):
        same(first, post(site, box, kind, "one" + box))
    assert site.hanji.status()["seq"] == before
    assert count(site, box) == (1 if kind == "create" else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_key_each_is_another(site, box, kind):
    first, again = post(site, box, kind, None), post(site, box, kind, None)
    assert first.body != again.body and again.header("Idempotency-Replayed") is None


@pytest.mark.parametrize("kind", KINDS)
def test_quotes_make_no_difference(site, box, kind):
    same(post(site, box, kind, '"q%s"' % box), post(site, box, kind, "q" + box))


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_stays_though_the_documents_change(site, box, kind):
    first = post(site, box, kind, "gone" + box)
    for item in site.get(box).json()["items"]:
        assert site.delete("/docs/" + item["key"]).status == 204
    same(first, post(site, box, kind, "gone" + box))
    assert count(site, box) == 0


@pytest.mark.parametrize("body,content_type", [(b"y", None), (b"x\n", None), (b"x", "text/html")])
def test_another_create_with_the_key(site, box, body, content_type):
    post(site, box, "create", "other" + box)
    answer = post(site, box, "create", "other" + box, body, content_type=content_type)
    assert answer.status == 422 and "Idempotency-Key" in answer.json()["detail"]
    assert count(site, box) == 1


def test_another_create_at_the_root_with_the_key(site, box):
    post(site, box, "create", "root" + box, path="/docs/")
    assert post(site, box, "create", "root" + box, b"y", path="/docs/").status == 422


def test_another_batch_with_the_key(site, box):
    post(site, box, "batch", "other" + box)
    assert post(site, box, "batch", "other" + box, b"[]").status == 422
    assert post(site, box, "batch", "other" + box, b"[ ]").status == 422


def test_a_key_belongs_to_a_path(site, box):
    key = "path" + box
    answers = [post(site, box, "create", key), post(site, box, "create", key, path=box + "sub/"), post(site, box, "batch", key)]
    assert [answer.status for answer in answers] == [201, 201, 200]
    assert not any(answer.header("Idempotency-Replayed") for answer in answers)


def test_a_key_belongs_to_a_credential(site, box):
    key, name = "mine" + box, key_of(box)
    tokens = [site.hanji.new_token("once%d%s" % (i, name.strip("/")), write=[name]) for i in range(2)]
    first, second = [post(site, box, "create", key, token=token) for token in tokens]
    assert first.json()["key"] != second.json()["key"]
    same(first, post(site, box, "create", key, token=tokens[0]))
    same(second, post(site, box, "create", key, token=tokens[1]))


def test_rights_are_asked_first(site, box):
    name = key_of(box)
    token = site.hanji.new_token("revoked" + name.strip("/"), write=[name])
    assert post(site, box, "create", "r" + box, token=token).status == 201
    assert post(site, box, "batch", "r" + box, token=token).status == 200
    site.hanji.command("token", "revoke", "revoked" + name.strip("/"))
    assert post(site, box, "create", "r" + box, token=token).status == 401
    assert post(site, box, "batch", "r" + box, token=token).status == 401


@pytest.mark.parametrize("bad", ["", " ", "a b", "x" * 256, '"', '""', '"a', '"a"b', '"\\n"', "\xe9", "a\tb"])
def test_keys_that_are_none(site, box, bad):
    answer = site.hanji.ask("POST", box, body=b"x", extra={"HTTP_IDEMPOTENCY_KEY": bad, "CONTENT_TYPE": "text/plain"})
    if bad:
        assert answer.status == 400 and b"Idempotency-Key" in answer.body
        assert count(site, box) == 0
    else:
        assert answer.status in (201, 400)


def test_two_keys(site, box):
    variables = fastcgi.variables("POST", box, site.token) + [("HTTP_IDEMPOTENCY_KEY", "a"), ("HTTP_IDEMPOTENCY_KEY", "b")]
    with site.hanji.client() as client:
        client.send(fastcgi.request_of(variables))
        assert client.answer().status == 400


def test_what_fails_may_be_tried_again(site, box):
    """Only what was done is remembered."""
    key = key_of(box) + "k"
    body = json.dumps([{"op": "put", "key": key, "text": "x", "if_match": "*"}]).encode()
    assert post(site, box, "batch", "f" + box, body).status == 412
    site.put(box + "k", b"there")
    assert post(site, box, "batch", "f" + box, body).status == 200
    assert post(site, box, "create", "bad" + box, b"{", content_type="application/json").status == 400
    assert post(site, box, "create", "bad" + box, b"{}", content_type="application/json").status == 201


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "GET"])
def test_other_methods_do_not_look_at_it(site, box, method):
    site.put(box + "k", b"{}", {"Content-Type": "application/json"})
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    statuses = [site.http(method, box + "k", b"{}" if method[0] == "P" else None,
                          {"Idempotency-Key": "m", "Content-Type": kind}).status for _ in range(2)]
    assert statuses == {"PUT": [204, 204], "PATCH": [200, 200], "DELETE": [204, 404], "GET": [200, 200]}[method]


@pytest.mark.parametrize("kind", KINDS)
def test_at_once(site, box, kind):
    """Twenty with one key, in one burst or several: one effect, one answer."""
    def ask(_):
        body, path = b"x", box
        if kind == "batch":
            body, path = json.dumps([{"op": "put", "key": key_of(box) + "a", "text": "x"}]).encode(), "/batch"
        return site.hanji.ask("POST", path, body=body, extra={"HTTP_IDEMPOTENCY_KEY": "once" + box,
                                                              "CONTENT_TYPE": "application/json" if kind == "batch" else "a/b"})
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))
    assert len({(answer.status, answer.body) for answer in answers}) == 1
    assert answers[0].status in (200, 201)
    assert count(site, box) == 1


@pytest.mark.parametrize("threads", [1, 4])
def test_lost_replies(make_hanji, slow, threads):
    """The worker is killed at any moment of a write; the client sends again until it is answered: one effect."""
    slow.set()
    hanji = make_hanji(start=False, threads=threads)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    slow.set(sync_ms=15)
    rng = random.Random(threads)
    try:
        for i in range(12):
            extra = {"HTTP_IDEMPOTENCY_KEY": "key-%d" % i, "CONTENT_TYPE": "text/plain"}
            hanji.expect_new_worker()
            pid = hanji.worker()
            with hanji.client() as client:
                client.send(fastcgi.request("POST", "/docs/c/", hanji.token, body=b"%d" % i, extra=extra))
                time.sleep(rng.uniform(0, 0.05))
                os.kill(pid, signal.SIGKILL)
            hanji.wait_healthy()
            answer = hanji.ask("POST", "/docs/c/", body=b"%d" % i, extra=extra)
            assert answer.status == 201, answer
            again = hanji.ask("POST", "/docs/c/", body=b"%d" % i, extra=extra)
            assert again.body == answer.body and again.header("Location") == answer.header("Location")
    finally:
        slow.set()
    bodies = [int(body) for body, in hanji.rows("SELECT body FROM doc ORDER BY key")]
    assert bodies == list(range(12))


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "image/png"])
def test_large_ones(make_hanji, kind):
    """Beyond what is kept in memory."""
    hanji = make_hanji(max_body="20m")
    for size in (100000, 3 << 20):
        body = b'"' + b"x" * size + b'"'
        extra = {"HTTP_IDEMPOTENCY_KEY": "large%d" % size, "CONTENT_TYPE": kind}
        first = hanji.ask("POST", "/docs/c/", body=body, extra=extra)
        again = hanji.ask("POST", "/docs/c/", body=body, extra=extra)
        assert first.status == 201 and again.body == first.body and again.header("Idempotency-Replayed") == "true"
        assert hanji.ask("POST", "/docs/c/", body=body[:-2] + b'y"', extra=extra).status == 422
        assert hanji.ask("GET", first.header("Location")).status == 200
    assert hanji.status()["documents"] == 2


def test_after_a_restart(make_hanji):
    hanji = make_hanji()
    extra = {"HTTP_IDEMPOTENCY_KEY": "k", "CONTENT_TYPE": "text/plain"}
    first = hanji.ask("POST", "/docs/c/", body=b"x", extra=extra)
    hanji.stop()
    hanji.start()
    again = hanji.ask("POST", "/docs/c/", body=b"x", extra=extra)
    assert (again.body, again.header("Location")) == (first.body, first.header("Location"))
    assert again.header("Idempotency-Replayed") == "true"


def test_a_record_can_be_read_and_removed(site, box):
    first = post(site, box, "create", "people" + box)
    key = first.json()["key"]
    row, = site.hanji.rows("SELECT status, seq, length(scope), abs(created - strftime('%s', 'now')) < 60 FROM idempotency"
                           " WHERE key = ?", key)
    assert row == (201, int(first.header("ETag").strip('"')), 32, 1)
    site.hanji.command("sql", "DELETE FROM idempotency WHERE key = '%s'" % key)
    again = post(site, box, "create", "people" + box)
    assert again.status == 201 and again.json()["key"] != key


def test_below_a_mount(make_site):
    site = make_site(mount="/h")
    first = post(site, "/docs/c/", "create", "k")
    same(first, post(site, "/docs/c/", "create", "k"))
    assert first.header("Location").startswith("/h/docs/c/")
