"""Inboxes over HTTP: who may post, what is stored, what is read, and what is refused."""
import concurrent.futures
import json
import os
import signal
import time

import pytest

import harness
import webhook


@pytest.fixture(scope="module")
def keyed(site):
    """The site has keys of its own."""
    webhook.give_keys(site)
    return site


NAMES = iter("box%d" % number for number in range(1, 10000))


@pytest.fixture
def sender(keyed):
    """Somebody who shares a secret with a new inbox.  Each has an address of its own, so that none is throttled for another."""
    name, secret = next(NAMES), webhook.new_secret()
    answer = keyed.put("/inbox/" + name, json.dumps({"secret": secret}), {"Content-Type": "application/json"})
    assert answer.status == 201 and answer.json() == {"name": name}
    sender = webhook.Sender(keyed, name, secret)
    assert sender.send(b"first").status == 200      # gives back what tests before have failed
    keyed.hanji.command("sql", "DELETE FROM inbox WHERE source = (SELECT id FROM inbox_source WHERE name = '%s')" % name)
    sender.name = name
    return sender


def messages(sender, query=""):
    answer = sender.site.get(sender.path + query)
    assert answer.status == 200
    return answer.json()["messages"]


def refused(answer, status, code):
    assert (answer.status, answer.json().get("code")) == (status, code)
    assert answer.header("Content-Type") == "application/problem+json"


# what is stored

def test_a_message_is_stored_as_it_came(sender):
    before = int(time.time())
    answer = sender.send(b'{"a": 1}', id_="msg_a")
    assert answer.status == 200 and answer.json() == {"ok": 1}
    [one] = messages(sender, "?include=body")
    assert before <= one.pop("received") and before <= one.pop("sent") and one.pop("n") > 0
    assert one == {"id": "msg_a", "sender": None, "line": None, "seq": None, "type": "application/json", "size": 8,
                   "body": {"a": 1}}


@pytest.mark.parametrize("body", [b"", b"\0", b"a\0b", b"\xff\xfe", bytes(range(256)), b'{"a":1', "grüße".encode(), b"x" * (290 << 10)],
                         ids=range(8))
@pytest.mark.parametrize("kind", ["application/json", "text/plain; charset=utf-8", "application/octet-stream"])
def test_every_byte_comes_back(sender, body, kind):
    assert sender.send(body, kind=kind).status == 200
    [one] = messages(sender)
    answer = sender.site.get("%s/%d" % (sender.path, one["n"]))
    assert answer.status == 200 and answer.body == body
    assert answer.header("Content-Type") == kind == one["type"] and one["size"] == len(body)


def test_a_body_that_does_not_stay_in_memory(make_site):
    site = make_site(body_in_memory="4k")
    webhook.give_keys(site)
    secret = site.hanji.command("inbox", "add", "large", "--secret", "new").stdout.strip()
    body = os.urandom(300 << 10)
    assert webhook.Sender(site, "large", secret).send(body).status == 200
    assert site.get("/inbox/large/1").body == body


def test_without_a_content_type(sender):
    wanted = webhook.headers(sender.secret, b"x")
    del wanted["Content-Type"]
    assert sender.site.http("POST", sender.path, b"x", wanted, token=None).status == 200
    assert messages(sender)[0]["type"] == "application/octet-stream"


def test_what_came_cannot_act_as_the_site(sender):
    assert sender.send(b"<script>alert(1)</script>", kind="text/html").status == 200
    answer = sender.site.get("%s/%d" % (sender.path, messages(sender)[0]["n"]))
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Content-Security-Policy").startswith("sandbox;")


# once

def test_the_same_again_is_stored_once(sender):
    assert sender.send(b"one", id_="msg_a").json() == {"ok": 1}
    assert sender.send(b"one", id_="msg_a").json() == {"ok": 1, "again": True}
    assert len(messages(sender)) == 1


def test_the_same_in_a_later_try_is_known(sender):
    assert sender.send(b"one", id_="msg_a", at=int(time.time()) - 200).status == 200
    assert sender.send(b"one", id_="msg_a").json()["again"]


def test_an_id_with_other_bytes_is_a_conflict(sender):
    assert sender.send(b"one", id_="msg_a").status == 200
    refused(sender.send(b"two", id_="msg_a"), 422, "id_conflict")
    assert len(messages(sender)) == 1


def test_a_message_that_was_deleted_does_not_come_back(sender):
    assert sender.send(b"one", id_="msg_a").status == 200
    sender.site.hanji.command("sql", "DELETE FROM inbox")
    assert sender.send(b"one", id_="msg_a").json()["again"]
    assert messages(sender) == []


def test_many_at_once_are_stored_once(sender):
    wanted = webhook.headers(sender.secret, b"one")

    def once(_):
        link = sender.site.link()
        try:
            return link.request("POST", sender.path, b"one", wanted)
        finally:
            link.close()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(once, range(48)))
    assert {answer.status for answer in answers} == {200}
    assert len([answer for answer in answers if not answer.json().get("again")]) == 1
    assert len(messages(sender)) == 1


def test_several_threads_and_senders(make_site):
    """Each message comes twice at once, by different connections."""
    site = make_site(threads=3)
    webhook.give_keys(site)
    secrets = {name: site.hanji.command("inbox", "add", name, "--secret", "new").stdout.strip() for name in ("one", "two")}

    def send(number):
        name = ("one", "two")[number % 2]
        link = site.link()
        try:
            return [webhook.Sender(site, name, secrets[name]).send(b"%d" % number, id_="msg_%d" % (number // 4), link=link).status
                    for _ in range(2)]
        finally:
            link.close()
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(send, range(80)))
    for name in ("one", "two"):     # of each id two bodies came: one was stored, the other is a conflict
        assert len(site.get("/inbox/%s?limit=1000" % name).json()["messages"]) == 20
    assert sorted(answers) == [[200, 200]] * 40 + [[422, 422]] * 40


# who may not

def test_another_secret(sender):
    other = webhook.Sender(sender.site, sender.name, webhook.new_secret())
    answer = other.send(b"one")
    refused(answer, 401, "signature")
    assert answer.header("WWW-Authenticate") == "Webhook" and messages(sender) == []


@pytest.mark.parametrize("off", [-301, 301, -10**9, 10**9])
def test_a_time_that_is_off(sender, off):
    refused(sender.send(b"one", at=int(time.time()) + off + (off > 0) * 5), 401, "timestamp")
    assert messages(sender) == []


@pytest.mark.parametrize("off", [-290, 290])
def test_a_time_that_is_not_far_off(sender, off):
    assert sender.send(b"one", at=int(time.time()) + off).status == 200


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_is_missing(sender, name):
    wanted = webhook.headers(sender.secret, b"one")
    del wanted[name]
    refused(sender.site.http("POST", sender.path, b"one", wanted, token=None), 400, "malformed")
    assert messages(sender) == []


@pytest.mark.parametrize("at", ["0", "-5", "1.5", "abc", "01", "1 7", "1e9", "9" * 13, "17_00"])
def test_a_time_that_is_none(sender, at):
    refused(sender.send(b"one", at=at), 400, "malformed")


@pytest.mark.parametrize("id_", ["a.b", "x" * 257, "a b"])
def test_an_id_that_is_none(sender, id_):
    refused(sender.send(b"one", id_=id_), 400, "malformed")


@pytest.mark.parametrize("signature", ["v1", "v1,", ",", "v1,AAAA", "v2,%s", "v1a,%s", "V1,%s", "%s"])
def test_a_signature_that_is_none(sender, signature):
    right = webhook.sign(sender.secret, "msg_a", int(time.time()), b"one").partition(",")[2]
    answer = sender.send(b"one", id_="msg_a", signature=signature.replace("%s", right))
    assert answer.status in (400, 401) and messages(sender) == []


def test_one_right_entry_among_others_is_enough(sender):
    at = int(time.time())
    right = webhook.sign(sender.secret, "msg_a", at, b"one")
    wrong = webhook.sign(webhook.new_secret(), "msg_a", at, b"one")
    assert sender.send(b"one", id_="msg_a", at=at, signature="%s v9,abc %s" % (wrong, right)).status == 200


@pytest.mark.parametrize("change", ["id", "time", "body"])
def test_what_is_signed_cannot_be_changed(sender, change):
    wanted, body = webhook.headers(sender.secret, b"one"), b"one"
    if change == "id":
        wanted["webhook-id"] += "x"
    elif change == "time":
        wanted["webhook-timestamp"] = str(int(wanted["webhook-timestamp"]) - 1)
    else:
        body = b"onf"
    refused(sender.site.http("POST", sender.path, body, wanted, token=None), 401, "signature")


def test_a_token_does_not_stand_in_for_a_signature(sender):
    refused(sender.site.http("POST", sender.path, b"x", {**webhook.headers(webhook.new_secret(), b"x")}), 401, "signature")


def test_a_message_that_is_too_large(make_site):
    site = make_site()
    webhook.give_keys(site)
    sender = webhook.Sender(site, "large", site.hanji.command("inbox", "add", "large", "--secret", "new").stdout.strip())
    assert sender.send(bytes(512 << 10)).status == 200
    refused(sender.send(bytes((512 << 10) + 1)), 413, "too_large")


def test_an_inbox_that_is_not_there(keyed):
    assert webhook.Sender(keyed, "nowhere", webhook.new_secret()).send().status == 404
    assert keyed.http("POST", "/inbox/Not-A-Name", b"", token=None).status == 404


def test_who_fails_often_waits(make_site):
    site = make_site()
    webhook.give_keys(site)
    secret = site.hanji.command("inbox", "add", "guarded", "--secret", "new").stdout.strip()
    wrong = webhook.Sender(site, "guarded", webhook.new_secret())
    answers = [wrong.send() for _ in range(60)]
    refused(answers[-1], 429, "throttled")
    assert int(answers[-1].header("Retry-After")) > 0
    assert {answer.status for answer in answers[:30]} == {401}
    # One a second is let through, and one that is right gives all back.
    right = webhook.Sender(site, "guarded", secret)
    harness.wait_for("a message to be let through", lambda: right.send().status == 200, timeout=5, pause=0.05)
    assert wrong.send().status == 401


def test_what_came_is_counted(sender):
    def count():
        text = sender.site.get("/metrics").body.decode()
        return [int(text.partition('hanji_inbox_total{result="%s"} ' % result)[2].split()[0]) for result in ("stored", "duplicate", "refused")]
    before = count()
    for body in (b"one", b"one", b"two"):
        sender.send(body, id_="msg_a")
    assert [now - then for now, then in zip(count(), before)] == [1, 1, 1]


def test_refusals_are_logged(sender):
    mark = sender.site.hanji.mark()
    webhook.Sender(sender.site, sender.name, webhook.new_secret()).send()
    line = next(line for line in sender.site.hanji.log_since(mark).splitlines() if "a message was refused" in line)
    assert 'inbox="%s"' % sender.name in line and 'reason="signature"' in line and 'address="127.0.0.1"' in line


# closing and opening

def test_a_closed_inbox(sender):
    assert sender.site.http("POST", sender.path + "/close").status == 204
    refused(sender.send(b"one"), 410, "closed")
    assert sender.site.http("POST", sender.path + "/open").status == 204
    assert sender.send(b"one").status == 200


def test_what_is_not_there_cannot_be_closed(keyed):
    assert keyed.http("POST", "/inbox/nowhere/close").status == 404 and keyed.http("POST", "/inbox/nowhere/open").status == 404


def test_a_removed_inbox_and_its_name(sender):
    assert sender.send(b"one", id_="msg_a").status == 200
    assert sender.site.delete(sender.path).status == 204
    assert sender.send(b"one").status == 404 and sender.site.get(sender.path).status == 404
    assert sender.site.delete(sender.path).status == 404
    answer = sender.site.put(sender.path, json.dumps({"secret": sender.secret}), {"Content-Type": "application/json"})
    assert answer.status == 201 and messages(sender) == []
    assert sender.send(b"one", id_="msg_a").json() == {"ok": 1}


# settings

def put(site, name, value):
    return site.put("/inbox/" + name, json.dumps(value), {"Content-Type": "application/json"})


def test_a_new_secret_is_told_once(keyed):
    name = next(NAMES)
    secret = put(keyed, name, {"secret": "new"}).json()["secret"]
    assert webhook.Sender(keyed, name, secret).send().status == 200
    answer = put(keyed, name, {"start_any": True})
    assert answer.status == 200 and answer.json() == {"name": name}
    assert webhook.Sender(keyed, name, secret).send().status == 200      # it stays
    [one] = [one for one in keyed.get("/inbox/?limit=1000").json()["inboxes"] if one["name"] == name]
    assert one["secret"] is True and one["start_any"] is True and one["state"] == "open" and one["senders"] == []


def test_a_secret_does_not_stand_in_the_file(keyed):
    name, secret = next(NAMES), webhook.new_secret()
    assert put(keyed, name, {"secret": secret}).status == 201
    import base64
    raw = base64.b64decode(secret.removeprefix("whsec_"))
    for path in (keyed.hanji.database, str(keyed.hanji.database) + "-wal"):
        data = open(path, "rb").read()
        assert raw not in data and secret.encode() not in data


@pytest.mark.parametrize("value", [
    {}, [], 1, {"secret": None}, {"secret": "whsec_AAAA"}, {"secret": "whsec_" + 200 * "A"}, {"secret": 1}, {"secret": "NEW"},
    {"from": []}, {"from": {}}, {"from": [1]}, {"from": [{}]}, {"from": [{"hanji": "card/1"}]}, {"secret": "new", "app": "x"},
    {"secret": "new", "event": "x"}, {"secret": "new", "app": "../x", "event": "y"}, {"secret": "new", "start_any": 1},
    {"secret": "new", "colour": "red"}])
def test_settings_that_are_none(keyed, value):
    name = next(NAMES)
    assert put(keyed, name, value).status == 422
    assert keyed.get("/inbox/" + name).status == 404


def test_settings_that_are_named_twice(keyed):
    body = b'{"secret":"new","secret":"whsec_%s"}' % (b"A" * 44)
    assert keyed.put("/inbox/x", body, {"Content-Type": "application/json"}).status == 422


def test_settings_that_are_no_json(keyed):
    assert keyed.put("/inbox/x", b"{", {"Content-Type": "application/json"}).status == 400
    assert keyed.put("/inbox/x", b"{}", {"Content-Type": "text/plain"}).status == 415


def test_settings_without_keys_of_this_machine(make_site):
    site = make_site()
    answer = put(site, "x", {"secret": "new"})
    assert answer.status == 503 and "hanji key new" in answer.json()["detail"]


# reading

def test_pages_of_messages(sender):
    for number in range(5):
        assert sender.send(b"%d" % number, kind="text/plain").status == 200
    seen, path = [], sender.path + "?limit=2&include=body"
    while path:
        answer = sender.site.get(path)
        seen += [one["text"] for one in answer.json()["messages"]]
        link = answer.header("Link")
        assert (link is None) == (answer.json()["next"] is None)
        path = link and link[1:].partition(">")[0]
    assert seen == list("01234")


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?limit=1001", "?include=all", "?after=1&after=2"])
def test_parameters_that_are_malformed(sender, query):
    assert sender.site.get(sender.path + query).status == 400


def test_the_list_of_inboxes(keyed, sender):
    names, after = [], ""
    while after is not None:
        answer = keyed.get("/inbox/?limit=2" + (after and "&after=" + after)).json()
        names += [one["name"] for one in answer["inboxes"]]
        after = answer["next"]
    assert sender.name in names and names == sorted(names)
    assert keyed.head("/inbox/").status == 200 and keyed.get("/inbox/?after=../x").status == 400


def test_the_head_of_a_message(sender):
    assert sender.send(b"hello", kind="text/plain").status == 200
    answer = sender.site.head("%s/%d" % (sender.path, messages(sender)[0]["n"]))
    assert answer.status == 200 and answer.body == b"" and answer.header("Content-Length") == "5"


@pytest.mark.parametrize("path", ["/0", "/999999999", "/-1", "/x", "/1/2", "/1x"])
def test_a_message_that_is_not_there(sender, path):
    assert sender.site.get(sender.path + path).status == 404


def test_methods(sender):
    for method, path in [("PATCH", ""), ("PUT", "/1"), ("POST", "/1"), ("GET", "/close"), ("DELETE", "/open"), ("DELETE", "/1")]:
        answer = sender.site.http(method, sender.path + path, b"", {"Content-Type": "application/json"})
        assert answer.status == 405 and answer.header("Allow"), (method, path)
    assert sender.site.head(sender.path).status == 200


def test_rights(sender):
    site, name = sender.site, sender.name
    assert sender.send(b"one").status == 200
    number = messages(sender)[0]["n"]
    reads = site.hanji.new_token("reads-" + name, read=["/inbox/" + name])
    lists = site.hanji.new_token("lists-" + name, read=["/inbox/"])
    writes = site.hanji.new_token("writes-" + name, write=["/inbox/"])
    get = lambda path, token: site.get(path, token=token).status
    assert [get(sender.path, token) for token in (None, reads, lists, writes)] == [401, 200, 200, 403]
    assert [get("%s/%d" % (sender.path, number), token) for token in (None, reads, lists, writes)] == [401, 200, 200, 403]
    assert [get("/inbox/", token) for token in (None, reads, lists, writes)] == [401, 403, 200, 403]
    for method, path, body in [("PUT", "", b'{"secret":"new"}'), ("DELETE", "", b""), ("POST", "/close", b""), ("POST", "/open", b"")]:
        for token, status in [(None, 401), (reads, 403), (writes, 403)]:
            answer = site.http(method, sender.path + path, body, {"Content-Type": "application/json"}, token=token)
            assert answer.status == status, (method, path)
    assert sender.send(b"two").status == 200


# crashes

def test_what_was_answered_is_there_once_after_kill_9(make_site):
    site = make_site()
    webhook.give_keys(site)
    secret = site.hanji.command("inbox", "add", "orders", "--secret", "new").stdout.strip()
    sender, answered, unsure = webhook.Sender(site, "orders", secret), set(), set()
    site.hanji.expect_new_worker()
    for attempt in range(3):
        worker = site.hanji.worker()
        for number in range(20):
            body = b"%d.%d" % (attempt, number)
            if number == 10:
                os.kill(worker, signal.SIGKILL)
            try:
                answer = sender.send(body, id_="msg_" + body.decode().replace(".", "_"), kind="text/plain")
                (answered if answer.status == 200 else unsure).add(body.decode())
            except OSError:
                unsure.add(body.decode())
        site.hanji.wait_healthy()
    for name in sorted(unsure):
        answer = sender.send(name.encode(), id_="msg_" + name.replace(".", "_"), kind="text/plain")
        assert answer.status == 200
    stored = [one["text"] for one in messages(sender, "?include=body&limit=1000")]
    assert len(stored) == len(set(stored)) == 60 and set(stored) == answered | unsure
