"""Listing a collection: order, pages, links, and parameters that are no parameters."""
import re
import time
import urllib.parse

import pytest


def key_of(box):
    return box[len("/docs/"):]


def fill(site, box, names, body=b"x", kind="text/plain"):
    for name in names:
        assert site.put(box + urllib.parse.quote(name), body, {"Content-Type": kind}).status == 201


def listing(site, path, **headers):
    got = site.get(path, headers)
    assert got.status == 200, got
    assert got.header("Content-Type").split(";")[0] == "application/json"
    assert got.header("Content-Length") == str(len(got.body)) or got.header("Content-Encoding")
    return got.json()


def walk(site, path, limit):
    """All keys page by page, following `next`."""
    keys, after, pages = [], None, 0
    while True:
        query = "?limit=%d" % limit + ("&after=" + urllib.parse.quote(after, safe="") if after is not None else "")
        page = listing(site, path + query)
        keys += [item["key"] for item in page["items"]]
        after, pages = page["next"], pages + 1
        assert len(page["items"]) <= limit
        if after is None:
            return keys, pages
        assert len(page["items"]) == limit
        assert pages < 1000


def test_items_say_what_a_read_says(site, box):
    before = int(time.time())
    site.put(box + "a", b"12345", {"Content-Type": "text/x-a; b=c"})
    page = listing(site, box)
    got = site.get(box + "a")
    assert set(page) == {"items", "next"} and page["next"] is None
    item, = page["items"]
    assert set(item) == {"key", "etag", "type", "size", "modified"}
    assert item["key"] == key_of(box) + "a"
    assert item["etag"] == got.header("ETag")
    assert (item["type"], item["size"]) == ("text/x-a; b=c", 5)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["modified"])
    when = time.strptime(item["modified"], "%Y-%m-%dT%H:%M:%SZ")
    assert before <= time.mktime(when) - time.timezone <= time.time()


def test_empty_collection(site, box):
    assert listing(site, box) == {"items": [], "next": None}


def test_order_is_by_bytes(site, box):
    names = ["b", "a", "B", "a/x", "a0", "a.b", "a-b", "a b", "ä", "\U0001f600", "z", "~", "%", "0"]
    fill(site, box, names)
    keys = [item["key"] for item in listing(site, box)["items"]]
    assert keys == sorted((key_of(box) + name for name in names), key=lambda key: key.encode())


def test_a_collection_holds_what_is_below_it_and_nothing_else(site, box):
    base = box.rstrip("/")
    for path in (base, base + "0", base + "-x", base + "/in", base + "/in/deeper", base + "~"):
        site.put(path, b"x")
    assert [item["key"] for item in listing(site, box)["items"]] == [key_of(box) + "in", key_of(box) + "in/deeper"]
    assert [item["key"] for item in listing(site, box + "in/")["items"]] == [key_of(box) + "in/deeper"]


def test_the_root_lists_everything(site, box):
    site.put(box + "a", b"x")
    keys, _ = walk(site, "/docs/", 1000)
    assert key_of(box) + "a" in keys
    assert keys == sorted(keys, key=str.encode) and len(keys) == len(set(keys))
    assert len(keys) == site.hanji.status()["documents"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 25, 26])
def test_pages_cover_all_once(site, box, limit):
    names = ["%02d" % i for i in range(25)]
    fill(site, box, names)
    keys, pages = walk(site, box, limit)
    assert keys == [key_of(box) + name for name in names]
    assert pages == -(-25 // limit)


def test_the_default_is_a_hundred(site, box):
    fill(site, box, ["%03d" % i for i in range(101)])
    page = listing(site, box)
    assert len(page["items"]) == 100 and page["next"] == key_of(box) + "099"
    assert len(listing(site, box + "?limit=1000")["items"]) == 101


def test_next_is_null_when_the_page_ends_with_the_last(site, box):
    fill(site, box, "abc")
    assert listing(site, box + "?limit=3")["next"] is None
    assert listing(site, box + "?limit=2")["next"] == key_of(box) + "b"


def test_limit_nought(site, box):
    fill(site, box, "abc")
    got = site.get(box + "?limit=0")
    assert got.status == 200 and got.json()["items"] == []


def test_after_need_not_exist(site, box):
    fill(site, box, "aceg")
    def after(key):
        return [item["key"][-1] for item in listing(site, box + "?after=" + urllib.parse.quote(key))["items"]]
    base = key_of(box)
    assert after(base + "b") == ["c", "e", "g"]
    assert after(base + "c") == ["e", "g"]
    assert after(base + "g") == []
    assert after(base + "zzz") == []
    assert after("zzzz") == []
    assert after("0") == ["a", "c", "e", "g"]


def test_a_page_does_not_lose_or_repeat_when_rows_come_and_go(site, box):
    fill(site, box, "bdfh")
    first = listing(site, box + "?limit=2")
    assert [item["key"][-1] for item in first["items"]] == ["b", "d"]
    site.delete(box + "d")
    site.put(box + "a", b"x")
    site.put(box + "e", b"x")
    second = listing(site, box + "?limit=10&after=" + first["next"])
    assert [item["key"][-1] for item in second["items"]] == ["e", "f", "h"]


def link_next(answer):
    """The target of the Link header with rel="next"."""
    header = answer.header("Link")
    if header is None:
        return None
    found = re.fullmatch(r'<([^>]*)>; *rel="?next"?', header)
    assert found, header
    return found.group(1)


def path_of(site, target):
    return target[len(site.url()):] if target.startswith("http") else target


ODD_NAMES = ["a+b", "a b", "a&limit=0", "a%2Fb", "a#b", "a?b", "a\"b", "a<b>", "a;b", "a,b", "a=b", "ä", "e\u0301",
             "\U0001f600", "'", "a%"]


@pytest.mark.smoke
def test_following_links_visits_all(site, box):
    fill(site, box, ODD_NAMES)
    path, seen = box + "?limit=1", []
    while path:
        got = site.get(path)
        assert got.status == 200, got
        seen += [item["key"] for item in got.json()["items"]]
        assert (link_next(got) is None) == (got.json()["next"] is None)
        path = link_next(got) and path_of(site, link_next(got))
        assert path is None or re.fullmatch(r"[!-~]+", path) and "limit=1" in path
        assert len(seen) < 100
    assert seen == sorted((key_of(box) + name for name in ODD_NAMES), key=str.encode)


@pytest.mark.parametrize("letter", ["x", "\U0001f600", '"', "\u20ac", "+"])
def test_the_longest_keys_in_a_page(site, box, letter):
    """Escaped and encoded at their longest: the page, its Link, and the next page."""
    room = 512 - len(key_of(box)) - 3
    names = ["%03d" % i + letter * (room // len(letter.encode())) for i in range(4)]
    fill(site, box, names)
    first = site.get(box + "?limit=3")
    assert [item["key"] for item in first.json()["items"]] == [key_of(box) + name for name in names[:3]]
    second = site.get(path_of(site, link_next(first)))
    assert [item["key"] for item in second.json()["items"]] == [key_of(box) + names[3]]
    assert site.delete(box + urllib.parse.quote(names[0])).status == 204


def test_a_thousand_long_keys_in_one_page(site, box):
    link = site.hanji.sqlite(readonly=False)
    link.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
                 " INSERT INTO doc (key, body)"
                 " SELECT ? || printf('%04d', i) || replace(printf('%480c', 'x'), ' ', '\"'), 'x' FROM n",
                 (key_of(box),))
    link.close()
    page = listing(site, box + "?limit=1000")
    assert len(page["items"]) == 1000 and page["next"] is None
    assert len(page["items"][0]["key"]) == len(key_of(box)) + 484
    site.hanji.command("sql", "DELETE FROM doc WHERE key LIKE '%s%%'" % key_of(box))


def test_odd_names_are_json_and_can_be_asked_for(site, box):
    fill(site, box, ODD_NAMES)
    for item in listing(site, box)["items"]:
        name = item["key"][len(key_of(box)):]
        assert name in ODD_NAMES
        assert site.get(box + urllib.parse.quote(name)).header("ETag") == item["etag"]
    keys, _ = walk(site, box, 1)
    assert len(keys) == len(ODD_NAMES)


def test_odd_types_are_json(site, box):
    kind = 'text/plain; a="\\"x\\\\"; b=\xe9'
    got = site.put(box + "k", b"x", {"Content-Type": kind})
    if got.status == 201:
        item, = listing(site, box)["items"]
        assert isinstance(item["type"], str)
        assert site.get(box + "k").status == 200
    else:
        assert got.status == 400


BAD_LIMITS = ["abc", "-1", "1001", "1.5", "1e2", "0x10", "+5", "%205", "5%20", "99999999999999999999",
              "18446744073709551617", "4294967297", "%00", "5%00", "%FF", "%", "%zz", "5%", "٣", "null", "1,2", "1;2"]


@pytest.mark.parametrize("bad", BAD_LIMITS)
def test_bad_limit(site, box, bad):
    path = box + "?limit=" + (bad if bad.isascii() else urllib.parse.quote(bad))
    got = site.get(path)
    assert got.status == 400, got
    assert "limit" in got.json()["detail"]
    assert site.get(path + "&after=" + key_of(box)).status == 400, "also among others"
    assert site.get(box + "?x=1&limit=" + path.partition("=")[2]).status == 400


BAD_AFTERS = ["%FF", "a%00b", "%C0%AF", "%ED%A0%80", "%", "%4", "%GG", "x" * 513]


@pytest.mark.parametrize("bad", BAD_AFTERS)
def test_bad_after(site, box, bad):
    got = site.get(box + "?after=" + bad)
    assert got.status == 400, got
    assert "after" in got.json()["detail"]


@pytest.mark.parametrize("odd", ["%01", "a%0Ab", "%7F", "a\\b", "a%2F%2Fb", "..", "", "%22", "'--"])
def test_after_may_be_a_key_that_only_other_programs_can_write(site, box, odd):
    """A page may end with such a row; the next one starts behind it."""
    fill(site, box, "ab")
    assert len(listing(site, box + "?after=" + key_of(box) + odd)["items"]) in (0, 1, 2)


@pytest.mark.parametrize("query",
                         ["?", "?&", "?&&&", "?x", "?x=", "?x=%FF", "?x=%", "?=", "?=5", "?LIMIT=abc", "?limits=abc",
                          "?xlimit=abc", "?li=1&mit=2", "?x=limit=abc", "?" + "y" * 3000, "?%6c=1", "?utf8=%E2%9C%93"])
def test_unknown_parameters_are_ignored(site, box, query):
    fill(site, box, "ab")
    assert len(listing(site, box + query)["items"]) == 2


def test_limit_twice_follows_one_rule(site, box):
    """Given twice a parameter is refused, whatever the order."""
    fill(site, box, "abc")
    answers = [site.get(box + query).status for query in ("?limit=1&limit=2", "?limit=2&limit=1", "?limit=1&limit=1")]
    assert answers == [400, 400, 400]


def test_listing_a_document_as_a_collection(site, box):
    site.put(box + "a", b"x")
    assert listing(site, box + "a/") == {"items": [], "next": None}


def test_lists_ignore_preconditions_they_cannot_judge(site, box):
    fill(site, box, "a")
    assert site.get(box, {"If-None-Match": '"1"'}).status == 200
    assert site.get(box, {"If-Modified-Since": "Mon, 01 Jan 2035 00:00:00 GMT"}).status == 200


def test_a_list_is_one_state(site, box):
    """What one page shows is one snapshot: its tags are those of the rows at one moment."""
    for round_ in range(20):
        for name in "ab":
            site.put(box + name, b"%d" % round_)
        tags = [int(item["etag"].strip('"')) for item in listing(site, box)["items"]]
        assert tags[1] == tags[0] + 1
