"""Deliveries to receivers that fail in every way there is: what is tried again, what waits, and what a person must decide."""
import base64
import hashlib
import hmac
import itertools
import json
import time

import nacl.signing
import pytest

import harness
import receiver
from outbox import QUICK, Outbox, secret_bytes

NAMES = itertools.count(1)


@pytest.fixture(scope="module")
def out(base):
    hanji = harness.Hanji(base / "courier-faults", **QUICK)
    hanji.env = {"http_proxy": "http://127.0.0.1:1/", "ALL_PROXY": "http://127.0.0.1:1/"}
    box = Outbox(hanji)
    yield box
    hanji.stop()


@pytest.fixture(scope="module")
def there():
    one = receiver.Receiver()
    yield one
    one.stop()


@pytest.fixture
def path():
    return "/p%d" % next(NAMES)


@pytest.fixture(autouse=True)
def alive(out):
    yield
    out.hanji.judge()


def line(out, there, path, *answers, flags=(), **more):
    """A line of the path's name, answered so."""
    return out.line(path[1:], there.script(path, *answers), *flags, **more)


def test_what_is_sent(out, there, path):
    secret = secret_bytes(out.hanji.command("line", "add", path[1:], there.script(path, 200), "--allow-private",
                                            "--secret", "new").stdout)
    message = out.send(path[1:], b'{"a": 1}')
    [request] = there.wait(path, 1)
    assert request.body == b'{"a": 1}'
    headers = request.headers
    assert headers["webhook-id"] == message and headers["content-type"] == "application/json"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 10
    assert headers["user-agent"].startswith("hanji-courier/") and "expect" not in headers
    v1, v1a = headers["webhook-signature"].split(" ")
    signed = ("%s.%s." % (message, headers["webhook-timestamp"])).encode() + request.body
    assert v1 == "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    [transport] = json.loads(out.hanji.ask("GET", "/keys").body)["transport"]
    assert v1a.startswith("v1a,")
    nacl.signing.VerifyKey(base64.b64decode(transport["key"])).verify(signed, base64.b64decode(v1a[4:]))
    out.wait_state(message, "delivered")
    assert out.attempts(message) == [(200, "delivered", "")]


def test_tried_again_until_it_gets_through(out, there, path):
    line(out, there, path, b"HTTP/1.1 200 OK\r\nX: 1\r\n", 500, 404, (502, {}, b"oh \x1b[1m no"), 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    requests = there.requests(path)
    assert {request.headers["webhook-id"] for request in requests} == {message} and len(requests) == 5
    assert out.outcomes(message) == ["cut", "error", "rejected", "error", "delivered"]
    assert out.attempts(message)[3] == (502, "error", "oh [1m no")
    assert out.state(message)[1] == 5


def test_parked_after_ten_tries_and_retried_by_a_person(out, there, path):
    line(out, there, path, *[500] * 10, 200)
    message, behind = out.send(path[1:]), out.send(path[1:], b"1")
    out.wait_state(message, "parked")
    assert len(there.requests(path)) == 10 and out.state(message) == ("parked", 10, "error")
    assert out.state(behind)[0] == "waiting"        # nothing passes it on a fifo line
    answer = out.hanji.ask("POST", "/sends/%s/%s/retry" % (path[1:], message))
    assert answer.status in (200, 202, 204), answer.body
    out.wait_state(behind, "delivered")
    assert there.bodies(path)[-2:] == [b"{}", b"1"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(out, there, path, status):
    there.script(path + "/other", 200)
    line(out, there, path, (status, {"Location": there.url(path + "/other")}, b""), 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    assert out.attempts(message)[0] == (status, "redirect", "Location: " + there.url(path + "/other"))
    assert not there.requests(path + "/other")


def test_gone_pauses_the_line(out, there, path):
    line(out, there, path, 410, 200)
    message, behind = out.send(path[1:]), out.send(path[1:])
    harness.wait_for("the pause", lambda: out.line_state(path[1:]) == ("paused", "gone"))
    assert len(there.requests(path)) == 1 and out.state(message)[0] == out.state(behind)[0] == "waiting"
    out.hanji.command("line", "resume", path[1:])
    out.wait_state(behind, "delivered")


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_holds_the_whole_line(out, there, path, status):
    line(out, there, path, (status, {"Retry-After": "1"}, b""), 200, flags=["--order", "any"])
    first = out.send(path[1:])
    there.wait(path, 1)
    out.wait_attempts(first, 1)
    out.send(path[1:], b"2")
    requests = there.wait(path, 3)
    assert min(request.at for request in requests[1:]) - requests[0].at >= 1.0
    out.wait_state(first, "delivered")
    assert out.outcomes(first) == ["throttled", "delivered"]


def test_retry_after_of_a_day_and_more(out, there, path):
    line(out, there, path, (503, {"Retry-After": "99999999"}, b""))
    message = out.send(path[1:])
    out.wait_attempts(message, 1)
    due, wait = out.one("SELECT o.due, l.wait_until FROM outbox AS o, line AS l WHERE o.id = ? AND l.id = o.line", message)
    assert 86390 < due / 1000 - time.time() < 86431 and 86390 < wait / 1000 - time.time() < 86431


@pytest.mark.parametrize("value", ["Wed, 01 Jan 2020 00:00:00 GMT", "-5", "soon", "inf", "1" * 20, ""])
def test_retry_after_that_means_nothing(out, there, path, value):
    line(out, there, path, (503, {"Retry-After": value}, b""), 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered", 2)


def test_a_kept_connection_that_ends_is_no_failure(out, there, path):
    """libcurl asks once more by itself on a new connection: the receiver may see the very same try twice."""
    line(out, there, path, 200, receiver.cut, 200)
    out.wait_state(out.send(path[1:]), "delivered")
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    assert out.outcomes(message) == ["delivered"]
    first, second = there.requests(path)[1:]
    assert first.headers == second.headers


def test_a_body_without_an_end(out, there, path):
    line(out, there, path, receiver.flood)
    message = out.send(path[1:])
    out.wait_state(message, "delivered", 3)
    [(status, outcome, detail)] = out.attempts(message)
    assert (status, outcome) == (200, "delivered") and len(detail) < 512 and detail.startswith("all work")


def test_answered_after_our_time_was_over(out, there, path):
    line(out, there, path, receiver.hang(0.9), 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    assert out.outcomes(message) == ["timeout", "delivered"]
    assert {request.headers["webhook-id"] for request in there.requests(path)} == {message}


@pytest.mark.parametrize("status, body, tries", [
    (400, b"", 3), (413, b"", 3), (422, b"not like this", 3), (413, b'{"code":"too_large"}', 1),
    (422, b'{"code":"id_conflict"}', 1), (422, b'{"code":"does_not_open"}', 1)])
def test_what_no_other_try_would_change_is_parked(out, there, path, status, body, tries):
    line(out, there, path, (status, {"Content-Type": "application/problem+json"}, body))
    message = out.send(path[1:])
    out.wait_state(message, "parked")
    assert len(there.requests(path)) == tries
    assert out.one("SELECT failing FROM line WHERE name = ?", path[1:])[0] is None      # the line is not at fault


def test_a_refused_connection_costs_no_tries(out, path):
    port = harness.free_port()
    out.line(path[1:], "http://127.0.0.1:%d/" % port)
    message, behind = out.send(path[1:]), out.send(path[1:])
    assert set(out.wait_attempts(message, 12)) == {"refused"}
    assert out.state(message)[:2] == ("waiting", 0) and out.attempts(behind) == []
    back = receiver.Receiver(port=port)
    out.wait_state(behind, "delivered")
    assert len(back.requests("/")) == 2 and out.state(message)[:2] == ("delivered", 1)
    back.stop()


def test_a_name_that_is_not_there_is_tried_again(out, path):
    out.line(path[1:], "http://nowhere.invalid/")
    message = out.send(path[1:])
    assert set(out.wait_attempts(message, 2)) == {"dns"}
    assert out.state(message)[:2] == ("waiting", 0)
    out.hanji.command("line", "remove", path[1:])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_a_private_address_is_not_connected_to(out, there, path, host):
    out.line(path[1:], there.url(path), private=False)
    out.write("UPDATE line SET url = ? WHERE name = ?", there.url(path, host), path[1:])
    before = there.connections
    message = out.send(path[1:])
    assert set(out.wait_attempts(message, 1)) == {"blocked_address"}
    assert there.connections == before and out.state(message)[1] == 0
    out.hanji.command("line", "pause", path[1:])


def test_what_is_no_answer(out, there, path):
    line(out, there, path, b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Len", b"\x16\x03\x01\x02\x00\r\n\r\n", 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    assert out.outcomes(message) == ["cut"] * 3 + ["delivered"]


def test_a_gap_is_filled(out, there, path):
    line(out, there, path, 200, 200, 200, (409, {}, b'{"code":"gap","expected":2}'), 200)
    out.send_many(path[1:], ["1", "2", "3"])
    there.wait(path, 3)
    out.wait_quiet(path[1:])
    out.send(path[1:], b"4")
    there.wait(path, 7)
    assert there.bodies(path) == [b"1", b"2", b"3", b"4", b"2", b"3", b"4"]


def test_a_gap_that_cannot_be(out, there, path):
    line(out, there, path, (409, {}, b'{"code":"gap","expected":7}'), (409, {}, b'{"code":"gap"}'), 200)
    message = out.send(path[1:])
    out.wait_state(message, "delivered")
    assert out.outcomes(message) == ["gap", "gap", "delivered"]


def test_nobody_can_open_it_any_more(out, there, path):
    line(out, there, path, 200)
    out.hanji.command("line", "pause", path[1:])
    message = out.send(path[1:])
    out.write("UPDATE outbox SET expires = 1000 WHERE id = ?", message)
    out.hanji.command("line", "resume", path[1:])
    out.wait_state(message, "unopenable")
    assert not there.requests(path) and out.attempts(message) == []


def test_one_that_hangs_does_not_hold_up_the_others(out, there, path):
    line(out, there, path, 200, 200, receiver.hang(0.9), 200, flags=["--order", "any"])
    ids = out.send_many(path[1:], map(str, range(40)))
    out.wait_quiet(path[1:])
    assert sorted(set(there.bodies(path))) == sorted(b"%d" % i for i in range(40)) and len(there.requests(path)) == 41
    assert sorted(len(out.attempts(one)) for one in ids) == [1] * 39 + [2]


def test_a_rate_is_kept(out, there, path):
    line(out, there, path, 200, flags=["--order", "any", "--rate", "20/s"])
    out.send_many(path[1:], map(str, range(12)))
    requests = there.wait(path, 12)
    assert 0.4 < requests[11].at - requests[0].at < 5
