"""Lists with delimiter and include: folders at the cost of one entry, bodies, and pages of both."""
import base64
import json
import time
import urllib.parse

import pytest

from test_batch import JSON, key_of
from test_list import fill, link_next, listing, path_of

NAMES = ["a", "a/1", "a/2/x", "a/2/y", "a-", "a0", "b/1", "b/1/2/3", "c", "d/é", "d/e/f", "é/x", "~"]


def folders(site, path):
    """(keys, prefixes) of a page, without the collection."""
    page = listing(site, path)
    base = key_of(path.split("?")[0])
    assert all(name.startswith(base) for name in page["prefixes"])
    return [item["key"][len(base):] for item in page["items"]], [name[len(base):] for name in page["prefixes"]], page["next"]


@pytest.mark.smoke
def test_one_level(site, box):
    fill(site, box, NAMES)
    assert folders(site, box + "?delimiter=/") == (["a", "a-", "a0", "c", "~"], ["a/", "b/", "d/", "é/"], None)
    assert folders(site, box + "a/?delimiter=%2F") == (["1"], ["2/"], None)
    assert folders(site, box + "b/1/?delimiter=/") == ([], ["2/"], None)
    assert folders(site, box + "nothing/?delimiter=/") == ([], [], None)


def test_without_a_delimiter_there_are_none(site, box):
    assert set(listing(site, box)) == {"items", "next"}
    assert set(listing(site, box + "?delimiter=/")) == {"items", "prefixes", "next"}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 8, 9, 10])
def test_pages(site, box, limit):
    """Items and prefixes in one order, each once, whatever the page."""
    fill(site, box, NAMES)
    path, seen, pages = box + "?delimiter=/&limit=%d" % limit, [], 0
    while path:
        got = site.get(path)
        page = got.json()
        entries = sorted([item["key"] for item in page["items"]] + page["prefixes"], key=str.encode)
        assert len(entries) <= limit
        assert page["next"] is None or page["next"] == entries[-1] and len(entries) == limit
        seen += entries
        assert (link_next(got) is None) == (page["next"] is None)
        path = link_next(got) and path_of(site, link_next(got))
        assert path is None or "delimiter=/" in path
        pages += 1
    expected = sorted({"a", "a-", "a0", "c", "~", "a/", "b/", "d/", "é/"}, key=str.encode)
    assert [name[len(key_of(box)):] for name in seen] == expected
    assert pages == -(-9 // limit)


AFTERS = [("a", ["a-", "a/", "a0", "b/", "c", "d/", "~", "é/"]), ("a/", ["a0", "b/", "c", "d/", "~", "é/"]),
          ("a/1", ["a/", "a0", "b/", "c", "d/", "~", "é/"]), ("a/2/", ["a0", "b/", "c", "d/", "~", "é/"]),
          ("a/zzz", ["a0", "b/", "c", "d/", "~", "é/"]), ("b", ["b/", "c", "d/", "~", "é/"]), ("zz/", ["~", "é/"]), ("é/", [])]


@pytest.mark.parametrize("after,expected", AFTERS)
def test_after_may_be_a_key_or_a_prefix(site, box, after, expected):
    fill(site, box, NAMES)
    items, prefixes, _ = folders(site, box + "?delimiter=/&after=" + urllib.parse.quote(key_of(box) + after))
    if after == "a/2/":     # within a folder: what is left of it is told
        expected = ["a/"] + expected if "a/" in prefixes else expected
    assert sorted(items + prefixes, key=str.encode) == expected


@pytest.mark.parametrize("after", ["", "0", "zzzz", "zzzz/"])
def test_after_elsewhere(site, box, after):
    fill(site, box, ["a", "b/c"])
    items, prefixes, _ = folders(site, box + "?delimiter=/&after=" + after)
    assert (items, prefixes) == ((["a"], ["b/"]) if after < "t" else ([], []))


def test_after_the_collection_itself(site, box):
    fill(site, box, ["a", "b/c"])
    assert folders(site, box + "?delimiter=/&after=" + key_of(box))[:2] == (["a"], ["b/"])


def test_the_root(site, box):
    fill(site, box, ["a"])
    page = listing(site, "/docs/?delimiter=/&limit=1000")
    assert key_of(box) in page["prefixes"]
    assert all(name.count("/") == 1 and name.endswith("/") for name in page["prefixes"])
    assert all("/" not in item["key"] for item in page["items"])


def test_the_longest_keys(site, box):
    room = 512 - len(key_of(box))
    long = "x" * (room - 2) + "/y"
    fill(site, box, [long, "x" * (room - 2) + "0"])
    assert folders(site, box + "?delimiter=/")[:2] == (["x" * (room - 2) + "0"], ["x" * (room - 2) + "/"])
    assert folders(site, box + "?delimiter=/&limit=1&after=" + key_of(box) + "x" * (room - 2) + "/")[0] == ["x" * (room - 2) + "0"]


@pytest.mark.alone
def test_a_folder_costs_one_entry(make_hanji):
    """However many are in it."""
    hanji = make_hanji()
    link = hanji.sqlite(readonly=False)
    link.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199999)"
                 " INSERT INTO doc (key, body) SELECT printf('f%d/%05d', i / 20000, i % 20000), 'x' FROM n")
    link.close()
    hanji.ask("GET", "/docs/", query="delimiter=/")
    start = time.monotonic()
    for _ in range(20):
        page = json.loads(hanji.ask("GET", "/docs/", query="delimiter=/").body)
    took = time.monotonic() - start
    assert page["prefixes"] == ["f%d/" % i for i in range(10)] and page["next"] is None
    assert took < 1, "a scan of 200,000 keys would take longer"


@pytest.mark.parametrize("query", ["delimiter=", "delimiter=.", "delimiter=//", "delimiter=%00", "delimiter", "delimiter=/&delimiter=/",
                                   "include=", "include=bodies", "include=body,body", "include=body&include=body", "include=Body"])
def test_wrong_words(site, box, query):
    got = site.get(box + "?" + query)
    assert got.status == 400 and query[:7] in got.json()["detail"]


@pytest.mark.parametrize("query", ["%64elimiter=/", "d%65limiter=%2f"])
def test_names_are_decoded_too(site, box, query):
    fill(site, box, ["a/b"])
    assert listing(site, box + "?" + query)["prefixes"] == [key_of(box) + "a/"]
    assert site.get(box + "?%6Cimit=x").status == 400
    assert site.get(box + "?limit=1&%6Cimit=1").status == 400


# ---- bodies ----------------------------------------------------------------------------------------------------------


def test_bodies(site, box):
    site.put(box + "a", b'{ "n": 12345678901234567890 }', JSON)
    site.put(box + "b", b"text", {"Content-Type": "text/plain"})
    site.put(box + "c", b"\0\1", {"Content-Type": "a/b"})
    site.put(box + "d", b"", {"Content-Type": "text/plain"})
    got = site.get(box + "?include=body")
    plain = {item["key"]: item for item in listing(site, box)["items"]}
    items = got.json()["items"]
    assert items == [dict(plain[key_of(box) + "a"], body={"n": 12345678901234567890}), dict(plain[key_of(box) + "b"], text="text"),
                     dict(plain[key_of(box) + "c"], base64=base64.b64encode(b"\0\1").decode()), dict(plain[key_of(box) + "d"], text="")]
    assert b'{ "n": 12345678901234567890 }' in got.body


def test_bodies_and_folders(site, box):
    fill(site, box, ["a", "b/c", "d"])
    path, seen = box + "?delimiter=/&include=body&limit=1", []
    while path:
        got = site.get(path)
        seen += [item["text"] for item in got.json()["items"]] + got.json()["prefixes"]
        path = link_next(got) and path_of(site, link_next(got))
        assert path is None or "include=body" in path
    assert seen == ["x", key_of(box) + "b/", "x"]


def test_a_page_of_bodies_has_a_bound(make_hanji):
    hanji = make_hanji(max_body="20m")
    for name, size in [("a-large", (1 << 20) + 1)] + [("m%02d" % i, 1 << 20) for i in range(10)]:
        hanji.ask("PUT", "/docs/" + name, body=b"x" * size, extra={"CONTENT_TYPE": "text/plain"})
    after, sizes, seen = "", [], []
    while after is not None:
        page = json.loads(hanji.ask("GET", "/docs/", query="include=body&after=" + after).body)
        sizes.append(sum(len(item.get("text", "")) for item in page["items"]))
        seen += [(item["key"], item.get("omitted", False)) for item in page["items"]]
        after = page["next"]
    assert seen == [("a-large", True)] + [("m%02d" % i, False) for i in range(10)]
    assert sizes == [4 << 20, 4 << 20, 2 << 20]


def test_what_escapes_make_of_bodies_has_a_bound(make_hanji):
    """A control character takes six bytes of JSON."""
    hanji = make_hanji(max_body="20m")
    for i in range(6):
        hanji.ask("PUT", "/docs/c%d" % i, body=b"\1" * (1 << 20), extra={"CONTENT_TYPE": "text/plain"})
    page = hanji.ask("GET", "/docs/", query="include=body")
    keys = json.dumps({"keys": ["c%d" % i for i in range(6)]}).encode()
    snapshot = hanji.ask("POST", "/snapshot", body=keys, extra={"CONTENT_TYPE": "application/json"})
    assert len(page.body) < 14 << 20 and json.loads(page.body)["next"]
    assert len(snapshot.body) < 14 << 20 and json.loads(snapshot.body)["documents"][5]["omitted"]
