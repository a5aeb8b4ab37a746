"""Waiting for changes: /changes with `wait`, and as a stream of events, through nginx."""
import base64
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import fastcgi
import harness
import http1
from test_login import add, ask as as_person, login
from sse import Parser, Watcher, open_stream, read_until
from test_crowd import check_fast, delays
from test_changes import etag, now, page


class Poll:
    """One request with `wait` on a connection of its own, in a thread."""

    def __init__(self, site, query, **more):
        self.site, self.query, self.more, self.answer = site, query, more, None
        self.start = time.monotonic()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        link = self.site.link()
        try:
            self.answer = link.request("GET", self.site.mount + "/changes" + self.query, None,
                                       self.site.headers(None, self.more.get("token", True)))
        finally:
            link.close()
            self.took = time.monotonic() - self.start

    def done(self, timeout=10):
        self.thread.join(timeout)
        assert self.answer is not None, "no answer"
        return self.answer


def waiting(hanji, polls=0, streams=0):
    """Waits until so many watch."""
    def there():
        got = hanji.status()["watchers"]
        return (got["polls"], got["streams"]) == (polls, streams)
    harness.wait_for("%d polls, %d streams" % (polls, streams), there, 10, 0.01)


@pytest.fixture(scope="module")
def own(base, certificate):
    """A site whose streams show life twice a second."""
    site = harness.Site(harness.unused(base / "watch"), certificate, heartbeat="500ms", public="pub/", basic="/changes")
    site.start()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def nobody_left(own):
    """Each test lets go of its watchers, and then the server has none."""
    yield
    waiting(own.hanji)


# one answer

@pytest.mark.smoke
def test_a_poll_is_answered_when_something_comes(own, box):
    poll = Poll(own, "?since=now&wait=20&prefix=" + box[6:])
    waiting(own.hanji, polls=1)
    seq = etag(own.put(box + "a", b"x"))
    got = poll.done().json()
    assert [one["seq"] for one in got["changes"]] == [seq] and got["next"] == seq
    assert poll.took < 10


def test_a_poll_is_answered_at_once_when_something_is_there(own, box):
    since = now(own)
    seq = etag(own.put(box + "a", b"x"))
    poll = Poll(own, "?since=%d&wait=20&prefix=%s" % (since, box[6:]))
    assert [one["seq"] for one in poll.done().json()["changes"]] == [seq] and poll.took < 5


def test_a_poll_is_answered_with_nothing_when_its_time_is_over(own, box):
    seq = etag(own.put(box + "a", b"x"))
    polls = [Poll(own, "?since=%d&wait=%d&prefix=none/" % (seq, wait)) for wait in (1, 2, 1)]
    assert [poll.done().json()["changes"] for poll in polls] == [[], [], []]
    for poll, wait in zip(polls, (1, 2, 1)):
        assert wait <= poll.took < wait + 1.5
        assert poll.answer.json()["next"] >= seq


def test_what_is_for_others_does_not_end_a_poll(own, box):
    poll = Poll(own, "?since=now&wait=20&prefix=%sb" % box[6:])
    waiting(own.hanji, polls=1)
    for name in ("a", "ab", "B"):
        own.put(box + name, b"x")
    own.put(box[:-1] + "b", b"x")
    assert poll.answer is None
    seq = etag(own.put(box + "b", b"x"))
    got = poll.done().json()
    assert [one["key"] for one in got["changes"]] == [box[6:] + "b"] and got["next"] >= seq


def test_a_poll_takes_only_so_many(own, box):
    """A batch is one burst: all of it is there when the poll looks."""
    poll = Poll(own, "?since=now&wait=20&limit=2&prefix=" + box[6:])
    waiting(own.hanji, polls=1)
    link = own.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    for i in range(5):
        link.execute("INSERT INTO doc (key, body) VALUES (?, 'x')", (box[6:] + str(i),))
    link.execute("COMMIT")
    link.close()
    got = poll.done().json()
    assert [one["key"][-1] for one in got["changes"]] == ["0", "1"] and got["next"] == got["changes"][1]["seq"]
    rest = page(own, "?since=%d&prefix=%s" % (got["next"], box[6:]))
    assert [one["key"][-1] for one in rest["changes"]] == ["2", "3", "4"]


def test_nothing_waits_for_no_entries(own):
    start = time.monotonic()
    assert page(own, "?since=now&limit=0&wait=20")["changes"] == []
    assert time.monotonic() - start < 5


def test_head_waits_too(own, box):
    answer = own.head("/changes?since=now&wait=1&prefix=" + box[6:])
    assert answer.status == 200 and answer.body == b"" and int(answer.header("Content-Length")) > 0


def test_polls_of_many_prefixes(own, box):
    polls = [Poll(own, "?since=now&wait=20&prefix=%s%d/" % (box[6:], i)) for i in range(20)]
    waiting(own.hanji, polls=20)
    for i in reversed(range(20)):
        own.put("%s%d/k" % (box, i), b"x")
    for i, poll in enumerate(polls):
        assert [one["key"] for one in poll.done().json()["changes"]] == ["%s%d/k" % (box[6:], i)]


def test_a_long_feed_that_is_for_others(own, box):
    """More than one round looks at: an empty answer still means that there is nothing."""
    since, key = now(own), box[6:]
    link = own.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    link.executemany("INSERT INTO doc (key, body) VALUES (?, '')", ((key + "o%d" % i,) for i in range(20000)))
    link.execute("INSERT INTO doc (key, body) VALUES (?, '')", (key + "mine",))
    link.execute("COMMIT")
    link.close()
    got = page(own, "?since=%d&prefix=%smine" % (since, key))
    assert [one["key"] for one in got["changes"]] == [key + "mine"]
    start = time.monotonic()
    got = page(own, "?since=%d&prefix=%snone" % (since, key))
    assert got["changes"] == [] and got["next"] >= since + 20001 and time.monotonic() - start < 5
    got = page(own, "?since=%d&wait=1&prefix=%snone" % (since, key))
    assert got["changes"] == [] and got["next"] >= since + 20001
    with Watcher(own, "?since=%d&prefix=%smine" % (since, key)) as watcher:
        assert watcher.wait_for(1)[0].data["key"] == key + "mine"


def test_those_who_look_through_a_long_feed_hold_nobody(own, box):
    """Requests that find nothing in many entries take turns; a stream gets its events meanwhile."""
    key = box[6:]
    link = own.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    link.executemany("INSERT INTO doc (key, body) VALUES (?, '')", ((key + "o%d" % i,) for i in range(50000)))
    link.execute("COMMIT")
    link.close()
    with Watcher(own, "?since=now&prefix=%smine" % key) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        crowd = [own.hanji.client(30) for _ in range(30)]
        for i, client in enumerate(crowd):
            client.send(fastcgi.request("GET", "/changes", own.hanji.token, query="since=%d&prefix=none/" % i))
        start = time.monotonic()
        for i in range(5):
            own.put(box + "mine", b"%d" % i)
            watcher.wait_for(i + 1)
        assert time.monotonic() - start < 5 * (5 if harness.sanitized() else 1)
        for client in crowd:
            answer = http1.parse_json(client.answer(timeout=60).body)
            assert answer["changes"] == [] and answer["next"] > 50000
            client.close()


# streams

@pytest.mark.smoke
def test_a_stream(own, box):
    key = box[6:]
    with Watcher(own, "?since=now&prefix=" + key) as watcher:
        assert watcher.status == 200 and watcher.header("Content-Type") == "text/event-stream"
        assert watcher.header("Cache-Control") == "no-cache" and "Accept" in watcher.header("Vary")
        assert watcher.header("Content-Length") is None
        watcher.wait(lambda one: one.parser.retry == 2000)
        first = etag(own.put(box + "a", b"x"))
        own.delete(box + "a")
        events = watcher.wait_for(2)
        assert [event.data for event in events] == [
            {"seq": first, "key": key + "a", "op": "put", "etag": '"%d"' % first},
            {"seq": first + 1, "key": key + "a", "op": "delete", "etag": None}]
        assert [event.id for event in events] == [first, first + 1]


def test_a_stream_begins_with_what_there_was(own, box):
    since = now(own)
    seqs = [etag(own.put(box + "%d" % i, b"x")) for i in range(5)]
    with Watcher(own, "?since=%d&prefix=%s" % (since, box[6:])) as watcher:
        watcher.wait_for(5)
        seqs.append(etag(own.put(box + "new", b"x")))
        watcher.wait_for(6)
        assert watcher.seqs == seqs


def test_a_stream_goes_on_from_the_last_event(own, box):
    """Last-Event-ID wins over since, also over now."""
    since = now(own)
    seqs = [etag(own.put(box + "%d" % i, b"x")) for i in range(6)]
    for query in ("?since=%d&" % since, "?since=now&", "?"):
        with Watcher(own, query + "prefix=" + box[6:], last=seqs[2]) as watcher:
            watcher.wait_for(3)
            assert watcher.seqs == seqs[3:]


def test_a_stream_from_now_says_where_that_is(own, box):
    """Whoever loses it before the first event comes back to where it began."""
    with Watcher(own, "?since=now&prefix=" + box[6:]) as watcher:
        watcher.wait(lambda one: one.parser.last is not None)
        last = watcher.parser.last
    seq = etag(own.put(box + "a", b"x"))
    with Watcher(own, "?since=now&prefix=" + box[6:], last=last) as watcher:
        watcher.wait_for(1)
        assert watcher.seqs == [seq]


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "99999999999999999999", "1 2", "7, 8"])
def test_a_last_event_id_that_was_never_sent(own, last):
    answer = own.get("/changes", {"Accept": "text/event-stream", "Last-Event-ID": last})
    assert answer.status == 400 and "Last-Event-ID" in answer.json()["detail"]


def test_a_last_event_id_from_elsewhere(own):
    answer = own.get("/changes", {"Accept": "text/event-stream", "Last-Event-ID": "123456789012"})
    assert answer.status == 410 and answer.header("Content-Type") == "application/problem+json"


def test_a_last_event_id_is_for_streams(own):
    assert own.get("/changes?limit=0", {"Last-Event-ID": "x"}).status == 200


@pytest.mark.parametrize("accept,stream", [
    ("text/event-stream", True), ("TEXT/Event-Stream", True), ("application/json, text/event-stream", True),
    ("text/event-stream;q=0.5, */*", True), ("text/event-stream; charset=utf-8", True),
    ("text/event-stream;q=0", False), ("text/event-stream; q=0.00, */*", False), ("text/event-streams", False), ("text/*", False),
    ("*/*", False), ("", False), ("application/json", False)])
def test_who_gets_a_stream(own, accept, stream):
    answer = own.head("/changes?since=now", {"Accept": accept})
    assert answer.status == 200
    assert (answer.header("Content-Type") == "text/event-stream") == stream


def test_signs_of_life(own, box):
    with Watcher(own, "?since=now&prefix=" + box[6:]) as watcher:
        watcher.wait(lambda one: one.parser.comments >= 3)
        assert not watcher.events


def test_signs_of_life_move_on_when_much_was_for_others(own, box):
    since = now(own)
    with Watcher(own, "?since=%d&prefix=none/" % since) as watcher:
        watcher.wait(lambda one: one.parser.comments >= 1)
        assert watcher.parser.last is None
        link = own.hanji.sqlite(readonly=False)
        link.execute("BEGIN IMMEDIATE")
        link.executemany("INSERT INTO doc (key, body) VALUES (?, '')", ((box[6:] + "o%d" % i,) for i in range(1500)))
        link.execute("COMMIT")
        link.close()
        watcher.wait(lambda one: one.parser.last is not None)
        assert watcher.parser.last >= since + 1500 and not watcher.events


def test_large_keys_and_strange_ones(own, box):
    """JSON in one line of UTF-8, whatever a person wrote into the file."""
    keys = [box[6:] + key for key in ("x" * 400, "ä\U0001f375", 'quote"', "tab\there", "line\nbreak\r", "back\\slash", "\u2028")]
    with Watcher(own, "?since=now&prefix=" + box[6:]) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        link = own.hanji.sqlite(readonly=False)
        for key in keys:
            link.execute("INSERT INTO doc (key, body) VALUES (?, '')", (key,))
        link.close()
        assert [event.data["key"] for event in watcher.wait_for(len(keys))] == keys


def test_rows_from_outside_reach_watchers(own, box):
    """Nobody tells the server: it asks while somebody watches."""
    with Watcher(own, "?since=now&prefix=" + box[6:]) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        poll = Poll(own, "?since=now&wait=20&prefix=" + box[6:])
        waiting(own.hanji, polls=1, streams=1)
        done = subprocess.run(["sqlite3", "-batch", "-cmd", ".timeout 5000", str(own.hanji.database)], timeout=10,
                              input="INSERT INTO doc (key, body) VALUES ('%sout', 'x');" % box[6:], text=True)
        start = time.monotonic()
        assert done.returncode == 0
        assert watcher.wait_for(1)[0].data["key"] == box[6:] + "out"
        assert poll.done().json()["changes"][0]["key"] == box[6:] + "out"
        assert time.monotonic() - start < 2


@pytest.mark.parametrize("scheme", ["http", "https", "h2", "h2c"])
def test_curl(own, box, scheme):
    """As a person would try it; each event comes when it happens."""
    url = own.url({"h2": "https"}.get(scheme, scheme)) + "/changes?since=now&prefix=" + box[6:]
    command = ["curl", "-sSN", "--cacert", str(own.nginx.certificate[0]), "-m", "20", "-H", "Accept: text/event-stream",
               "-H", "Authorization: Bearer " + own.token, url]
    command += {"http": ["--http1.1"], "https": ["--http1.1"], "h2": ["--http2"], "h2c": ["--http2-prior-knowledge"]}[scheme]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as curl:
        try:
            assert curl.stdout.readline().startswith(b"retry:")
            for i in range(3):
                seq = etag(own.put(box + "k", b"%d" % i))
                lines = iter(curl.stdout.readline, b"id: %d\n" % seq)
                assert not [line for line in lines if line.startswith(b"data:")]
                assert json.loads(curl.stdout.readline()[6:])["seq"] == seq
        finally:
            curl.terminate()


# who may

def test_a_revoked_token_ends_what_waits(own, box):
    token = own.hanji.new_token("short", read=[box[6:]])
    watcher = Watcher(own, "?since=now&prefix=" + box[6:], token=token)
    poll = Poll(own, "?since=now&wait=30&prefix=" + box[6:], token=token)
    stays = Poll(own, "?since=now&wait=30&prefix=" + box[6:])
    waiting(own.hanji, polls=2, streams=1)
    own.hanji.command("token", "revoke", "short")
    watcher.wait_end()
    assert poll.done().status == 401 and poll.took < 10
    waiting(own.hanji, polls=1)
    own.put(box + "secret", b"x")
    assert stays.done().status == 200
    assert not watcher.events and watcher.ended
    watcher.close()
    assert own.get("/changes?prefix=" + box[6:], {"Accept": "text/event-stream"}, token=token).status == 401


def test_a_token_that_a_person_deleted_sees_nothing_more(own, box):
    token = own.hanji.new_token("gone", read=[box[6:]])
    with Watcher(own, "?since=now&prefix=" + box[6:], token=token) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        link = own.hanji.sqlite(readonly=False)
        link.execute("DELETE FROM token WHERE name = 'gone'")
        link.close()
        own.put(box + "secret", b"x")
        watcher.wait_end()
        assert not watcher.events


def test_a_token_that_expires(own, box):
    token = own.hanji.new_token("brief", read=[box[6:]])
    link = own.hanji.sqlite(readonly=False)
    link.execute("UPDATE token SET expires = ? WHERE name = 'brief'", (int(time.time()) + 2,))
    link.close()
    with Watcher(own, "?since=now&prefix=" + box[6:], token=token) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        watcher.wait_end(6)


def test_a_person_watches(own, box):
    """With the session's cookie, as EventSource does; logging out ends it."""
    cookie = login(own.hanji, add(own.hanji, "watcher", read=[box[6:]]))
    headers = {"Accept": "text/event-stream", "Cookie": cookie}
    with Watcher(own, "?since=now&prefix=" + box[6:], token=None, headers={"Cookie": cookie}) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        seq = etag(own.put(box + "a", b"x"))
        watcher.wait_for(1)
        assert watcher.seqs == [seq]
        assert own.get("/changes?since=now", headers, token=None).status == 403
        assert as_person(own.hanji, "POST", "/auth/logout", cookie).status < 400
        watcher.wait_end()
    assert own.get("/changes?since=now&prefix=" + box[6:], headers, token=None).status == 401


def test_a_name_and_a_password_watch(own, box):
    """HTTP Basic is verified first, beside the loop; another password ends it."""
    name = add(own.hanji, "feedreader", read=[box[6:]])
    basic = "Basic " + base64.b64encode(("%s:correct horse" % name).encode()).decode()
    with Watcher(own, "?since=now&prefix=" + box[6:], token=None, headers={"Authorization": basic}) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        seq = etag(own.put(box + "a", b"x"))
        watcher.wait_for(1)
        assert watcher.seqs == [seq]
        own.hanji.command("user", "passwd", name, stdin="another horse\n")
        watcher.wait_end()


def test_public_prefixes_need_no_token(own):
    with Watcher(own, "?since=now&prefix=pub/", token=None) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        own.put("/docs/secret", b"x")
        seq = etag(own.put("/docs/pub/a", b"x"))
        watcher.wait_for(1)
        assert watcher.seqs == [seq]


# coming and going

def test_those_who_leave_are_forgotten(own, box):
    """At once: no descriptor, no watcher is left."""
    worker = own.hanji.worker()
    own.get("/changes?since=now")
    for turn in range(3):
        watchers = [Watcher(own, "?since=now&prefix=" + box[6:]) for _ in range(20)]
        polls = [own.link() for _ in range(20)]
        for link in polls:
            link.conn.request("GET", "/changes?since=now&wait=60&prefix=none/", headers=own.headers(None, True))
        waiting(own.hanji, polls=20, streams=20)
        if turn == 0:
            before = harness.descriptors(worker)
        for one in watchers + polls:
            one.close()
        waiting(own.hanji)
    assert harness.descriptors(worker) < before


def test_leaving_while_something_comes(own, box):
    """Straight at the socket, at any moment of a burst."""
    for turn in range(10):
        crowd = [open_stream(own.hanji, "since=0")[0] for _ in range(20)]
        for client in (own.hanji.client() for _ in range(20)):
            client.send(fastcgi.request("GET", "/changes", own.hanji.token, query="since=now&wait=60"))
            crowd.append(client)
        writer = threading.Thread(target=lambda: own.hanji.ask("PUT", box + "k", body=b"x"))
        writer.start()
        for client in crowd[turn % 3::2] + crowd[1 - turn % 3::2] if turn % 3 < 2 else crowd:
            client.close()
        writer.join()
        for client in crowd:
            client.close()
    waiting(own.hanji)


def test_a_flood_behind_a_stream(own):
    """What a peer sends while it watches is bounded; the connection goes, and the watcher with it."""
    for query, accept in (("since=now", "text/event-stream"), ("since=now&wait=60", "*/*")):
        with own.hanji.client() as client:
            client.send(fastcgi.request("GET", "/changes", own.hanji.token, query=query, extra={"HTTP_ACCEPT": accept}))
            waiting(own.hanji, polls=int("wait" in query), streams=int("wait" not in query))
            try:
                for _ in range(20):
                    client.send(fastcgi.request("GET", "/health") * 100)
            except fastcgi.Closed:
                pass
            assert client.closed()
        waiting(own.hanji)


def test_the_next_request_waits_for_the_poll_before_it(own, box):
    """Two on one connection: the second is answered behind the first."""
    with own.hanji.client() as client:
        client.send(fastcgi.request("GET", "/changes", own.hanji.token, query="since=now&wait=20&prefix=" + box[6:]))
        client.send(fastcgi.request("GET", "/health"))
        waiting(own.hanji, polls=1)
        assert client.silent(0.05)
        own.put(box + "a", b"x")
        assert b'"changes"' in client.answer().body
        assert client.answer().body == b'{"status":"ok"}\n'


def test_a_connection_that_ends_with_its_stream(own, box):
    """Without keep-alive the end of the stream is the end of the connection."""
    token = own.hanji.new_token("single", read=[box[6:]])
    with own.hanji.client() as client:
        client.send(fastcgi.request("GET", "/changes", token, query="prefix=" + box[6:], flags=0,
                                    extra={"HTTP_ACCEPT": "text/event-stream"}))
        waiting(own.hanji, streams=1)
        own.hanji.command("token", "revoke", "single")
        assert client.answer().status == 200 and client.closed()


def test_half_closed(own):
    """Who says that he sends no more has left, as nginx's other side has."""
    for query, accept in (("since=now", "text/event-stream"), ("since=now&wait=60", "*/*")):
        with own.hanji.client() as client:
            client.send(fastcgi.request("GET", "/changes", own.hanji.token, query=query, extra={"HTTP_ACCEPT": accept}))
            client.sock.shutdown(socket.SHUT_WR)
            assert client.closed()


def test_too_many(make_site):
    site = make_site(max_watchers=3)
    watchers = [Watcher(site, "?since=now") for _ in range(2)]
    poll = Poll(site, "?since=now&wait=20")
    waiting(site.hanji, polls=1, streams=2)
    for accept, query in (("text/event-stream", ""), ("*/*", "?since=now&wait=5")):
        answer = site.get("/changes" + query, {"Accept": accept})
        assert answer.status == 503 and int(answer.header("Retry-After")) > 0
    assert site.get("/changes?since=now").status == 200
    watchers.pop().close()
    waiting(site.hanji, polls=1, streams=1)
    with Watcher(site, "?since=now") as again:
        again.wait(lambda one: one.parser.retry)
    site.put("/docs/a", b"x")
    assert poll.done().status == 200
    watchers.pop().close()


def test_a_reader_that_stops_gets_all_later(own, box):
    """What it does not take is not kept for it: it is read from the file when it takes again."""
    since = now(own)
    client, _ = open_stream(own.hanji, "since=%d&prefix=%s" % (since, box[6:]))
    names = ["%04d%s" % (i, "n" * 300) for i in range(2000)]
    before = harness.resident_bytes(own.hanji.worker())
    link = own.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    link.executemany("INSERT INTO doc (key, body) VALUES (?, '')", ((box[6:] + name,) for name in names))
    link.execute("COMMIT")
    link.close()
    own.put(box + "z", b"x")
    with Watcher(own, "?since=%d&prefix=%sz" % (since, box[6:])) as other:
        other.wait_for(1)
    assert harness.sanitized() or harness.resident_bytes(own.hanji.worker()) - before < (4 << 20)
    parser = Parser()
    read_until(client, parser, lambda one: len(one.events) > 2000)
    assert [event.data["key"][len(box) - 6:] for event in parser.events] == names + ["z"]
    client.close()


@pytest.mark.alone
def test_a_crowd(make_hanji):
    """Two thousand watchers: a change reaches each once, others do not notice, little memory is needed, nothing is left."""
    hanji = make_hanji(max_connections=4000)
    hanji.ask("PUT", "/docs/k", body=b"x")
    before, memory, open_before = delays(hanji, path="/docs/k", token=hanji.token), harness.resident_bytes(hanji.worker()), \
        harness.descriptors(hanji.worker())
    streams = [open_stream(hanji, "since=now")[0] for _ in range(1000)]
    polls = [hanji.client() for _ in range(1000)]
    for client in polls:
        client.send(fastcgi.request("GET", "/changes", hanji.token, query="since=now&wait=60"))
    waiting(hanji, polls=1000, streams=1000)
    parsers = [Parser() for _ in streams]
    for parser, client in zip(parsers, streams):
        read_until(client, parser, lambda one: one.last is not None)
    check_fast(before, delays(hanji, path="/docs/k", token=hanji.token))
    assert harness.sanitized() or harness.resident_bytes(hanji.worker()) - memory < (4 << 20)
    writer = threading.Thread(target=lambda: [hanji.ask("PUT", "/docs/k", body=b"x") for _ in range(50)])
    writer.start()
    check_fast(before, delays(hanji, path="/docs/k", token=hanji.token))
    writer.join()
    for parser, client in zip(parsers, streams):
        read_until(client, parser, lambda one: len(one.events) >= 50)
        assert [event.data["seq"] for event in parser.events] == list(range(2, 52))
    for client in polls:
        assert http1.parse_json(client.answer().body)["changes"][0]["seq"] == 2
    assert harness.sanitized() or harness.resident_bytes(hanji.worker()) - memory < (6 << 20)
    for client in streams + polls:
        client.close()
    waiting(hanji)
    harness.wait_for("descriptors", lambda: harness.descriptors(hanji.worker()) <= open_before, 10, 0.02)


# while others write

@pytest.mark.parametrize("threads", [1, 3])
def test_every_watcher_sees_the_feed(make_site, threads):
    """Four writers and a person with a shell; streams that are cut and come back, and pollers: each sees all of the file's
    feed, in order, once."""
    site = make_site(threads=threads, heartbeat="200ms")
    stop, faults, keys = threading.Event(), [], ["k%d" % i for i in range(40)]

    def write(n):
        link = site.link()
        try:
            for i in range(150):
                answer = link.request("PUT", "/docs/" + keys[(i * 7 + n) % 40], b"x", site.headers(None, True))
                assert answer.status in (201, 204)
        except Exception as fault:      # noqa: BLE001 (told below)
            faults.append(fault)
        finally:
            link.close()

    def write_outside():
        link = site.hanji.sqlite(readonly=False)
        try:
            for i in range(60):
                link.execute("INSERT INTO doc (key, body) VALUES (?, 'x') ON CONFLICT (key) DO UPDATE SET body = 'y'",
                             (keys[i % 40],))
                if i % 5 == 0:
                    link.execute("DELETE FROM doc WHERE key = ?", (keys[(i + 3) % 40],))
                time.sleep(0.002)
        except Exception as fault:      # noqa: BLE001
            faults.append(fault)
        finally:
            link.close()

    def keep_streaming(out, cut):
        """A stream, lost again and again after some events."""
        last = 0
        while not (stop.is_set() and out and out[-1] >= goal[0]):
            with Watcher(site, "?since=0", last=last or None) as watcher:
                deadline = time.monotonic() + 10
                while time.monotonic() < deadline and (not cut or len(watcher.events) < cut):
                    if stop.is_set() and watcher.events and watcher.seqs[-1] >= goal[0]:
                        break
                    if stop.is_set() and out and out[-1] >= goal[0]:
                        break
                    time.sleep(0.002)
            out += watcher.seqs
            last = out[-1] if out else 0

    def keep_polling(out):
        link, at = site.link(), 0
        try:
            while not (stop.is_set() and at >= goal[0]):
                got = link.request("GET", "/changes?since=%d&wait=1&limit=7" % at, None, site.headers(None, True)).json()
                out += [one["seq"] for one in got["changes"]]
                at = got["next"]
        except Exception as fault:      # noqa: BLE001
            faults.append(fault)
        finally:
            link.close()

    goal, seen = [1 << 62], [[] for _ in range(6)]
    watchers = [threading.Thread(target=keep_streaming, args=(seen[i], cut)) for i, cut in enumerate((None, 3, 40))]
    watchers += [threading.Thread(target=keep_polling, args=(seen[i],)) for i in (3, 4, 5)]
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)] + [threading.Thread(target=write_outside)]
    for thread in watchers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    goal[0] = now(site)
    stop.set()
    for thread in watchers:
        thread.join(30)
        assert not thread.is_alive()
    assert not faults
    harness.wait_for("pruning", lambda: site.hanji.rows("SELECT count(*), count(DISTINCT key) FROM change")[0] == (40, 40))
    left = {row[0] for row in site.hanji.rows("SELECT seq FROM change")}
    for seqs in seen:
        assert seqs == sorted(set(seqs)), "a repeat, or not in order"
        assert left <= set(seqs) <= set(range(1, goal[0] + 1)), "something is missing"
    # whoever never fell behind the clean-up saw every single one
    assert seen[0] == list(range(1, goal[0] + 1))


# the end of the server

def test_sigterm_ends_what_waits(make_site):
    site = make_site(drain_timeout="20s")
    since = now(site)
    watcher, poll = Watcher(site, "?since=now"), Poll(site, "?since=now&wait=60")
    waiting(site.hanji, polls=1, streams=1)
    start = time.monotonic()
    site.hanji.stop()
    assert time.monotonic() - start < 15
    watcher.wait_end()
    assert watcher.ended and watcher.parser.retry == 1000
    assert poll.done().json() == {"changes": [], "next": since}
    watcher.close()
    site.hanji.start()


def test_a_restart_loses_no_watcher_its_place(make_site):
    site = make_site()
    watcher = Watcher(site, "?since=now")
    watcher.wait(lambda one: one.parser.last is not None)
    first = etag(site.put("/docs/a", b"x"))
    watcher.wait_for(1)
    site.hanji.stop()
    watcher.wait_end()
    site.hanji.start()
    second = etag(site.put("/docs/b", b"x"))
    with Watcher(site, "?since=now", last=watcher.parser.last) as again:
        again.wait_for(1)
        assert watcher.seqs + again.seqs == [first, second]
    watcher.close()


def test_a_hand_over_with_watchers(make_site):
    """The old worker ends its streams; whoever comes back finds the new one, and misses nothing."""
    site = make_site()
    watcher, poll = Watcher(site, "?since=now"), Poll(site, "?since=now&wait=60")
    waiting(site.hanji, polls=1, streams=1)
    old = site.hanji.worker()
    site.hanji.known_worker = None
    site.hanji.process.send_signal(signal.SIGUSR2)
    watcher.wait_end(20)
    assert poll.done(20).status == 200
    seq = etag(site.put("/docs/a", b"x"))
    with Watcher(site, "?since=now", last=watcher.parser.last) as again:
        again.wait_for(1)
        assert again.seqs == [seq]
    harness.wait_for("the old worker to leave", lambda: not harness.alive(old), 20)
    watcher.close()


def test_killed_with_watchers(make_site):
    """They see that it broke, and go on from where they were."""
    site = make_site()
    site.hanji.expect_new_worker()
    since = now(site)
    watcher, poll = Watcher(site, "?since=now"), Poll(site, "?since=%d&wait=60" % since)
    waiting(site.hanji, polls=1, streams=1)
    watcher.wait(lambda one: one.parser.last is not None)
    os.kill(site.hanji.worker(), signal.SIGKILL)
    watcher.thread.join(10)
    assert poll.done().status == 502
    site.hanji.wait_healthy()
    seq = etag(site.put("/docs/a", b"x"))
    assert [one["seq"] for one in page(site, "?since=%d" % since)["changes"]] == [seq]
    with Watcher(site, "?since=now", last=watcher.parser.last) as again:
        again.wait_for(1)
        assert again.seqs == [seq]
    watcher.close()


def test_counted(own, box):
    before = own.hanji.status()["watchers"]["events"]
    with Watcher(own, "?since=now&prefix=" + box[6:]) as watcher:
        watcher.wait(lambda one: one.parser.retry)
        own.put(box + "a", b"x")
        watcher.wait_for(1)
        text = own.get("/metrics").body.decode()
        assert re.search(r'^hanji_watchers\{kind="stream"\} 1$', text, re.M)
    assert own.hanji.status()["watchers"]["events"] == before + 1
