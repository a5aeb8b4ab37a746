"""Lines over HTTP: making, setting and removing them; sealed ones, whose messages are nowhere in plain text."""
import base64
import concurrent.futures
import json
import os
import re

import pytest

import harness
from test_batch import refused
from test_documents import noise
from test_sends import JSON, NOWHERE, TEXT, make_line, messages, post, stored

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def name(box):
    return box[6:-1] + ".set"


def put(site, name, **settings):
    return site.put("/sends/" + name, json.dumps(settings).encode(), JSON)


def told(site, name):
    return site.get("/sends/" + name).json()["line"]


@pytest.mark.smoke
def test_a_line(site, name):
    answer = put(site, name, url=NOWHERE)
    assert answer.status == 201 and answer.json() == {"line": name}
    line = told(site, name)
    assert line.pop("created") is not None
    assert line == {"line": name, "url": NOWHERE, "order": "fifo", "rate": None, "state": "open", "reason": None, "keys": 0, "secret": False,
                    "allow_private": False, "ca": False, "seq": 0, "waiting": 0, "parked": 0, "due": None, "failing": None}


def test_what_is_not_given_stays(site, name):
    put(site, name, url=NOWHERE, order="any", rate="10/s", allow_private=True, secret=SECRET,
        ca="-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n")
    first = told(site, name)
    assert (first["order"], first["rate"], first["allow_private"], first["secret"], first["ca"]) == ("any", 10, True, True, True)
    assert put(site, name).status == 200
    assert told(site, name) == first
    assert put(site, name, rate=None, secret=None, ca=None, allow_private=False, order="fifo").status == 200
    assert told(site, name) == {**first, "order": "fifo", "rate": None, "allow_private": False, "secret": False, "ca": False}


def test_a_secret_that_is_made_is_told_once(site, name):
    answer = put(site, name, url=NOWHERE, secret="new")
    secret = answer.json()["secret"]
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", secret) and answer.header("Cache-Control") == "no-store"
    assert secret.encode() not in site.get("/sends/" + name).body
    assert secret.encode() not in site.get("/sends/").body


def test_a_secret_is_hidden_in_the_file(site, name):
    put(site, name, url=NOWHERE, secret=SECRET)
    hidden = site.hanji.rows("SELECT secret FROM line WHERE name = ?", name)[0][0]
    assert base64.b64decode(SECRET[6:]) not in hidden and len(hidden) > 24


@pytest.mark.parametrize("settings,why", [
    ({}, "missing"),
    ({"order": "fifo"}, "missing"),
    ({"url": "ftp://example.org/"}, "https://"),
    ({"url": "http://127.0.0.1:9003\\@example.com/"}, "backslash"),
    ({"url": "http://2130706433/"}, "number"),
    ({"url": "http://me:pw@example.org/"}, "user"),
    ({"url": "http://example.org/\r\nX-Evil: 1"}, "visible"),
    ({"url": "http://example.org/\0"}, "visible"),
    ({"url": 7}, "string"),
    ({"url": NOWHERE, "order": "lifo"}, "order"),
    ({"url": NOWHERE, "rate": "fast"}, "rate"),
    ({"url": NOWHERE, "rate": -1}, "rate"),
    ({"url": NOWHERE, "rate": True}, "rate"),
    ({"url": NOWHERE, "secret": "whsec_c2hvcnQ="}, "secret"),
    ({"url": NOWHERE, "secret": "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="}, "secret"),
    ({"url": NOWHERE, "allow_private": "yes"}, "allow_private"),
    ({"url": NOWHERE, "ca": "none"}, "PEM"),
    ({"url": NOWHERE, "seal_to": {}}, "array"),
    ({"url": NOWHERE, "seal_to": [{}]}, "card"),
    ({"url": NOWHERE, "seal_to": ["x"]}, "card"),
    ({"url": NOWHERE, "seal_to": [7]}, "card"),
    ({"url": NOWHERE, "seal_to": [None]}, "card"),
    ({"url": NOWHERE, "insecure": True}, "insecure"),
], ids=lambda value: str(value)[:50])
def test_what_is_no_line(site, name, settings, why):
    assert why in refused(put(site, name, **settings), 422)
    assert site.get("/sends/" + name).status == 404


@pytest.mark.parametrize("body,type_,status", [(b"", "application/json", 400), (b"{", "application/json", 400), (b"[]", "application/json", 422),
                                               (b'{"url":"http://a/","url":"http://b/"}', "application/json", 422), (b"{}", "text/plain", 415)])
def test_what_are_no_settings(site, name, body, type_, status):
    assert site.put("/sends/" + name, body, {"Content-Type": type_}).status == status


@pytest.mark.parametrize("path", ["UP", ".a", "a" * 65, "a,b", "%C3%A4"])
def test_names_that_are_none(site, path):
    assert site.put("/sends/" + path, json.dumps({"url": NOWHERE}).encode(), JSON).status == 400


def test_a_line_is_paused_and_resumed(site, name):
    put(site, name, url=NOWHERE)
    assert site.http("POST", "/sends/%s/pause" % name).status == 204
    assert (told(site, name)["state"], told(site, name)["reason"]) == ("paused", "paused by an operator")
    assert put(site, name, order="any").status == 200
    assert told(site, name)["state"] == "paused"
    assert site.http("POST", "/sends/%s/resume" % name).status == 204
    assert (told(site, name)["state"], told(site, name)["reason"]) == ("open", None)


# ---- sealed ----


class Other:
    """Another hanji that only has keys, and never runs."""

    def __init__(self, base, name):
        self.hanji = harness.Hanji(base / name)
        self.hanji.command("key", "new")
        self.card = self.hanji.command("key", "export").stdout.strip()


@pytest.fixture(scope="module")
def other(base):
    return Other(base, "sends-other")


@pytest.fixture(scope="module")
def third(base):
    return Other(base, "sends-third")


@pytest.fixture(scope="module", autouse=True)
def own_keys(site):
    site.hanji.command("key", "new")


@pytest.fixture
def sealed(site, name, other):
    """The keys of this hanji may have been made a moment ago, and are looked for once a second."""
    harness.wait_for("the keys", lambda: put(site, name, url=NOWHERE, secret=SECRET).status < 300)
    return make_sealed(site, name, [other.card])


def make_sealed(site, name, cards):
    assert put(site, name, url=NOWHERE, seal_to=cards).status in (200, 201)
    assert site.http("POST", "/sends/%s/pause" % name).status == 204
    return name


def test_a_sealed_message(site, sealed):
    assert told(site, sealed)["keys"] == 1
    sent = post(site, sealed, b"\xff nobody reads this", {"Content-Type": "application/x-secret"})
    assert sent.status == 202, sent.body
    envelope = json.loads(stored(site, sent.json()["id"]))
    assert envelope["id"] == sent.json()["id"] and envelope["line"] == sealed and len(envelope["to"]) == 1
    message = messages(site, sealed)[0]
    assert message["sealed"] is True and message["size"] > 22


def test_sealed_to_two(site, name, other, third):
    make_sealed(site, name, [json.loads(other.card), third.card])
    sent = post(site, name, b"x", TEXT)
    assert len(json.loads(stored(site, sent.json()["id"]))["to"]) == 2


def test_keys_stay_until_they_are_said_anew(site, sealed):
    put(site, sealed, rate=5)
    assert told(site, sealed)["keys"] == 1
    put(site, sealed, seal_to=[])
    assert told(site, sealed)["keys"] == 0
    assert post(site, sealed, b"\xff", TEXT).status == 422


def test_the_second_of_a_sealed_message_is_the_first(site, sealed):
    """Sealing is random: what was given is compared."""
    first = post(site, sealed, b"x", {**TEXT, "Idempotency-Key": "s1"})
    again = post(site, sealed, b"x", {**TEXT, "Idempotency-Key": "s1"})
    assert first.status == 202 and again.body == first.body and again.header("Idempotency-Replayed") == "true"
    assert post(site, sealed, b"y", {**TEXT, "Idempotency-Key": "s1"}).status == 422
    assert len(messages(site, sealed)) == 1


def test_sealed_and_not_together(site, sealed, box):
    plain = make_line(site, box[6:-1] + ".plain")
    sends = post(site, sealed + "," + plain, b"tea", TEXT).json()["sends"]
    assert stored(site, sends[1]["id"]) == b"tea" and b"tea" not in stored(site, sends[0]["id"])


def test_sealed_in_a_batch(site, sealed, box):
    answer = site.http("POST", "/batch", json.dumps([
        {"op": "put", "key": box[6:] + "a", "text": "x"}, {"op": "send", "line": sealed, "base64": "/w=="},
        {"op": "send", "line": sealed, "body": {"tea": 1}}]).encode(), JSON)
    assert answer.status == 200, answer.body
    assert [one["seq"] for one in answer.json()["results"] if "seq" in one] == [1, 2]
    assert all(one["sealed"] for one in messages(site, sealed, "?limit=1000"))


def test_an_empty_message_is_sealed(site, sealed):
    assert post(site, sealed, b"", TEXT).status == 202


def test_the_largest_that_is_sealed(site, sealed):
    assert post(site, sealed, noise(262144), {"Content-Type": "application/octet-stream"}).status == 202
    assert post(site, sealed, noise(262145), {"Content-Type": "application/octet-stream"}).status == 413


def test_a_card_that_was_changed(site, name, other):
    card = json.loads(other.card)
    card["horizon"] += 1
    refused(put(site, name, url=NOWHERE, seal_to=[card]), 422)


def test_without_keys_of_its_own(make_site, other):
    site = make_site()
    assert put(site, "orders", url=NOWHERE, seal_to=[other.card]).status == 201
    answer = post(site, "orders", b"x", TEXT)
    assert answer.status == 503 and "hanji key new" in answer.json()["detail"]
    assert "hanji key new" in refused(put(site, "hooks", url=NOWHERE, secret="new"), 422)
    assert messages(site, "orders") == []


def bytes_on_disk(*folders):
    """Each file below the folders, with its bytes."""
    for folder in folders:
        for place, _, files in os.walk(folder):
            for one in files:
                path = os.path.join(place, one)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        yield path, file.read()


@pytest.mark.parametrize("size", [1000, 200000])
def test_what_is_sealed_is_nowhere_in_plain_text(make_site, other, size):
    """Not in the file, its log, a spooled body, nginx's folders or a log; also while the server still runs."""
    site = make_site(body_in_memory="4k")
    site.hanji.command("key", "new")
    harness.wait_for("the keys", lambda: put(site, "orders", url=NOWHERE, secret="new").status < 300)
    make_sealed(site, "orders", [other.card])
    marker = b"not-for-%d-everybody" % size
    secret = (marker + noise(64, marker).hex().encode() + b"\n") * (size // 150 + 1)
    for i in range(3):
        assert post(site, "orders", secret, {**TEXT, "Idempotency-Key": "k%d" % i}).status == 202
    operations = [{"op": "send", "line": "orders", "text": secret.decode()}]
    assert site.http("POST", "/batch", json.dumps(operations).encode(), JSON).status == 200
    assert len(messages(site, "orders")) == 4
    searched = list(bytes_on_disk(site.hanji.base.parent))
    assert any(path.endswith("hanji.db-wal") for path, _ in searched) and len(searched) > 5
    for path, data in searched:
        assert marker not in data, path


def test_keys_that_change_while_others_send(site, sealed, other, third):
    """Each message is sealed to whom the line was sealed to when it got its number, or is told to come again."""
    cards = [[other.card], [third.card], [other.card, third.card]]
    post(site, sealed, b"x", TEXT)

    def send(_):
        link = site.link()
        answers = [link.request("POST", "/sends/" + sealed, b"x", site.headers(TEXT, True)).status for _ in range(25)]
        link.close()
        return answers
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(send, i) for i in range(4)]
        turns = 0
        while not all(one.done() for one in running):
            assert put(site, sealed, seal_to=cards[turns % 3]).status == 200
            turns += 1
        statuses = sum((one.result() for one in running), [])
    assert set(statuses) <= {202, 503} and 202 in statuses and turns > 1
    assert [one["seq"] for one in messages(site, sealed, "?limit=1000")] == list(range(1, statuses.count(202) + 2))
    assert all(json.loads(stored(site, one["id"]))["to"] for one in messages(site, sealed, "?limit=1000"))
