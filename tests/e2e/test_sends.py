"""Accepting messages: POST /sends/LINE and /sends/A,B, in a batch; what is told about them; and everything that is no message.

The lines here are paused, so nothing is delivered: see test_courier_*.py.
"""
import base64
import concurrent.futures
import json
import secrets
import os
import re

import pytest

import harness
from test_batch import refused
from test_documents import noise

JSON = {"Content-Type": "application/json"}
TEXT = {"Content-Type": "text/plain"}
NOWHERE = "http://192.0.2.1:9/in"
LIMIT = 262144


def make_line(site, name, **settings):
    """A line that holds what is sent on it."""
    answer = site.put("/sends/" + name, json.dumps({"url": NOWHERE, **settings}).encode(), JSON)
    assert answer.status in (200, 201), answer.body  # a fixture of a module may be made twice
    assert site.http("POST", "/sends/%s/pause" % name).status == 204
    return name


@pytest.fixture
def line(site, box):
    return make_line(site, box[6:-1] + ".line")


@pytest.fixture
def other_line(site, box):
    return make_line(site, box[6:-1] + ".other")


def post(site, name, body=b'{"order":42}', headers=JSON, **more):
    return site.http("POST", "/sends/" + name, body, headers, **more)


def messages(site, name, query=""):
    answer = site.get("/sends/" + name + query)
    assert answer.status == 200, answer.body
    return answer.json()["messages"]


def stored(site, message):
    """The bytes of a message in the file."""
    body = site.hanji.rows("SELECT b.body FROM outbox o JOIN outbox_body b ON b.id = o.body WHERE o.id = ?", message)[0][0]
    return body.encode() if isinstance(body, str) else body


# ---- one line ----


@pytest.mark.smoke
def test_a_message_is_queued(site, line):
    answer = post(site, line)
    assert answer.status == 202 and answer.header("Content-Type") == "application/json"
    sent = answer.json()
    assert re.fullmatch("msg_[0-9a-z]{26}", sent["id"])
    assert sent == {"id": sent["id"], "line": line, "seq": 1, "state": "waiting"}
    assert answer.header("Location") == "/sends/%s/%s" % (line, sent["id"])
    told = site.get(answer.header("Location")).json()
    assert told["attempts"] == [] and told["tries"] == 0 and told["type"] == "application/json" and told["size"] == 12
    assert stored(site, sent["id"]) == b'{"order":42}'


def test_numbers_follow_each_other(site, line, other_line):
    assert [post(site, line).json()["seq"] for _ in range(3)] == [1, 2, 3]
    assert post(site, other_line).json()["seq"] == 1
    assert post(site, line).json()["seq"] == 4


def test_numbers_have_no_gaps_when_many_send(site, line):
    def some(_):
        link = site.link()
        return [link.request("POST", "/sends/" + line, b"x", site.headers(TEXT, True)).json()["seq"] for _ in range(20)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sorted(sum(pool.map(some, range(8)), [])) == list(range(1, 161))


@pytest.mark.parametrize("body", [b"", "käse 🧀\n".encode(), b"a\0b", b'{"a":"\\ud800"}', b"x" * LIMIT], ids=lambda body: repr(body[:12]))
def test_what_is_sent_is_what_was_given(site, line, body):
    sent = post(site, line, body, {"Content-Type": "text/plain; charset=utf-8"}).json()
    assert stored(site, sent["id"]) == body
    assert messages(site, line)[0]["type"] == "text/plain; charset=utf-8"


def test_without_a_type_it_is_bytes(site, line):
    post(site, line, b"x", {})
    assert messages(site, line)[0]["type"] == "application/octet-stream"


@pytest.mark.parametrize("body", [b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\x80", noise(1000)], ids=lambda body: repr(body[:4]))
def test_what_is_no_text_needs_a_sealed_line(site, line, body):
    assert "UTF-8" in refused(post(site, line, body, TEXT), 422)
    assert messages(site, line) == []


def test_a_body_beyond_the_limit(site, line):
    told = refused(post(site, line, b"x" * (LIMIT + 1), TEXT), 413)
    assert "262144" in told and "base64" in told
    assert messages(site, line) == []


def test_a_body_beyond_what_nginx_lets_through(site, line):
    assert post(site, line, b"x" * ((1 << 20) + 1), TEXT).status == 413


@pytest.mark.parametrize("body", [b"", b"{", b"{} {}", b"\xff"])
def test_what_says_json_is_json(site, line, body):
    assert "JSON" in refused(post(site, line, body), 400)


@pytest.mark.parametrize("type_", ["text", "text/plain\x01", "text/" + 255 * "x", "text/\xe4"])
def test_a_type_that_is_none(site, line, type_):
    assert post(site, line, b"x", {"Content-Type": type_}).status == 400
    assert messages(site, line) == []


def test_no_such_line(site, box):
    assert "nothere" in refused(post(site, "nothere"), 404)


@pytest.mark.parametrize("name", ["UPPER", ".a", "-a", "a%20b", "a%0d%0aX-Evil:%201", "%C3%A4", "a" * 65, "a%2Cb%2C", ",", "a,,b", "a,", ",a"])
def test_what_is_no_name_of_a_line(site, name):
    assert post(site, name).status == (400 if "%0" in name else 404)


def test_a_paused_line_takes_messages(site, line):
    assert post(site, line).status == 202
    told = site.get("/sends/" + line).json()["line"]
    assert told["state"] == "paused" and told["waiting"] == 1 and told["due"] is None


# ---- several lines ----


def test_on_several_lines(site, line, other_line):
    answer = post(site, line + "," + other_line, b"tea", TEXT)
    assert answer.status == 202 and answer.header("Location") is None
    sends = answer.json()["sends"]
    assert [(one["line"], one["seq"], one["state"]) for one in sends] == [(line, 1, "waiting"), (other_line, 1, "waiting")]
    assert sends[0]["id"] != sends[1]["id"]
    for one in sends:
        assert stored(site, one["id"]) == b"tea"
    assert site.hanji.rows("SELECT count(DISTINCT body) FROM outbox WHERE id IN (?, ?)", *(one["id"] for one in sends)) == [(1,)]


def test_a_comma_may_be_escaped(site, line, other_line):
    assert post(site, line + "%2C" + other_line).status == 202


def test_all_lines_or_none(site, line):
    assert "nothere" in refused(post(site, line + ",nothere"), 404)
    assert messages(site, line) == []


def test_a_line_named_twice(site, line):
    assert "twice" in refused(post(site, line + "," + line), 400)


def test_at_most_a_hundred_lines(site):
    assert "100" in refused(post(site, ",".join("a%d" % i for i in range(101))), 400)


def test_the_answer_to_a_hundred_lines(site, box):
    names = ["%s.n%d" % (box[6:-1], i) for i in range(100)]
    for name in names:
        make_line(site, name)
    sends = post(site, ",".join(names)).json()["sends"]
    assert [one["line"] for one in sends] == names


# ---- rights ----


def test_nobody_sends(site, line):
    assert post(site, line, token=None).status == 401
    assert site.get("/sends/" + line, token=None).status == 401
    assert site.get("/sends/", token=None).status == 401


@pytest.fixture(scope="module")
def sender(site):
    return site.hanji.new_token("sender-" + secrets.token_hex(4), write=["/sends/allowed"], read=["/sends/allowed"])


@pytest.fixture(scope="module", autouse=True)
def lines_of_rights(site):
    make_line(site, "allowed")
    make_line(site, "forbidden")


def test_who_may_send_on_one_line(site, sender):
    assert post(site, "allowed", token=sender).status == 202
    assert post(site, "forbidden", token=sender).status == 403
    assert post(site, "allowed,forbidden", token=sender).status == 403
    assert post(site, "allowed2", token=sender).status == 403
    assert site.get("/sends/allowed", token=sender).status == 200
    assert site.get("/sends/forbidden", token=sender).status == 403
    assert site.get("/sends/", token=sender).status == 403


def test_who_may_only_read(site):
    reader = site.hanji.new_token("reader", read=["/sends/"])
    assert post(site, "allowed", token=reader).status == 403
    assert site.get("/sends/", token=reader).status == 200
    assert site.get("/sends/allowed", token=reader).status == 200


@pytest.mark.parametrize("method,path", [("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/retry"),
                                         ("POST", "/replay?from=1"), ("POST", "/msg_%026d/retry" % 0), ("POST", "/msg_%026d/skip" % 0)])
def test_lines_are_managed_by_who_may_do_everything(site, sender, method, path):
    answer = site.http(method, "/sends/allowed" + path, b"{}" if method == "PUT" else None, JSON, token=sender)
    assert answer.status == 403


def test_documents_rights_do_not_reach(site, line):
    token = site.hanji.new_token("onlydocs" + line, write=["/docs/"], read=["/docs/"])
    assert post(site, line, token=token).status == 403


# ---- sent twice ----


def test_the_second_is_the_first(site, line):
    first = post(site, line, headers={**JSON, "Idempotency-Key": "k1"})
    again = post(site, line, headers={**JSON, "Idempotency-Key": "k1"})
    assert again.status == 202 and again.body == first.body and again.header("Location") == first.header("Location")
    assert first.header("Idempotency-Replayed") is None and again.header("Idempotency-Replayed") == "true"
    assert len(messages(site, line)) == 1


def test_the_second_is_the_first_on_several_lines(site, line, other_line):
    both = line + "," + other_line
    first = post(site, both, headers={**JSON, "Idempotency-Key": "k2"})
    again = post(site, both, headers={**JSON, "Idempotency-Key": "k2"})
    assert again.body == first.body and again.header("Idempotency-Replayed") == "true"
    assert len(messages(site, line)) == len(messages(site, other_line)) == 1


@pytest.mark.parametrize("body,type_", [(b'{"order":43}', "application/json"), (b'{"order":42}', "text/plain")])
def test_a_key_that_was_used_for_something_else(site, line, body, type_):
    post(site, line, headers={**JSON, "Idempotency-Key": "k3"})
    assert post(site, line, body, {"Content-Type": type_, "Idempotency-Key": "k3"}).status == 422
    assert len(messages(site, line)) == 1


def test_a_malformed_key(site, line):
    assert post(site, line, headers={**JSON, "Idempotency-Key": "a b"}).status == 400


# ---- in a batch ----


def batch(site, *operations, **more):
    return site.http("POST", "/batch", json.dumps(operations).encode(), {**JSON, **more})


def test_a_message_in_the_transaction_of_a_document(site, box, line):
    answer = batch(site, {"op": "put", "key": box[6:] + "order", "body": {"n": 1}},
                   {"op": "send", "line": line, "body": {"n": 1}},
                   {"op": "send", "line": line, "text": "käse"},
                   {"op": "patch", "key": box[6:] + "order", "body": {"m": 2}},
                   {"op": "send", "line": line, "base64": base64.b64encode(b"x").decode(), "type": "a/b"})
    assert answer.status == 200, answer.body
    results = answer.json()["results"]
    assert [one["status"] for one in results] == [201, 202, 202, 200, 202]
    assert [(one["line"], one["seq"]) for one in results if one["status"] == 202] == [(line, 1), (line, 2), (line, 3)]
    assert stored(site, results[1]["id"]) == b'{"n": 1}'
    assert [one["type"] for one in messages(site, line)] == ["application/json", "text/plain; charset=utf-8", "a/b"]
    assert [one["id"] for one in messages(site, line)] == [results[i]["id"] for i in (1, 2, 4)]


def test_none_is_sent_when_a_document_fails(site, box, line):
    refused(batch(site, {"op": "send", "line": line, "text": "x"},
                  {"op": "put", "key": box[6:] + "a", "text": "x", "if_match": '"1"'}), 412, 1, box[6:] + "a")
    assert messages(site, line) == []


def test_nothing_is_written_when_a_message_fails(site, box, line):
    told = refused(batch(site, {"op": "put", "key": box[6:] + "a", "text": "x"}, {"op": "send", "line": "nothere", "text": "x"}), 422, 1)
    assert "nothere" in told
    told = refused(batch(site, {"op": "put", "key": box[6:] + "a", "text": "x"}, {"op": "send", "line": line, "base64": "/w=="}), 422, 1)
    assert "UTF-8" in told
    assert site.get(box + "a").status == 404 and messages(site, line) == []


def test_a_batch_sent_twice(site, box, line):
    operations = [{"op": "send", "line": line, "text": "x"}, {"op": "put", "key": box[6:] + "a", "text": "x"},
                  {"op": "send", "line": line, "text": "y"}]
    first = batch(site, *operations, **{"Idempotency-Key": "b1" + box})
    again = batch(site, *operations, **{"Idempotency-Key": "b1" + box})
    assert first.status == 200 and again.body == first.body and again.header("Idempotency-Replayed") == "true"
    assert len(messages(site, line)) == 2


@pytest.mark.parametrize("operation,status,why", [
    ({"op": "send", "text": "x"}, 400, "line"),
    ({"op": "send", "line": "UP", "text": "x"}, 400, "name"),
    ({"op": "send", "line": "", "text": "x"}, 400, "name"),
    ({"op": "send", "line": 7, "text": "x"}, 400, "string"),
    ({"op": "send", "line": "a" * 65, "text": "x"}, 400, "64"),
    ({"op": "send", "line": "a\r\nX: y", "text": "x"}, 400, "name"),
    ({"op": "send", "line": "allowed"}, 400, "body"),
    ({"op": "send", "line": "allowed", "text": "x", "body": 1}, 400, "only one"),
    ({"op": "send", "line": "allowed", "key": "a", "text": "x"}, 400, "key"),
    ({"op": "send", "line": "allowed", "text": "x", "if_match": "*"}, 400, "if_match"),
    ({"op": "send", "line": "allowed", "text": "{", "type": "application/json"}, 400, "JSON"),
    ({"op": "send", "line": "allowed", "text": "x", "type": "nothing"}, 400, "type"),
    ({"op": "send", "line": "allowed", "text": "x", "to": "me"}, 400, "to"),
    ({"op": "put", "line": "allowed", "key": "a", "text": "x"}, 400, "line"),
    ({"op": "send", "line": "allowed", "text": "x" * (LIMIT + 1)}, 422, "262144"),
], ids=lambda value: str(value)[:40])
def test_what_is_no_message_of_a_batch(site, operation, status, why):
    before = len(messages(site, "allowed"))
    assert why in refused(batch(site, {"op": "send", "line": "allowed", "text": "first"}, operation), status, 1)
    assert len(messages(site, "allowed")) == before


def test_a_batch_is_judged_by_its_lines(site, sender):
    def ask(*lines):
        return site.http("POST", "/batch", json.dumps([{"op": "send", "line": one, "text": "x"} for one in lines]).encode(), JSON, token=sender)
    assert ask("allowed").status == 200
    refused(ask("allowed", "forbidden"), 403, 1)


# ---- looking ----


def test_pages_of_messages(site, line):
    for i in range(5):
        post(site, line, b"%d" % i, TEXT)
    seen, after = [], "0"
    while after is not None:
        page = site.get("/sends/%s?limit=2&after=%s" % (line, after)).json()
        seen += [one["seq"] for one in page["messages"]]
        after = page["next"]
    assert seen == [1, 2, 3, 4, 5]
    assert site.get("/sends/%s?limit=0" % line).json()["messages"] == []


def test_messages_by_state(site, line):
    first, second = post(site, line).json()["id"], post(site, line).json()["id"]
    assert site.http("POST", "/sends/%s/%s/skip" % (line, first)).status == 204
    assert [one["id"] for one in messages(site, line, "?state=waiting")] == [second]
    assert [one["id"] for one in messages(site, line, "?state=skipped")] == [first]
    assert messages(site, line, "?state=parked") == messages(site, line, "?state=delivered") == messages(site, line, "?state=unopenable") == []


@pytest.mark.parametrize("query", ["?state=lost", "?state=", "?after=x", "?after=-1", "?after=99999999999999999999", "?limit=1001", "?limit=x",
                                   "?after=1&after=2"])
def test_parameters_that_are_none(site, query):
    status = site.get("/sends/allowed" + query).status
    assert status == (200 if query == "?state=" else 400)


def test_pages_of_lines(site, box):
    names = sorted("%s.%s" % (box[6:-1], one) for one in ("c", "a", "b"))
    for name in names:
        make_line(site, name)
    seen, after = [], ""
    while after is not None:
        page = site.get("/sends/?limit=2&after=" + after).json()
        seen += [one["line"] for one in page["lines"]]
        after = page["next"]
    assert seen == sorted(seen) and set(names) <= set(seen) and len(set(seen)) == len(seen)
    assert site.get("/sends/?after=A%20B").status == 400


def test_what_is_no_message(site, line, other_line):
    message = post(site, line).json()["id"]
    assert site.get("/sends/%s/%s" % (other_line, message)).status == 404
    assert site.get("/sends/%s/msg_%026d" % (line, 0)).status == 404
    assert site.get("/sends/%s/x" % line).status == 404
    assert site.get("/sends/nothere/%s" % message).status == 404
    assert site.get("/sends/%s/%s/retry" % (line, message)).status == 405
    assert site.get("/sends/%s/pause" % line).status == 405
    assert site.http("PATCH", "/sends/" + line, b"{}", JSON).status == 405
    assert site.http("POST", "/sends/", b"{}", JSON).status == 405


# ---- stuck messages ----


def test_a_message_is_skipped(site, line):
    message = post(site, line).json()["id"]
    path = "/sends/%s/%s" % (line, message)
    assert site.http("POST", path + "/skip").status == 204
    assert site.get(path).json()["state"] == "skipped"
    refused(site.http("POST", path + "/skip"), 409)
    refused(site.http("POST", path + "/retry"), 409)
    assert site.get("/sends/" + line).json()["line"]["waiting"] == 0


def test_a_message_is_tried_again(site, line):
    message = post(site, line).json()["id"]
    answer = site.http("POST", "/sends/%s/%s/retry" % (line, message))
    assert answer.status == 200 and answer.json() == {"messages": 1}
    assert site.http("POST", "/sends/%s/retry" % line).json() == {"messages": 0}    # none is parked


def become(hanji, message, state):
    """As if the courier had said so."""
    db = hanji.sqlite(readonly=False)
    db.execute("UPDATE outbox SET state = ?, ended = unixepoch() WHERE id = ?", (state, message))
    db.close()


def delivered(hanji, *ids):
    for one in ids:
        become(hanji, one, "delivered")


def test_what_was_delivered_is_sent_again(site, line):
    ids = [post(site, line).json()["id"] for _ in range(3)]
    delivered(site.hanji, *ids)
    assert site.http("POST", "/sends/%s/replay?from=2&to=3" % line).json() == {"messages": 2}
    assert [one["state"] for one in messages(site, line)] == ["delivered", "waiting", "waiting"]
    assert site.http("POST", "/sends/%s/replay?from=1" % line).json() == {"messages": 1}


def test_what_is_not_there_any_more_is_not_sent_again(site, line):
    ids = [post(site, line).json()["id"] for _ in range(3)]
    delivered(site.hanji, *ids)
    db = site.hanji.sqlite(readonly=False)
    with db:
        db.execute("DELETE FROM outbox WHERE id = ?", (ids[0],))
    db.close()
    assert "number 2" in refused(site.http("POST", "/sends/%s/replay?from=1&to=3" % line), 409)
    assert site.http("POST", "/sends/%s/replay?from=2&to=3" % line).json() == {"messages": 2}


@pytest.mark.parametrize("query", ["", "?from=0", "?from=x", "?to=1", "?from=2&to=1", "?from=1&to=x", "?from=1&from=2"])
def test_what_is_no_range(site, query):
    assert site.http("POST", "/sends/allowed/replay" + query).status == 400


@pytest.mark.parametrize("path", ["/pause", "/resume", "/retry", "/replay?from=1", "/msg_%026d/retry" % 0, "/msg_%026d/skip" % 0])
def test_of_no_line(site, path):
    assert site.http("POST", "/sends/nothere" + path).status == 404


def test_a_line_is_removed_with_its_messages(site, line):
    message = post(site, line).json()["id"]
    assert site.delete("/sends/" + line).status == 204
    assert site.get("/sends/" + line).status == 404
    assert site.get("/sends/%s/%s" % (line, message)).status == 404
    assert site.delete("/sends/" + line).status == 404
    assert post(site, line).status == 404
    make_line(site, line)
    assert messages(site, line) == []


def test_below_a_mount(make_site):
    site = make_site("/h")
    make_line(site, "orders")
    answer = post(site, "orders")
    assert answer.status == 202
    assert answer.header("Location") == "/h/sends/orders/" + answer.json()["id"]


def test_what_was_acknowledged_is_there_after_a_kill(make_hanji):
    hanji = make_hanji()
    body = json.dumps({"url": NOWHERE}).encode()
    assert hanji.ask("PUT", "/sends/orders", body=body, extra={"CONTENT_TYPE": "application/json"}).status == 201
    assert hanji.ask("POST", "/sends/orders", body=b"tea", extra={"CONTENT_TYPE": "text/plain"}).status == 202
    old = hanji.worker()
    hanji.expect_new_worker()
    os.kill(old, 9)
    harness.wait_for("another worker", lambda: hanji.worker() != old)
    hanji.wait_healthy()
    told = json.loads(hanji.ask("GET", "/sends/orders").body)
    assert [one["seq"] for one in told["messages"]] == [1]
    assert hanji.ask("POST", "/sends/orders", body=b"tea", extra={"CONTENT_TYPE": "text/plain"}).status == 202
