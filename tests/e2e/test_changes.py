"""GET /changes: the feed page by page, from any number, of any prefix, for whoever may read it."""
import threading
import urllib.parse

import pytest

import harness

LAST = "9223372036854775807"


def page(site, query="", **more):
    answer = site.get("/changes" + query, **more)
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/json"
    assert answer.header("Cache-Control") == "no-cache"
    return answer.json()


def now(site):
    return page(site, "?since=now")["next"]


def follow(site, query, since):
    """All entries behind `since`, page by page, as a client would take them: until a page is empty."""
    out = []
    while True:
        got = page(site, "%s&since=%d" % (query, since))
        assert got["next"] >= since
        assert all(since < one["seq"] <= got["next"] for one in got["changes"])
        if not got["changes"]:
            return out, got["next"]
        out, since = out + got["changes"], got["next"]


def etag(answer):
    return int(answer.header("ETag").strip('"'))


@pytest.mark.smoke
def test_puts_and_deletes_in_order(site, box):
    since, key = now(site), box[6:]
    first = etag(site.put(box + "a", b"1"))
    second = etag(site.put(box + "b", b"1"))
    third = etag(site.put(box + "a", b"2"))
    site.delete(box + "b")
    got = page(site, "?since=%d&prefix=%s" % (since, key))
    assert got["changes"] == [
        {"seq": first, "key": key + "a", "op": "put", "etag": '"%d"' % first},
        {"seq": second, "key": key + "b", "op": "put", "etag": '"%d"' % second},
        {"seq": third, "key": key + "a", "op": "put", "etag": '"%d"' % third},
        {"seq": third + 1, "key": key + "b", "op": "delete", "etag": None}]
    assert got["next"] >= third + 1
    assert page(site, "?since=%d&prefix=%s" % (got["next"], key))["changes"] == []


def test_from_the_beginning_when_nothing_is_said(make_site):
    site = make_site()
    assert page(site) == {"changes": [], "next": 0}
    site.put("/docs/a", b"1")
    assert page(site) == page(site, "?since=0") == {
        "changes": [{"seq": 1, "key": "a", "op": "put", "etag": '"1"'}], "next": 1}


def test_from_now(site, box):
    site.put(box + "a", b"1")
    got = page(site, "?since=now")
    assert got["changes"] == []
    seq = etag(site.put(box + "b", b"1"))
    assert [one["seq"] for one in page(site, "?since=%d" % got["next"])["changes"]] == [seq]


def test_pages_of_every_size(site, box):
    since, key = now(site), box[6:]
    seqs = [etag(site.put(box + "%d" % i, b"x")) for i in range(23)]
    site.put(box[:-1] + "x/other", b"x")
    for limit in (1, 2, 7, 22, 23, 24, 1000):
        out, _ = follow(site, "?limit=%d&prefix=%s" % (limit, key), since)
        assert [one["seq"] for one in out] == seqs, limit
        assert len(page(site, "?limit=%d&prefix=%s&since=%d" % (limit, key, since))["changes"]) == min(limit, 23)


def test_next_goes_past_what_is_for_others(site, box):
    since = now(site)
    seq = etag(site.put(box + "a", b"1"))
    got = page(site, "?since=%d&prefix=none-of-these/" % since)
    assert got["changes"] == [] and got["next"] >= seq


def test_a_limit_of_nothing(site, box):
    since = now(site)
    site.put(box + "a", b"1")
    assert page(site, "?since=%d&limit=0" % since) == {"changes": [], "next": since}


def test_a_prefix_is_a_beginning_of_text(site, box):
    since, key = now(site), box[6:]
    for name in ("a", "ab", "a/b", "b", "A", "ä", "äb"):
        site.put(box + urllib.parse.quote(name), b"x")

    def keys(prefix):
        return [one["key"][len(key):] for one in page(site, "?since=%d&prefix=%s" % (since, prefix))["changes"]]
    assert keys(key + "a") == ["a", "ab", "a/b"]
    assert keys(key + "a/") == ["a/b"]
    assert keys(key + "%C3%A4") == ["ä", "äb"]
    assert keys(key + "none") == []
    assert keys(key[:-1] + "%2F") == ["a", "ab", "a/b", "b", "A", "ä", "äb"]


def test_head(site):
    answer = site.head("/changes?since=0&limit=3")
    assert answer.status == 200 and answer.body == b""
    assert int(answer.header("Content-Length")) == len(site.get("/changes?since=0&limit=3").body)


def test_it_differs_by_accept(site):
    assert "Accept" in site.get("/changes?limit=0").header("Vary")


WRONG = {
    "since": ["", "-1", "+1", "1.0", "x", "0x10", "NOW", "now+", "1+1", "1%00", "%FF", "9" * 19, "1" * 20,
              "18446744073709551616", "1&since=1", "now&since=now"],
    "limit": ["", "-1", "1001", "x", "1e2", "99999999999999999999", "4294967297", "1&limit=1", "%", "1%20"],
    "wait": ["", "-1", "61", "x", "1.5", "1s", "99999999999999999999", "4294967297", "1&wait=1"],
    "prefix": ["/", "a//b", "../a", "a/../b", "./", "%00", "%0A", "%FF", "%C3", "a%5Cb", "x" * 513, "a&prefix=a", "%7F"],
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_malformed(site, name, accept):
    for value in WRONG[name]:
        answer = site.get("/changes?%s=%s" % (name, value), {"Accept": accept})
        assert answer.status == 400 and name in answer.json()["detail"], (value, answer)


def test_well_formed_after_all(site):
    for query in ("since=0000000000000000000", "since=00", "limit=0001", "wait=00", "prefix=", "prefix=.", "prefix=a/..",
                  "prefix=...", "prefix=" + "x" * 512, "nothing=known", "prefix=a%20b", "prefix=a+b", "Since=x",
                  "limit=1000&wait=0"):
        assert site.get("/changes?" + query).status == 200, query


def test_ahead_of_the_last_change(site):
    for since in (now(site) + 1000000, LAST):
        answer = site.get("/changes?since=%s" % since)
        assert answer.status == 410 and "since=" in answer.json()["detail"]
        assert site.head("/changes?since=%s" % since).status == 410


def test_behind_the_horizon(make_site):
    """As after a restore: numbers from before it are of another life of the file."""
    site = make_site()
    for i in range(3):
        site.put("/docs/%d" % i, b"x")
    link = site.hanji.sqlite(readonly=False)
    link.execute("INSERT INTO meta (name, value) VALUES ('horizon', 100)")
    link.execute("UPDATE sqlite_sequence SET seq = 100 WHERE name = 'change'")
    link.close()
    for since in (0, 1, 3, 99, 101):
        answer = site.get("/changes?since=%d" % since)
        assert answer.status == 410 and "since=100" in answer.json()["detail"], since
    assert page(site, "?since=100") == {"changes": [], "next": 100} == page(site, "?since=now")
    site.put("/docs/new", b"x")
    assert [one["seq"] for one in page(site, "?since=100")["changes"]] == [101]


def test_pruned_entries_are_left_out(make_site):
    """The last one of each document stays; the clean-up begins after a second of quiet."""
    site = make_site()
    for i in range(50):
        site.put("/docs/a%d" % (i % 5), b"x")
    site.delete("/docs/a0")
    harness.wait_for("pruning", lambda: site.hanji.rows("SELECT count(*) FROM change")[0][0] == 5)
    out, last = follow(site, "?limit=2", 0)
    assert [(one["key"], one["seq"]) for one in out] == [("a1", 47), ("a2", 48), ("a3", 49), ("a4", 50), ("a0", 51)]
    assert last == 51


# who may

@pytest.fixture(scope="module")
def tokens(site):
    make = site.hanji.new_token
    return {"docs": make("feed-docs", read=["/docs/"]), "box": make("feed-box", read=["feedbox/"]),
            "one": make("feed-one", read=["feedbox/one"]), "status": make("feed-status", read=["/status"]),
            "writer": make("feed-writer", write=["/docs/"])}


@pytest.mark.parametrize("who,prefix,status", [
    ("docs", "", 200), ("docs", "feedbox/", 200),
    ("box", "feedbox/", 200), ("box", "feedbox/a", 200), ("box", "feedbox/one/", 200), ("box", "pub/", 200),
    ("box", "", 403), ("box", "feedbox", 403), ("box", "feedbo", 403), ("box", "feedboxes/", 403), ("box", "other/", 403),
    ("one", "feedbox/one/", 200), ("one", "feedbox/one", 403), ("one", "feedbox/", 403), ("one", "", 403),
    ("status", "", 403), ("status", "feedbox/", 403), ("writer", "feedbox/", 403), ("writer", "", 403),
    (None, "", 401), (None, "feedbox/", 401), (None, "pub", 401), (None, "pub/", 200), (None, "pub/x", 200)])
def test_who_may(site, tokens, who, prefix, status):
    for accept in ("*/*", "text/event-stream"):
        answer = site.head("/changes?since=now&prefix=" + prefix, {"Accept": accept}, token=tokens.get(who))
        assert answer.status == status
    assert site.get("/changes?since=now&prefix=" + prefix, token=tokens.get(who)).status == status


def test_a_bad_token(site):
    for prefix in ("", "pub/"):
        answer = site.get("/changes?prefix=" + prefix, token="hanji_" + "A" * 43)
        assert answer.status == 401 and "invalid_token" in answer.header("WWW-Authenticate")


def test_what_one_may_not_read_is_not_shown(site, tokens):
    since = now(site)
    for key in ("feedbox/one", "feedbox/onelike", "feedbox/one/a", "feedboxes/x", "secret"):
        site.put("/docs/" + key, b"x")
    got = page(site, "?since=%d&prefix=feedbox/" % since, token=tokens["box"])
    assert [one["key"] for one in got["changes"]] == ["feedbox/one", "feedbox/onelike", "feedbox/one/a"]
    got = page(site, "?since=%d&prefix=feedbox/one/" % since, token=tokens["one"])
    assert [one["key"] for one in got["changes"]] == ["feedbox/one/a"]


# while others write

def test_nothing_is_missed_under_writers(site, box):
    """Four writers, one poller: what the poller saw is what was acknowledged, each once, in order."""
    since, key, acknowledged, faults = now(site), box[6:], [], []

    def write(n):
        link = site.link()
        try:
            for i in range(100):
                answer = link.request("PUT", "%s%sw%d-%d" % (site.mount, box, n, i % 7), b"x", site.headers(None, True))
                acknowledged.append(etag(answer))
        except Exception as fault:      # noqa: BLE001 (told below)
            faults.append(fault)
        finally:
            link.close()
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    seen, at = [], since
    while any(writer.is_alive() for writer in writers):
        more, at = follow(site, "?limit=5&prefix=" + key, at)
        seen += more
    for writer in writers:
        writer.join()
    seen += follow(site, "?limit=5&prefix=" + key, at)[0]
    seqs = [one["seq"] for one in seen]
    assert not faults and seqs == sorted(set(seqs)) and set(seqs) == set(acknowledged)


def test_rows_from_outside(site, box):
    since, key = now(site), box[6:]
    link = site.hanji.sqlite(readonly=False)
    link.execute("INSERT INTO doc (key, body) VALUES (?, 'x')", (key + "a",))
    link.execute("UPDATE doc SET key = ? WHERE key = ?", (key + "b", key + "a"))
    link.execute("DELETE FROM doc WHERE key = ?", (key + "b",))
    link.close()
    got = page(site, "?since=%d&prefix=%s" % (since, key))["changes"]
    assert [(one["key"][len(key):], one["op"]) for one in got] == [("a", "put"), ("a", "delete"), ("b", "put"), ("b", "delete")]


def test_below_a_mount(make_site):
    site = make_site(mount="/h")
    site.put("/docs/a", b"x")
    assert [one["key"] for one in page(site)["changes"]] == ["a"]
